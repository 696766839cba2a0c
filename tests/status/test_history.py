"""What teams used in a week, from the Workloads that the clusters still have."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from tests.simulation.fleets import EUROPE, GPU, US, fleet

from kueue_fleet.fleet_file.spending import BudgetUse
from kueue_fleet.gke.prices import Prices
from kueue_fleet.settings.budgets import period_start
from kueue_fleet.status import ClusterObjects, budgets, finished_since, held_by_teams, team_weeks

NOW = datetime(2026, 11, 21, 12, 0, 0, tzinfo=UTC)  # A Saturday; the week began on the 16th.
TEAM: dict[str, Any] = {"name": "team-a", "localQueues": [{"name": "gpu", "clusterQueue": "gpu"}]}
PRICES = Prices(
    "test",
    {
        ("g2-standard-", "europe-west4"): {"spot": 0.1},
        ("nvidia-l4", "europe-west4"): {"spot": 1.0},
        ("g2-standard-", "us-east4"): {"spot": 0.2},
        ("nvidia-l4", "us-east4"): {"spot": 2.0},
        ("pd-balanced", ""): {"onDemand": 0.0},
    },
)
A_GPU_IN_EUROPE, A_GPU_IN_US = 12 * 0.1 + 1.0, 12 * 0.2 + 2.0


def ran(name: str, began: str, ended: str | None = None, cluster: str = EUROPE, **rest: Any) -> dict[str, Any]:
    """A Workload of two GPUs, created an hour before 2026-11-17 or on that day."""
    conditions = [{"type": "Admitted", "status": rest.pop("admitted", "True"), "lastTransitionTime": began}]
    if ended is not None:
        conditions.append({"type": "Finished", "status": "True", "lastTransitionTime": ended})
    containers = [{"resources": {"requests": {GPU: "2"}}}]
    return {
        "metadata": {"namespace": "team-a", "name": name, "creationTimestamp": "2026-11-16T23:00:00Z"},
        "spec": {
            "queueName": "gpu",
            "podSets": [{"name": "main", "count": 1, "template": {"spec": {"containers": containers}}}],
        },
        "status": {"conditions": conditions, **({"clusterName": cluster} if cluster else {}), **rest},
    }


def on(*workloads: dict[str, Any], copies: tuple[dict[str, Any], ...] = ()) -> dict[str, ClusterObjects]:
    return {
        "manager": ClusterObjects("manager", {"workloads": list(workloads)}),
        EUROPE: ClusterObjects("worker", {"workloads": list(copies)}),
        US: ClusterObjects("worker"),
    }


def week(*workloads: dict[str, Any], copies: tuple[dict[str, Any], ...] = ()) -> Any:
    spec, clusters = fleet(teams=[TEAM]), on(*workloads, copies=copies)
    [result] = team_weeks(spec, clusters, held_by_teams(spec, clusters, NOW), PRICES, NOW)
    return result


def budgets_of(team: dict[str, Any], *workloads: dict[str, Any]) -> list[BudgetUse]:
    spec = fleet(teams=[team])
    return list(budgets(spec, held_by_teams(spec, on(*workloads), NOW), PRICES, NOW))


def test_a_finished_job_has_its_gpu_hours_and_their_cost_on_its_cluster() -> None:
    result = week(ran("done", "2026-11-17T00:00:00Z", "2026-11-17T03:00:00Z"))
    assert (result.gpu_hours, result.started) == (6.0, 1)
    assert result.usd_least == result.usd_most == pytest.approx(6 * A_GPU_IN_EUROPE)
    assert (result.mean_wait_seconds, result.longest_wait_seconds, result.waiting_seconds) == (3600, 3600, 0)


def test_what_was_before_monday_does_not_count_and_what_runs_counts_up_to_now() -> None:
    before = ran("before", "2026-11-15T22:00:00Z", "2026-11-16T01:00:00Z")
    runs = ran("runs", "2026-11-21T11:00:00Z")
    assert week(before, runs).gpu_hours == 2.0 + 2.0


def test_earlier_runs_of_a_job_are_right_before_its_last_one() -> None:
    evicted = ran("evicted", "2026-11-17T10:00:00Z", admitted="False", accumulatedPastExecutionTimeSeconds=7200)
    again = ran("again", "2026-11-17T10:00:00Z", "2026-11-17T11:00:00Z", accumulatedPastExecutionTimeSeconds=3600)
    assert week(evicted).gpu_hours == 4.0
    assert week(again).gpu_hours == 4.0


def test_without_its_cluster_a_job_costs_between_the_cheapest_and_the_dearest() -> None:
    result = week(ran("lost", "2026-11-17T00:00:00Z", "2026-11-17T01:00:00Z", cluster=""))
    assert result.usd_least == pytest.approx(2 * A_GPU_IN_EUROPE)
    assert result.usd_most == pytest.approx(2 * A_GPU_IN_US)


def own_nodes(name: str) -> dict[str, Any]:
    """A Workload, and its copy that ran on nodes that no pool of the file has."""
    assigned = {"podSetAssignments": [{"flavors": {GPU: "own-nodes"}, "resourceUsage": {GPU: "2"}}]}
    return ran(name, "2026-11-21T11:00:00Z", admission=assigned)


def test_a_copy_says_the_flavor_and_what_has_no_price_is_named() -> None:
    result = week(ran("runs", "2026-11-21T11:00:00Z"), copies=(own_nodes("runs"),))
    assert (result.usd_most, result.gpu_hours) == (0, 2.0)
    assert result.unpriced == {"GPU hours of flavor own-nodes": 2.0}
    assert result.not_in_usd == (f"the nodes of flavor own-nodes on {EUROPE}, which no pool of the file has",)


def test_who_waits_longest_is_said() -> None:
    waits = ran("waits", "2026-11-16T23:00:00Z", admitted="False", cluster="")
    assert week(waits).waiting_seconds == (NOW - datetime(2026, 11, 16, 23, tzinfo=UTC)).total_seconds()


def test_budgets_are_of_their_own_period() -> None:
    first = ran("first", "2026-11-02T00:00:00Z", "2026-11-02T05:00:00Z")
    now = ran("now", "2026-11-17T00:00:00Z", "2026-11-17T04:00:00Z")
    team = {**TEAM, "budget": {"gpuHours": 20}}
    [month] = budgets_of(team, first, now)
    assert month == BudgetUse("team-a", "GPU hours", 18.0, 20, "month")
    assert (month.percent, month.is_near) == (90, True)
    team = {**TEAM, "budget": {"gpuHours": 20, "usd": 30, "per": "week"}}
    hours, usd = budgets_of(team, first, now)
    assert (hours.used, hours.is_near) == (8.0, False)
    assert str(usd) == "team-a: up to 18 of 30 USD per week, 58 %"


def test_how_far_back_it_goes_is_known() -> None:
    later = ran("b", "2026-11-17T00:00:00Z", "2026-11-18T00:00:00Z")
    first = ran("a", "2026-11-17T00:00:00Z", "2026-11-17T03:00:00Z")
    assert finished_since(fleet(teams=[TEAM]), on(later, first, ran("c", "2026-11-17T00:00:00Z"))) == (
        2,
        "2026-11-17T03:00:00Z",
    )
    assert finished_since(fleet(teams=[TEAM]), on()) == (0, None)
    assert finished_since(fleet(teams=[TEAM]), {}) == (None, None)


def test_periods_begin_on_monday_and_on_the_first() -> None:
    assert period_start(NOW, "week") == datetime(2026, 11, 16, tzinfo=UTC)
    assert period_start(NOW, "month") == datetime(2026, 11, 1, tzinfo=UTC)
