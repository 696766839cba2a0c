"""Clusters outside GKE become a fleet file again, with the nodes that kubectl prints."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from typing import Any

import pytest
from tests.adopt.existing_platform import existing_cluster

from kueue_fleet.adopt import Adopted, AdoptedCluster, Identity, adopt_fleet
from kueue_fleet.adopt.plain_clusters import adopt_nodes
from kueue_fleet.fleet_file import FleetSpec, parse_fleet
from plain_fleets import PRODUCT, alone, alone_data, mixed

A100 = {PRODUCT: "NVIDIA-A100-SXM4-40GB"}
TAINT = {"key": "nvidia.com/gpu", "effect": "NoSchedule"}
NOT_READY = {"key": "node.kubernetes.io/not-ready", "effect": "NoExecute"}


def node(name: str, labels: dict[str, str], *taints: dict[str, str], gpus: int = 8) -> dict[str, Any]:
    """As kubectl prints it."""
    amounts = {"cpu": "120", "memory": "900Gi", "pods": "110", "hugepages-2Mi": "0", "nvidia.com/gpu": str(gpus)}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, **labels}},
        "spec": {"taints": list(taints)},
        "status": {"allocatable": amounts},
    }


NODES = (
    node("a", A100),
    node("b", A100, NOT_READY),
    node("c", A100, TAINT),
    node("control", {"node-role.kubernetes.io/control-plane": ""}),
)


def found(fleet: FleetSpec, cluster: str, *nodes: dict[str, Any]) -> AdoptedCluster:
    given = existing_cluster(fleet, cluster)
    return replace(given, region="", mode=None, objects=[*given.objects, *nodes], outside_gke=True)


def adopted(*clusters: AdoptedCluster, project: str = "") -> Adopted:
    when = date(2027, 2, 1), date(2026, 11, 22)
    return adopt_fleet(clusters, Identity("mixed", project, *when, default_kueue=True, in_place=True))


def test_nodes_that_are_alike_are_one_kind() -> None:
    [cluster] = adopted(found(alone(), "paris", *NODES)).data["clusters"]
    amounts = {"cpu": "120", "memory": "900Gi", "nvidia.com/gpu": "8"}
    assert cluster["nodes"] == [
        {"name": "dgx", "count": 2, "labels": A100, "allocatable": amounts},
        {"name": "dgx-2", "count": 1, "labels": A100, "taints": [TAINT], "allocatable": amounts},
    ]


def test_a_fleet_without_gke_has_no_project() -> None:
    data = adopted(found(alone(), "paris")).data
    assert "project" not in data
    assert parse_fleet(data).plain_clusters == ("paris",)


def test_what_only_clusters_of_gke_have_is_not_in_the_file() -> None:
    [cluster] = adopted(found(alone(), "paris", *NODES)).data["clusters"]
    assert cluster.keys() == {"name", "role", "kubernetes", "nodes", "upsertExistingObjects"}


def test_nothing_is_said_of_nodes_and_of_google_cloud() -> None:
    notes = adopted(found(alone(), "paris", *NODES)).notes
    assert [note for note in notes if "Node" in note or "Google" in note] == []


def test_a_worker_beside_one_of_gke() -> None:
    fleet = mixed()
    of_gke = [existing_cluster(fleet, name) for name in ("manager", "gke")]
    data = adopted(*of_gke, found(fleet, "paris", NODES[0]), project="mixed-project").data
    again = parse_fleet(data)
    assert (again.plain_clusters, again.worker_names) == (("paris",), fleet.worker_names)
    assert {entry.name for entry in again.flavors} == {item.name for item in fleet.flavors}


def test_pod_monitors_come_back() -> None:
    data = alone_data()
    data["clusters"][0]["podMonitors"] = {"labels": {"release": "prometheus"}}
    [cluster] = adopted(found(parse_fleet(data), "paris")).data["clusters"]
    assert cluster["podMonitors"] == {"labels": {"release": "prometheus"}}
    assert "kueue" not in cluster
    data["clusters"][0]["podMonitors"] = {}
    [cluster] = adopted(found(parse_fleet(data), "paris")).data["clusters"]
    assert cluster["podMonitors"] == {}


@pytest.mark.parametrize(
    ("flavor", "names"),
    [
        ({}, ["free"]),
        ({"tolerations": [{"operator": "Exists"}]}, ["free", "tainted"]),
        ({"nodeTaints": [TAINT]}, ["free", "tainted"]),
    ],
)
def test_a_flavor_without_labels_leads_to_the_nodes_that_its_jobs_may_use(
    flavor: dict[str, Any], names: list[str]
) -> None:
    nodes = node("free", {}), node("tainted", {}, TAINT), node("control", {"node-role.kubernetes.io/control-plane": ""})
    assert [item for item in nodes if adopt_nodes([item], {"any": flavor})] == [
        entry for entry in nodes if entry["metadata"]["name"] in names
    ]
