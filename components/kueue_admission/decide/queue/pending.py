"""The pending workloads of one ClusterQueue: a heap of those that compete, and the parked ones that wait for a change.

Workloads of the same scheduling shape are kept together: when one of them is found inadmissible, all are parked at
once, and come back at once. Both are a swap of two heaps, not a walk over them.

A workload is in exactly one place: competing, parked, held (parked by itself, because its namespace does not match or
its back-off runs), or in flight (handed out by `pop` and not yet put back or deleted).
Source: kueue@v0.19.2 pkg/cache/queue/cluster_queue.go.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from enum import IntEnum

from kueue_admission.api.cluster_queue import QueueingStrategy
from kueue_admission.decide.reasons import QuotaReservedReason, RequeueReason
from kueue_admission.decide.workload.state import WorkloadInfo

Key = tuple[int, float, str]
"""Sorts what waits in a queue: the first is looked at first."""

_PREEMPTORS = frozenset((RequeueReason.PENDING_PREEMPTION, RequeueReason.PENDING_MIGRATION))
_IMMEDIATE = _PREEMPTORS | {RequeueReason.FAILED_AFTER_NOMINATION, RequeueReason.PREEMPTION_FAILED}
_BULK = frozenset((RequeueReason.NO_FIT, RequeueReason.PREEMPTION_NO_CANDIDATES))


class Place(IntEnum):
    """Where a pending workload is."""

    COMPETING = 0
    PARKED = 1
    HELD = 2
    IN_FLIGHT = 3


class _Bag:
    """A heap of entries that are in the same place. An entry that names another bag is stale here."""

    __slots__ = ("heap", "place")

    def __init__(self, place: Place) -> None:
        self.place = place
        self.heap: list[_Entry] = []

    def head(self) -> _Entry | None:
        """The first entry, after dropping stale ones."""
        heap = self.heap
        while heap and heap[0].bag is not self:
            heapq.heappop(heap)
        return heap[0] if heap else None


class _Entry:
    """A workload in the queue, and the bag it is in."""

    __slots__ = ("bag", "group", "info", "key")

    def __init__(self, info: WorkloadInfo, group: _Group, bag: _Bag) -> None:
        self.info = info
        self.key = info.order
        self.group = group
        self.bag = bag

    def __lt__(self, other: _Entry) -> bool:
        return self.key < other.key


class _Group:
    """Workloads of one shape that may, or may not, use the queue by their namespace.

    `parked_for` is why the whole shape was parked, None while it is not. `local` is their LocalQueue where it matters.
    """

    __slots__ = ("competing", "local", "matches", "parked", "parked_for")

    def __init__(self, *, matches: bool, local: str) -> None:
        self.matches = matches
        self.local = local
        self.competing = _Bag(Place.COMPETING)
        self.parked = _Bag(Place.PARKED)
        self.parked_for: QuotaReservedReason | None = None


class PendingQueue:
    """Pending workloads of one ClusterQueue.

    `namespace_matches` says whether a namespace may use the queue. With `usage`, which has the usage of a LocalQueue,
    workloads of the LocalQueue with the least come first.
    """

    def __init__(
        self,
        strategy: QueueingStrategy,
        namespace_matches: Callable[[str], bool],
        usage: Callable[[str], float] | None = None,
    ) -> None:
        self.strategy = strategy
        self._namespace_matches = namespace_matches
        self._usage = usage
        self._locals: dict[str, None] = {} if usage else {"": None}
        self._entries: dict[str, _Entry] = {}
        self._groups: dict[tuple[int, bool, str], _Group] = {}
        self._parked_groups: dict[int, _Group] = {}
        self._heads: list[_Entry] = []
        self._held: dict[str, _Entry] = {}
        self._held_bag = _Bag(Place.HELD)
        self._flight_bag = _Bag(Place.IN_FLIGHT)
        self._pop_cycle = 0
        self._reactivated_cycle = -1
        self._preemptor: tuple[str, bool] | None = None

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, key: str) -> bool:
        return key in self._entries

    @property
    def has_competitors(self) -> bool:
        """Whether `pop` would give a workload."""
        return self._head() is not None

    @property
    def is_by_usage(self) -> bool:
        """Whether its LocalQueues are ordered by their usage."""
        return self._usage is not None

    def order_of(self, info: WorkloadInfo) -> tuple[float, Key]:
        """Sorts pending workloads as `pop` gives them, but for preemptors that wait for their preemptions."""
        return (self._usage(info.workload.local_queue) if self._usage else 0.0), info.order

    def place_of(self, key: str) -> Place | None:
        """Where the workload is; None if it is not here."""
        entry = self._entries.get(key)
        return None if entry is None else entry.bag.place

    def blocker_of(self, key: str) -> str | None:
        """The head behind which StrictFIFO keeps a workload that competes; None where none does."""
        if self.strategy != "StrictFIFO" or self.place_of(key) is not Place.COMPETING:
            return None
        head = self._head()
        return None if head is None or head.info.key == key else head.info.key

    def keys(self, *places: Place) -> list[str]:
        """The workloads in these places, sorted by name."""
        return sorted(key for key, entry in self._entries.items() if entry.bag.place in places)

    def infos(self) -> Iterator[WorkloadInfo]:
        """Every pending workload, in no particular order."""
        return (entry.info for entry in self._entries.values())

    def parked_for(self, key: str) -> QuotaReservedReason | None:
        """Why the workload's whole shape was parked, if it was and the workload is parked."""
        entry = self._entries.get(key)
        if entry is None or entry.bag.place not in (Place.PARKED, Place.HELD):
            return None
        return entry.group.parked_for

    def push(self, info: WorkloadInfo, now: float, *, parked: bool = False, opened: bool = False) -> Place:
        """Add a workload, or take over its new state; where it went.

        One whose back-off runs is held; one whose shape is parked is parked with it, and so is one given as `parked`.
        One that comes because its LocalQueue has `opened` competes in any case (kueue pushToHeapIfNotTracked).
        """
        entry = self._entries.get(info.key)
        if entry is not None:
            if entry.bag is self._flight_bag:
                return Place.IN_FLIGHT
            self._forget(entry)
        if opened:
            return self._put(info, Place.COMPETING)
        if not info.backoff_expired(now):
            return self._put(info, Place.HELD)
        best_effort = self.strategy == "BestEffortFIFO"
        if parked or (best_effort and self._group(info).parked_for is not None):
            return self._put(info, Place.PARKED)
        return self._put(info, Place.COMPETING)

    def delete(self, key: str) -> bool:
        """Forget a workload; False if it was not here."""
        entry = self._entries.get(key)
        if entry is None:
            return False
        self._forget(entry)
        if self._preemptor is not None and self._preemptor[0] == key:
            self._preemptor = None
        return True

    def pop(self) -> WorkloadInfo | None:
        """Take the head out, in flight; None if none competes."""
        self._pop_cycle += 1
        entry = self._head() if self._usage else self._sticky() or self._head()
        if entry is None:
            return None
        entry.bag = self._flight_bag
        self._show_head(entry.group)
        return entry.info

    def is_preemptor(self, key: str) -> bool:
        """Whether the workload waits for its own preemptions to finish."""
        return self._preemptor is not None and self._preemptor[0] == key

    def requeue(self, info: WorkloadInfo, reason: RequeueReason, why: QuotaReservedReason | None, now: float) -> Place:
        """Put a workload back that was in flight; where it went.

        It competes again at once if the strategy is StrictFIFO, if preemption for it is under way, if it has flavors
        left to try, or if something changed since it was popped. Else it is parked, and for NoFit and for preemption
        without candidates, everything of its shape with it.
        """
        entry = self._entries.get(info.key)
        if entry is not None:
            self._forget(entry)
        if reason in _PREEMPTORS:
            self._preemptor = (info.key, self.strategy == "BestEffortFIFO")
        if self.strategy == "StrictFIFO":
            immediate = reason not in (RequeueReason.NAMESPACE_MISMATCH, RequeueReason.REFUSED)
        else:
            immediate = reason in _IMMEDIATE
        has_expired = info.backoff_expired(now)
        pending_flavors = info.last_progress is not None and info.last_progress.has_pending_flavors
        if has_expired and (immediate or self._reactivated_cycle >= self._pop_cycle or pending_flavors):
            return self._put(info, Place.COMPETING)
        place = self._put(info, Place.PARKED if has_expired else Place.HELD)
        if info.shape >= 0 and reason in _BULK and self.strategy == "BestEffortFIFO":
            for group in self._of_shape(info.shape):
                self._park_group(group, why or QuotaReservedReason.PENDING_EVALUATION)
        return place

    def reactivate(self, now: float) -> int:
        """Let everything parked compete again, except where the namespace does not match or a back-off runs."""
        self._reactivated_cycle = self._pop_cycle
        move_count = 0
        kept_groups: dict[int, _Group] = {}
        for group in self._parked_groups.values():
            group.parked_for = None
            if group.matches:
                move_count += len(group.parked.heap)
                self._merge(group, group.parked, group.competing, Place.COMPETING)
                self._show_head(group)
            elif group.parked.head() is not None:
                kept_groups[id(group)] = group
        self._parked_groups = kept_groups
        for key, entry in list(self._held.items()):
            if entry.group.matches and entry.info.backoff_expired(now):
                del self._held[key]
                self._enter(entry)
                move_count += 1
        return move_count

    def _group(self, info: WorkloadInfo) -> _Group:
        # Without equivalence tracking nothing is parked by shape, and the shape -1 is one group like any other.
        local = info.workload.local_queue if self._usage else ""
        key = (info.shape, self._namespace_matches(info.workload.namespace), local)
        group = self._groups.get(key)
        if group is None:
            group = self._groups[key] = _Group(matches=key[1], local=local)
            if self._usage:
                self._locals[local] = None
                group.parked_for = next(
                    (group.parked_for for group in self._of_shape(info.shape) if group.parked_for), None
                )
                if group.parked_for is not None:
                    self._parked_groups[id(group)] = group
        return group

    def _of_shape(self, shape: int) -> list[_Group]:
        keys = ((shape, matches, local) for local in self._locals for matches in (True, False))
        return [self._groups[key] for key in keys if key in self._groups]

    def _put(self, info: WorkloadInfo, place: Place) -> Place:
        group = self._group(info)
        entry = self._entries[info.key] = _Entry(info, group, self._held_bag)
        if place is Place.COMPETING:
            self._enter(entry)
        elif place is Place.PARKED:
            entry.bag = group.parked
            heapq.heappush(group.parked.heap, entry)
            self._parked_groups[id(group)] = group
        else:
            self._held[info.key] = entry
        return place

    def _enter(self, entry: _Entry) -> None:
        bag = entry.group.competing
        entry.bag = bag
        heapq.heappush(bag.heap, entry)
        if bag.heap[0] is entry and not self._usage:
            heapq.heappush(self._heads, entry)

    def _show_head(self, group: _Group) -> None:
        """Offer the group's first entry; older offers are recognised as stale."""
        head = group.competing.head()
        if head is None or self._usage:
            return
        if len(self._heads) > 2 * len(self._groups) + 64:
            self._heads = [first for g in self._groups.values() if (first := g.competing.head()) is not None]
            heapq.heapify(self._heads)
        else:
            heapq.heappush(self._heads, head)

    def _least_used(self, usage: Callable[[str], float]) -> _Entry | None:
        """The first of the LocalQueue with the least usage; a preemptor that waits comes first in its LocalQueue."""
        first = [head for group in self._groups.values() if (head := group.competing.head()) is not None]
        sticky = self._sticky()
        if sticky is not None:
            first.append(sticky)
        of = {local: usage(local) for local in {entry.group.local for entry in first}}
        return min(first, key=lambda entry: (of[entry.group.local], entry is not sticky, entry.key), default=None)

    def _head(self) -> _Entry | None:
        if self._usage:
            return self._least_used(self._usage)
        heads = self._heads
        while heads:
            entry = heads[0]
            if entry.bag is entry.group.competing and entry.group.competing.head() is entry:
                return entry
            heapq.heappop(heads)
        return None

    def _sticky(self) -> _Entry | None:
        if self._preemptor is None or not self._preemptor[1]:
            return None
        entry = self._entries.get(self._preemptor[0])
        return entry if entry is not None and entry.bag is entry.group.competing else None

    def _forget(self, entry: _Entry) -> None:
        del self._entries[entry.info.key]
        self._held.pop(entry.info.key, None)
        was_competing = entry.bag is entry.group.competing
        entry.bag = self._flight_bag
        if was_competing:
            self._show_head(entry.group)

    def _park_group(self, group: _Group, why: QuotaReservedReason) -> None:
        group.parked_for = why
        self._parked_groups[id(group)] = group
        self._merge(group, group.competing, group.parked, Place.PARKED)

    @staticmethod
    def _merge(group: _Group, source: _Bag, target: _Bag, place: Place) -> None:
        """Move everything from one bag of the group to the other, at the cost of the smaller one."""
        large, small = (source, target) if len(source.heap) >= len(target.heap) else (target, source)
        for entry in small.heap:
            if entry.bag is small:
                entry.bag = large
                heapq.heappush(large.heap, entry)
        small.heap = []
        large.place = place
        small.place = Place.PARKED if place is Place.COMPETING else Place.COMPETING
        if place is Place.COMPETING:
            group.competing, group.parked = large, small
        else:
            group.parked, group.competing = large, small
