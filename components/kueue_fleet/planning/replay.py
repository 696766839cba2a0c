"""What happened before, once more: recorded jobs arrive as they did at a fleet as its file is now.

A job runs as long as it did. What the fleet does not decide is drawn from what was observed, in each simulation with
another seed: run times of jobs that had not ended, and of more jobs than there were; waits for DWS; losses of nodes.
"""

from __future__ import annotations

import json
import math
import random
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cache, partial
from statistics import median
from typing import Any, Final, NamedTuple

from kueue_admission.decide.errors import NotModelledError
from kueue_admission.decide.model import Objects, Workload
from kueue_admission.decide.pods import PodSet
from kueue_admission.history.jobs import Past, PastJob, Ran, Waited
from kueue_admission.kernel.names import RUN_DURATION_ANNOTATION
from kueue_admission.kernel.syntax import whole_number
from kueue_admission.read.printed import PrintedWorkload
from kueue_admission.read.workloads import Context, parse_workload
from kueue_admission.simulate.clock import Watch
from kueue_admission.simulate.delays import Delays
from kueue_admission.simulate.distributions import observed
from kueue_admission.simulate.records import Record
from kueue_admission.simulate.result import Result
from kueue_fleet.fleet_file import FleetSpec
from kueue_fleet.fleet_file.model.per_cluster import cluster_queue_of
from kueue_fleet.fleet_simulation.fleet import parse_fleet_objects, result_of
from kueue_fleet.fleet_simulation.fleet_run import FleetRun
from kueue_fleet.gke.prices import Prices
from kueue_fleet.jobs.check.nodes import as_allocatable, too_large
from kueue_fleet.jobs.queued_job import PodSetTemplate
from kueue_fleet.jobs.workload_file import ReclaimEntry, WaitEntry, WorkloadFile

FEW: Final = 5
"""Observations below which a wider class is drawn from."""
_APART: Final = 1e-6
"""Seconds between two arrivals of one second, so that they are queued in their order."""
_QUICK: Final = 5.0
"""Seconds that a check of no other than Kueue and the fleet's controller takes at most."""
_HOUR: Final = 3600.0
_DAY: Final = 86_400.0
LATER: Final = 31 * 86_400.0
"""Seconds after the window for which jobs that wait at its end are followed, without any that would arrive then."""
_SPREAD: Final = 1800.0
"""Seconds within which a job that growth adds comes before or after the one that it is like."""


@dataclass(frozen=True)
class Window:
    """A time of the history, in seconds since 1970: jobs that arrived in it are looked at, up to its end."""

    begin: float
    end: float


@dataclass
class Observed:
    """What is drawn from, by class: the LocalQueue and what a job asks for, then the LocalQueue, then all."""

    run_times: dict[tuple[str, ...], list[float]] = field(default_factory=dict)
    file: WorkloadFile = field(default_factory=WorkloadFile)
    between: float = 0.0
    """Seconds from the end of a run until the next one begins there, which each run takes longer here."""
    for_nodes: dict[str, float] = field(default_factory=dict)
    """Seconds of a job's last run, by its uid, in which it waited for nodes that others had; these are simulated."""

    def ran(self, job: PastJob) -> float | None:
        """How long a job ran once it had its nodes; None: it did not end, or never began."""
        seconds = job.run_seconds
        return None if seconds is None else max(0.0, seconds - self.for_nodes.get(job.arrival.uid, 0.0))

    def run_time(self, job: PastJob, source: random.Random, ran: float = 0.0) -> float | None:
        """How long such a job runs that has run for `ran`, from then on; None: nothing is known."""
        longer: list[float] = []
        for name in _classes(job):
            longer = [run_time for run_time in self.run_times.get(name, ()) if run_time > ran]
            if len(longer) >= FEW:
                break
        if longer:
            return source.choice(longer) - ran
        return ran * source.random() if ran and self.run_times else None


