"""The clusters of a fleet together: copies of jobs, who wins, what runs, what goes wrong.

MultiKueue: once only its check is left, the manager offers the workload to workers, as `offers` says. Each gets a copy;
the first to admit it wins, and the other copies are deleted. Losing the copy that runs sends the workload back to the
manager. A worker that the manager has not reached for `workerLostTimeout` loses its jobs, at once or when it returns,
as the dispatcher says; its copies are deleted then. Admission checks are answered by `checks`.
Source: kueue@v0.19.2 pkg/controller/admissionchecks/multikueue/workload.go.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from kueue_admission.decide.decisions import Admitted, ChecksPending, Decision, Evicted, Parked, QuotaReserved, Requeued
from kueue_admission.decide.events import (
    CheckStateChanged,
    Deleted,
    Event,
    Finished,
    ObjectsChanged,
    PodsReadyChanged,
    Submitted,
)
from kueue_admission.decide.model import CheckState, Objects, Workload
from kueue_admission.decide.reasons import EvictionReason
from kueue_admission.kernel.names import MULTIKUEUE_CONTROLLER
from kueue_admission.releases import KEEPS_JOBS_OF_LOST
from kueue_admission.simulate.agenda import Action
from kueue_admission.simulate.cluster import SimulatedCluster
from kueue_admission.simulate.delays import Delays
from kueue_admission.simulate.records import State
from kueue_admission.simulate.result import Snapshot
from kueue_admission.simulate.runner import Arrival, ClusterRun, while_same
from kueue_fleet.fleet_file import FleetSpec
from kueue_fleet.fleet_simulation.admission_checks import Checks
from kueue_fleet.fleet_simulation.answers import Answers
from kueue_fleet.fleet_simulation.fallback import Fallback
from kueue_fleet.fleet_simulation.node_limit import Nodes
from kueue_fleet.fleet_simulation.offers import Dispatcher, FleetDispatcher, KueueDispatcher, Offer
from kueue_fleet.fleet_simulation.quota_times import QuotaTimes
from kueue_fleet.jobs.fleet_job import FleetJob
from kueue_fleet.jobs.not_known import start_not_known
from kueue_fleet.jobs.queued_job import PodSetTemplate
from kueue_fleet.jobs.workload_file import WorkloadFile
from kueue_fleet.settings.dispatch import DISPATCHER_NAME

WORKER_LOST_SECONDS: Final = 900.0
"""Kueue's default of multiKueue.workerLostTimeout."""


def worker_lost_seconds(fleet: FleetSpec) -> float:
    """After how many seconds Kueue moves the jobs of a worker that does not answer."""
    timeout = fleet.multi_kueue.worker_lost_timeout if fleet.multi_kueue is not None else None
    return WORKER_LOST_SECONDS if timeout is None else timeout.seconds


