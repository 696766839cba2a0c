"""Goals that cannot be met, or that are about jobs which never come."""

from __future__ import annotations

from typing import Any

import pytest

from kueue_fleet.fleet_file import parse_fleet, read_fleet
from kueue_fleet.fleet_file.goals import goals_of, wait_goals
from kueue_fleet.fleet_file.model.per_cluster import local_queues
from small_fleets import one_pool_data

CLASSES = [{"name": "deadline", "value": 1000}, {"name": "batch", "value": 10}]


def data(queue: dict[str, Any] | None = None, team: dict[str, Any] | None = None) -> dict[str, Any]:
    result = {**one_pool_data(), "workloadPriorityClasses": CLASSES}
    if queue is not None:
        result["clusterQueues"][0]["goals"] = queue
    if team is not None:
        result["teams"][0]["goals"] = team
    return result


def problems(made: dict[str, Any]) -> list[str]:
    return [f"{item.path}: {item.wrong}" for item in read_fleet(made).problems if "goals" in item.path]


def test_each_number_is_a_goal() -> None:
    fleet = parse_fleet(data({"wait": {"p50": "10m", "p90": "2h"}}, {"share": 30, "gpuHoursPerWeek": 100}))
    result = [(item.path.partition("[")[0], item.of, item.quantile, item.limit) for item in goals_of(fleet)]
    assert result == [
        ("clusterQueues", "wait", 0.5, 600),
        ("clusterQueues", "wait", 0.9, 7200),
        ("teams", "share", 0.95, 0.3),
        ("teams", "gpuHoursPerWeek", 0.95, 100),
    ]


def test_a_class_is_known_by_its_value() -> None:
    result = data({"wait": {"p90": "2h", "priorityClass": "deadline"}})
    result["teams"][0]["allowedPriorityClasses"] = ["deadline"]
    (goal,) = goals_of(parse_fleet(result))
    assert (goal.priority_class, goal.priority) == ("deadline", 1000)


@pytest.mark.parametrize(
    ("goals", "wrong"),
    [
        ({}, "goals: has no goal"),
        ({"wait": {"priorityClass": "batch"}}, "goals.wait: has no time"),
        (
            {"wait": {"p50": "2h", "p90": "1h"}},
            "goals.wait.p50: 2h is more than p90, 1h, which holds for these jobs too",
        ),
        ({"wait": {"p90": "1h", "priorityClass": "bath"}}, "there is no workload priority class bath"),
        ({"wait": {"p90": "1h", "priorityClass": "deadline"}}, "no job of deadline comes to it"),
        ({"gpuHoursPerWeek": 10**6}, "goals.gpuHoursPerWeek: 1,000,000, but its quota gives at most "),
    ],
)
def test_what_no_fleet_can_meet(goals: dict[str, Any], wrong: str) -> None:
    (result,) = problems(data(goals))
    assert wrong in result


def test_a_queue_without_jobs_has_no_goals() -> None:
    result = data({"wait": {"p90": "1h"}})
    result["teams"][0]["localQueues"] = []
    assert any("no job comes to it: the queue has no LocalQueue" in item for item in problems(result))


def test_shares_are_of_one_whole() -> None:
    result = data(team={"share": 60})
    result["teams"].append({**result["teams"][0], "name": "other", "namespaces": ["other"]})
    (results,) = problems(result)
    assert "60, with the shares before it 120 % of all GPU hours, more than 100 %" in results


def test_how_long_a_job_waits_is_compared_with_the_goals_of_its_queue_and_team() -> None:
    result = data({"wait": {"p90": "1h"}}, {"share": 10, "wait": {"p50": "3h"}})
    fleet = parse_fleet(result)
    (namespace, name, _), *_ = local_queues(fleet)
    queue, team = result["clusterQueues"][0]["name"], result["teams"][0]["name"]
    assert wait_goals(fleet, f"{namespace}/{name}", 0, 1000.0, 8200.0) == [
        f"Goal of clusterQueues[{queue}]: 90% of the jobs wait 3600 s at most; this one has waited 7200 s, longer than "
        "that",
        f"Goal of teams[{team}]: 50% of the jobs wait 10800 s at most; this one has waited 7200 s",
    ]
