"""What a pool is on a cluster, and the flavor and quotas that follow from it."""

from __future__ import annotations

from typing import Any

import pytest
from tests.fleet_file.builders import changed
from tests.fleet_file.pool_builders import CALENDAR, FLEX, ON_DEMAND, QUEUED, RESERVED, SPOT, ZONES, pools_data, scaled

from kueue_fleet.fleet_file import FleetSpec, parse_fleet
from kueue_fleet.fleet_file.model.resolved_pools import ResolvedNodePool, resolve_pool
from kueue_fleet.objects import render_cluster

GPU_TAINT = ("nvidia.com/gpu", "present", "NoSchedule")


def fleet(changes: dict[str, Any] | None = None) -> FleetSpec:
    return parse_fleet(changed(pools_data(), changes or {}))


def pool(index: int, changes: dict[str, Any] | None = None) -> ResolvedNodePool:
    return fleet(changes).node_pools_on("batch")[index]


@pytest.mark.parametrize(
    ("index", "least", "most", "full"),
    [(RESERVED, 4, 4, 4), (ON_DEMAND, 0, 24, 24), (QUEUED, 0, 8, 8), (CALENDAR, 0, 0, 2)],
)
def test_sizes(index: int, least: int, most: int, full: int) -> None:
    result = pool(index)
    assert (result.min_nodes, result.max_nodes, result.full_nodes) == (least, most, full)


def test_fixed_nodes_are_in_each_zone() -> None:
    result = pool(ON_DEMAND, {"nodePools/1/nodeCount": 2, "nodePools/1/autoscaling": None})
    assert result.zones == tuple(ZONES)
    assert (result.min_nodes, result.max_nodes) == (6, 6)


def test_a_cluster_without_zones_has_three() -> None:
    data = changed(pools_data(), {"nodePools/1/nodeCount": 2, "nodePools/1/autoscaling": None})
    spec = parse_fleet(data)
    cluster = spec.cluster("batch").model_copy(update={"zones": ()})
    assert resolve_pool(spec.node_pools[ON_DEMAND], cluster).max_nodes == 6


def test_what_is_different_on_a_cluster() -> None:
    other = {"nodePools/1/perCluster": {"batch": {"nodeCount": 3, "zones": ZONES[:1], "diskSizeGb": 200}}}
    result = pool(ON_DEMAND, other)
    assert (result.node_count, result.autoscaling, result.zones, result.disk_size_gb) == (3, None, (ZONES[0],), 200)
    back = {"nodePools/0/perCluster": {"batch": {"autoscaling": scaled(4, 1)}}}
    reserved = pool(RESERVED, back)
    assert (reserved.node_count, reserved.min_nodes, reserved.max_nodes) == (None, 1, 4)


@pytest.mark.parametrize(
    ("index", "labels", "taints", "own_labels"),
    [
        (ON_DEMAND, {"cloud.google.com/gke-provisioning": "standard"}, [GPU_TAINT], {}),
        (SPOT, {"cloud.google.com/gke-spot": "true", "cloud.google.com/gke-provisioning": "spot"}, [GPU_TAINT], {}),
        (FLEX, {"cloud.google.com/gke-flex-start": "true"}, [GPU_TAINT], {}),
        (
            QUEUED,
            {"cloud.google.com/gke-flex-start": "true", "cloud.google.com/gke-queued": "true"},
            [GPU_TAINT, ("cloud.google.com/gke-queued", "true", "NoSchedule")],
            {"cloud.google.com/gke-queued": "true"},
        ),
    ],
)
def test_labels_and_taints(
    index: int, labels: dict[str, str], taints: list[tuple[str, str, str]], own_labels: dict[str, str]
) -> None:
    result = pool(index)
    common = {
        "cloud.google.com/gke-nodepool": result.name,
        "cloud.google.com/gke-accelerator": "nvidia-l4",
        "cloud.google.com/gke-accelerator-count": "2",
        "cloud.google.com/gke-gpu-driver-version": "default",
        "cloud.google.com/machine-family": "g2",
        "node.kubernetes.io/instance-type": "g2-standard-24",
        "topology.kubernetes.io/region": "us-central1",
    }
    assert (common | labels).items() <= dict(result.labels).items()
    assert [(taint.key, taint.value, taint.effect) for taint in result.taints] == taints
    assert (dict(result.own_labels), result.entry.taints) == (own_labels, ())


def test_labels_of_one_zone_of_custom_drivers_and_of_no_gpus() -> None:
    assert pool(RESERVED).labels["topology.kubernetes.io/zone"] == "us-central1-a"
    assert "topology.kubernetes.io/zone" not in pool(ON_DEMAND).labels
    custom = pool(ON_DEMAND, {"nodePools/1/accelerator": {"driverVersion": "INSTALLATION_DISABLED"}})
    assert "cloud.google.com/gke-gpu-driver-version" not in custom.labels
    spec = fleet()
    system = spec.system_pool_on("batch")
    assert system is not None
    assert (system.accelerator, system.taints, system.min_nodes, system.max_nodes) == (None, (), 1, 3)


def test_own_taints_come_first_and_replace_those_of_gke() -> None:
    own = [{"key": "team", "value": "a", "effect": "NoSchedule"}, {"key": "nvidia.com/gpu", "effect": "NoSchedule"}]
    result = pool(ON_DEMAND, {"nodePools/1/taints": own})
    assert [(taint.key, taint.value) for taint in result.taints] == [("team", "a"), ("nvidia.com/gpu", "")]


