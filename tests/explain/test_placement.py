"""Why pods have no place in a topology, with the nodes that say so, and the changes that give them one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.decide.build import cpu_group, job, objects, queue
from tests.explain.test_states import explained

from kueue_admission.api.cluster_queue import AdmissionCheckStrategyRule, ClusterQueuePreemption
from kueue_admission.decide.model import (
    Admission,
    AdmissionCheck,
    CheckState,
    DomainAssignment,
    Node,
    Objects,
    PodSetAssignment,
    ResourceFlavor,
    ResourceQuota,
    Topology,
    Workload,
    WorkloadCheck,
    WorkloadStatus,
)
from kueue_admission.decide.pods import NodeSelectorTerm, PodSet, Requirement, SliceConstraint, Taint, TopologyRequest
from kueue_admission.explain import Explanation
from kueue_admission.explain.answer import Placement
from kueue_admission.kernel.names import HOSTNAME_LABEL, PROVISIONING_CONTROLLER

GPU_TAINT = Taint("nvidia.com/gpu", "present")


def node(name: str, rack: str, cores: int = 2, **changes: Any) -> Node:
    labels = (("pool", "big"), ("rack", rack), (HOSTNAME_LABEL, name))
    return Node(name, **{"labels": labels, "allocatable": (("cpu", cores * 1000), ("pods", 10)), **changes})


def cluster(*nodes: Node, levels: tuple[str, ...] = ("rack", HOSTNAME_LABEL), **changes: Any) -> Objects:
    result = objects(queue(cores=20, **changes))
    flavor = ResourceFlavor("default", node_labels=(("pool", "big"),), topology="racks")
    return replace(result, flavors=(flavor,), topologies=(Topology("racks", levels),), nodes=nodes)


def pods(count: int, request: TopologyRequest | None = None, **changes: Any) -> Workload:
    asked = (("cpu", 1000),)
    wish = request or TopologyRequest(unconstrained=True)
    return job("x", pod_sets=(PodSet(count=count, requests=asked, node_requests=asked, topology=wish, **changes),))


def placed(name: str, host: str, count: int, to: str = "cq") -> Workload:
    """A workload that has `count` pods on a node."""
    given = PodSetAssignment(
        "main",
        count,
        (("cpu", "default"),),
        (("cpu", count * 1000),),
        (DomainAssignment((host,), count),),
        (HOSTNAME_LABEL,),
    )
    status = WorkloadStatus(admission=Admission(to, (given,)), reserved_at=1.0, admitted_at=1.0)
    result = pods(count)
    return replace(result, name=name, uid=name, queue=to, status=status)


def only(found: Explanation) -> Placement:
    [placement] = found.placements
    return placement


def spared(found: Explanation) -> dict[str, str]:
    return {group.workloads[0]: group.why for flavor in found.flavors for group in flavor.spared}


def admitting(found: Explanation) -> dict[str, str]:
    """Kind → the first change of that kind that admits the workload."""
    return {change.kind: change.what for change in reversed(found.changes) if change.admits}


CASES: dict[str, tuple[Node, dict[str, Any], str, tuple[str, str] | None]] = {
    "a taint": (
        node("a1", "a", taints=(GPU_TAINT,)),
        {},
        "taint nvidia.com/gpu=present:NoSchedule, which neither pods nor flavor tolerate",
        (
            "toleration",
            "add a toleration for nvidia.com/gpu=present:NoSchedule to ResourceFlavor default (or to the pods)",
        ),
    ),
    "a taint of Kubernetes itself": (
        node("a1", "a", taints=(Taint("node.kubernetes.io/unreachable"),)),
        {},
        "taint node.kubernetes.io/unreachable:NoSchedule, which neither pods nor flavor tolerate",
        None,
    ),
    "cordoned": (
        node("a1", "a", unschedulable=True),
        {},
        "cordoned (spec.unschedulable)",
        ("nodes", "uncordon node a1"),
    ),
    "not Ready": (node("a1", "a", ready=False), {}, "not Ready", ("nodes", "make node a1 Ready")),
    "no label of a level": (
        node("a1", "a", labels=(("pool", "big"), (HOSTNAME_LABEL, "a1"))),
        {},
        "without the label rack of Topology racks",
        ("nodeLabels", "label node a1 with rack, with one value for nodes that are together"),
    ),
    "no label of the host": (
        node("a1", "a", labels=(("pool", "big"), ("rack", "a"))),
        {},
        f"without the label {HOSTNAME_LABEL} of Topology racks",
        ("nodeLabels", f"label node a1 with {HOSTNAME_LABEL}"),
    ),
    "a node selector": (
        node("a1", "a"),
        {"node_selector": (("disk", "ssd"),)},
        "without disk=ssd, which the pods select",
        ("nodeSelector", "remove disk=ssd from the nodeSelector of the pods"),
    ),
    "an affinity": (
        node("a1", "a"),
        {"affinity": (NodeSelectorTerm((Requirement("disk", "Exists"),)),)},
        "the pods' node affinity excludes them",
        ("affinity", "remove the node affinity of the pods"),
    ),
    "no room beside pods outside Kueue": (
        node("a1", "a", used=(("cpu", 2000), ("pods", 1))),
        {},
        "0 of 2 cpu free, a pod asks for 1, pods outside Kueue's topologies use 2",
        ("moreNodes", "add 1 empty node like a1 with rack=a"),
    ),
}


class TestNodes:
    @pytest.mark.parametrize(("made", "changes", "reason", "change"), CASES.values(), ids=CASES)
    def test_what_a_node_lacks_and_what_helps(
        self, made: Node, changes: dict[str, Any], reason: str, change: tuple[str, str] | None
    ) -> None:
        result = explained(cluster(made), pods(1, **changes))
        [group] = only(result).lacking
        assert (group.reason, group.nodes, group.count) == (reason, ("a1",), 1)
        assert reason in result.headline
        kinds = admitting(result)
        assert kinds.get(change[0]) == change[1] if change else not kinds

    def test_uncordoning_takes_the_taint_away_too(self) -> None:
        taints = (Taint("node.kubernetes.io/unschedulable"),)
        result = explained(cluster(node("a1", "a", unschedulable=True, taints=taints)), pods(1))
        assert admitting(result)["nodes"] == "uncordon node a1"

    def test_a_label_is_tried_with_the_value_of_a_neighbour(self) -> None:
        bare = node("a1", "a", labels=(("pool", "big"), (HOSTNAME_LABEL, "a1")))
        result = explained(cluster(bare, node("a2", "a")), pods(4, TopologyRequest(required="rack")))
        assert admitting(result)["nodeLabels"].startswith("label node a1 with rack")

    def test_several_nodes_that_need_different_changes(self) -> None:
        nodes = (
            node("a1", "a", ready=False),
            node("a2", "a", unschedulable=True),
            node("a3", "a", taints=(GPU_TAINT,)),
        )
        result = explained(cluster(*nodes), pods(6))
        tolerate = "tolerate nvidia.com/gpu=present:NoSchedule in ResourceFlavor default"
        assert admitting(result)["nodes"] == f"uncordon node a2, and make node a1 Ready, and {tolerate}"

    def test_nodes_with_one_reason_are_one_group(self) -> None:
        nodes = [node(f"a{n}", "a", taints=(GPU_TAINT,)) for n in range(5)]
        result = explained(cluster(*nodes, node("b", "b", 0)), pods(1))
        assert [(group.why, group.count) for group in only(result).lacking] == [
            ("UntoleratedTaint", 5),
            ("Resource", 1),
        ]

    def test_two_taints_that_only_together_help(self) -> None:
        both = (GPU_TAINT, Taint("own", "b"))
        result = explained(cluster(node("a1", "a", taints=both)), pods(1))
        assert [change.admits for change in result.changes if change.kind == "toleration"] == [False]
        nodes = (node("a1", "a", 1, taints=both[:1]), node("a2", "a", 1, taints=both[1:]))
        result = explained(cluster(*nodes), pods(2))
        assert "nvidia.com/gpu=present:NoSchedule, own=b:NoSchedule" in admitting(result)["toleration"]

    def test_no_node_has_the_labels_of_the_flavor(self) -> None:
        result = explained(cluster(node("a1", "a", labels=(("pool", "small"),))), pods(1))
        assert only(result).nodes == 0
        assert "there is no node with pool=big, as flavor default asks for" in result.headline

    def test_without_any_node_among_the_objects_nothing_is_known_of_them(self) -> None:
        result = explained(cluster(), pods(1))
        assert only(result).nodes is None
        assert result.headline.endswith("as far as the objects tell: there is no Node among them.")
        assert result.next_step == "See whether its nodes are there, Ready and free: kubectl get nodes -l pool=big."

    def test_taints_that_kueue_does_not_look_at(self) -> None:
        """kueue#6868: where the lowest level is not the host, Kueue counts the room of every node."""
        result = explained(cluster(node("a1", "a", taints=(GPU_TAINT,)), levels=("rack",)), pods(1))
        assert result.reason == "PendingEvaluation"
        assert [group.nodes for group in only(result).unseen] == [("a1",)]
        assert result.headline.endswith("But 1 of the nodes that Kueue counts are not for its pods.")


