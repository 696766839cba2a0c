from __future__ import annotations

from typing import Any

import pytest

from kueue_fleet.fleet_file import parse_fleet
from kueue_fleet.fleet_file.model.resolved_pools import ResolvedNodePool, resolve_pool
from kueue_fleet.gke.pool import reservation_name
from kueue_rehearsal.cloud.node_pools import NodePool, parse_node_pool
from kueue_rehearsal.cloud.node_templates import AUTOSCALED, Place

PLACE = Place.of("worker", "europe-west4")
ZONES = PLACE.zones


def pool(body: dict[str, Any] | None = None, **config: Any) -> NodePool:
    inputs = {"nodeCount": 2.0, "nodeConfig": {"machineType": "g2-standard-24", **config}, **(body or {})}
    return parse_node_pool("l4", inputs, ZONES)


def test_a_fixed_pool_has_its_nodes_in_each_zone_under_names_that_stay() -> None:
    result = pool()
    nodes = result.standing_nodes(PLACE)
    assert (result.view.min_nodes, result.view.max_nodes, len(nodes)) == (6, 6, 6)
    assert {node.labels["topology.kubernetes.io/zone"] for node in nodes} == set(ZONES)
    assert [node.name for node in nodes] == [node.name for node in pool().standing_nodes(PLACE)]
    assert len({node.name for node in nodes}) == 6
    assert AUTOSCALED not in nodes[0].labels


def test_other_machines_are_other_nodes() -> None:
    before, after = pool(), pool(machineType="g2-standard-48")
    assert before.fingerprint != after.fingerprint
    assert not {node.name for node in before.standing_nodes(PLACE)} & {n.name for n in after.standing_nodes(PLACE)}
    assert pool({"nodeCount": 5}).fingerprint == before.fingerprint


def test_labels_taints_and_sizes_come_from_the_inputs() -> None:
    result = pool(
        {"maxPodsPerNode": 32.0},
        labels={"team": "a"},
        taints=[{"key": "team", "value": "a", "effect": "NO_EXECUTE"}],
        diskSizeGb=200.0,
        spot=True,
    )
    (node, *_) = result.standing_nodes(PLACE)
    assert node.labels["team"] == "a"
    assert node.labels["cloud.google.com/gke-nodepool"] == "l4"
    assert node.labels["cloud.google.com/gke-spot"] == "true"
    assert node.labels["cloud.google.com/gke-accelerator"] == "nvidia-l4"
    # A Spot pool has no taint of GKE's; auto-provisioned Spot nodes do.
    assert [taint["key"] for taint in node.taints] == ["team", "nvidia.com/gpu"]
    assert node.taints[0]["effect"] == "NoExecute"
    status = node.manifest()["status"]
    assert (status["capacity"]["pods"], status["capacity"]["nvidia.com/gpu"]) == ("32", "2")
    assert status["capacity"]["ephemeral-storage"] == str(200 * 1000**3)


def test_the_pools_own_taint_stands_for_gkes_of_the_same_key() -> None:
    (node, *_) = pool(taints=[{"key": "nvidia.com/gpu", "value": "mine", "effect": "NO_SCHEDULE"}]).standing_nodes(
        PLACE
    )
    assert [(taint["key"], taint["value"]) for taint in node.taints] == [("nvidia.com/gpu", "mine")]


def test_attached_gpus_are_those_of_the_inputs() -> None:
    result = pool(machineType="n1-standard-8", guestAccelerators=[{"type": "nvidia-tesla-t4", "count": 2.0}])
    assert (result.machine.accelerator, result.machine.gpus) == ("nvidia-tesla-t4", 2)
    without = pool(machineType="e2-standard-8", guestAccelerators=[{"type": "nvidia-tesla-t4", "count": 0}])
    assert (without.machine.accelerator, without.machine.gpus) == (None, 0)


