"""Every kind of job in a cluster of tests without its operator: it is served, and its fields are not looked at."""

from __future__ import annotations

from kueue_fleet.kueue_api.job_kinds import KINDS
from one_cluster import Json, OneCluster, Refused, wait_until

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_RUNTIMES = tuple(
    ("trainer.kubeflow.org", f"{kind.lower()}s", kind, "v1alpha1")
    for kind in ("TrainingRuntime", "ClusterTrainingRuntime")
)


def place_of(framework: str, namespace: str) -> str:
    """Where jobs of the framework are created."""
    kind = KINDS[framework]
    root = f"/apis/{kind.group}" if kind.group else "/api"
    return f"{root}/{kind.version}/namespaces/{namespace}/{kind.plural}"


def ensure_job_kinds(cluster: OneCluster) -> None:
    """The definitions of all kinds, those of operators that are installed left as they are."""
    kinds = [(kind.group, kind.plural, kind.kind, kind.version) for kind in KINDS.values() if "." in kind.group]
    # Kueue begins with TrainJobs once they are served, and needs the runtimes then.
    for group, plural, kind, version in (*_RUNTIMES, *kinds):
        cluster.ensure(DEFINITIONS, _definition(group, plural, kind, version))
    wait_until(lambda: all(_is_served(cluster, framework) for framework in KINDS))


def _is_served(cluster: OneCluster, framework: str) -> bool:
    try:
        return cluster.find(place_of(framework, "default")) is not None
    except Refused as error:
        if "429" not in str(error):
            raise
        return False


def _definition(group: str, plural: str, kind: str, version: str) -> Json:
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    served = {"name": version, "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{plural}.{group}",
            "annotations": {"api-approved.kubernetes.io": "unapproved, as its operator has it"},
        },
        "spec": {
            "group": group,
            "names": {"kind": kind, "plural": plural, "singular": kind.lower()},
            "scope": "Namespaced",
            "versions": [served],
        },
    }
