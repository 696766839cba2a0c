"""Node pools of a Standard cluster on a real control plane: sizes, autoscaling, auto-provisioning, Spot, DWS."""

from __future__ import annotations

import math
import time
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from controller_lab import apply_object
from kueue_admission.simulate.delays import Delays
from kueue_admission.simulate.documents import Document
from kueue_fleet.fleet_file import FleetSpec, kueue_helm_values, parse_fleet
from kueue_fleet.fleet_file.model.kueue_pods import kueue_priority_class
from kueue_fleet.fleet_simulation.fleet import prepare_fleet
from kueue_fleet.jobs.workload_file import WorkloadFile
from kueue_fleet.objects import render_cluster
from kueue_rehearsal.processes.supervisor_client import SupervisorError
from one_cluster import (
    JOBS,
    KUEUE,
    PODS,
    REQUESTS,
    OneCluster,
    ask,
    condition,
    details,
    end_of,
    job,
    own_taints,
    plain_job,
    pod_template,
    pods_of,
    reason,
    wait_until,
)
from tests.simulation.fleets import calendar_data

ZONE = "us-east4-a"
NODE_POOL = "cloud.google.com/gke-nodepool"
ACCELERATOR = "cloud.google.com/gke-accelerator"
SPOT = "cloud.google.com/gke-spot"
GROUP = "cloud.google.com/gke-placement-group"
NO_RESERVATION = {"consumeReservationType": "NO_RESERVATION"}


def put(cluster: OneCluster, name: str, body: dict[str, Any], **config: Any) -> None:
    node_config = {"machineType": "g2-standard-24", **config}
    cluster.supervisor.client.put_node_pool(
        cluster.name, name, {"nodeLocations": [ZONE], **body, "nodeConfig": node_config}
    )


def scaled(most: int) -> dict[str, Any]:
    return {"autoscaling": {"totalMinNodeCount": 0, "totalMaxNodeCount": most}}


def nodes(cluster: OneCluster, pool: str) -> dict[str, dict[str, Any]]:
    result = cluster.items(f"/api/v1/nodes?labelSelector={NODE_POOL}%3D{pool}")  # settled: requests wait for nodes
    return {node["metadata"]["name"]: node for node in result}


def work(
    cluster: OneCluster, name: str, selector: dict[str, str], seconds: str = "1", pods: int = 1, gpus: int = 2
) -> None:
    template = pod_template(gpus, {"kueue-fleet.dev/run-seconds": seconds}, nodeSelector=selector)
    # As long as a disruption is not a failure of the pod's own, the Job goes on with another pod.
    body = plain_job(name, template, pods)
    disrupted = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
    body["spec"]["podFailurePolicy"] = {"rules": [disrupted]}
    cluster.create(JOBS, body)


def told(cluster: OneCluster, job: str) -> list[str]:
    events = cluster.items("/api/v1/namespaces/default/events?fieldSelector=reason%3DNotTriggerScaleUp")
    return [one["message"] for one in events if one["involvedObject"]["name"].startswith(job)]


def placed(cluster: OneCluster, job: str) -> list[dict[str, Any]]:
    return [pod for pod in pods_of(cluster, job) if pod["spec"].get("nodeName")]


def test_a_fixed_pool_has_its_nodes_at_once_with_gkes_labels_taints_and_room(standard: OneCluster) -> None:
    put(standard, "fixed", {"nodeCount": 2}, labels={"tier": "reserved"})
    result = nodes(standard, "fixed")
    assert len(result) == 2
    node = next(iter(result.values()))
    assert condition(node, "Ready") == "True"
    labels = node["metadata"]["labels"]
    assert (labels[ACCELERATOR], labels["tier"], labels["topology.kubernetes.io/zone"]) == (
        "nvidia-l4",
        "reserved",
        ZONE,
    )
    assert [(taint["key"], taint["value"]) for taint in own_taints(node)] == [("nvidia.com/gpu", "present")]
    allocatable = node["status"]["allocatable"]
    assert (allocatable["cpu"], allocatable["nvidia.com/gpu"]) == ("23870m", "2")


