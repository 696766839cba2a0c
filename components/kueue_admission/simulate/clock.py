"""Lets virtual time pass, and always comes to an end.

A simulation continues until the second that was requested, or until nothing more happens. Some fleets never come to
rest: a job that no worker can hold is offered and given up again and again, a job on Spot nodes may lose them more
often than it can finish. Without a requested end, a run like this ends when only the same has happened for a long time,
or too often.
With delays of zero even two decisions that undo each other would leave no time for anything else, so no more can happen
in a second than a number that the input gives.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from heapq import heappop, heappush
from typing import Final

from kueue_admission.simulate.agenda import Agenda
from kueue_admission.simulate.cluster import SimulatedCluster

REPEATS_SECONDS: Final = 86_400.0
"""Without a requested end, a simulation continues this long, and twice the longest run or wait, after progress."""

_MOST_REPEATS_BY_JOB: Final = 10_000
_QUIET_WAKES: Final = 1000
_MOST_A_SECOND: Final = 1000
_MOST_A_SECOND_BY_JOB: Final = 20

Watch = Callable[[float], bool]
"""Called with the seconds since the start before anything happens; the simulation continues if the answer is true."""


class EndReason(StrEnum):
    """Why a simulation is over."""

    NOTHING_MORE = "NothingMore"
    """Nothing more happens."""
    UNTIL = "Until"
    """It has reached the requested second."""
    REPEATS = "Repeats"
    """No job arrived, was admitted for the first time, or finished for long, and the same happened again and again."""
    NEVER_SETTLES = "NeverSettles"
    """More happened within a second than could lead anywhere."""
    INTERRUPTED = "Interrupted"
    """The user interrupted it."""


@dataclass(frozen=True, slots=True)
class End:
    """Why a simulation is over, and the time up to which it is known what happened."""

    reason: EndReason
    at: float


def drive(
    agenda: Agenda, clusters: Sequence[SimulatedCluster], start: float, until: float | None, watch: Watch | None = None
) -> End:
    """Let time pass until `until`, or until nothing more happens.

    Timers that only try again what fails each time do not count as something happening.
    """
    pace = _Pace(agenda, sum(cluster.patience for cluster in clusters))
    every = _Clusters(clusters)
    now, quiet = start, 0
    while True:
        due = min(every.next_wake(), math.inf if agenda.next_time is None else agenda.next_time)
        over = due == math.inf or quiet > _QUIET_WAKES
        if until is not None and (over or max(now, due) > until):
            return End(EndReason.UNTIL, until)
        if over:
            return End(EndReason.NOTHING_MORE, now)
        if watch is not None and not watch(now - start):
            return End(EndReason.INTERRUPTED, now)
        now = max(now, due)
        event_count, changes = agenda.happened, every.changes
        pause_left = pace.left(now, event_count + every.cycles)
        if pause_left <= 0:
            return End(EndReason.NEVER_SETTLES, now)
        if until is None and pace.repeats:
            return End(EndReason.REPEATS, now)
        agenda.happen(now, pause_left)
        every.wake(now)
        has_changed = agenda.happened > event_count or agenda.next_time is not None or every.changes > changes
        quiet = 0 if has_changed else quiet + 1


class _Clusters:
    """All clusters. Those to which nothing was done are not asked again: a step takes no longer in a large fleet."""

    def __init__(self, clusters: Sequence[SimulatedCluster]) -> None:
        self._clusters = clusters
        self._wakes = [math.inf] * len(clusters)
        self._due: list[tuple[float, int]] = []
        """When each has something to do, as a heap; only those that are in `_wakes` too are valid."""
        self._counted = [(0, 0)] * len(clusters)
        self._touched = set(range(len(clusters)))
        self._turn = len(clusters)
        self._turns: list[int] = []
        self.changes = self.cycles = 0
        for index, cluster in enumerate(clusters):
            cluster.touch = partial(self._touch, index)
        self._ask()

    def next_wake(self) -> float:
        """When the first of them has anything to do; infinity: none has."""
        while self._due and self._due[0][0] != self._wakes[self._due[0][1]]:
            heappop(self._due)
        return self._due[0][0] if self._due else math.inf

    def wake(self, now: float) -> None:
        """Wake those, in their order, that have something to do, or to which something was done."""
        while self.next_wake() <= now:
            self._touched.add(heappop(self._due)[1])
        self._turns = sorted(self._touched)
        while self._turns:
            self._turn = heappop(self._turns)
            self._clusters[self._turn].wake(now)
        self._turn = len(self._clusters)
        self._ask()

    def _touch(self, index: int) -> None:
        if index not in self._touched:
            self._touched.add(index)
            if index > self._turn:
                heappush(self._turns, index)

    def _ask(self) -> None:
        for index in self._touched:
            cluster = self._clusters[index]
            wake = cluster.next_wake()
            self._wakes[index] = math.inf if wake is None else wake
            if wake is not None:
                heappush(self._due, (wake, index))
            changes, cycles = self._counted[index]
            self._counted[index] = cluster.changes, cluster.engine.cycles
            self.changes += cluster.changes - changes
            self.cycles += cluster.engine.cycles - cycles
        self._touched.clear()


class _Pace:
    """How much happens: steps, which are actions and cycles, by the second and since there was progress.

    `patience` is that of all clusters together.
    """

    def __init__(self, agenda: Agenda, patience: int) -> None:
        self._agenda = agenda
        self._most = _MOST_A_SECOND + _MOST_A_SECOND_BY_JOB * patience * agenda.jobs
        self._second = self._progress_at = float("-inf")
        self._steps_before_second = self._steps_before_progress = 0
        self.repeats = False
        """Whether only the same has happened again and again since the last progress."""

    def left(self, now: float, steps: int) -> int:
        """How much more may happen within a second from the first time at which anything did, after these steps."""
        agenda = self._agenda
        if now - self._second >= 1:
            self._second, self._steps_before_second = now, steps
        if agenda.progress_at != self._progress_at:
            self._progress_at, self._steps_before_progress = agenda.progress_at, steps
        is_late = now - agenda.progress_at > REPEATS_SECONDS + 2 * agenda.longest
        most = _QUIET_WAKES + (0 if is_late else _MOST_REPEATS_BY_JOB * agenda.jobs)
        self.repeats = steps - self._steps_before_progress > most
        return self._steps_before_second + self._most - steps
