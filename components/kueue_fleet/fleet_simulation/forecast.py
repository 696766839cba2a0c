"""When a job would start: many simulations continue from what is in the fleet now, each with another seed.

What runs is left on the cluster that runs it, and what waits is submitted in the order of its queue. How long jobs run
is drawn in each simulation; `RunTimes` says from what.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final

from kueue_admission.decide.model import Objects, Workload
from kueue_admission.kernel.job_rules import JOB
from kueue_admission.kernel.manifest import Manifest, inside
from kueue_admission.kernel.names import RUN_SECONDS_ANNOTATION
from kueue_admission.kernel.problem import Problem
from kueue_admission.read.fields import Fields
from kueue_admission.read.kueue_objects import LeftOut
from kueue_admission.read.manifests import label_of
from kueue_admission.read.printed import PrintedWorkload
from kueue_admission.read.readable import why
from kueue_admission.read.workloads import Context, parse_workload
from kueue_admission.simulate.delays import Delays
from kueue_admission.simulate.distributions import Distribution, as_seconds, constant
from kueue_admission.simulate.documents import Document
from kueue_admission.simulate.errors import SimulationError
from kueue_admission.simulate.raw import name_documents
from kueue_admission.simulate.records import Record
from kueue_fleet.fleet_file import FleetSpec
from kueue_fleet.fleet_file.model.per_cluster import cluster_queue_of
from kueue_fleet.fleet_simulation.fleet import parse_fleet_objects
from kueue_fleet.fleet_simulation.fleet_run import FleetRun
from kueue_fleet.jobs.problems import UNNAMED, as_in_files, check_kinds
from kueue_fleet.jobs.queued_job import pod_set_templates
from kueue_fleet.jobs.workload_file import WorkloadFile

LONGEST_SECONDS: Final = 30 * 86_400.0
"""A job that has not started by then counts as one that never does."""
_TRIES: Final = 20
_APART_SECONDS: Final = 1e-6
"""Between two arrivals, so that they are queued in their order."""


@dataclass(frozen=True, slots=True)
class Forecast:
    """What is known of the start of a job. `place` counts from 1 among the `pending` of its ClusterQueue; None: it has
    quota already. `starts` are seconds from now, one for each simulation; None: it did not start."""

    workload: str
    """`namespace/name` of its Workload, or of the Job that has none yet."""
    cluster_queue: str
    place: int | None
    pending: int
    starts: tuple[float | None, ...]
    rests_on: tuple[str, ...]
    job: Workload
    objects: Mapping[str, Objects]
    """The job as it is submitted, and the objects of each cluster."""
    reason: str = ""
    """Kueue's reason at the end of the last simulation that did not start it; empty if every one did."""
    message: str = ""
    not_known: str = ""
    """Why it is not known whether it starts; empty if it is known, or a simulation started it."""

    def quantile(self, share: float) -> float | None:
        """Seconds within which this share of the simulations started it; None: fewer did at all."""
        ordered_starts = sorted(math.inf if start is None else start for start in self.starts)
        value = ordered_starts[max(0, math.ceil(share * len(ordered_starts)) - 1)]
        return value if math.isfinite(value) else None

    @property
    def not_started(self) -> int:
        """How many simulations did not start it."""
        return self.starts.count(None)


class RunTimes:
    """How long jobs run: as a job says itself, as the workload file does, as finished jobs of its LocalQueue ran, else
    `usual`."""

    def __init__(
        self, file: WorkloadFile, printed_workloads: Iterable[PrintedWorkload], usual: Distribution | None
    ) -> None:
        self._entries, self._usual = file.jobs, usual
        self._finished: dict[str, list[float]] = {}
        for workload in printed_workloads:
            began, end_time = workload.since("Admitted"), workload.since("Finished")
            if began is not None and end_time is not None and end_time >= began:
                self._finished.setdefault(workload.local_queue, []).append(end_time - began)

    def find(self, workload: PrintedWorkload) -> tuple[str, Distribution | Sequence[float]] | None:
        """Where the run time of a workload is from, and what it is drawn from; None: nothing is known."""
        reasons = list(_run_times(workload))
        if reasons:
            return f"the annotation {RUN_SECONDS_ANNOTATION}", constant(max(reasons))
        names = [workload.name, *(owner.name for owner in workload.owners)]
        for entry in self._entries:
            has_numbers = [name.removeprefix(f"{entry.name}-").isdigit() for name in names if entry.count > 1]
            if (
                entry.namespace == workload.namespace
                and entry.run_seconds
                and (entry.name in names or any(has_numbers))
            ):
                return "the workload file", entry.run_seconds
        if finished_runs := self._finished.get(workload.local_queue):
            return "finished jobs of their LocalQueue", finished_runs
        return None if self._usual is None else ("--run-time", self._usual)