def test_other_machines_replace_the_nodes_and_their_pods_go_on(standard: OneCluster) -> None:
    work(standard, "long", {"tier": "reserved"}, "3600")
    (before,) = wait_until(lambda: placed(standard, "long"))
    old = set(nodes(standard, "fixed"))
    put(standard, "fixed", {"nodeCount": 1}, machineType="g2-standard-48", labels={"tier": "reserved"})
    ((name, node),) = nodes(standard, "fixed").items()
    assert name not in old
    assert node["status"]["allocatable"]["nvidia.com/gpu"] == "4"

    def moved() -> bool:
        running = [pod for pod in placed(standard, "long") if pod["status"]["phase"] == "Running"]
        return [pod["spec"]["nodeName"] for pod in running] == [name]

    wait_until(moved)
    assert before["spec"]["nodeName"] in old
    standard.delete(f"{JOBS}/long")


def test_an_autoscaled_pool_grows_to_its_maximum_and_shrinks_when_idle(standard: OneCluster) -> None:
    put(standard, "burst", scaled(2))
    assert nodes(standard, "burst") == {}
    work(standard, "three", {NODE_POOL: "burst"}, "6", 3)
    wait_until(lambda: len(placed(standard, "three")) >= 2)
    message = wait_until(lambda: [text for text in told(standard, "three") if "maximum of 2 nodes" in text])
    assert "node pool burst: it has its maximum of 2 nodes" in message[0]
    wait_until(lambda: len(nodes(standard, "burst")) == 2)
    assert end_of(standard, "three") == "Complete"
    wait_until(lambda: not nodes(standard, "burst"))


