"""The rows of both pages: what a job asks for, why it waits in our words, and what never runs."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest

from kueue_fleet.status import ClusterObjects, fleet_status
from kueue_fleet.status.jobs import job_rows

NOW = datetime(2026, 11, 21, 12, 0, 0, tzinfo=UTC)
SAYS = (
    "It asks for 8 GPUs.\nNext: Wait for eu.\nPosition: 2 of 3 in ClusterQueue gpu\nStart: not known\nWaits for: quota"
)


def condition(kind: str, status: str = "True", reason: str = "R", message: str = "m") -> dict[str, Any]:
    at = {"lastTransitionTime": "2026-11-21T11:50:00Z"}
    return {"type": kind, "status": status, "reason": reason, "message": message, **at}


def row(*conditions: dict[str, Any], role: str = "manager", **status: Any) -> Mapping[str, Any]:
    """The only row of a fleet with one job of two pods with four GPUs each."""
    container = {"resources": {"requests": {"nvidia.com/gpu": "4"}}}
    workload = {
        "metadata": {"namespace": "vision", "name": "train", "creationTimestamp": "2026-11-21T11:40:00Z"},
        "spec": {
            "queueName": "gpu",
            "podSets": [{"name": "main", "count": 2, "template": {"spec": {"containers": [container]}}}],
        },
        "status": {"conditions": list(conditions), **status},
    }
    clusters = {"hub": ClusterObjects(role, {"workloads": [workload]})}
    rows = job_rows("hub", clusters, fleet_status("lab", clusters, None, NOW).pending, {"vision": "ml"}, NOW)
    assert rows is not None
    return rows[0]


def refused(reason: str) -> dict[str, Any]:
    return condition("QuotaReserved", "False", reason, "couldn't assign flavors: flavor multikueue, 8 more needed")


def test_a_job_that_the_controller_has_told_of_has_its_lines() -> None:
    result = row(refused("WaitingForQuota"), condition("kueue-fleet.dev/Waiting", message=SAYS))
    lines = {name: result[name] for name in ("why", "next", "place", "start")}
    assert lines == {
        "why": "It asks for 8 GPUs.",
        "next": "Wait for eu.",
        "place": "2 of 3 in ClusterQueue gpu",
        "start": "not known",
    }


@pytest.mark.parametrize("reason", ["PendingEvaluation", "WaitingForQuota", "Misconfigured", "Pending", ""])
def test_before_the_controller_says_anything_there_is_a_sentence_and_a_step(reason: str) -> None:
    result = row(refused(reason))
    assert result["why"].endswith(".")
    assert result["next"].endswith(".")
    assert "flavor" not in result["why"]


def test_what_it_asks_for_and_its_team_are_there() -> None:
    result = row(refused("WaitingForQuota"))
    assert (result["gpus"], result["team"], result["wrong"]) == (8, "ml", False)


def test_a_job_that_the_manager_admitted_without_a_worker_never_runs() -> None:
    result = row(condition("QuotaReserved"), condition("Admitted"))
    assert result["why"] == "It never runs: the manager admitted it without a worker."
    assert (result["state"], result["reason"], result["wrong"]) == ("Admitted", "NotDispatched", True)


def test_where_pods_run_an_admitted_job_waits_for_nothing() -> None:
    assert row(condition("QuotaReserved"), condition("Admitted"), role="standalone")["why"] == ""


def test_an_admitted_job_without_its_pods_is_marked() -> None:
    admitted = condition("QuotaReserved"), condition("Admitted"), condition("PodsReady", "False")
    result = row(*admitted, clusterName="eu")
    assert (result["why"], result["wrong"]) == ("It is admitted, and not all of its pods run.", True)
