"""What is to be said of jobs before they are submitted to a fleet: `check --jobs`, `submit`.

First their form, then `jobs.check`, and of jobs that these find right whether Kueue starts them where no other is.
"""

from __future__ import annotations

import itertools
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import replace
from typing import Final, NamedTuple

from kueue_admission.api import PriorityClassFields, WorkloadPriorityClassFields
from kueue_admission.api.job_kinds import DISPATCHED_FRAMEWORKS, KINDS
from kueue_admission.api.manifests import priority_class_manifest, workload_priority_class_manifest
from kueue_admission.decide.model import Objects, Workload
from kueue_admission.kernel.form_rules import JOB_UNKNOWN, UNKNOWN_NAME, Fault
from kueue_admission.kernel.job_rules import JOB, JOB_NEVER_STARTS
from kueue_admission.kernel.manifest import Manifest, inside, is_object
from kueue_admission.kernel.names import PRIORITY_LABEL
from kueue_admission.kernel.problem import Place, Problem, errors_of
from kueue_admission.kernel.suggest import either
from kueue_admission.read.job_workloads import SYSTEM_CLASSES
from kueue_admission.read.kueue_objects import Parsed
from kueue_admission.simulate.delays import Delays
from kueue_admission.simulate.documents import Document, ObjectPlace
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
from kueue_fleet.jobs.problems import (
    UNNAMED,
    as_in_files,
    check_forms,
    check_kinds,
    check_twice,
    jobs_apart,
    unread_kinds,
    warn_of_others,
)
from kueue_fleet.jobs.queued_job import of_job, pod_set_templates, queue_key, queued_jobs
from kueue_fleet.jobs.undispatched import respelt, uncounted
from kueue_fleet.jobs.workload_file import WorkloadFile
from kueue_fleet.settings.windows import together

_UNREAD: Final = "see yourself that its queue has what its pods ask for"
_FIX: Final = "change what it asks for, or the quotas and nodes of its queue"
_READINGS: Final = 100
"""At most: forms are refused before references, and what is not modelled one by one, and jobs are read again."""


class JobFindings(NamedTuple):
    """What is wrong with jobs, and what is not known or not sure."""

    problems: list[Problem]
    warnings: list[Problem]


