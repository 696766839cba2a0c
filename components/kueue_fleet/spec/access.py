"""What the manager may do on a worker.

In: a fleet and the name of a worker. Out: the ServiceAccount, ClusterRole, binding and token Secret there, as objects.
The Secret has no token in it: Kubernetes fills it in. Carrying the token to the manager is the job of the components.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from kueue_fleet.spec.clusters import ServiceAccountToken
from kueue_fleet.spec.fleet import FleetSpec
from kueue_fleet.spec.install import kueue_configuration
from kueue_fleet.spec.manifests import Manifest, manifest

ACCOUNT_NAME: Final = "multikueue-manager"
"""Name of the ServiceAccount, ClusterRole and binding on each worker."""
ROTATE_BY_ANNOTATION: Final = "kueue-fleet.dev/rotate-by"
"""On the token Secret: the day by which it should have been replaced."""

_SYNC: Final = ["create", "delete", "get", "list", "watch"]
_PATCHED: Final = frozenset({"jobs", "rayclusters", "rayjobs", "rayservices"})
"""Kinds whose remote copy Kueue also patches, for elastic jobs."""
_KINDS: Final = {
    "batch/job": ("batch", "jobs"),
    "jobset.x-k8s.io/jobset": ("jobset.x-k8s.io", "jobsets"),
    "kubeflow.org/mpijob": ("kubeflow.org", "mpijobs"),
    "kubeflow.org/paddlejob": ("kubeflow.org", "paddlejobs"),
    "kubeflow.org/pytorchjob": ("kubeflow.org", "pytorchjobs"),
    "kubeflow.org/tfjob": ("kubeflow.org", "tfjobs"),
    "kubeflow.org/xgboostjob": ("kubeflow.org", "xgboostjobs"),
    "kubeflow.org/jaxjob": ("kubeflow.org", "jaxjobs"),
    "ray.io/rayjob": ("ray.io", "rayjobs"),
    "ray.io/raycluster": ("ray.io", "rayclusters"),
    "ray.io/rayservice": ("ray.io", "rayservices"),
    "trainer.kubeflow.org/trainjob": ("trainer.kubeflow.org", "trainjobs"),
    "workload.codeflare.dev/appwrapper": ("workload.codeflare.dev", "appwrappers"),
    "leaderworkerset.x-k8s.io/leaderworkerset": ("leaderworkerset.x-k8s.io", "leaderworkersets"),
    "pod": ("", "pods"),
    "deployment": ("", "pods"),
    "statefulset": ("apps", "statefulsets"),
}


def supported_frameworks() -> frozenset[str]:
    """The frameworks that MultiKueue dispatches (kueue@v0.19.2 pkg/controller/jobs, MultiKueueAdapter)."""
    return frozenset(_KINDS)


def token_secret_name(fleet: FleetSpec) -> str | None:
    """Name of the token Secret on each worker, with the rotation serial; None for other kinds of credentials."""
    credentials = fleet.multi_kueue.credentials if fleet.multi_kueue else None
    return f"{ACCOUNT_NAME}-{credentials.rotation}" if isinstance(credentials, ServiceAccountToken) else None


def render_worker_access(fleet: FleetSpec, worker: str) -> list[Manifest]:
    """ServiceAccount, ClusterRole, ClusterRoleBinding and token Secret for the manager on `worker`.

    Empty where the manager has another kind of credentials. The role covers the kinds of job that the manager's Kueue
    manages, no others. Source: kueue@v0.19.2 test/util/multikueue.go (MultiKueueRulesForManager), less the verbs that
    no adapter in pkg/controller/jobs uses.
    """
    credentials = fleet.multi_kueue.credentials if fleet.multi_kueue is not None else None
    secret = token_secret_name(fleet)
    if secret is None or fleet.manager is None or not isinstance(credentials, ServiceAccountToken):
        return []
    namespace = fleet.kueue.namespace
    configuration = kueue_configuration(fleet, fleet.manager.name)
    frameworks = configuration["integrations"].get("frameworks") or ["batch/job"]
    external = [item["name"] for item in configuration.get("multiKueue", {}).get("externalFrameworks", [])]
    subject = {"kind": "ServiceAccount", "name": ACCOUNT_NAME, "namespace": namespace}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": ACCOUNT_NAME}
    token = manifest("v1", "Secret", secret, namespace, type="kubernetes.io/service-account-token")
    token["metadata"]["annotations"] = {
        "kubernetes.io/service-account.name": ACCOUNT_NAME,
        ROTATE_BY_ANNOTATION: str(credentials.rotate_by),
    }
    return [
        manifest("v1", "ServiceAccount", ACCOUNT_NAME, namespace),
        manifest("rbac.authorization.k8s.io/v1", "ClusterRole", ACCOUNT_NAME, rules=worker_rules(frameworks, external)),
        manifest("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", ACCOUNT_NAME, roleRef=role, subjects=[subject]),
        token,
    ]


def worker_rules(frameworks: Sequence[str], external: Sequence[str] = ()) -> list[dict[str, Any]]:
    """The rules of the role, for frameworks as in Kueue's Configuration and external ones as Kind.version.group."""
    rules = [
        _rule("kueue.x-k8s.io", "workloads", [*_SYNC, "patch", "update"]),
        _rule("kueue.x-k8s.io", "workloads/status", ["get", "patch", "update"]),
        _rule("kueue.x-k8s.io", "clusterqueues", ["get", "list", "watch"]),
        _rule("kueue.x-k8s.io", "localqueues", ["get", "list", "watch"]),
    ]
    kinds = [_KINDS[name] for name in frameworks if name in _KINDS]
    for name in external:
        kind, _, rest = name.partition(".")
        kinds.append((rest.partition(".")[2], plural_of(kind)))
    for group, plural in dict.fromkeys(kinds):
        rules.append(_rule(group, plural, [*_SYNC, "patch"] if plural in _PATCHED else _SYNC))
        rules.append(_rule(group, f"{plural}/status", ["get"]))
    return rules


def plural_of(kind: str) -> str:
    """The resource of a kind, guessed as Kubernetes does (apimachinery pkg/api/meta, UnsafeGuessKindToResource)."""
    lower = kind.lower()
    if lower.endswith("s"):
        return f"{lower}es"
    return f"{lower[:-1]}ies" if lower.endswith("y") else f"{lower}s"


def _rule(group: str, resource: str, verbs: list[str]) -> dict[str, Any]:
    return {"apiGroups": [group], "resources": [resource], "verbs": list(verbs)}
