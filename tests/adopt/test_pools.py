"""Node pools as gcloud prints them become entries that a fleet file takes."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from kueue_fleet.adopt.pools import node_pool_entries
from kueue_fleet.fleet_file.model.node_pools import NodePoolEntry

POOL: dict[str, Any] = {
    "name": "l4-reserved",
    "config": {
        "machineType": "g2-standard-24",
        "diskSizeGb": 100,
        "diskType": "pd-balanced",
        "accelerators": [
            {
                "acceleratorCount": "2",
                "acceleratorType": "nvidia-l4",
                "gpuDriverInstallationConfig": {"gpuDriverVersion": "LATEST"},
            }
        ],
        "labels": {"resource-type": "reservation", "cloud.google.com/gke-accelerator": "nvidia-l4"},
        "taints": [
            {"key": "reserved", "value": "true", "effect": "NO_SCHEDULE"},
            {"key": "nvidia.com/gpu", "value": "present", "effect": "NO_SCHEDULE"},
        ],
        "reservationAffinity": {
            "consumeReservationType": "SPECIFIC_RESERVATION",
            "key": "compute.googleapis.com/reservation-name",
            "values": ["projects/shared/reservations/machines/reservationBlocks/b1/reservationSubBlocks/s1"],
        },
    },
    "initialNodeCount": 4,
    "locations": ["us-central1-c"],
    "management": {"autoRepair": True, "autoUpgrade": True},
    "maxPodsConstraint": {"maxPodsPerNode": "32"},
    "upgradeSettings": {"maxSurge": 1, "strategy": "SURGE"},
    "status": "RUNNING",
}


def pool(config: dict[str, Any] | None = None, **fields: Any) -> dict[str, Any]:
    result = copy.deepcopy(POOL)
    result["config"] |= config or {}
    result |= fields
    if config and config.get("reservationAffinity") is None:
        result["config"].pop("reservationAffinity")
    return result


def entry(of: dict[str, Any]) -> dict[str, Any]:
    [result], problems, _ = node_pool_entries({"batch": [of]})
    assert problems == []
    NodePoolEntry.model_validate(result)
    return result


def test_a_reserved_pool_is_taken_over_whole() -> None:
    assert entry(POOL) == {
        "name": "l4-reserved",
        "machineType": "g2-standard-24",
        "zones": ["us-central1-c"],
        "accelerator": {"type": "nvidia-l4", "count": 2, "driverVersion": "LATEST"},
        "nodeCount": 4,
        "diskSizeGb": 100,
        "diskType": "pd-balanced",
        "labels": {"resource-type": "reservation"},
        "taints": [{"key": "reserved", "value": "true", "effect": "NoSchedule"}],
        "management": {"autoRepair": True, "autoUpgrade": True},
        "upgrade": {"maxSurge": 1, "maxUnavailable": 0},
        "maxPodsPerNode": 32,
        "capacity": {
            "type": "reserved",
            "reservation": "machines",
            "project": "shared",
            "block": "b1",
            "subBlock": "s1",
        },
    }


SCALING = {"enabled": True, "totalMaxNodeCount": 24, "locationPolicy": "ANY"}


@pytest.mark.parametrize(
    ("made", "capacity"),
    [
        (pool({"spot": True, "reservationAffinity": None}, autoscaling=SCALING), {"type": "spot"}),
        (pool({"reservationAffinity": None}, autoscaling=SCALING), {"type": "onDemand"}),
        (
            pool(
                {"reservationAffinity": None, "flexStart": True, "maxRunDuration": "3600s"},
                autoscaling=SCALING,
                initialNodeCount=0,
                management={"autoUpgrade": True},
                queuedProvisioning={"enabled": True},
            ),
            {"type": "flexStart", "queuedProvisioning": True, "maxRunDuration": "3600s"},
        ),
    ],
)
def test_capacity_classes(made: dict[str, Any], capacity: dict[str, Any]) -> None:
    result = entry(made)
    assert result["capacity"] == capacity
    assert result["autoscaling"] == {"totalMinNodeCount": 0, "totalMaxNodeCount": 24, "locationPolicy": "ANY"}


def test_networks_of_gpus_are_kept() -> None:
    large = {"machineType": "a3-ultragpu-8g", "diskType": "hyperdisk-balanced", "accelerators": []}
    result = entry(pool(large, networkConfig={"acceleratorNetworkProfile": "auto", "podRange": "pods"}))
    assert result["acceleratorNetworkProfile"] == "auto"


def test_limits_by_zone_become_limits_of_all_zones() -> None:
    zones = ["us-central1-a", "us-central1-b"]
    scaling = {"enabled": True, "minNodeCount": 1, "maxNodeCount": 3}
    result = entry(pool({"reservationAffinity": None}, autoscaling=scaling, locations=zones))
    assert result["autoscaling"] == {"totalMinNodeCount": 2, "totalMaxNodeCount": 6}


def test_the_first_size_of_a_pool_that_grows_is_kept_while_its_limits_allow_it() -> None:
    on_demand = pool({"reservationAffinity": None}, autoscaling=SCALING)
    assert entry(on_demand)["initialNodeCount"] == 4
    assert "initialNodeCount" not in entry({**on_demand, "initialNodeCount": 25})


def test_gpus_that_are_shared_and_divided_stay_so() -> None:
    """GKE's API has whole numbers as text."""
    config = {"gpuSharingStrategy": "TIME_SHARING", "maxSharedClientsPerGpu": "4"}
    gpus = {"acceleratorType": "nvidia-tesla-a100", "acceleratorCount": "1", "gpuPartitionSize": "1g.5gb"}
    divided = {"accelerators": [gpus | {"gpuSharingConfig": config}], "machineType": "a2-highgpu-1g"}
    result = entry(pool(divided))["accelerator"]
    assert result["partitionSize"] == "1g.5gb"
    assert result["sharing"] == {"strategy": "TIME_SHARING", "maxSharedClientsPerGpu": 4}


