"""A whole fleet, manager and workers together, on one clock.

In: a fleet and a workload file. Out: a `result.Result`. Each cluster's engine has the objects that `spec.render_fleet`
makes for it; `fleet_run` lets them go on together.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from kueue_fleet.admission.errors import NotModelledError, ObjectError
from kueue_fleet.admission.from_configuration import parse_configuration
from kueue_fleet.admission.from_kueue import Parsed, parse_objects
from kueue_fleet.simulation.cluster import drive
from kueue_fleet.simulation.delays import Delays
from kueue_fleet.simulation.errors import SimulationError
from kueue_fleet.simulation.fleet_run import FleetRun
from kueue_fleet.simulation.raw import check_references
from kueue_fleet.simulation.result import Result
from kueue_fleet.simulation.workload_file import JobEntry, WorkloadFile
from kueue_fleet.spec import FleetSpec, kueue_configuration, render_cluster
from kueue_fleet.spec.dispatch import DISPATCHER_NAME

Submission = tuple[JobEntry, str, float, float | None]


def simulate_fleet(
    fleet: FleetSpec, file: WorkloadFile, delays: Delays, *, until: float | None = None, seed: int = 0
) -> Result:
    """What happens to the jobs of the file. Raises SimulationError with every problem, paths as in the two files."""
    run = fleet_run(fleet, file, delays, seed=seed)
    drive(run.agenda, list(run.clusters.values()), 0.0, until)
    records = run.settle()
    teams = {namespace: team.name for team in fleet.teams for namespace in team.namespace_names}
    arrived = tuple(record for record in records if until is None or record.arrived_at <= until)
    return Result(arrived, 0.0, until, seed, teams)


def fleet_run(fleet: FleetSpec, file: WorkloadFile, delays: Delays, *, seed: int = 0) -> FleetRun:
    """The same before anything has happened."""
    problems = [*_check(fleet, file)]
    submitted = list(file.submissions(seed))
    problems += _check_names(submitted)
    if problems:
        raise SimulationError(problems)
    home = fleet.manager.name if fleet.manager is not None else fleet.cluster_names[0]
    parsed = parse_fleet_objects(fleet, home, submitted)
    run = FleetRun(fleet, file, home, {name: found.objects for name, found in parsed.items()}, delays, seed)
    for (entry, _, at, run_seconds), workload in zip(submitted, parsed[home].workloads, strict=True):
        run.expect(replace(workload, created=at), run_seconds, entry)
    return run


def parse_fleet_objects(fleet: FleetSpec, home: str, submitted: Sequence[Submission]) -> Mapping[str, Parsed]:
    """The objects of each cluster, and on the one where jobs are submitted their workloads. Raises SimulationError."""
    parsed: dict[str, Parsed] = {}
    try:
        for cluster in fleet.cluster_names:
            jobs = [entry.manifest(name) for entry, name, _, _ in submitted] if cluster == home else []
            configuration = parse_configuration(kueue_configuration(fleet, cluster))
            parsed[cluster] = parse_objects([*render_cluster(fleet, cluster), *jobs], configuration)
    except ObjectError as error:
        raise SimulationError(error.problems) from None
    except NotModelledError as error:
        raise SimulationError([str(error)]) from None
    problems = list(check_references(parsed[home]))
    if problems:
        raise SimulationError(problems)
    return parsed


def _check(fleet: FleetSpec, file: WorkloadFile) -> Iterator[str]:
    settings = fleet.multi_kueue
    if settings is not None and settings.dispatcher == "External":
        if settings.dispatcher_name != DISPATCHER_NAME:
            yield (
                f"multiKueue.external.name: what {settings.dispatcher_name} decides is not known here; "
                f"use {DISPATCHER_NAME}, AllAtOnce or Incremental"
            )
        elif fleet.admission_controller is None:
            yield f"multiKueue.external.name: {DISPATCHER_NAME} needs admissionController; add that section"
    known = {
        "cluster": list(fleet.cluster_names),
        "flavor": [flavor.name for flavor in fleet.flavors],
        "check": [check.name for check in fleet.admission_checks],
    }
    for index, wait in enumerate(file.waits):
        yield from _unknown(f"waits[{index}]", {name: getattr(wait, name) for name in known}, known)
    for index, reclaim in enumerate(file.reclaims):
        yield from _unknown(f"reclaims[{index}]", {"cluster": reclaim.cluster, "flavor": reclaim.flavor}, known)
    for index, outage in enumerate(file.outages):
        yield from _unknown(f"outages[{index}]", {"cluster": outage.cluster}, {"cluster": fleet.worker_names})
    classes = {item.name for item in fleet.workload_priority_classes}
    for job in file.jobs:
        if job.priority_class is not None and job.priority_class not in classes:
            yield (
                f"jobs[{job.name}].priorityClass: there is no WorkloadPriorityClass {job.priority_class}; "
                "add it, or name another"
            )
    section = fleet.admission_controller
    if file.begin is None and section is not None and any(check.calendar for check in section.checks):
        yield "begin: not set, but an admission check has calendar windows; write what time second 0 is"


def _unknown(path: str, given: Mapping[str, str | None], known: Mapping[str, Sequence[str]]) -> Iterator[str]:
    for name, value in given.items():
        if value is not None and value not in known[name]:
            found = ", ".join(sorted(known[name])) or "none"
            yield f"{path}.{name}: the fleet has no {name} {value}; it has {found}"


def _check_names(submitted: Iterable[Submission]) -> Iterator[str]:
    seen: set[tuple[str, str]] = set()
    for entry, name, _, _ in submitted:
        if (entry.namespace, name) in seen:
            yield f"jobs[{entry.name}].name: {entry.namespace}/{name} is there twice; name it differently"
        seen.add((entry.namespace, name))
