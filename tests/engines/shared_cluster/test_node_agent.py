"""Kueue and JobSet as the chart's own Deployments, on a real control plane."""

from __future__ import annotations

import ipaddress
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest

from one_cluster import (
    JOBS,
    KUEUE,
    PODS,
    OneCluster,
    Refused,
    condition,
    end_of,
    install_kueue,
    job,
    kueue_object,
    own_taints,
    pod_template,
    pods_of,
    queue_spec,
    wait_until,
)

SYSTEM_PODS = "/api/v1/namespaces/kueue-system/pods"
SERVICE = "/api/v1/namespaces/kueue-system/services/kueue-webhook-service"


def kueue_pod(cluster: OneCluster, but_not: str = "") -> dict[str, Any]:
    """The ready pod of Kueue."""

    def ready() -> dict[str, Any] | None:
        pods = cluster.items(SYSTEM_PODS)
        return next(
            (pod for pod in pods if pod["metadata"]["uid"] != but_not and condition(pod, "Ready") == "True"), None
        )

    return wait_until(ready)


def webhook_answers(cluster: OneCluster) -> bool:
    """Whether Kueue's own webhook refuses a queue that only it knows to be wrong."""
    spec = queue_spec("l4", 1)
    spec["resourceGroups"][0]["flavors"][0]["resources"][0]["lendingLimit"] = "1"
    with pytest.raises(Refused) as caught:
        cluster.create(f"{KUEUE}/clusterqueues", kueue_object("ClusterQueue", "wrong", spec))
    assert "must be nil when cohort is empty" in str(caught.value)
    return True


def _holds(file: Path, content: bytes) -> bool:
    return file.is_file() and file.read_bytes() == content


def pod_folder(cluster: OneCluster, pod: dict[str, Any]) -> Path:
    metadata = pod["metadata"]
    folder = f"{metadata['namespace']}_{metadata['name']}_{metadata['uid'][:8]}"
    workdir = Path(cluster.supervisor.client.get_cluster(cluster.name)["workdir"])
    return workdir / "system-0" / "pods" / folder


def test_kueue_runs_as_its_deployment_says(kueue_cluster: OneCluster) -> None:
    pod = kueue_pod(kueue_cluster)
    assert pod["spec"]["nodeName"] == "system-0"
    status = pod["status"]
    assert status["phase"] == "Running"
    assert ipaddress.ip_address(status["podIP"]) in ipaddress.ip_network("127.64.0.0/10")
    assert status["containerStatuses"][0]["ready"] is True
    deployment = "/apis/apps/v1/namespaces/kueue-system/deployments/kueue-controller-manager"
    wait_until(lambda: condition(kueue_cluster.get(deployment), "Available") == "True")
    assert webhook_answers(kueue_cluster)


def test_nothing_listens_off_loopback(kueue_cluster: OneCluster) -> None:
    kueue_pod(kueue_cluster)
    names = set()
    for row in kueue_cluster.processes():
        names.add(row["name"].split("-")[0])
        for connection in psutil.Process(row["pid"]).net_connections("inet"):
            if connection.status == psutil.CONN_LISTEN:
                assert ipaddress.ip_address(connection.laddr.ip).is_loopback, (row["name"], connection.laddr)
    assert {"pod", "kwok", "etcd"} <= names


def test_secrets_of_the_pod_are_private_and_its_rights_are_those_declared(kueue_cluster: OneCluster) -> None:
    folder = pod_folder(kueue_cluster, kueue_pod(kueue_cluster))
    assert folder.stat().st_mode & 0o777 == 0o700
    certificate = folder / "volumes" / "cert" / "tls.key"
    assert certificate.stat().st_mode & 0o777 == 0o600
    (token_file,) = (folder / "volumes").glob("kube-api-access-*/token")
    assert token_file.stat().st_mode & 0o777 == 0o600
    token = token_file.read_text()
    assert kueue_cluster.request("GET", f"{KUEUE}/clusterqueues", token=token)["kind"] == "ClusterQueueList"
    with pytest.raises(Refused, match=r'kueue-controller-manager.*cannot list resource "secrets"'):
        kueue_cluster.request("GET", "/api/v1/namespaces/kube-system/secrets", token=token)


