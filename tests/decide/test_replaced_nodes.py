"""The cases of Kueue's table TestScheduleForTAS in which a node has failed under an admitted workload.

Source: kueue@v0.19.2 pkg/scheduler/scheduler_tas_test.go ("workload with unhealthyNode ...").
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.decide.expand import ZERO, manifests

from kueue_admission.decide.decisions import Evicted, NodesReplaced, Parked
from kueue_admission.decide.engine import Engine
from kueue_admission.decide.events import (
    CheckStateChanged,
    CycleStarted,
    Finished,
    ObjectsChanged,
    PodsStopped,
    Submitted,
    TimePassed,
)
from kueue_admission.decide.model import CheckState
from kueue_admission.decide.pods import Taint, Toleration
from kueue_admission.read.configuration import parse_configuration
from kueue_admission.read.kueue_objects import parse_objects
from kueue_admission.releases import release

Json = dict[str, Any]
Places = dict[str, int]
BLOCK, RACK, HOST = "cloud.com/topology-block", "cloud.provider.com/rack", "kubernetes.io/hostname"
# Block, rack, and in units of one core and 1Gi: what the node has.
NODES = {
    "x1": ("b1", "r1", 1, 1),
    "x2": ("b1", "r2", 1, 1),
    "x3": ("b1", "r2", 1, 1),
    "x4": ("b1", "r2", 1, 1),
    "x5": ("b2", "r1", 1, 1),
    "x6": ("b2", "r2", 2, 4),
}


def slices(level: str, size: int) -> Json:
    return {"podSetSliceRequiredTopology": level, "podSetSliceSize": size}


CASES: dict[str, tuple[str, Json, Json, Places, Places | None]] = {
    "baseline": ("x0", {"preferred": HOST}, {"cpu": "1"}, {"x0": 1}, {"x1": 1}),
    "fit in different rack": ("x0", {"preferred": RACK}, {"cpu": "500m"}, {"x0": 1, "x1": 1}, {"x1": 2}),
    "preferred; no fit; FailFast": ("x0", {"preferred": RACK}, {"cpu": "3"}, {"x0": 1}, None),
    "podspec constraints apply": ("x0", {"preferred": RACK}, {"cpu": "1", "memory": "2Gi"}, {"x0": 1}, {"x6": 1}),
    "required rack; fit": ("x0", {"required": RACK}, {"cpu": "1"}, {"x0": 1, "x2": 1}, {"x2": 1, "x3": 1}),
    "required rack for a single node": ("x0", {"required": RACK}, {"cpu": "1"}, {"x0": 1}, {"x1": 1}),
    "required rack; no fit": ("x0", {"required": RACK}, {"cpu": "1"}, {"x0": 1, "x1": 1}, None),
    "slices; baseline": (
        "x2", {"preferred": BLOCK, **slices(RACK, 2)}, {"cpu": "1"}, {"x2": 1, "x3": 1}, {"x3": 1, "x4": 1},
    ),
    "slices; incomplete slice": (
        "x2", {"preferred": BLOCK, **slices(RACK, 8)}, {"cpu": "250m"}, {"x2": 4, "x3": 4}, {"x3": 4, "x4": 4},
    ),
    "slices; whole slices": (
        "x3",
        {"required": BLOCK, **slices(RACK, 4)},
        {"cpu": "250m"},
        {"x2": 4, "x3": 4, "x4": 4},
        {"x1": 4, "x2": 4, "x4": 4},
    ),
    "slices; whole slice and incomplete slice": (
        "x1", {"required": BLOCK, **slices(RACK, 2)}, {"cpu": "200m"}, {"x1": 3, "x2": 5}, {"x2": 5, "x3": 3},
    ),
    "slices; the whole workload": ("x1", {"required": RACK, **slices(HOST, 2)}, {"cpu": "250m"}, {"x1": 4}, {"x5": 4}),
    "slices; finds correct slice domain": (
        "x7",
        {"preferred": BLOCK, **slices(BLOCK, 4)},
        {"cpu": "500m"},
        {"x1": 2, "x3": 2, "x5": 2, "x7": 2},
        {"x1": 2, "x3": 2, "x5": 2, "x6": 2},
    ),
    "slices; no fit; FailFast": (
        "x0", {"preferred": BLOCK, **slices(RACK, 2)}, {"cpu": "1"}, {"x0": 1, "x1": 1}, None,
    ),
}  # fmt: skip


def assignment(places: Places) -> Json:
    domains = [
        {"domainCount": 1, "podCounts": {"universal": count}, "valuesPerLevel": [{"universal": host}]}
        for host, count in places.items()
    ]
    return {"levels": [HOST], "slices": domains}


def objects(nodes: Json, levels: list[str], failed: str, pod_sets: Json, held: dict[str, Places], **more: Json) -> Any:
    """A cluster with the workload `foo`, under which a node has failed, and `more` that wait."""
    flavors = {"cpu": "tas-default 1"}
    reserved = {
        name: {"count": sum(places.values()), "flavors": flavors, "topologyAssignment": assignment(places)}
        for name, places in held.items()
    }
    true = {kind: ["True", "ByTest", -10] for kind in ("QuotaReserved", "Admitted")}
    workload = {
        "queue": "lq", "podSets": pod_sets, "reserved": {"queue": "cq", "podSets": reserved}, "conditions": true,
    }  # fmt: skip
    result = manifests(
        {
            "flavors": {"tas-default": {"nodeLabels": {"tas-node": "true"}, "topologyName": "t"}},
            "topologies": {"t": levels},
            "nodes": nodes,
            "queues": {"cq": {"groups": [{"tas-default": {"cpu": "50", "memory": "50Gi"}}]}},
            "localQueues": {"default/lq": "cq"},
            "workloads": {**more, "default/foo": workload},
        }
    )
    result[-1]["status"]["unhealthyNodes"] = [{"name": failed}] if failed else []
    return result


def engine_of(found: Any, version: str = "0.19.2", **gates: bool) -> Engine:
    """An engine with these objects, a cycle of which is due."""
    parsed = parse_objects(found, parse_configuration({"featureGates": gates}, release(version)))
    engine = Engine(parsed.with_namespaces())
    for workload in parsed.workloads:
        engine.handle(Submitted(ZERO, workload))
    return engine


def decided(found: Any, version: str = "0.19.2") -> tuple[dict[str, dict[str, Places]], list[Any]]:
    """Where the pods of each workload's pod sets are after one cycle, and what was decided in it."""
    engine = engine_of(found, version)
    decisions = engine.handle(CycleStarted(ZERO))
    return places_of(engine), decisions