class TestRoom:
    def test_the_room_of_domains(self) -> None:
        result = cluster(node("a1", "a"), node("a2", "a"), node("b1", "b", 3))
        results = explained(result, placed("r", "a1", 1), pods(4, TopologyRequest(required="rack")))
        rooms = [(room.domain, room.pods, room.empty) for room in only(results).rooms]
        assert rooms == [("a", 3, 4), ("b", 3, 3)]
        assert results.headline.endswith("at most 3 of its 4 pods fit into one rack.")
        changes = admitting(results)
        assert changes["level"] == "prefer rack instead of requiring it"
        assert changes["moreNodes"] == "add 1 empty node like b1 with rack=b"
        assert changes["count"] == "ask for 3 pods instead of 4 in pod set main"
        assert changes["finish"] == "wait until ns/r has finished"

    def test_a_wider_level(self) -> None:
        result = cluster(node("a1", "a"), node("a2", "a"))
        results = explained(result, pods(4, TopologyRequest(required=HOSTNAME_LABEL)))
        asked = f"ask for the level rack instead of {HOSTNAME_LABEL}"
        assert admitting(results)["level"] == f"{asked} (annotation kueue.x-k8s.io/podset-required-topology)"

    def test_a_level_that_the_topology_does_not_have(self) -> None:
        result = explained(cluster(node("a1", "a")), pods(1, TopologyRequest(required="rak")))
        assert "Topology racks has no level rak" in result.headline
        assert admitting(result)["level"].startswith("ask for the level rack instead of rak")

    def test_pod_sets_that_only_together_do_not_fit(self) -> None:
        """kueue#10778."""
        wish = TopologyRequest(required="rack", group="all")
        both = tuple(replace(pods(n, wish).pod_sets[0], name=name) for name, n in (("leader", 1), ("worker", 2)))
        result = explained(cluster(node("a1", "a")), replace(pods(1), pod_sets=both))
        assert result.headline.endswith("pod set leader fits into one rack, but not together with the others.")

    def test_pods_that_do_not_fit_even_on_empty_nodes(self) -> None:
        """GoogleCloudPlatform/cluster-toolkit#3534: Kueue's message names the quota, which is in use too."""
        result = cluster(node("a1", "a"), node("b1", "b"), groups=(cpu_group(default=4),))
        held = placed("r", "a1", 2), placed("s", "b1", 2)
        results = explained(result, *held, pods(4, TopologyRequest(required="rack")))
        assert results.headline == (
            "Even on empty nodes its pods cannot be placed in the topology: at most 2 of its 4 pods fit into one rack."
        )
        assert [change.kind for change in results.changes] == ["level"]

    def test_slices_at_a_wider_level(self) -> None:
        result = cluster(node("a1", "a"), node("a2", "a"))
        results = explained(result, pods(4, TopologyRequest(slices=(SliceConstraint(HOSTNAME_LABEL, 4),))))
        slices = f"slices of 4 in one {HOSTNAME_LABEL}"
        assert results.headline.endswith(f"2 of its 4 pods fit into one {HOSTNAME_LABEL}, and it asks for {slices}.")
        assert "podset-slice-required-topology" in admitting(results)["level"]

    def test_pods_beyond_whole_slices(self) -> None:
        result = cluster(*(node(f"a{index}", "a") for index in range(3)))
        results = explained(result, pods(5, TopologyRequest(slices=(SliceConstraint(HOSTNAME_LABEL, 2),))))
        over = "But Kueue gives no node to 1 of the 5 pods of main: they come in slices of 2."
        assert results.headline.endswith(f"the next cycle admits it. {over}")

    def test_room_that_a_workload_of_another_tree_holds(self) -> None:
        result = cluster(node("a1", "a"))
        other = replace(result.cluster_queues[0], name="other")
        local = replace(result.local_queues[0], name="other", cluster_queue="other")
        result = replace(
            result, cluster_queues=(*result.cluster_queues, other), local_queues=(*result.local_queues, local)
        )
        results = explained(result, placed("r", "a1", 2, to="other"), pods(1))
        assert admitting(results)["finish"] == "wait until ns/r has finished"

    def test_holders_of_the_nodes_that_are_not_preempted(self) -> None:
        result = cluster(node("a1", "a"), preemption=ClusterQueuePreemption(within_cluster_queue="LowerPriority"))
        results = explained(result, placed("r", "a1", 2), pods(1))
        assert spared(results) == {"ns/r": "Priority"}

    def test_holders_whose_quota_is_enough_and_whose_nodes_are_not(self) -> None:
        lower = ClusterQueuePreemption(within_cluster_queue="LowerPriority")
        result = cluster(node("a1", "a"), node("a2", "a"), groups=(cpu_group(default=4),), preemption=lower)
        low = [placed(f"low{n}", f"a{n}", 1) for n in (1, 2)]
        high = [replace(placed(f"high{n}", f"a{n}", 1), priority=9) for n in (1, 2)]
        results = explained(result, *low, *high, replace(pods(2, TopologyRequest(required=HOSTNAME_LABEL)), priority=5))
        assert spared(results) == {"ns/low1": "NoPlace", "ns/high1": "Priority"}

    def test_quota_of_a_flavor_without_nodes_keeps_from_preempting_in_the_one_before(self) -> None:
        lower = ClusterQueuePreemption(within_cluster_queue="LowerPriority")
        result = cluster(node("a1", "a"), groups=(cpu_group(default=2, ghost=2),), preemption=lower)
        result = replace(
            result, flavors=(*result.flavors, ResourceFlavor("ghost", (("pool", "gone"),), topology="racks"))
        )
        results = explained(result, placed("low", "a1", 2), replace(pods(2), priority=5))
        assert spared(results) == {"ns/low": "NextFlavor"}
        assert admitting(results)["flavorFungibility"].endswith("whenCanPreempt of ClusterQueue cq to MayStopSearch")


