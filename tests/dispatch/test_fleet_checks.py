from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest

from kueue_admission.decide.model import CheckState
from kueue_fleet.dispatch import Bound, Residency, decide_check
from kueue_fleet.dispatch.fleet_checks import format_time
from kueue_fleet.settings.dispatch import FleetCheck, RunDuration
from kueue_fleet.settings.windows import WEEKDAYS, CalendarWindow

RUN = FleetCheck("dws", run_duration=RunDuration())
FREE = Residency()
WINDOWS = FleetCheck(
    "calendar",
    windows=(
        CalendarWindow("december", start="1970-01-01T00:33:20Z", duration="1000s"),
        CalendarWindow("november", start="1970-01-01T00:16:40Z", duration="500s"),
    ),
)
REGIONS = FleetCheck("regions")


@pytest.mark.parametrize("run", ["1", "604800", 3600.0])
def test_a_run_time_within_seven_days_passes(run: str | float) -> None:
    assert decide_check(RUN, run, FREE, (), 0.0).state is CheckState.READY


@pytest.mark.parametrize(
    ("run", "words"),
    [
        (None, "does not say how long it runs"),
        ("604801", "longer than 604800 s"),
        ("0", "is not a number of seconds above 0"),
        ("7d", "is not a number of seconds above 0"),
        ("-5", "is not a number of seconds above 0"),
        ("1e3", "is not a number of seconds above 0"),
        ("٣", "is not a number of seconds above 0"),
        ("9" * 400, "is not a number of seconds above 0"),
        ("", "is not a number of seconds above 0"),
    ],
)
def test_a_run_time_that_dws_would_refuse_is_rejected_with_what_to_do(run: str | None, words: str) -> None:
    decision = decide_check(RUN, run, FREE, (), 0.0)
    assert decision.state is CheckState.REJECTED
    assert words in decision.message
    assert "set annotation provreq.kueue.x-k8s.io/maxRunDurationSeconds" in decision.message


@pytest.mark.parametrize(("seconds", "text"), [(0.9, "1970-01-01T00:00:00Z"), (-62135596800.0, "0001-01-01T00:00:00Z")])
def test_times_are_written_as_kubernetes_reads_them(seconds: float, text: str) -> None:
    assert format_time(seconds) == text


def test_before_the_window_it_waits_with_the_opening_time() -> None:
    decision = decide_check(WINDOWS, "100", FREE, (), 10.0)
    assert decision.state is CheckState.PENDING
    assert decision.message == "Waits for window november, which opens at 1970-01-01T00:16:40Z"
    assert decision.retry_at == 1000.0


def test_it_is_let_in_when_the_window_opens() -> None:
    assert decide_check(WINDOWS, "100", FREE, (), 1000.0).state is CheckState.READY


@pytest.mark.parametrize(("now", "state"), [(1400.0, CheckState.READY), (1401.0, CheckState.PENDING)])
def test_it_must_end_before_the_window_closes(now: float, state: CheckState) -> None:
    assert decide_check(WINDOWS, "100", FREE, (), now).state is state


def test_a_run_longer_than_this_window_waits_for_a_longer_one() -> None:
    decision = decide_check(WINDOWS, "800", FREE, (), 1000.0)
    assert (decision.state, decision.retry_at) == (CheckState.PENDING, 2000.0)


BERLIN = ZoneInfo("Europe/Berlin")


def berlin(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=BERLIN).timestamp()


def nights(*days: int, hours: float = 12.0) -> FleetCheck:
    monday = datetime(2026, 10, 19, 20, tzinfo=BERLIN)
    named = [WEEKDAYS[day] for day in days]
    window = CalendarWindow("nights", start=monday, duration=f"{hours}h", days=named, time_zone="Europe/Berlin")
    return FleetCheck("nights", windows=[window])