def check_manifests(fleet: FleetSpec, manifests: Sequence[Document], *, form_only: bool = False) -> JobFindings:
    """What is to be said of jobs before they are submitted to the fleet.

    `form_only`: of their form and kind; Kueue finds the others.
    """
    problems: list[Problem] = []
    documents, claims = claims_apart(name_documents(manifests, problems))
    named_documents, beside = jobs_apart(documents)
    unread = set[str]() if form_only else unread_kinds(fleet)
    warnings = [
        *warn_of_others(beside),
        *(_of_unread(fleet, each) for each in named_documents if each.data["kind"] in unread),
    ]
    named_documents = [each for each in named_documents if each.data["kind"] not in unread]
    problems += [*check_kinds(fleet, named_documents), *check_forms(named_documents), *check_twice(named_documents)]
    of_claims = list(check_domains(fleet, claims))
    if of_claims or form_only:
        return JobFindings([*problems, *of_claims], warnings)
    fleet = fleet_opened(fleet)
    right_documents = by_kind(_others(named_documents, problems))
    reading = _read_jobs(fleet, claims, right_documents)
    # Others may have made the class that the job names, or what it claims devices by; Kueue waits until it is there.
    not_known = [problem for problem in reading.problems if problem.rule is JOB_UNKNOWN]
    if not_known:
        reading = _read_jobs(fleet, claims, right_documents, _classes_of_others(fleet, right_documents))
    problems += (problem for problem in reading.problems if problem.rule is not JOB_UNKNOWN)
    warnings += (
        replace(problem, wrong=f"whether it starts is not known: {problem.wrong}", severity="warning")
        for problem in not_known
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


def _of_unread(fleet: FleetSpec, job: Document) -> Problem:
    """What is known of a job whose pods are not read.

    Source: kueue@v0.19.2 pkg/controller/admissionchecks/multikueue/workload.go (no adapter: the check is Rejected).
    """
    dispatched = {KINDS[name].kind for name in DISPATCHED_FRAMEWORKS}
    queue = cluster_queue_of(fleet).get(queue_key(job.data), "")
    if job.data["kind"] not in dispatched and fleet.is_dispatched(queue):
        return of_job(
            job, JOB, "is of a kind that MultiKueue rejects", "use a queue of a standalone cluster", "warning"
        )
    return of_job(job, JOB, "has pods that are not read here, so that nothing is known of it", _UNREAD, "warning")


def readable_jobs(fleet: FleetSpec, manifests: Sequence[Document]) -> tuple[list[Document], JobFindings]:
    """What of the objects can be submitted to the fleet, what is wrong with the others, and which are no jobs.

    Raises SimulationError where it is not known which are wrong.
    """
    problems: list[Problem] = []
    documents, claims = claims_apart(name_documents(manifests, problems))
    named_documents, beside = jobs_apart(documents)
    problems += [*check_kinds(fleet, named_documents), *check_forms(named_documents), *check_twice(named_documents)]
    reading = _read_jobs(fleet, claims, by_kind(_others(named_documents, problems)))
    problems += reading.problems
    if reading.objects is None:
        raise SimulationError(problems)
    readable = {id(document) for document in (*reading.documents, *claims)}
    of_fleet = [document for document in (*named_documents, *claims) if id(document) in readable]
    return of_fleet, JobFindings(problems, list(warn_of_others(beside)))


class _Read(NamedTuple):
    """Jobs that could be read, with the objects of each cluster, and what is wrong with the others."""

    documents: list[Document]
    objects: Mapping[str, Parsed] | None
    """None where it is not known which jobs are wrong."""
    problems: list[Problem]


def _read_jobs(
    fleet: FleetSpec, claims: Sequence[Document], documents: list[Document], more: Sequence[Manifest] = ()
) -> _Read:
    """The jobs as Kueue reads them, with `more` objects; those that it cannot read hide nothing of the others."""
    problems: list[Problem] = []
    for _ in range(_READINGS):
        try:
            manifests = [*claim_templates(claims), *more, *(as_placed(document.data) for document in documents)]
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


def _classes_of_others(fleet: FleetSpec, documents: Sequence[Document]) -> list[Manifest]:
    """The priority classes that jobs name and the fleet does not have: of some value, so that the rest is seen."""
    labels = (inside(document.data, "metadata", "labels").get(PRIORITY_LABEL) for document in documents)
    of_jobs = {name for name in labels if name} - {entry.name for entry in fleet.workload_priority_classes}
    of_pods = {name for document in documents for name in _pod_classes(document.data)}
    of_pods -= {*SYSTEM_CLASSES, *(entry.name for entry in fleet.priority_classes)}
    classes = [workload_priority_class_manifest(name, WorkloadPriorityClassFields(value=0)) for name in of_jobs]
    return [*classes, *(priority_class_manifest(name, PriorityClassFields(value=0)) for name in of_pods)]


def _pod_classes(part: object) -> Iterator[str]:
    """What a part of a job says in fields that name a PriorityClass."""
    if is_object(part):
        names = (part.get(field) for field in ("priorityClassName", "priorityClass"))
        yield from (name for name in names if name and isinstance(name, str))
    items = part.values() if is_object(part) else part if isinstance(part, list) else ()
    for item in items:
        yield from _pod_classes(item)


def _others(documents: Sequence[Document], problems: Sequence[Problem]) -> list[Document]:
    """Without those that the problems are about."""
    lines: dict[tuple[str, str], list[int]] = {}
    for source, line, path in sorted((problem.source, problem.line or 0, problem.path) for problem in problems):
        for item in {"", path.partition(": ")[0]}:
            lines.setdefault((source, item), []).append(line)

    def is_wrong(where: str) -> bool:
        place = where if isinstance(where, Place) else Place(where)
        first, there = place.line or 0, lines.get((place.source, place.item), [])
        number = bisect_left(there, first)
        return number < len(there) and there[number] <= (place.last_line if isinstance(place, ObjectPlace) else first)

    return [document for document in documents if not is_wrong(document.where)]


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
