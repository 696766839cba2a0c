"""The simulated DWS on a real control plane, asked by hand and by Kueue."""

from __future__ import annotations

from typing import Any

import pytest

from kueue_admission.kernel.names import SINGLE_POD_SET_REFUSAL
from one_cluster import (
    JOBS,
    KUEUE,
    REQUESTS,
    OneCluster,
    Refused,
    ask,
    condition,
    details,
    end_of,
    job,
    own_taints,
    pod_template,
    pods_of,
    reason,
    wait_until,
)

JOBSETS = "/apis/jobset.x-k8s.io/v1alpha2/namespaces/default/jobsets"
NODES = "/api/v1/nodes?labelSelector=autoscaling.gke.io/provisioning-request"


def nodes_of(cluster: OneCluster, resize_request: str) -> list[dict[str, Any]]:
    return cluster.items(f"{NODES}%3D{resize_request}")


def test_capacity_comes_at_once_and_goes_with_the_request(bare_cluster: OneCluster) -> None:
    ask(bare_cluster, "by-hand", 3)
    assert wait_until(lambda: reason(bare_cluster, "by-hand", "Accepted")) == "SuccessfullyQueued"
    assert wait_until(lambda: reason(bare_cluster, "by-hand", "Provisioned")) == "Provisioned"
    resize_request = details(bare_cluster, "by-hand")["ResizeRequestName"]
    nodes = nodes_of(bare_cluster, resize_request)  # settled: Provisioned is written after them
    assert len(nodes) == 3
    assert all(condition(node, "Ready") == "True" for node in nodes)
    taints = {taint["key"] for taint in own_taints(nodes[0])}
    assert taints == {"nvidia.com/gpu", "cloud.google.com/gke-queued"}
    bare_cluster.delete(f"{REQUESTS}/by-hand")
    wait_until(lambda: not nodes_of(bare_cluster, resize_request))


def test_a_request_waits_until_others_give_their_capacity_back(bare_cluster: OneCluster) -> None:
    ask(bare_cluster, "first", 3)
    wait_until(lambda: reason(bare_cluster, "first", "Provisioned"))
    ask(bare_cluster, "second", 2)
    waiting = wait_until(lambda: reason(bare_cluster, "second", "Provisioned", "False"))
    assert waiting == "ResourcePoolExhausted"
    resize_request = details(bare_cluster, "second")["ResizeRequestName"]
    assert nodes_of(bare_cluster, resize_request) == []  # settled: none is free
    bare_cluster.delete(f"{REQUESTS}/first")
    wait_until(lambda: reason(bare_cluster, "second", "Provisioned"))
    bare_cluster.delete(f"{REQUESTS}/second")
    wait_until(lambda: not bare_cluster.items(NODES))


def test_what_cannot_be_served_fails_with_the_reason(bare_cluster: OneCluster) -> None:
    ask(bare_cluster, "too-long", 1, maxRunDurationSeconds="604801")
    assert wait_until(lambda: reason(bare_cluster, "too-long", "Failed")) == "InvalidArgument"
    ask(bare_cluster, "no-stock", 1, accelerator="nvidia-b200")
    assert wait_until(lambda: reason(bare_cluster, "no-stock", "Provisioned", "False")) == "ResourcePoolExhausted"
    for name in ("too-long", "no-stock"):
        bare_cluster.delete(f"{REQUESTS}/{name}")


def test_a_request_of_several_pod_sets_is_refused_at_once(bare_cluster: OneCluster) -> None:
    pod_sets = [{"podTemplateRef": {"name": name}, "count": 1} for name in ("head", "workers")]
    item = {
        "apiVersion": "autoscaling.x-k8s.io/v1",
        "kind": "ProvisioningRequest",
        "metadata": {"name": "roles"},
        "spec": {"provisioningClassName": "queued-provisioning.gke.io", "podSets": pod_sets},
    }
    with pytest.raises(Refused, match="supports only single PodSet per request"):
        bare_cluster.create(REQUESTS, item)


def test_other_classes_are_left_alone(bare_cluster: OneCluster) -> None:
    item = {
        "apiVersion": "autoscaling.x-k8s.io/v1",
        "kind": "ProvisioningRequest",
        "metadata": {"name": "other"},
        "spec": {
            "provisioningClassName": "check-capacity.autoscaling.x-k8s.io",
            "podSets": [{"podTemplateRef": {"name": "x"}, "count": 1}],
        },
    }
    bare_cluster.create(REQUESTS, item)
    ask(bare_cluster, "after-other", 1)
    wait_until(lambda: reason(bare_cluster, "after-other", "Provisioned"))
    assert "status" not in bare_cluster.get(f"{REQUESTS}/other")  # settled: requests are served in order
    for name in ("other", "after-other"):
        bare_cluster.delete(f"{REQUESTS}/{name}")


def test_kueue_waits_for_dws_and_the_pods_run_on_its_nodes(kueue_cluster: OneCluster) -> None:
    template = pod_template(annotations={"kueue-fleet.dev/run-seconds": "2"})
    kueue_cluster.create(JOBS, job("queued", "queued", template, pods=2))
    pods = wait_until(lambda: [pod for pod in pods_of(kueue_cluster, "queued") if pod["spec"].get("nodeName")])
    node = kueue_cluster.get(f"/api/v1/nodes/{pods[0]['spec']['nodeName']}")  # settled: the pod is bound to it
    resize_request = node["metadata"]["labels"]["autoscaling.gke.io/provisioning-request"]
    assert pods[0]["spec"]["nodeSelector"]["autoscaling.gke.io/provisioning-request"] == resize_request
    wait_until(lambda: len(nodes_of(kueue_cluster, resize_request)) == 2)
    assert end_of(kueue_cluster, "queued") == "Complete"
    wait_until(lambda: not nodes_of(kueue_cluster, resize_request))


