"""The engine of one cluster: events in, Kueue's decisions out.

`handle` first lets every timer go off that is due by the event's time, then the event itself; what Kueue's controllers
do at their leisure happens at once. Only two things are left to the caller: when a scheduling cycle runs
(`events.CycleStarted`; `wants_cycle` says whether one could do anything), and when an evicted workload's pods are gone
(`events.PodsStopped`). The same events give the same decisions.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import partial

from kueue_fleet.admission import lifecycle
from kueue_fleet.admission.assignment import Assignment
from kueue_fleet.admission.cache import Cache
from kueue_fleet.admission.cluster_queue import QueueNode
from kueue_fleet.admission.cycle import Entry, Head, Outcome, run_cycle
from kueue_fleet.admission.decisions import (
    Admitted,
    BackoffStarted,
    ChecksPending,
    Deactivated,
    Decision,
    Evicted,
    Inadmissible,
    Parked,
    Queued,
    QuotaReserved,
    Released,
    Requeued,
)
from kueue_fleet.admission.errors import InvariantError
from kueue_fleet.admission.events import (
    ActiveChanged,
    CheckStateChanged,
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
)
from kueue_fleet.admission.info import WorkloadInfo, refresh_order
from kueue_fleet.admission.model import Admission, CheckState, LocalQueue, Objects, Snapshot, StopPolicy
from kueue_fleet.admission.pending import PendingQueue, Place
from kueue_fleet.admission.preemption import PreemptionNotice, queue_path
from kueue_fleet.admission.reasons import (
    DeactivationCause,
    EvictionReason,
    PreemptionReason,
    QuotaReservedReason,
    RequeueReason,
)
from kueue_fleet.admission.timers import Timer, Timers


class Engine:
    """Kueue on one cluster: its queues, the workloads in them, and the books.

    `workloads` has every workload that is not finished or deleted. `last_entries` are the entries of the last cycle,
    for whoever wants to explain it.
    """

    def __init__(self, objects: Objects) -> None:
        self.objects = objects
        self.cache = Cache(objects)
        self.workloads: dict[str, WorkloadInfo] = {}
        self.last_entries: list[Entry] = []
        self.cycles = 0
        self.now = 0.0
        self._timers = Timers()
        self._pending: dict[str, PendingQueue] = {}
        self._queue_names: list[str] = []
        self._local_queues: dict[str, LocalQueue] = {}
        self._decisions: list[Decision] = []
        self._configure()

    @classmethod
    def from_snapshot(cls, snapshot: Snapshot) -> Engine:
        """An engine in the state of a snapshot."""
        engine = cls(snapshot.objects)
        for workload in snapshot.workloads:
            engine.handle(Submitted(snapshot.now, workload))
        return engine

    def snapshot(self) -> Snapshot:
        """The state as plain data. Progress of flavor searches and parking are not part of it."""
        workloads = (self.workloads[key].as_workload() for key in sorted(self.workloads))
        return Snapshot(self.objects, tuple(workloads), self.now)

    @property
    def wants_cycle(self) -> bool:
        """Whether some active queue has a workload to consider, and nothing blocks admission."""
        if self.cache.blocks_admission and not self.cache.all_pods_ready():
            return False
        return any(self.cache.queues[name].active and queue.has_competitors for name, queue in self._pending.items())

    def next_timer(self) -> float | None:
        """When something happens by itself, if nothing else happens before."""
        return self._timers.next_due()

    def pending(self, cluster_queue: str) -> PendingQueue:
        """The pending workloads of a ClusterQueue."""
        return self._pending[cluster_queue]

    def handle(self, event: Event) -> list[Decision]:
        """Let time pass until the event, handle it, and return what was decided, in order."""
        if event.now < self.now:
            raise InvariantError(f"{event!r} is before the time of the engine, {self.now}")
        self._decisions = []
        while (due := self._timers.pop_due(event.now)) is not None:
            self.now = max(self.now, due[0])
            self._go_off(due[1], due[2])
        self.now = event.now
        self._dispatch(event)
        return self._decisions

    def handle_all(self, events: Iterable[Event]) -> list[Decision]:
        """Handle events one after the other."""
        return [decision for event in events for decision in self.handle(event)]

    def _dispatch(self, event: Event) -> None:
        match event:
            case CycleStarted():
                self._cycle()
            case Submitted():
                self._submit(event)
            case ObjectsChanged():
                self._change_objects(event.objects)
            case Deleted() | Finished() | PodsStopped():
                self._stop(event)
            case CheckStateChanged():
                self._change_check(event)
            case PodsReadyChanged():
                self._change_pods_ready(event)
            case ReclaimableChanged() | PriorityChanged() | ActiveChanged() | GatedByChanged():
                self._change_workload(event)
            case PreemptionGateOpened():
                info = self._get(event.key)
                info.open_gates.add(event.gate)
                if not info.is_reserved:
                    self._enqueue(info)
            case _:
                pass

    def _get(self, key: str) -> WorkloadInfo:
        try:
            return self.workloads[key]
        except KeyError:
            raise InvariantError(f"workload {key} is not known") from None

    # Queues

    def _configure(self) -> None:
        old = self._pending
        self._local_queues = {queue.key: queue for queue in self.objects.local_queues}
        self._queue_names = sorted(self.cache.queues)
        self._pending = {}
        for name in self._queue_names:
            spec = self.cache.queues[name].spec
            known = old.get(name)
            if known is not None and known.strategy is spec.queueing_strategy:
                self._pending[name] = known
            else:
                self._pending[name] = PendingQueue(spec.queueing_strategy, partial(self.cache.namespace_admitted, name))

    def _change_objects(self, objects: Objects) -> None:
        """Take over a new configuration. Parked workloads are looked at again after the usual delay."""
        self.objects = objects
        self.cache.load(objects)
        waiting = [info for info in self.workloads.values() if not info.is_reserved]
        kept = {info.key for info in waiting if self._place(info) in (Place.PARKED, Place.HELD)}
        for info in waiting:
            self._dequeue(info)
        self._configure()
        for info in list(self.workloads.values()):
            if info.is_reserved:
                self._check_stop_policy(info)
                if info.is_reserved and not info.is_admitted and not info.is_evicted:
                    lifecycle.sync_checks(info, self.cache.queues[info.cluster_queue], self.now)
                    self._sync_admitted(info)
        for info in waiting:
            self.cache.refresh(info)
            self._restart(info)
            before = info.cluster_queue
            self._enqueue(info, parked=info.key in kept and before == self._target(info))
        for name in self._queue_names:
            self._reactivate_later(name)

    def _place(self, info: WorkloadInfo) -> Place | None:
        pending = self._pending.get(info.cluster_queue)
        return None if pending is None else pending.place_of(info.key)

    def _target(self, info: WorkloadInfo) -> str:
        local = self._local_queues.get(f"{info.workload.namespace}/{info.workload.queue}")
        return "" if local is None else local.cluster_queue

    def _restart(self, info: WorkloadInfo) -> None:
        """A workload evicted because its queue was stopped may be queued again once the queue is not."""
        if info.requeued is not False:
            return
        local = self._local_queues.get(f"{info.workload.namespace}/{info.workload.queue}")
        if local is None:
            return
        queue = self.cache.queues.get(local.cluster_queue)
        by_local = info.requeued_reason == EvictionReason.LOCAL_QUEUE_STOPPED
        by_queue = info.requeued_reason == EvictionReason.CLUSTER_QUEUE_STOPPED
        if (by_local and local.stop_policy is StopPolicy.NONE) or (
            by_queue and queue is not None and queue.spec.stop_policy is StopPolicy.NONE
        ):
            info.requeued = True

    def _dequeue(self, info: WorkloadInfo) -> None:
        pending = self._pending.get(info.cluster_queue)
        if pending is not None:
            pending.delete(info.key)

    def _enqueue(self, info: WorkloadInfo, *, parked: bool = False) -> None:
        """Put a workload without quota where it belongs; parked, if it was parked before."""
        blocker = self._blocker(info)
        if blocker is not None:
            self._dequeue(info)
            self._decide(Inadmissible(self.now, info.key, *blocker))
            return
        name = self._target(info)
        if info.cluster_queue != name:
            self._dequeue(info)
            info.cluster_queue = name
        if self.cache.queues[name].checks or info.checks:
            lifecycle.sync_checks(info, self.cache.queues[name], self.now)
        place = self._pending[name].push(info, self.now, parked=parked)
        self._decide(Queued(self.now, info.key, name, place is Place.COMPETING))

    def _blocker(self, info: WorkloadInfo) -> tuple[str, str] | None:
        """Why a workload is in no queue: reason and message."""
        workload = info.workload
        if not workload.active:
            return "Deactivated", "The workload is deactivated"
        local = self._local_queues.get(f"{workload.namespace}/{workload.queue}")
        if local is None:
            return QuotaReservedReason.MISCONFIGURED, f"LocalQueue {workload.queue} doesn't exist"
        if local.stop_policy is not StopPolicy.NONE:
            return QuotaReservedReason.SUSPENDED, f"LocalQueue {workload.queue} is inactive"
        if local.cluster_queue not in self.cache.queues:
            return QuotaReservedReason.MISCONFIGURED, f"ClusterQueue {local.cluster_queue} doesn't exist"
        if not info.is_admissible(self.cache.gates):
            return QuotaReservedReason.ADMISSION_GATED, f"Admission is gated by: {workload.gated_by}"
        return None

    def _reactivate_later(self, cluster_queue: str) -> None:
        """Something changed in a cohort tree: its parked workloads are looked at again, with a little delay."""
        queue = self.cache.queues.get(cluster_queue)
        if queue is None:
            return
        name = f"queue {queue.name}" if queue.parent is None else f"cohort {queue.root().name}"
        self._timers.set(Timer.REACTIVATE, name, self.now + self.cache.configuration.requeue_batch)

    def _reactivate(self, name: str) -> None:
        kind, _, node = name.partition(" ")
        if kind == "queue":
            names = [node] if node in self._pending else []
        else:
            names = [
                q
                for q in self._queue_names
                if self.cache.queues[q].parent is not None and self.cache.queues[q].root().name == node
            ]
        for queue in names:
            self._pending[queue].reactivate(self.now)

    # Workloads come, change and go

    def _submit(self, event: Submitted) -> None:
        key = event.workload.key
        if key in self.workloads:
            raise InvariantError(f"workload {key} was submitted twice")
        info = self.cache.info(event.workload)
        if info.finished:
            return
        self.workloads[key] = info
        if info.is_reserved:
            if info.workload.active and self.cache.add(info):
                self._check_stop_policy(info)
                self._set_timers(info)
            return
        self._enqueue(info)
        if info.requeue_at is not None and info.requeue_at > self.now:
            self._timers.reset(Timer.BACKOFF, key, info.requeue_at)

    def _stop(self, event: Deleted | Finished | PodsStopped) -> None:
        info = self._get(event.key)
        if isinstance(event, PodsStopped):
            if not info.is_evicted or not info.is_reserved:
                raise InvariantError(f"workload {info.key} stopped, but it holds no quota or was not evicted")
            self._release(info)
            return
        queue = info.cluster_queue
        info.finished = isinstance(event, Finished)
        self.cache.remove(info)
        self._dequeue(info)
        for kind in (Timer.BACKOFF, Timer.PODS_READY, Timer.MAX_EXECUTION):
            self._timers.cancel(kind, info.key)
        del self.workloads[info.key]
        self._reactivate_later(queue)

    def _change_workload(self, event: ReclaimableChanged | PriorityChanged | ActiveChanged | GatedByChanged) -> None:
        info = self._get(event.key)
        counted = self.cache.remove(info)
        match event:
            case ReclaimableChanged():
                info.workload = replace(info.workload, reclaimable=event.reclaimable)
            case PriorityChanged():
                info.workload = replace(info.workload, priority=event.priority)
            case ActiveChanged():
                info.workload = replace(info.workload, active=event.active)
            case GatedByChanged():
                info.workload = replace(info.workload, gated_by=event.gated_by)
        self.cache.refresh(info)
        if counted:
            self.cache.add(info)
            self._reactivate_later(info.cluster_queue)
        if isinstance(event, ActiveChanged):
            self._change_active(info)
        elif not info.is_reserved:
            self._enqueue(info)

    def _change_active(self, info: WorkloadInfo) -> None:
        if info.workload.active:
            if info.requeued is False and info.requeued_reason == EvictionReason.DEACTIVATED:
                info.requeued = True
            if not info.is_reserved:
                self._enqueue(info)
        elif info.is_reserved:
            if not info.is_evicted:
                self._evict(info, EvictionReason.DEACTIVATED, "The workload is deactivated")
        else:
            self._enqueue(info)

    def _change_check(self, event: CheckStateChanged) -> None:
        info = self._get(event.key)
        known = lifecycle.set_check(info, event.check, event.state, event.message, event.requeue_after, self.now)
        if not known:
            raise InvariantError(f"workload {event.key} has no admission check {event.check}")
        retry = lifecycle.latest_retry(info)
        if retry is not None and retry > self.now and (info.requeue_at is None or info.requeue_at < retry):
            info.requeue_at = retry
        if info.is_reserved and not info.is_evicted and not self._act_on_failed_checks(info):
            self._sync_admitted(info)

    def _act_on_failed_checks(self, info: WorkloadInfo) -> bool:
        if info.has_check(CheckState.REJECTED):
            message = lifecycle.describe_checks(info, CheckState.REJECTED)
            self._deactivate(info, DeactivationCause.ADMISSION_CHECK, message)
            return True
        if info.has_check(CheckState.RETRY):
            message = f"Evicted due to {lifecycle.describe_checks(info, CheckState.RETRY)}"
            self._evict(info, EvictionReason.ADMISSION_CHECK, message)
            return True
        return False

    def _change_pods_ready(self, event: PodsReadyChanged) -> None:
        info = self._get(event.key)
        was_ready = info.pods_ready
        info.pods_ready = event.ready
        info.pods_ready_since = self.now
        info.waits_for_recovery = was_ready and not event.ready
        queue = self.cache.queues.get(info.cluster_queue)
        if queue is not None and info.key in queue.workloads:
            queue.generation += 1
            if event.ready:
                queue.not_ready.discard(info.key)
            else:
                queue.not_ready.add(info.key)
        self._set_timers(info)

    # Reservation, admission, eviction

    def _cycle(self) -> None:
        if self.cache.blocks_admission and not self.cache.all_pods_ready():
            return
        self.cycles += 1
        heads = []
        for name in self._queue_names:
            queue, pending = self.cache.queues[name], self._pending[name]
            if queue.active and pending.has_competitors:
                info = pending.pop()
                if info is not None:
                    heads.append(Head(info, queue, pending.is_preemptor(info.key)))
        self.last_entries = run_cycle(self.cache, heads, number=self.cycles, now=self.now)
        for entry in self.last_entries:
            if entry.outcome is Outcome.ADMITTED:
                self._reserve(entry)
            elif entry.outcome is Outcome.PREEMPTING:
                self._preempt(entry)
        for entry in self.last_entries:
            if entry.outcome is not Outcome.ADMITTED:
                self._put_back(entry)

    def _put_back(self, entry: Entry) -> None:
        info, name = entry.info, entry.queue.name
        reason = entry.requeue_reason
        if reason is RequeueReason.GENERIC and entry.outcome is not Outcome.INADMISSIBLE:
            reason = RequeueReason.FAILED_AFTER_NOMINATION
        place = self._pending[name].requeue(info, reason, entry.why, self.now)
        message = entry.message()
        if place is Place.COMPETING:
            self._decide(Requeued(self.now, info.key, name, reason, entry.why, message))
        else:
            shape = self._pending[name].parked_for(info.key) is not None
            self._decide(Parked(self.now, info.key, name, reason, entry.why, message, shape))

    def _reserve(self, entry: Entry) -> None:
        info, queue = entry.info, entry.queue
        admission = Admission(queue.name, tuple(result.as_assignment() for result in entry.assignment.pod_sets))
        self._pending[queue.name].delete(info.key)
        lifecycle.reserve(info, admission, self.now)
        self._take_over(info, queue, entry.assignment)
        self._decide(QuotaReserved(self.now, info.key, admission, entry.assignment.borrowing))
        lifecycle.sync_checks(info, queue, self.now)
        self._sync_admitted(info)

    def _take_over(self, info: WorkloadInfo, queue: QueueNode, assignment: Assignment) -> None:
        """List an admitted workload in its queue; the cycle has put its usage on the books already."""
        info.last_progress = None
        self.cache.refresh(info)
        if dict(info.usage) != assignment.usage:
            raise InvariantError(f"workload {info.key} was admitted with {assignment.usage}, but uses {info.usage}")
        queue.workloads[info.key] = info
        queue.generation += 1
        if self.cache.configuration.wait_for_pods_ready is not None and not info.pods_ready:
            queue.not_ready.add(info.key)

    def _sync_admitted(self, info: WorkloadInfo) -> None:
        """Admit a workload with quota if nothing is left to wait for."""
        if info.is_admitted:
            return
        missing = lifecycle.why_not_admitted(info)
        if missing is None:
            info.admitted_at = self.now
            self.cache.queues[info.cluster_queue].generation += 1
            self._decide(Admitted(self.now, info.key, info.cluster_queue))
            self._set_timers(info)
        else:
            waiting = tuple(name for name, check in info.checks.items() if check.state is not CheckState.READY)
            self._decide(ChecksPending(self.now, info.key, missing, waiting))

    def _preempt(self, entry: Entry) -> None:
        for target in entry.targets:
            if target.info.is_evicted:
                continue
            notice = PreemptionNotice(
                entry.info,
                target.reason,
                queue_path(entry.queue),
                queue_path(self.cache.queues[target.info.cluster_queue]),
            )
            target.info.preempted_reason = target.reason
            self._evict(
                target.info, EvictionReason.PREEMPTED, notice.text, preemptor=entry.info.key, preemption=target.reason
            )

    def _evict(
        self,
        info: WorkloadInfo,
        reason: EvictionReason,
        message: str,
        *,
        cause: DeactivationCause | str = "",
        preemptor: str = "",
        preemption: PreemptionReason | None = None,
    ) -> None:
        lifecycle.mark_evicted(info, reason, self.now)
        queue = self.cache.queues.get(info.cluster_queue)
        if queue is not None and info.key in queue.workloads:
            queue.generation += 1
        refresh_order(info, self.cache.gates, self.cache.configuration.wait_for_pods_ready)
        for kind in (Timer.PODS_READY, Timer.MAX_EXECUTION):
            self._timers.cancel(kind, info.key)
        name = info.cluster_queue
        self._decide(Evicted(self.now, info.key, name, reason, message, cause, preemptor, preemption))

    def _deactivate(self, info: WorkloadInfo, cause: DeactivationCause, message: str) -> None:
        info.workload = replace(info.workload, active=False)
        info.requeue_at, info.requeue_count = None, 0
        self._decide(Deactivated(self.now, info.key, cause))
        self._evict(info, EvictionReason.DEACTIVATED, f"The workload is deactivated due to {message}", cause=cause)

    def _release(self, info: WorkloadInfo) -> None:
        name = info.cluster_queue
        self.cache.remove(info)
        lifecycle.release(info, self.now)
        self.cache.refresh(info)
        self._decide(Released(self.now, info.key, name))
        self._reactivate_later(name)
        if not info.workload.active:
            self._enqueue(info)
            return
        if info.requeued is False and info.requeued_reason in (
            EvictionReason.PODS_READY_TIMEOUT,
            EvictionReason.ADMISSION_CHECK,
        ):
            if info.requeue_at is None or info.requeue_at <= self.now:
                self._finish_backoff(info)
                return
            self._decide(BackoffStarted(self.now, info.key, info.requeue_at, info.requeue_count))
            self._timers.reset(Timer.BACKOFF, info.key, info.requeue_at)
        self._restart(info)
        self._enqueue(info)

    def _check_stop_policy(self, info: WorkloadInfo) -> None:
        """Stopped queues: drain what is admitted, take back what only has quota."""
        local = self._local_queues.get(f"{info.workload.namespace}/{info.workload.queue}")
        queue = self.cache.queues.get(info.cluster_queue)
        checks = (
            (
                local.stop_policy if local else StopPolicy.NONE,
                EvictionReason.LOCAL_QUEUE_STOPPED,
                "The LocalQueue is stopped",
            ),
            (
                queue.spec.stop_policy if queue else StopPolicy.NONE,
                EvictionReason.CLUSTER_QUEUE_STOPPED,
                "The ClusterQueue is stopped",
            ),
        )
        for policy, reason, message in checks:
            if info.is_admitted and policy is StopPolicy.HOLD_AND_DRAIN and not info.is_evicted:
                self._evict(info, reason, message)
            elif not info.is_admitted and info.is_reserved and policy is not StopPolicy.NONE:
                self._release(info)
                return

    # Timers

    def _set_timers(self, info: WorkloadInfo) -> None:
        settings = self.cache.configuration.wait_for_pods_ready
        self._timers.cancel(Timer.PODS_READY, info.key)
        if info.admitted_at is None or info.is_evicted:
            return
        if settings is not None and not info.pods_ready:
            if not info.waits_for_recovery:
                self._timers.reset(Timer.PODS_READY, info.key, info.admitted_at + settings.timeout)
            elif settings.recovery_timeout is not None and info.pods_ready_since is not None:
                self._timers.reset(Timer.PODS_READY, info.key, info.pods_ready_since + settings.recovery_timeout)
        limit = info.workload.max_execution_seconds
        if limit is not None:
            self._timers.reset(Timer.MAX_EXECUTION, info.key, info.admitted_at + limit - info.past_execution)

    def _go_off(self, kind: Timer, name: str) -> None:
        if kind is Timer.REACTIVATE:
            self._reactivate(name)
            return
        info = self.workloads.get(name)
        if info is None:
            return
        if kind is Timer.BACKOFF:
            if not info.is_reserved:
                self._finish_backoff(info)
        elif kind is Timer.PODS_READY:
            self._time_out(info)
        elif info.is_admitted and not info.is_evicted:
            info.past_execution = 0.0
            self._deactivate(
                info, DeactivationCause.MAXIMUM_EXECUTION_TIME_EXCEEDED, "exceeding the maximum execution time"
            )

    def _finish_backoff(self, info: WorkloadInfo) -> None:
        info.requeue_at = None
        if info.requeued is False and info.requeued_reason in (
            EvictionReason.PODS_READY_TIMEOUT,
            EvictionReason.ADMISSION_CHECK,
        ):
            info.requeued = True
        self._enqueue(info)

    def _time_out(self, info: WorkloadInfo) -> None:
        settings = self.cache.configuration.wait_for_pods_ready
        if settings is None or not info.is_admitted or info.is_evicted or info.pods_ready:
            return
        if settings.backoff_limit is not None and info.requeue_count + 1 > settings.backoff_limit:
            self._deactivate(
                info,
                DeactivationCause.REQUEUING_LIMIT_EXCEEDED,
                "exceeding the maximum number of re-queuing retries",
            )
            return
        cause = "WaitForRecovery" if info.waits_for_recovery else "WaitForStart"
        lifecycle.start_backoff(info, settings, self.now)
        message = f"Exceeded the PodsReady timeout {info.key}"
        self._evict(info, EvictionReason.PODS_READY_TIMEOUT, message, cause=cause)

    def _decide(self, decision: Decision) -> None:
        self._decisions.append(decision)
