"""What has no price is not free: its hours stand beside the least amount that is known."""

from __future__ import annotations

import pytest
from tests.simulation.fleets import EUROPE, GPU, US, fleet
from tests.status.test_history import A_GPU_IN_EUROPE, PRICES

from kueue_fleet.fleet_file.spending import BudgetUse, Held, Spending, budget_use, spending
from kueue_fleet.settings.budgets import TeamBudget

HOUR = 3600.0
TEAM = "team-a"
UNPRICED = "GPU hours of flavor own-nodes"


def used(*held: tuple[int, set[tuple[str, str]]]) -> Spending:
    """What the team used in ten hours, by GPUs and the places of one of which they were."""
    spec = fleet(teams=[{"name": TEAM, "localQueues": [{"name": "gpu", "clusterQueue": "gpu"}]}])
    item = [Held(TEAM, GPU, count, frozenset(places), 0.0, 10 * HOUR) for count, places in held]
    return spending(spec, item, PRICES, 0.0, 10 * HOUR)[TEAM]


def usd(found: Spending) -> BudgetUse:
    [budget] = budget_use(TEAM, TeamBudget(usd=1000), found)
    return budget


def test_hours_without_a_price_are_counted_beside_the_amount() -> None:
    result = used((1, {(EUROPE, "l4-spot")}), (3, {(EUROPE, "own-nodes")}))
    assert result.unpriced_hours == {UNPRICED: 30.0}
    assert result.usd_least == pytest.approx(10 * A_GPU_IN_EUROPE)


def test_a_budget_with_hours_without_a_price_says_at_least() -> None:
    result = used((1, {(EUROPE, "l4-spot")}), (3, {(EUROPE, "own-nodes")}))
    assert str(usd(result)) == f"team-a: at least 22 USD + 30 {UNPRICED} without a price, of 1,000 USD per month"


def test_such_a_budget_may_be_exceeded() -> None:
    assert usd(used((1, {(EUROPE, "own-nodes")}))).is_near
    assert not usd(used((1, {(EUROPE, "l4-spot")}))).is_near


def test_a_job_that_may_have_been_on_nodes_without_a_price_has_none() -> None:
    result = used((2, {(EUROPE, "own-nodes"), (US, "l4-spot")}))
    assert (result.usd_least, result.usd_most, result.unpriced_hours) == (0.0, 0.0, {UNPRICED: 20.0})


def test_a_machine_without_a_price_is_named_by_its_type() -> None:
    spec = fleet(teams=[{"name": TEAM, "localQueues": [{"name": "gpu", "clusterQueue": "gpu"}]}])
    held = [Held(TEAM, GPU, 1, frozenset({(EUROPE, "l4-spot")}), 0.0, HOUR)]
    nothing = type(PRICES)("nobody's", {})
    [hours] = spending(spec, held, nothing, 0.0, HOUR)[TEAM].unpriced_hours
    assert hours == "GPU hours of g2-standard-12"
