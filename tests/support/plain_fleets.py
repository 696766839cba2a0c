"""Fleets with clusters that are not of GKE, as plain data and parsed."""

from __future__ import annotations

import copy
from typing import Any

from kueue_fleet.fleet_file import FleetSpec, parse_fleet

PRODUCT = "nvidia.com/gpu.product"
SERVER = "https://k8s.paris.example:6443"

_A100 = "NVIDIA-A100-SXM4-40GB"
_NODES = {
    "name": "dgx",
    "count": 2,
    "labels": {PRODUCT: _A100},
    "allocatable": {"cpu": 120, "memory": "900Gi", "nvidia.com/gpu": 8},
    "pricePerHour": 9.5,
}


def _quotas(flavor: str, gpus: int) -> dict[str, Any]:
    amounts = {"nvidia.com/gpu": gpus, "cpu": 12 * gpus, "memory": f"{100 * gpus}Gi", "ephemeral-storage": "1Ti"}
    return {"name": flavor, "resources": [{"name": name, "nominalQuota": item} for name, item in amounts.items()]}


def mixed_data(**changes: Any) -> dict[str, Any]:
    """A manager and a worker of GKE, and the worker `paris`, which is not."""
    covered = ["nvidia.com/gpu", "cpu", "memory", "ephemeral-storage"]
    groups = [{"coveredResources": covered, "flavors": [_quotas("dgx", 8), _quotas("l4", 8)]}]
    data: dict[str, Any] = {
        "name": "mixed",
        "project": "mixed-project",
        "clusters": [
            {"name": "manager", "role": "manager", "region": "europe-west4"},
            {"name": "gke", "role": "worker", "region": "us-east4"},
            {
                "name": "paris",
                "role": "worker",
                "kubernetes": {"context": "admin@paris", "server": SERVER},
                "location": "europe",
                "nodes": [_NODES],
            },
        ],
        "multiKueue": {"credentials": {"type": "ServiceAccountToken", "rotation": "2026-11", "rotateBy": "2027-02-01"}},
        "flavors": [
            {"name": "dgx", "nodeLabels": {PRODUCT: _A100}, "clusters": ["paris"]},
            {
                "name": "l4",
                "nodeLabels": {"cloud.google.com/gke-accelerator": "nvidia-l4"},
                "clusters": ["gke"],
            },
        ],
        "clusterQueues": [{"name": "gpu", "namespaceSelector": {}, "resourceGroups": groups}],
        "teams": [{"name": "team-a", "localQueues": [{"name": "gpu", "clusterQueue": "gpu"}]}],
    }
    return copy.deepcopy(data | changes)


def mixed(**changes: Any) -> FleetSpec:
    """The same, parsed and checked."""
    return parse_fleet(mixed_data(**changes))


def alone_data(**changes: Any) -> dict[str, Any]:
    """The standalone cluster `paris`, with no project, nor anything else of Google Cloud."""
    data = mixed_data()
    del data["project"], data["multiKueue"]
    paris = data["clusters"][2] | {"role": "standalone", "kubernetes": {"context": "admin@paris"}}
    dgx = {"coveredResources": ["nvidia.com/gpu", "cpu", "memory", "ephemeral-storage"], "flavors": [_quotas("dgx", 8)]}
    queue = data["clusterQueues"][0] | {"resourceGroups": [dgx]}
    return data | {"clusters": [paris], "flavors": data["flavors"][:1], "clusterQueues": [queue]} | changes


def alone(**changes: Any) -> FleetSpec:
    """The same, parsed and checked."""
    return parse_fleet(alone_data(**changes))