def test_the_visibility_api_answers(kueue_cluster: OneCluster) -> None:
    path = "/apis/visibility.kueue.x-k8s.io/v1beta2/clusterqueues/on-demand/pendingworkloads"

    def pending() -> dict[str, Any] | None:
        try:
            return kueue_cluster.get(path)
        except Refused as error:
            raise AssertionError(str(error)) from None

    assert wait_until(pending)["kind"] == "PendingWorkloadsSummary"


def test_a_job_is_admitted_and_finishes_on_a_simulated_node(kueue_cluster: OneCluster) -> None:
    template = pod_template(annotations={"kueue-fleet.dev/run-seconds": "1"})
    kueue_cluster.create(JOBS, job("simple", "on-demand", template, pods=2))
    assert end_of(kueue_cluster, "simple") == "Complete"
    nodes = {pod["spec"]["nodeName"] for pod in pods_of(kueue_cluster, "simple")}
    assert all(name.startswith("gk3-worker-nap-g2-standard-4-") for name in nodes)


def test_a_job_set_is_admitted_and_finishes(kueue_cluster: OneCluster) -> None:
    template = pod_template(annotations={"kueue-fleet.dev/run-seconds": "1"})
    collection = "/apis/jobset.x-k8s.io/v1alpha2/namespaces/default/jobsets"
    kueue_cluster.create(
        collection,
        {
            "apiVersion": "jobset.x-k8s.io/v1alpha2",
            "kind": "JobSet",
            "metadata": {
                "name": "set",
                "namespace": "default",
                "labels": {"kueue.x-k8s.io/queue-name": "on-demand"},
            },
            "spec": {"replicatedJobs": [{"name": "w", "replicas": 2, "template": {"spec": {"template": template}}}]},
        },
    )
    wait_until(lambda: condition(kueue_cluster.get(f"{collection}/set"), "Completed") == "True" or None)


def test_an_upgrade_rolls_the_pod_over_and_the_webhook_follows_it(kueue_cluster: OneCluster) -> None:
    before = kueue_pod(kueue_cluster)
    install_kueue(kueue_cluster, "controllerManager.manager.logLevel=3")
    after = kueue_pod(kueue_cluster, but_not=before["metadata"]["uid"])
    wait_until(lambda: kueue_cluster.find(f"{SYSTEM_PODS}/{before['metadata']['name']}") is None or None)

    def routed() -> bool:
        spec = kueue_cluster.get(SERVICE)["spec"]
        assert spec["type"] == "ExternalName"
        # Its own address where the agent may listen on port 443, else that of the pod.
        assert ipaddress.ip_address(spec["externalName"]) in ipaddress.ip_network("127.64.0.0/10")
        return True

    wait_until(routed)
    wait_until(lambda: webhook_answers(kueue_cluster))
    # The agent removes the files once the pod is gone.
    wait_until(lambda: [path.name for path in pod_folder(kueue_cluster, before).iterdir()] == ["manager.log"])
    # The same upgrade again changes nothing: what the agent patched is not a difference to Helm.
    install_kueue(kueue_cluster, "controllerManager.manager.logLevel=3")
    assert kueue_pod(kueue_cluster)["metadata"]["uid"] == after["metadata"]["uid"]
    wait_until(routed)
    wait_until(lambda: webhook_answers(kueue_cluster))


def test_a_deleted_pod_is_replaced(kueue_cluster: OneCluster) -> None:
    before = kueue_pod(kueue_cluster)
    kueue_cluster.delete(f"{SYSTEM_PODS}/{before['metadata']['name']}")
    after = kueue_pod(kueue_cluster, but_not=before["metadata"]["uid"])
    assert after["status"]["podIP"] != before["status"]["podIP"]
    wait_until(lambda: webhook_answers(kueue_cluster))


