"""What is to be said of jobs before they are submitted to a fleet: `check --jobs`, `submit`.

First their form, then `jobs.check`, and of jobs that these find right whether Kueue starts them where no other is.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import replace
from typing import Final, NamedTuple

from kueue_admission.decide.model import Objects, Workload
from kueue_admission.kernel.form_rules import JOB_UNKNOWN, UNKNOWN_NAME, Fault
from kueue_admission.kernel.job_rules import JOB, JOB_NEVER_STARTS
from kueue_admission.kernel.problem import Place, Problem, errors_of
from kueue_admission.kernel.suggest import either
from kueue_admission.read.kueue_objects import Parsed
from kueue_admission.simulate.delays import Delays
from kueue_admission.simulate.documents import Document
from kueue_admission.simulate.errors import SimulationError
from kueue_admission.simulate.raw import name_documents
from kueue_fleet.fleet_file import FleetSpec
from kueue_fleet.fleet_file.calendar_pools import fleet_opened
from kueue_fleet.fleet_file.model.per_cluster import cluster_queue_of
from kueue_fleet.fleet_file.quota_windows import quota_windows
from kueue_fleet.fleet_file.rules.queues import LABEL_CONFLICT
from kueue_fleet.fleet_simulation.fleet import by_kind, expect_job, parse_fleet_objects
from kueue_fleet.fleet_simulation.fleet_run import FleetRun
from kueue_fleet.fleet_simulation.node_limit import fits, pools_by_label
from kueue_fleet.fleet_simulation.quota_times import QuotaTimes
from kueue_fleet.jobs.check import check_job
from kueue_fleet.jobs.check.compute_domains import check_domains, claim_templates, claims_apart
from kueue_fleet.jobs.check.dynamic_slices import as_placed
from kueue_fleet.jobs.check.nodes import roomier, wrong_flavor
from kueue_fleet.jobs.fleet_job import FleetJob
from kueue_fleet.jobs.most_on_workers import more_than_workers_have, never_fits
from kueue_fleet.jobs.not_known import start_not_known
from kueue_fleet.jobs.problems import UNNAMED, as_in_files, check_forms, check_kinds, check_twice, unread_kinds
from kueue_fleet.jobs.queued_job import of_job, pod_set_templates, queue_key, queued_jobs
from kueue_fleet.jobs.undispatched import respelt, uncounted
from kueue_fleet.jobs.workload_file import WorkloadFile
from kueue_fleet.settings.windows import together

_UNREAD: Final = "see yourself that its queue has what its pods ask for"
_FIX: Final = "change what it asks for, or the quotas and nodes of its queue"
_READINGS: Final = 100
"""At most: forms are refused before references, and what is not modelled one by one, and jobs are read again."""


_OF_FLEET: Final = ("Namespace", "PriorityClass", "LocalQueue", "ClusterQueue", "ResourceFlavor", "Topology")
"""What people write beside jobs, and a fleet has of its own."""


class JobFindings(NamedTuple):
    """What is wrong with jobs, and what is not known or not sure."""

    problems: list[Problem]
    warnings: list[Problem]


def check_manifests(fleet: FleetSpec, manifests: Sequence[Document], *, form_only: bool = False) -> JobFindings:
    """What is to be said of jobs before they are submitted to the fleet.

    `form_only`: of their form and kind; Kueue finds the others.
    """
    try:
        named_documents, claims = claims_apart(name_documents(manifests))
    except SimulationError as refused:
        return JobFindings(list(refused.problems), [])
    beside = [document for document in named_documents if document.data["kind"] in _OF_FLEET]
    if len(beside) < len(named_documents):
        named_documents = [document for document in named_documents if document.data["kind"] not in _OF_FLEET]
    else:
        beside = []  # Alone they are the wrong file.
    unread = set[str]() if form_only else unread_kinds(fleet)
    warnings = [of_job(entry, JOB, "is not read: a fleet has its own", "write it there", "warning") for entry in beside]
    warnings += [
        of_job(each, JOB, "has pods that are not read here, so that nothing is known of it", _UNREAD, "warning")
        for each in named_documents
        if each.data["kind"] in unread
    ]
    named_documents = [each for each in named_documents if each.data["kind"] not in unread]
    problems = [*check_kinds(fleet, named_documents), *check_forms(named_documents), *check_twice(named_documents)]
    of_claims = list(check_domains(fleet, claims))
    if of_claims or form_only:
        return JobFindings([*problems, *of_claims], warnings)
    fleet = fleet_opened(fleet)
    reading = _read_jobs(fleet, claims, by_kind(_others(named_documents, problems)))
    # Others may have made what the job claims devices by, and Kueue waits until it is there.
    problems += (problem for problem in reading.problems if problem.rule is not JOB_UNKNOWN)
    warnings += (
        replace(problem, wrong=f"whether it starts is not known: {problem.wrong}", severity="warning")
        for problem in reading.problems
        if problem.rule is JOB_UNKNOWN
    )
    if reading.objects is None:
        return JobFindings(problems, warnings)
    found = [problem for job in queued_jobs(fleet, reading.documents, claims) for problem in check_job(fleet, job)]
    right = {id(document) for document in _others(reading.documents, [*problems, *errors_of(found)])}
    found += _never_started(fleet, reading.documents, reading.objects, right)
    warnings += [problem for problem in found if problem.severity == "warning"]
    return JobFindings([*problems, *errors_of(found)], warnings)


def _never_started(
    fleet: FleetSpec, documents: Sequence[Document], fleet_objects: Mapping[str, Parsed], right: Set[int]
) -> Iterator[Problem]:
    """Jobs that Kueue never starts, and those that it may start uncounted; `right` are those of no other problem."""
    times = QuotaTimes(fleet, {name: value.objects for name, value in fleet_objects.items()}, None)
    at_times = [times.during(windows) for windows in (frozenset[str](), *together(quota_windows(fleet)))]
    queues = cluster_queue_of(fleet)
    for document, workload in zip(documents, fleet_objects[fleet.home].workloads, strict=True):
        queue = queues.get(workload.local_queue, "")
        if id(document) not in right:
            # Kueue's reason may be what is said already; a number is not.
            if more := never_fits(fleet, queue, workload):
                yield of_job(document, JOB_NEVER_STARTS, f"never starts: {more}", _FIX)
            continue
        # What starts while some window is open starts then.
        starts = (_not_started(fleet, objects, document, workload) for objects in at_times)
        faults = list(itertools.takewhile(bool, starts))
        if len(faults) == len(at_times) and faults[0] is not None:
            yield faults[0]
        elif fault := uncounted(fleet, queue, dict(workload.requests)):
            yield of_job(document, fault.rule, fault.wrong, fault.fix, "warning")


def readable_jobs(fleet: FleetSpec, manifests: Sequence[Document]) -> tuple[list[Document], list[Problem]]:
    """What of the objects can be submitted to the fleet, and what is wrong with the others.

    Raises SimulationError where it is not known which are wrong.
    """
    problems: list[Problem] = []
    named_documents, claims = claims_apart(name_documents(manifests, problems))
    problems += [*check_kinds(fleet, named_documents), *check_forms(named_documents), *check_twice(named_documents)]
    reading = _read_jobs(fleet, claims, by_kind(_others(named_documents, problems)))
    problems += reading.problems
    if reading.objects is None:
        raise SimulationError(problems)
    readable = {id(document) for document in (*reading.documents, *claims)}
    return [document for document in (*named_documents, *claims) if id(document) in readable], problems


class _Read(NamedTuple):
    """Jobs that could be read, with the objects of each cluster, and what is wrong with the others."""

    documents: list[Document]
    objects: Mapping[str, Parsed] | None
    """None where it is not known which jobs are wrong."""
    problems: list[Problem]


def _read_jobs(fleet: FleetSpec, claims: Sequence[Document], documents: list[Document]) -> _Read:
    """The jobs as Kueue reads them; those that it cannot read hide nothing of the others."""
    problems: list[Problem] = []
    for _ in range(_READINGS):
        try:
            manifests = [*claim_templates(claims), *(as_placed(document.data) for document in documents)]
            return _Read(documents, parse_fleet_objects(fleet, fleet.home, manifests), problems)
        except SimulationError as refused:
            found = list(as_in_files(refused.problems, (), documents, UNNAMED))
            problems += found
            queues = cluster_queue_of(fleet)
            about_queues = any(problem.rule is UNKNOWN_NAME for problem in found)  # The first one stands for all.
            left = [
                document
                for document in _others(documents, found)
                if not about_queues or queue_key(document.data) in queues
            ]
            if len(left) == len(documents):
                break
            documents = left
    return _Read(documents, None, problems)


def _others(documents: Sequence[Document], problems: Sequence[Problem]) -> list[Document]:
    """Without those that the problems are about."""
    wrong = {(problem.source, problem.line, problem.path.partition(": ")[0]) for problem in problems}
    wrong |= {(source, line, "") for source, line, _ in wrong}
    others = []
    for document in documents:
        place = document.where if isinstance(document.where, Place) else Place(document.where)
        if (place.source, place.line, place.item) not in wrong:
            others.append(document)
    return others


def _not_started(
    fleet: FleetSpec, objects: Mapping[str, Objects], document: Document, workload: Workload
) -> Problem | None:
    """Why the job does not start where no other is, or why that is not known; None: it starts."""
    for job in _alone(fleet, objects, document, workload):
        if fault := start_not_known(fleet, job):
            wrong = f"whether it starts is not known: {fault.wrong}"
            return of_job(document, fault.rule, wrong, fault.fix, "warning")
        if why := job.record.why_not_started:
            entry, templates = fleet.queue(job.record.cluster_queue), list(pod_set_templates(document.data))
            if job.record.runs and entry is not None and any(wrong_flavor(fleet, entry, item) for item in templates):
                return None  # `check_job` warns: where others have the quota of that flavor, it gets another.
            fix = respelt(fleet, job.record.cluster_queue, dict(workload.requests).keys()) or _FIX
            rooms = [roomier(fleet, job.record.cluster_queue, pod_set_template) for pod_set_template in templates]
            if job.record.runs and any(rooms):
                fix = f"let its pods select {next(filter(None, rooms))}, whose nodes hold them, or {fix}"
            more = more_than_workers_have(fleet, job.record.cluster_queue, job.workload.requests)
            return of_job(document, JOB_NEVER_STARTS, f"never starts: {why}{more and f': {more}'}", fix)
        if fault := _starts_by_chance(fleet, job):
            return of_job(document, fault.rule, fault.wrong, fault.fix)
    return None


def _starts_by_chance(fleet: FleetSpec, job: FleetJob) -> Fault | None:
    """Flavors of one pod with different values of a node label, where not the nodes of each value hold it."""
    run = job.record.runs[-1] if job.record.runs else None
    if run is None or run.cluster is None:
        return None
    requests = {pod_set.name: pod_set.node_requests for pod_set in job.workload.pod_sets}
    for assignment in run.admission.pod_sets:
        entries = {name: entry for _, name in assignment.flavors if (entry := fleet.flavor(name)) is not None}
        names = [name for name, entry in entries.items() if fleet.flavor_nodes(entry, run.cluster)]
        holds = {
            name: any(
                pool.known_allocatable is None or fits(pool.known_allocatable, requests[assignment.name])
                for pool in pools
            )
            for name, pools in pools_by_label(fleet, run.cluster, names).items()
        }
        good, bad = ([name for name, held in holds.items() if held is kind] for kind in (True, False))
        if good and bad:
            there, other = (fleet.flavor_on(entries[name], run.cluster).node_labels for name in (good[0], bad[0]))
            key = next((key for key, value in there.items() if other.get(key, value) != value), "")
            wrong = (
                f"flavors {good[0]} and {bad[0]} have different values of the node label {key}: it starts only if "
                f"Kueue, at random, gives pod set {assignment.name} that of {either(good)}, and is evicted otherwise"
            )
            return Fault(wrong, "cover what it asks for in one group of its queue", LABEL_CONFLICT)
    return None


def _alone(fleet: FleetSpec, objects: Mapping[str, Objects], document: Document, workload: Workload) -> list[FleetJob]:
    """What happens to the job where no other is."""
    run = FleetRun(fleet, WorkloadFile(), fleet.home, objects, Delays(), seed=0)
    expect_job(run, document, replace(workload, created=0.0))
    run.drive(0.0, None)
    run.settle()
    return list(run.jobs.values())
