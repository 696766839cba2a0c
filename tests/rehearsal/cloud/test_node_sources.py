from __future__ import annotations

from typing import Any

from kueue_fleet.gke.labels import (
    ACCELERATOR,
    COMPUTE_CLASS,
    FLEX_START,
    GPU_PARTITION_SIZE,
    GPU_SHARING_STRATEGY,
    INSTANCE_TYPE,
    MAX_SHARED_CLIENTS,
    NODE_POOL,
    SPOT,
    ZONE,
)
from kueue_rehearsal.cloud.class_sources import ClassSource
from kueue_rehearsal.cloud.node_planning import NodePlan, plan_nodes
from kueue_rehearsal.cloud.node_pools import NodePool, parse_node_pool
from kueue_rehearsal.cloud.node_sources import AutoProvisioning, PoolSource, ResourceLimits
from kueue_rehearsal.cloud.node_templates import Place
from kueue_rehearsal.cloud.pod_needs import PodNeeds, pod_needs

PLACE = Place.of("worker", "europe-west4")
TOLERATED = [{"key": "nvidia.com/gpu", "operator": "Exists"}, {"key": SPOT, "operator": "Exists"}]
GROUP = "cloud.google.com/gke-placement-group"


def needs(name: str, selector: dict[str, str] | None = None, gpus: int = 2, cpu: str = "4") -> PodNeeds:
    resources = {"cpu": cpu, "nvidia.com/gpu": gpus}
    spec = {
        "containers": [{"resources": {"requests": resources}}],
        "tolerations": TOLERATED,
        "nodeSelector": selector or {},
    }
    return pod_needs(f"ns/{name}", f"uid-{name}", spec, created=name)


def pool(name: str = "l4", most: int = 2, **config: Any) -> NodePool:
    body = {
        "autoscaling": {"totalMaxNodeCount": most},
        "nodeConfig": {"machineType": "g2-standard-24", **config},
        "nodeLocations": ["europe-west4-a", "europe-west4-b"],
    }
    return parse_node_pool(name, body, PLACE.zones)


def plan(source: PoolSource | AutoProvisioning | ClassSource, *waiting: PodNeeds) -> NodePlan:
    return plan_nodes(waiting, {}, {}, [source])


def test_a_pool_grows_to_its_maximum_and_says_so() -> None:
    result = plan(PoolSource(pool(), PLACE, {}), *(needs(f"p{number}") for number in range(3)))
    assert [node.labels[ZONE] for node in result.add] == ["europe-west4-a", "europe-west4-b"]
    assert result.refused == {"ns/p2": "node pool l4: it has its maximum of 2 nodes"}


def test_nodes_that_are_there_count() -> None:
    there = pool().template(PLACE, "europe-west4-a", "x").manifest()
    result = plan(PoolSource(pool(), PLACE, {"x": there}), needs("a"), needs("b"))
    assert [node.labels[ZONE] for node in result.add] == ["europe-west4-b"]


def test_a_pod_that_selects_another_label_or_tolerates_less_gets_no_node_of_the_pool() -> None:
    source = PoolSource(pool(), PLACE, {})
    other = needs("a", {NODE_POOL: "other"})
    assert source.offer(other) == f"node pool l4: its nodes do not have the label {NODE_POOL}=other"
    bare = pod_needs("ns/b", "uid-b", {"containers": []})
    assert "does not tolerate the taint nvidia.com/gpu=present" in str(source.offer(bare))
    assert source.offer(needs("c", gpus=3)) == "node pool l4: g2-standard-24 does not have enough nvidia.com/gpu"


def test_flex_start_waits_for_stock() -> None:
    stock = {"nvidia-l4": 3}
    result = plan(PoolSource(pool(flexStart=True), PLACE, {}, stock=stock), needs("a"), needs("b"))
    assert len(result.add) == 1
    assert result.refused == {"ns/b": "node pool l4: 2 nvidia-l4 are not available now, it waits for them"}
    assert stock == {"nvidia-l4": 1}


