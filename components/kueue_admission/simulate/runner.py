"""One cluster with workloads that arrive, run as long as they are said to, and finish.

No controller answers admission checks: a workload with a check that is not Ready keeps its reservation and waits.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial

from kueue_admission.decide.decisions import Admitted, Decision, Evicted
from kueue_admission.decide.engine import Engine
from kueue_admission.decide.events import Finished, PodsReadyChanged, PodsStopped, Submitted
from kueue_admission.decide.model import Objects, Workload
from kueue_admission.simulate.agenda import Agenda
from kueue_admission.simulate.clock import Watch, drive
from kueue_admission.simulate.cluster import SimulatedCluster
from kueue_admission.simulate.delays import Delays, DrawnDelays
from kueue_admission.simulate.prepared import Prepared
from kueue_admission.simulate.records import Phase, Record, pass_not_known_on
from kueue_admission.simulate.result import Result
from kueue_admission.simulate.work_queue import Workers


@dataclass(frozen=True, slots=True)
class Arrival:
    """A workload, the name of its job, when it is there, and how long it runs (None: without end).

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
    runner = _Runner(objects, delays, seed)
    records = [runner.expect(arrival) for arrival in arrivals]

    def go(watch: Watch | None) -> Result:
        end = drive(runner.agenda, [runner.cluster], start, None if until is None else start + until, watch)
        runner.settle(not_known or {})
        if engines is not None:
            engines[""] = runner.cluster.engine
        return Result.of(records, end, [runner.cluster], origin=start, until=until, seed=seed)

    return Prepared(frozenset(record.cluster_queue for record in records if record.cluster_queue), go)


class _Runner:
    def __init__(self, objects: Objects, delays: Delays, seed: int) -> None:
        self.agenda = Agenda()
        self.cluster = SimulatedCluster("", objects, delays, self._hear, seed)
        self._delays = DrawnDelays(delays, f"{seed}:runs")
        self._workers = Workers(delays.workers)
        self._records: dict[str, Record] = {}
        self._targets = {queue.key: queue.cluster_queue for queue in objects.local_queues}

    def expect(self, arrival: Arrival) -> Record:
        workload = arrival.workload
        record = Record(
            workload.key,
            workload.namespace,
            arrival.name,
            workload.created,
            arrival.run_seconds,
            arrival.label,
            cluster_queue=self._targets.get(workload.local_queue, ""),
            requests=workload.requests,
        )
        if arrival.finished_at is not None:
            record.finish(arrival.finished_at)
            return record
        self._records[record.key] = record
        self.agenda.expect(arrival.at, arrival.run_seconds)
        self.agenda.plan(arrival.at, partial(self._arrive, workload, resumed=arrival.resumed))
        return record

    def _arrive(self, workload: Workload, now: float, *, resumed: bool) -> None:
        record, status = self._records[workload.key], workload.status
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
        self.cluster.handle(Submitted(now, workload, resumed))
        if record.admitted_at is not None:
            self._start(record, record.admitted_at, now)
        if status.evicted_at is not None and status.reserved_at is not None:
            self.agenda.plan(now + self._delays.stop(now), partial(self._stop, record.key, record.attempt))

    def _hear(self, cluster: SimulatedCluster, decision: Decision, at: float) -> None:
        record = self._records[decision.key]
        if record.finished_at is not None:
            return
        record.take(decision, at)
        if isinstance(decision, Admitted):
            self._start(record, at, at)
        elif isinstance(decision, Evicted):
            self.agenda.plan(at + self._delays.stop(at), partial(self._stop, record.key, record.attempt))

    def _start(self, record: Record, admitted_at: float, now: float) -> None:
        record.begin(admitted_at)
        if len(record.runs) == 1:
            self.agenda.progress(now)
        record.start(admitted_at)
        self.agenda.plan(now, partial(self._become_ready, record.key, record.attempt))
        if record.run_seconds is not None:
            end = max(admitted_at + record.run_seconds, now)
            self.agenda.plan(end, partial(self._finish, record.key, record.attempt))

    def _become_ready(self, key: str, attempt: int, now: float) -> None:
        if self._is_current(key, attempt):
            self.cluster.handle(PodsReadyChanged(now, key, True))

    def _finish(self, key: str, attempt: int, now: float) -> None:
        if self._is_current(key, attempt):
            self._records[key].finish(now)
            self.agenda.progress(now)
            free_at = self._workers.done(now, self._delays.release)
            if free_at > now:
                self.agenda.plan(free_at, partial(self._free, key))
            else:
                self._free(key, now)

    def _free(self, key: str, now: float) -> None:
        self.cluster.handle(Finished(now, key))

    def _stop(self, key: str, attempt: int, now: float) -> None:
        if self._is_current(key, attempt):
            self.cluster.handle(PodsStopped(now, key))

    def _is_current(self, key: str, attempt: int) -> bool:
        record = self._records[key]
        return record.finished_at is None and record.attempt == attempt

    def settle(self, not_known: Mapping[str, str]) -> None:
        """Give workloads the reason that no cycle of their own gave, and say where it may not hold."""
        for record in self._records.values():
            record.settle(self.cluster.engine)
            if record.admitted_at is None and record.finished_at is None:
                record.not_known = not_known.get(record.reason, "")
        pass_not_known_on(self._records, [self.cluster.engine])
