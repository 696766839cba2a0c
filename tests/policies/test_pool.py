"""What is known of a node pool's nodes: how many, with what, under which labels and taints."""

from __future__ import annotations

from typing import Any

import pytest
from tests.policies.declared import REGION, as_input, cluster, pool

from kueue_admission.kernel.unknown import UNKNOWN
from kueue_fleet.gke.labels import ACCELERATOR, NODE_POOL, SPOT
from kueue_fleet.gke.pool import read_pool
from kueue_fleet_policies.pool import Pool, gpus_of
from kueue_fleet_policies.resource import Resource

THREE_ZONES = [f"{REGION}-a", f"{REGION}-b", f"{REGION}-c"]


def view(
    changes: dict[str, Any] | None = None, of: dict[str, Any] | None = None, machine: str = "g2-standard-24"
) -> Pool:
    return Pool(
        Resource.of(as_input(pool("p", changes, machine=machine))), Resource.of(as_input(cluster("c", of or {})))
    )


@pytest.mark.parametrize(
    ("sizes", "of", "expected"),
    [
        ({"autoscaling": {"totalMaxNodeCount": 7}}, {}, 7),
        ({"autoscaling": {"maxNodeCount": 2}}, {}, 6),
        ({"autoscaling": {"maxNodeCount": 2}, "nodeLocations": THREE_ZONES[:2]}, {}, 4),
        ({"autoscaling": {"maxNodeCount": 2}}, {"nodeLocations": THREE_ZONES[:2]}, 4),
        ({"autoscaling": None, "nodeCount": 4, "nodeLocations": THREE_ZONES[:1]}, {}, 4),
        ({"autoscaling": None, "nodeCount": 4, "location": f"{REGION}-b"}, {"location": f"{REGION}-b"}, 4),
        ({"autoscaling": None, "nodeCount": 4, "location": f"{REGION}-b"}, {"nodeLocations": THREE_ZONES[:1]}, 8),
        ({"autoscaling": None, "initialNodeCount": 1}, {}, 3),
        ({"autoscaling": None, "nodeCount": 0}, {}, 0),
        ({"autoscaling": None}, {}, None),
        ({"autoscaling": {"totalMaxNodeCount": UNKNOWN}}, {}, None),
        ({"autoscaling": None, "nodeCount": 4, "nodeLocations": UNKNOWN}, {}, None),
        ({"autoscaling": {"totalMaxNodeCount": "5"}}, {}, 5),
    ],
)
def test_the_most_nodes(sizes: dict[str, Any], of: dict[str, Any], expected: int | None) -> None:
    result = Pool(
        Resource("t", "p", "u", {**view().resource.props, **sizes}),
        Resource("t", "c", "u", {**view().cluster.props, **of}),
    )
    assert result.max_nodes == expected


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({"machineType": "g2-standard-24"}, 2),
        ({"machineType": "a3-highgpu-8g"}, 8),
        ({"machineType": "e2-standard-4"}, 0),
        ({"machineType": "n1-standard-8", "guestAccelerators": [{"type": "nvidia-tesla-t4", "count": 2}]}, 2),
        ({"machineType": "brand-new-1"}, None),
        ({"machineType": UNKNOWN}, None),
        ({"machineType": "g2-standard-24", "guestAccelerators": UNKNOWN}, 2),
        ({"machineType": "n1-standard-8", "guestAccelerators": UNKNOWN}, None),
        ({}, 0),
    ],
)
def test_gpus_of_a_node(config: dict[str, Any], expected: int | None) -> None:
    assert gpus_of(read_pool({"nodeConfig": config})) == expected


def test_capacity_counts_what_pods_can_have() -> None:
    result = view()
    assert result.capacity("nvidia.com/gpu") == 8
    cpus = result.capacity("cpu")
    assert cpus is not None
    assert 4 * 23 < cpus < 4 * 24
    assert result.capacity("ephemeral-storage") is None
    closed = view({"autoscaling": None, "nodeCount": 0})
    assert closed.capacity("nvidia.com/gpu") == closed.capacity("memory") == 0


@pytest.mark.parametrize(
    ("changes", "wanted", "expected"),
    [
        ({}, {NODE_POOL: "p"}, True),
        ({}, {NODE_POOL: "q"}, False),
        ({}, {ACCELERATOR: "nvidia-l4"}, True),
        ({}, {ACCELERATOR: "nvidia-tesla-a100"}, False),
        ({}, {SPOT: "true"}, False),
        ({"nodeConfig.spot": True}, {SPOT: "true"}, True),
        ({}, {"cloud.google.com/machine-family": "g2"}, True),
        ({}, {"team": "vision"}, False),
        ({"nodeConfig.labels": {"team": "vision"}}, {"team": "vision"}, True),
        ({"nodeConfig.labels": {"team": "vision"}}, {"team": "speech"}, False),
        ({"nodeConfig.labels": {"team": UNKNOWN}}, {"team": "speech"}, None),
        ({"nodeConfig.labels": UNKNOWN}, {"team": "speech"}, None),
        ({"name": UNKNOWN}, {NODE_POOL: "p"}, None),
        ({}, {"topology.kubernetes.io/zone": f"{REGION}-b"}, None),
        ({}, {"cloud.google.com/gke-placement-group": "x"}, None),
        ({}, {}, True),
    ],
)
def test_labels_are_there_or_not_or_not_known(
    changes: dict[str, Any], wanted: dict[str, Any], expected: bool | None
) -> None:
    assert view(changes).has_labels(wanted) is expected


def test_taints_that_gke_has_pods_tolerate_do_not_count() -> None:
    taints = [
        {"key": "nvidia.com/gpu", "value": "present", "effect": "NO_SCHEDULE"},
        {"key": "cloud.google.com/gke-queued", "value": "true", "effect": "NO_SCHEDULE"},
        {"key": "kubernetes.io/arch", "value": "arm64", "effect": "NO_SCHEDULE"},
        {"key": "soft", "value": "x", "effect": "PREFER_NO_SCHEDULE"},
        {"key": "team", "value": "x", "effect": "NO_EXECUTE"},
        {"key": "cloud.google.com/gke-quick-remove", "value": "true", "effect": "NO_SCHEDULE"},
    ]
    assert [taint.key for taint in view({"nodeConfig.taints": taints}).taints] == [
        "team",
        "cloud.google.com/gke-quick-remove",
    ]