class TestWishes:
    """A queue with one flavor with a topology, and one without."""

    def mixed(self, first: str, wish: TopologyRequest | None) -> Explanation:
        result = cluster(node("a1", "a"))
        group = result.cluster_queues[0].groups[0]
        none = replace(group.flavors[0], flavor="plain", quotas=(("cpu", ResourceQuota(0)),))
        plenty = replace(group.flavors[0], quotas=(("cpu", ResourceQuota(0 if first == "plain" else 20000)),))
        rest = replace(none, quotas=(("cpu", ResourceQuota(20000 if first == "plain" else 0)),))
        mixed = replace(result.cluster_queues[0], groups=(replace(group, flavors=(plenty, rest)),))
        result = replace(result, cluster_queues=(mixed,), flavors=(*result.flavors, ResourceFlavor("plain")))
        return explained(result, replace(pods(1), pod_sets=(replace(pods(1).pod_sets[0], topology=wish),)))

    def test_pods_that_ask_for_no_topology(self) -> None:
        result = self.mixed("default", None)
        assert admitting(result)["topology"].endswith('podset-unconstrained-topology: "true"')

    def test_a_flavor_without_a_topology(self) -> None:
        result = self.mixed("plain", TopologyRequest(required="rack"))
        assert admitting(result)["topology"] == "remove the topology annotations of the pods"


