"""A node that breaks on the real Kueue: its job gets another one, slack lends less, and more again once it is gone."""

from __future__ import annotations

import time
from datetime import UTC, datetime

from controller_lab import GPU, JOBS, ControllerLab, job
from kueue_admission.kernel.names import LOST_CAPACITY_ANNOTATION
from one_cluster import KUEUE, Json, OneCluster, condition, wait_until
from two_regions import BREAKS, EU, RESERVE, TEAM

NODES = "/api/v1/nodes"
HOSTS = {"kueue.x-k8s.io/podset-required-topology": "kubernetes.io/hostname"}


def status(*, ready: bool) -> Json:
    since = datetime.fromtimestamp(time.time() - 60, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    amounts = {GPU: "3", "cpu": "8", "pods": "10"}
    word = "True" if ready else "False"
    conditions = [{"type": "Ready", "status": word, "reason": "Test", "lastTransitionTime": since}]
    return {"allocatable": amounts, "capacity": amounts, "conditions": conditions}


def node(name: str) -> Json:
    labels = {BREAKS: "true", "kubernetes.io/hostname": name}
    metadata = {"name": name, "labels": labels}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "status": status(ready=True)}


def lends(cluster: OneCluster) -> tuple[str | None, bool]:
    """How many GPUs the slack queue lends, and whether it says what is lost."""
    result = cluster.get(f"{KUEUE}/clusterqueues/{RESERVE}")
    quotas = result["spec"]["resourceGroups"][0]["flavors"][0]["resources"]
    output = LOST_CAPACITY_ANNOTATION in result["metadata"].get("annotations", {})
    return next(item.get("lendingLimit") for item in quotas if item["name"] == GPU), output


def placed_on(worker: OneCluster) -> str:
    """The node that Kueue has given to the only job of the queue. Raises AssertionError."""
    for result in worker.items(f"{KUEUE}/namespaces/team/workloads"):
        if result["spec"]["queueName"] == TEAM and condition(result, "Admitted") == "True":
            [assigned] = result["status"]["admission"]["podSetAssignments"]
            values = assigned["topologyAssignment"]["slices"][0]["valuesPerLevel"][0]
            return str(values.get("universal") or values["individual"]["roots"][0])
    states = [
        results.get("status") for results in (*worker.items(f"{KUEUE}/namespaces/team/workloads"), *worker.items(NODES))
    ]
    raise AssertionError(f"no job of {TEAM} is admitted: {states}")


def test_a_broken_node_is_replaced_and_taken_off_what_slack_lends(lab: ControllerLab) -> None:
    worker = lab.workers[EU]
    for replica in lab.replicas:
        replica.stop()
    controller = lab.start_controller("capacity")
    for name in ("one", "two"):
        worker.create(NODES, node(name))
    wait_until(lambda: lends(worker) == ("2", False) and lends(lab.manager) == ("4", False))
    body = job("on-one-host", 2, queue=TEAM, seconds=3600)
    body["spec"]["template"]["metadata"]["annotations"] |= HOSTS
    worker.create(JOBS, body)
    first = wait_until(lambda: placed_on(worker))
    broken = {"status": status(ready=False)}
    worker.request("PATCH", f"{NODES}/{first}/status", broken, "application/strategic-merge-patch+json")
    wait_until(lambda: lends(worker) == ("0", True) and lends(lab.manager) == ("2", True))
    wait_until(lambda: placed_on(worker) != first)
    worker.delete(f"{NODES}/{first}")
    wait_until(lambda: lends(worker) == ("2", False) and lends(lab.manager) == ("4", False))
    worker.delete(f"{JOBS}/on-one-host")
    for name in {"one", "two"} - {first}:
        worker.delete(f"{NODES}/{name}")
    # The next file's replicas are to lead.
    controller.stop()
