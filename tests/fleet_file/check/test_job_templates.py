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
    ],
)
def test_what_no_job_can_be_made_of(template: dict[str, Any], said: str) -> None:
    assert found(**template) == [said]


def test_what_fits() -> None:
    assert found(queue="main", gpus=2, nodes=2, priority="urgent") == []
    assert found(gpus=999) == []


@pytest.mark.parametrize(("gpus", "warned"), [(2, False), (3, True)])
def test_pods_that_no_node_holds(gpus: int, warned: bool) -> None:
    data = pools_data()
    [name] = {queue["name"] for queue in data["clusterQueues"]}
    team = {"name": "t", "localQueues": [{"name": "main", "clusterQueue": name}]}
    data["teams"] = [{**team, "jobTemplates": [{"name": "train", "queue": "main", "gpus": gpus}]}]
    output = (
        f"{gpus} nvidia.com/gpu in each pod, and the largest node of queue {name} has 2, so that no such job ever runs"
    )
    assert any(output in text for text in problems(data)) == warned