def test_arm_nodes_are_tainted() -> None:
    spec = fleet()
    arm = spec.node_pools[ON_DEMAND].model_copy(update={"machine_type": "a4x-highgpu-4g"})
    result = resolve_pool(arm, spec.cluster("batch"))
    assert result.labels["kubernetes.io/arch"] == "arm64"
    assert "kubernetes.io/arch" in [taint.key for taint in result.taints]
    assert result.disk_type == "hyperdisk-balanced"


def test_repair_is_on_but_for_flex_start() -> None:
    assert [result.entry.repairs for result in fleet().node_pools_on("batch")] == [True, True, True, False, False, True]


def test_what_pods_may_ask_for() -> None:
    result = pool(ON_DEMAND, {"nodePools/1/maxPodsPerNode": 32, "nodePools/1/diskSizeGb": 200})
    assert result.allocatable["nvidia.com/gpu"] == 2
    assert result.allocatable["cpu"] == 23870
    assert result.allocatable["pods"] == 32
    assert 100 * 1000**3 < result.allocatable["ephemeral-storage"] < 200 * 1000**3
    unknown = resolve_pool(
        fleet().node_pools[ON_DEMAND].model_copy(update={"machine_type": "x9-huge"}), fleet().cluster("batch")
    )
    with pytest.raises(LookupError, match="x9-huge is not in the machine catalogue"):
        assert unknown.allocatable


def test_attached_gpus() -> None:
    attached = {
        "nodePools/1/machineType": "n1-standard-8",
        "nodePools/1/accelerator": {"type": "nvidia-tesla-t4", "count": 2},
    }
    result = pool(ON_DEMAND, attached)
    assert (result.accelerator, result.gpus_per_node, result.allocatable["nvidia.com/gpu"]) == ("nvidia-tesla-t4", 2, 2)


def rendered(spec: FleetSpec, kind: str, name: str) -> dict[str, Any]:
    """`spec` of one rendered object."""
    result: dict[str, Any] = next(
        item["spec"]
        for item in render_cluster(spec, "batch")
        if item["kind"] == kind and item["metadata"]["name"] == name
    )
    return result


def test_a_derived_flavor_has_the_labels_taints_and_tolerations_of_its_pool() -> None:
    own = [{"key": "soft", "effect": "PreferNoSchedule"}]
    flavor = rendered(fleet({"nodePools/4/taints": own}), "ResourceFlavor", "queued")
    assert flavor["nodeLabels"] == {
        "cloud.google.com/gke-nodepool": "queued",
        "cloud.google.com/gke-accelerator": "nvidia-l4",
    }
    assert [taint["key"] for taint in flavor["nodeTaints"]] == ["nvidia.com/gpu", "cloud.google.com/gke-queued"]
    assert [(one["key"], one["operator"], one["value"]) for one in flavor["tolerations"]] == [
        ("nvidia.com/gpu", "Equal", "present"),
        ("cloud.google.com/gke-queued", "Equal", "true"),
    ]


def test_tolerations_beyond_the_pool_are_kept() -> None:
    more = {"key": "maintenance", "operator": "Exists"}
    flavor = rendered(fleet({"flavors/1/tolerations": [more]}), "ResourceFlavor", "on-demand")
    assert flavor["tolerations"][-1] == more


def quotas(spec: FleetSpec) -> dict[str, set[str]]:
    """Nominal quotas of the queue, by flavor."""
    queue = rendered(spec, "ClusterQueue", "gpu")
    return {
        flavor["name"]: {quota["nominalQuota"] for quota in flavor["resources"]}
        for group in queue["resourceGroups"]
        for flavor in group["flavors"]
    }


def test_a_calendar_pool_is_closed_until_it_is_active() -> None:
    closed = fleet()
    assert closed.is_closed("calendar", "batch")
    assert quotas(closed) == {name: {"0"} if name == "calendar" else {"4", "40", "150Gi"} for name in quotas(closed)}
    result = closed.node_pools_on("batch")[CALENDAR]
    assert (result.closed, result.node_count, result.autoscaling, result.max_nodes) == (True, 0, None, 0)

    opened = fleet({"nodePools/5/capacity/active": True})
    assert not opened.is_closed("calendar", "batch")
    assert quotas(opened)["calendar"] == {"4", "40", "150Gi"}
    assert opened.node_pools_on("batch")[CALENDAR].max_nodes == 2


def test_limits_of_a_closed_flavor_are_zero_too() -> None:
    at = "clusterQueues/0/resourceGroups/0/flavors/4/resources/0"
    spec = fleet({f"{at}/borrowingLimit": 2, f"{at}/lendingLimit": 3, "clusterQueues/0/cohortName": "all"})
    flavor = rendered(spec, "ClusterQueue", "gpu")["resourceGroups"][0]["flavors"][4]
    assert flavor["resources"][0] == {
        "name": "nvidia.com/gpu",
        "nominalQuota": "0",
        "borrowingLimit": "0",
        "lendingLimit": "0",
    }


def test_pools_and_derived_flavors_are_on_standard_clusters_by_default() -> None:
    workers = {
        "clusters": [
            {"name": "manager", "role": "manager", "region": "us-central1"},
            {"name": "batch", "role": "worker", "region": "us-central1", "mode": "Standard", "zones": ZONES},
            {"name": "easy", "role": "worker", "region": "us-east1"},
        ],
        "multiKueue": {"credentials": {"type": "ServiceAccountToken", "rotation": "a", "rotateBy": "2027-01-01"}},
        "clusterQueues/0/clusters": ["batch"],
    }
    spec = fleet(workers)
    assert {spec.clusters_of(pool) for pool in spec.node_pools} == {("batch",)}
    assert {spec.clusters_of(flavor) for flavor in spec.flavors} == {("batch",)}
    assert spec.node_pools_on("easy") == ()
    assert spec.system_pool_on("easy") is None
