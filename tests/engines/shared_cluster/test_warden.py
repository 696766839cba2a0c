"""What an Autopilot cluster of a rehearsal refuses of workloads, as GKE's Warden does, and what it takes."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from kueue_rehearsal.cloud.warden import install_warden
from kueue_rehearsal.control_planes.kube_api import ControlPlaneApi
from one_cluster import JOBS, PODS, Json, OneCluster, Refused, job, plain_job, pod_template

L4 = {"cloud.google.com/gke-accelerator": "nvidia-l4"}
TOLERATED = [{"key": "nvidia.com/gpu", "operator": "Exists"}]
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
BY_AFFINITY = {
    "nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [
                {"matchExpressions": [{"key": next(iter(L4)), "operator": "In", "values": ["nvidia-l4"]}]}
            ]
        }
    }
}


@pytest.fixture(scope="module")
def autopilot(standard: OneCluster) -> OneCluster:
    """A cluster with the Warden, and without anything else of Autopilot."""

    async def install() -> None:
        token = standard.token
        async with ControlPlaneApi(
            standard.server, ca_file=standard.ca_file, token=token, field_manager="tests"
        ) as api:
            await install_warden(api)

    assert created(standard, JOBS, plain_job("taken", pod_template())) == ""
    asyncio.run(install())
    return standard


def created(cluster: OneCluster, path: str, body: Json) -> str:
    """What the API server says of it, without making it; empty: it takes it."""
    try:
        cluster.request("POST", f"{path}?dryRun=All", body)
    except Refused as refused:
        return str(refused)
    return ""


def deployment(template: Json) -> Json:
    labels = {"app": "a"}
    spec = template["spec"] | {"restartPolicy": "Always"}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "a"},
        "spec": {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": spec}},
    }


@pytest.mark.parametrize(
    ("gpus", "spec", "why"),
    [
        (1, {}, "When requesting 'nvidia.com/gpu' resources, you must specify either node selector"),
        (0, {"tolerations": TOLERATED}, "The toleration with key 'nvidia.com/gpu' and operator 'Exists' cannot be"),
        (
            1,
            {"nodeSelector": L4 | {"cloud.google.com/gke-nodepool": "a"}},
            "Key 'cloud.google.com/gke-nodepool' is not",
        ),
    ],
    ids=["no kind of GPU", "a toleration alone", "a node pool"],
)
def test_autopilot_refuses_a_suspended_job(autopilot: OneCluster, gpus: int, spec: dict[str, Any], why: str) -> None:
    output = created(autopilot, JOBS, job("refused", "none", pod_template(gpus, **spec)))
    assert "GKE Warden rejected the request because it violates one or more constraints." in output
    assert why in output


def test_autopilot_refuses_a_deployment_too(autopilot: OneCluster) -> None:
    output = created(autopilot, DEPLOYMENTS, deployment(pod_template(0, tolerations=TOLERATED)))
    assert "[denied by autogke-gpu-limitation]" in output


def test_autopilot_refuses_a_pod_too(autopilot: OneCluster) -> None:
    pod = {"apiVersion": "v1", "kind": "Pod", **pod_template()}
    pod["metadata"] = {"name": "refused"}
    assert "[denied by autogke-gpu-limitation]" in created(autopilot, PODS, pod)


@pytest.mark.parametrize(
    ("gpus", "spec"),
    [
        (1, {"tolerations": TOLERATED, "nodeSelector": L4}),
        (1, {"affinity": BY_AFFINITY}),
        (1, {"nodeSelector": {"cloud.google.com/compute-class": "mine"}}),
        (0, {}),
    ],
    ids=["a kind of GPU", "by affinity", "a compute class", "no GPU"],
)
def test_autopilot_takes(autopilot: OneCluster, gpus: int, spec: dict[str, Any]) -> None:
    assert created(autopilot, JOBS, plain_job("taken", pod_template(gpus, **spec))) == ""
