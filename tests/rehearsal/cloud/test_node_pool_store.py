from __future__ import annotations

from pathlib import Path

from kueue_rehearsal.cloud.node_pool_store import NodePoolStore
from kueue_rehearsal.cloud.node_templates import Place

PLACE = Place.of("worker", "europe-west4")
BODY = {"nodeCount": 2, "nodeConfig": {"machineType": "g2-standard-24"}}
SCALING = {
    "enabled": True,
    "autoProvisioningLocations": ["europe-west4-c"],
    "resourceLimits": [{"resourceType": "cpu", "maximum": 10}],
}


def test_everything_is_there_again_after_a_restart(tmp_path: Path) -> None:
    store = NodePoolStore(tmp_path / "pools.json", PLACE, autopilot=False)
    store.put_inputs({"nodeLocations": ["europe-west4-b"], "clusterAutoscaling": SCALING, "name": "other"})
    store.put("l4", BODY, 1796083200.0)
    store.put("gone", BODY)
    store.remove("gone")
    store.remove("never")
    again = NodePoolStore(tmp_path / "pools.json", PLACE, autopilot=False)
    assert again.pools == store.pools
    assert list(again.pools) == ["l4"]
    assert again.inputs == store.inputs
    assert (again.pools["l4"].is_over(1796083199.0), again.pools["l4"].is_over(1796083200.0)) == (False, True)
    assert again.inputs["nodePools"] == {"l4": BODY}
    assert again.inputs["cluster"]["name"] == "other"
    assert again.pools["l4"].view.zones == again.place.zones == ("europe-west4-b",)
    assert again.auto_provisioning_place.zones == ("europe-west4-c",)
    assert again.auto_provisions


def test_auto_provisioning_is_what_the_cluster_says(tmp_path: Path) -> None:
    store = NodePoolStore(tmp_path / "a.json", PLACE, autopilot=False)
    assert not store.auto_provisions
    assert store.limits({}) is None
    store.put_inputs({"clusterAutoscaling": SCALING})
    limits = store.limits({})
    assert limits is not None
    assert limits.most == {"cpu": 10}
    autopilot = NodePoolStore(tmp_path / "b.json", PLACE, autopilot=True)
    autopilot.put_inputs({"clusterAutoscaling": {"autoProvisioningDefaults": {}}})
    assert autopilot.auto_provisions
    assert autopilot.limits({}) is None
