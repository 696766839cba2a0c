"""The status of ClusterQueues, as far as writing it has Kueue look at parked workloads again.

Kueue writes a status that changed one second after a change of a workload. Where a cohort with a parent is above the
ClusterQueue, whatever updates the ClusterQueue also reconciles that Cohort, and this looks at the whole tree again.
Source: kueue@v0.19.2 pkg/controller/core/clusterqueue_controller.go (Update, requestCQForWL, updateCqStatusIfChanged),
pkg/controller/core/cohort_controller.go (NotifyClusterQueueUpdate), pkg/cache/scheduler/cache.go
(ClusterQueueAncestors), pkg/constants/constants.go (UpdatesBatchPeriod).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from kueue_admission.decide.decisions import Admitted, Decision, Evicted, QuotaReserved, Released
from kueue_admission.decide.queue.cluster_queue import QueueNode
from kueue_admission.decide.quota.shares import dominant_share
from kueue_admission.decide.scheduler.cache import Cache
from kueue_admission.decide.timers import Timer, Timers

UPDATES_BATCH: Final = 1.0
"""Seconds from a change of a workload until the status of its ClusterQueue is written."""


def queues_of(decisions: Iterable[Decision]) -> Iterator[str]:
    """The ClusterQueues whose numbers these decisions change."""
    for decision in decisions:
        if isinstance(decision, QuotaReserved):
            yield decision.admission.cluster_queue
        elif isinstance(decision, Admitted | Evicted | Released):
            yield decision.cluster_queue


class QueueStatus:
    """What Kueue has written of each ClusterQueue. `pending` counts the workloads that wait in one."""

    def __init__(self, cache: Cache, timers: Timers, pending: Callable[[str], int]) -> None:
        self._cache = cache
        self._timers = timers
        self._pending = pending
        self._written: dict[str, object] = {}
        self.names: frozenset[str] = frozenset()

    def configure(self) -> None:
        """Look at the trees: `names` are the ClusterQueues whose status, written, has Kueue look at others."""
        queues = self._cache.queues.items()
        self.names = frozenset(name for name, queue in queues if queue.parent is not None and queue.parent.parent)

    def take_over(self, names: Iterable[str]) -> None:
        """The present status of these ClusterQueues is written already."""
        for name in self.names.intersection(names):
            self._written[name] = self._status(self._cache.queues[name])

    def note(self, names: Iterable[str], now: float) -> None:
        """Workloads of these ClusterQueues changed: what changed with them is written later."""
        for name in self.names.intersection(names):
            if self._written.get(name) != self._status(self._cache.queues[name]):
                self._timers.set(Timer.STATUS, name, now + UPDATES_BATCH)

    def write(self, name: str) -> bool:
        """Write the status; whether it is another one than before, so that the tree is looked at again."""
        if name not in self.names:
            return False
        status = self._status(self._cache.queues[name])
        before, self._written[name] = self._written.get(name), status
        return status != before

    def _status(self, queue: QueueNode) -> object:
        admitted_counts: dict[int, int] = {}
        admitted_count = 0
        for info in queue.workloads.values():
            if info.is_admitted:
                admitted_count += 1
                for fr, amount in info.usage:
                    admitted_counts[fr] = admitted_counts.get(fr, 0) + amount
        fair = self._cache.configuration.fair_sharing is not None
        return (
            self._pending(queue.name),
            len(queue.workloads),
            admitted_count,
            _amounts(queue.usage),
            _amounts(admitted_counts),
            queue.inactive,
            dominant_share(queue, self._cache.ids).rounded if fair else 0,
        )


def _amounts(usage: Mapping[int, int]) -> dict[int, int]:
    return {fr: amount for fr, amount in usage.items() if amount}
