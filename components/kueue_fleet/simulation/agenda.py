"""The virtual clock: what happens when, in the order of time and then of being planned."""

from __future__ import annotations

import heapq
from collections.abc import Callable

Action = Callable[[float], None]
"""Called with the time it was planned for."""


class Agenda:
    """Planned actions. Two of the same time happen in the order in which they were planned."""

    __slots__ = ("_heap", "_planned")

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Action]] = []
        self._planned = 0

    def plan(self, time: float, action: Action) -> None:
        """Let `action` happen at `time`."""
        heapq.heappush(self._heap, (time, self._planned, action))
        self._planned += 1

    @property
    def next_time(self) -> float | None:
        """When the next action happens; None if nothing is planned."""
        return self._heap[0][0] if self._heap else None

    def happen(self, now: float) -> bool:
        """Let everything happen that is due by `now`, also what that plans for `now`; whether anything was."""
        any_due = False
        while self._heap and self._heap[0][0] <= now:
            time, _, action = heapq.heappop(self._heap)
            action(time)
            any_due = True
        return any_due