def _between_runs(past: Past) -> float:
    """Seconds from the end of a run until a job that waited already was admitted there, where no check took time.

    Kueue and the controllers of jobs take them, a second or two; they count where runs are short.
    """
    flavors = {flavor for wait in past.waits for flavor in wait.flavors if wait.seconds > _QUICK}
    runs = [(job, run) for job in past.jobs for run in job.runs if not flavors & set(run.flavors)]
    ends: dict[str, list[float]] = {}
    for run in sorted((run for _, run in runs if run.ended is not None), key=lambda run: run.ended or 0.0):
        ends.setdefault(run.cluster, []).append(run.ended or 0.0)
    gaps = []
    for job, run in runs:
        before = ends.get(run.cluster, [])
        number = bisect_right(before, run.admitted)
        if number and job.arrival.time < before[number - 1]:
            gaps.append(run.admitted - before[number - 1])
    return median(gaps) if len(gaps) >= FEW else 0.0


def _for_nodes(past: Past, fleet: FleetSpec) -> dict[str, float]:
    """How much longer than usual pods took to start where the number of nodes stays: others were on the nodes.

    Quota does not say which node has room: two GPUs may be free on two nodes, and a pod that asks for both waits.
    """
    fixed_places = {
        (cluster, flavor.name)
        for cluster in fleet.job_clusters
        for flavor in fleet.flavors
        if (pools := fleet.flavor_nodes(flavor, cluster)) and all(pool.autoscaling is None for pool in pools)
    }
    seconds_by_uid = {
        job.arrival.uid: run.started - run.admitted
        for job in past.jobs
        for run in job.runs[-1:]
        if run.started is not None
        and not run.interruptions
        and any((run.cluster, f) in fixed_places for f in run.flavors)
    }
    usual = median(seconds_by_uid.values()) if len(seconds_by_uid) >= FEW else math.inf
    return {uid: seconds - usual for uid, seconds in seconds_by_uid.items() if seconds > usual}


def _classes(job: PastJob) -> Iterator[tuple[str, ...]]:
    queue = f"{job.arrival.namespace}/{job.arrival.queue}"
    requests_text = ",".join(f"{name}={amount:g}" for name, amount in sorted((job.arrival.requests or {}).items()))
    yield from ((queue, requests_text), (queue,), ())


def observe(past: Past, fleet: FleetSpec) -> Observed:
    """What the history shows. Waits and losses of nodes count in the region where they were, and elsewhere if only that
    is known."""
    observation = Observed(between=_between_runs(past), for_nodes=_for_nodes(past, fleet))
    for job in past.jobs:
        if (ran := observation.ran(job)) is not None:
            for name in _classes(job):
                observation.run_times.setdefault(name, []).append(ran)
    waits: dict[tuple[str, str, str], list[Waited]] = {}
    for wait in past.waits:
        for flavor in wait.flavors or ("",):
            for region in ("", wait.region) if wait.region else ("",):
                waits.setdefault((region, wait.check, flavor), []).append(wait)
    clusters = {name: fleet.cluster(name).place for name in fleet.cluster_names}
    places = [*clusters.items(), ("", "")]
    observation.file = WorkloadFile(
        waits=tuple(
            WaitEntry(cluster=cluster or None, flavor=flavor or None, check=check, seconds=observed(seconds))
            for cluster, of_cluster in places
            for (region, check, flavor), of_class in waits.items()
            if region == of_cluster and (seconds := ready_after(of_class))
        ),
        reclaims=tuple(_reclaims(past, places)),
    )
    return observation


def ready_after(waits: Iterable[Waited]) -> list[float]:
    """What the waits would be if none had been cut off: each that was stands for the longer ones.

    Those that were Ready alone would be too short, as of several workers that are asked the quickest is the one that is
    seen. It is the estimate of Kaplan and Meier, as weights that are given to the right (Efron 1967); where the longest
    wait was cut off, that counts as its end.
    """
    ordered_waits = sorted(waits, key=lambda wait: (wait.seconds, not wait.is_ready))
    seconds, share, share_taken = list[float](), 1.0, 0.0
    for number, wait in enumerate(ordered_waits):
        wait_count = len(ordered_waits) - number
        if wait.is_ready or wait_count == 1:
            share_taken += share / wait_count
            share -= share / wait_count
            seconds += [wait.seconds] * (round(share_taken * len(ordered_waits)) - len(seconds))
    return seconds if any(wait.is_ready for wait in ordered_waits) else []


