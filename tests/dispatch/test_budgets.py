"""Teams that have used up their budgets."""

from __future__ import annotations

from typing import Any

import pytest

from kueue_admission.decide.model import CheckState
from kueue_fleet.dispatch.budgets import Exemption, Ledger, Over, TeamRun, decide_budget
from kueue_fleet.settings.budgets import TeamBudget, period_of

MONDAY = 1_795_392_000.0  # 2026-11-23
HOUR = 3600.0
OVER = Over("Team vision has used 10 of 10 GPU hours per week", MONDAY + 7 * 86400)


def ledger(**budget: Any) -> Ledger:
    return Ledger({"vision": TeamBudget.model_validate({"per": "week", "enforce": "wait", **budget})}, period_of)


def run(begin: float, end: float | None = None, gpus: int = 1, usd: float = 0.0) -> TeamRun:
    return TeamRun("vision", gpus, usd, begin, end)


def test_what_runs_is_counted_once_however_often_it_is_counted() -> None:
    result = ledger(gpuHours=10)
    for minutes in range(0, 121, 7):
        result.count([run(MONDAY, None, gpus=4)], MONDAY + minutes * 60)
    assert result.used["vision"].gpu_hours == pytest.approx(4 * 119 / 60)


def test_it_is_over_once_all_is_used_and_not_a_moment_before() -> None:
    result = ledger(gpuHours=10)
    result.count([run(MONDAY, None)], MONDAY + 10 * HOUR - 1)
    assert result.over("vision", MONDAY + 10 * HOUR - 1) is None
    result.count([run(MONDAY, None)], MONDAY + 10 * HOUR)
    over = result.over("vision", MONDAY + 10 * HOUR)
    assert over == OVER


def test_dollars_are_an_amount_of_their_own() -> None:
    result = ledger(gpuHours=1000, usd=30)
    result.count([run(MONDAY, MONDAY + HOUR, gpus=8, usd=30.0)], MONDAY + 2 * HOUR)
    over = result.over("vision", MONDAY + 2 * HOUR)
    assert over is not None
    assert over.text == "Team vision has used 30 of 30 USD per week"


def test_a_new_week_begins_with_nothing() -> None:
    result, after = ledger(gpuHours=10), MONDAY + 7 * 86400
    result.count([run(MONDAY, None)], after - HOUR)
    assert result.over("vision", after) is None
    result.count([run(MONDAY, None)], after + HOUR)
    assert result.used["vision"].gpu_hours == pytest.approx(1.0)


def test_another_leader_counts_on_from_what_was_kept() -> None:
    first = ledger(gpuHours=10)
    first.count([run(MONDAY, None)], MONDAY + 4 * HOUR)
    second = ledger(gpuHours=10)
    second.read(first.wire())
    second.count([run(MONDAY, MONDAY + 6 * HOUR)], MONDAY + 8 * HOUR)
    assert second.used["vision"].gpu_hours == pytest.approx(6.0)


def test_without_a_ledger_all_counts_that_is_still_known() -> None:
    result = ledger(gpuHours=1)
    result.count([run(MONDAY + HOUR, MONDAY + 3 * HOUR)], MONDAY + 80 * HOUR)
    assert result.used["vision"].gpu_hours == pytest.approx(2.0)


@pytest.mark.parametrize(
    "kept", [{}, {"until": None, "used": {}}, {"until": 1, "used": {"vision": ["a"]}}, {"used": 3}]
)
def test_what_is_not_a_ledger_is_refused(kept: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"ledger|float"):
        ledger(gpuHours=1).read(kept)


def test_a_budget_that_is_new_says_since_when_it_is_counted() -> None:
    result = Ledger({}, period_of)
    result.count([], MONDAY + 5 * HOUR)
    later = ledger(gpuHours=1)
    later.read(result.wire())
    later.count([run(MONDAY, None)], MONDAY + 7 * HOUR)
    over = later.over("vision", MONDAY + 7 * HOUR)
    assert over is not None
    assert over.text.endswith("per week, counted since 2026-11-23T05:00:00Z")


def decided(
    exemption: Exemption | None = None, left: tuple[str, ...] = (), allowed: tuple[str, ...] | None = None
) -> Any:
    return decide_budget(OVER, exemption or Exemption(), left, allowed, MONDAY + HOUR)


def test_within_the_budget_it_passes() -> None:
    assert decide_budget(None, Exemption(), (), None, 0.0).check.state is CheckState.READY


def test_over_it_the_job_is_rejected_until_the_week_is_over() -> None:
    result = decided()
    assert (result.check.state, result.until, result.allowed) == (CheckState.REJECTED, OVER.until, None)
    assert "it waits until 2026-11-30T00:00:00Z" in result.check.message


def test_interruptible_flavors_are_left_to_it_among_those_that_it_may_have() -> None:
    result = decided(left=("spot", "flex", "multikueue"), allowed=("flex", "reserved", "multikueue"))
    assert (result.check.state, result.again, result.allowed) == (CheckState.RETRY, 1.0, ("flex", "multikueue"))


def test_with_them_alone_it_passes() -> None:
    assert decided(left=("spot", "multikueue"), allowed=("spot", "multikueue")).check.state is CheckState.READY


def test_who_allowed_it_and_until_when_is_said() -> None:
    result = decided(Exemption("jane", "2026-11-23"))
    assert result.check.state is CheckState.READY
    assert result.check.message == f"{OVER.text}; jane allowed it until 2026-11-23"


@pytest.mark.parametrize(
    "exemption",
    [Exemption("jane", "2026-11-22"), Exemption("jane"), Exemption(until="2026-12-31"), Exemption("j", "soon")],
)
def test_an_exemption_needs_a_name_and_a_day_that_is_not_over(exemption: Exemption) -> None:
    result = decided(exemption)
    assert result.check.state is CheckState.REJECTED
    assert "are not a name and a day that is not over" in result.check.message