@pytest.mark.parametrize(
    ("scaling", "limits"),
    [
        ({"totalMinNodeCount": 1.0, "totalMaxNodeCount": 24.0}, (1, 24)),
        ({"minNodeCount": 1.0, "maxNodeCount": 4.0}, (3, 12)),
        ({"totalMaxNodeCount": 5}, (0, 5)),
    ],
)
def test_limits_hold_for_all_zones_together(scaling: dict[str, Any], limits: tuple[int, int]) -> None:
    view = pool({"autoscaling": scaling, "nodeCount": None}).view
    assert (view.min_nodes, view.max_nodes) == limits


def test_an_autoscaled_pool_begins_with_its_initial_count() -> None:
    result = pool({"autoscaling": {"totalMaxNodeCount": 9}, "nodeCount": None, "initialNodeCount": 1})
    assert len(result.first_nodes(PLACE)) == 3
    assert result.standing_nodes(PLACE) == ()


def test_a_queued_pool_has_no_node_by_itself() -> None:
    result = pool({"autoscaling": {"totalMaxNodeCount": 9}, "queuedProvisioning": {"enabled": True}, "nodeCount": None})
    assert result.standing_nodes(PLACE) == result.first_nodes(PLACE) == ()
    assert not result.on_demand_of_pods
    assert "cloud.google.com/gke-queued" in {taint["key"] for taint in result.template(PLACE, ZONES[0], "x").taints}


@pytest.mark.parametrize(
    ("value", "name"),
    [("r", "r"), ("projects/p/reservations/r", "r"), ("projects/p/reservations/r/reservationBlocks/b", "r")],
)
def test_names_of_reservations(value: str, name: str) -> None:
    assert reservation_name(value) == name


def resolved(capacity: dict[str, Any], **fields: Any) -> ResolvedNodePool:
    fleet = parse_fleet(
        {
            "name": "f",
            "project": "my-project",
            "clusters": [{"name": "one", "role": "standalone", "region": "europe-west4", "mode": "Standard"}],
            "nodePools": [
                {
                    "name": "l4",
                    "machineType": "g2-standard-24",
                    "zones": ["europe-west4-a"],
                    "autoscaling": {"totalMaxNodeCount": 4},
                    "capacity": capacity,
                    **fields,
                }
            ],
        }
    )
    return resolve_pool(fleet.node_pools[0], fleet.clusters[0])


@pytest.mark.parametrize(
    "capacity",
    [{"type": "onDemand"}, {"type": "spot"}, {"type": "flexStart"}, {"type": "flexStart", "queuedProvisioning": False}],
)
def test_a_node_has_what_the_spec_says_of_its_pool(capacity: dict[str, Any]) -> None:
    """The two ways from one fleet file, the spec's and the one through the provider's inputs, meet."""
    spec = resolved(capacity, labels={"tier": "batch"}, taints=[{"key": "t", "value": "v", "effect": "NoSchedule"}])
    body = {
        "autoscaling": {"totalMaxNodeCount": 4},
        "nodeLocations": ["europe-west4-a"],
        "queuedProvisioning": {"enabled": spec.queued},
        "nodeConfig": {
            "machineType": spec.machine_type,
            "labels": dict(spec.own_labels),
            "taints": [{"key": "t", "value": "v", "effect": "NO_SCHEDULE"}],
            "spot": capacity["type"] == "spot",
            "flexStart": capacity["type"] == "flexStart",
            "diskSizeGb": spec.disk_size_gb,
        },
    }
    node = parse_node_pool("l4", body, ZONES).template(PLACE, "europe-west4-a", "x")
    assert {key: node.labels.get(key) for key in spec.labels} == dict(spec.labels)
    expected = {(taint.key, taint.value, taint.effect) for taint in spec.taints}
    assert {(taint["key"], taint["value"], taint["effect"]) for taint in node.taints} == expected
    assert node.allocatable == dict(spec.allocatable)