def _reclaims(past: Past, places: Iterable[tuple[str, str]]) -> Iterator[ReclaimEntry]:
    hours: dict[tuple[str, str], float] = {}
    lost: Counter[tuple[str, str]] = Counter()
    back: dict[tuple[str, str], list[float]] = {}
    for run in (run for job in past.jobs for run in job.runs):
        for key in {(region, flavor) for region in ("", run.region) for flavor in run.flavors}:
            hours[key] = hours.get(key, 0.0) + ((past.end if run.ended is None else run.ended) - run.admitted) / _HOUR
            lost[key] += len(run.interruptions)
            back.setdefault(key, []).extend(run.recoveries)
    for cluster, region in places:
        for (where, flavor), count in lost.items():
            if where == region and count and hours[where, flavor]:
                rate = min(3600.0, count / hours[where, flavor])
                seconds = observed(back[where, flavor] or [0.0])
                yield ReclaimEntry(cluster=cluster or None, flavor=flavor, per_hour=rate, back=seconds)


class Growth(NamedTuple):
    """How many times as many jobs come: of all teams, and of some."""

    factor: float = 1.0
    teams: Mapping[str, float] = {}

    def of(self, team: str) -> float:
        """The factor of a team."""
        return self.teams.get(team, self.factor)


@dataclass(frozen=True, slots=True)
class Replayed:
    """A job of a simulation: what it was, and what became of it. `is_more`: it was added by growth."""

    job: PastJob
    record: Record
    is_more: bool