def places_of(engine: Engine) -> dict[str, dict[str, Places]]:
    """Where the pods of each workload's pod sets are."""
    return {
        info.workload.name: {
            ps.name: {item.values[-1]: item.count for item in ps.topology or ()} for ps in info.admission.pod_sets
        }
        for info in engine.workloads.values()
        if info.admission is not None
    }


def replaced(failed: str, pod_sets: Json, held: dict[str, Places]) -> tuple[dict[str, Places], list[Any]]:
    """The same of `foo`, on the nodes of Kueue's table."""
    nodes = {
        name: {
            "labels": {"tas-node": "true", BLOCK: block, RACK: rack, HOST: name},
            "allocatable": {"cpu": str(cores), "memory": f"{gi}Gi", "pods": "40"},
        }
        for name, (block, rack, cores, gi) in NODES.items()
    }
    places, decisions = decided(objects(nodes, [BLOCK, RACK, HOST], failed, pod_sets, held))
    return places["foo"], decisions


@pytest.mark.parametrize("name", CASES)
def test_pods_go_where_kueue_puts_them(name: str) -> None:
    failed, request, requests, held, expected = CASES[name]
    pod_sets = {"one": {"count": sum(held.values()), "requests": requests, "topologyRequest": request}}
    places, decisions = replaced(failed, pod_sets, {"one": held})
    [decision] = decisions
    if expected is None:
        assert isinstance(decision, Evicted)
        assert decision.message == f"Workload was evicted as there was no replacement for unhealthy node(s): {failed}"
    else:
        assert isinstance(decision, NodesReplaced)
        assert places == {"one": expected}


def test_of_two_pod_sets_only_the_one_on_the_node_moves() -> None:
    pod_set = {"count": 1, "requests": {"cpu": "1"}, "topologyRequest": {"preferred": HOST}}
    places, _ = replaced("x0", {"one": pod_set, "two": pod_set}, {"one": {"x0": 1}, "two": {"x1": 1}})
    assert places == {"one": {"x2": 1}, "two": {"x1": 1}}


