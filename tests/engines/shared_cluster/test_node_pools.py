"""Node pools of a Standard cluster on a real control plane: sizes, autoscaling, auto-provisioning, Spot, DWS."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Any

import pytest

from kueue_fleet.rehearsal.processes.supervisor_client import SupervisorError
from one_cluster import (
    JOBS,
    REQUESTS,
    OneCluster,
    ask,
    condition,
    details,
    end_of,
    plain_job,
    pod_template,
    pods_of,
    reason,
    wait_until,
)

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
    found = cluster.items(f"/api/v1/nodes?labelSelector={NODE_POOL}%3D{pool}")
    return {node["metadata"]["name"]: node for node in found}


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
    found = nodes(standard, "fixed")
    assert len(found) == 2
    node = next(iter(found.values()))
    assert condition(node, "Ready") == "True"
    labels = node["metadata"]["labels"]
    assert (labels[ACCELERATOR], labels["tier"], labels["topology.kubernetes.io/zone"]) == (
        "nvidia-l4",
        "reserved",
        ZONE,
    )
    assert [(taint["key"], taint["value"]) for taint in node["spec"]["taints"]] == [("nvidia.com/gpu", "present")]
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
    work(standard, "three", {NODE_POOL: "burst"}, "3", 3)
    wait_until(lambda: len(placed(standard, "three")) == 2)
    message = wait_until(lambda: [text for text in told(standard, "three") if "maximum of 2 nodes" in text])
    assert "node pool burst: it has its maximum of 2 nodes" in message[0]
    assert len(nodes(standard, "burst")) == 2
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
        wanted = len(nodes(standard, "fixed")) + len(nodes(standard, "daemons"))
        return bool(nodes(standard, "daemons")) and status.get("numberAvailable") == wanted

    wait_until(everywhere)
    wait_until(lambda: not nodes(standard, "daemons"), 60.0)
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
    work(standard, "cheap", {NODE_POOL: "spot"}, "4")
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
    assert any("8 nvidia-b200 are not available now" in text for text in told(standard, "missing"))
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


def test_at_the_end_of_a_calendar_reservation_its_nodes_go_and_the_job_waits_for_others(standard: OneCluster) -> None:
    """What `check` says beforehand: Google removes the nodes, and the pods of jobs that still run end."""
    end = time.time() + 12
    window = {"startTime": "2026-01-01T00:00:00Z", "endTime": datetime.fromtimestamp(end, UTC).isoformat()}
    machines = {"totalCount": "1", "instanceProperties": {"machineType": "g2-standard-24"}}
    client = standard.supervisor.client
    client.put_reservation(ZONE, "week", {"timeWindow": window, "specificSkuProperties": machines})
    affinity = {
        "consumeReservationType": "SPECIFIC_RESERVATION",
        "key": "compute.googleapis.com/reservation-name",
        "values": ["week"],
    }
    put(standard, "week", {"nodeCount": 1}, reservationAffinity=affinity)
    work(standard, "longer", {NODE_POOL: "week"}, "3600")
    (pod,) = wait_until(lambda: [one for one in placed(standard, "longer") if one["status"]["phase"] == "Running"])

    wait_until(lambda: not nodes(standard, "week"))
    assert time.time() >= end
    lost = next(one for one in pods_of(standard, "longer") if one["metadata"]["uid"] == pod["metadata"]["uid"])
    assert (lost["status"]["phase"], condition(lost, "DisruptionTarget")) == ("Failed", "True")
    wait_until(lambda: [one for one in pods_of(standard, "longer") if one["status"]["phase"] == "Pending"])
    # The next `pulumi up` closes the pool; it cannot be opened again.
    put(standard, "week", {"nodeCount": 0}, reservationAffinity=affinity)
    with pytest.raises(SupervisorError, match="reservation week has ended: the pool must have no nodes"):
        put(standard, "week", {"nodeCount": 1}, reservationAffinity=affinity)
    assert nodes(standard, "week") == {}
    standard.delete(f"{JOBS}/longer")
    client.delete_node_pool(standard.name, "week")


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