def tpu_pod(chips: int = 4, **selector: str) -> PodNeeds:
    spec = {
        "containers": [{"resources": {"limits": {"google.com/tpu": chips}}}],
        "tolerations": [{"key": "google.com/tpu", "operator": "Exists"}],
        "nodeSelector": {f"cloud.google.com/gke-tpu-{key}": value for key, value in selector.items()},
    }
    return pod_needs("ns/t", "uid-t", spec)


def test_auto_provisioning_makes_a_machine_with_tpus_for_its_topology() -> None:
    listed = [{"resourceType": "tpu-v6e-slice", "maximum": 8}]
    source = AutoProvisioning(PLACE, limits=ResourceLimits.of(listed, ()), autopilot=False)
    (node,) = plan(source, tpu_pod(accelerator="tpu-v6e-slice", topology="2x2")).add
    assert node.machine.name == "ct6e-standard-4t"
    assert node.labels["cloud.google.com/gke-tpu-topology"] == "2x2"
    assert plan(source, tpu_pod(accelerator="tpu-v6e-slice")).refused["ns/t"].endswith("GKE needs to know which slice")
    assert "no such accelerator" in plan(source, tpu_pod(accelerator="tpu-v9", topology="2x2")).refused["ns/t"]
    assert "does not select" in plan(source, tpu_pod()).refused["ns/t"]
    whole = plan(source, tpu_pod(chips=8, accelerator="tpu-v6e-slice", topology="2x4"))
    assert "tpu-v6e-slice would be exceeded: 4 in use, ct6e-standard-8t has 8" in whole.refused["ns/t"]


def limits(cpu: int, **gpus: int) -> ResourceLimits:
    listed = [{"resourceType": "cpu", "maximum": cpu}]
    listed += [{"resourceType": name.replace("_", "-"), "maximum": most} for name, most in gpus.items()]
    return ResourceLimits.of(listed, [pool().template(PLACE, "europe-west4-a", "x").manifest()])


L4 = {ACCELERATOR: "nvidia-l4"}


def test_resource_limits_count_the_nodes_of_all_pools() -> None:
    reason = plan(AutoProvisioning(PLACE, limits(47, nvidia_l4=8), autopilot=False), needs("a", L4)).refused["ns/a"]
    assert reason == ("the cluster's resource limit of 47 cpu would be exceeded: 24 in use, g2-standard-24 has 24")
    assert plan(AutoProvisioning(PLACE, limits(48, nvidia_l4=8), autopilot=False), needs("a", L4)).add
    one_more = plan(AutoProvisioning(PLACE, limits(999, nvidia_l4=4), autopilot=False), needs("a", L4), needs("b", L4))
    assert len(one_more.add) == 1
    assert "limit of 4 nvidia-l4 would be exceeded: 4 in use" in one_more.refused["ns/b"]


BY_FOUR = L4 | {GPU_SHARING_STRATEGY: "time-sharing", MAX_SHARED_CLIENTS: "4"}


def test_auto_provisioning_makes_nodes_with_the_shares_that_pods_select() -> None:
    source = AutoProvisioning(PLACE, ResourceLimits.of([{"resourceType": "nvidia-l4", "maximum": 1}], ()))
    result = plan(source, *(needs(f"p{number}", BY_FOUR, gpus=1, cpu="500m") for number in range(4)))
    [node] = result.add
    assert (node.machine.gpus, node.allocatable["nvidia.com/gpu"], result.refused) == (1, 4, {})
    assert node.labels.items() >= BY_FOUR.items()


def test_resource_limits_count_whole_gpus() -> None:
    source = AutoProvisioning(PLACE, ResourceLimits.of([{"resourceType": "nvidia-l4", "maximum": 1}], ()))
    result = plan(source, *(needs(f"p{number}", BY_FOUR, gpus=1, cpu="500m") for number in range(5)))
    assert (len(result.add), list(result.refused)) == (1, ["ns/p4"])
    there = ResourceLimits.of([], [node.manifest() for node in result.add])
    assert there.used["nvidia-l4"] == 1


