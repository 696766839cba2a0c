"""`kueue-fleet status --usage`: what it prints of objects that clusters list."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.simulation.fleets import EUROPE, US, fleet_data
from tests.status.test_fleet_status import queue
from tests.status.test_history import TEAM, ran
from typer.testing import CliRunner, Result

from kueue_fleet.cli import app, live_fleet
from kueue_fleet.status import ClusterObjects


def gpu_queue(**use: Any) -> dict[str, Any]:
    """The queue `gpu` with four GPUs of l4-spot."""
    result = json.loads(json.dumps(queue(**use)).replace('"t4"', '"l4-spot"'))
    result["metadata"]["name"] = "gpu"
    return dict(result)


def node(name: str, *, ready: bool = True) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "labels": {"cloud.google.com/gke-nodepool": "l4-spot"}},
        "status": {
            "allocatable": {"nvidia.com/gpu": "1"},
            "conditions": [{"type": "Ready", "status": str(ready)}],
        },
    }


def lists(_: str, cluster: str, role: str, __: Path | None, nodes: bool, *___: Any) -> ClusterObjects:
    result = ran("done", "2020-01-06T00:00:00Z", "2020-01-06T03:00:00Z")
    if role == "manager":
        waits = ran("waits", "2026-11-16T23:00:00Z", admitted="False", cluster="")
        return ClusterObjects(role, {"workloads": [result, waits], "clusterqueues": [gpu_queue()]})
    assert nodes
    if cluster == US:
        return ClusterObjects(role, {"clusterqueues": [gpu_queue()]})
    return ClusterObjects(
        role,
        {"clusterqueues": [gpu_queue(used="5", borrowed="2")], "nodes": [node("a"), node("b"), node("c", ready=False)]},
    )


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(live_fleet, "_read", lists)
    path = tmp_path / "fleet.yaml"
    path.write_text(yaml.safe_dump(fleet_data(teams=[{**TEAM, "budget": {"gpuHours": 1}}])))
    return str(path)


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["status", "--usage", *arguments], catch_exceptions=False)


def test_queues_flavors_with_their_nodes_and_teams(file: str) -> None:
    result = run(file)
    assert result.exit_code == 0
    lines = [" ".join(line.split()) for line in result.stdout.splitlines()]
    assert "gpu manager GPUs 4 0 0 4 2" in lines
    assert f"gpu {EUROPE} GPUs 4 5 2 1 0" in lines
    assert f"l4-spot {EUROPE} spot GPUs 2 of 2 2 5" in lines
    assert f"l4-spot {US} spot GPUs ? ? 0" in lines
    assert any(line.startswith("team-a 0.0 0.00 0 - - ") for line in lines)
    assert "budget: team-a: 0 of 1 GPU hours per month, 0 %" in lines
    assert "1 finished Workload that the API server still has, the first of 2020-01-06T03:00:00Z" in result.stdout
    assert "Kueue keeps them as long as their jobs" in result.stdout


def test_json_and_a_cluster_that_cannot_be_read(file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(command: str, cluster: str, role: str, *given: Any) -> ClusterObjects:
        results = lists(command, cluster, role, *given)
        return ClusterObjects(role, unreachable="no answer") if cluster == US else results

    monkeypatch.setattr(live_fleet, "_read", refused)
    result = run(file, "-o", "json")
    document = json.loads(result.stdout)
    assert (result.exit_code, document["unreachable"]) == (1, {US: "no answer"})
    assert [entry["free"] for entry in document["queues"]] == [4, 1]
    assert [(item["nodes"], item["mostNodes"]) for item in document["flavors"]] == [(2, 2)]
    budget = {"team": "team-a", "of": "GPU hours", "used": 0.0, "limit": 1, "per": "month"}
    budget |= {"wholeGpuHours": None, "unpriced": {}, "enforce": None}
    assert document["budgets"] == [budget]
    assert "could not be read: no answer" in run(file).stdout


def test_without_the_manager_nobody_is_said_to_have_used_nothing(file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(command: str, cluster: str, role: str, *given: Any) -> ClusterObjects:
        result = lists(command, cluster, role, *given)
        return ClusterObjects(role, unreachable="no answer") if cluster == "manager" else result

    monkeypatch.setattr(live_fleet, "_read", refused)
    document = json.loads(run(file, "-o", "json").stdout)
    assert (document["weeks"], document["budgets"], document["finished"]) == ([], [], None)
    printed = run(file).stdout
    assert "this week" not in printed.lower()
    assert "budget" not in printed
    assert "manager: could not be read: no answer" in printed
