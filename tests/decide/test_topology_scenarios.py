"""Kueue's own table of placements in a topology."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from tests.decide.expand import FOLDER, ids

from kueue_admission.decide.amounts import request_amount
from kueue_admission.decide.behaviours import Behaviours
from kueue_admission.decide.gates import Gates, parse_gates
from kueue_admission.decide.model import DomainAssignment, Node, ResourceFlavor, Topology
from kueue_admission.decide.pods import PodSet, ResourceRules, SliceConstraint, TopologyRequest
from kueue_admission.decide.topology.domains import TopologyState
from kueue_admission.decide.topology.groups import place
from kueue_admission.decide.topology.requests import Failure, PlacementRequest
from kueue_admission.kernel.problem import Problem
from kueue_admission.kernel.quantity import Quantity
from kueue_admission.read.fields import Fields
from kueue_admission.read.kueue_objects import parse_taint
from kueue_admission.read.pods import parse_pod_set, parse_topology_request
from kueue_admission.releases import release

DOCUMENT = yaml.load((FOLDER / "topology.yaml").read_text(), Loader=yaml.CSafeLoader)
CASES = DOCUMENT["cases"]


def _node(name: str, short: dict[str, Any]) -> Node:
    problems: list[Problem] = []
    taints = tuple(parse_taint(Fields(item, name, problems)) for item in short.get("taints", ()))
    return Node(
        name=name,
        labels=tuple(short["labels"].items()),
        taints=taints,
        allocatable=tuple(short["allocatable"].items()),
        used=tuple(short.get("used", {}).items()),
        ready=short.get("ready", True),
        unschedulable=short.get("unschedulable", False),
    )


def _request(name: str, short: dict[str, Any]) -> PlacementRequest:
    problems: list[Problem] = []
    request = dict(short["topologyRequest"]) if "topologyRequest" in short else {}
    if "group" in short:
        request["podSetGroupName"] = short["group"]
    topology = parse_topology_request(Fields(request, "topologyRequest", problems))
    parsed = parse_pod_set(
        Fields(short.get("pod", {}), "pod", problems), name, short["count"], None, topology, ResourceRules()
    )
    assert not problems
    pod_set = PodSet(
        name=name,
        count=short["count"],
        node_requests=tuple(short["requests"].items()),
        node_selector=parsed.node_selector,
        affinity=parsed.affinity,
        preferred=parsed.preferred,
        tolerations=parsed.tolerations,
        topology=topology,
    )
    previous = tuple(DomainAssignment((place,), count) for place, count in short.get("previous", ()))
    return PlacementRequest(pod_set, short["count"], implied="topologyRequest" not in short, previous=previous or None)


def _gates(case: dict[str, Any]) -> Gates:
    latest = release("0.19")
    return parse_gates(case.get("gates", {}), {name: gate.on for name, gate in latest.gates.items()}, Behaviours())


@pytest.mark.parametrize("case", CASES, ids=ids(CASES))
def test_pods_are_placed_as_kueue_places_them(case: dict[str, Any]) -> None:
    nodes = [_node(name, short) for name, short in DOCUMENT["nodeSets"][case["nodeSet"]].items()]
    flavor = ResourceFlavor("tas", node_labels=tuple(case.get("nodeLabels", {}).items()), topology="default")
    state = TopologyState(flavor, Topology("default", tuple(case["levels"])), nodes, {}, _gates(case))
    result = place(state, [_request(name, short) for name, short in case["podSets"].items()], empty=False)
    if isinstance(result, Failure):
        assert result.reason in case["want"].values()
        return
    levels = list(state.levels[-1:] if state.by_host else state.levels)
    assert {
        name: {"domains": [[*domain.values, domain.count] for domain in domains], "levels": levels}
        for name, domains in result.items()
    } == case["want"]


def test_amounts_in_the_table_are_in_the_cores_units() -> None:
    assert request_amount("cpu", Quantity("1")) == 1000


def test_slices_of_more_pods_than_there_are_balance_nothing() -> None:
    nodes = [Node("x", labels=(("kubernetes.io/hostname", "x"),), allocatable=(("pods", 9),))]
    topology = Topology("t", ("kubernetes.io/hostname",))
    state = TopologyState(ResourceFlavor("f"), topology, nodes, {}, Gates(tas_balanced_placement=True))
    wish = TopologyRequest(preferred="kubernetes.io/hostname", slices=(SliceConstraint("kubernetes.io/hostname", 3),))
    assert place(state, [PlacementRequest(PodSet(count=2, topology=wish), 2)], empty=False) == {"main": ()}
