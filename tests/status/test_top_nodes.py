"""The nodes of a flavor in `top`: those of its pools, or those that GKE made for its labels."""

from __future__ import annotations

from typing import Any

from kueue_fleet.fleet_file import FleetSpec
from kueue_fleet.objects import render_cluster
from kueue_fleet.status import ClusterObjects, FlavorTop, flavor_tops
from plain_fleets import PRODUCT, alone

GPU = "nvidia.com/gpu"
L4 = {"cloud.google.com/gke-accelerator": "nvidia-l4"}
GROUPS = [
    {"coveredResources": [GPU], "flavors": [{"name": "l4", "resources": [{"name": GPU, "nominalQuota": 8}]}]},
]
AUTOPILOT = FleetSpec.model_validate(
    {
        "name": "lab",
        "project": "my-project",
        "clusters": [{"name": "c", "role": "standalone", "region": "us-central1"}],
        "flavors": [{"name": "l4", "nodeLabels": L4}],
        "clusterQueues": [{"name": "cq", "resourceGroups": GROUPS}],
        "localQueues": [{"name": "lq", "clusterQueue": "cq", "namespace": "default"}],
    }
)


def node(name: str, labels: dict[str, str], gpus: int, *, ready: str = "True") -> dict[str, Any]:
    status = {"allocatable": {GPU: str(gpus)}, "conditions": [{"type": "Ready", "status": ready}]}
    return {"metadata": {"name": name, "labels": labels}, "status": status}


def only(nodes: list[dict[str, Any]]) -> FlavorTop:
    queue = {"metadata": {"name": "cq"}, "spec": {"resourceGroups": GROUPS}}
    listed = {"clusterqueues": [queue], "nodes": nodes}
    [result] = flavor_tops(AUTOPILOT, {"c": ClusterObjects("standalone", listed)})
    return result


def test_nodes_of_autopilot_count_by_the_labels_of_the_flavor() -> None:
    nodes = [
        node("a", L4, 2),
        node("b", L4, 1),
        node("unready", L4, 1, ready="False"),
        node("t4", {"cloud.google.com/gke-accelerator": "nvidia-tesla-t4"}, 4),
        node("cpu", {}, 0),
    ]
    result = only(nodes)
    assert (result.nodes, result.most_nodes, result.on_nodes) == (2, None, 3)


def test_nodes_outside_gke_are_their_owners() -> None:
    fleet = alone()
    [queue] = [dict(item) for item in render_cluster(fleet, "paris") if item["kind"] == "ClusterQueue"]
    nodes = [node("a", {PRODUCT: "NVIDIA-A100-SXM4-40GB"}, 8), node("cpu", {}, 0)]
    listed: dict[str, list[dict[str, Any]]] = {"clusterqueues": [queue], "nodes": nodes}
    [result] = flavor_tops(fleet, {"paris": ClusterObjects("standalone", listed)})
    assert (result.capacity, result.nodes, result.most_nodes, result.on_nodes) == (("owned",), 1, 2, 8)
