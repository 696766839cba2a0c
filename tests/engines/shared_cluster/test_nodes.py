"""Simulated nodes on a real control plane: kwok, and the stand-in for node auto-provisioning."""

from __future__ import annotations

from typing import Any

from one_cluster import JOBS, PODS, OneCluster, condition, end_of, plain_job, pod_template, pods_of, wait_until

NODES = "/api/v1/nodes"


def l4(gpus: int = 1, seconds: str = "1", exit_code: str = "0") -> dict[str, Any]:
    return pod_template(
        gpus,
        {"kueue-fleet.dev/run-seconds": seconds, "kueue-fleet.dev/exit-code": exit_code},
        nodeSelector={"cloud.google.com/gke-accelerator": "nvidia-l4"},
    )


def simulated(cluster: OneCluster) -> dict[str, dict[str, Any]]:
    nodes = cluster.items(f"{NODES}?labelSelector=kueue-fleet.dev/simulated%3Dtrue")
    return {node["metadata"]["name"]: node for node in nodes}


def test_a_gpu_pod_gets_a_node_with_gkes_labels_and_the_node_goes_when_it_is_empty(bare_cluster: OneCluster) -> None:
    bare_cluster.create(JOBS, plain_job("one-gpu", l4(seconds="3")))
    (pod,) = wait_until(lambda: [one for one in pods_of(bare_cluster, "one-gpu") if one["spec"].get("nodeName")])
    name = pod["spec"]["nodeName"]
    node = bare_cluster.get(f"{NODES}/{name}")  # settled: the pod is bound to it
    assert node["metadata"]["labels"]["cloud.google.com/gke-accelerator"] == "nvidia-l4"
    assert node["metadata"]["labels"]["topology.kubernetes.io/region"] == "europe-west4"
    assert node["status"]["allocatable"]["nvidia.com/gpu"] == "1"
    tolerated = [toleration["key"] for toleration in pod["spec"]["tolerations"]]
    assert "nvidia.com/gpu" in tolerated
    assert end_of(bare_cluster, "one-gpu") == "Complete"
    wait_until(lambda: name not in simulated(bare_cluster))


def test_a_pod_runs_as_long_as_its_annotation_says(bare_cluster: OneCluster) -> None:
    bare_cluster.create(JOBS, plain_job("three-seconds", l4(seconds="3")))
    assert end_of(bare_cluster, "three-seconds") == "Complete"
    (pod,) = pods_of(bare_cluster, "three-seconds")
    (container,) = pod["status"]["containerStatuses"]
    end = container["state"]["terminated"]
    assert end["exitCode"] == 0
    # The API's times are whole seconds, and a busy machine notices the end much later.
    seconds = int(end["finishedAt"][17:19]) - int(end["startedAt"][17:19])
    assert 3 <= seconds % 60 < 30


def test_a_pod_ends_with_the_exit_code_it_is_asked_for(bare_cluster: OneCluster) -> None:
    bare_cluster.create(JOBS, plain_job("broken", l4(exit_code="42")))
    assert end_of(bare_cluster, "broken") == "Failed"
    (pod,) = pods_of(bare_cluster, "broken")
    assert pod["status"]["phase"] == "Failed"
    assert pod["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] == 42


def test_a_pod_that_is_no_jobs_runs_until_it_is_deleted(bare_cluster: OneCluster) -> None:
    container = {"name": "main", "image": "serve:1", "resources": {"requests": {"cpu": "100m"}}}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "server"}, "spec": {"containers": [container]}}
    bare_cluster.create(PODS, pod)
    wait_until(lambda: condition(bare_cluster.get(f"{PODS}/server"), "Ready") == "True")
    node = bare_cluster.get(f"{PODS}/server")["spec"]["nodeName"]  # settled: it is ready
    assert node.startswith("gk3-worker-nap-e2-standard-2-")
    bare_cluster.delete(f"{PODS}/server")
    wait_until(lambda: bare_cluster.find(f"{PODS}/server") is None)


def test_a_pod_that_no_machine_holds_is_told_so(bare_cluster: OneCluster) -> None:
    bare_cluster.create(JOBS, plain_job("too-big", l4(gpus=99)))

    def told() -> list[str]:
        events = bare_cluster.items("/api/v1/namespaces/default/events?fieldSelector=reason%3DNotTriggerScaleUp")
        return [one["message"] for one in events if one["involvedObject"]["name"].startswith("too-big")]

    assert wait_until(lambda: told() or None) == ["no machine type has enough nvidia.com/gpu"]
    bare_cluster.delete(f"{JOBS}/too-big")


def test_kwok_is_started_again(bare_cluster: OneCluster) -> None:
    bare_cluster.supervisor.client.kill(bare_cluster.name, "kwok")
    bare_cluster.create(JOBS, plain_job("after-kwok", l4()))
    assert end_of(bare_cluster, "after-kwok") == "Complete"
