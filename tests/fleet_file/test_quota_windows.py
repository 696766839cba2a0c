"""Quotas that are others in windows of time: which hold when, on which cluster, and what is refused."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.fleet_file.builders import standalone_data

from kueue_fleet.fleet_file import FleetSpec, parse_fleet
from kueue_fleet.fleet_file.model.per_cluster import quotas_on
from kueue_fleet.fleet_file.parse import read_fleet
from kueue_fleet.fleet_file.quota_windows import fleet_in, next_border, open_windows, quota_windows
from kueue_fleet.settings.windows import CalendarWindow, together
from small_fleets import SECOND_WORKER, WORKER, fleet_data

WEEKDAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday"]
NIGHT = {
    "name": "night",
    "start": "2026-03-23T20:00:00+01:00",
    "duration": "10h",
    "days": WEEKDAYS,
    "timeZone": "Europe/Berlin",
}
DAY = {**NIGHT, "name": "day", "start": "2026-03-24T06:00:00+01:00", "duration": "14h"}


def quota(**fields: Any) -> dict[str, Any]:
    return {"name": "nvidia.com/gpu", "nominalQuota": 8, **fields}


def data(*windows: Mapping[str, Any], workers: tuple[str, ...] = (), **fields: Any) -> dict[str, Any]:
    """One ClusterQueue with one quota, on a cluster of its own or on workers."""
    result = fleet_data(*workers) if workers else standalone_data()
    result["controller"] = {"image": "example.com/controller:1", "quotaWindows": list(windows)}
    if not workers:
        result["clusters"][0] = {"name": "batch", "role": "standalone", "region": "us-central1"}
    group = {"coveredResources": ["nvidia.com/gpu"], "flavors": [{"name": "l4", "resources": [quota(**fields)]}]}
    result["clusterQueues"][0] |= {"cohortName": "vision", "resourceGroups": [group]}
    return result


def amounts(fleet: FleetSpec, cluster: str) -> tuple[int, int | None]:
    """Nominal quota and borrowing limit there."""
    [group] = quotas_on(fleet, fleet.cluster_queues[0], cluster)
    [result] = group.flavors[0].resources
    limit = result.borrowing_limit
    return result.nominal_quota.value, None if limit is None else limit.value


def problems(made: dict[str, Any]) -> list[str]:
    """What is wrong with quotas and windows, but for resources without any."""
    result = (str(entry) for entry in read_fleet(made).problems if entry.rule.code != "KF741")
    return [item for item in result if "quotaWindows" in item or "resourceGroups" in item]


def test_by_the_clock_of_its_place_also_where_that_changes() -> None:
    fleet = parse_fleet(data(NIGHT, during={"night": {"nominalQuota": 32}}))
    # 20:00 in Berlin, before and after the clocks went forward on the 29th.
    for opens in (datetime(2026, 3, 27, 19, tzinfo=UTC), datetime(2026, 3, 30, 18, tzinfo=UTC)):
        assert open_windows(fleet, opens - timedelta(seconds=1)) == frozenset()
        assert open_windows(fleet, opens) == frozenset({"night"})
        assert open_windows(fleet, opens + timedelta(hours=10)) == frozenset()
        assert next_border(fleet, opens - timedelta(seconds=1)) == opens
        assert next_border(fleet, opens) == opens + timedelta(hours=10)


def test_before_the_first_and_after_the_last_opening() -> None:
    once = {"name": "night", "start": "2030-01-01T00:00:00Z", "duration": "1h"}
    fleet = parse_fleet(data(once, during={"night": {"nominalQuota": 32}}))
    begin = datetime(2030, 1, 1, tzinfo=UTC)
    assert next_border(fleet, datetime(2026, 1, 1, tzinfo=UTC)) == begin
    assert next_border(fleet, begin + timedelta(hours=1)) is None
    assert open_windows(fleet, begin + timedelta(minutes=59)) == frozenset({"night"})


def test_only_what_the_window_says_is_another_amount() -> None:
    fleet = parse_fleet(data(NIGHT, borrowingLimit=4, during={"night": {"nominalQuota": 32}}))
    assert amounts(fleet, "batch") == (8, 4)
    assert amounts(fleet_in(fleet, frozenset({"night"})), "batch") == (32, 4)
    assert fleet_in(fleet, frozenset({"other"})) is fleet


def test_a_cluster_keeps_amounts_of_its_own_unless_they_have_windows_too() -> None:
    own = {WORKER: {"nominalQuota": 2}, SECOND_WORKER: {"nominalQuota": 2, "during": {"night": {"nominalQuota": 0}}}}
    during = {"night": {"nominalQuota": 32, "borrowingLimit": 1}}
    fleet = parse_fleet(data(NIGHT, workers=(WORKER, SECOND_WORKER), perCluster=own, during=during))
    night = fleet_in(fleet, frozenset({"night"}))
    assert [amounts(night, name) for name in (WORKER, SECOND_WORKER)] == [(2, 1), (0, 1)]
    # The manager has the sum of its workers, with the headroom.
    assert amounts(night, fleet.home)[0] < amounts(fleet, fleet.home)[0]


def test_what_is_open_at_the_same_time_is_found_in_the_year_after_each_begins() -> None:
    windows = quota_windows(
        parse_fleet(data(NIGHT, DAY, during={"night": {"nominalQuota": 1}, "day": {"nominalQuota": 2}}))
    )
    assert set(together(windows)) == {frozenset({"night"}), frozenset({"day"})}


def test_two_windows_of_a_quota_that_are_open_at_once_are_refused() -> None:
    later = {**DAY, "start": "2031-03-24T05:00:00+01:00"}
    during = {"night": {"nominalQuota": 1}, "day": {"nominalQuota": 2}}
    [problem] = problems(data(NIGHT, later, during=during))
    assert problem == (
        "clusterQueues[gpu].resourceGroups[0].flavors[l4].resources[nvidia.com/gpu].during[day]: night and day are "
        "both open at 2031-03-25T04:00Z, so it has two amounts; let one of them end where the other begins, in "
        "controller.quotaWindows"
    )
    assert problems(data(NIGHT, DAY, during=during)) == []


@pytest.mark.parametrize(
    ("windows", "fields", "said"),
    [
        (
            [NIGHT],
            {"during": {"nigth": {"nominalQuota": 1}}},
            "there is no window nigth in controller.quotaWindows",
        ),
        ([NIGHT, NIGHT], {"during": {"night": {"nominalQuota": 1}}}, "quotaWindows[night]: is listed twice"),
        ([NIGHT], {}, "quotaWindows[night]: no quota is another one in it"),
        ([NIGHT], {"during": {"night": {"nominalQuota": -1}}}, "while night is open: -1 is negative"),
        ([NIGHT], {"during": {"night": {"nominalQuota": "half"}}}, 'during[night].nominalQuota: "half" is not'),
        (
            [NIGHT],
            {"during": {"night": {"lendingLimit": 9}}},
            "while night is open: 9 is more than the nominalQuota of 8",
        ),
        (
            [{**NIGHT, "duration": "30h"}],
            {"during": {"night": {}}},
            "is longer than the 24h after which it opens again",
        ),
        ([NIGHT], {"during": {"night": {"nominalQuota": 8}}}, "during[night]: has the amounts that hold without it"),
        (
            [{**NIGHT, "start": "2026-03-23T20:00:00Z"}],
            {"during": {"night": {"nominalQuota": 1}}},
            "quotaWindows[night].start: 2026-03-23T20:00:00Z is 21:00 on Monday by the clock of Europe/Berlin, by "
            "which it opens; write the time there, with +01:00",
        ),
        (
            [{**NIGHT, "timeZone": "UTC"}],
            {"during": {"night": {"nominalQuota": 1}}},
            "is 19:00 on Monday by the clock of UTC, by which it opens; name the place in timeZone",
        ),
        ([{**NIGHT, "duration": "0s"}], {"during": {"night": {"nominalQuota": 1}}}, "is not longer than 0"),
        ([{**NIGHT, "days": ["Mon"]}], {"during": {"night": {"nominalQuota": 1}}}, "quotaWindows[night].days"),
        ([{**NIGHT, "timeZone": "Berlin"}], {"during": {"night": {"nominalQuota": 1}}}, "there is no time zone Berlin"),
        ([{**NIGHT, "start": "20:00"}], {"during": {"night": {"nominalQuota": 1}}}, "quotaWindows[night].start"),
    ],
)
def test_wrong_windows_are_said(windows: list[dict[str, Any]], fields: dict[str, Any], said: str) -> None:
    assert any(said in problem for problem in problems(data(*windows, **fields)))


def test_right_windows_are_not_said_again_while_they_are_open() -> None:
    assert problems(data(NIGHT, during={"night": {"nominalQuota": 1}})) == []


def test_a_window_that_changes_nothing_refuses_no_fleet() -> None:
    assert read_fleet(data(NIGHT, workers=(WORKER,))).fleet is not None


def test_what_is_wrong_with_both_is_said_once_and_of_the_window_what_only_it_has() -> None:
    result = data(NIGHT, borrowingLimit=4, during={"night": {"nominalQuota": 32}})
    del result["clusterQueues"][0]["cohortName"]
    assert len([problem for problem in problems(result) if "borrowingLimit" in problem]) == 1


def test_cohorts_and_fleets_without_the_controller_have_no_windows() -> None:
    result = data(NIGHT, during={"night": {"nominalQuota": 32}})
    group = result["clusterQueues"][0]["resourceGroups"][0]
    result["cohorts"] = [{"name": "vision", "resourceGroups": [group]}]
    [problem, *_] = [item for item in problems(result) if "during" in item]
    assert problem.startswith(
        "cohorts[vision].resourceGroups[0].flavors[l4].resources[nvidia.com/gpu].during[night]: set, but"
    )
    del result["controller"], result["cohorts"]
    assert any("but only the fleet's controller writes quotas" in problem for problem in problems(result))


def test_kueues_own_automation_is_refused_beside_them() -> None:
    result = data(NIGHT, workers=(WORKER,), during={"night": {"nominalQuota": 32}})
    assert problems(result) == []
    result["kueue"] = {"configuration": {"featureGates": {"MultiKueueManagerQuotaAutomation": True}}}
    assert any("has windows, but with the feature gate" in problem for problem in problems(result))


def at_each_half_hour(windows: list[CalendarWindow], begin: datetime, days: int) -> dict[frozenset[str], datetime]:
    """The same as `together`, by looking every half hour."""
    names: list[set[str]] = [set() for _ in range(days * 48)]
    for window in windows:
        for start, end in window.opens(begin, begin + timedelta(days=days)):
            first, behind = (-((begin - border) // timedelta(minutes=30)) for border in (start, end))
            for those in names[max(0, first) : max(0, behind)]:
                those.add(window.name)
    result: dict[frozenset[str], datetime] = {}
    for number, those in enumerate(names):
        if those:
            result.setdefault(frozenset(those), begin + timedelta(minutes=30 * number))
    return result


def test_weeks_that_are_as_an_earlier_one_are_not_looked_at_again(monkeypatch: pytest.MonkeyPatch) -> None:
    zones = ("UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe")
    windows = [
        CalendarWindow.model_validate(
            {
                "name": f"w{number}",
                "start": f"{2026 + 2 * (number // 3)}-0{1 + number}-02T{3 * number:02d}:30:00Z",
                "duration": f"{5 + number}h",
                "days": WEEKDAYS[: 1 + number % 3],
                "timeZone": zones[number % 4],
            }
        )
        for number in range(6)
    ]
    once = {"name": "once", "start": "2026-03-29T00:00:00Z", "duration": "9000h"}
    windows.append(CalendarWindow.model_validate(once))
    begin = datetime(2026, 1, 1, tzinfo=UTC)
    assert together(windows) == at_each_half_hour(windows, begin, 1500)

    asked: list[timedelta] = []
    opens = CalendarWindow.opens

    def counted(self: CalendarWindow, begin: datetime, end: datetime) -> Iterator[tuple[datetime, datetime]]:
        asked.append(end - begin)
        return opens(self, begin, end)

    monkeypatch.setattr(CalendarWindow, "opens", counted)
    yearly = [window.model_copy(update={"start": begin.replace(year=2026 + n)}) for n, window in enumerate(windows[:6])]
    together(yearly)
    together_for = sum(asked, timedelta()) / len(yearly)
    assert together_for < timedelta(days=371 * 3), "six years and a week of 371 days were looked at whole"
