"""Jobs whose pods no node of a fleet takes, that Autopilot refuses, or of which that is not known: `check --jobs`."""

from __future__ import annotations

from typing import Any, Final

import pytest
from tests.fleet_file.builders import REMOVED, changed, standalone_data
from tests.fleet_file.pool_builders import pools_data

from kueue_admission.simulate.documents import Document
from kueue_fleet.fleet_file import parse_fleet
from kueue_fleet.fleet_simulation.job_findings import check_manifests

GPU: Final = "nvidia.com/gpu"
ACCELERATOR: Final = "cloud.google.com/gke-accelerator"
TEAM: Final[dict[str, Any]] = {"namespace": "team-a", "queue": "gpu"}


def documents(
    namespace: str = "default",
    queue: str = "gpu",
    kind: str = "Job",
    pods: int = 1,
    annotations: object = None,
    gpus: int = 1,
    **pod: Any,
) -> list[Document]:
    """A Job or JobSet of such pods, with these fields in their spec."""
    requests = {"cpu": "1", "memory": "1Gi"} | ({GPU: gpus} if gpus else {})
    limits = {name: amount for name, amount in requests.items() if "/" in name}
    containers = [{"name": "main", "image": "busybox", "resources": {"requests": requests, "limits": limits}}]
    template = {
        "metadata": {"annotations": annotations or {}},
        "spec": {"restartPolicy": "Never", "containers": containers, **pod},
    }
    job: dict[str, Any] = {"parallelism": pods, "completions": pods, "template": template}
    jobset = {"replicatedJobs": [{"name": "main", "replicas": 1, "template": {"spec": job}}]}
    result = {
        "apiVersion": "batch/v1" if kind == "Job" else "jobset.x-k8s.io/v1alpha2",
        "kind": kind,
        "metadata": {"name": "j", "namespace": namespace, "labels": {"kueue.x-k8s.io/queue-name": queue}},
        "spec": job if kind == "Job" else jobset,
    }
    return [Document("j.yaml:1", result)]


def on_autopilot(**job: Any) -> list[str]:
    """What is said of it on a cluster of Autopilot alone."""
    return list(map(str, check_manifests(parse_fleet(standalone_data()), documents(**job)).problems))


def on_standard(changes: dict[str, Any] | None = None, **job: Any) -> list[str]:
    """The same on a Standard cluster with node pools of two L4 each."""
    return list(
        map(str, check_manifests(parse_fleet(changed(pools_data(), changes or {})), documents(**TEAM | job)).problems)
    )


L4: Final = {ACCELERATOR: "nvidia-l4"}


@pytest.mark.parametrize(
    ("job", "why"),
    [
        ({}, f"requests {GPU} and does not select {ACCELERATOR} or cloud.google.com/compute-class itself"),
        ({"nodeSelector": L4 | {"cloud.google.com/gke-nodepool": "a"}}, "selects cloud.google.com/gke-nodepool, and"),
        (
            {"gpus": 0, "tolerations": [{"key": GPU, "operator": "Exists"}]},
            f"tolerates {GPU} without requesting it, and",
        ),
        (
            {"nodeSelector": L4 | {"cloud.google.com/gke-gpu-sharing-strategy": "time-sharing"}},
            "selects cloud.google.com/gke-gpu-sharing-strategy alone, and Autopilot refuses",
        ),
        ({"nodeSelector": L4 | {"disk": "ssd"}}, "selects the custom label disk=ssd and does not tolerate the taint"),
    ],
)
def test_autopilot_refuses(job: dict[str, Any], why: str) -> None:
    [result] = on_autopilot(**job)
    assert f"j.yaml:1: Job default/j: pod set main {why}" in result


@pytest.mark.parametrize(
    "job",
    [
        {"nodeSelector": L4},
        {"kind": "JobSet"},
        {"nodeSelector": L4 | {"disk": "ssd"}, "tolerations": [{"key": "disk", "value": "ssd"}]},
        {"nodeSelector": L4 | {"cloud.google.com/gke-ephemeral-storage-local-ssd": "true"}},
    ],
    ids=["kind of GPU", "JobSet, whose pods get it from the flavor", "separated", "label of GKE"],
)
def test_autopilot_takes(job: dict[str, Any]) -> None:
    assert on_autopilot(**job) == []


CLASS: Final = {"priorities": [{"machineType": "g2-standard-24"}, {"machineType": "g2-standard-24", "spot": True}]}


@pytest.mark.parametrize("kind", ["Job", "JobSet"])
@pytest.mark.parametrize(
    ("flavor", "of"),
    [({}, "nvidia-l4"), ({"nodeLabels": REMOVED, "computeClass": CLASS}, "nvidia-l4")],
    ids=["by its label", "by a compute class"],
)
def test_pods_without_gpus_stay_pending_where_gke_makes_nodes_with_some(
    kind: str, flavor: dict[str, Any], of: str
) -> None:
    result = changed(standalone_data(), {f"flavors/0/{field}": value for field, value in flavor.items()})
    [results] = map(str, check_manifests(parse_fleet(result), documents(kind=kind, gpus=0)).problems)
    assert f"pod set main requests no {GPU}, and flavor l4 puts it on nodes with {of}" in results
    assert "on only, whose taint nvidia.com/gpu only pods that request it tolerate by themselves" in results


