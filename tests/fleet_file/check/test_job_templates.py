"""Templates of jobs against what their team has."""

from __future__ import annotations

from typing import Any

import pytest
from tests.fleet_file.builders import changed, fleet_data, problems

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
            "that no such job is ever admitted; write less, or name another queue",
        ),
    ],
)
def test_what_no_job_can_be_made_of(template: dict[str, Any], said: str) -> None:
    assert found(**template) == [said]


def test_what_fits() -> None:
    assert found(queue="main", gpus=2, nodes=2, priority="urgent") == []
    assert found(gpus=999) == []