def test_daemons_run_on_every_node_and_keep_none(standard: OneCluster) -> None:
    put(standard, "daemons", scaled(2), labels={"tier": "daemons"})
    labels = {"app": "driver"}
    has_l4 = {"matchExpressions": [{"key": ACCELERATOR, "operator": "Exists"}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [has_l4]}}}
    pod = {"containers": [{"name": "driver", "image": "cos-nvidia-installer:fixed"}], "affinity": affinity}
    template = {"metadata": {"labels": labels}, "spec": {**pod, "tolerations": [{"operator": "Exists"}]}}
    daemon_sets = "/apis/apps/v1/namespaces/default/daemonsets"
    spec = {"selector": {"matchLabels": labels}, "template": template}
    metadata = {"name": "driver"}
    standard.create(daemon_sets, {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": metadata, "spec": spec})
    work(standard, "beside", {"tier": "daemons"}, "10")

    def everywhere() -> bool:
        status = standard.get(f"{daemon_sets}/driver")["status"]
        expected = len(nodes(standard, "fixed")) + len(nodes(standard, "daemons"))
        return bool(nodes(standard, "daemons")) and status.get("numberAvailable") == expected

    wait_until(everywhere)
    wait_until(lambda: not nodes(standard, "daemons"))
    assert standard.supervisor.client.refused_pods() == []
    standard.delete(f"{daemon_sets}/driver")
    standard.supervisor.client.delete_node_pool(standard.name, "daemons")


def test_a_pod_whose_flavor_does_not_match_any_pool_stays_pending(standard: OneCluster) -> None:
    work(standard, "mismatch", {ACCELERATOR: "nvidia-tesla-t4"})
    (message,) = wait_until(lambda: told(standard, "mismatch"))
    assert message == f"node pool burst: its nodes do not have the label {ACCELERATOR}=nvidia-tesla-t4"
    assert placed(standard, "mismatch") == []
    standard.delete(f"{JOBS}/mismatch")


def test_auto_provisioning_makes_compact_spot_nodes_within_the_limits_of_the_cluster(standard: OneCluster) -> None:
    def limit(gpus: int) -> None:
        limits = [{"resourceType": "cpu", "maximum": 500}, {"resourceType": "memory", "maximum": 4000}]
        limits.append({"resourceType": "nvidia-tesla-a100", "maximum": gpus})
        scaling = {"enabled": True, "resourceLimits": limits}
        standard.supervisor.client.put_inputs(standard.name, {"clusterAutoscaling": scaling})

    limit(1)
    selector = {ACCELERATOR: "nvidia-tesla-a100", SPOT: "true", GROUP: "compact-0"}
    work(standard, "compact", selector, "2", 2, 1)
    wait_until(lambda: [text for text in told(standard, "compact") if "limit of 1 nvidia-tesla-a100" in text])
    assert len(nodes(standard, "compact-0")) == 1
    limit(2)
    assert end_of(standard, "compact") == "Complete"
    used = {pod["spec"]["nodeName"] for pod in pods_of(standard, "compact")}
    assert all(name.startswith("gke-standard-compact-0-") for name in used)
    wait_until(lambda: not nodes(standard, "compact-0"))
    standard.supervisor.client.put_inputs(standard.name, {})


def test_a_spot_node_is_taken_back_under_its_pod_and_the_job_goes_on_elsewhere(standard: OneCluster) -> None:
    put(standard, "spot", scaled(2), spot=True, reservationAffinity=NO_RESERVATION)
    work(standard, "cheap", {NODE_POOL: "spot"}, "10")
    (pod,) = wait_until(lambda: [one for one in placed(standard, "cheap") if one["status"]["phase"] == "Running"])
    client = standard.supervisor.client
    assert client.reclaim_spot(standard.name, 1, "burst") == []
    assert client.reclaim_spot(standard.name) == [pod["spec"]["nodeName"]]
    lost = next(one for one in pods_of(standard, "cheap") if one["metadata"]["uid"] == pod["metadata"]["uid"])
    assert (lost["status"]["phase"], lost["status"]["reason"]) == ("Failed", "Terminated")
    assert condition(lost, "DisruptionTarget") == "True"
    assert end_of(standard, "cheap") == "Complete"


def test_flex_start_without_a_queue_waits_for_stock(standard: OneCluster) -> None:
    off = {"management": {"autoRepair": False}}
    put(standard, "flex", {**scaled(4), **off}, flexStart=True, reservationAffinity=NO_RESERVATION)
    b200 = {"machineType": "a4-highgpu-8g", "flexStart": True, "reservationAffinity": NO_RESERVATION}
    put(standard, "none", {**scaled(4), **off}, **b200)
    # Four L4 are in stock, and no B200.
    work(standard, "there", {NODE_POOL: "flex"}, "2", 2)
    work(standard, "missing", {NODE_POOL: "none"}, gpus=8)
    assert end_of(standard, "there") == "Complete"
    wait_until(lambda: [text for text in told(standard, "missing") if "8 nvidia-b200 are not available now" in text])
    standard.delete(f"{JOBS}/missing")
    wait_until(lambda: not nodes(standard, "flex"))


def test_dws_serves_requests_from_a_queued_pool_up_to_its_maximum(standard: OneCluster) -> None:
    queued = {**scaled(1), "queuedProvisioning": {"enabled": True}}
    put(standard, "dws", queued, machineType="g2-standard-4", reservationAffinity=NO_RESERVATION)
    ask(standard, "two", 2)
    assert wait_until(lambda: reason(standard, "two", "Failed")) == "InvalidArgument"
    ask(standard, "one", 1)
    wait_until(lambda: reason(standard, "one", "Provisioned"))
    facts = details(standard, "one")
    assert (facts["NodePoolName"], facts["NodePoolAutoProvisioned"]) == ("dws", "false")
    ((_, node),) = nodes(standard, "dws").items()
    assert node["metadata"]["labels"]["autoscaling.gke.io/provisioning-request"] == facts["ResizeRequestName"]
    ask(standard, "next", 1)
    assert wait_until(lambda: reason(standard, "next", "Provisioned", "False")) == "ResourcePoolExhausted"
    standard.delete(f"{REQUESTS}/one")
    wait_until(lambda: reason(standard, "next", "Provisioned"))
    for name in ("two", "next"):
        standard.delete(f"{REQUESTS}/{name}")
    wait_until(lambda: not nodes(standard, "dws"))


def test_at_the_end_of_a_calendar_reservation_its_nodes_go_and_kueue_takes_the_job_back(
    standard: OneCluster, tmp_path: Path
) -> None:
    """As `check` says beforehand, and as the simulation has it: a Job that may not fail once more fails, another one
    loses its quota after Kueue's patience, and gets it again on the pool, which has no nodes."""
    data = calendar_data(start="2026-01-01T00:00:00Z")
    patience = {"timeout": "60s", "recoveryTimeout": "2s", "requeuingStrategy": {"backoffBaseSeconds": 1}}
    data |= {"jobSet": {"enabled": False}, "kueue": {"replicas": 1, "configuration": {"waitForPodsReady": patience}}}
    put(standard, "system", {"nodeCount": 1}, machineType="e2-standard-4")
    install_with_queues(standard, parse_fleet(data), tmp_path)
    machines = {"totalCount": "8", "instanceProperties": {"machineType": "a3-highgpu-8g"}}
    client = standard.supervisor.client

    def reserve(end: float) -> None:
        window = {"startTime": "2026-01-01T00:00:00Z", "endTime": datetime.fromtimestamp(end, UTC).isoformat()}
        client.put_reservation(ZONE, "week", {"timeWindow": window, "specificSkuProperties": machines})

    reserve(time.time() + 3600)
    affinity = {
        "consumeReservationType": "SPECIFIC_RESERVATION",
        "key": "compute.googleapis.com/reservation-name",
        "values": ["week"],
    }
    config = {"machineType": "a3-highgpu-8g", "reservationAffinity": affinity}
    put(standard, "week", {"nodeCount": 2}, **config)
    jobs = {name: queued_job(name, limit) for name, limit in (("goes-on", 1), ("fails", 0))}
    for body in jobs.values():
        standard.create(JOBS, body)
    pods = [wait_until(partial(running, standard, name)) for name in jobs]

    # However long that took: the end comes now.
    end = math.ceil(time.time()) + 8
    reserve(end)
    put(standard, "week", {"nodeCount": 2}, **config)
    wait_until(lambda: not nodes(standard, "week"))
    assert time.time() >= end
    for pod in pods:
        lost = wait_until(partial(standard.find, f"{PODS}/{pod['metadata']['name']}"))
        assert (lost["status"]["phase"], condition(lost, "DisruptionTarget")) == ("Failed", "True")
    assert end_of(standard, "fails") == "Failed"
    foreseen = simulated(data, jobs)
    assert foreseen == {"goes-on": ("Admitted", ["PodsReadyTimeout"]), "fails": ("Finished", [])}
    wait_until(lambda: {name: fate(standard, name) for name in jobs} == foreseen)
    wait_until(lambda: [one for one in pods_of(standard, "goes-on") if one["status"]["phase"] == "Pending"])
    # The next `pulumi up` closes the pool; it cannot be opened again.
    put(standard, "week", {"nodeCount": 0}, **config)
    with pytest.raises(SupervisorError, match="reservation week has ended: the pool must have no nodes"):
        put(standard, "week", {"nodeCount": 1}, **config)
    assert nodes(standard, "week") == {}
    for name in jobs:
        standard.delete(f"{JOBS}/{name}")
    client.delete_node_pool(standard.name, "week")


def test_jobs_of_one_share_run_together_on_a_node_of_a_shared_pool(standard: OneCluster, tmp_path: Path) -> None:
    config = {"gpuSharingConfig": {"gpuSharingStrategy": "TIME_SHARING", "maxSharedClientsPerGpu": 4}}
    pool = {"machineType": "g2-standard-8", "guestAccelerators": [{"type": "nvidia-l4", "count": 1, **config}]}
    put(standard, "system", {"nodeCount": 1}, machineType="e2-standard-4")
    put(standard, "shared", scaled(1), **pool)
    install_with_queues(standard, parse_fleet(shared_data()), tmp_path)
    names = ("first-share", "second-share")
    for name in names:
        standard.create(JOBS, job(name, "shares", pod_template(1, {"kueue-fleet.dev/run-seconds": "3600"})))
    pods = [wait_until(partial(running, standard, name)) for name in names]
    ((name, node),) = nodes(standard, "shared").items()
    assert [pod["spec"]["nodeName"] for pod in pods] == [name, name]
    assert node["status"]["allocatable"]["nvidia.com/gpu"] == "4"
    assert node["metadata"]["labels"].items() >= pods[0]["spec"]["nodeSelector"].items()
    assert pods[0]["spec"]["nodeSelector"]["cloud.google.com/gke-gpu-sharing-strategy"] == "time-sharing"
    standard.create(JOBS, job("two-shares", "shares", pod_template(2)))
    assert wait_until(partial(refused, standard, "two-shares")) == "UnexpectedAdmissionError"
    for name in (*names, "two-shares"):
        standard.delete(f"{JOBS}/{name}")


def shared_data() -> dict[str, Any]:
    """The fleet of `calendar_data` with one pool, each of whose GPUs four containers share."""
    data = calendar_data()
    sharing = {"sharing": {"strategy": "TIME_SHARING", "maxSharedClientsPerGpu": 4}}
    shared = {"name": "shared", "machineType": "g2-standard-8", "accelerator": sharing}
    [queue], [local] = data["clusterQueues"], data["localQueues"]
    quotas = {"nvidia.com/gpu": 4, "cpu": 7, "memory": "20Gi"}
    resources = [{"name": name, "nominalQuota": amount} for name, amount in quotas.items()]
    [group] = queue["resourceGroups"]
    return data | {
        "nodePools": [{**shared, "autoscaling": {"totalMaxNodeCount": 1}}],
        "flavors": [{"name": "shared", "nodePool": "shared"}],
        "clusterQueues": [
            {
                **queue,
                "name": "shares",
                "resourceGroups": [{**group, "flavors": [{"name": "shared", "resources": resources}]}],
            }
        ],
        "localQueues": [{**local, "name": "shares", "clusterQueue": "shares"}],
        "kueue": {"replicas": 1},
        "jobSet": {"enabled": False},
    }


def install_with_queues(cluster: OneCluster, fleet: FleetSpec, folder: Path) -> None:
    """Kueue and its queues as the fleet has them on its only cluster."""
    [name] = fleet.cluster_names
    values = folder / "values.yaml"
    values.write_text(yaml.safe_dump(kueue_helm_values(fleet, name)))
    apply_object(cluster, kueue_priority_class())
    cluster.helm_install("kueue", "--values", str(values))
    for manifest in render_cluster(fleet, name):
        if manifest["kind"] in ("ResourceFlavor", "ClusterQueue", "LocalQueue"):
            apply_object(cluster, manifest)


def queued_job(name: str, may_fail: int) -> dict[str, Any]:
    body = job(name, "q", pod_template(8, {"kueue-fleet.dev/run-seconds": "3600"}))
    body["spec"]["backoffLimit"] = may_fail
    return body


def running(cluster: OneCluster, name: str) -> dict[str, Any] | None:
    result = placed(cluster, name)
    return next((pod for pod in result if pod["status"]["phase"] == "Running"), None)


def refused(cluster: OneCluster, name: str) -> str | None:
    """Why a node refused a pod of the Job."""
    return next((pod["status"]["reason"] for pod in placed(cluster, name) if pod["status"]["phase"] == "Failed"), None)


def fate(cluster: OneCluster, name: str) -> tuple[str, list[str]]:
    """The last state that the Workload of a Job has reached, and why it was evicted."""
    [result] = [
        one
        for one in cluster.items(f"{KUEUE}/namespaces/default/workloads")
        if one["metadata"]["ownerReferences"][0]["name"] == name
    ]
    reached = (kind for kind in ("Finished", "Evicted", "Admitted") if condition(result, kind) == "True")
    state = next(reached, "Pending")
    evictions = (result["status"].get("schedulingStats") or {}).get("evictions") or ()
    return state, [one["reason"] for one in evictions for _ in range(one["count"])]


def simulated(data: dict[str, Any], jobs: dict[str, dict[str, Any]]) -> dict[str, tuple[str, list[str]]]:
    """The same Jobs a quarter of a minute before the end, and ten seconds after it."""
    file = WorkloadFile.model_validate({"begin": "2026-01-07T23:59:45Z"})
    manifests = [Document(name, body) for name, body in jobs.items()]
    rows = prepare_fleet(parse_fleet(data), file, Delays(), until=25, manifests=manifests).run().as_json()["workloads"]
    return {row["name"]: (row["state"], [one["reason"] for one in row["evictions"]]) for row in rows}


def test_what_gke_refuses_is_refused_and_changes_nothing(standard: OneCluster) -> None:
    client = standard.supervisor.client
    body = {"specificReservation": {"count": 1, "instanceProperties": {"machineType": "a2-highgpu-1g"}}}
    client.put_reservation(ZONE, "mine", body)
    affinity = {
        "consumeReservationType": "SPECIFIC_RESERVATION",
        "key": "compute.googleapis.com/reservation-name",
        "values": ["mine"],
    }
    with pytest.raises(SupervisorError, match="reservation mine has a2-highgpu-1g, the pool has g2-standard-24"):
        put(standard, "reserved", {"nodeCount": 1}, reservationAffinity=affinity)
    assert nodes(standard, "reserved") == {}


def test_a_deleted_pool_takes_its_nodes_along(standard: OneCluster) -> None:
    standard.supervisor.client.delete_node_pool(standard.name, "fixed")
    assert nodes(standard, "fixed") == {}