ANYWAY: Final = {"nodeLabels": REMOVED, "computeClass": CLASS | {"whenUnsatisfiable": "ScaleUpAnyway"}}


def test_pods_without_gpus_go_where_a_class_may_make_others() -> None:
    result = changed(standalone_data(), {f"flavors/0/{field}": value for field, value in ANYWAY.items()})
    assert check_manifests(parse_fleet(result), documents(gpus=0)).problems == []


def test_auto_provisioning_makes_the_taint_too_and_pods_may_tolerate_it() -> None:
    limits = [{"resourceType": kind, "maximum": 800} for kind in ("nvidia-l4", "cpu", "memory")]
    result = changed(
        standalone_data(),
        {"clusters/0/mode": "Standard", "clusters/0/nodeAutoProvisioning": {"resourceLimits": limits}},
    )
    [results] = map(str, check_manifests(parse_fleet(result), documents(gpus=0)).problems)
    assert f"requests no {GPU}" in results
    tolerated = documents(gpus=0, tolerations=[{"key": GPU, "operator": "Exists"}])
    assert check_manifests(parse_fleet(result), tolerated).problems == []


@pytest.mark.parametrize(("selected", "whole"), [({}, False), ({"cloud.google.com/gke-tpu-topology": "2x2"}, True)])
def test_tpus_of_autopilot_are_selected_by_kind_and_topology(selected: dict[str, str], whole: bool) -> None:
    chips = "google.com/tpu"
    changes = {
        "flavors/0/nodeLabels": {"cloud.google.com/gke-tpu-accelerator": "tpu-v6e-slice"},
        "clusterQueues/0/resourceGroups/0/coveredResources/0": chips,
        "clusterQueues/0/resourceGroups/0/flavors/0/resources/0/name": chips,
    }
    [job] = documents(kind="JobSet", nodeSelector=selected)
    container = job.data["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]["containers"][0]
    container["resources"] = {field: {chips: 4} for field in ("requests", "limits")}
    result = [str(entry) for entry in check_manifests(parse_fleet(changed(standalone_data(), changes)), [job]).problems]
    assert [
        "nothing selects cloud.google.com/gke-tpu-topology, without which GKE makes no node" in item for item in result
    ] == ([] if whole else [True])


AFFINITY: Final = "requiredDuringSchedulingIgnoredDuringExecution"


def affinity(key: str, *values: str) -> dict[str, Any]:
    """Of a pod that only runs on nodes with one of the values."""
    terms = [{"matchExpressions": [{"key": key, "operator": "In", "values": list(values)}]}]
    return {"affinity": {"nodeAffinity": {AFFINITY: {"nodeSelectorTerms": terms}}}}


@pytest.mark.parametrize(
    ("job", "why"),
    [
        ({"nodeSelector": {"disk": "ssd"}}, "selects disk=ssd, and node pool reserved of batch does not have it"),
        (affinity("topology.kubernetes.io/zone", "us-central1-f"), "has a node affinity (topology.kubernetes.io/zone)"),
    ],
)
def test_no_pool_has_such_nodes(job: dict[str, Any], why: str) -> None:
    [result] = on_standard(**job)
    assert f"pod set main {why}" in result


@pytest.mark.parametrize(
    "job",
    [
        {"nodeSelector": {"cloud.google.com/gke-something-new": "true"}},
        {"nodeSelector": {"topology.kubernetes.io/zone": "us-central1-b"}},
        affinity("topology.kubernetes.io/zone", "us-central1-f", "us-central1-c"),
    ],
    ids=["label of GKE that is not known", "one of the zones", "one of the zones, by affinity"],
)
def test_some_pool_has_or_may_have_such_nodes(job: dict[str, Any]) -> None:
    assert on_standard(**job) == []


@pytest.mark.parametrize(
    ("pods", "size", "why"),
    [
        (5, "2", "has 5 pods, which slices of 2 (kueue.x-k8s.io/podset-slice-size) do not divide: Kueue places 4"),
        (2, "4", "has 2 pods, but slices of 4 (kueue.x-k8s.io/podset-slice-size), and Kueue refuses the job"),
    ],
)
def test_slices_that_do_not_divide_the_pods(pods: int, size: str, why: str) -> None:
    annotations = {
        "kueue.x-k8s.io/podset-slice-size": size,
        "kueue.x-k8s.io/podset-slice-required-topology": "kubernetes.io/hostname",
    }
    [result] = on_standard(pods=pods, annotations=annotations)
    assert f"pod set main {why}" in result


def test_a_slice_size_without_its_level_is_refused() -> None:
    [result] = on_standard(annotations={"kueue.x-k8s.io/podset-slice-size": "1"})
    assert "without kueue.x-k8s.io/podset-slice-required-topology, and Kueue refuses the job; give both" in result


def blocks(**pool: Any) -> dict[str, Any]:
    """A fleet of one pool of A100, with a topology of blocks."""
    block = "cloud.google.com/gce-topology-block"
    zones = ["us-central1-a"]
    return changed(
        standalone_data(),
        {
            "clusters/0/mode": "Standard",
            "clusters/0/zones": zones,
            "nodePools": [{"name": "a2", "machineType": "a2-highgpu-1g", "zones": zones, "nodeCount": 4, **pool}],
            "topologies": [
                {"name": "blocks", "levels": [{"nodeLabel": block}, {"nodeLabel": "kubernetes.io/hostname"}]}
            ],
            "flavors": [{"name": "l4", "nodePool": "a2", "topologyName": "blocks"}],
        },
    )


def test_a_job_without_gpus_does_not_tolerate_the_taint_of_their_nodes() -> None:
    """GKE adds the toleration to pods that request GPUs."""
    data = changed(blocks(), {"flavors": [{"name": "l4", "nodeLabels": {ACCELERATOR: "nvidia-tesla-a100"}}]})
    assert check_manifests(parse_fleet(data), documents()).problems == []
    [result] = map(str, check_manifests(parse_fleet(data), documents(gpus=0)).problems)
    assert "does not tolerate nvidia.com/gpu=present:NoSchedule, a taint of node pool a2 of only" in result


@pytest.mark.parametrize("pool", [{"compactPlacement": True}, {}])
def test_blocks_of_a_pool_are_not_known(pool: dict[str, Any]) -> None:
    """GKE says of which machines it labels the blocks in parts only."""
    annotations = {"kueue.x-k8s.io/podset-required-topology": "cloud.google.com/gce-topology-block"}
    fleet = parse_fleet(blocks(**pool))
    jobs = documents(annotations=annotations)
    assert check_manifests(fleet, jobs).problems == []
    [result] = map(str, check_manifests(fleet, jobs).warnings)
    assert "whether it starts is not known: topology blocks has the level cloud.google.com/gce-topology-block" in result


@pytest.mark.parametrize(
    ("level", "job", "reason"),
    [
        ("example.com/rack", {}, "TopologyPlacementFailed"),
        ("cloud.google.com/gce-topology-block", {"pods": 9}, "ExceedsMaxQuota"),
    ],
    ids=["a label of ours that no pool has", "more than the quota"],
)
def test_what_is_known_to_be_missing_never_starts(level: str, job: dict[str, Any], reason: str) -> None:
    levels = [{"nodeLabel": level}, {"nodeLabel": "kubernetes.io/hostname"}]
    fleet = parse_fleet(changed(blocks(), {"topologies": [{"name": "blocks", "levels": levels}]}))
    [result] = check_manifests(
        fleet, documents(annotations={"kueue.x-k8s.io/podset-required-topology": level}, **job)
    ).problems
    assert f"never starts: {reason}" in result.wrong


def test_the_room_on_machines_that_are_not_in_the_catalogue_is_not_known() -> None:
    pool = {"machineType": "a2-newgpu-1g", "accelerator": {"type": "nvidia-tesla-a100", "count": 1}}
    fleet = parse_fleet(changed(blocks(**pool), {"flavors/0/topologyName": REMOVED}))
    result = check_manifests(fleet, documents())
    assert result.problems == []
    [warned] = result.warnings
    assert "whether it starts is not known: node pool a2 has machines of type a2-newgpu-1g, whose" in warned.wrong


def test_nodes_that_gke_makes_for_a_topology_are_not_known() -> None:
    levels = [{"nodeLabel": "kubernetes.io/hostname"}]
    topology = {"topologies": [{"name": "hosts", "levels": levels}], "flavors/0/topologyName": "hosts"}
    fleet = parse_fleet(changed(standalone_data(), topology))
    annotations = {"kueue.x-k8s.io/podset-required-topology": "kubernetes.io/hostname"}
    result = check_manifests(fleet, documents(annotations=annotations, nodeSelector=L4))
    assert result.problems == []
    [warned] = result.warnings
    assert "whether it starts is not known: flavor l4 has topology hosts, and no node pool of the" in warned.wrong


def test_a_manager_on_autopilot_refuses_a_job_that_selects_no_gpu() -> None:
    data = changed(
        pools_data(),
        {
            "clusters": [
                {"name": "manager", "role": "manager", "region": "us-central1"},
                {**pools_data()["clusters"][0], "role": "worker"},
            ],
            "multiKueue": {"credentials": {"type": "ServiceAccountToken", "rotation": "a", "rotateBy": "2027-01-01"}},
        },
    )
    fleet = parse_fleet(data)
    jobs = documents(**TEAM)
    [result] = map(str, check_manifests(fleet, jobs).problems)
    assert "and Autopilot refuses that when it is made on manager" in result
