"""Jobs that the API server or Kueue's webhook refuses, and pods that a Pod Security Standard does."""

from __future__ import annotations

from typing import Any

import pytest
from tests.fleet_file.builders import fleet_data

from kueue_admission.simulate.documents import Document
from kueue_fleet.fleet_file import parse_fleet
from kueue_fleet.simulation.fleet import check_manifests

GPU = "nvidia.com/gpu"
Json = dict[str, Any]


def found(standard: str = "baseline", **given: Any) -> str:
    """What is wrong with a job of a team with this standard; what is given is of its pods."""
    data = fleet_data()
    data["teams"][0]["podSecurity"] = standard
    container, annotations = (given.pop(name, {}) for name in ("container", "annotations"))
    resources = {"requests": {"cpu": 1, GPU: 1}, "limits": {GPU: 1}}
    containers = [{"name": "main", "resources": resources, **container}]
    labels = {"kueue.x-k8s.io/queue-name": "main"}
    metadata = {"name": "j", "namespace": "team-vision", "labels": labels, "annotations": annotations}
    selector = {"cloud.google.com/gke-accelerator": "nvidia-l4"}
    pod = {"restartPolicy": "Never", "containers": containers, "nodeSelector": selector, **given}
    template = {"spec": pod}
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": {"template": template}}
    return "\n".join(map(str, check_manifests(parse_fleet(data), [Document("j.yaml:1", job)]).problems))


REFUSED: list[tuple[Json, str]] = [
    ({"hostNetwork": True}, "baseline of its team by hostNetwork, hostPID or hostIPC of its pods"),
    ({"volumes": [{"name": "dev", "hostPath": {"path": "/dev"}}]}, "by volumes of its pods"),
    ({"container": {"securityContext": {"privileged": True}}}, "by securityContext.privileged of its containers"),
    ({"container": {"securityContext": {"capabilities": {"add": ["IPC_LOCK"]}}}}, "capabilities.add of its containers"),
    ({"container": {"ports": [{"containerPort": 80, "hostPort": 80}]}}, "by ports of its containers"),
    ({"securityContext": {"seccompProfile": {"type": "Unconfined"}}}, "by securityContext.seccompProfile of its pods"),
    ({"securityContext": {"sysctls": [{"name": "net.core.somaxconn", "value": "1"}]}}, "by securityContext.sysctls"),
    ({"restartPolicy": "Always"}, "has restartPolicy Always, and Kubernetes refuses the Job; write Never or OnFailure"),
    ({"container": {"resources": {"requests": {GPU: 1}, "limits": {GPU: 2}}}}, "asks for 1 nvidia.com/gpu in "),
    ({"container": {"resources": {"requests": {GPU: 1}}}}, "with a limit of nothing, and Kubernetes refuses the pod"),
    ({"annotations": {"kueue.x-k8s.io/job-min-parallelism": "3"}}, "job-min-parallelism is 3"),
]  # fmt: skip


@pytest.mark.parametrize(("job", "said"), REFUSED, ids=[said for _, said in REFUSED])
def test_what_is_refused(job: Json, said: str) -> None:
    assert said in found(**job)


SAFE: Json = {
    "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
    "container": {"securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}},
}


def test_what_is_taken() -> None:
    assert found() == ""
    assert found("restricted", **SAFE) == ""
    assert found("privileged", hostNetwork=True) == ""


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"securityContext": {}}, "securityContext.runAsNonRoot of its pods"),
        ({"securityContext": {**SAFE["securityContext"], "runAsUser": 0}}, "securityContext.runAsUser of its pods"),
        ({"container": {}}, "securityContext.allowPrivilegeEscalation of its containers"),
        ({"volumes": [{"name": "nfs", "nfs": {"server": "a", "path": "/"}}]}, "volumes of its pods"),
    ],
)
def test_what_restricted_refuses_too(change: Json, said: str) -> None:
    assert said in found("restricted", **{**SAFE, **change})
