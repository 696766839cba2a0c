"""How much time for maintenance a window leaves that comes back, less the times that are excluded.

GKE wants at least 48 hours in any 32 days, counts stretches of 4 hours and more, and refuses a cluster that leaves it
less. A time in which no upgrades are allowed is taken as not available: with the longest that GKE grants, 30 days, 48
hours of 32 days are left. Source:
https://cloud.google.com/kubernetes-engine/docs/concepts/maintenance-windows-and-exclusions
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from itertools import accumulate, takewhile
from typing import Final, NamedTuple

REQUIRED: Final = timedelta(hours=48)
"""Least time for maintenance in every period."""
PERIOD: Final = timedelta(days=32)
"""Length of the periods."""
SHORTEST: Final = timedelta(hours=4)
"""Shorter stretches do not count."""
_LOOKED_AT: Final = timedelta(days=800)
"""How far from the first window on, and so over two years of a window that comes back by months or years."""
_FARTHEST: Final = timedelta(days=50 * 365)
"""Exclusions later than this after the first window are not looked at."""
_RULE: Final = re.compile(r"FREQ=(DAILY|WEEKLY|MONTHLY|YEARLY)(;[A-Z]+=[-+A-Z0-9,]+)*")
_PARTS: Final = frozenset(
    {"FREQ", "INTERVAL", "BYDAY", "BYMONTH", "BYMONTHDAY", "BYSETPOS", "BYWEEKNO", "BYYEARDAY", "WKST"}
)
_HELP: Final = "write one of RFC 5545, such as FREQ=WEEKLY;BYDAY=SA,SU"
_CYCLE: Final = 400
"""Years after which the Gregorian calendar repeats, days of the week included."""
_LAST_YEAR: Final = 9980


class Stretch(NamedTuple):
    """A time from one moment to another."""

    start: datetime
    end: datetime

    @property
    def length(self) -> timedelta:
        """How long it is."""
        return self.end - self.start


class Shortage(NamedTuple):
    """The 32 days that leave the least time."""

    start: datetime
    available: timedelta


class RecurrenceError(ValueError):
    """GKE does not take a recurrence, for what is `wrong`; `fix` says what to do."""

    def __init__(self, wrong: str, fix: str) -> None:
        super().__init__(f"{wrong}; {fix}")
        self.wrong, self.fix = wrong, fix


def starts(first: datetime, recurrence: str, last: datetime) -> list[datetime]:
    """When the windows begin, up to `last`. Raises RecurrenceError."""
    # Only files with windows pay for loading it.
    from dateutil.rrule import rrulestr

    if not _RULE.fullmatch(recurrence):
        raise RecurrenceError("is not a recurrence", _HELP)
    parts = {part.partition("=")[0] for part in recurrence.split(";")}
    if ends := parts & {"COUNT", "UNTIL"}:
        raise RecurrenceError(f"ends by its {min(ends)}, which leaves no time for maintenance", "remove that part")
    if other := parts - _PARTS:
        raise RecurrenceError(f"has {min(other)}, which windows do not take", "the time of day is that of start")
    # A rule that never holds is looked for until dateutil's last year: near it, that is soon.
    later = (_LAST_YEAR - first.year) // _CYCLE * _CYCLE
    try:
        rule = rrulestr(recurrence, dtstart=_shifted(first, later))
        moments = takewhile(lambda moment: moment <= _shifted(last, later), rule)
        return [_shifted(moment, -later) for moment in moments]
    except (ValueError, OverflowError, TypeError, IndexError, KeyError) as error:
        raise RecurrenceError(f"is not a recurrence ({error})", _HELP) from None


def _shifted(moment: datetime, years: int) -> datetime:
    return moment.replace(year=moment.year + years)


@lru_cache  # The clusters of a fleet mostly have the same window.
def shortage(window: Stretch, recurrence: str, stretches: tuple[Stretch, ...] = ()) -> Shortage | None:
    """The 32 days that leave GKE the least time, where that is less than it wants.

    `window` is the first one, which begins in this or the next two centuries, and `stretches` are the times without any
    upgrade. Raises RecurrenceError as `starts` does.
    """
    farthest = window.start + _FARTHEST
    holes = [stretch for stretch in stretches if window.start < stretch.end < farthest]
    looked_at = [Stretch(window.start, window.start + _LOOKED_AT)]
    looked_at += [Stretch(max(stretch.start - PERIOD, window.start), stretch.end + PERIOD) for stretch in holes]
    last = max(stretch.end for stretch in looked_at)
    windows = [Stretch(start, start + window.length) for start in starts(window.start, recurrence, last)]
    available = _Available([window for window in _without(_joined(windows), holes) if window.length >= SHORTEST])
    shortages = [available.least(stretch) for stretch in looked_at if stretch.length >= PERIOD]
    least = min(shortages, key=lambda each: (each.available, each.start))
    return least if least.available < REQUIRED else None


def _joined(stretches: Iterable[Stretch]) -> list[Stretch]:
    """Stretches that overlap or touch become one."""
    joined: list[Stretch] = []
    for stretch in sorted(stretches):
        if joined and stretch.start <= joined[-1].end:
            joined[-1] = Stretch(joined[-1].start, max(joined[-1].end, stretch.end))
        else:
            joined.append(stretch)
    return joined


def _without(stretches: list[Stretch], excluded_stretches: Sequence[Stretch]) -> list[Stretch]:
    for hole in excluded_stretches:
        rest = []
        for stretch in stretches:
            before = Stretch(stretch.start, min(stretch.end, hole.start))
            after = Stretch(max(stretch.start, hole.end), stretch.end)
            rest += [part for part in (before, after) if part.start < part.end]
        stretches = rest
    return stretches


class _Available:
    """Sums of stretches up to any moment."""

    def __init__(self, stretches: Sequence[Stretch]) -> None:
        self._stretches = stretches
        self._starts = [stretch.start for stretch in stretches]
        self._sums = list(accumulate((stretch.length for stretch in stretches), initial=timedelta(0)))

    def _until(self, moment: datetime) -> timedelta:
        index = bisect_right(self._starts, moment)
        if index == 0:
            return timedelta(0)
        last = self._stretches[index - 1]
        return self._sums[index - 1] + min(moment, last.end) - last.start

    def least(self, within: Stretch) -> Shortage:
        """The period of `within` that has least; it changes where one of its ends meets that of a stretch."""
        last = within.end - PERIOD
        edges = {within.start, last}
        for stretch in self._stretches:
            edges |= {stretch.start, stretch.end, stretch.start - PERIOD, stretch.end - PERIOD}
        sums = [Shortage(t, self._until(t + PERIOD) - self._until(t)) for t in edges if within.start <= t <= last]
        return min(sums, key=lambda each: (each.available, each.start))
