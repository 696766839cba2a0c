from __future__ import annotations

from typing import Any

import pytest

from kueue_fleet.gke.labels import ACCELERATOR, SPOT
from kueue_rehearsal.cloud.node_planning import NodePlan, plan_nodes
from kueue_rehearsal.cloud.node_sources import AutoProvisioning
from kueue_rehearsal.cloud.node_templates import AUTOSCALED, SIMULATED, Place
from kueue_rehearsal.cloud.pod_needs import PodNeeds, free_resources, pod_needs

PLACE = Place.of("worker", "europe-west4")
GPU = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}
ARM = {"key": "kubernetes.io/arch", "operator": "Equal", "value": "arm64", "effect": "NoSchedule"}
L4 = {ACCELERATOR: "nvidia-l4"}


def needs(name: str = "p", *, gpu: int = 0, cpu: str = "1", memory: str = "1Gi", **spec: Any) -> PodNeeds:
    resources = {"cpu": cpu, "memory": memory, **({"nvidia.com/gpu": gpu} if gpu else {})}
    body = {"containers": [{"resources": {"requests": resources}}], "tolerations": [GPU] if gpu else [], **spec}
    return pod_needs(f"ns/{name}", f"uid-{name}", body, created=name)


def plan(*waiting: PodNeeds) -> NodePlan:
    return plan_nodes(waiting, {}, {}, [AutoProvisioning(PLACE)])


def machines(made: NodePlan) -> list[str]:
    return [node.machine.name for node in made.add]


@pytest.mark.parametrize(
    ("pod", "machine"),
    [
        (needs(), "e2-standard-2"),
        (needs(cpu="2"), "e2-standard-4"),
        (needs(cpu="1", memory="100Gi"), "e2-standard-32"),
        (needs(gpu=1, nodeSelector=L4), "g2-standard-4"),
        (needs(gpu=1, cpu="20", nodeSelector=L4), "g2-standard-32"),
        (needs(gpu=2, nodeSelector=L4), "g2-standard-24"),
        (needs(gpu=3, nodeSelector=L4), "g2-standard-48"),
        (needs(gpu=8, nodeSelector={ACCELERATOR: "nvidia-h100-80gb"}), "a3-highgpu-8g"),
        (needs(gpu=4, nodeSelector={ACCELERATOR: "nvidia-gb200"}, tolerations=[GPU, ARM]), "a4x-highgpu-4g"),
        (needs(gpu=1, nodeSelector={ACCELERATOR: "nvidia-tesla-t4"}), "n1-standard-4"),
        (needs(gpu=1, nodeSelector={**L4, "cloud.google.com/gke-accelerator-count": "4"}), "g2-standard-48"),
        (needs(gpu=1, nodeSelector={**L4, "node.kubernetes.io/instance-type": "g2-standard-16"}), "g2-standard-16"),
        (needs(nodeSelector={"cloud.google.com/machine-family": "n2"}), "n2-standard-48"),
    ],
)
def test_each_pod_gets_the_smallest_machine_that_holds_it(pod: PodNeeds, machine: str) -> None:
    assert machines(plan(pod)) == [machine]


def test_a_pod_that_does_not_tolerate_arm_gets_no_arm_node() -> None:
    result = plan(needs(gpu=4, nodeSelector={ACCELERATOR: "nvidia-gb200"}))
    assert machines(result) == []
    [reason] = result.refused.values()
    assert "kubernetes.io/arch=arm64:NoSchedule" in reason