@pytest.mark.parametrize(("version", "wanted"), [("0.19.2", ["x2", "x3"]), ("0.18.3", ["x2", "x2"])])
def test_the_new_place_is_taken_for_the_heads_after_it(version: str, wanted: list[str]) -> None:
    """Before 0.19.2, another job of the same cycle could get it too."""
    nodes = {
        name: {"labels": {"tas-node": "true", HOST: name}, "allocatable": {"cpu": "1", "pods": "10"}}
        for name in ("x1", "x2", "x3")
    }
    pod_sets = {"one": {"count": 1, "requests": {"cpu": "1"}, "topologyRequest": {"required": HOST}}}
    contender = {"queue": "lq", "podSets": pod_sets}
    result = objects(nodes, [HOST], "x1", pod_sets, {"one": {"x1": 1}}, **{"default/contender": contender})
    places, _ = decided(result, version)
    assert [*places["foo"]["one"], *places["contender"]["one"]] == wanted


def hosts(*names: str, **more: Json) -> Json:
    """Nodes of one core."""
    return {
        name: {"labels": {"tas-node": "true", HOST: name}, "allocatable": {"cpu": "1", "pods": "10"}, **more}
        for name in names
    }


ONE = {"one": {"count": 1, "requests": {"cpu": "1"}, "topologyRequest": {"required": HOST}}}


def holder(name: str, priority: int) -> Json:
    """A workload with its pod on the node of this name."""
    reserved = {"count": 1, "flavors": {"cpu": "tas-default 1"}, "topologyAssignment": assignment({name: 1})}
    return {
        "queue": "lq",
        "podSets": ONE,
        "priority": priority,
        "reserved": {"queue": "cq", "podSets": {"one": reserved}},
        "conditions": {kind: ["True", "ByTest", -10] for kind in ("QuotaReserved", "Admitted")},
    }


def test_without_failing_fast_the_pods_stay_and_kueue_tries_again() -> None:
    """The case `preferred; no fit` of Kueue's table; then it waits 1 s, and each time twice as long, up to 30 s."""
    result = objects(hosts("x1"), [HOST], "x0", ONE, {"one": {"x0": 1}}, **{"default/bar": holder("x1", 0)})
    engine, now, waits = engine_of(result, TASFailedNodeReplacementFailFast=False), ZERO, []
    for _ in range(7):
        assert engine.handle(CycleStarted(now)) == []
        due = engine.next_timer()
        assert due is not None
        waits.append(due - now)
        engine.handle(TimePassed(now := due))
        assert engine.wants_cycle
    assert waits == [1, 2, 4, 8, 16, 30, 30]
    engine.handle(Finished(now, "default/bar"))
    assert isinstance(engine.handle(CycleStarted(now))[0], NodesReplaced)
    assert places_of(engine) == {"foo": {"one": {"x1": 1}}}


def test_without_failing_fast_kueue_preempts_for_another_place() -> None:
    result = objects(hosts("x1"), [HOST], "x0", ONE, {"one": {"x0": 1}}, **{"default/bar": holder("x1", -1)})
    next(item for item in result if item["kind"] == "ClusterQueue")["spec"]["preemption"] = {
        "withinClusterQueue": "LowerPriority"
    }
    engine = engine_of(result, TASFailedNodeReplacementFailFast=False)
    [decision] = engine.handle(CycleStarted(ZERO))
    assert isinstance(decision, Evicted)
    assert (decision.key, decision.preemptor) == ("default/bar", "default/foo")
    engine.handle(PodsStopped(ZERO, "default/bar"))
    engine.handle(TimePassed(ZERO + 1))
    assert any(isinstance(entry, NodesReplaced) for entry in engine.handle(CycleStarted(ZERO + 1)))


def test_a_node_that_fails_under_a_mere_reservation_is_not_replaced() -> None:
    """Kueue finds workloads by the nodes of those that are admitted (pkg/controller/tas/indexer)."""
    result = objects(hosts("x1", "x2"), [HOST], "", ONE, {"one": {"x1": 1}})
    result[-1]["status"]["admissionChecks"] = [{"name": "c", "state": "Pending"}]
    result[-1]["status"]["conditions"] = [c for c in result[-1]["status"]["conditions"] if c["type"] != "Admitted"]
    next(item for item in result if item["kind"] == "ClusterQueue")["spec"]["admissionChecksStrategy"] = {
        "admissionChecks": [{"name": "c"}]
    }
    engine = engine_of(result)
    for left in (engine.objects.nodes[1:], ()):
        engine.handle(ObjectsChanged(ZERO, replace(engine.objects, nodes=left)))
    engine.handle(CheckStateChanged(ZERO, "default/foo", "c", CheckState.READY))
    assert engine.workloads["default/foo"].is_admitted
    engine.handle(TimePassed(ZERO + 1))
    assert not engine.wants_cycle
    assert places_of(engine) == {"foo": {"one": {"x1": 1}}}


