"""The engine of one cluster: events in, Kueue's decisions out.

`handle` first lets every timer go off that is due by the event's time, then the event itself; what Kueue's controllers
do some time later happens at once. Only two things are left to the caller: when a scheduling cycle runs
(`events.CycleStarted`; `wants_cycle` says whether one could do anything), and when an evicted workload's pods are gone
(`events.PodsStopped`). The same events give the same decisions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from mypy_extensions import mypyc_attr

from kueue_admission.decide.decisions import Decision, NodesReplaced, Parked, QuotaReserved, Replaced, Requeued
from kueue_admission.decide.errors import InvariantError
from kueue_admission.decide.events import (
    ActiveChanged,
    AllowedFlavorsChanged,
    CheckStateChanged,
    CountsChanged,
    CycleStarted,
    Deleted,
    Event,
    Finished,
    GatedByChanged,
    ObjectsChanged,
    PodsReadyChanged,
    PodsStopped,
    PreemptionGateOpened,
    PriorityChanged,
    ReclaimableChanged,
    Submitted,
    WorkloadEvent,
)
from kueue_admission.decide.model import Admission, Objects, Snapshot, Workload
from kueue_admission.decide.preemption.preemption_text import preemption_message
from kueue_admission.decide.queue.cluster_queue import QueueNode
from kueue_admission.decide.queue.pending import PendingQueue, Place
from kueue_admission.decide.queue.queue_status import queues_of
from kueue_admission.decide.queue.queues import Queues
from kueue_admission.decide.quota.cohort_tree import add_all, remove_all
from kueue_admission.decide.reasons import EvictionReason, QuotaReservedReason, RequeueReason
from kueue_admission.decide.scheduler.cycle import Head, run_cycle
from kueue_admission.decide.scheduler.entry import Entry, Outcome
from kueue_admission.decide.scheduler.examination import examine
from kueue_admission.decide.timers import Timer
from kueue_admission.decide.topology.replacement import changed_nodes
from kueue_admission.decide.workload import lifecycle
from kueue_admission.decide.workload.state import WorkloadInfo
from kueue_admission.decide.workload.transitions import Step
from kueue_admission.decide.workload.variants import Variants
from kueue_admission.decide.workload.workload_controller import WorkloadController

_Change = ReclaimableChanged | CountsChanged | PriorityChanged | ActiveChanged | GatedByChanged | AllowedFlavorsChanged


@mypyc_attr(allow_interpreted_subclasses=True)
class Engine:
    """Kueue on one cluster: its queues, the workloads in them, and the usage.

    `workloads` has every workload that is not finished or deleted. `last_entries` are the entries of the last cycle,
    to explain it.
    """

    def __init__(
        self, objects: Objects, controller: Callable[[Queues], WorkloadController] = WorkloadController
    ) -> None:
        self.queues = Queues(objects)
        self.controller = controller(self.queues)
        self.cache = self.queues.cache
        self.variants = Variants(self.queues, self.controller, self._add, self._forget)
        self.workloads = self.queues.workloads
        self.last_entries: list[Entry] = []
        self.cycles = 0

    @classmethod
    def from_snapshot(cls, snapshot: Snapshot) -> Engine:
        """An engine in the state of a snapshot.

        What has quota keeps it: where a limit passed before `now` and Kueue took nothing away, that limit is not in
        force (an older Kueue, or waitForPodsReady is off), or the objects are older than `now`.
        """
        engine = cls(snapshot.objects)
        engine._set_now(snapshot.now)
        for workload in snapshot.workloads:
            engine._add(workload)
            for limit in (Timer.PODS_READY, Timer.MAX_EXECUTION):
                engine.queues.timers.cancel_missed(limit, workload.key, snapshot.now)
        engine._run_timers(snapshot.now)
        engine.queues.status.note(engine.queues.names, snapshot.now)
        return engine

    @property
    def objects(self) -> Objects:
        """What is configured."""
        return self.queues.objects

    @property
    def now(self) -> float:
        """The time of the last event."""
        return self.queues.now

    def snapshot(self) -> Snapshot:
        """The state as plain data. Progress of flavor searches and parking are not part of it."""
        workloads = (self.workloads[key].as_workload() for key in sorted(self.workloads))
        objects, ledger = self.objects, self.cache.ledger
        if ledger is not None:
            objects = replace(objects, local_queues=ledger.as_local_queues(objects.local_queues))
        return Snapshot(objects, tuple(workloads), self.now)

    @property
    def wants_cycle(self) -> bool:
        """Whether some active queue has a workload to consider, and nothing blocks admission."""
        if self.cache.blocks_admission and not self.cache.all_pods_ready():
            return False
        if self.controller.second_ready:
            return True
        for name, queue in self.queues.pending.items():
            if queue.has_competitors and self.cache.queues[name].active:
                return True
        return False

    def examine(self, key: str) -> Entry:
        """What a cycle would find for a pending workload if it were the head of its queue now; nothing changes."""
        info = self._get(key)
        if info.is_reserved or info.cluster_queue not in self.cache.queues:
            raise InvariantError(f"workload {key} is in no queue")
        return examine(self.cache, info, now=self.now)

    def next_timer(self) -> float | None:
        """When the next timer goes off, if nothing else happens before."""
        return self.queues.timers.next_due()

    def pending(self, cluster_queue: str) -> PendingQueue:
        """The pending workloads of a ClusterQueue."""
        return self.queues.pending[cluster_queue]

    def handle(self, event: Event) -> list[Decision]:
        """Let time pass until the event, handle it, and return what was decided, in order."""
        now, status = event.now, self.queues.status
        if now < self.queues.now:
            raise InvariantError(f"{event!r} is before the time of the engine, {self.now}")
        self.queues.decisions = []
        self._run_timers(now)
        self._set_now(now)
        before = self._queue_of(event) if status.names else ""
        self._dispatch(event)
        if isinstance(event, ObjectsChanged):
            self.variants.settle_all()
        else:
            self.variants.settle(_key_of(event))
        if not status.names:
            return self.queues.decisions
        queues = {before, self._queue_of(event), *queues_of(self.queues.decisions)}
        if isinstance(event, ObjectsChanged):
            queues.update(self.queues.names)
        if isinstance(event, Submitted) and event.resumed:
            status.take_over(queues)
        else:
            status.note(queues, now)
        return self.queues.decisions

    def _run_timers(self, until: float) -> None:
        while (due := self.queues.timers.pop_due(until)) is not None:
            self._set_now(max(self.now, due[0]))
            self.controller.on_timer(due[1], due[2])
            self.variants.settle(due[2])

    def _queue_of(self, event: Event) -> str:
        """The ClusterQueue to which Kueue counts the workload that the event is about; empty where there is none."""
        info = self.workloads.get(_key_of(event))
        return "" if info is None else self.queues.queue_for(info)

    def _set_now(self, now: float) -> None:
        self.queues.now = now
        if self.cache.ledger is not None:
            self.cache.ledger.now = now

    def _dispatch(self, event: Event) -> None:
        match event:
            case CycleStarted():
                self._cycle(event.without)
            case Submitted():
                self._add(event.workload, resumed=event.resumed)
            case ObjectsChanged():
                self._change_objects(event.objects)
            case Deleted() | Finished() | PodsStopped():
                self._stop(event)
            case CheckStateChanged():
                self._change_check(event)
            case PodsReadyChanged():
                self.controller.set_pods_ready(self._get(event.key), ready=event.ready)
            case (
                ReclaimableChanged()
                | CountsChanged()
                | PriorityChanged()
                | ActiveChanged()
                | GatedByChanged()
                | AllowedFlavorsChanged()
            ):
                self._change_workload(event)
            case PreemptionGateOpened():
                info = self._get(event.key)
                self.controller.open_gate(info, event.gate)
            case _:
                pass

    def _get(self, key: str) -> WorkloadInfo:
        try:
            return self.workloads[key]
        except KeyError:
            raise InvariantError(f"workload {key} is not known") from None

    def _change_objects(self, objects: Objects) -> None:
        """Take over a new configuration. Where it changed, parked workloads are looked at again soon."""
        before = self.objects
        self.queues.objects = objects
        self.cache.load(objects)
        waiting = [info for info in self.workloads.values() if not info.is_reserved]
        places = {info.key: self.queues.place(info) for info in waiting}
        for info in waiting:
            self.queues.dequeue(info)
        self.queues.configure()
        for info in list(self.workloads.values()):
            if info.is_reserved and not self.controller.backs_off(info):
                self.controller.check_stop_policy(info)
                if info.is_reserved and not info.is_admitted and not info.is_evicted:
                    self._sync_checks(info)
                    self.controller.sync_admitted(info)
        self.controller.see_nodes(changed_nodes(before.nodes, objects.nodes))
        for info in waiting:
            self.cache.refresh(info)
            self.queues.restart(info)
            queue, place = info.cluster_queue, places.get(info.key)
            is_kept = place in (Place.PARKED, Place.HELD) and queue == self.queues.target(info)
            self.queues.enqueue(info, parked=is_kept, opened=place is None)
        for name in self.queues.touched(before):
            self.queues.reactivate_later(name)

    def _add(self, workload: Workload, *, resumed: bool = False) -> None:
        key = workload.key
        if key in self.workloads:
            raise InvariantError(f"workload {key} was submitted twice")
        info = self.cache.info(workload)
        if info.finished:
            return
        info.submitted(self.now)
        self.workloads[key] = info
        self.variants.see(info)
        if info.is_reserved:
            if not info.is_admitted:
                self.cache.charge(info)
            if info.workload.active and (self.cache.add(info) or self.cache.is_parent(info)):
                self.controller.reconcile(info)
                self.controller.resume_second_pass(info)
        else:
            self.controller.resume_backoff(info)
            self.queues.restart(info)
            self.queues.enqueue(info)
            if resumed and workload.status.evaluated is not None and self._competes(info):
                self._put_back_again(info, workload.status.evaluated)
        if info.requeue_at is not None and info.requeue_at > self.now:
            self.queues.timers.reset(Timer.BACKOFF, key, info.requeue_at)

    def _stop(self, event: Deleted | Finished | PodsStopped) -> None:
        info = self._get(event.key)
        if isinstance(event, PodsStopped):
            self.controller.release(info, Step.STOP)
            return
        if isinstance(event, Finished):
            lifecycle.finish(info, self.now)
        self._forget(info)

    def _forget(self, info: WorkloadInfo) -> None:
        """It is over: others may have what it held."""
        self.cache.drop_penalty(info)
        self.cache.remove(info)
        self.queues.dequeue(info)
        for kind in (Timer.BACKOFF, Timer.PODS_READY, Timer.MAX_EXECUTION, Timer.SECOND_PASS):
            self.queues.timers.cancel(kind, info.key)
        self.controller.second_passes.pop(info.key, None)
        del self.workloads[info.key]
        self.queues.wake_others(info)
        self.variants.forget(info)

    def _change_workload(self, event: _Change) -> None:
        info = self._get(event.key)
        counted_usage = self.cache.remove(info)
        match event:
            case ReclaimableChanged():
                info.workload = replace(info.workload, reclaimable=event.reclaimable)
            case CountsChanged():
                info.workload = info.workload.scaled_to(dict(event.counts))
            case PriorityChanged():
                info.workload = replace(info.workload, priority=event.priority)
            case ActiveChanged():
                info.workload = replace(info.workload, active=event.active)
            case GatedByChanged():
                info.workload = replace(info.workload, gated_by=event.gated_by)
            case AllowedFlavorsChanged():
                info.workload = replace(info.workload, allowed_flavors=event.flavors)
        self.cache.refresh(info)
        if counted_usage:
            self.cache.add(info)
            self.queues.wake_others(info)
        if isinstance(event, ActiveChanged):
            self.controller.change_active(info)
        elif not info.is_reserved:
            self.queues.enqueue(info)

    def _change_check(self, event: CheckStateChanged) -> None:
        info = self._get(event.key)
        is_known = lifecycle.set_check(info, event.check, event.state, event.message, event.requeue_after, self.now)
        if not is_known:
            raise InvariantError(f"workload {event.key} has no admission check {event.check}")
        retry = lifecycle.latest_retry(info)
        if retry is not None and retry > self.now and (info.requeue_at is None or info.requeue_at < retry):
            info.requeue_at = retry
            self.queues.timers.reset(Timer.BACKOFF, info.key, retry)
        if info.is_reserved and not info.is_evicted and not self.controller.backs_off(info):
            self.controller.act_on_checks(info)

    def _cycle(self, without: frozenset[str]) -> None:
        if self.cache.blocks_admission and not self.cache.all_pods_ready():
            return
        self.cycles += 1
        late = [info for key in sorted(without) if self._competes(info := self._get(key))]
        for info in late:
            self.queues.dequeue(info)
        heads = self._heads()
        self.last_entries = run_cycle(self.cache, heads, number=self.cycles, now=self.now)
        for entry in self.last_entries:
            if entry.outcome is Outcome.ADMITTED:
                self._reserve(entry)
            elif entry.outcome is Outcome.EVICTED:
                self.controller.evict(entry.info, EvictionReason.NODE_FAILURES, entry.message())
            elif entry.outcome is Outcome.PREEMPTING:
                self._preempt(entry)
            elif entry.migrates is not None:
                self.variants.migrate(entry.migrates, entry.info)
        for entry in self.last_entries:
            if entry.outcome in (Outcome.ADMITTED, Outcome.EVICTED):
                continue
            if entry.info.is_reserved:
                self.controller.plan_second_pass(entry.info)
            else:
                self._put_back(entry)
        for info in late:
            self.queues.pending[info.cluster_queue].push(info, self.now)

    def _competes(self, info: WorkloadInfo) -> bool:
        return not info.is_reserved and self.queues.place(info) is Place.COMPETING

    def _heads(self) -> list[Head]:
        heads = self._second_pass_heads()
        for name in self.queues.names:
            queue, pending = self.cache.queues[name], self.queues.pending[name]
            if queue.active and pending.has_competitors:
                info = pending.pop()
                if info is not None:
                    heads.append(Head(info, queue, pending.is_preemptor(info.key)))
        return heads

    def _second_pass_heads(self) -> list[Head]:
        """Workloads with quota whose pods are still to be placed, and that still wait for it."""
        ready, self.controller.second_ready = self.controller.second_ready, []
        infos = [self.workloads[key] for key in ready if key in self.workloads]
        return [
            Head(info, self.cache.queues[info.cluster_queue])
            for info in infos
            if info.is_reserved and not info.is_evicted and (not info.is_admitted or info.has_lost_places)
        ]

    def _put_back_again(self, info: WorkloadInfo, message: str) -> None:
        """A cycle has left it without quota. It stays where that put it, even where a look at it now would admit it."""
        entry = self.examine(info.key)
        info.last_progress = entry.assignment.progress
        if entry.outcome in (Outcome.ADMITTED, Outcome.PREEMPTING):
            info.last_progress = None
            is_under_way = bool(entry.targets) and all(target.info.is_evicted for target in entry.targets)
            entry.requeue_reason = RequeueReason.PENDING_PREEMPTION if is_under_way else RequeueReason.NO_FIT
            # What keeps it from quota that it would get alone is that others had it then.
            entry.refuse(Outcome.NO_FIT, entry.why or QuotaReservedReason.WAITING_FOR_QUOTA, message)
        self._put_back(entry)

    def _put_back(self, entry: Entry) -> None:
        info, name = entry.info, entry.queue.name
        info.considered = True
        reason = entry.requeue_reason
        if reason is RequeueReason.GENERIC and entry.outcome is not Outcome.INADMISSIBLE:
            reason = RequeueReason.FAILED_AFTER_NOMINATION
        place = self.queues.pending[name].requeue(info, reason, entry.why, self.now)
        message = entry.message()
        if place is Place.COMPETING:
            self.queues.decide(Requeued(self.now, info.key, name, reason, entry.why, message))
        else:
            self.queues.decide(Parked(self.now, info.key, name, reason, entry.why, message))

    def _sync_checks(self, info: WorkloadInfo) -> None:
        queue = self.cache.queues[info.cluster_queue]
        lifecycle.sync_checks(info, queue, self.now, self.cache.gates.behaviours)

    def _reserve(self, entry: Entry) -> None:
        info, queue = entry.info, entry.queue
        admission = Admission(queue.name, tuple(result.as_assignment() for result in entry.assignment.pod_sets))
        if info.is_reserved:
            self.cache.places.reserve(self.cache, entry, -1)
            self.cache.use_topology(info, -1)
            info.admission = admission
            self.cache.refresh(info)
            self.cache.use_topology(info, 1)
            self.controller.sync_admitted(info)
            if info.lost_nodes:
                self.queues.decide(NodesReplaced(self.now, info.key, queue.name, info.lost_nodes, admission))
                info.unhealthy_nodes = info.lost_nodes = ()
                self.controller.second_passes.pop(info.key, None)
            return
        self.queues.pending[queue.name].delete(info.key)
        self.cache.charge(info)
        lifecycle.reserve(info, admission, self.now)
        self._take_over(info, queue, entry)
        self.queues.decide(QuotaReserved(self.now, info.key, admission, entry.assignment.borrowing))
        self._sync_checks(info)
        self.controller.sync_admitted(info)
        if entry.replaced is not None:
            self._finish_replaced(entry.replaced, info)

    def _finish_replaced(self, workload_info: WorkloadInfo, successor: WorkloadInfo) -> None:
        lifecycle.finish(workload_info, self.now)
        self.queues.decide(Replaced(self.now, workload_info.key, workload_info.cluster_queue, successor.key))
        self._forget(workload_info)

    def _take_over(self, info: WorkloadInfo, queue: QueueNode, entry: Entry) -> None:
        """List an admitted workload in its queue; the cycle has counted its usage, or what it needs beyond a slice."""
        info.last_progress = None
        self.cache.refresh(info)
        usage = entry.assignment.usage
        if entry.replaced is not None:
            remove_all(queue, entry.counted)
            add_all(queue, info.usage)
        elif dict(info.usage) != usage:
            raise InvariantError(f"workload {info.key} was admitted with {usage}, but uses {info.usage}")
        queue.workloads[info.key] = info
        queue.generation += 1
        if self.cache.configuration.wait_for_pods_ready is not None and not info.pods_ready:
            queue.not_ready.add(info.key)

    def _preempt(self, entry: Entry) -> None:
        for target in entry.targets:
            if target.info.is_evicted:
                continue
            message = preemption_message(entry, target, self.cache.queues[target.info.cluster_queue])
            target.info.preempted_reason = target.reason
            self.controller.evict(
                target.info, EvictionReason.PREEMPTED, message, preemptor=entry.info.key, preemption=target.reason
            )


def _key_of(event: Event) -> str:
    """The workload that the event is about; empty where it is about none."""
    match event:
        case Submitted():
            return event.workload.key
        case WorkloadEvent():
            return event.key
        case _:
            return ""