def remaining(times: Distribution | Sequence[float], ran: float, source: random.Random) -> float:
    """Seconds that a job still runs which has run for `ran`. One that ran longer than all that is known: up to as long
    again."""
    if isinstance(times, Distribution):
        if times.kind == "exponential":
            return times.draw_from(source)
        drawn = [times.draw_from(source) for _ in range(_TRIES if ran else 1)]
    else:
        drawn = [time for time in times if time > ran] and [source.choice([time for time in times if time > ran])]
    return next((run_time - ran for run_time in drawn if run_time > ran), ran * source.random())


def forecast(
    fleet: FleetSpec,
    file: WorkloadFile,
    workloads: Iterable[Manifest],
    job: Document | str,
    usual: Distribution | None,
    seeds: Iterable[int],
    now: float,
) -> Forecast:
    """When `job` would start: the `namespace/name` of one of the Workloads, or a job that is submitted now.

    `workloads` are all Workloads where jobs are submitted, `usual` the run time of jobs of which nothing else is known.
    Raises SimulationError with every problem, jobs of unknown run time among them.
    """
    queues = _queues(fleet)
    here = [workload for workload in map(PrintedWorkload.of, workloads) if workload.local_queue in queues]
    live = [workload for workload in here if not workload.is_true("Finished") and workload.is_active]
    submissions = [] if isinstance(job, str) else _submitted(fleet, job)
    unread: Sequence[str] = ()
    try:
        objects, jobs = _read(fleet, live, submissions)
    except SimulationError:
        live, unread = _readable(live, job)
        if not unread:
            raise
        objects, jobs = _read(fleet, live, submissions)
    target = job if isinstance(job, str) else jobs[-1].key
    times = RunTimes(file, (workload for workload in here if workload.is_true("Finished")), usual)
    plan = _Plan(target, list(_steps(live, jobs, times, target, now)), submissions[0].data if submissions else {})
    unknown = [step.workload.key for step in plan.steps if step.times is None and step.workload.key != target]
    if unknown:
        raise SimulationError(
            [
                JOB.at(
                    "run times",
                    f"nothing is known of {len(unknown)} jobs that run or wait, such as {unknown[0]}",
                    "give --run-time SECONDS, or a --workload file that has them",
                )
            ]
        )
    own = next((step.workload for step in plan.steps if step.workload.key == target), None)
    if own is None:
        raise SimulationError(
            [JOB.at(target, "its LocalQueue is not in the fleet", "give the file of the fleet that it is in")]
        )
    begin = file.model_copy(update={"begin": datetime.fromtimestamp(now, UTC)})
    ends = [_start(fleet, begin, objects, plan, seed, now) for seed in seeds]
    starts = tuple(start for start, _ in ends)
    why = next((record for start, record in reversed(ends) if start is None), None)
    queue = queues[own.local_queue]
    waiting = [
        step.workload.key for step in plan.steps if step.reserved is None and queues[step.workload.local_queue] == queue
    ]
    place = waiting.index(target) + 1 if target in waiting else None
    estimate = Forecast(
        target, queue, place, len(waiting), starts, (*_rests_on(fleet, queue, plan, file), *unread), own, objects
    )
    if why is None:
        return estimate
    not_known = why.not_known if estimate.not_started == len(starts) else ""
    return replace(estimate, reason=why.reason, message=why.message, not_known=not_known)


@dataclass(frozen=True, slots=True)
class _Step:
    """A workload in the order of arrival: since when it has quota, if it has, and since when and where it runs."""

    workload: Workload
    labels: Mapping[str, str]
    times: tuple[str, Distribution | Sequence[float]] | None
    reserved: float | None = None
    admitted: float | None = None
    runs_on: str = ""


@dataclass(frozen=True, slots=True)
class _Plan:
    target: str
    steps: list[_Step]
    submitted: Manifest
    """The job that is submitted now; empty: none."""


def _queues(fleet: FleetSpec) -> dict[str, str]:
    """LocalQueue, as `namespace/name`, → ClusterQueue, where jobs are submitted."""
    there = {queue.name for queue in fleet.queues_on(fleet.home)}
    return {key: queue for key, queue in cluster_queue_of(fleet).items() if queue in there}


def _submitted(fleet: FleetSpec, job: Document) -> list[Document]:
    problems = list(check_kinds(fleet, [job]))
    if problems:
        raise SimulationError(problems)
    return name_documents([job])


def _readable(live: Iterable[PrintedWorkload], job: Document | str) -> tuple[list[PrintedWorkload], list[str]]:
    """The Workloads that can be read, and that of the job itself, and a sentence about each of the others."""
    context, workloads, notes = Context(), list[PrintedWorkload](), list[str]()
    for workload in live:
        manifest = {**workload.fields.data, "kind": "Workload", "status": {}}
        problems: list[Problem] = []
        parse_workload(PrintedWorkload(Fields(manifest, label_of(manifest), problems)), context)
        if problems and workload.key != job:
            reason = why(LeftOut(manifest, tuple(problems)))
            notes.append(f"nothing of {label_of(manifest)}, which cannot be read: {reason}")
        else:
            workloads.append(workload)
    return workloads, notes


