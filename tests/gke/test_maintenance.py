"""How much time for maintenance a window leaves."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drawn import examples
from kueue_fleet.gke.maintenance import PERIOD, REQUIRED, SHORTEST, Stretch, shortage, starts

SATURDAY = datetime(2026, 1, 3, tzinfo=UTC)
FREEZE = Stretch(datetime(2026, 12, 18, tzinfo=UTC), datetime(2027, 1, 8, tzinfo=UTC))


def window(begin: int, hours: int) -> Stretch:
    start = SATURDAY + timedelta(hours=begin)
    return Stretch(start, start + timedelta(hours=hours))


@pytest.mark.parametrize(
    ("begin", "hours", "recurrence", "available"),
    [
        (2, 6, "FREQ=WEEKLY;BYDAY=SA", 24),
        (2, 6, "FREQ=WEEKLY;BYDAY=SA,SU", None),
        (2, 5, "FREQ=WEEKLY;BYDAY=SA,SU", 40),
        (0, 3, "FREQ=DAILY", 0),
        (0, 4, "FREQ=DAILY", None),
        (0, 12, "FREQ=WEEKLY", None),
        (0, 12, "FREQ=WEEKLY;INTERVAL=2", 24),
        (0, 24, "FREQ=MONTHLY;BYDAY=1SA,2SA", 24),
        (0, 24, "FREQ=MONTHLY;BYMONTHDAY=1,2,3", None),
        (0, 24, "FREQ=YEARLY", 0),
        (0, 24, "FREQ=DAILY;BYMONTH=2;BYMONTHDAY=31", 0),
    ],
)
def test_forty_eight_hours_in_any_thirty_two_days(
    begin: int, hours: int, recurrence: str, available: int | None
) -> None:
    result = shortage(window(begin, hours), recurrence)
    assert (result and result.available) == (timedelta(hours=available) if available is not None else None)


def test_stretches_that_touch_are_one() -> None:
    """Two hours of each day do not count, two hours at midnight of a window that lasts until then do."""
    assert shortage(window(22, 24), "FREQ=WEEKLY;BYDAY=FR,SA") is None


@pytest.mark.parametrize(
    ("hours", "recurrence", "days", "available"),
    [
        (24, "FREQ=WEEKLY;BYDAY=SA,SU", 21, None),
        (8, "FREQ=WEEKLY;BYDAY=SA,SU", 21, 16),
        (24, "FREQ=WEEKLY;BYDAY=SA,SU", 30, 0),
        (24, "FREQ=DAILY", 30, None),
        (23, "FREQ=DAILY", 30, 46),
    ],
)
def test_times_without_upgrades_are_not_available(
    hours: int, recurrence: str, days: int, available: int | None
) -> None:
    stop = Stretch(FREEZE.start, FREEZE.start + timedelta(days=days))
    result = shortage(window(0, hours), recurrence, (stop,))
    assert (result and result.available) == (timedelta(hours=available) if available is not None else None)
    if result is not None:
        assert stop.start - PERIOD <= result.start <= stop.end


def test_a_stop_of_long_ago_or_far_away_is_not_looked_at() -> None:
    for year in (1, 2000, 9998):
        start = datetime(year, 1, 1, tzinfo=UTC)
        assert shortage(window(0, 24), "FREQ=DAILY", (Stretch(start, start + timedelta(days=90)),)) is None


@pytest.mark.parametrize(
    ("recurrence", "wrong"),
    [
        ("weekly", "is not a recurrence; write one"),
        ("FREQ=HOURLY", "is not a recurrence; write one"),
        ("FREQ=WEEKLY;BYDAY=XX", "is not a recurrence (invalid 'BYDAY': XX)"),
        ("FREQ=WEEKLY;INTERVAL=0", "is not a recurrence ("),
        ("FREQ=DAILY;COUNT=3", "ends by its COUNT"),
        ("FREQ=DAILY;UNTIL=20270101T000000Z", "ends by its UNTIL"),
        ("FREQ=DAILY;BYHOUR=3", "has BYHOUR"),
        ("FREQ=DAILY;NEVER=1", "has NEVER"),
    ],
)
def test_other_recurrences_are_refused(recurrence: str, wrong: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(wrong)}"):
        shortage(window(0, 24), recurrence)


def test_windows_begin_when_the_calendar_says() -> None:
    leap = datetime(2028, 2, 29, 2, tzinfo=UTC)
    assert starts(leap, "FREQ=YEARLY", datetime(2037, 1, 1, tzinfo=UTC)) == [
        leap,
        datetime(2032, 2, 29, 2, tzinfo=UTC),
        datetime(2036, 2, 29, 2, tzinfo=UTC),
    ]


HOURS = st.integers(1, 24)
DAYS = st.sets(st.sampled_from(["MO", "TU", "WE", "TH", "FR", "SA", "SU"]), min_size=1).map(sorted)


@settings(max_examples=examples(40), deadline=None)
@given(HOURS, DAYS, st.integers(0, 40), st.integers(0, 30))
def test_every_period_is_looked_at_hour_by_hour(hours: int, days: list[str], offset: int, length: int) -> None:
    """The same, counted for every hour at which a period can begin."""
    first, recurrence = window(0, hours), f"FREQ=WEEKLY;BYDAY={','.join(days)}"
    stop = Stretch(SATURDAY + timedelta(days=40 + offset), SATURDAY + timedelta(days=40 + offset + length))
    result = shortage(first, recurrence, (stop,))
    free = [False] * 24 * 130
    for start in starts(SATURDAY, recurrence, SATURDAY + timedelta(days=129)):
        hour = int((start - SATURDAY).total_seconds() // 3600)
        free[hour : hour + hours] = [True] * hours
    begin, end = (int((moment - SATURDAY).total_seconds() // 3600) for moment in stop)
    free[begin:end] = [False] * (end - begin)
    counted = _long_enough(free[: 24 * 129])
    period = int(PERIOD.total_seconds() // 3600)
    least = min(sum(counted[hour : hour + period]) for hour in range(24 * 96))
    assert (result is None) == (timedelta(hours=least) >= REQUIRED)
    if result is not None:
        assert result.available == timedelta(hours=least)


def _long_enough(free: list[bool]) -> list[int]:
    counted, run = [0] * len(free), 0
    for hour, open_ in enumerate([*free, False]):
        if open_:
            run += 1
            continue
        if timedelta(hours=run) >= SHORTEST:
            counted[hour - run : hour] = [1] * run
        run = 0
    return counted
