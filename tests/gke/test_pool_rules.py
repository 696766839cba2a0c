"""Each rule for a node pool with a pool that breaks it and the nearest one that keeps it."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest

from kueue_admission.kernel.unknown import UNKNOWN
from kueue_fleet.gke.gpu_sharing import GpuSharing
from kueue_fleet.gke.labels import DRANET, NO_DEVICE_PLUGIN, NodeTaint
from kueue_fleet.gke.pool import RESERVATION_KEY, Gpus, Pool
from kueue_fleet.gke.pool_rules import POOL_RULES, breaches

GOOD: dict[str, Any] = {
    "machine_type": "g2-standard-24",
    "region": "us-central1",
    "zones": ("us-central1-a",),
    "zone_count": 1,
    "autoscaling": True,
    "limits_in_total": True,
    "most_nodes": 4,
}
NONE = {"reservation_type": "NO_RESERVATION"}
QUEUED: dict[str, Any] = {"queued": True, "flex_start": True, "auto_repair": False, **NONE}
FLEX: dict[str, Any] = {**QUEUED, "queued": False}
NAMED: dict[str, Any] = {
    "reservation_type": "SPECIFIC_RESERVATION",
    "reservation_key": RESERVATION_KEY,
    "reservations": ("mine",),
}
FIXED: dict[str, Any] = {"autoscaling": False, "limits_in_total": False, "most_nodes": 0, "node_count": 1}
N1: dict[str, Any] = {"machine_type": "n1-standard-32"}
H200: dict[str, Any] = {"machine_type": "a3-ultragpu-8g"}
TEAM = NodeTaint("team", "a", "NoSchedule")
T4 = Gpus("nvidia-tesla-t4", 1)
SLICE: dict[str, Any] = {"machine_type": "ct6e-standard-4t", "tpu_topology": "4x4", "compact": True}
SHARED = GpuSharing(strategy="TIME_SHARING", clients=8)
IMAGE = "projects/images-1234/global/images/cache"
CACHED: dict[str, Any] = {"secondary_disks": (IMAGE,), "image_streaming": True}


def of_l4(**sharing: Any) -> dict[str, Any]:
    return {"gpus": (Gpus(sharing=GpuSharing(**sharing)),)}


def of_h100(**sharing: Any) -> dict[str, Any]:
    return {"machine_type": "a3-highgpu-8g", **of_l4(**sharing)}


PAIRS: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    (
        "pool-gpu-sharing",
        of_l4(strategy="TIME_SLICING", clients=8),
        of_l4(strategy="TIME_SHARING", clients=8),
    ),
    ("pool-gpu-sharing", of_l4(strategy="MPS", clients=1), of_l4(strategy="MPS", clients=2)),
    ("pool-gpu-sharing", of_l4(strategy="MPS", clients=49), of_l4(strategy="MPS", clients=48)),
    ("pool-gpu-sharing", of_l4(strategy="MPS"), of_l4()),
    ("pool-gpu-sharing", of_l4(partition_size="1g.10gb"), of_h100(partition_size="1g.10gb")),
    ("pool-gpu-sharing", of_h100(partition_size="1g.5gb"), of_h100(partition_size="4g.40gb")),
    (
        "pool-gpu-sharing",
        {**of_h100(partition_size="1g.5gb", strategy="MPS", clients=4)},
        of_h100(partition_size="1g.10gb", strategy="MPS", clients=4),
    ),
    (
        "gpu-device-plugin",
        {"gpus": (Gpus(sharing=SHARED),), "labels": {NO_DEVICE_PLUGIN: "true"}},
        {"labels": {NO_DEVICE_PLUGIN: "true"}},
    ),
    ("pool-one-size", {"node_count": 0}, FIXED),
    ("pool-initial-size", {**FIXED, "initial_node_count": 1}, FIXED),
    ("pool-initial-size", {"initial_node_count": 5}, {"initial_node_count": 4}),
    ("pool-initial-size", {"initial_node_count": 0, "least_nodes": 1}, {"initial_node_count": 1, "least_nodes": 1}),
    ("pool-initial-size", {"initial_node_count": 2, "zone_count": 3}, {"initial_node_count": 1, "zone_count": 3}),
    ("pool-limits", {"limits_by_zone": True}, {"limits_in_total": False, "limits_by_zone": True}),
    ("pool-limits", {"most_nodes": 0}, {"most_nodes": 1}),
    ("pool-limits", {"least_nodes": 5}, {"least_nodes": 4}),
    ("dws-autoscaling", {**FLEX, **FIXED}, FLEX),
    ("dws-autoscaling", {**QUEUED, **FIXED, "node_count": None}, QUEUED),
    ("dws-autoscaling", {**QUEUED, "flex_start": False, "auto_repair": True, **FIXED}, FIXED),
    ("dws-from-zero", {**QUEUED, "least_nodes": 1}, {**FLEX, "least_nodes": 1}),
    ("dws-from-zero", {**QUEUED, "initial_node_count": 1}, {**QUEUED, "initial_node_count": 0}),
    ("dws-any-location", {**QUEUED, "location_policy": "BALANCED"}, {**QUEUED, "location_policy": "ANY"}),
    ("dws-any-location", {**QUEUED, "location_policy": "BALANCED"}, {**FLEX, "location_policy": "BALANCED"}),
    ("dws-no-reservation", {**QUEUED, "reservation_type": None}, QUEUED),
    ("dws-no-reservation", {**FLEX, "reservation_type": "ANY_RESERVATION"}, {"reservation_type": "ANY_RESERVATION"}),
    ("dws-not-spot", {**QUEUED, "spot": True}, {"spot": True}),
    ("dws-no-auto-repair", {**FLEX, "auto_repair": True}, {**QUEUED, "flex_start": False, "auto_repair": True}),
    (
        "dws-run-duration",
        {**FLEX, "max_run_duration": "604801s", "max_run_seconds": 604_801},
        {**FLEX, "max_run_duration": "604800s", "max_run_seconds": 604_800},
    ),
    (
        "dws-run-duration",
        {**FLEX, "max_run_duration": "0s", "max_run_seconds": 0},
        {"max_run_duration": "1209600s", "max_run_seconds": 1_209_600},
    ),
    (
        "dws-run-duration",
        {"max_run_duration": "1500ms", "max_run_seconds": None},
        {"max_run_duration": "2s", "max_run_seconds": 2},
    ),
    ("spot-no-reservation", {"spot": True, "reservation_type": "ANY_RESERVATION"}, {"spot": True, **NONE}),
    ("spot-no-reservation", {"spot": True, **NAMED}, {"spot": True}),
    ("reservation-named", {**NAMED, "reservations": ()}, NAMED),
    ("reservation-named", {**NAMED, "reservations": ("a", "b")}, NAMED),
    ("reservation-named", {**NAMED, "reservation_key": "other"}, NAMED),
    ("reservation-named", {**NONE, "reservations": ("mine",)}, NONE),
    ("pool-compact-placement", {"compact": True, "blue_green": True}, {"blue_green": True}),
    ("pool-compact-placement", {**QUEUED, "compact": True}, {**QUEUED, **SLICE}),
    ("pool-compact-placement", {"compact": True, "machine_type": "e2-standard-4"}, {"machine_type": "e2-standard-4"}),
    ("pool-compact-placement", {**N1, "compact": True}, {"compact": True, "machine_type": "n2-standard-8"}),
    ("tpu-topology", {**SLICE, "tpu_topology": "4x6"}, SLICE),
    ("tpu-topology", {**SLICE, "tpu_topology": "2x2x4"}, SLICE),
    ("tpu-topology", {"tpu_topology": "2x2"}, {}),
    ("tpu-topology", {**SLICE, "tpu_topology": None}, SLICE),
    ("tpu-slice", {**SLICE, "most_nodes": 5}, SLICE),
    ("tpu-slice", {**SLICE, "least_nodes": 1}, {**SLICE, "least_nodes": 4}),
    ("tpu-slice", {**SLICE, **FIXED}, {**SLICE, **FIXED, "node_count": 4}),
    ("tpu-slice", {**SLICE, "zone_count": 2}, SLICE),
    ("tpu-slice", {**SLICE, "most_nodes": 5}, {"machine_type": "ct6e-standard-4t", "most_nodes": 5}),
    ("pool-gpus", {"machine_type": "ct6e-standard-4t", "gpus": (T4,)}, {"machine_type": "ct6e-standard-4t"}),
    (
        "pool-compact-placement",
        {**FLEX, "compact": True, "machine_type": "a4x-highgpu-4g"},
        {**FLEX, "compact": True, "machine_type": "a4-highgpu-8g"},
    ),
    ("pool-compact-placement", {**FLEX, "compact": True}, {"compact": True}),
    (
        "pool-compact-zone",
        {"compact": True, "zones": ("us-central1-a", "us-central1-b"), "zone_count": 2},
        {"compact": True},
    ),
    ("pool-compact-zone", {"compact": True, "zones": (), "zone_count": 3}, {"zones": (), "zone_count": 3}),
    ("pool-upgradable", {"max_surge": 0, "max_unavailable": 0}, {"max_surge": 0, "max_unavailable": 1}),
    ("pool-upgradable", {"max_unavailable": 0}, {"max_surge": 1, "max_unavailable": 0}),
    ("pool-managed", {"auto_upgrade": False}, {"auto_upgrade": False, "release_channel": False}),
    ("pool-managed", {"auto_repair": False}, FLEX),
    ("pool-gpus", {"gpus": (Gpus("nvidia-l4", 4),)}, {"gpus": (Gpus("nvidia-l4", 2),)}),
    ("pool-gpus", {"gpus": (Gpus("nvidia-tesla-t4", 2),)}, {"gpus": (Gpus(),)}),
    ("pool-gpus", {"machine_type": "e2-standard-4", "gpus": (T4,)}, {"machine_type": "n1-standard-4", "gpus": (T4,)}),
    ("pool-gpus", {**N1, "gpus": (Gpus("nvidia-tesla-t4"),)}, {**N1, "gpus": (T4,)}),
    ("pool-gpus", {**N1, "gpus": (Gpus("nvidia-l4", 1),)}, {"machine_type": "x9-new-8", "gpus": (Gpus("new", 1),)}),
    ("pool-gpus", {**N1, "gpus": (Gpus("nvidia-tesla-t4", 3),)}, {**N1, "gpus": (Gpus("nvidia-tesla-t4", 4),)}),
    ("pool-gpus", {**N1, "gpus": (Gpus("nvidia-tesla-v100", 2),)}, {**N1, "gpus": (Gpus("nvidia-tesla-v100", 4),)}),
    ("accelerator-network", {"network_profile": "auto"}, {**H200, "network_profile": "auto"}),
    (
        "accelerator-network",
        {"machine_type": "a3-highgpu-8g", "network_profile": "auto"},
        {"machine_type": "a3-megagpu-8g", "network_profile": "auto"},
    ),
    ("accelerator-network-cards", {**H200, "own_networks": 8}, {**H200, "own_networks": 9}),
    ("accelerator-network", {**H200, "own_networks": 9, "network_profile": "auto"}, {**H200, "own_networks": 9}),
    ("accelerator-network-cards", {"machine_type": "a3-highgpu-8g", "own_networks": 2}, {"own_networks": 2}),
    (
        "accelerator-network-zone",
        {**H200, "own_networks": 9, "zone_count": 2},
        {"machine_type": "a3-highgpu-8g", "own_networks": 4, "zone_count": 2},
    ),
    ("accelerator-network-zone", {**H200, "network_profile": "auto", "zone_count": 2}, {**H200, "zone_count": 2}),
    (
        "dranet",
        {"labels": dict.fromkeys((DRANET,), "x")},
        {
            **H200,
            "network_profile": "auto",
            "labels": dict.fromkeys(
                (
                    "a",
                    DRANET,
                ),
                "x",
            ),
        },
    ),
    (
        "dranet",
        {
            **H200,
            "labels": dict.fromkeys(
                (
                    "a",
                    DRANET,
                ),
                "x",
            ),
        },
        {**H200, "labels": dict.fromkeys(("a",), "x")},
    ),
    (
        "dranet",
        {"machine_type": "a3-megagpu-8g", "network_profile": "auto", "labels": dict.fromkeys((DRANET,), "x")},
        {"machine_type": "a4-highgpu-8g", "network_profile": "auto", "labels": dict.fromkeys((DRANET,), "x")},
    ),
    (
        "pool-boot-disk",
        {"machine_type": "a4x-highgpu-4g", "disk_type": "pd-ssd"},
        {"machine_type": "a4x-highgpu-4g", "disk_type": "hyperdisk-balanced"},
    ),
    ("pool-boot-disk", {"machine_type": "g4-standard-48", "disk_type": "pd-balanced"}, {"disk_type": "pd-balanced"}),
    *(
        (
            "pool-boot-disk",
            {"machine_type": machine, "disk_type": "pd-ssd"},
            {"machine_type": machine, "disk_type": "hyperdisk-balanced"},
        )
        for machine in ("c4-standard-8", "c4a-standard-8", "n4-standard-8")
    ),
    ("pool-boot-disk", {"disk_type": "ssd"}, {"disk_type": "pd-ssd"}),
    ("pool-boot-disk", {"disk_gb": 65_537}, {"disk_gb": 65_536}),
    ("pool-boot-disk", {"disk_type": "pd-extreme", "disk_gb": 499}, {"disk_type": "pd-extreme", "disk_gb": 500}),
    ("pool-boot-disk", {"disk_type": "hyperdisk-ml"}, {"disk_type": "hyperdisk-balanced"}),
    ("pool-boot-disk", {"disk_type": "pd-standard"}, {"disk_type": "pd-ssd"}),
    (
        "pool-boot-disk",
        {"machine_type": "n1-standard-8", "disk_type": "hyperdisk-balanced"},
        {"machine_type": "n1-standard-8", "disk_type": "pd-standard"},
    ),
    ("pool-secondary-disks", {"secondary_disks": (IMAGE,), "image_streaming": False}, CACHED),
    ("pool-secondary-disks", {**CACHED, "secondary_disks": ("cache",)}, CACHED),
    ("pool-secondary-disks", {**CACHED, "secondary_disks": (IMAGE, f"{IMAGE}s")}, CACHED),
    (
        "pool-secondary-disks",
        {**CACHED, "secondary_disks": (f"{IMAGE}{'s' * 35}",)},
        {**CACHED, "secondary_disks": (f"{IMAGE}{'s' * 34}",)},
    ),
    ("pool-fast-socket", {"machine_type": "n1-standard-8", "fast_socket": True}, {"fast_socket": True}),
    ("pool-local-ssds", {"ephemeral_local_ssds": 2, "block_local_ssds": 2}, {"ephemeral_local_ssds": 2}),
    ("pool-local-ssds", {"machine_type": "e2-standard-4", "block_local_ssds": 2}, {"block_local_ssds": 2}),
    (
        "pool-local-ssds",
        {"machine_type": "a3-highgpu-8g", "ephemeral_local_ssds": 2},
        {"machine_type": "a3-highgpu-8g", "ephemeral_local_ssds": 16},
    ),
    (
        "pool-local-ssds",
        {"machine_type": "a2-highgpu-2g", "ephemeral_local_ssds": 1},
        {"machine_type": "a2-highgpu-2g", "ephemeral_local_ssds": 2},
    ),
    (
        "pool-local-ssds",
        {"machine_type": "g2-standard-48", "block_local_ssds": 1},
        {"machine_type": "g2-standard-48", "block_local_ssds": 4},
    ),
    (
        "pool-local-ssds",
        {"machine_type": "n2-standard-32", "ephemeral_local_ssds": 2},
        {"machine_type": "n2-standard-8", "ephemeral_local_ssds": 2},
    ),
    (
        "pool-local-ssds",
        {"machine_type": "c3-standard-8", "ephemeral_local_ssds": 1},
        {"machine_type": "c3-standard-8-lssd", "ephemeral_local_ssds": 2},
    ),
    ("pool-zones", {"zones": ("us-central1-z",)}, {"zones": ("us-central1-f",)}),
    ("pool-zones", {"zones": ("us-east1-b",)}, {"zones": ("us-east1-b",), "region": "us-east1"}),
    ("pool-zones", {"zones": ("us-east1-b",)}, {"zones": ("mars-north1-z",), "region": "mars-north1"}),
    (
        "pool-labels",
        {"labels": dict.fromkeys(("node.kubernetes.io/class",), "x")},
        {"labels": dict.fromkeys(("mykubernetes.io/class",), "x")},
    ),
    ("pool-labels", {"labels": dict.fromkeys(("k8s.io/class",), "x")}, {"labels": dict.fromkeys(("class",), "x")}),
    (
        "pool-taints",
        {"taints": (TEAM, TEAM)},
        {"taints": (TEAM, TEAM._replace(effect="NoExecute"))},
    ),
]


def broken(**changes: Any) -> list[str]:
    return [rule.name for rule, _ in breaches(Pool(**{**GOOD, **changes}))]


@pytest.mark.parametrize(("rule", "bad", "good"), PAIRS, ids=[f"{i}-{pair[0]}" for i, pair in enumerate(PAIRS)])
def test_a_rule_is_broken_by_one_pool_and_not_by_the_nearest(
    rule: str, bad: dict[str, Any], good: dict[str, Any]
) -> None:
    assert broken(**bad) == [rule]
    assert broken(**good) == []


def test_every_rule_has_such_a_pair() -> None:
    assert {rule for rule, _, _ in PAIRS} == {rule.name for rule in POOL_RULES}
    assert len({rule.name for rule in POOL_RULES}) == len(POOL_RULES)


@pytest.mark.parametrize("rule", POOL_RULES, ids=lambda rule: rule.name)
def test_a_rule_says_what_must_be_and_who_says_so(rule: Any) -> None:
    assert " must " in rule.asks
    assert rule.asks.endswith(".")
    assert rule.source.startswith("https://")


@pytest.mark.parametrize(("rule", "bad", "good"), PAIRS, ids=[f"{i}-{pair[0]}" for i, pair in enumerate(PAIRS)])
def test_what_is_not_known_is_never_held_against_a_pool(rule: str, bad: dict[str, Any], good: dict[str, Any]) -> None:
    names = [one.name for one in fields(Pool)]
    for name in names:
        assert broken(**{**good, name: UNKNOWN}) == [], name
        assert set(broken(**{**bad, name: UNKNOWN})) <= {rule}, name
    assert broken(**dict.fromkeys(names, UNKNOWN)) == []


def test_a_rule_says_nothing_only_where_it_needs_what_is_not_known() -> None:
    spot = {**QUEUED, "spot": True}
    assert broken(**{**spot, "flex_start": UNKNOWN}) == [], "flex_start is looked at first"
    assert broken(**{**spot, "queued": UNKNOWN, "machine_type": UNKNOWN}) == ["dws-not-spot"]
