"""Clusters of a fleet that are not of GKE, in a rehearsal: control planes like the others, with nodes but no pools."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kubernetes.client import ApiClient

from kueue_admission.kernel.names import HOSTNAME_LABEL
from kueue_fleet.fleet_file import FleetSpec
from kueue_fleet.fleet_file.model.per_cluster import queue_on
from kueue_fleet.kube.answers import ApiError
from kueue_fleet.kube.requests import request
from kueue_rehearsal.cloud.node_templates import SIMULATED
from kueue_rehearsal.paths import RehearsalError

PLACE_UNKNOWN = "elsewhere"
"""The location of a cluster whose file names none."""
_CONFLICT = 409


def connections(clusters: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, str]]:
    """How a program reaches them instead of as its fleet says; `clusters` are those that the supervisor has."""
    return {name: {"context": name, "server": f"https://{cluster['endpoint']}"} for name, cluster in clusters.items()}


def make_nodes(client: ApiClient, fleet: FleetSpec, cluster: str) -> None:
    """Make the nodes of a cluster that the file names, else one for each flavor, as large as its quotas.

    Raises:
        RehearsalError: the API server refused one.
    """
    for node in _nodes(fleet, cluster):
        try:
            request(client, "POST", "/api/v1/nodes", node)
        except ApiError as error:
            if error.status != _CONFLICT:
                name = node["metadata"]["name"]
                raise RehearsalError(f"{cluster}: node {name} cannot be made: {error.message or error}") from None


def _nodes(fleet: FleetSpec, cluster: str) -> Iterator[dict[str, Any]]:
    for kind in fleet.cluster(cluster).nodes:
        amounts = {"pods": "110", **{name: value.plain for name, value in kind.allocatable.items()}}
        taints = [taint.wire() for taint in kind.taints]
        for number in range(kind.count):
            yield _node(f"{cluster}-{kind.name}-{number}", kind.labels, taints, amounts)
    if fleet.cluster(cluster).nodes:
        return
    for flavor in fleet.flavors:
        quotas = [
            quota
            for queue in fleet.queues_on(cluster)
            for group in queue_on(fleet, queue, cluster).resource_groups
            for item in group.flavors
            if item.name == flavor.name
            for quota in item.resources
        ]
        if quotas and cluster in fleet.clusters_of(flavor):
            amounts = {"cpu": "64", "memory": "256Gi", "pods": "110"}
            amounts |= {quota.name: quota.nominal_quota.plain for quota in quotas}
            taints = [taint.wire() for taint in flavor.node_taints]
            yield _node(f"{cluster}-{flavor.name}", flavor.node_labels, taints, amounts)


def _node(name: str, labels: Mapping[str, str], taints: list[Any], amounts: Mapping[str, str]) -> dict[str, Any]:
    whole = {"ephemeral-storage": "1Ti", **amounts}
    host = {HOSTNAME_LABEL: name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {**host, **labels, SIMULATED: "true"}},
        "spec": {"taints": taints},
        "status": {"capacity": whole, "allocatable": whole},
    }
