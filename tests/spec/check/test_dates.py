"""What is due on a day."""

from __future__ import annotations

from datetime import date, timedelta

import pytest

from kueue_fleet.spec import check_dates, parse_fleet
from spec.builders import changed, fleet, fleet_data

ROTATE_BY = date(2027, 2, 1)
CREDENTIALS = {"type": "ServiceAccountToken", "rotation": "2026-11", "rotateBy": str(ROTATE_BY)}


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
        f"multiKueue.credentials.rotateBy: {wrong}; set a new rotation serial and a later date, then apply: every "
        "worker gets a new token"
    )


def test_a_credential_that_is_not_due_yet_is_silent() -> None:
    spec = parse_fleet(changed(fleet_data(), {"multiKueue/credentials": CREDENTIALS}))
    assert check_dates(spec, ROTATE_BY - timedelta(days=15)) == []


def test_a_cluster_profile_has_no_date() -> None:
    gates = {"configuration": {"featureGates": {"MultiKueueClusterProfile": True}}}
    data = changed(fleet_data(), {"multiKueue/credentials": {"type": "ClusterProfile"}, "kueue": gates})
    assert check_dates(parse_fleet(data), date(2999, 1, 1)) == []


def test_a_fleet_of_one_cluster_has_no_credential() -> None:
    standalone = fleet().model_copy(update={"multi_kueue": None})
    assert check_dates(standalone, date(2999, 1, 1)) == []
