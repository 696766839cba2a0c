"""What is due when: what the engine must do as time passes."""

from __future__ import annotations

import heapq
from enum import IntEnum


class Timer(IntEnum):
    """Kinds of timers; those due at the same time go off in this order."""

    REACTIVATE = 0
    """Look at the parked workloads of a cohort tree (or of a queue without one) again."""
    BACKOFF = 1
    PODS_READY = 2
    MAX_EXECUTION = 3
    STATUS = 4
    """Write the status of a ClusterQueue."""
    SECOND_PASS = 5
    """Try to place the pods of a workload that has quota and all its checks ready."""
    PREEMPTION_GATE = 6
    """Let another variant of a workload preempt."""


class Timers:
    """Timers by kind and name. Setting one that runs keeps the earlier time; `cancel` forgets it."""

    __slots__ = ("_due", "_heap")

    def __init__(self) -> None:
        self._due: dict[tuple[Timer, str], float] = {}
        self._heap: list[tuple[float, Timer, str]] = []

    def set(self, kind: Timer, name: str, due: float) -> None:
        """Let it go off at `due`, or earlier if it is already set to."""
        due_time = self._due.get((kind, name))
        if due_time is None or due < due_time:
            self.reset(kind, name, due)

    def reset(self, kind: Timer, name: str, due: float) -> None:
        """Let it go off at `due`, whatever it was set to."""
        self._due[(kind, name)] = due
        heapq.heappush(self._heap, (due, kind, name))

    def cancel(self, kind: Timer, name: str) -> None:
        """Do not let it go off."""
        self._due.pop((kind, name), None)

    def cancel_missed(self, kind: Timer, name: str, now: float) -> None:
        """Do not let it go off if it should have before `now`."""
        if self._due.get((kind, name), now) < now:
            self.cancel(kind, name)

    def is_set(self, kind: Timer, name: str) -> bool:
        """Whether it will go off."""
        return (kind, name) in self._due

    def next_due(self) -> float | None:
        """When the next timer goes off."""
        self._drop_stale()
        return self._heap[0][0] if self._heap else None

    def pop_due(self, now: float) -> tuple[float, Timer, str] | None:
        """The next timer that is due by `now`, which is then no longer set."""
        heap = self._heap
        while heap and heap[0][0] <= now:
            due, kind, name = heapq.heappop(heap)
            if self._due.get((kind, name)) == due:
                del self._due[(kind, name)]
                return due, kind, name
        return None

    def _drop_stale(self) -> None:
        heap = self._heap
        while heap and self._due.get((heap[0][1], heap[0][2])) != heap[0][0]:
            heapq.heappop(heap)
