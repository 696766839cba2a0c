from __future__ import annotations

import pytest

from kueue_fleet.dispatch import decide_fallback
from kueue_fleet.settings.configuration import QueueFallback
from kueue_fleet.settings.dispatch import FlavorPatience

FLEX = FlavorPatience("flex", "600s")
RULES = QueueFallback(flavors=("reserved", "flex", "spot", "od"), fallback=(FLEX, FlavorPatience("spot", "60s")))
SINCE = 1_800_000_000.0


def test_it_waits_and_says_since_when_and_what_comes_next() -> None:
    result = decide_fallback(RULES, dict.fromkeys(["flex"], SINCE), None, SINCE + 599)
    assert result is not None
    assert not result.give_up
    assert result.due == SINCE + 600
    assert result.message == (
        "Waits for nodes of flex since 2027-01-15T08:00:00Z; moves to spot at 2027-01-15T08:10:00Z"
    )


def test_after_its_patience_it_may_have_every_flavor_but_this_one() -> None:
    result = decide_fallback(RULES, dict.fromkeys(["flex"], SINCE), None, SINCE + 600)
    assert result is not None
    assert result.give_up
    # What comes earlier stays: its quota may be free by then.
    assert result.allowed == ("reserved", "spot", "od")
    assert result.message == "No nodes of flex within 600 s; moves to spot"


def test_flavors_that_were_given_up_before_stay_out() -> None:
    result = decide_fallback(RULES, dict.fromkeys(["spot"], SINCE), ("reserved", "spot", "od"), SINCE + 60)
    assert result is not None
    assert result.allowed == ("reserved", "od")
    assert "moves to od" in result.message


@pytest.mark.parametrize("used", [["od"], ["reserved"], []])
def test_other_flavors_are_waited_for(used: list[str]) -> None:
    assert decide_fallback(RULES, dict.fromkeys(used, SINCE), None, SINCE + 1e6) is None


def test_of_several_flavors_the_first_that_is_due_is_given_up() -> None:
    result = decide_fallback(RULES, dict.fromkeys(["flex", "spot"], SINCE), None, SINCE + 60)
    assert result is not None
    assert result.allowed == ("reserved", "flex", "od")


def test_what_comes_next_is_never_a_flavor_that_was_given_up() -> None:
    result = decide_fallback(RULES, dict.fromkeys(["flex"], SINCE), ("reserved", "flex"), SINCE + 600)
    assert result is not None
    assert result.message.endswith("returns to reserved")


def test_on_several_clusters_it_waits_since_the_first_of_them() -> None:
    result = decide_fallback(RULES, {"flex": SINCE, "spot": SINCE + 541}, None, SINCE + 599)
    assert result is not None
    assert (result.give_up, result.due) == (False, SINCE + 600)


def test_the_flavors_of_the_manager_are_kept_and_come_next_for_no_job() -> None:
    rules = QueueFallback(flavors=("flex", "od"), fallback=(FLEX,), manager_flavors=("multikueue",))
    result = decide_fallback(rules, {"flex": SINCE}, None, SINCE + 600)
    assert result is not None
    assert result.allowed == ("od", "multikueue")
    assert decide_fallback(rules, {"flex": SINCE}, result.allowed, SINCE + 600) == result
    assert result.message.endswith("moves to od")


KEPT = QueueFallback(flavors=("daily", "backup"), fallback=(FlavorPatience("daily", "600s"),), backups=("backup",))


def test_a_backup_is_not_for_jobs_whose_quota_elsewhere_is_used_up() -> None:
    for allowed in (None, ("daily",)):
        result = decide_fallback(KEPT, {"backup": SINCE}, allowed, SINCE)
        assert result is not None
        assert (result.give_up, result.allowed) == (True, ("daily",))


def test_a_job_that_gave_up_another_flavor_may_have_the_backup_and_keeps_it() -> None:
    result = decide_fallback(KEPT, {"daily": SINCE}, ("daily",), SINCE + 600)
    assert result is not None
    assert (result.give_up, result.allowed) == (True, ("backup",))
    assert decide_fallback(KEPT, {"backup": SINCE}, ("backup",), SINCE + 1e6) is None