@dataclass
class Replay:
    """A history made ready for one fleet. `left_out` counts what cannot be replayed, by why; `scaled` jobs that ask for
    whole machines, and count here as what nodes allocate."""

    fleet: FleetSpec
    past: Past
    window: Window
    queues: Mapping[str, str] = field(default_factory=dict)
    """Another LocalQueue, as `namespace/name`, for those of the history that are called otherwise."""
    drawn: Observed = field(default_factory=Observed)
    left_out: Counter[str] = field(default_factory=Counter)
    scaled: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        """Read the jobs once for all simulations. Raises SimulationError if the fleet's objects cannot be."""
        self.drawn = observe(self.past, self.fleet)
        self.targets = cluster_queue_of(self.fleet)
        self._jobs: list[tuple[PastJob, Workload]] = []
        self._sizes: dict[object, str] = {}
        fleet_objects = parse_fleet_objects(self.fleet, self.fleet.home, [], self._read)
        self._objects: dict[str, Objects] = {name: value.objects for name, value in fleet_objects.items()}

    def queue_of(self, job: PastJob) -> str:
        """The LocalQueue that it goes to now, as `namespace/name`."""
        queue = f"{job.arrival.namespace}/{job.arrival.queue}"
        return self.queues.get(queue, self.queues.get(job.arrival.queue, queue))

    def _read(self, context: Context, _: Any) -> Iterator[Workload]:
        for number, job in enumerate(self.past.jobs):
            if job.arrival.time >= self.window.end or (job.ended is not None and job.ended <= self.window.begin):
                continue
            queue = self.queue_of(job)
            if queue not in self.targets:
                self.left_out[f"of LocalQueue {queue}, which is not in the fleet (--queue says which it is)"] += 1
                continue
            if not job.arrival.pod_sets:
                self.left_out["of which the pods are not recorded"] += 1
                continue
            try:
                workload = parse_workload(PrintedWorkload.of(_manifest(job, queue, number)), context)
            except NotModelledError as refused:
                self.left_out[f"with {refused.feature}, which is not modelled"] += 1
                continue
            if what := self._too_large(self.targets[queue], workload.pod_sets):
                fitting = [as_allocatable(self.fleet, self.targets[queue], pod_set) for pod_set in workload.pod_sets]
                if not all(fitting):
                    self.left_out[f"of which a pod asks for {what}, more than any node has"] += 1
                    continue
                workload = replace(workload, pod_sets=tuple(item for item in fitting if item is not None))
                self.scaled[f"of whole nodes, of which a pod asks for {what}"] += 1
            self._jobs.append((job, workload))
            yield workload

    def _too_large(self, queue: str, pod_sets: tuple[PodSet, ...]) -> str:
        """What no node has for them; the same is asked of many jobs."""
        key = queue, tuple((pod_set.node_requests, pod_set.node_selector) for pod_set in pod_sets)
        if key not in self._sizes:
            self._sizes[key] = next(filter(None, (too_large(self.fleet, queue, pod_set) for pod_set in pod_sets)), "")
        return self._sizes[key]

    def run(
        self,
        seed: int,
        growth: Growth = Growth(),  # noqa: B008 - never changes
        begun: Callable[[list[Replayed]], Watch | None] = lambda _: None,
        *,
        redrawn: bool = False,
    ) -> list[Replayed]:
        """One simulation of the window. `begun` is given its jobs before anything happens to them; what it returns may
        end the simulation early. `redrawn`: each day is as one of the same weekday was, which is drawn."""
        run, jobs = self._prepared(seed, growth, redrawn=redrawn)
        run.drive(0.0, self.window.end - self.window.begin + LATER, begun(jobs))
        run.settle()
        return jobs

    def result(self, seed: int, growth: Growth, prices: Prices) -> Result:
        """The same for a report, up to the end of the window; jobs come as they came."""
        run, _ = self._prepared(seed, growth, redrawn=False)
        until = self.window.end - self.window.begin
        return result_of(run, self.fleet, run.drive(0.0, until), prices, until=until, seed=seed)

    def _prepared(self, seed: int, growth: Growth, *, redrawn: bool) -> tuple[FleetRun, list[Replayed]]:
        """A simulation in which nothing has happened yet, and its jobs."""
        begin = self.window.begin
        file = self.drawn.file.model_copy(update={"begin": datetime.fromtimestamp(begin, UTC)})
        run = FleetRun(self.fleet, file, self.fleet.home, self._objects, Delays(), seed)
        jobs_prepared = []
        arrivals = self._arrivals(seed, growth, redrawn=redrawn)
        for number, (at, _, job, workload, is_more) in enumerate(sorted(arrivals, key=_order)):
            workload = replace(workload, created=at - begin + number * _APART)
            if is_more or redrawn:
                workload = replace(workload, name=f"{workload.name}-{number}", uid=f"{workload.uid}-{number}")
            self._expect(run, job, workload, seed, is_more=is_more)
            jobs_prepared.append((job, workload.key, is_more))
        return run, [Replayed(job, run.jobs[key].record, is_more) for job, key, is_more in jobs_prepared]

    def _arrivals(
        self, seed: int, growth: Growth, *, redrawn: bool
    ) -> Iterator[tuple[float, float, PastJob, Workload, bool]]:
        """Each job with when it comes; what was there before, first of all in the order in which it had got there."""
        came = [(job.arrival.time, job, workload) for job, workload in self._jobs]
        for at, job, workload in _redrawn(came, self.window, seed) if redrawn else came:
            if at < self.window.begin:
                yield self.window.begin, (job.reserved or math.inf), job, workload, False
                continue
            team = self.fleet.team_of.get(self.queue_of(job).partition("/")[0], job.arrival.team)
            factor = growth.of(team)
            if factor == 1:
                yield at, math.inf, job, workload, False
                continue
            source = random.Random(f"{seed}:{workload.key}:growth")  # noqa: S311 - a simulation, not a secret
            times = int(factor + source.random())
            if times:
                yield at, math.inf, job, workload, False
            for _ in range(1, times):
                later = at + _SPREAD * (2 * source.random() - 1)
                yield min(max(later, self.window.begin), self.window.end), math.inf, job, workload, True

    def _expect(self, run: FleetRun, job: PastJob, workload: Workload, seed: int, *, is_more: bool) -> None:
        begin = self.window.begin
        last = job.runs[-1] if job.runs else None
        running = None if is_more else _running(job, begin)
        seconds = None if is_more else self.drawn.ran(job)
        if seconds is None:
            ran = self.past.end - last.began if last is not None and last.ended is None and not is_more else 0.0
            more = self.drawn.run_time(job, random.Random(f"{seed}:{workload.key}:run"), ran)  # noqa: S311
            seconds = None if more is None else ran + more
        if running is not None and seconds is not None:
            seconds = max(0.0, seconds - (begin - running.began)) if running is last else running.until(begin)
        labels = job.arrival.labels or {}
        run.expect(
            workload,
            None if seconds is None else seconds + self.drawn.between,
            labels=labels,
            run_limit=whole_number(labels.get(RUN_DURATION_ANNOTATION)),
            templates=_templates(job.arrival.pod_sets),
            runs_on=running.cluster if running is not None and running.cluster in self.fleet.job_clusters else "",
        )
        if job.is_deleted and not job.runs and job.ended is not None:
            patience = job.ended - max(job.arrival.time, begin)
            run.agenda.plan(workload.created + patience, partial(run.cancel, workload.key))


