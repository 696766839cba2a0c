"""Pools as Pulumi declares them, read for the rules."""

from __future__ import annotations

from typing import Any

import pytest

from kueue_admission.kernel.unknown import UNKNOWN
from kueue_fleet.gke.labels import NodeTaint
from kueue_fleet.gke.pool import Breach, Gpus, Pool, property_path, read_pool
from kueue_fleet.gke.pool_rules import breaches

A, B = "europe-west4-a", "europe-west4-b"


def read(inputs: dict[str, Any], **cluster: Any) -> Pool:
    of_cluster: dict[str, Any] = {"region": "europe-west4", "zones": [], "zone_count": 3, "release_channel": True}
    of_cluster["image_streaming"] = False
    return read_pool(inputs, **of_cluster | cluster)


def test_what_is_left_out_has_the_default_of_the_provider_or_of_gke() -> None:
    result = read({})
    assert result == Pool(machine_type="e2-medium", region="europe-west4", zone_count=3)
    assert (result.auto_repair, result.auto_upgrade) == (True, True)
    assert list(breaches(result)) == []


def test_zones_are_the_pools_own_or_the_clusters() -> None:
    assert read({"nodeLocations": [B]}, zones=[A]).zones == (B,)
    assert read({"nodeLocations": [B]}, zones=[A]).zone_count == 1
    assert read({}, zones=[A, B], zone_count=2).zones == (A, B)
    away = read({}, zones=UNKNOWN, zone_count=UNKNOWN)
    assert away.unknown == {"zones", "zone_count"}
    assert read({"nodeLocations": UNKNOWN}).unknown == {"zones", "zone_count"}
    assert read({"nodeLocations": [A, UNKNOWN]}).unknown == {"zones", "zone_count"}


def test_limits_by_zone_are_those_of_all_zones_together() -> None:
    by_zone = {"autoscaling": {"minNodeCount": 1, "maxNodeCount": 2}}
    result = read(by_zone)
    assert (result.least_nodes, result.most_nodes, result.limits_by_zone, result.limits_in_total) == (3, 6, True, False)
    assert {"least_nodes", "most_nodes"} <= read(by_zone, zone_count=UNKNOWN, zones=UNKNOWN).unknown
    from_zero = read({"autoscaling": {"maxNodeCount": 2}}, zone_count=UNKNOWN, zones=UNKNOWN)
    assert "least_nodes" not in from_zero.unknown
    total = read({"autoscaling": {"totalMinNodeCount": 1, "totalMaxNodeCount": "4"}})
    assert (total.least_nodes, total.most_nodes, total.limits_in_total) == (1, 4, True)
    assert {"least_nodes", "most_nodes", "limits_in_total"} <= read({"autoscaling": UNKNOWN}).unknown


@pytest.mark.parametrize(
    ("inputs", "expected"),
    [
        ({"nodeConfig": {"preemptible": True}}, {"spot": True}),
        ({"nodeConfig": {"spot": "true"}}, {"spot": True}),
        ({"management": {"autoRepair": False}}, {"auto_repair": False}),
        ({"nodeConfig": {"maxRunDuration": "60s"}}, {"max_run_duration": "60s", "max_run_seconds": 60.0}),
        ({"nodeConfig": {"maxRunDuration": "1h"}}, {"max_run_duration": "1h", "max_run_seconds": None}),
        ({"nodeConfig": {"reservationAffinity": {"consumeReservationType": "UNSPECIFIED"}}}, {}),
        ({"nodeConfig": [{"machineType": "g2-standard-4"}]}, {"machine_type": "g2-standard-4"}),
        ({"nodeConfig": {"bootDisk": {"diskType": "pd-ssd"}}}, {"disk_type": "pd-ssd"}),
        (
            {"nodeConfig": {"localSsdCount": 1, "localNvmeSsdBlockConfig": {"localSsdCount": 2}}},
            {"block_local_ssds": 3},
        ),
        ({"nodeConfig": {"labels": {"a": "b"}}}, {"labels": {"a": "b"}}),
        (
            {"nodeConfig": {"taints": [{"key": "a", "value": "b", "effect": "NO_EXECUTE"}]}},
            {"taints": (NodeTaint("a", "b", "NoExecute"),)},
        ),
        (
            {"nodeConfig": {"guestAccelerators": [{"type": "nvidia-l4", "count": "2"}]}},
            {"gpus": (Gpus("nvidia-l4", 2),)},
        ),
        ({"placementPolicy": {"type": "COMPACT", "tpuTopology": "2x2"}}, {"compact": True, "tpu_topology": "2x2"}),
        ({"upgradeSettings": {"strategy": "BLUE_GREEN"}}, {"blue_green": True}),
    ],
)
def test_facts(inputs: dict[str, Any], expected: dict[str, Any]) -> None:
    plain: dict[str, Any] = {"machine_type": "e2-medium", "region": "europe-west4", "zone_count": 3}
    assert read(inputs) == Pool(**plain | expected)


@pytest.mark.parametrize("junk", [None, True, -1, "[secret]", [], {}, [None], {"x": "y"}, float("inf"), "1e999"])
def test_wrong_values_are_read_as_nothing(junk: Any) -> None:
    for path in ("nodeConfig", "autoscaling", "nodeLocations", "nodeCount", "management", "placementPolicy"):
        list(breaches(read({path: junk})))
    for key in ("guestAccelerators", "taints", "labels", "maxRunDuration", "reservationAffinity", "localSsdCount"):
        list(breaches(read({"nodeConfig": {key: junk}})))


def test_a_breach_names_the_property() -> None:
    facts = Pool(limits_by_zone=True, labels={"k8s.io/x": ""})
    breach = Breach("least_nodes", "", "")
    assert property_path(facts, breach) == "autoscaling.minNodeCount"
    assert property_path(Pool(limits_in_total=True), breach) == "autoscaling.totalMinNodeCount"
    assert property_path(facts, Breach("most_nodes", "", "")) == "autoscaling.maxNodeCount"
    assert property_path(facts, Breach("labels", "", "", 0)) == "nodeConfig.labels[k8s.io/x]"
    assert property_path(facts, Breach("gpus.type", "", "", 1)) == "nodeConfig.guestAccelerators[1].type"
    assert property_path(facts, Breach("taints", "", "", 2)) == "nodeConfig.taints[2]"
