"""Which queue a workload is in: by its LocalQueue, if nothing forbids it; and when parked ones are looked at again.

Source: kueue@v0.19.2 pkg/cache/queue/manager.go, pkg/controller/core/workload_controller.go.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from kueue_admission.decide.decisions import Decision, Inadmissible, Queued
from kueue_admission.decide.model import LocalQueue, Objects
from kueue_admission.decide.queue.pending import PendingQueue, Place
from kueue_admission.decide.queue.queue_status import QueueStatus
from kueue_admission.decide.reasons import DEACTIVATED_BY_HAND, EvictionReason, QuotaReservedReason
from kueue_admission.decide.scheduler.cache import Cache
from kueue_admission.decide.timers import Timer, Timers
from kueue_admission.decide.topology.placement import Places
from kueue_admission.decide.workload import lifecycle
from kueue_admission.decide.workload.state import WorkloadInfo


class Queues:
    """The state of one cluster: its objects, the usage, every workload, and in which queue it waits."""

    def __init__(self, objects: Objects) -> None:
        self.objects = objects
        self.cache = Cache(objects, Places())
        self.workloads: dict[str, WorkloadInfo] = {}
        self.now = 0.0
        self.timers = Timers()
        self.pending: dict[str, PendingQueue] = {}
        self.names: list[str] = []
        self.local_queues: dict[str, LocalQueue] = {}
        self.decisions: list[Decision] = []
        self.usage_of: Callable[[str], float] = self._consumed
        """The usage by which the queues order a LocalQueue."""
        self.status = QueueStatus(self.cache, self.timers, lambda name: len(self.pending[name]))
        self.configure()
        self.status.take_over(self.names)

    def configure(self) -> None:
        """Take over the queues of `objects`; what is pending in one whose strategy stays is kept."""
        old = self.pending
        self.local_queues = {queue.key: queue for queue in self.objects.local_queues}
        self.names = sorted(self.cache.queues)
        self.pending = {}
        for name in self.names:
            spec = self.cache.queues[name].spec
            known_queue = old.get(name)
            ledger = self.cache.ledger if spec.usage_based else None
            if (
                known_queue is not None
                and known_queue.strategy == spec.queueing_strategy
                and known_queue.is_by_usage == (ledger is not None)
            ):
                self.pending[name] = known_queue
            else:
                matches = partial(self.cache.namespace_matches, name)
                usage = None if ledger is None else (lambda local_queue: self.usage_of(local_queue))
                self.pending[name] = PendingQueue(spec.queueing_strategy, matches, usage)
        self.status.configure()

    def _consumed(self, local_queue: str) -> float:
        return 0.0 if self.cache.ledger is None else self.cache.ledger.usage(local_queue)

    def place(self, info: WorkloadInfo) -> Place | None:
        """Where among the pending workloads of its queue it is; None if it is not."""
        pending = self.pending.get(info.cluster_queue)
        return None if pending is None else pending.place_of(info.key)

    def target(self, info: WorkloadInfo) -> str:
        """The ClusterQueue that its LocalQueue leads to; empty where there is none."""
        local = self.local_queues.get(info.workload.local_queue)
        return "" if local is None else local.cluster_queue

    def restart(self, info: WorkloadInfo) -> None:
        """A workload evicted because its queue was stopped may be queued again once the queue is not."""
        if info.requeued is not False:
            return
        local = self.local_queues.get(info.workload.local_queue)
        if local is None:
            return
        queue = self.cache.queues.get(local.cluster_queue)
        by_local = info.requeued_reason == EvictionReason.LOCAL_QUEUE_STOPPED
        by_queue = info.requeued_reason == EvictionReason.CLUSTER_QUEUE_STOPPED
        if (by_local and local.stop_policy == "None") or (
            by_queue and queue is not None and queue.spec.stop_policy == "None"
        ):
            info.requeued = True

    def dequeue(self, info: WorkloadInfo) -> None:
        """Take a workload out of its queue."""
        pending = self.pending.get(info.cluster_queue)
        if pending is not None:
            pending.delete(info.key)

    def enqueue(self, info: WorkloadInfo, *, parked: bool = False, opened: bool = False) -> None:
        """Put a workload without quota where it belongs; parked, if it was parked before; `opened`: see `push`.

        One that waits for all flavors at once is in no queue: its variants are.
        """
        blocker = self._blocker(info)
        if blocker is not None:
            self.dequeue(info)
            info.last_progress = None
            self.decide(Inadmissible(self.now, info.key, *blocker))
            return
        name = self.target(info)
        if info.cluster_queue != name:
            self.dequeue(info)
            info.cluster_queue = name
        if self.cache.is_parent(info):
            self.cache.families.setdefault(info.key, {})
            return
        if self.cache.queues[name].checks or info.checks:
            lifecycle.sync_checks(info, self.cache.queues[name], self.now, self.cache.gates.behaviours)
        place = self.pending[name].push(info, self.now, parked=parked, opened=opened)
        self.decide(Queued(self.now, info.key, name, place is Place.COMPETING))

    def _blocker(self, info: WorkloadInfo) -> tuple[str, str] | None:
        """Why a workload is in no queue: reason and message."""
        workload = info.workload
        if not workload.active:
            return "Deactivated", DEACTIVATED_BY_HAND
        local = self.local_queues.get(workload.local_queue)
        if local is None:
            return QuotaReservedReason.MISCONFIGURED, f"LocalQueue {workload.queue} doesn't exist"
        if local.stop_policy != "None":
            return QuotaReservedReason.SUSPENDED, f"LocalQueue {workload.queue} is inactive"
        if local.cluster_queue not in self.cache.queues:
            return QuotaReservedReason.MISCONFIGURED, f"ClusterQueue {local.cluster_queue} doesn't exist"
        if workload.claims_problem:
            return QuotaReservedReason.MISCONFIGURED, workload.claims_problem
        if not info.is_admissible(self.cache.gates):
            return QuotaReservedReason.ADMISSION_GATED, f"Admission is gated by: {workload.gated_by}"
        return None

    def touched(self, before: Objects) -> list[str]:
        """The ClusterQueues whose own specification, or whose cohort's, is not what it was; LocalQueues do not count.

        A change of anything else counts for all of them.
        """
        now = self.objects
        if replace(now, local_queues=(), cluster_queues=(), cohorts=()) != replace(
            before, local_queues=(), cluster_queues=(), cohorts=()
        ):
            return self.names
        cohorts = {cohort.name for cohort in {*now.cohorts} ^ {*before.cohorts}}
        roots = {self.cache.cohorts[name].root().name for name in cohorts if name in self.cache.cohorts}
        specs = {queue.name: queue for queue in before.cluster_queues}
        queue_names = []
        for name in self.names:
            queue = self.cache.queues[name]
            if queue.spec != specs.get(name) or (queue.parent is not None and queue.root().name in roots):
                queue_names.append(name)
        return queue_names

    def wake_others(self, info: WorkloadInfo) -> None:
        """Quota came free: parked workloads of the tree are looked at again.

        Kueue finds the tree by the LocalQueue, and does not know one that is stopped: then none is.
        """
        local = self.local_queues.get(info.workload.local_queue)
        if local is not None and local.stop_policy == "None":
            self.reactivate_later(local.cluster_queue)

    def write_status(self, cluster_queue: str) -> None:
        """The status of a ClusterQueue is written, if anything in it changed."""
        if self.status.write(cluster_queue):
            self.reactivate_later(cluster_queue)

    def queue_for(self, info: WorkloadInfo) -> str:
        """The ClusterQueue to which Kueue counts a workload; empty where its LocalQueue is stopped or missing."""
        if info.is_reserved:
            return info.cluster_queue
        local = self.local_queues.get(info.workload.local_queue)
        return local.cluster_queue if local is not None and local.stop_policy == "None" else ""

    def reactivate_later(self, cluster_queue: str) -> None:
        """Something changed in a cohort tree: its parked workloads are looked at again, with a little delay."""
        queue = self.cache.queues.get(cluster_queue)
        if queue is None:
            return
        name = f"queue {queue.name}" if queue.parent is None else f"cohort {queue.root().name}"
        self.timers.set(Timer.REACTIVATE, name, self.now + self.cache.configuration.requeue_batch)

    def reactivate(self, name: str) -> None:
        """Look at the parked workloads of a tree again: `queue NAME` or `cohort ROOT`."""
        kind, _, node = name.partition(" ")
        if kind == "queue":
            names = [node] if node in self.pending else []
        else:
            names = [
                q
                for q in self.names
                if self.cache.queues[q].parent is not None and self.cache.queues[q].root().name == node
            ]
        for queue in names:
            self.pending[queue].reactivate(self.now)

    def decide(self, decision: Decision) -> None:
        """Add to what was decided."""
        self.decisions.append(decision)
