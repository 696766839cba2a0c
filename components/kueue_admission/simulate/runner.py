"""Clusters with workloads that arrive, run as long as they are said to, and finish.

`ClusterRun` is the run of a single cluster, where no controller answers admission checks: a workload with a check that
is not Ready keeps its reservation and waits. The run of a fleet extends it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Generic, TypeVar

from mypy_extensions import mypyc_attr

from kueue_admission.decide.decisions import Admitted, Decision, Evicted, Parked, Replaced, Requeued
from kueue_admission.decide.engine import Engine
from kueue_admission.decide.events import Event, Finished, PodsReadyChanged, PodsStopped, Submitted
from kueue_admission.decide.model import Objects, Workload
from kueue_admission.decide.reasons import LASTING
from kueue_admission.simulate.agenda import Action, Agenda
from kueue_admission.simulate.clock import End, Watch, drive
from kueue_admission.simulate.cluster import SimulatedCluster
from kueue_admission.simulate.delays import Delays, DrawnDelays, Workers
from kueue_admission.simulate.prepared import Prepared
from kueue_admission.simulate.records import Phase, Record, pass_not_known_on
from kueue_admission.simulate.result import Result


@dataclass(frozen=True, slots=True)
class Arrival:
    """A workload, the name of its job, when it is there, and how long it runs (None: indefinitely).

    `finished_at` is set for one that is over before the simulation begins, `resumed` for one that Kueue knows by then.
    """

    workload: Workload
    name: str
    at: float
    run_seconds: float | None = None
    label: str = ""
    finished_at: float | None = None
    resumed: bool = False


def prepare_cluster(
    objects: Objects,
    arrivals: Iterable[Arrival],
    delays: Delays,
    *,
    start: float = 0.0,
    until: float | None = None,
    seed: int = 0,
    engines: dict[str, Engine] | None = None,
    not_known: Mapping[str, str] | None = None,
) -> Prepared:
    """What will happen to each workload, up to `until` seconds after `start` on the clock of the arrivals.

    Without `until` it ends when nothing more happens. `engines`, if given, receives the engine as it stands at the end,
    under the empty name. `not_known` says of reasons that hold here why it is not known whether they do.
    """
    run = ClusterRun[Job]({"": objects}, "", delays, seed, not_known or {})
    for arrival in arrivals:
        run.submit(Job(arrival.workload, run.record(arrival)), arrival)

    def go(watch: Watch | None) -> Result:
        end = run.drive(start, None if until is None else start + until, watch)
        records = run.settle()
        if engines is not None:
            engines[""] = run.clusters[""].engine
        return Result.of(records, end, run.clusters.values(), origin=start, until=until, seed=seed)

    return Prepared(run.queues, go)


@mypyc_attr(allow_interpreted_subclasses=True)
@dataclass(slots=True)
class Job:
    """A workload and its story. `attempts` counts, per cluster, what must be forgotten when it is evicted, or a copy of
    it is gone; `run` counts starts."""

    workload: Workload
    record: Record
    attempts: dict[str, int] = field(default_factory=dict, kw_only=True)
    run: int = field(default=0, kw_only=True)

    def forget(self, cluster: str) -> None:
        """What was planned for it on the cluster is off."""
        self.attempts[cluster] = self.attempts.get(cluster, 0) + 1

    def attempt(self, cluster: str) -> int:
        """The number of the present try on the cluster."""
        return self.attempts.get(cluster, 0)


J = TypeVar("J", bound=Job)


@mypyc_attr(allow_interpreted_subclasses=True)
class ClusterRun(Generic[J]):
    """Clusters on the clock of `agenda`; jobs are submitted to `home`.

    `jobs` has every job that was expected, by its workload's key.
    """

    def __init__(
        self, objects: Mapping[str, Objects], home: str, delays: Delays, seed: int, not_known: Mapping[str, str]
    ) -> None:
        self.agenda = Agenda()
        # The manager is the first to act at any moment, wherever it stands in the file.
        names = sorted(objects, key=lambda name: name != home)
        self.clusters = {name: SimulatedCluster(name, objects[name], delays, self._listen, seed) for name in names}
        self.home = home
        self.jobs: dict[str, J] = {}
        self._seed = seed
        self._delays = DrawnDelays(delays, f"{seed}:runs")
        self._workers = {name: Workers(delays.workers) for name in objects}
        self._not_known = not_known
        self._targets = {queue.key: queue.cluster_queue for queue in objects[home].local_queues}

    @property
    def queues(self) -> frozenset[str]:
        """The ClusterQueues to which jobs come."""
        keys = (job.workload.local_queue for job in self.jobs.values())
        return frozenset(self._targets[key] for key in keys if key in self._targets)

    def record(self, arrival: Arrival) -> Record:
        """The story of a workload, of which nothing has happened yet."""
        workload = arrival.workload
        names = workload.key, workload.namespace, arrival.name
        record = Record(*names, workload.created, arrival.run_seconds, arrival.label, requests=workload.requests)
        record.priority = workload.priority
        record.cluster_queue = self._targets.get(workload.local_queue, "")
        return record

    def submit(self, job: J, arrival: Arrival) -> None:
        """Let a workload arrive; a variant is not a job, what happens to it happens to the workload of its job."""
        if job.workload.parent:
            event = partial(Submitted, workload=job.workload, resumed=arrival.resumed)
            self.agenda.plan(arrival.at, lambda now: self.handle(self.home, event(now)))
            return
        self.jobs[job.record.key] = job
        if arrival.finished_at is not None:
            job.record.finish(arrival.finished_at)
            return
        self.agenda.expect(arrival.at, arrival.run_seconds)
        self.agenda.plan(arrival.at, partial(self._arrive, job, resumed=arrival.resumed))

    def drive(self, start: float, until: float | None, watch: Watch | None = None) -> End:
        """Let time pass until `until`, or until nothing more happens."""
        return drive(self.agenda, list(self.clusters.values()), start, until, watch)

    def settle(self) -> list[Record]:
        """The records, each with the reason that no cycle of its own gave, and why that may not hold."""
        for job in self.jobs.values():
            self._settle(job)
        records = {key: job.record for key, job in self.jobs.items()}
        pass_not_known_on(records, [cluster.engine for cluster in self.clusters.values()])
        return list(records.values())

    def _settle(self, job: J) -> None:
        record = job.record
        record.settle(self.clusters[self.home].engine)
        if record.admitted_at is None and record.finished_at is None:
            record.not_known = self._not_known.get(record.reason, "")

    # What is planned

    def handle(self, cluster: str, event: Event) -> None:
        """Give a cluster an event now."""
        self.clusters[cluster].handle(event)

    def _plan_for(self, at: float, job: J, cluster: str, action: Action) -> None:
        """Plan what only happens if the try, or the copy, on the cluster is still the same."""
        self.agenda.plan(at, while_same(job, cluster, action))

    def _plan_for_run(self, at: float, job: J, where: str, action: Action) -> None:
        """Plan what only happens if the pods are still on the same nodes."""
        run = job.run

        def act(now: float) -> None:
            if job.run == run and job.record.is_running:
                action(now)

        self._plan_for(at, job, where, act)

    # What is heard

    def _listen(self, cluster: SimulatedCluster, decision: Decision, at: float) -> None:
        if decision.key in self.jobs:
            self._hear(cluster, decision, at)
        elif isinstance(decision, Parked | Requeued):
            # What else matters about a variant is decided about the workload of its job too.
            job = self.jobs.get(cluster.engine.workloads[decision.key].workload.parent)
            if job is not None and job.record.reserved_at is None and decision.reason not in LASTING:
                job.record.take(decision, at)

    def _hear(self, cluster: SimulatedCluster, decision: Decision, at: float) -> None:
        job = self.jobs[decision.key]
        if job.record.finished_at is not None:
            return
        job.record.take(decision, at)
        if isinstance(decision, Admitted):
            self._begin(job, cluster.name, at, at)
        elif isinstance(decision, Evicted):
            job.forget(cluster.name)
            self._stop(job, cluster.name, at)
        elif isinstance(decision, Replaced):
            self._pass_on(job.record, self.jobs[decision.successor].record, at)

    @staticmethod
    def _pass_on(before: Record, after: Record, at: float) -> None:
        """The job of a slice goes on in the one that takes its place."""
        start_time = before.runs[-1].started_at if before.runs else None
        if after.run_seconds is not None and start_time is not None:
            after.run_seconds = max(0.0, after.run_seconds - (at - start_time))

    def _stop(self, job: J, cluster: str, at: float) -> None:
        """Its pods end some time after it is evicted."""
        key, stop_time = job.record.key, at + self._delays.stop(at)
        self._plan_for(stop_time, job, cluster, lambda now: self.handle(cluster, PodsStopped(now, key)))

    # Runs

    def _arrive(self, job: J, now: float, *, resumed: bool) -> None:
        workload, record, status = job.workload, job.record, job.workload.status
        if status.reserved_at is not None and status.admission is not None:
            record.cluster_queue = status.admission.cluster_queue
            record.admission, record.reserved_at = status.admission, status.reserved_at
            record.reason = "QuotaReserved"
            record.enter(Phase.CHECKS, status.reserved_at)
            if status.admitted_at is not None:
                record.admitted_at = record.first_admitted_at = status.admitted_at
                record.reason = "Admitted"
                # Pods are ready as soon as their workload is admitted here, and this one's were then.
                workload = replace(workload, status=replace(status, pods_ready=True))
        self.handle(self.home, Submitted(now, workload, resumed))
        if record.admitted_at is not None:
            self._begin(job, self.home, record.admitted_at, now)
        if status.evicted_at is not None and status.reserved_at is not None:
            self._stop(job, self.home, now)

    def _begin(self, job: J, where: str, admitted_at: float, now: float) -> None:
        """It is admitted, before `now` if it was running when the simulation began."""
        job.record.begin(admitted_at)
        if len(job.record.runs) == 1:
            self.agenda.progress(now)
        self._plan_for(now, job, where, partial(self._seek_nodes, job, where))

    def _seek_nodes(self, job: J, where: str, now: float) -> None:
        """Start the pods; there are nodes for all as soon as it is admitted."""
        self._start(job, where, job.record.runs[-1].admitted_at, now)

    def _start(self, job: J, where: str, began: float, now: float) -> None:
        record = job.record
        record.message = ""
        record.start(began)
        job.run += 1
        self._tell_pods(job, where, now, ready=True)
        self._plan_end(job, where, None if record.run_seconds is None else max(now, began + record.run_seconds), now)

    def _plan_end(self, job: J, where: str, ends: float | None, _now: float) -> None:
        """Plan how the run ends."""
        if ends is not None:
            self._plan_for_run(ends, job, where, partial(self._finish, job, where))

    def _tell_pods(self, job: J, where: str, now: float, *, ready: bool) -> None:
        for cluster in dict.fromkeys((where, self.home)):
            self.handle(cluster, PodsReadyChanged(now, job.record.key, ready))

    def _finish(self, job: J, where: str, now: float, end: str = "Succeeded") -> None:
        job.record.finish(now, end)
        self.agenda.progress(now)
        for cluster in dict.fromkeys((where, self.home)):
            free_at = self._workers[cluster].done(now, self._delays.release)
            self.agenda.plan(free_at, partial(self._free, job.record.key, cluster))

    def _free(self, key: str, cluster: str, now: float) -> None:
        self.handle(cluster, Finished(now, key))


def while_same(job: Job, cluster: str, action: Action) -> Action:
    """The action, unless by then the job has finished or is in another try on the cluster."""
    attempt = job.attempt(cluster)

    def act(now: float) -> None:
        if job.attempt(cluster) == attempt and job.record.finished_at is None:
            action(now)

    return act
