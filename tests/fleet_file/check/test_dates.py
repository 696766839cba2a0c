"""What is due on a day."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any

import pytest
from tests.fleet_file.builders import changed, fleet, fleet_data
from tests.fleet_file.pool_builders import pools_data

from kueue_fleet.fleet_file import check_dates, parse_fleet

ROTATE_BY = date(2027, 2, 1)
CREDENTIALS = {"type": "ServiceAccountToken", "rotation": "2026-11", "rotateBy": str(ROTATE_BY)}
EXTERNAL = {"dispatcher": "External", "external": {"name": "kueue-fleet.dev/dispatcher"}}


@pytest.mark.parametrize(
    ("days_left", "wrong"),
    [
        (14, "2027-02-01 is in 14 days"),
        (1, "2027-02-01 is tomorrow"),
        (0, "2027-02-01 is today"),
        (-1, "2027-02-01 was 1 day ago"),
        (-40, "2027-02-01 was 40 days ago"),
    ],
)
def test_a_credential_that_is_due_is_a_warning(days_left: int, wrong: str) -> None:
    spec = parse_fleet(changed(fleet_data(), {"multiKueue/credentials": CREDENTIALS}))
    [problem] = check_dates(spec, ROTATE_BY - timedelta(days=days_left))
    assert problem.severity == "warning"
    assert str(problem) == (
        f"multiKueue.credentials.rotateBy: {wrong}; run kueue-fleet rotate and write a later date; or write a new "
        "rotation serial as well, then apply"
    )


def test_a_credential_that_is_not_due_yet_is_silent() -> None:
    spec = parse_fleet(changed(fleet_data(), {"multiKueue/credentials": CREDENTIALS}))
    assert check_dates(spec, ROTATE_BY - timedelta(days=15)) == []


@pytest.mark.parametrize("controller", [None, {"image": "example.com/controller:1"}])
def test_a_credential_may_not_be_due_in_many_years(controller: dict[str, Any] | None) -> None:
    data = changed(fleet_data(), {"multiKueue/credentials": CREDENTIALS})
    if controller is not None:
        data = changed(data, {"controller": controller})
        data["multiKueue"] |= EXTERNAL
    spec = parse_fleet(data)
    assert check_dates(spec, ROTATE_BY - timedelta(days=366)) == []
    [problem] = check_dates(spec, ROTATE_BY - timedelta(days=367))
    assert problem.severity == "warning"
    assert str(problem) == (
        "multiKueue.credentials.rotateBy: 2027-02-01 is in 367 days, and the first token is valid until it is "
        "replaced; write a day within 366 days"
    )


def test_where_the_controller_renews_tokens_no_date_passes() -> None:
    for credentials in (CREDENTIALS, {"type": "ServiceAccountToken", "rotation": "2026-11"}):
        data = changed(fleet_data(), {"controller": {"image": "example.com/controller:1"}})
        data["multiKueue"] |= {**EXTERNAL, "credentials": credentials}
        assert check_dates(parse_fleet(data), date(2999, 1, 1)) == []


def test_a_cluster_profile_has_no_date() -> None:
    data = changed(
        fleet_data(), {"multiKueue/credentials": {"type": "ClusterProfile", "pluginImage": "example.com/plugin:1"}}
    )
    assert check_dates(parse_fleet(data), date(2999, 1, 1)) == []


def test_a_fleet_of_one_cluster_has_no_credential() -> None:
    standalone = fleet().model_copy(update={"multi_kueue": None})
    assert check_dates(standalone, date(2999, 1, 1)) == []


CALENDAR: dict[str, tuple[dict[str, Any], date, list[str]]] = {
    "before": ({}, date(2026, 11, 30), []),
    "begun": (
        {"futureReservations/0/planningStatus": "SUBMITTED"},
        date(2026, 12, 1),
        [
            "nodePools[calendar].capacity.duration: reservation december ends on 2026-12-15, in 14 days: Google "
            "removes its nodes then, and the pods of jobs that still run fail; keep longer jobs out with an "
            "entry of controller.checks that has windows, or with stopPolicy Hold on its queues"
        ],
    ),
    "begun and closed": (
        {"nodePools/5/capacity/active": False},
        date(2026, 12, 1),
        [
            "nodePools[calendar].capacity.active: false, but reservation december began on 2026-12-01, so nodes that "
            "are paid for wait; remove it, and run pulumi up once the reservation is there",
            "futureReservations[december].start: 2026-12-01 is not in the future, and nothing was asked of Google yet; "
            "write a later start, or remove it",
        ],
    ),
    "begun and open": (
        {"nodePools/5/capacity/active": True, "futureReservations/0/planningStatus": "SUBMITTED"},
        date(2026, 12, 5),
        [
            "nodePools[calendar].capacity.duration: reservation december ends on 2026-12-15, in 10 days: Google "
            "removes its nodes then, and the pods of jobs that still run fail; keep longer jobs out with an "
            "entry of controller.checks that has windows, or with stopPolicy Hold on its queues"
        ],
    ),
    "long before its end": (
        {
            "nodePools/5/capacity/active": True,
            "nodePools/5/capacity/start": "2026-11-01T00:00:00Z",
            "nodePools/5/capacity/duration": "1440h",
            "futureReservations": [],
        },
        date(2026, 12, 5),
        [],
    ),
    "open too early": (
        {"nodePools/5/capacity/active": True},
        date(2026, 11, 20),
        [
            "nodePools[calendar].capacity.active: true, but reservation december begins on 2026-12-01; remove it, "
            "and run pulumi up once it has begun"
        ],
    ),
    "over": (
        {"futureReservations/0/planningStatus": "SUBMITTED"},
        date(2026, 12, 16),
        [
            "nodePools[calendar].capacity.duration: reservation december ended on 2026-12-15, and its nodes with it; "
            "remove the pool and its flavor"
        ],
    ),
    "different on a cluster": (
        {
            "nodePools/5/perCluster": {
                "batch": {
                    "capacity": {
                        "type": "calendar",
                        "reservation": "october",
                        "start": "2026-10-01T00:00:00Z",
                        "duration": "24h",
                    }
                }
            }
        },
        date(2026, 11, 1),
        [
            "nodePools[calendar].perCluster[batch].capacity.duration: reservation october ended on 2026-10-02, and its "
            "nodes with it; remove the pool and its flavor"
        ],
    ),
    "exclusion that is over": (
        {
            "clusters/0/maintenance": {
                "start": "2026-01-03T02:00:00Z",
                "end": "2026-01-03T10:00:00Z",
                "recurrence": "FREQ=DAILY",
                "exclusions": [{"name": "launch", "start": "2026-10-01", "end": "2026-10-02"}],
            }
        },
        date(2026, 11, 1),
        ["clusters[batch].maintenance.exclusions[launch]: ended on 2026-10-02; remove it"],
    ),
}


@pytest.mark.parametrize(("changes", "today", "expected"), CALENDAR.values(), ids=CALENDAR.keys())
def test_calendar(changes: dict[str, Any], today: date, expected: list[str]) -> None:
    result = check_dates(parse_fleet(changed(pools_data(), changes)), today)
    assert [str(problem) for problem in result] == expected
    assert {problem.severity for problem in result} <= {"warning"}


ONCE = {"name": "once", "start": "2026-12-01T20:00:00Z", "duration": "10h"}
WEEKLY = {**ONCE, "name": "weekly", "days": ["Monday"]}


def of_windows(calendar: list[dict[str, Any]], windows: list[dict[str, Any]], today: date) -> list[str]:
    """What is said of the windows of a check, and of quotas."""
    check = {"name": "hours", "controllerName": "kueue-fleet.dev/admission-check", "clusters": ["manager"]}
    changes = {
        "admissionChecks/+": check,
        "controller": {"image": "example.com/c:1", "checks": [{"name": "hours", "windows": calendar}]},
        "clusterQueues/1/admissionChecksStrategy": {"admissionChecks": [{"name": "hours"}]},
    }
    data = changed(fleet_data(), changes)
    data["controller"]["quotaWindows"] = windows
    for window in windows:
        quota = data["clusterQueues"][0]["resourceGroups"][0]["flavors"][0]["resources"][0]
        quota.setdefault("during", {})[window["name"]] = {"nominalQuota": 1}
    data["multiKueue"] |= EXTERNAL
    return [
        str(item) for item in check_dates(parse_fleet(data), today) if "indow" in item.path or "calendar" in item.path
    ]


def test_windows_that_never_open_again() -> None:
    over = date(2026, 12, 3)
    assert of_windows([ONCE], [ONCE], date(2026, 12, 2)) == []
    assert of_windows([ONCE], [ONCE], over) == [
        "controller.checks[hours].windows: its last window ended on 2026-12-02, so that no job of a queue "
        "with this check starts any more; write the next window, or the days on which it opens",
        "controller.quotaWindows[once]: ended on 2026-12-02, and never opens again; write the days on which "
        "it opens, or remove it",
    ]
    assert of_windows([WEEKLY], [WEEKLY], over) == []


def test_a_window_in_another_year_than_is_meant() -> None:
    [text] = of_windows([], [{**WEEKLY, "start": "2036-12-01T20:00:00Z"}], date(2026, 12, 2))
    assert text.startswith("controller.quotaWindows[weekly].start: 2036-12-01 is more than a year away")