def test_a_killed_process_is_restarted_in_its_pod(kueue_cluster: OneCluster) -> None:
    before = kueue_pod(kueue_cluster)
    [restarts] = [one["restartCount"] for one in before["status"]["containerStatuses"]]
    process = f"pod-{before['metadata']['name']}-manager"
    kueue_cluster.supervisor.client.kill(kueue_cluster.name, process)

    def restarted() -> bool:
        pod = kueue_cluster.get(f"{SYSTEM_PODS}/{before['metadata']['name']}")
        (container,) = pod["status"]["containerStatuses"]
        assert container["restartCount"] == restarts + 1
        assert container["lastState"]["terminated"]["signal"] == 9
        assert container["ready"]
        return True

    wait_until(restarted)
    wait_until(lambda: webhook_answers(kueue_cluster))


def test_a_changed_secret_reaches_the_pod_and_a_finished_pod_leaves_no_secret(kueue_cluster: OneCluster) -> None:
    pod = kueue_pod(kueue_cluster)
    file = pod_folder(kueue_cluster, pod) / "volumes" / "cert" / "extra"
    path = "/api/v1/namespaces/kueue-system/secrets/kueue-webhook-server-cert"
    for value, expected in (("b25l", b"one"), ("dHdv", b"two")):
        kueue_cluster.request("PATCH", path, {"data": {"extra": value}}, "application/merge-patch+json")
        wait_until(partial(_holds, file, expected))
    kueue_cluster.request("PATCH", path, {"data": {"extra": None}}, "application/merge-patch+json")
    wait_until(lambda: not file.exists())


def test_an_image_without_a_program_says_so(kueue_cluster: OneCluster) -> None:
    labels = {"app": "web"}
    container = {"name": "web", "image": "nginx:1.27"}
    kueue_cluster.create(
        "/apis/apps/v1/namespaces/default/deployments",
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "web"},
            "spec": {
                "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
            },
        },
    )

    def refused() -> dict[str, str] | None:
        for pod in kueue_cluster.items(f"{PODS}?labelSelector=app%3Dweb"):
            for container in pod["status"].get("containerStatuses", ()):
                if container["state"].get("waiting", {}).get("reason") == "ErrImagePull":
                    result: dict[str, str] = container["state"]["waiting"]
                    return result
        return None

    output = wait_until(refused)
    assert "no program on this machine stands in for image nginx:1.27" in output["message"]
    [row] = kueue_cluster.supervisor.client.refused_pods()
    assert {**row, "since": 0, "labels": {}} == {
        "cluster": kueue_cluster.name,
        "kind": "Deployment",
        "namespace": "default",
        "name": "web",
        "labels": {},
        "message": output["message"],
        "since": 0,
        "curable": False,
    }
    assert row["labels"]["app"] == "web"
    kueue_cluster.delete("/apis/apps/v1/namespaces/default/deployments/web")
    wait_until(lambda: not kueue_cluster.items(f"{PODS}?labelSelector=app%3Dweb"))
    assert kueue_cluster.supervisor.client.refused_pods() == []


def test_a_namespace_can_be_deleted_while_kueue_runs(kueue_cluster: OneCluster) -> None:
    # It cannot while any aggregated API, such as Kueue's visibility, does not answer.
    kueue_cluster.create("/api/v1/namespaces", {"metadata": {"name": "short"}})
    kueue_cluster.delete("/api/v1/namespaces/short")
    wait_until(lambda: kueue_cluster.find("/api/v1/namespaces/short") is None or None)


def test_the_node_stays_ready(kueue_cluster: OneCluster) -> None:
    lease_path = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/system-0"
    first = kueue_cluster.get(lease_path)["spec"]["renewTime"]
    wait_until(lambda: kueue_cluster.get(lease_path)["spec"]["renewTime"] != first)
    node = kueue_cluster.get("/api/v1/nodes/system-0")  # settled: ready since the cluster is up
    assert condition(node, "Ready") == "True"
    assert [taint["key"] for taint in own_taints(node)] == ["kueue-fleet.dev/system-node"]
