from __future__ import annotations

import pytest

from kueue_fleet.dispatch import GivenUp, Provisioning, watch
from kueue_fleet.dispatch.watchdog import add_given_up, describe_given_up
from kueue_fleet.settings.dispatch import Watchdog

SETTINGS = Watchdog(provisioning_timeout="600s", retries=2)
STUCK = Provisioning("job-a-dws-1", accepted_at=100.0)


def test_accepted_and_not_provisioned_past_the_time_is_given_up() -> None:
    assert watch("a", (STUCK,), {}, SETTINGS, 699.0).give_up is False
    assert watch("a", (STUCK,), {}, SETTINGS, 699.0).retry_at == 700.0
    decision = watch("a", (STUCK,), {}, SETTINGS, 700.0)
    assert decision.give_up
    assert decision.message == (
        "ProvisioningRequest job-a-dws-1 on a was accepted 600 s ago and is not provisioned; retry 1 of 2"
    )


@pytest.mark.parametrize(
    "fine",
    [
        Provisioning("x"),
        Provisioning("x", accepted_at=100.0, provisioned_at=200.0),
        Provisioning("x", accepted_at=100.0, failed=True),
    ],
)
def test_what_is_not_stuck_is_left_alone(fine: Provisioning) -> None:
    decision = watch("a", (fine,), {}, SETTINGS, 9999.0)
    assert (decision.give_up, decision.message, decision.retry_at) == (False, "", None)


def test_the_budget_is_for_all_clusters_together() -> None:
    used = {"a": GivenUp(1, 0.0), "b": GivenUp(1, 0.0)}
    decision = watch("c", (STUCK,), used, SETTINGS, 9999.0)
    assert decision.give_up is False
    assert decision.message == (
        "ProvisioningRequest job-a-dws-1 on c was accepted at 1970-01-01T00:01:40Z and is not provisioned after 600 s, "
        "all 2 retries are used, and it stays"
    )
    assert watch("c", (STUCK,), used, SETTINGS, 99999.0) == decision


def test_counts_go_up() -> None:
    once = add_given_up({}, "a", 60.0)
    assert add_given_up(once, "a", 120.0) == {"a": GivenUp(2, 120.0)}
    assert describe_given_up(once) == "a 1 times, last at 1970-01-01T00:01:00Z"
