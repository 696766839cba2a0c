"""Platforms as Google's tutorial, xpk and Cluster Toolkit make them become fleet files that `check` accepts."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import pytest
import yaml

from kueue_fleet.adopt import Adopted, AdoptedCluster, Identity, adopt_fleet
from kueue_fleet.adopt.pools import region_of_pools
from kueue_fleet.fleet_file import check_fleet, parse_fleet

PLATFORMS = Path(__file__).parent / "platforms"
IDENTITY = Identity("theirs", "my-project", date(2027, 2, 1), date(2026, 11, 26), default_kueue=True, in_place=True)


def platform(name: str) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Its objects and its node pools."""
    objects = list(yaml.safe_load_all((PLATFORMS / name / "objects.yaml").read_text()))
    return objects, yaml.safe_load((PLATFORMS / name / "pools.yaml").read_text())


def fleet_of(objects: list[dict[str, Any]], pools: list[dict[str, Any]]) -> Adopted:
    return adopt_fleet([AdoptedCluster("theirs", region_of_pools(pools) or "", objects, pools)], IDENTITY)


def adopted(name: str) -> Adopted:
    return fleet_of(*platform(name))


@pytest.mark.parametrize("name", sorted(path.name for path in PLATFORMS.iterdir()))
def test_a_platform_becomes_a_file_that_is_valid(name: str) -> None:
    problems = check_fleet(parse_fleet(adopted(name).data))
    assert [problem for problem in problems if problem.severity == "error"] == []


def test_quotas_that_stand_for_no_limit_become_what_nodes_hold() -> None:
    objects, pools = platform("ray-tpu-dws")
    [queue] = [item for item in objects if item["kind"] == "ClusterQueue"]
    for quota in queue["spec"]["resourceGroups"][0]["flavors"][1]["resources"]:
        quota["nominalQuota"] = "1000000000Gi" if quota["name"] == "memory" else 1000000000
    result = fleet_of(objects, pools)
    [_, fixed, _] = result.data["clusterQueues"][0]["resourceGroups"][0]["flavors"]
    assert [quota["nominalQuota"] for quota in fixed["resources"]] == [717, "2794Gi", 16]
    assert (
        "clusterQueues[cluster-queue]: nominalQuota of google.com/tpu in flavor on-demand: 1G becomes 16, what "
        "its nodes hold" in result.notes
    )


def test_they_stay_where_nodes_come_for_provisioning_requests() -> None:
    [_, _, dws] = adopted("ray-tpu-dws").data["clusterQueues"][0]["resourceGroups"][0]["flavors"]
    assert [quota["nominalQuota"] for quota in dws["resources"]] == ["1G", "1000000000Gi", "1G"]


def test_a_default_pool_that_a_flavor_names_is_a_node_pool() -> None:
    result = adopted("ray-tpu-dws").data
    assert [pool["name"] for pool in result["nodePools"]] == ["default-pool", "on-demand-pool", "dws-pool"]
    assert {"name": "default-cpu", "nodePool": "default-pool"} in result["flavors"]


def test_a_default_pool_that_no_flavor_names_is_the_clusters_own() -> None:
    result = adopted("kustomize")
    assert "default-pool" not in {pool["name"] for pool in result.data["nodePools"]}
    assert any(note.startswith("node pool default-pool of theirs is left out") for note in result.notes)


def test_the_region_is_that_of_the_node_pools() -> None:
    assert adopted("ray-tpu-dws").data["clusters"][0]["region"] == "us-east5"