def after_change(change: Json, version: str, **flavor: Any) -> list[type]:
    """What becomes of the workload on x1 after `change` of that node."""
    engine = engine_of(objects(hosts("x1", "x2"), [HOST], "", ONE, {"one": {"x1": 1}}), version)
    flavors = tuple(replace(entry, **flavor) for entry in engine.objects.flavors)
    engine.handle(ObjectsChanged(ZERO, replace(engine.objects, flavors=flavors)))
    nodes = tuple(replace(each, **change) if each.name == "x1" else each for each in engine.objects.nodes)
    engine.handle(ObjectsChanged(ZERO, replace(engine.objects, nodes=nodes)))
    engine.handle(TimePassed(ZERO + 1))
    return [type(item) for item in engine.handle(CycleStarted(ZERO + 1))]


BROKEN = (Taint("broken", "", "NoSchedule"),)


@pytest.mark.parametrize(
    ("change", "version", "is_replaced"),
    [
        ({"taints": BROKEN}, "0.19.2", True),
        ({"taints": BROKEN, "running": ("other",)}, "0.19.2", True),
        ({"taints": BROKEN, "running": ("default",)}, "0.19.2", False),
        ({"taints": BROKEN, "running": ("default",)}, "0.17.1", False),
        ({"ready": False, "running": ("default",)}, "0.19.2", False),
        ({"ready": False, "running": ("default",)}, "0.18.3", True),
    ],
)
def test_any_running_pod_of_the_namespace_keeps_a_node_from_being_replaced(
    change: Json, version: str, *, is_replaced: bool
) -> None:
    """Also of another job: the second field selector of Kueue's list of pods replaces the first."""
    assert after_change(change, version) == [NodesReplaced] * is_replaced


@pytest.mark.parametrize(("version", "found"), [("0.17.1", [NodesReplaced]), ("0.18.3", [])])
def test_before_0_18_a_node_fails_by_a_taint_that_only_the_flavor_tolerates(version: str, found: list[type]) -> None:
    assert after_change({"taints": BROKEN}, version, tolerations=(Toleration("broken", "Exists", "", ""),)) == found


def test_after_its_eviction_the_search_begins_anew() -> None:
    """Its only node is gone, and with it every place: no flavor is enough, rather than none at all."""
    engine = engine_of(objects({}, [HOST], "x1", ONE, {"one": {"x1": 1}}))
    assert isinstance(engine.handle(CycleStarted(ZERO))[0], Evicted)
    engine.handle(PodsStopped(ZERO, "default/foo"))
    assert [type(item) for item in engine.handle(CycleStarted(ZERO))] == [Parked]
    there = engine_of(objects(hosts("x1"), [HOST], "x1", ONE, {"one": {}})).objects
    engine.handle(ObjectsChanged(ZERO, there))
    engine.handle(TimePassed(ZERO + 1))
    engine.handle(CycleStarted(ZERO + 1))
    assert places_of(engine) == {"foo": {"one": {"x1": 1}}}


def test_kueue_still_replaces_a_node_that_is_well_again() -> None:
    """It tries with the workload as it was when the node had failed."""
    result = objects(hosts("x0", "x1"), [HOST], "x0", ONE, {"one": {"x0": 1}}, **{"default/bar": holder("x1", 0)})
    engine = engine_of(result, TASFailedNodeReplacementFailFast=False)
    assert engine.handle(CycleStarted(ZERO)) == []
    engine.controller.mark_node(engine.workloads["default/foo"], "x0", failed=False)
    assert engine.workloads["default/foo"].status().unhealthy_nodes == ()
    engine.handle(Finished(ZERO, "default/bar"))
    engine.handle(TimePassed(ZERO + 1))
    engine.handle(CycleStarted(ZERO + 1))
    assert places_of(engine) == {"foo": {"one": {"x1": 1}}}
