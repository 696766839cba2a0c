"""Queues whose quotas follow capacity: what they need, and what a slack queue is."""

from __future__ import annotations

from typing import Any

import pytest

from kueue_fleet.fleet_file.parse import read_fleet
from small_fleets import WORKER, fleet_data, standalone_data

GATE = "MultiKueueManagerQuotaAutomation"


def data(*more: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """A queue that follows capacity, and others like it."""
    result = standalone_data(controller={"image": "example.com/controller:1"}, **changes)
    result["clusters"][0] = {"name": "batch", "role": "standalone", "region": "us-central1"}
    result["clusterQueues"][0]["quotaFollows"] = "capacity"
    result["clusterQueues"] += [{**result["clusterQueues"][0], **item} for item in more]
    return result


def errors(made: dict[str, Any]) -> list[str]:
    return [str(one) for one in read_fleet(made).problems if one.severity == "error"]


def test_the_controller_is_there_for_it_alone() -> None:
    assert errors(data({"name": "reserve", "slack": True})) == []


def test_without_the_controller_nobody_writes_quotas() -> None:
    result = data()
    del result["controller"]
    [problem] = errors(result)
    assert problem.startswith(
        "clusterQueues[gpu].quotaFollows: capacity, but only the fleet's controller writes quotas"
    )


def test_beside_kueues_own_automation_it_is_refused() -> None:
    result = fleet_data(WORKER, controller={"image": "example.com/controller:1"})
    result["clusterQueues"][0]["quotaFollows"] = "capacity"
    assert errors(result) == []
    result["kueue"] = {"configuration": {"featureGates": {GATE: True}}}
    [problem] = [one for one in read_fleet(result).problems if one.severity == "error"]
    assert problem.rule.code == "KF836"
    assert GATE in str(problem)


@pytest.mark.parametrize(
    ("more", "wrong"),
    [
        ({"quotaFollows": "file"}, "true, but its quota does not follow capacity"),
        ({"cohortName": None}, "true, but it is in no cohort, and lends nothing"),
    ],
)
def test_a_slack_queue_follows_and_lends(more: dict[str, Any], wrong: str) -> None:
    [problem] = errors(data({"name": "reserve", "slack": True, **more}))
    assert problem.startswith(f"clusterQueues[reserve].slack: {wrong}")


def test_jobs_are_submitted_to_no_slack_queue() -> None:
    result = data({"name": "reserve", "slack": True})
    result["localQueues"].append({"namespace": "shared", "name": "reserve", "clusterQueue": "reserve"})
    [problem] = errors(result)
    assert "LocalQueue shared/reserve leads to it" in problem


def test_a_cohort_has_one_slack_queue() -> None:
    [problem] = errors(data({"name": "one", "slack": True}, {"name": "two", "slack": True}))
    assert problem.startswith("clusterQueues[two].slack: true, and one is the slack queue of that cohort already")


def test_a_slack_queue_is_not_unused() -> None:
    output = [str(one) for one in read_fleet(data({"name": "reserve", "slack": True})).problems]
    assert not [one for one in output if "no LocalQueue leads" in one]