@pytest.mark.parametrize(
    ("now", "opens"),
    [
        ("2026-10-01T12:00", "2026-10-19T20:00"),  # not before `start`
        ("2026-10-20T12:00", "2026-10-20T20:00"),
        ("2026-10-23T12:00", "2026-10-26T20:00"),  # over a weekend, and from summer to winter time
        ("2026-10-20T07:30", "2026-10-20T20:00"),  # open, but not for as long as the job needs
    ],
)
def test_a_window_of_the_week_opens_again_by_the_clock_of_its_place(now: str, opens: str) -> None:
    decision = decide_check(nights(0, 1, 2, 3), "3600", FREE, (), berlin(now))
    assert (decision.state, decision.retry_at) == (CheckState.PENDING, berlin(opens))


@pytest.mark.parametrize("now", ["2026-10-19T20:00", "2026-10-20T06:59", "2027-03-29T23:00"])
def test_a_window_of_the_week_is_open_over_midnight(now: str) -> None:
    assert decide_check(nights(0, 1), "3600", FREE, (), berlin(now)).state is CheckState.READY


@pytest.mark.parametrize("hours", [168.0, 100.0, 0.5])
def test_a_window_of_one_day_of_the_week_is_found_however_long_it_is(hours: float) -> None:
    decision = decide_check(nights(0, hours=hours), "1700", FREE, (), berlin("2026-10-26T20:05"))
    assert decision.state is (CheckState.PENDING if hours < 1 else CheckState.READY)


def test_a_run_longer_than_every_window_of_the_week_is_rejected() -> None:
    decision = decide_check(nights(0, 1), "50000", FREE, (), berlin("2026-10-20T12:00"))
    assert decision.state is CheckState.REJECTED
    assert "the longest of which lasts 43200 s" in decision.message


@pytest.mark.parametrize(
    ("run", "now", "words"),
    [
        ("1001", 0.0, "fits into none of the windows"),
        ("900", 2500.0, "fits into none of the windows"),
        ("1", 3000.0, "The last window closed"),
    ],
)
def test_a_run_that_fits_into_no_window_is_rejected(run: str, now: float, words: str) -> None:
    decision = decide_check(WINDOWS, run, FREE, (), now)
    assert decision.state is CheckState.REJECTED
    assert words in decision.message


def test_without_a_run_time_it_may_start_while_a_window_is_open() -> None:
    assert decide_check(WINDOWS, None, FREE, (), 1499.0).state is CheckState.READY


@pytest.mark.parametrize("run", ["0", 0.0])
def test_a_run_of_no_time_fits_into_no_window(run: str | float) -> None:
    assert decide_check(WINDOWS, run, FREE, (), 1400.0).state is CheckState.REJECTED


def test_a_run_time_that_cannot_be_read_fits_into_no_window() -> None:
    decision = decide_check(WINDOWS, "7d", FREE, (), 1400.0)
    assert decision.state is CheckState.REJECTED
    assert "'7d' is not a number of seconds above 0" in decision.message


@pytest.mark.parametrize("regions", [(), (None,), ("us-east4", None)])
def test_while_not_all_workers_are_known_who_is_bound_to_a_region_waits(regions: tuple[str | None, ...]) -> None:
    residency = Residency((Bound(frozenset({"europe-west4"}), "label x of the workload"),))
    assert decide_check(REGIONS, None, residency, regions, 0.0).state is CheckState.PENDING
    assert decide_check(REGIONS, None, FREE, regions, 0.0).state is CheckState.READY


def test_no_worker_where_the_data_may_be() -> None:
    residency = Residency((Bound(frozenset({"europe-west4"}), "label x of the workload"),))
    assert decide_check(REGIONS, None, residency, ("us-east4", "europe-west4"), 0.0).state is CheckState.READY
    decision = decide_check(REGIONS, None, residency, ("us-east4",), 0.0)
    assert decision.state is CheckState.REJECTED
    assert "the workers are in us-east4, but label x of the workload allows only europe-west4" in decision.message


def test_what_is_not_looked_at_does_not_matter() -> None:
    assert decide_check(FleetCheck("none", regions=False), "junk", FREE, (), 0.0).state is CheckState.READY