def test_a_partition_that_the_gpu_does_not_have_is_not_made() -> None:
    refused = plan(AutoProvisioning(PLACE), needs("a", L4 | {GPU_PARTITION_SIZE: "1g.10gb"}, gpus=1)).refused
    assert refused["ns/a"] == f"{GPU_PARTITION_SIZE} is 1g.10gb, but GKE does not divide nvidia-l4; remove it"


def test_a_gpu_without_a_limit_is_not_auto_provisioned_but_a_pool_of_it_grows() -> None:
    refused = plan(AutoProvisioning(PLACE, limits(999), autopilot=False), needs("a", L4)).refused
    assert "has no resource limit for nvidia-l4" in refused["ns/a"]
    assert plan(PoolSource(pool(), PLACE, {}, limits=limits(999)), needs("a")).add
    assert plan(PoolSource(pool(), PLACE, {}, limits=limits(24)), needs("a")).refused


def test_a_placement_group_is_one_pool_in_one_zone_on_spot() -> None:
    selector = {ACCELERATOR: "nvidia-tesla-a100", GROUP: "team-a-0", SPOT: "true"}
    result = plan(AutoProvisioning(PLACE, autopilot=False), needs("a", selector, gpus=1), needs("b", selector, gpus=1))
    assert [node.machine.name for node in result.add] == ["a2-highgpu-1g"] * 2
    assert len({node.labels[ZONE] for node in result.add}) == 1
    assert {(node.labels[NODE_POOL], node.labels[GROUP], node.labels[SPOT]) for node in result.add} == {
        ("team-a-0", "team-a-0", "true")
    }
    assert result.add[0].name.startswith("gke-worker-team-a-0-")
    other = plan(AutoProvisioning(PLACE), needs("c", {**selector, ACCELERATOR: "nvidia-tesla-t4"}, gpus=1))
    assert "compact placement is not offered on n1-standard-" in other.refused["ns/c"]


MACHINE = {"machineType": "g2-standard-24"}
CLASS = {"priorities": [{**MACHINE, "flexStart": {"enabled": True}}, {**MACHINE, "spot": True}]}


def of_class(spec: dict[str, Any], stock: dict[str, int] | None = None) -> ClassSource:
    result = AutoProvisioning(PLACE, autopilot=False, stock=stock, labels={COMPUTE_CLASS: "mine"})
    return ClassSource("mine", spec, result)


def test_a_class_gives_nodes_of_its_first_priority() -> None:
    [node] = plan(of_class(CLASS), needs("a", {COMPUTE_CLASS: "mine"})).add
    expected = {COMPUTE_CLASS: "mine", FLEX_START: "true", INSTANCE_TYPE: "g2-standard-24", ACCELERATOR: "nvidia-l4"}
    assert expected.items() <= node.labels.items()


def test_a_class_goes_on_to_spot_where_the_stock_of_flex_start_is_out() -> None:
    pods = [needs(name, {COMPUTE_CLASS: "mine"}) for name in "ab"]
    result = plan(of_class(CLASS, {"nvidia-l4": 2}), *pods).add
    assert [node.labels.get(SPOT) for node in result] == [None, "true"]


def test_a_class_says_why_its_last_priority_gives_no_node() -> None:
    reason = plan(of_class(CLASS), needs("a", {COMPUTE_CLASS: "mine"}, gpus=3)).refused["ns/a"]
    assert reason == "compute class mine: priorities[1]: no machine type has enough nvidia.com/gpu"


def test_a_class_is_for_pods_that_select_it() -> None:
    assert plan(of_class(CLASS), needs("a", {ACCELERATOR: "nvidia-l4"})).refused == {
        "ns/a": "compute class mine: the pod does not select it"
    }


def test_nodes_of_a_class_are_where_its_priority_says() -> None:
    there = {"priorities": [{**MACHINE, "location": {"zones": ["europe-west4-b"]}}]}
    [node] = plan(of_class(there), needs("a", {COMPUTE_CLASS: "mine"})).add
    assert node.labels[ZONE] == "europe-west4-b"
