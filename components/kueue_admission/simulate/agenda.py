"""The virtual clock: what happens when, in the order of time and then of being planned.

Why leaping is exact: an engine changes only by events and by its own timers, so between two planned times nothing can
happen, and the clock goes from one to the next without steps that could be too coarse. Entries of the heap are
ordered by time and a number that no two share, so the order is total: it depends neither on hashes nor on which
action was compared first, and the same input gives the same run. An action may plan others for its own time or later
ones, never for earlier ones, so time does not run backwards.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable

Action = Callable[[float], None]
"""Called with the time it was planned for."""


class Agenda:
    """Planned actions. Two of the same time happen in the order in which they were planned.

    `happened` counts them. `jobs` are expected in all; `longest` are the seconds that the longest run of one of them
    takes, or the longest wait for an admission check so far. `progress_at` is when the last thing happens, as far as is
    known by now, of which there is only so much: a job arrives, is admitted for the first time, finishes, or an outage
    ends.
    """

    __slots__ = ("_heap", "_planned", "happened", "jobs", "longest", "progress_at")

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Action]] = []
        self._planned = 0
        self.happened = 0
        self.jobs = 0
        self.longest = 0.0
        self.progress_at = float("-inf")

    def expect(self, at: float, run_seconds: float | None) -> None:
        """A job will arrive, and runs for so long; None: until the end."""
        self.jobs += 1
        self.takes(run_seconds or 0.0)
        self.progress(at)

    def takes(self, seconds: float) -> None:
        """Something takes so long."""
        self.longest = max(self.longest, seconds)

    def progress(self, at: float) -> None:
        """There is progress at this time."""
        self.progress_at = max(self.progress_at, at)

    def plan(self, time: float, action: Action) -> None:
        """Let `action` happen at `time`."""
        heapq.heappush(self._heap, (time, self._planned, action))
        self._planned += 1

    @property
    def next_time(self) -> float | None:
        """When the next action happens; None if nothing is planned."""
        return self._heap[0][0] if self._heap else None

    def happen(self, now: float, most: float = math.inf) -> None:
        """Let everything happen that is due by `now`, also what that plans for `now`, but not more than `most`."""
        last = self.happened + most
        while self._heap and self._heap[0][0] <= now and self.happened < last:
            time, _, action = heapq.heappop(self._heap)
            self.happened += 1
            action(time)
