"""A whole fleet, manager and workers together, on one clock.

In: a fleet and a workload file. Out: a `result.Result`. Each cluster's engine has the objects that `spec.render_fleet`
makes for it; `fleet_run` lets them go on together.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from kueue_fleet.admission.dispatch.checks import RUN_DURATION_ANNOTATION
from kueue_fleet.admission.errors import NotModelledError, ObjectError
from kueue_fleet.admission.from_configuration import parse_configuration
from kueue_fleet.admission.from_kueue import Parsed, parse_objects
from kueue_fleet.simulation.clock import Watch, drive
from kueue_fleet.simulation.delays import Delays
from kueue_fleet.simulation.documents import Document
from kueue_fleet.simulation.errors import SimulationError
from kueue_fleet.simulation.fleet_run import FleetRun
from kueue_fleet.simulation.raw import check_references, name_documents, run_seconds_of
from kueue_fleet.simulation.result import Result
from kueue_fleet.simulation.workload_file import JobEntry, WorkloadFile
from kueue_fleet.spec import FleetSpec, kueue_configuration, render_cluster
from kueue_fleet.spec.calendar_windows import fleet_checks
from kueue_fleet.spec.dispatch import DISPATCHER_NAME

STEP_LABEL: Final = "kueue-fleet.dev/step"
"""On a Job or JobSet: of which step it is, for `steps` of the workload file."""

Submission = tuple[JobEntry, str, float, float | None]
"""A job: its entry, name, second of arrival, and seconds it runs."""


def simulate_fleet(
    fleet: FleetSpec,
    file: WorkloadFile,
    delays: Delays,
    *,
    until: float | None = None,
    seed: int = 0,
    manifests: Sequence[Document] = (),
    watch: Watch | None = None,
) -> Result:
    """What happens to the jobs of the file, and to those given as Kubernetes objects, which arrive by its `steps`.

    Without `until` it ends when nothing more happens; `watch` may end it before.
    Raises SimulationError with every problem, paths as in the files.
    """
    run = fleet_run(fleet, file, delays, seed=seed, manifests=manifests)
    clusters = list(run.clusters.values())
    end = drive(run.agenda, clusters, 0.0, until, watch)
    teams = {namespace: team.name for team in fleet.teams for namespace in team.namespace_names}
    return Result.of(run.settle(), end, clusters, until=until, seed=seed, teams=teams)


def fleet_run(
    fleet: FleetSpec, file: WorkloadFile, delays: Delays, *, seed: int = 0, manifests: Sequence[Document] = ()
) -> FleetRun:
    """The same before anything has happened. Raises SimulationError with every problem of the jobs."""
    submitted = list(file.submissions(seed))
    manifests = name_documents(manifests)
    problems = [*_check(fleet, file), *_check_names(submitted), *_check_manifests(file, manifests)]
    if not submitted and not manifests:
        problems.append("jobs: there are none; add some, or give --jobs")
    if problems:
        raise SimulationError(problems)
    # The core gives Jobs first and then JobSets.
    ordered = sorted(manifests, key=lambda document: document.data["kind"] == "JobSet")
    home = fleet.manager.name if fleet.manager is not None else fleet.cluster_names[0]
    jobs = [*(entry.manifest(name) for entry, name, _, _ in submitted), *(document.data for document in ordered)]
    parsed = parse_fleet_objects(fleet, home, jobs)
    run = FleetRun(fleet, file, home, {name: found.objects for name, found in parsed.items()}, delays, seed)
    workloads = parsed[home].workloads
    for (entry, _, at, seconds), workload in zip(submitted, workloads, strict=False):
        given = replace(workload, created=at)
        run.expect(given, seconds, labels=entry.labels, run_limit=entry.max_run_seconds)
    for document, workload in zip(ordered, workloads[len(submitted) :], strict=True):
        metadata = document.data["metadata"]
        labels, annotations = metadata.get("labels") or {}, metadata.get("annotations") or {}
        at = file.steps.get(labels.get(STEP_LABEL, ""), 0.0)
        limit = annotations.get(RUN_DURATION_ANNOTATION)
        run.expect(
            replace(workload, created=at),
            run_seconds_of(document),
            labels=labels,
            run_limit=int(limit) if isinstance(limit, str) and limit.isdigit() else None,
        )
    return run


def _check_manifests(file: WorkloadFile, manifests: Sequence[Document]) -> Iterator[str]:
    steps = set()
    for where, data in manifests:
        if data["kind"] not in ("Job", "JobSet"):
            yield f"{where}: is a {data['kind']}; give Jobs and JobSets only, the fleet has the rest"
        else:
            steps.add((data["metadata"].get("labels") or {}).get(STEP_LABEL))
    for name in file.steps:
        if name not in steps:
            yield f"steps.{name}: no job has the label {STEP_LABEL} with this value; remove it, or label the jobs"


def parse_fleet_objects(fleet: FleetSpec, home: str, jobs: Sequence[Mapping[str, Any]]) -> Mapping[str, Parsed]:
    """The objects of each cluster, and on `home`, where jobs are submitted, their workloads. Raises SimulationError."""
    parsed: dict[str, Parsed] = {}
    try:
        for cluster in fleet.cluster_names:
            configuration = parse_configuration(kueue_configuration(fleet, cluster))
            given = [*render_cluster(fleet, cluster), *(jobs if cluster == home else ())]
            parsed[cluster] = parse_objects(given, configuration)
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
    if file.begin is None and any(check.calendar for check in fleet_checks(fleet)):
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