def _read(
    fleet: FleetSpec, live: Sequence[PrintedWorkload], documents: Sequence[Document]
) -> tuple[dict[str, Objects], list[Workload]]:
    """The objects of each cluster, and the workloads as they were submitted."""
    manifests: list[Manifest] = [{**workload.fields.data, "kind": "Workload", "status": {}} for workload in live]
    try:
        fleet_objects = parse_fleet_objects(fleet, fleet.home, [*manifests, *(document.data for document in documents)])
    except SimulationError as refused:
        raise SimulationError(as_in_files(refused.problems, (), documents, UNNAMED)) from None
    return {name: value.objects for name, value in fleet_objects.items()}, list(fleet_objects[fleet.home].workloads)


def _steps(
    live: Sequence[PrintedWorkload], jobs: Sequence[Workload], times: RunTimes, target: str, now: float
) -> Iterator[_Step]:
    """Everything in its order: what has quota, by when it got it, and then what waits, as Kueue's queues have it."""
    steps = []
    for printed_workload, workload in zip(live, jobs, strict=False):
        admission_time, reservation_time = printed_workload.since("Admitted"), printed_workload.since("QuotaReserved")
        place = printed_workload.cluster_name if admission_time is not None else ""
        labels = dict(printed_workload.metadata.pairs("labels"))
        steps.append(_Step(workload, labels, times.find(printed_workload), reservation_time, admission_time, place))
    if len(jobs) > len(live):
        steps.append(_Step(replace(jobs[-1], created=now), {}, None))
    yield from sorted(
        steps,
        key=lambda step: (
            step.reserved is None,
            step.reserved or 0.0,
            -(step.workload.priority or 0),
            step.workload.created,
        ),
    )


def _start(
    fleet: FleetSpec, file: WorkloadFile, objects: Mapping[str, Objects], plan: _Plan, seed: int, now: float
) -> tuple[float | None, Record]:
    """Seconds until the job starts, in one simulation, and what happened to it."""
    run = FleetRun(fleet, file, fleet.home, objects, Delays(), seed)
    for number, step in enumerate(plan.steps):
        key = step.workload.key
        seconds = None
        if step.times is not None and key != plan.target:
            ran = max(0.0, now - step.admitted) if step.admitted is not None else 0.0
            source = random.Random(f"{seed}:{key}:remaining")  # noqa: S311 - a simulation, not a secret
            seconds = remaining(step.times[1], ran, source)
        is_new = bool(plan.submitted) and key == plan.target
        run.expect(
            replace(step.workload, created=number * _APART_SECONDS),
            seconds,
            labels=dict(inside(plan.submitted, "metadata", "labels")) if is_new else step.labels,
            templates=pod_set_templates(plan.submitted) if is_new and len(step.workload.pod_sets) > 1 else (),
            runs_on=(step.runs_on or run.home) if step.admitted is not None else "",
        )
    record = run.jobs[plan.target].record

    def goes_on(_: float) -> bool:
        return not (record.runs and record.runs[-1].started_at is not None)

    run.drive(0.0, LONGEST_SECONDS, goes_on)
    run.settle()
    return record.runs[-1].started_at if not goes_on(0.0) else None, record


def _rests_on(fleet: FleetSpec, queue: str, plan: _Plan, file: WorkloadFile) -> Iterator[str]:
    entry = fleet.queue(queue)
    flavors = {flavor.name for group in (entry.resource_groups if entry else ()) for flavor in group.flavors}
    others = [step for step in plan.steps if step.workload.key != plan.target]
    running = sum(step.admitted is not None for step in others)
    yield f"jobs: {running} that run, on the clusters that run them, and {len(others) - running} that wait"
    for source, number in Counter(step.times[0] for step in others if step.times is not None).most_common():
        yield f"run times of {number} of them from {source}"
    if file.waits:
        yield "waits for DWS and other admission checks from the workload file"
    else:
        yield "admission checks, DWS among them, take no time: no workload file has waits"
    for flavor in fleet.flavors:
        if flavor.compute_class is not None and flavor.name in flavors:
            yield f"nodes of compute class {flavor.name} come at once: Kueue does not see which priority has any"
    yield "no job is submitted after it"


def _run_times(workload: PrintedWorkload) -> Iterator[float]:
    """The run times that its pods say."""
    for pod_set in workload.pod_sets:
        text = inside(pod_set.data, "template", "metadata", "annotations").get(RUN_SECONDS_ANNOTATION)
        if (seconds := as_seconds(text)) is not None:
            yield seconds
