"""The example that is a repository of its own: its program, run as Pulumi runs it."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pulumi
import pytest
import yaml

import pulumi_mocks

FOLDER = Path(__file__).parents[2] / "examples" / "dws-single-cluster"


def fleet() -> dict[str, Any]:
    stack = yaml.safe_load((FOLDER / "Pulumi.dws-single-cluster.yaml").read_text(encoding="utf-8"))
    result: dict[str, Any] = stack["config"]["kueue-fleet:fleet"]
    return result


def run(config: dict[str, Any]) -> pulumi_mocks.Recording:
    def program() -> None:
        runpy.run_path(str(FOLDER / "__main__.py"), run_name="__main__")

    return pulumi_mocks.run(program, config={"kueue-fleet:fleet": config})


def test_one_cluster_with_two_pools_that_begin_empty() -> None:
    recording = run(fleet())
    pools = {
        result.inputs["name"]: result.inputs for result in recording.of_type("NodePool") if "name" in result.inputs
    }
    assert set(pools) == {"system", "dws-t4-nodepool", "dws-a100-nodepool"}
    for name in ("dws-t4-nodepool", "dws-a100-nodepool"):
        assert pools[name]["autoscaling"]["totalMinNodeCount"] == 0
        assert pools[name]["autoscaling"]["totalMaxNodeCount"] == 1
        assert pools[name]["queuedProvisioning"] == {"enabled": True}
        assert pools[name]["nodeConfig"]["flexStart"] is True
    assert pools["system"]["nodeConfig"]["machineType"] == "e2-small"
    assert pools["system"]["nodeConfig"]["spot"] is True
    assert recording.one("kueue-fleet:index:Fleet").name == "g-dws-test"


def test_a_broken_fleet_ends_in_the_list_of_its_problems() -> None:
    broken = fleet()
    broken["admissionChecks"] = []
    with pytest.raises(pulumi.RunError, match="there is no check dws-prov"):
        run(broken)