class TestSecondPass:
    """A workload that has quota, whose nodes are there, and that Kueue places then."""

    def reserved(self, *nodes: Node) -> Explanation:
        checked = AdmissionCheckStrategyRule(name="dws")
        result = replace(cluster(*nodes, checks=(checked,)), checks=(AdmissionCheck("dws", PROVISIONING_CONTROLLER),))
        given = PodSetAssignment("main", 1, (("cpu", "default"),), (("cpu", 1000),), delayed_topology=True)
        status = WorkloadStatus(
            admission=Admission("cq", (given,)), reserved_at=1.0, checks=(WorkloadCheck("dws", CheckState.READY),)
        )
        return explained(result, replace(pods(1), status=status))

    def test_with_room(self) -> None:
        result = self.reserved(node("a1", "a"))
        assert result.headline == "It has its quota, and Kueue places its pods next."
        assert not result.placements

    def test_without_nodes(self) -> None:
        result = self.reserved(node("a1", "a", labels=(("pool", "small"),)))
        assert "there is no node with pool=big" in result.headline
        assert "kubectl get nodes -l pool=big" in result.next_step

    def test_with_a_taint(self) -> None:
        result = self.reserved(node("a1", "a", taints=(GPU_TAINT,)))
        assert result.reason == "PendingDelayedTopologyRequests"
        assert list(admitting(result)) == ["toleration"]
        assert result.next_step.startswith("Add a toleration for nvidia.com/gpu=present:NoSchedule")


def test_the_fewest_that_have_to_finish_are_those_on_one_node() -> None:
    """kueue#5243: a pod for a whole node, while many small ones are on each."""
    preemption = ClusterQueuePreemption(within_cluster_queue="LowerPriority")
    nodes = [node(name, "a", 4) for name in ("a1", "a2", "a3")]
    high = [placed(f"high-{item.name}-{n}", item.name, 1) for item in nodes for n in range(3)]
    low = [replace(placed(f"low-{entry.name}", entry.name, 1), priority=-1) for entry in nodes]
    whole = pods(1)
    asked = (("cpu", 4000),)
    whole = replace(whole, pod_sets=(replace(whole.pod_sets[0], requests=asked, node_requests=asked),))
    result = explained(cluster(*nodes, preemption=preemption), *high, *low, whole)
    [change] = [change for change in result.changes if change.kind == "finish"]
    assert change.what == "wait until ns/high-a1-0, ns/high-a1-1, ns/high-a1-2 have finished"
    assert change.preempts == ("ns/low-a1",)