def role(name: str, cpu: str) -> dict[str, Any]:
    template = pod_template(annotations={"kueue-fleet.dev/run-seconds": "1"})
    template["spec"]["containers"][0]["resources"]["requests"]["cpu"] = cpu
    job_spec = {"parallelism": 1, "completions": 1, "backoffLimit": 0, "template": template}
    return {"name": name, "replicas": 1, "template": {"spec": job_spec}}


def test_a_job_of_several_roles_keeps_its_quota_until_they_are_merged(kueue_cluster: OneCluster) -> None:
    def submit(name: str, *cpu: str) -> None:
        roles = [role(f"role-{number}", amount) for number, amount in enumerate(cpu)]
        metadata = {"name": name, "namespace": "default", "labels": {"kueue.x-k8s.io/queue-name": "queued"}}
        body = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": metadata}
        kueue_cluster.create(JOBSETS, {**body, "spec": {"suspend": True, "replicatedJobs": roles}})

    def check_of(name: str) -> dict[str, Any] | None:
        for one in kueue_cluster.items(f"{KUEUE}/namespaces/default/workloads"):
            checks = one.get("status", {}).get("admissionChecks") or ()
            if one["metadata"]["name"].startswith(f"jobset-{name}-") and condition(one, "QuotaReserved") == "True":
                return next((check for check in checks if check["message"]), None)
        return None

    submit("apart", "1", "2")
    refused = wait_until(lambda: check_of("apart"))
    assert refused["state"] == "Pending"
    assert refused["message"].startswith('Error creating ProvisioningRequest "jobset-apart-')
    assert SINGLE_POD_SET_REFUSAL in refused["message"]
    kueue_cluster.delete(f"{JOBSETS}/apart")

    config = f"{KUEUE}/provisioningrequestconfigs/dws"
    for policy in ("IdenticalWorkloadSchedulingRequirements", None):
        body = {"spec": {"podSetMergePolicy": policy}}
        kueue_cluster.request("PATCH", config, body, "application/merge-patch+json")
        if policy:
            submit("merged", "1", "1")
            wait_until(lambda: condition(kueue_cluster.get(f"{JOBSETS}/merged"), "Completed") == "True")


def test_the_end_of_the_run_duration_takes_the_machines_away(kueue_cluster: OneCluster) -> None:
    template = pod_template(annotations={"kueue-fleet.dev/run-seconds": "3600"})
    annotations = {"provreq.kueue.x-k8s.io/maxRunDurationSeconds": "4"}
    kueue_cluster.create(JOBS, job("overdue", "queued", template, annotations=annotations))

    def ended() -> dict[str, Any] | None:
        for pod in pods_of(kueue_cluster, "overdue"):
            if condition(pod, "DisruptionTarget") == "True":
                return pod
        return None

    pod = wait_until(ended)
    assert (pod["status"]["phase"], pod["status"]["reason"]) == ("Failed", "Terminated")

    def deactivated() -> bool:
        workloads = kueue_cluster.items(f"{KUEUE}/namespaces/default/workloads")
        result = [one for one in workloads if one["metadata"]["name"].startswith("job-overdue-")]
        return any(condition(one, "Finished") == "True" or one["spec"].get("active") is False for one in result)

    wait_until(deactivated)
    wait_until(lambda: not kueue_cluster.items(NODES))


def test_a_check_that_fails_without_quota_stays_failed_until_its_workload_is_deleted(kueue_cluster: OneCluster) -> None:
    """kueue#5129; `explain` says so."""
    queue = f"{KUEUE}/clusterqueues/queued"

    def stop(policy: str) -> None:
        kueue_cluster.request("PATCH", queue, {"spec": {"stopPolicy": policy}}, "application/merge-patch+json")

    def workload() -> dict[str, Any] | None:
        result = kueue_cluster.items(f"{KUEUE}/namespaces/default/workloads")
        return next((one for one in result if one["metadata"]["name"].startswith("job-failed-check-")), None)

    def checks() -> list[dict[str, Any]]:
        return list(((workload() or {}).get("status") or {}).get("admissionChecks") or ())

    stop("Hold")
    template = pod_template(annotations={"kueue-fleet.dev/run-seconds": "1"})
    kueue_cluster.create(JOBS, job("failed-check", "queued", template))
    failed = [{**each, "state": "Retry", "message": "by hand"} for each in wait_until(checks)]
    first = wait_until(workload)["metadata"]
    path = f"{KUEUE}/namespaces/default/workloads/{first['name']}"
    body = {"status": {"admissionChecks": failed}}
    kueue_cluster.request("PATCH", f"{path}/status", body, "application/merge-patch+json")
    stop("None")

    def says() -> bool:
        conditions = kueue_cluster.get(path)["status"].get("conditions") or ()
        return any("has failed admission checks" in item["message"] for item in conditions)

    wait_until(says)
    assert [entry["state"] for entry in checks()] == ["Retry"]  # settled: only an eviction resets it
    kueue_cluster.delete(path)
    assert end_of(kueue_cluster, "failed-check") == "Complete"
    kueue_cluster.delete(f"{JOBS}/failed-check")


def test_the_request_cannot_be_changed(bare_cluster: OneCluster) -> None:
    ask(bare_cluster, "fixed", 1)
    body = {"spec": {"parameters": {"maxRunDurationSeconds": "5"}}}
    with pytest.raises(Refused, match="Value is immutable"):
        bare_cluster.request("PATCH", f"{REQUESTS}/fixed", body, "application/merge-patch+json")
    bare_cluster.delete(f"{REQUESTS}/fixed")
