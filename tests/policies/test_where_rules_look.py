"""Where rules look: pods in objects of all kinds, types of other providers, settings."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.policies.declared import Declared, cluster, flavor, kube, queue, release
from tests.policies.judged import says, stack_says
from tests.policies.parts import HOST, LATEST, RBAC, TOO_LATE, binding, called, context, gateway, secret

POD = {"serviceAccountName": "job", "containers": [{"name": "main", "image": "job:1"}]}
PRIVILEGED = {"containers": [{"name": "main", "image": "job:1", "securityContext": {"privileged": True}}]}
WITH_PODS: list[tuple[str, str]] = [
    ("core/v1:Pod", "spec"),
    ("core/v1:PodTemplate", "template.spec"),
    ("core/v1:ReplicationController", "spec.template.spec"),
    ("apps/v1:DeploymentPatch", "spec.template.spec"),
    ("apps/v1:DaemonSetPatch", "spec.template.spec"),
    ("batch/v1:CronJob", "spec.jobTemplate.spec.template.spec"),
    ("jobset.x-k8s.io/v1:JobSet", "spec.replicatedJobs[].template.spec.template.spec"),
    ("ray.io/v1:RayJob", "spec.rayClusterSpec.workerGroupSpecs[].template.spec"),
    ("ray.io/v1:RayCluster", "spec.headGroupSpec.template.spec"),
    ("ray.io/v1:RayService", "spec.rayClusterConfig.headGroupSpec.template.spec"),
    ("kubeflow.org/v1:PyTorchJob", "spec.pytorchReplicaSpecs.Master.template.spec"),
    ("kubeflow.org/v2beta1:MPIJob", "spec.mpiReplicaSpecs.Launcher.template.spec"),
    (
        "trainer.kubeflow.org/v1alpha1:TrainingRuntime",
        "spec.template.spec.replicatedJobs[].template.spec.template.spec",
    ),
    ("leaderworkerset.x-k8s.io/v1:LeaderWorkerSet", "spec.leaderWorkerTemplate.workerTemplate.spec"),
    ("workload.codeflare.dev/v1beta2:AppWrapper", "spec.components[].template.spec"),
]


def holding(kind: str, path: str, held: Any) -> Declared:
    """An object with `held` at a path; `[]` is a list of one."""
    for key in reversed(path.split(".")):
        held = {key.removesuffix("[]"): [held] if key.endswith("[]") else held}
    return kube(kind, "x", held, by="p")


@pytest.mark.parametrize(("kind", "path"), WITH_PODS, ids=[kind for kind, _ in WITH_PODS])
def test_pods_are_judged_wherever_they_are_described(kind: str, path: str) -> None:
    host = {"volumes": [HOST], "containers": [{"volumeMounts": [{"name": "host", "mountPath": "/host"}]}]}
    for rule, spec in (
        ("kube-not-privileged", PRIVILEGED),
        ("kube-no-host-path", host),
        ("kube-no-host-namespaces", {"hostIPC": True}),
        ("secret-not-in-environment", {"containers": [{"env": [{"name": "HF_TOKEN", "value": "a-word"}]}]}),
    ):
        [result] = says(rule, holding(kind, path, POD | spec))
        assert result.startswith(path.replace("[]", "[0]"))
        assert says(rule, holding(kind, path, POD)) == []
    assert says("kube-workload-service-account", holding(kind, path, POD)) == []


@pytest.mark.parametrize(
    ("rule", "declared"),
    [
        ("kube-not-privileged", holding("ray.io/v1:RayCluster", "spec.headGroupSpec.template.spec", PRIVILEGED)),
        ("kube-no-public-ingress", gateway("gke-l7-gxlb")),
        ("kube-no-cluster-admin", binding("a", to="cluster-admin")),
        ("kube-no-token-secrets", secret()),
        ("kube-own-type", called(RBAC, "ClusterRoleBinding", "ray.io/v1:RayCluster")),
    ],
)
def test_types_of_extensions_of_the_provider_are_judged_too(rule: str, declared: Declared) -> None:
    extended = replace(declared, type=declared.type.replace("kubernetes:", "our-crds:"))
    assert says(rule, extended) == says(rule, declared) != []


def test_objects_of_extensions_belong_to_their_cluster() -> None:
    lost, wrong = queue("q", {"h100": 1}, by="p"), flavor("l4", {}, by="p")
    kueue = [replace(one, type=one.type.replace("kubernetes:", "kueue:")) for one in (lost, wrong)]
    assert stack_says("kueue-queue-references", *kueue) == stack_says("kueue-queue-references", lost, wrong) != []


def test_what_only_has_the_names_of_a_pod_is_none() -> None:
    schema = {"properties": {"containers": {"type": "array", "items": {}}, "hostPID": {"type": "boolean"}}}
    definition = holding("apiextensions.k8s.io/v1:CustomResourceDefinition", "spec.versions[].schema", schema)
    chart = release("x", {"values": {"containers": [{"name": "main"}], "hostPID": True}}, by="p")
    for rule in ("kube-workload-service-account", "kube-no-host-namespaces"):
        assert says(rule, definition) == []
        assert says(rule, chart) == []


def test_settings_allow_more() -> None:
    rdma = context(capabilities={"add": ["IPC_LOCK"]})
    assert says("kube-no-added-capabilities", rdma) != []
    assert says("kube-no-added-capabilities", rdma, capabilities=["IPC_LOCK"]) == []
    assert says("kube-no-token-secrets", secret(), accounts=["job"]) == []


DNS = "controlPlaneEndpointsConfig.dnsEndpointConfig"


@pytest.mark.parametrize(
    ("endpoint", "secrets", "fine"),
    [
        ({"allowExternalTraffic": True}, [], True),
        ({"allowExternalTraffic": True, "enableK8sTokensViaDns": True}, [], False),
        ({"allowExternalTraffic": True, "enableK8sTokensViaDns": True}, [secret(rotate_by=LATEST)], True),
        ({"allowExternalTraffic": True, "enableK8sTokensViaDns": True}, [secret(rotate_by="never")], False),
        ({"allowExternalTraffic": True, "enableK8sTokensViaDns": True}, [secret(rotate_by=TOO_LATE)], False),
        (
            {"allowExternalTraffic": True, "enableK8sTokensViaDns": True},
            [secret("Opaque", rotate_by=LATEST)],
            False,
        ),
        ({"allowExternalTraffic": False, "enableK8sTokensViaDns": True}, [], True),
        ({"allowExternalTraffic": True, "enableK8sCertsViaDns": True}, [secret(rotate_by=LATEST)], False),
        ({"allowExternalTraffic": False, "enableK8sCertsViaDns": True}, [], True),
    ],
)
def test_only_the_worker_of_a_manager_takes_tokens_from_the_internet(
    endpoint: dict[str, Any], secrets: list[Declared], fine: bool
) -> None:
    result = stack_says("gke-dns-endpoint-credentials", *secrets, owner=cluster("c", {DNS: endpoint}))
    assert (result == []) is fine