def _order(arrival: tuple[float, float, PastJob, Workload, bool]) -> tuple[float, float, float]:
    at, reservation_time, job, _, _ = arrival
    return at, reservation_time, job.arrival.time


def _redrawn(
    came: Iterable[tuple[float, PastJob, Workload]], window: Window, seed: int
) -> Iterator[tuple[float, PastJob, Workload]]:
    """Other weeks that are like those of the window: of each weekday, days are drawn with replacement."""
    whole, rest_seconds = divmod(window.end - window.begin, _DAY)
    days: dict[int, list[tuple[float, PastJob, Workload]]] = {}
    for at, job, workload in came:
        if at < window.begin:
            yield at, job, workload
        else:
            days.setdefault(int((at - window.begin) // _DAY), []).append((at, job, workload))
    source = random.Random(f"{seed}:days")  # noqa: S311 - a simulation, not a secret
    for day in range(math.ceil(whole + rest_seconds / _DAY)):
        other = source.choice([*range(day % 7, int(whole), 7)] or [day])
        for at, job, workload in days.get(other, ()):
            if (later := at + (day - other) * _DAY) < window.end:
                yield later, job, workload


def _running(job: PastJob, at: float) -> Ran | None:
    """The run that a job was in then."""
    return next((run for run in job.runs if run.admitted < at and (run.ended is None or run.ended > at)), None)


def _manifest(job: PastJob, queue: str, number: int) -> dict[str, Any]:
    """The Workload as it was submitted, under a name of its own."""
    arrival = job.arrival
    namespace, _, name = queue.partition("/")
    labels = dict(arrival.labels or {})
    return {
        "kind": "Workload",
        "metadata": {
            "namespace": namespace,
            "name": f"{arrival.workload}.{number}",
            "uid": arrival.uid,
            "labels": labels,
            "annotations": labels,
        },
        "spec": {"queueName": name, "priority": arrival.priority or 0, "podSets": _pod_sets(arrival.pod_sets)},
    }


@cache
def _pod_sets(text: str) -> list[dict[str, Any]]:
    pod_sets: list[dict[str, Any]] = json.loads(text)
    return pod_sets


@cache
def _templates(text: str) -> Sequence[PodSetTemplate]:
    pod_sets = _pod_sets(text)
    templates = [
        PodSetTemplate(pod_set.get("name", "main"), pod_set.get("count", 1), pod_set["template"])
        for pod_set in pod_sets
    ]
    return templates if len(templates) > 1 else ()
