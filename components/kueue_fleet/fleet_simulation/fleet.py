"""A whole fleet, manager and workers together, on one clock.

A `result.Result`. Each cluster's engine has what `objects.render_fleet` makes for it; `fleet_run` runs them
together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from kueue_admission.decide.errors import NotModelledError, ObjectError
from kueue_admission.decide.model import Workload
from kueue_admission.kernel.form_rules import JOB_UNKNOWN
from kueue_admission.kernel.manifest import inside
from kueue_admission.kernel.names import RUN_DURATION_ANNOTATION
from kueue_admission.kernel.problem import Problem, errors_of
from kueue_admission.kernel.syntax import whole_number
from kueue_admission.read.configuration import parse_configuration
from kueue_admission.read.kueue_objects import Parsed, parse_objects
from kueue_admission.read.manifests import QUEUED
from kueue_admission.read.workloads import Context
from kueue_admission.simulate.clock import End, Watch
from kueue_admission.simulate.delays import Delays
from kueue_admission.simulate.documents import Document
from kueue_admission.simulate.errors import SimulationError
from kueue_admission.simulate.prepared import Prepared
from kueue_admission.simulate.raw import check_references, name_documents, named_workloads, run_seconds_of
from kueue_admission.simulate.result import Result, quotas_of
from kueue_fleet.fleet_file import FleetSpec, kueue_configuration
from kueue_fleet.fleet_file.cost import Unpriced, accelerator_hour
from kueue_fleet.fleet_file.goals import goals_of
from kueue_fleet.fleet_file.model.capacity import Calendar
from kueue_fleet.fleet_simulation.fleet_run import FleetRun
from kueue_fleet.fleet_simulation.team_budgets import simulated_budgets
from kueue_fleet.gke.prices import Prices, list_prices
from kueue_fleet.jobs.check import check_job
from kueue_fleet.jobs.check.compute_domains import check_domains, claim_templates, claims_apart
from kueue_fleet.jobs.check.dynamic_slices import as_placed
from kueue_fleet.jobs.check.nodes import stays_pending
from kueue_fleet.jobs.check.pods_together import warn_of_pods_together, why_kept_apart
from kueue_fleet.jobs.check.scheduling_gates import warn_of_gates
from kueue_fleet.jobs.check.team_limits import warn_of_many
from kueue_fleet.jobs.check.team_rules import warn_of_short_nodes
from kueue_fleet.jobs.fleet_job import BACKOFF_LIMIT, pods_that_may_fail
from kueue_fleet.jobs.problems import (
    STEP_LABEL,
    UNNAMED,
    Sources,
    as_in_files,
    check_jobs,
    warn_of_run_times,
)
from kueue_fleet.jobs.queued_job import QueuedJob, pod_set_templates, queued_jobs
from kueue_fleet.jobs.topology_nodes import topology_nodes
from kueue_fleet.jobs.undispatched import warn_of_undispatched
from kueue_fleet.jobs.workload_file import JobEntry, WorkloadFile
from kueue_fleet.objects import render_cluster

_PENDING: Final = (stays_pending, warn_of_pods_together, warn_of_gates)
"""Of jobs that are admitted and whose pods wait."""


def prepare_fleet(
    fleet: FleetSpec,
    file: WorkloadFile,
    delays: Delays,
    *,
    until: float | None = None,
    seed: int = 0,
    manifests: Sequence[Document] = (),
    sources: Sources = UNNAMED,
    prices: Prices | None = None,
) -> Prepared:
    """What will happen to the jobs of the file, and to those given as Kubernetes objects, which arrive by its `steps`.

    Without `until` it ends when nothing more happens. `prices`, by default the library's, are for budgets.
    Raises SimulationError with every problem, paths as in the files, behind their names in `sources`.
    """
    named_documents = name_documents(manifests)
    run = _run_of(fleet, file, delays, seed, named_documents, sources)

    def go(watch: Watch | None) -> Result:
        end = run.drive(0.0, until, watch)
        return result_of(run, fleet, end, prices or list_prices(), until=until, seed=seed)

    jobs, claims = claims_apart(named_documents)
    dispatch_problems = as_in_files(warn_of_undispatched(fleet, run.jobs.values()), file.jobs, jobs, sources)
    queued_list = tuple(queued_jobs(fleet, jobs, claims))
    pending = [[tuple(check(fleet, job)) for job in queued_list] for check in _PENDING]
    running = [job for job, *waits in zip(queued_list, *pending, strict=True) if not any(waits)]
    warnings = (
        *(warning for of_check in pending for of_job in of_check for warning in of_job),
        *as_in_files(_outlived(fleet, queued_list, file.jobs), (), (), sources),
        *_refused_elsewhere(fleet, running),
        *_closed_pools(fleet, file),
        *dispatch_problems,
        *warn_of_many(fleet, file.jobs, jobs),
    )
    return Prepared(run.queues, go, fleet.name, goals_of(fleet), warnings)


def _outlived(fleet: FleetSpec, jobs: Iterable[QueuedJob], entries: Iterable[JobEntry]) -> Iterator[Problem]:
    """Jobs whose nodes end before them, which is not simulated."""
    of_jobs = (problem for job in jobs for problem in warn_of_short_nodes(fleet, job))
    for problem in (*of_jobs, *warn_of_run_times(fleet, entries)):
        yield replace(problem, wrong=f"{problem.wrong} (the simulation lets it run on)")


def _refused_elsewhere(fleet: FleetSpec, jobs: Iterable[QueuedJob]) -> Iterator[Problem]:
    """What others refuse of jobs that Kueue, and so the simulation, runs; of jobs that are alike, of the first."""
    seen: set[str] = set()
    for job in jobs:
        metadata = inside(job.data, "metadata")
        alike = repr((job.queue, job.pod_sets, metadata.get("labels"), metadata.get("annotations")))
        if alike not in seen:
            for problem in errors_of(check_job(fleet, job)):
                yield replace(problem, wrong=f"{problem.wrong} (the simulation may run it)", severity="warning")
        seen.add(alike)


def _closed_pools(fleet: FleetSpec, file: WorkloadFile) -> Iterator[Problem]:
    """Pools that wait for their calendar reservations when the simulation begins: their flavors have no quota in it."""
    begins = "has no date" if file.begin is None else f"begins {file.begin:%Y-%m-%dT%H:%M}"
    closed = {pool.name: pool.capacity for name in fleet.job_clusters for pool in fleet.nodes_on(name) if pool.closed}
    for name, capacity in closed.items():
        if isinstance(capacity, Calendar) and "active" not in capacity.model_fields_set:
            wrong = (
                f"is open from {capacity.start:%Y-%m-%dT%H:%M} to {capacity.end:%Y-%m-%dT%H:%M}, and the simulation "
            )
            wrong += f"{begins}: its flavors have no quota"
            fix = f"give --begin {capacity.start:%Y-%m-%dT%H:%M:%S} for a time when it is open"
            yield JOB_UNKNOWN.at(f"nodePools[{name}].capacity", wrong, fix, "warning")


def result_of(
    run: FleetRun, fleet: FleetSpec, end: End, prices: Prices, *, until: float | None = None, seed: int = 0
) -> Result:
    """What a run of the fleet came to."""
    result = Result.of(
        run.settle(),
        end,
        run.clusters.values(),
        until=until,
        seed=seed,
        teams=fleet.team_of,
        accelerator_usd=accelerator_usd(fleet, prices),
        job_clusters=fleet.job_clusters,
    )
    budgets = tuple(simulated_budgets(fleet, prices, result.records, end.at))
    (_, quotas), *later = [
        (at, tuple(quota for name in fleet.job_clusters for quota in quotas_of(name, objects[name])))
        for at, objects in run.quota_times
    ]
    return replace(
        result,
        budgets=budgets,
        snapshots=tuple(run.snapshots),
        quotas=quotas,
        later_quotas=tuple(later),
        begin=run.begin,
    )


def accelerator_usd(fleet: FleetSpec, prices: Prices) -> Mapping[tuple[str, str], float]:
    """See `Result.accelerator_usd`."""
    places = ((cluster, flavor.name) for cluster in fleet.job_clusters for flavor in fleet.flavors)
    amounts = {place: accelerator_hour(fleet, *place, prices) for place in places}
    return {place: amount for place, amount in amounts.items() if not isinstance(amount, Unpriced)}


def fleet_run(
    fleet: FleetSpec,
    file: WorkloadFile,
    delays: Delays,
    *,
    seed: int = 0,
    manifests: Sequence[Document] = (),
    sources: Sources = UNNAMED,
) -> FleetRun:
    """The same before anything has happened. Raises SimulationError with every problem of the jobs."""
    return _run_of(fleet, file, delays, seed, name_documents(manifests), sources)


def _run_of(
    fleet: FleetSpec, file: WorkloadFile, delays: Delays, seed: int, documents: Sequence[Document], sources: Sources
) -> FleetRun:
    submissions = list(file.submissions(seed))
    manifests, claims = claims_apart(documents)
    problems = [*check_jobs(fleet, file, submissions, manifests, sources), *check_domains(fleet, claims)]
    if problems:
        raise SimulationError(problems)
    ordered_documents = by_kind(manifests)
    home = fleet.home
    entries = [entry for entry in file.jobs if entry.count]
    try:
        manifest_list = [*claim_templates(claims), *(as_placed(document.data) for document in ordered_documents)]
        fleet_objects = parse_fleet_objects(fleet, home, manifest_list, first_of_each(entries))
    except SimulationError as refused:
        raise SimulationError(as_in_files(refused.problems, entries, manifests, sources)) from None
    run = FleetRun(fleet, file, home, {name: value.objects for name, value in fleet_objects.items()}, delays, seed)
    workloads = fleet_objects[home].workloads
    first = {workload.key: workload for workload in workloads[len(ordered_documents) :]}
    for entry, name, at, seconds in submissions:
        key = f"{entry.namespace}/{name}"
        alike = first[f"{entry.namespace}/{entry.job_name(1)}"]
        workload = replace(alike, name=name, uid=key, job_uid=key, created=at)
        run.expect(workload, seconds, labels=entry.labels, run_limit=entry.max_run_seconds, may_fail=BACKOFF_LIMIT)
    for job, workload in zip(queued_jobs(fleet, ordered_documents, claims), workloads, strict=False):
        step = str(inside(job.data, "metadata", "labels").get(STEP_LABEL, ""))
        created = replace(workload, created=file.steps.get(step, 0.0))
        expect_job(run, job.document, created, why_kept_apart(fleet, job))
    return run


def by_kind(manifests: Sequence[Document]) -> list[Document]:
    """In the order in which the core gives their workloads."""
    return sorted(manifests, key=lambda document: QUEUED.index(document.data["kind"]))


def expect_job(run: FleetRun, document: Document, workload: Workload, kept_apart: str = "") -> None:
    """Let the workloads of a job that is given as a Kubernetes object arrive when `workload` is created.

    `kept_apart`: why its pods never all run at once.
    """
    metadata = document.data["metadata"]
    raw_labels = metadata.get("labels") or {}
    labels = {str(key): str(value) for key, value in raw_labels.items() if value is not None}
    for name, expected_job in named_workloads(document.data, workload, workload.name):
        if expected_job.key in run.jobs:
            # Jobs of two kinds may have the same name; their Workloads never have.
            expected_job = replace(expected_job, name=f"{document.data['kind'].lower()}-{name}")
        run.expect(
            expected_job,
            run_seconds_of(document),
            name=name,
            labels=labels,
            run_limit=whole_number((metadata.get("annotations") or {}).get(RUN_DURATION_ANNOTATION)),
            templates=pod_set_templates(document.data) if len(workload.pod_sets) > 1 else (),
            may_fail=pods_that_may_fail(document.data),
        )
        run.jobs[expected_job.key].kept_apart = kept_apart


MoreWorkloads = Callable[[Context, list[Problem]], Iterable[Workload]]
"""Makes workloads that are in no object, and adds to the problems."""


def first_of_each(entries: Sequence[JobEntry]) -> MoreWorkloads:
    """The first job of each entry."""
    return lambda context, problems: (entry.workload(context, problems) for entry in entries)


def parse_fleet_objects(
    fleet: FleetSpec,
    home: str,
    jobs: Sequence[Mapping[str, Any]],
    more: MoreWorkloads = lambda context, problems: (),
) -> Mapping[str, Parsed]:
    """The objects of each cluster, and on `home`, where jobs are submitted, their workloads: those of `jobs`, and then
    those of `more`. Raises SimulationError."""
    parsed_clusters: dict[str, Parsed] = {}
    try:
        for cluster in fleet.cluster_names:
            configuration = parse_configuration(kueue_configuration(fleet, cluster), fleet.kueue_on(cluster).release)
            manifests = [*render_cluster(fleet, cluster), *topology_nodes(fleet, cluster)]
            if cluster == home:
                parsed_clusters[cluster] = parse_objects([*manifests, *jobs], configuration, more)
            else:
                parsed_clusters[cluster] = parse_objects(manifests, configuration)
    except ObjectError as error:
        raise SimulationError(error.problems) from None
    except NotModelledError as error:
        raise SimulationError([error.problem]) from None
    problems = [problem for _, problem in check_references(parsed_clusters[home])]
    if problems:
        raise SimulationError(problems)
    return parsed_clusters