class FleetRun(ClusterRun[FleetJob]):
    """A fleet on one clock."""

    def __init__(
        self, fleet: FleetSpec, file: WorkloadFile, home: str, objects: Mapping[str, Objects], delays: Delays, seed: int
    ) -> None:
        times = QuotaTimes(fleet, objects, file.begin)
        objects = times.at(0.0)
        super().__init__(objects, home, delays, seed, {})
        self.quota_times = [(0.0, objects)]
        """The objects of each cluster, from each second on at which their quotas changed."""
        self.begin = file.begin
        self.lost: set[str] = set()
        self._fleet, self._file = fleet, file
        self._dispatch_checks = {
            check.name for check in objects[home].checks if check.controller == MULTIKUEUE_CONTROLLER
        }
        own = fleet.multi_kueue is not None and fleet.multi_kueue.dispatcher_name == DISPATCHER_NAME
        self.dispatcher: Dispatcher = FleetDispatcher(fleet, self.clusters, objects) if own else KueueDispatcher(fleet)
        self._nodes = {name: Nodes(fleet, name, file) for name in objects}
        self._checks = Checks(fleet, file, seed, self.dispatcher)
        self._answers = Answers(self._checks, self.clusters, self._nodes, self.agenda, self._plan_for, self._take_from)
        self._fallback = Fallback(fleet, home, self.clusters[home].engine, self._plan_for, self.handle)
        self._lost_timeout = worker_lost_seconds(fleet)
        self._keeps_lost = fleet.kueue_on(home).release.behaviours[KEEPS_JOBS_OF_LOST] != "no"
        self._orphans: dict[str, dict[str, None]] = {name: {} for name in objects}
        self._unheard: dict[str, list[Action]] = {name: [] for name in objects}
        self._missed: dict[str, list[Action]] = {name: [] for name in objects}
        for outage in file.outages:
            self.agenda.plan(outage.at, partial(self.lose, outage.cluster))
            self.agenda.plan(outage.at + outage.seconds, partial(self.reach, outage.cluster))
            self.agenda.progress(outage.at + outage.seconds)
        self.snapshots: list[Snapshot] = []
        for at in file.snapshots:
            self.agenda.plan(at, self._count)
            self.agenda.progress(at)
        for name, nodes in self._nodes.items():
            nodes.plan(self.agenda, partial(self._end_pool, name))
        times.plan(self.agenda, self._change_quotas, self._goes_on)

    def _change_quotas(self, objects: Mapping[str, Objects], now: float) -> None:
        self.quota_times.append((now, objects))
        self.change(objects, now)

    def expect(
        self,
        workload: Workload,
        run_seconds: float | None,
        *,
        name: str = "",
        labels: Mapping[str, str] | None = None,
        run_limit: int | None = None,
        templates: Sequence[PodSetTemplate] = (),
        runs_on: str = "",
        may_fail: int | None = None,
    ) -> None:
        """Let a workload arrive.

        Args:
            name: of its job, if it differs from that of the workload.
            labels: of its job.
            run_limit: seconds that the job tells DWS.
            templates: the pods of a job of several pod sets.
            runs_on: the cluster that runs it already.
            may_fail: the number of its pods that may fail; None: any.
        """
        arrival = Arrival(workload, name or workload.name, workload.created, run_seconds)
        record = self.record(arrival)
        self.submit(FleetJob(workload, record, labels or {}, run_limit, templates, runs_on, may_fail), arrival)

    def _settle(self, job: FleetJob) -> None:
        """What waits for workers says why each of them does not admit it."""
        record = job.record
        if record.state is State.QUOTA_RESERVED and job.offered:
            record.message = "; ".join(f"{name}: {job.why.get(name, 'offered')}" for name in job.offered)
        else:
            record.settle(self.clusters[self.home].engine)
        record.not_known = str(start_not_known(self._fleet, job) or "")

    # What is planned

    def _goes_on(self) -> bool:
        return any(job.record.finished_at is None for job in self.jobs.values())

    def _count(self, now: float) -> None:
        queues: dict[str, dict[str, int]] = {}
        nodes = {(name, pool): number for name, of in self._nodes.items() for pool, number in of.standing.items()}
        for job in self.jobs.values():
            record = job.record
            count = queues.setdefault(record.cluster_queue, {"pending": 0, "admitted": 0})
            count["pending"] += record.arrived_at <= now and record.state is State.PENDING
            count["admitted"] += record.state is State.ADMITTED
            if record.state is State.ADMITTED and record.runs:
                where = record.runs[-1].cluster or self.home
                for pods in record.runs[-1].admission.pod_sets:
                    for flavor in {flavor for _, flavor in pods.flavors if not self._nodes[where].has(flavor)}:
                        nodes[where, flavor] = nodes.get((where, flavor), 0) + pods.count
        several = len({where for where, _ in nodes}) > 1
        node_numbers = {
            f"{where}/{name}" if several else name: number for (where, name), number in sorted(nodes.items())
        }
        self.snapshots.append(Snapshot(now, dict(sorted(queues.items())), node_numbers))

    def handle(self, cluster: str, event: Event) -> None:
        """Give a cluster an event now."""
        super().handle(cluster, event)
        if isinstance(event, (Finished, Deleted, Submitted)):
            self.dispatcher.touch(cluster, event.workload.key if isinstance(event, Submitted) else event.key)

    def _plan_heard(self, at: float, job: FleetJob, worker: str, action: Action) -> None:
        """The same for what the manager learns from a worker: only when it can reach it."""
        heard = while_same(job, worker, action)
        self._plan_for(at, job, worker, partial(self._tell, worker, heard))

    def _tell(self, worker: str, heard: Action, now: float) -> None:
        if worker in self.lost:
            self._unheard[worker].append(heard)
        else:
            heard(now)

    # What is heard

    def _hear(self, cluster: SimulatedCluster, decision: Decision, at: float) -> None:
        self.dispatcher.touch(cluster.name, decision.key)
        job = self.jobs[decision.key]
        if job.record.finished_at is not None:
            return
        if cluster.name == self.home:
            self._hear_home(job, decision, at)
        elif cluster.name in job.offered:
            self._hear_worker(job, cluster.name, decision, at)

    def _hear_home(self, job: FleetJob, decision: Decision, at: float) -> None:
        record, home = job.record, self.home
        if isinstance(decision, Evicted):
            job.runs_on = ""
            job.forget(home)
            if not (job.lost_copy and decision.reason is EvictionReason.ADMISSION_CHECK):
                record.take(decision, at)
            job.lost_copy = job.gave_up = False
            job.offered_since = None
            job.given_up.clear()
            self._plan_for(at, job, home, partial(self._withdraw, job, None))
            self._stop(job, home, at)
            return
        record.take(decision, at)
        if isinstance(decision, QuotaReserved):
            job.admissions[home] = decision.admission
            self._fallback.wait(job, home, at)
        elif isinstance(decision, ChecksPending):
            rest = [name for name in decision.checks if name not in self._dispatch_checks]
            if rest:
                self._answers.answer(job, home, rest, at)
            elif decision.checks and not job.offered and job.winner is None:
                self._plan_for(at, job, home, partial(self._offer, job))
        elif isinstance(decision, Admitted):
            self._admit(job, at)

    def _hear_worker(self, job: FleetJob, worker: str, decision: Decision, at: float) -> None:
        match decision:
            case QuotaReserved():
                job.admissions[worker] = decision.admission
                job.why[worker] = "has quota"
                self._fallback.wait(job, worker, at)
            case ChecksPending():
                job.why[worker] = f"waits for {', '.join(decision.checks)}"
                self._answers.answer(job, worker, decision.checks, at)
            case Admitted():
                self._plan_heard(at, job, worker, partial(self._win, job, worker))
            case Evicted():
                self._lose_copy(job, worker, decision, at)
            case Parked() | Requeued():
                job.why[worker] = decision.reason.value if decision.reason else "considered"
            case _:
                pass

    # Copies

    def _offer(self, job: FleetJob, now: float) -> None:
        """Let those workers have copies that are to have some now."""
        if job.winner is not None:
            return
        key = job.record.key
        here = Offer((job.runs_on,)) if job.runs_on else None
        offer = here or self.dispatcher.offer(job, frozenset(self.lost), now)
        for worker in [name for name in job.offered if name not in offer.workers]:
            self._take_copy(job, worker, now)
        fresh = [name for name in offer.workers if name not in job.offered and name not in self.lost]
        copy = replace(job.workload, created=now) if fresh else job.workload
        for worker in fresh:
            job.offered[worker] = None
            self.handle(worker, Submitted(now, copy))
        if offer.rejected:
            self._answer_dispatch(job, CheckState.REJECTED, offer.rejected, now)
        elif offer.given_up:
            self._give_up(job, key, offer.rest, now)
        elif offer.retry_at is not None:
            self._plan_for(max(now, offer.retry_at), job, self.home, partial(self._offer, job))

    def _give_up(self, job: FleetJob, key: str, rest: float, now: float) -> None:
        """No cluster admitted it in time: it gives its quota back if a check of ours can say so, and starts over."""
        for name in self._checks.own(self.clusters[self.home].engine.workloads[key].checks):
            retry = CheckStateChanged(now, key, name, CheckState.RETRY, "no worker admitted it in time", rest)
            self.handle(self.home, retry)
            return
        self._plan_for(now + rest, job, self.home, partial(self._offer, job))

    def _take_from(self, job: FleetJob, worker: str, asked_at: float, now: float) -> None:
        """The watchdog takes a job back from a worker that does not provision it."""
        if job.winner is None and self._checks.take_back(job, worker, asked_at, now):
            self._take_copy(job, worker, now)
            self._offer(job, now)

    def _win(self, job: FleetJob, worker: str, now: float) -> None:
        """The first copy that is admitted stays; the manager admits the workload."""
        if job.winner is not None:
            return
        job.winner = job.record.cluster = worker
        self._withdraw(job, worker, now)
        self.dispatcher.admitted(job, worker, now)
        self._answer_dispatch(job, CheckState.READY, "", now)

    def _answer_dispatch(self, job: FleetJob, state: CheckState, message: str, now: float) -> None:
        """The job's MultiKueue check on the manager has another state."""
        key = job.record.key
        for check in sorted(self._dispatch_checks & set(self.clusters[self.home].engine.workloads[key].checks)):
            self.handle(self.home, CheckStateChanged(now, key, check, state, message))

    def _withdraw(self, job: FleetJob, kept_cluster: str | None, now: float) -> None:
        """Delete the copies, but for one."""
        for worker in [name for name in job.offered if name != kept_cluster]:
            self._take_copy(job, worker, now)
        if kept_cluster is None:
            self._nodes[self.home].leave(job.record.key, now)
            self.dispatcher.withdrawn(job)
            job.winner = job.record.cluster = None

    def _take_copy(self, job: FleetJob, worker: str, now: float) -> None:
        job.forget(worker)
        del job.offered[worker]
        key = job.record.key
        is_reserved = worker in job.admissions and self.clusters[worker].engine.workloads[key].is_reserved
        if is_reserved and worker != job.winner:
            job.record.copies_thrown_away += 1
        job.admissions.pop(worker, None)
        job.why.pop(worker, None)
        if worker in self.lost:
            self._orphans[worker][key] = None
            return
        self.handle(worker, Deleted(now, key))
        self._nodes[worker].leave(key, now)

    def _lose_copy(self, job: FleetJob, worker: str, decision: Evicted, at: float) -> None:
        """A copy is evicted. The one that runs sends the workload back.

        One that waits for a check has no Job yet on the worker, and only a Job's reconciler gives quota back: it keeps
        its quota until the manager deletes it.
        """
        job.forget(worker)
        job.why[worker] = f"evicted: {decision.reason.value}"
        if job.winner != worker:
            job.why[worker] += ", but it keeps its quota, as Kueue never finishes this eviction"
            return
        if self.clusters[self.home].engine.workloads[job.record.key].is_evicted:
            return  # The manager takes it back already.
        job.record.evict(at, decision.reason.value, decision.preemptor)
        self._plan_heard(at, job, worker, partial(self._send_back, job))

    def _send_back(self, job: FleetJob, now: float) -> None:
        """The manager takes back a job whose copy is gone."""
        job.lost_copy = True
        self._answer_dispatch(job, CheckState.RETRY, "the copy was evicted", now)

    def change(self, objects: Mapping[str, Objects], now: float) -> None:
        """Every cluster has other queues and quotas from now on."""
        for name, objects_there in objects.items():
            self.handle(name, ObjectsChanged(now, objects_there))
            self.dispatcher.load(name, objects_there)
        self._offer_again(now)

    # Workers that are lost

    def lose(self, worker: str, now: float) -> None:
        """From now on the manager cannot reach a worker."""
        if worker in self.lost:
            return
        self.lost.add(worker)
        for job in self.jobs.values():
            if job.winner == worker and job.record.finished_at is None:
                admission_time = job.record.admitted_at
                since = now if self._keeps_lost or admission_time is None else admission_time
                self._plan_for(max(now, since + self._lost_timeout), job, self.home, partial(self._miss, job, worker))

    def _miss(self, job: FleetJob, worker: str, now: float) -> None:
        """A worker that runs a job has not been reached for too long."""
        if worker in self.lost and self.dispatcher.waits_for_lost:
            self._missed[worker].append(partial(self._give_back, job, worker))
        elif worker in self.lost:
            self._give_back(job, worker, now)

    def _give_back(self, job: FleetJob, worker: str, now: float) -> None:
        if job.winner == worker and job.record.finished_at is None:
            job.record.evict(now, EvictionReason.ADMISSION_CHECK.value)
            self._send_back(job, now)

    def reach(self, worker: str, now: float) -> None:
        """The manager reaches a worker again."""
        self.lost.discard(worker)
        for key in self._orphans[worker]:
            if key in self.clusters[worker].engine.workloads:
                self.handle(worker, Deleted(now, key))
            self._nodes[worker].leave(key, now)
        self._orphans[worker].clear()
        heard = [*self._unheard[worker], *self._missed[worker]]
        self._unheard[worker], self._missed[worker] = [], []
        for action in heard:
            action(now)
        self._offer_again(now)

    def _offer_again(self, now: float) -> None:
        """What waits for workers may go to others now."""
        for job in list(self.jobs.values()):
            if job.offered_since is not None or job.offered:
                self._plan_for(now, job, self.home, partial(self._offer, job))

    # Runs

    def _admit(self, job: FleetJob, at: float) -> None:
        where = job.winner or self.home
        job.record.cluster = where
        job.record.admission = job.admissions[where]
        self._begin(job, where, at, at)
        if self._checks.budgets is not None:
            self._checks.budgets.admitted(job)

    def _seek_nodes(self, job: FleetJob, where: str, now: float) -> None:
        if not self._find_nodes(job, where, now):
            self._nodes[where].wait(job, partial(self._find_nodes, job, where))
            self._fallback.wait(job, where, now)

    def _find_nodes(self, job: FleetJob, where: str, now: float) -> bool:
        """Start the pods, if there are nodes for all."""
        why = self._nodes[where].place(job, now)
        if why:
            job.record.message = job.record.runs[-1].no_nodes = why
            return False
        self._start(job, where, now, now)
        return True

    def _plan_end(self, job: FleetJob, where: str, ends: float | None, now: float) -> None:
        record = job.record
        reclaim = self._file.reclaim(where, record.runs[-1].flavors, (self._seed, record.key, job.run))
        if reclaim is not None and (ends is None or now + reclaim[0] < ends):
            self._plan_for_run(now + reclaim[0], job, where, partial(self._reclaim, job, where, reclaim[1]))
        else:
            super()._plan_end(job, where, ends, now)

    def _reclaim(self, job: FleetJob, where: str, back: float, now: float) -> None:
        """Its spot nodes are gone: the pods start over when there are others."""
        self._lose_nodes(job, where, "its Spot nodes were reclaimed", now)
        self._plan_for(now + back, job, where, partial(self._seek_nodes, job, where))

    def _end_pool(self, where: str, pool: str, lost: Mapping[str, int], now: float) -> None:
        """A calendar reservation is over: its machines are gone, and the pods on them have failed."""
        for key, pods in lost.items():
            job = self.jobs[key]
            if job.may_fail is not None:
                job.may_fail -= pods
            if not job.record.is_running:
                self._nodes[where].leave(key, now)
            elif job.may_fail is not None and job.may_fail < 0:
                self._finish(job, where, now, end="Failed")
            else:
                self._lose_nodes(job, where, f"the nodes of {pool} were removed at the end of its reservation", now)
                self._seek_nodes(job, where, now)

    def _lose_nodes(self, job: FleetJob, where: str, why: str, now: float) -> None:
        job.record.reclaim(now, why)
        self._tell_pods(job, where, now, ready=False)
        self._nodes[where].leave(job.record.key, now)

    def _tell_pods(self, job: FleetJob, where: str, now: float, *, ready: bool) -> None:
        if where not in self.lost:
            super()._tell_pods(job, where, now, ready=ready)
            return
        key = job.record.key
        self.handle(where, PodsReadyChanged(now, key, ready))
        self._unheard[where].append(while_same(job, where, partial(self._tell_home, key, ready)))

    def _tell_home(self, key: str, ready: bool, now: float) -> None:
        self.handle(self.home, PodsReadyChanged(now, key, ready))

    def finish(self, key: str, now: float) -> None:
        """End the run of a job that is running."""
        job = self.jobs[key]
        where = job.record.cluster
        if where is not None and job.record.admitted_at is not None:
            self._finish(job, where, now)

    def cancel(self, key: str, now: float) -> None:
        """Delete a job that has not ended."""
        job = self.jobs[key]
        if job.record.finished_at is None:
            self._withdraw(job, None, now)
            job.forget(self.home)
            job.record.finish(now, "Deleted")
            self.handle(self.home, Deleted(now, key))

    def _finish(self, job: FleetJob, where: str, now: float, end: str = "Succeeded") -> None:
        self._nodes[where].leave(job.record.key, now)
        if where in self.lost:
            # The worker's copy is over, and the manager learns of it when it can; until then it may give it up.
            self._unheard[where].append(while_same(job, where, partial(self._finish, job, where, end=end)))
            return
        super()._finish(job, where, now, end)
