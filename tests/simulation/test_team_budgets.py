"""Budgets of teams in a simulation."""

from __future__ import annotations

from typing import Any

from tests.simulation.fleets import fleet_data, job, workload_file
from tests.status.test_history import A_GPU_IN_EUROPE, PRICES

from kueue_admission.simulate.delays import Delays
from kueue_admission.simulate.result import Result
from kueue_fleet.fleet_file import parse_fleet
from kueue_fleet.fleet_simulation.fleet import prepare_fleet
from kueue_fleet.fleet_simulation.team_budgets import SimulatedBudget

DAY = 86400.0


def run(budget: dict[str, Any] | None, *arrivals: float, **fields: Any) -> Result:
    team = {"name": "team-a", "localQueues": [{"name": "gpu", "clusterQueue": "gpu"}]}
    data = fleet_data(teams=[{**team, **({"budget": budget} if budget else {})}, {**team, "name": "team-eu"}])
    jobs = [job(f"job-{number}", start=at, runSeconds=3600, **fields) for number, at in enumerate(arrivals)]
    return prepare_fleet(parse_fleet(data), workload_file(jobs), Delays(), prices=PRICES).run()


def budgets(budget: dict[str, Any] | None, *arrivals: float, **fields: Any) -> list[SimulatedBudget]:
    return [item for item in run(budget, *arrivals, **fields).budgets if isinstance(item, SimulatedBudget)]


def test_the_week_that_uses_most_counts() -> None:
    [hours, usd] = budgets({"gpuHours": 2, "usd": 1000, "per": "week"}, 0, 8 * DAY, 9 * DAY)
    assert (hours.used, hours.percent, hours.begin) == (2.0, 100, 7 * DAY)
    assert round(usd.used, 3) == round(2 * A_GPU_IN_EUROPE, 3)


def test_a_run_over_the_end_of_a_week_is_in_both() -> None:
    [hours] = budgets({"gpuHours": 1, "per": "week"}, 7 * DAY - 900)
    assert (hours.used, hours.begin) == (0.75, 7 * DAY)


def test_others_jobs_use_nothing_and_without_a_budget_nothing_is_said() -> None:
    [hours] = budgets({"gpuHours": 1}, 0)
    assert (hours.used, hours.per) == (1.0, "month")
    [other] = budgets({"usd": 1}, 0, namespace="team-eu")
    assert other.used == 0
    assert budgets(None, 0) == []
    assert run(None, 0).as_json()["budgets"] == []
