from __future__ import annotations

from typing import Any

from kueue_fleet.gke.labels import RESIZE_REQUEST
from kueue_rehearsal.cloud.node_removal import plan_removals, plan_retirement
from kueue_rehearsal.cloud.node_templates import AUTOSCALED


def test_empty_nodes_go_after_a_while_and_bound_or_used_or_foreign_ones_stay() -> None:
    def node(**labels: str) -> dict[str, Any]:
        return {"metadata": {"labels": labels}, "status": {"ready": True}}

    nodes = {
        "idle": node(**{AUTOSCALED: "true"}),
        "used": node(**{AUTOSCALED: "true"}),
        "done": node(**{AUTOSCALED: "true"}),
        "bound": node(**{AUTOSCALED: "true", RESIZE_REQUEST: "r"}),
        "static": node(),
    }

    def pod(name: str, phase: str, owner: str = "Job") -> dict[str, Any]:
        metadata = {"ownerReferences": [{"kind": owner}]}
        return {"metadata": metadata, "spec": {"nodeName": name}, "status": {"phase": phase}}

    pods = [pod("used", "Running"), pod("done", "Succeeded"), pod("idle", "Running", "DaemonSet")]
    removals, since = plan_removals(nodes, pods, {}, 100.0, 30.0)
    assert (removals, since) == ([], {"idle": 100.0, "done": 100.0})
    assert plan_removals(nodes, pods, since, 130.0, 30.0)[0] == ["done", "idle"]
    # Whoever was used in between starts anew.
    busy = [*pods, pod("idle", "Pending")]
    _, since = plan_removals(nodes, busy, since, 120.0, 30.0)
    assert plan_removals(nodes, pods, since, 131.0, 30.0)[0] == ["done"]


def test_a_new_node_is_not_empty_before_it_is_ready() -> None:
    node = {"metadata": {"labels": {AUTOSCALED: "true"}}, "status": {"ready": False}}
    assert plan_removals({"new": node}, [], {"new": 1.0}, 100.0, 30.0) == ([], {})
    node["status"] = {"ready": True}
    assert plan_removals({"new": node}, [], {}, 100.0, 30.0) == ([], {"new": 100.0})


def test_a_node_is_closed_before_it_is_deleted_and_opened_again_when_needed() -> None:
    def node(*taints: dict[str, str]) -> dict[str, Any]:
        return {"spec": {"taints": [{"key": "nvidia.com/gpu"}, *taints]}}

    closed = {"key": "ToBeDeletedByClusterAutoscaler", "value": "100", "effect": "NoSchedule"}
    nodes = {"open": node(), "closed": node(closed), "needed": node(closed), "other": node()}
    assert plan_retirement(["open", "closed"], nodes, 100.9) == (["open"], [], ["needed"])
    assert plan_retirement(["open", "closed"], nodes, 101.0) == (["open"], ["closed"], ["needed"])
    assert plan_retirement(["long gone"], nodes, 101.0) == ([], [], ["closed", "needed"])


def test_a_pool_keeps_the_nodes_that_it_always_has() -> None:
    labels = {AUTOSCALED: "true", "cloud.google.com/gke-nodepool": "system"}
    nodes = {name: {"metadata": {"labels": labels}, "spec": {}, "status": {"ready": True}} for name in ("a", "b", "c")}
    since = {"a": 3.0, "b": 1.0, "c": 2.0}
    assert plan_removals(nodes, [], since, 100.0, 10.0, {"system": 2})[0] == ["b"]
    assert plan_removals(nodes, [], since, 100.0, 10.0, {"system": 3})[0] == []
    assert plan_removals(nodes, [], since, 100.0, 10.0)[0] == ["a", "b", "c"]
