"""What Kueue did and when, read from its log: the moments that are the core's input, and what it decided in each.

A trace is a list of items in order, times in milliseconds:

    ["c", MS, NUMBER, HEADS, TIMES, LAST]  a scheduling cycle with heads of the scenario; it ran so many times in a row
                                       with the same result, until LAST. A head is [NAME, OUTCOME] in the order of
                                       processing; the outcome is `assumed`, `accounted`, or why it was queued again
    ["m", MS, NODE]                    the parked workloads of a cohort tree or of a ClusterQueue were looked at again
    ["u", MS, NAME]                    Kueue saw a new state of a workload with quota
    ["p", MS, NAME]                    Kueue saw a new state of a workload without quota
    ["r", MS, NAME]                    Kueue saw that the pods of a workload are ready
    ["f", MS, NAME]                    Kueue saw that a workload is over which the script has not finished
    ["e", MS]                          Kueue saw the event of the round
    ["t", MS, LOCALQUEUE, USED]        the usage of a LocalQueue was sampled, and is this now
    ["s", MS, LOCALQUEUE, USED, NAME]  the same, because a workload was admitted whose penalty is part of it now
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

Json = dict[str, Any]
Heads = list[list[str]]

PERIOD = 6
"""A StrictFIFO head goes through one, two or three flavors again and again."""

_MARKS = (
    b'"Obtained heads"', b'"Attempting to schedule workload"', b'"Workload assumed in the cache"',
    b'"Workload re-queued', b"because it's already accounted", b'"Scheduling cycle complete"',
    b'"Attempting to move workloads"', b'"Resetting the head of the ClusterQueue"',
    b'"Workload create event"', b'"Workload update event"', b'"Workload delete event"',
    b'"Updated AFS consumed',
    b'"Reconcile Node"',
    b'"ClusterQueue update event"', b'"Queue update event"',
    b'"ResourceFlavor create event"', b'"Cohort is being created or updated"',
    b'"ClusterQueue create event"', b'"LocalQueue create event"',
)  # fmt: skip


class Line(NamedTuple):
    """A line of the log that matters; `at` is a Unix time, `number` orders lines."""

    number: int
    at: float
    text: str
    data: Json


class Log:
    """Kueue's log from now on."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._position = path.stat().st_size
        self._number = 0

    def read(self) -> Iterator[Line]:
        """The lines that were written since the last call."""
        with self._path.open("rb") as log:
            log.seek(self._position)
            for line in log:
                if not line.endswith(b"\n"):
                    return
                self._position += len(line)
                self._number += 1
                if any(mark in line for mark in _MARKS):
                    data = json.loads(line)
                    at = datetime.fromisoformat(data["ts"]).timestamp()
                    yield Line(self._number, at, data["msg"], data)


class Cycle:
    """One scheduling cycle, as far as it concerns one scenario."""

    def __init__(self, number: int, at: float) -> None:
        self.number = number
        self.at = at
        self.order: list[str] = []
        self.outcomes: dict[str, str] = {}

    def heads(self, is_alone: Callable[[str], bool]) -> Heads:
        """Names with what became of each: first those of the cohort tree in their order, then the others by name.

        Between queues without a cohort there is no order, and none for those that were not even attempted.
        """
        in_order = [name for name in self.order if not is_alone(name)]
        others = sorted({*self.order, *self.outcomes} - set(in_order))
        return [[name, self.outcomes.get(name, "nothing")] for name in (*in_order, *others)]


class Trace:
    """The items of one scenario in one round, in the order of the log's lines.

    Kueue never rests while a StrictFIFO queue has a head that it cannot admit. Cycles that repeat themselves are kept
    for two periods, then left out by whole periods.
    """

    def __init__(self, is_alone: Callable[[str], bool], *, writes_matter: bool = False) -> None:
        self._is_alone = is_alone
        self._writes_matter = writes_matter
        """Whether Kueue forgets where a search through flavors stopped when it sees what it wrote about it."""
        self._items: list[tuple[int, float, list[Any]]] = []
        self._cycles: dict[int, tuple[int, Cycle]] = {}
        self._idle: list[Heads] = []
        """The heads of the last cycles, if they are the last items and admitted nobody."""

    def add(self, line: Line, kind: str, *rest: Any) -> None:
        """One item that is not a cycle. Samples leave cycles that repeat themselves as they are."""
        of_idle = kind == "p" and bool(self._idle) and rest[0] in (name for name, _ in self._idle[-1])
        if of_idle and not self._writes_matter:
            return
        self._items.append((line.number, line.at, [kind, *rest]))
        if kind != "t" and not of_idle:
            self._idle = []

    def cycle(self, start: Line) -> Cycle:
        """The cycle that began with this line."""
        number = start.data["schedulingCycle"]
        if number not in self._cycles:
            self._cycles[number] = (start.number, Cycle(number, start.at))
        return self._cycles[number][1]

    def complete(self, number: int) -> bool:
        """Closes a cycle; whether it brought anything new."""
        if number not in self._cycles:
            return False
        place, cycle = self._cycles.pop(number)
        heads = cycle.heads(self._is_alone)
        self._items.append((place, cycle.at, ["c", number, heads]))
        if any(outcome == "assumed" for _, outcome in heads):
            self._idle = []
            return True
        known = heads in self._idle[-PERIOD:]
        self._idle.append(heads)
        if self._writes_matter:
            return not known
        if len(self._idle) > 2 * PERIOD and self._idle[-PERIOD:] == self._idle[-2 * PERIOD : -PERIOD]:
            del self._idle[-PERIOD:]
            cycles = [place for place, (_, _, item) in enumerate(self._items) if item[0] == "c"]
            for place in reversed(cycles[-PERIOD:]):
                del self._items[place]
        return not known

    def take(self, base: float, first_cycle: int) -> list[list[Any]]:
        """The items so far, with times since `base`, and equal cycles in a row as one; the trace is empty then."""
        result: list[list[Any]] = []
        for _, at, (kind, *rest) in sorted(self._items):
            ms = round((at - base) * 1000)
            if kind != "c":
                result.append([kind, ms, *rest])
                continue
            number, heads = rest
            number -= first_cycle - 1
            last: list[Any] = result[-1] if result else [""]
            if last[0] == "c" and last[3] == heads and last[2] + last[4] == number:
                last[4] += 1
                last[5] = ms
            else:
                result.append(["c", ms, number, heads, 1, ms])
        self._items, self._idle = [], []
        return result
