"""Windows of time: when each is open, and which are open together."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache, lru_cache
from itertools import pairwise
from typing import Final, Literal, get_args
from zoneinfo import ZoneInfo, available_timezones

from pydantic import Field

from kueue_admission.kernel.base import DnsLabel, RuledModel, Text
from kueue_admission.kernel.duration import DurationField
from kueue_admission.kernel.form_rules import BAD_AMOUNT, NEEDED, OUT_OF_RANGE, UNKNOWN_NAME
from kueue_admission.kernel.given import ListOf
from kueue_admission.kernel.problem import Problem
from kueue_admission.kernel.suggest import instead
from kueue_admission.kernel.timestamp import TimestampField

Weekday = Literal["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
"""A day of the week."""
WEEKDAYS: Final[tuple[Weekday, ...]] = get_args(Weekday)
"""From Monday on."""
_DAY: Final = timedelta(days=1)
_WEEK: Final = timedelta(days=7)
_YEAR: Final = timedelta(days=371)
"""It has every week and every change of the clocks."""
_MARGIN: Final = 9
"""Days, more than a window that opens on days of the week is open at once."""


class CalendarWindow(RuledModel):
    """A time in which jobs may run, or quotas are others: once, as when reserved calendar capacity is there, or on days
    of every week."""

    name: DnsLabel = Field(kw_only=False)
    """What messages call the window."""
    start: TimestampField
    """With a time zone: 2026-12-01T00:00:00Z."""
    duration: DurationField
    """How long it lasts, such as 336h."""
    days: ListOf[Weekday] = ()
    """Days of the week on which it opens, from `start` on, at the time of day of `start`; default: it opens once."""
    time_zone: Text = "UTC"
    """By the clock of which place it opens on `days`, as the IANA names it: Europe/Berlin; default UTC."""

    def own_problems(self) -> Iterator[Problem]:
        """A point in time, and a length that ends before it opens again."""
        if self.start.tzinfo is None:
            yield BAD_AMOUNT.at(
                "start", f"{self.start.isoformat()} has no time zone", f"write {self.start.isoformat()}Z"
            )
        if self.duration.nanoseconds <= 0:
            yield OUT_OF_RANGE.at(
                "duration", f"{self.duration} is not longer than 0", "write how long it lasts, such as 336h"
            )
        elif self.days and self.duration.seconds > 3600 * (gap := self._least_gap()):
            wrong = f"{self.duration} is longer than the {gap}h after which it opens again"
            yield OUT_OF_RANGE.at("duration", wrong, "make it shorter, or name fewer days")
        yield from self.listed_once("days", "day")
        if self.time_zone != "UTC":
            yield from self._zone_problems()

    def _least_gap(self) -> int:
        """Hours from one opening to the next, at least."""
        days = sorted({WEEKDAYS.index(day) for day in self.days})
        return 24 * min(after - before for before, after in pairwise([*days, days[0] + len(WEEKDAYS)]))

    def opens(self, begin: datetime, end: datetime) -> Iterator[tuple[datetime, datetime]]:
        """Start and end, in UTC, of the times at which it is open between two points in time."""
        length, at = timedelta(seconds=self.duration.seconds), self.start.astimezone(UTC)
        if not self.days:
            yield at, at + length
            return
        local = self.start.astimezone(ZoneInfo(self.time_zone))
        first = (max(begin, at) - length).date()
        weekdays = {WEEKDAYS.index(day) for day in self.days}
        for number in range((end.date() - first).days + 2):
            day = first + timedelta(days=number)
            if day.weekday() not in weekdays:
                continue
            opens = datetime.combine(day, local.timetz()).astimezone(UTC)
            if at <= opens < end and begin < opens + length:
                yield opens, opens + length

    def _zone_problems(self) -> Iterator[Problem]:
        if not self.days:
            yield NEEDED.at("timeZone", "set, but days is not", "name the days on which it opens, or remove timeZone")
        elif self.time_zone not in (zones := _zones()):
            fix = instead(self.time_zone, sorted(zones), "time zones")
            yield UNKNOWN_NAME.at("timeZone", f"there is no time zone {self.time_zone}", fix)


def names_open(windows: Iterable[CalendarWindow], now: datetime) -> frozenset[str]:
    """The names of those that are open at `now`."""
    second = now + timedelta(seconds=1)
    return frozenset(
        window.name for window in windows if any(start <= now < end for start, end in window.opens(now, second))
    )


@cache
def _zones() -> Collection[str]:
    return frozenset(available_timezones())


def together(windows: Iterable[CalendarWindow]) -> Mapping[frozenset[str], datetime]:
    """Which windows are ever open at the same time, and when first: in the year after each of them begins."""
    return _together(tuple(windows))


@lru_cache(maxsize=16)
def _together(windows: tuple[CalendarWindow, ...]) -> Mapping[frozenset[str], datetime]:
    earliest_by_names: dict[frozenset[str], datetime] = {}
    for begin, end in _years(sorted(window.start.astimezone(UTC) for window in windows)):
        for week, over in _weeks(windows, begin, end):
            for at, names in _changes(windows, week, over):
                earliest_by_names.setdefault(names, at)
    return earliest_by_names


def _years(starts: Iterable[datetime]) -> Iterator[tuple[datetime, datetime]]:
    """The year after each start, those that overlap as one."""
    begin = end = None
    for start in starts:
        if begin is None or end is None or start > end:
            if begin is not None and end is not None:
                yield begin, end
            begin = start
        end = start + _YEAR
    if begin is not None and end is not None:
        yield begin, end


def _weeks(windows: Sequence[CalendarWindow], begin: datetime, end: datetime) -> Iterator[tuple[datetime, datetime]]:
    """The weeks between two points in time, but for those that are as an earlier one: the same windows have begun, and
    the clocks of their places show the same."""
    days = (end - begin).days + 2 * _MARGIN
    zones = {window.time_zone: ZoneInfo(window.time_zone) for window in windows if window.days}
    noons = [begin + (number - _MARGIN) * _DAY for number in range(days)]
    clocks = [tuple(noon.astimezone(zone).utcoffset() for zone in zones.values()) for noon in noons]
    borders = sorted(
        border.astimezone(UTC)
        for window in windows
        for border in (window.start, *(() if window.days else (over for _, over in window.opens(begin, end))))
    )
    weeks_passed, seen_states = 0, set[object]()
    for number in range(0, (end - begin).days + 1, _WEEK.days):
        week = begin + number * _DAY
        over = min(week + _WEEK, end)
        while weeks_passed < len(borders) and borders[weeks_passed] < week - _MARGIN * _DAY:
            weeks_passed += 1
        steady = weeks_passed == len(borders) or borders[weeks_passed] >= over
        like = (weeks_passed, tuple(clocks[number : number + _WEEK.days + 2 * _MARGIN]))
        if not steady or like not in seen_states:
            yield week, over
        if steady and over == week + _WEEK:
            seen_states.add(like)


def _changes(
    windows: Sequence[CalendarWindow], begin: datetime, end: datetime
) -> Iterator[tuple[datetime, frozenset[str]]]:
    """Which windows are open from each point in time between these on at which one opens or closes, if any is."""
    changes: dict[datetime, list[tuple[bool, str]]] = {}
    for window in windows:
        for start, over in window.opens(begin - timedelta(seconds=1), end):
            changes.setdefault(start, []).append((True, window.name))
            changes.setdefault(over, []).append((False, window.name))
    open_counts: Counter[str] = Counter()
    for at in sorted(changes):
        for opens, name in changes[at]:
            open_counts[name] += 1 if opens else -1
        now = frozenset(name for name, count in open_counts.items() if count > 0)
        if now and begin <= at < end:
            yield at, now