def test_what_a_fleet_file_cannot_say_of_a_pool_is_named() -> None:
    other = pool(
        {
            "accelerators": [POOL["config"]["accelerators"][0], {"acceleratorType": "nvidia-l4"}],
            "imageType": "UBUNTU_CONTAINERD",
            "preemptible": True,
            "sandboxConfig": {"type": "GVISOR"},
            "reservationAffinity": {"consumeReservationType": "ANY_RESERVATION"},
        },
        bestEffortProvisioning={"enabled": True},
        upgradeSettings={"strategy": "BLUE_GREEN"},
    )
    _, problems, notes = node_pool_entries({"a": [other]})
    assert problems == []
    assert notes == [
        "node pool l4-reserved of a: config.sandboxConfig, bestEffortProvisioning, config.accelerators[1] left out: a "
        "fleet file has no field for it",
        "node pool l4-reserved of a: image UBUNTU_CONTAINERD becomes COS_CONTAINERD",
        "node pool l4-reserved of a: preemptible nodes become Spot nodes",
        "node pool l4-reserved of a: upgrades BLUE_GREEN become SURGE",
        "node pool l4-reserved of a: it may take nodes of any reservation, and will take none",
    ]


def test_pools_of_a_manager_are_named() -> None:
    result, _, notes = node_pool_entries({"a": [pool(name="other")], "manager": [POOL]}, "manager")
    assert [item["name"] for item in result] == ["other"]
    assert notes == ["node pool l4-reserved of manager is left out: a manager runs no jobs; see clusters[].systemPool"]


def test_clusters_share_a_pool_and_say_what_differs() -> None:
    other = pool(initialNodeCount=2)
    [result], problems, _ = node_pool_entries({"a": [POOL], "b": [other], "c": []})
    assert problems == []
    assert "clusters" not in result
    assert result["perCluster"] == {"b": {"nodeCount": 2}}


def test_a_pool_of_one_cluster_says_so() -> None:
    result, _, _ = node_pool_entries({"a": [POOL], "b": [pool(name="other")]})
    assert [item["clusters"] for item in result] == [["a"], ["b"]]


