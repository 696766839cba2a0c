"""Templates of jobs against what their team has."""

from __future__ import annotations

from typing import Any

import pytest
from tests.fleet_file.builders import changed, fleet_data, problems
from tests.fleet_file.pool_builders import pools_data

AT = "teams[team-vision].jobTemplates[t]"


def found(**template: Any) -> list[str]:
    return problems(changed(fleet_data(), {"teams/0/jobTemplates": [{"name": "t", **template}]}))


@pytest.mark.parametrize(
    ("template", "said"),
    [
        ({"queue": "mian"}, f"{AT}.queue: there is no LocalQueue mian in namespace team-vision; did you mean main?"),
        ({"priority": "urgnet"}, f"{AT}.priority: there is no WorkloadPriorityClass urgnet; did you mean urgent?"),
        (
            {"queue": "main", "gpus": 8, "nodes": 4},
            f"warning: {AT}.gpus: 32 nvidia.com/gpu in all, and queue vision can have at most 12 of one flavor, so "
            "that no such job ever runs; write less, or name another queue",
        ),
        ({"memory": "64"}, f"warning: {AT}.memory: 64 of memory is counted in bytes; add a unit, such as Gi"),
    ],
)
def test_what_no_job_can_be_made_of(template: dict[str, Any], said: str) -> None:
    assert found(**template) == [said]


def test_what_fits() -> None:
    assert found(queue="main", gpus=2, nodes=2, priority="urgent") == []


def test_the_only_queue_of_a_team_is_meant() -> None:
    assert "999 nvidia.com/gpu in all, and queue vision" in found(gpus=999)[0]


@pytest.mark.parametrize(
    ("asked", "wrong"),
    [
        ({"gpus": 2, "cpu": "23", "memory": "64Gi"}, None),
        ({"gpus": 3}, "3 nvidia.com/gpu in each pod, and the largest node of queue {} has 2,"),
        ({"cpu": "24"}, "24 cpu in each pod, and the largest node of queue {} has 23870m,"),
        ({"gpus": 1, "memory": "960Gi"}, "960Gi memory in each pod, and the largest node of queue {} has 88Gi,"),
        ({"cpu": "8Gi"}, "8Gi cpu in each pod, and"),
    ],
)
def test_pods_that_no_node_holds(asked: dict[str, Any], wrong: str | None) -> None:
    data = pools_data()
    [name] = {queue["name"] for queue in data["clusterQueues"]}
    team = {"name": "t", "localQueues": [{"name": "main", "clusterQueue": name}]}
    data["teams"] = [{**team, "jobTemplates": [{"name": "train", "queue": "main", **asked}]}]
    said = [text for text in problems(data) if "so that no such job ever runs" in text]
    assert [(wrong or "").format(name) in text for text in said] == [True] * (wrong is not None)
