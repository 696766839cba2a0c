"""Every kind of job in a cluster of tests without its operator: it is served, and its fields are not looked at."""

from __future__ import annotations

from kueue_admission.api.job_kinds import KINDS
from kueue_rehearsal.cloud.job_crds import job_definitions
from one_cluster import OneCluster, Refused, wait_until

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def place_of(framework: str, namespace: str) -> str:
    """Where jobs of the framework are created."""
    kind = KINDS[framework]
    root = f"/apis/{kind.group}" if kind.group else "/api"
    return f"{root}/{kind.version}/namespaces/{namespace}/{kind.plural}"


def ensure_job_kinds(cluster: OneCluster) -> None:
    """The definitions of all kinds, those of operators that are installed left as they are."""
    for definition in job_definitions(KINDS):
        cluster.ensure(DEFINITIONS, definition)
    wait_until(lambda: all(_is_served(cluster, framework) for framework in KINDS))


def _is_served(cluster: OneCluster, framework: str) -> bool:
    try:
        return cluster.find(place_of(framework, "default")) is not None
    except Refused as error:
        if "429" not in str(error):
            raise
        return False