@pytest.mark.parametrize(
    ("config", "fields", "lost"),
    [
        ({"kubeletConfig": {"cpuCfsQuota": True}}, {}, "config.kubeletConfig.cpuCfsQuota"),
        (
            {"ephemeralStorageLocalSsdConfig": {"dataCacheCount": 2}},
            {},
            "config.ephemeralStorageLocalSsdConfig.dataCacheCount",
        ),
        ({}, {"placementPolicy": {"policyName": "close"}}, "placementPolicy.policyName"),
        (
            {},
            {"networkConfig": {"networkPerformanceConfig": {"totalEgressBandwidthTier": "TIER_1"}}},
            "networkConfig.networkPerformanceConfig",
        ),
        ({"metadata": {"serial-port-enable": "1"}}, {}, "config.metadata[serial-port-enable]"),
        ({"resourceLabels": {"cost": "cc-1"}}, {}, "config.resourceLabels[cost]"),
        (
            {"containerdConfig": {"privateRegistryAccessConfig": {"enabled": True}}},
            {},
            "config.containerdConfig",
        ),
        ({"bootDisk": {"provisionedIops": "5000"}}, {}, "config.bootDisk.provisionedIops"),
        ({"loggingConfig": {"variantConfig": {"variant": "MAX_THROUGHPUT"}}}, {}, "config.loggingConfig"),
        ({"windowsNodeConfig": {"osVersion": "OS_VERSION_LTSC2022"}}, {}, "config.windowsNodeConfig"),
    ],
)
def test_what_a_block_holds_beside_the_files_fields_is_named(
    config: dict[str, Any], fields: dict[str, Any], lost: str
) -> None:
    [_], _, notes = node_pool_entries({"a": [pool({**POOL["config"], **config}, **fields)]})
    assert notes == [f"node pool l4-reserved of a: {lost} left out: a fleet file has no field for it"]


def test_what_gke_reports_of_a_pool_is_not_named() -> None:
    reported = {
        "networkConfig": {"podRange": "pods", "podIpv4CidrBlock": "10.4.0.0/14", "enablePrivateNodes": True},
        "autoscaling": {**SCALING, "minNodeCount": 1},
    }
    of_gke = {
        "metadata": {"disable-legacy-endpoints": "true"},
        "resourceLabels": {"goog-gke-node-pool-provisioning-model": "on-demand"},
        "bootDisk": {"diskType": "pd-balanced", "sizeGb": "100"},
        "loggingConfig": {"variantConfig": {"variant": "DEFAULT"}},
        "windowsNodeConfig": {},
    }
    _, _, notes = node_pool_entries({"a": [pool({**POOL["config"], **of_gke}, **reported)]})
    assert notes == []


def test_another_machine_under_the_same_name_is_refused() -> None:
    _, problems, _ = node_pool_entries({"a": [POOL], "b": [pool({"machineType": "g2-standard-48"})]})
    assert [str(problem) for problem in problems] == [
        "b.nodePool l4-reserved.machineType: g2-standard-48, but g2-standard-24 on a; rename one of the two pools"
    ]


def test_pools_of_node_auto_provisioning_are_named() -> None:
    result, _, notes = node_pool_entries({"a": [pool(name="nap-1", autoscaling={**SCALING, "autoprovisioned": True})]})
    assert result == []
    assert notes == [
        "node pool nap-1 of a is left out: node auto-provisioning made it; see clusters[].nodeAutoProvisioning"
    ]


def test_the_clusters_own_pools_stay_its_own() -> None:
    result, _, notes = node_pool_entries({"a": [pool(name="default-pool")]})
    assert result == []
    assert notes == ["node pool default-pool of a is left out: it is the cluster's own; see clusters[].systemPool"]


@pytest.mark.parametrize(
    "fields", [{"autoscaling": [1]}, {"initialNodeCount": "many"}, {"upgradeSettings": {"maxSurge": []}}]
)
def test_what_gke_does_not_print_is_refused(fields: dict[str, Any]) -> None:
    _, problems, _ = node_pool_entries({"a": [pool(**fields)]})
    assert [str(problem) for problem in problems] == [
        "a.nodePools[l4-reserved]: is malformed; give the output of `gcloud container node-pools list --format yaml`"
    ]


def test_something_else_is_refused() -> None:
    _, problems, _ = node_pool_entries({"a": [{"kind": "Node"}]})
    assert str(problems[0]).startswith(
        "a.nodePools[0]: is not a node pool with a name and a config; give the output of"
    )