def test_a_node_has_gkes_labels_taints_and_true_allocatable() -> None:
    node = plan(needs(gpu=1, nodeSelector=L4)).add[0].manifest()
    labels = node["metadata"]["labels"]
    assert labels[ACCELERATOR] == "nvidia-l4"
    assert labels[SIMULATED] == labels[AUTOSCALED] == "true"
    assert labels["topology.kubernetes.io/region"] == "europe-west4"
    assert labels["topology.kubernetes.io/zone"] == "europe-west4-a"
    assert labels["node.kubernetes.io/instance-type"] == "g2-standard-4"
    assert labels["kubernetes.io/hostname"] == node["metadata"]["name"]
    assert node["spec"]["taints"] == [{"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}]
    assert node["status"]["allocatable"]["nvidia.com/gpu"] == "1"
    assert node["status"]["allocatable"]["cpu"] == "3920m"


def test_spot_nodes_have_label_and_taint() -> None:
    spot = needs(gpu=1, nodeSelector={**L4, SPOT: "true"}, tolerations=[GPU, {"key": SPOT, "operator": "Exists"}])
    node = plan(spot).add[0]
    assert node.labels[SPOT] == "true"
    assert node.labels["cloud.google.com/gke-provisioning"] == "spot"
    assert {"key": SPOT, "value": "true", "effect": "NoSchedule"} in node.taints


def test_own_labels_make_a_tainted_node_only_for_pods_that_tolerate_it() -> None:
    toleration = {"key": "team", "operator": "Equal", "value": "a", "effect": "NoSchedule"}
    result = plan(needs(nodeSelector={"team": "a"}, tolerations=[toleration]))
    assert result.add[0].labels["team"] == "a"
    assert {"key": "team", "value": "a", "effect": "NoSchedule"} in result.add[0].taints
    assert "workload separation" in plan(needs(nodeSelector={"team": "a"})).refused["ns/p"]


@pytest.mark.parametrize(
    ("pod", "reason"),
    [
        (needs(gpu=1), "does not select cloud.google.com/gke-accelerator"),
        (needs(gpu=1, nodeSelector={ACCELERATOR: "nvidia-l5"}), "no such accelerator; known are nvidia-a100-80gb"),
        (needs(gpu=9, nodeSelector=L4), "no machine type has enough nvidia.com/gpu"),
        (needs(cpu="1k"), "no machine type has enough cpu"),
        (
            needs(gpu=1, nodeSelector=L4, tolerations=[]),
            "does not tolerate the taint nvidia.com/gpu=present:NoSchedule",
        ),
        (needs(nodeSelector={"cloud.google.com/gke-nodepool": "x"}), "no node has this label"),
        (needs(nodeSelector={"cloud.google.com/compute-class": "mine"}), "it has no such compute class of its own"),
        (needs(nodeSelector={"topology.kubernetes.io/zone": "us-east4-a"}), "no nodes in us-east4-a; it is in europe"),
        (
            needs(
                affinity={"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}}}
            ),
            "required node affinity: the simulated provisioner does not model this",
        ),
        (
            needs(topologySpreadConstraints=[{"whenUnsatisfiable": "DoNotSchedule"}]),
            "topology spread constraints: the simulated provisioner does not model this",
        ),
    ],
)
def test_a_pod_that_gets_no_node_is_told_why(pod: PodNeeds, reason: str) -> None:
    result = plan(pod)
    assert not result.add
    assert reason in result.refused["ns/p"]


def test_room_on_nodes_that_are_there_counts_first_also_while_they_start() -> None:
    first = plan(needs("a", cpu="1")).add[0]
    node = first.manifest()
    node["spec"]["taints"].append({"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"})
    nodes = {first.name: node}
    result = plan_nodes(
        [needs("a", cpu="1"), needs("b", cpu="500m")], nodes, free_resources(nodes, []), [AutoProvisioning(PLACE)]
    )
    assert result.add == ()
    assert result.placed == {"uid-a": first.name, "uid-b": first.name}


def test_small_pods_share_a_new_node() -> None:
    result = plan(*(needs(str(number), cpu="400m") for number in range(5)))
    assert machines(result) == ["e2-standard-2", "e2-standard-2"]


def test_a_plan_carried_out_twice_makes_the_same_nodes_and_the_order_of_pods_does_not_matter() -> None:
    pods = [needs(name, gpu=1, nodeSelector=L4) for name in "abc"]
    names = [node.name for node in plan(*pods).add]
    assert [node.name for node in plan(*reversed(pods)).add] == names
    assert len(set(names)) == 3
    assert all(len(name) <= 63 for name in names)


def test_a_cordoned_node_has_no_room() -> None:
    first = plan(needs()).add[0]
    node = first.manifest()
    node["spec"]["unschedulable"] = True
    nodes = {first.name: node}
    assert len(plan_nodes([needs("b")], nodes, free_resources(nodes, []), [AutoProvisioning(PLACE)]).add) == 1


def pod(**fields: Any) -> dict[str, Any]:
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    return {
        "metadata": {"namespace": "ns", "name": "p", **fields.pop("metadata", {})},
        "spec": fields,
        "status": {"conditions": [condition]},
    }


def test_a_pod_whose_own_node_another_one_took_gets_a_second_one() -> None:
    pod = needs("a", gpu=2, cpu="16", nodeSelector=L4)
    (own,) = plan(pod).add
    nodes = {own.name: own.manifest()}
    other = {
        "metadata": {"namespace": "ns", "name": "b", "uid": "uid-b"},
        "spec": {
            "nodeName": own.name,
            "containers": [{"resources": {"requests": {"cpu": "16", "nvidia.com/gpu": "2"}}}],
        },
    }
    sources = [AutoProvisioning(PLACE)]
    (second,) = plan_nodes([pod], nodes, free_resources(nodes, [other]), sources).add
    assert second.name != own.name
    # Carried out twice, it makes one node.
    assert plan_nodes([pod], nodes, free_resources(nodes, [other]), sources).add == (second,)
    nodes[second.name] = second.manifest()
    assert plan_nodes([pod], nodes, free_resources(nodes, [other]), sources).add == ()
