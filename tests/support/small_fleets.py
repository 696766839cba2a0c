"""Small fleets for tests of the components, as plain data and parsed."""

from __future__ import annotations

import copy
from typing import Any

from kueue_fleet.fleet_file import FleetSpec, parse_fleet

MANAGER = "manager-europe-west4"
WORKER = "worker-us-east4"
SECOND_WORKER = "worker-asia-southeast1"

_REGION_OF = {MANAGER: "europe-west4", WORKER: "us-east4", SECOND_WORKER: "asia-southeast1"}


def fleet_data(*workers: str, **changes: Any) -> dict[str, Any]:
    """A fleet with a manager and `workers`, that uses every kind of object once; `changes` replace whole sections."""
    data: dict[str, Any] = {
        "name": "lab",
        "project": "lab-project",
        "clusters": [
            {"name": MANAGER, "role": "manager", "region": _REGION_OF[MANAGER]},
            *({"name": name, "role": "worker", "region": _REGION_OF.get(name, name[7:])} for name in workers),
        ],
        "topologies": [
            {"name": "racks", "levels": [{"nodeLabel": "lab/block"}, {"nodeLabel": "kubernetes.io/hostname"}]}
        ],
        "flavors": [
            {"name": "l4", "nodeLabels": {"cloud.google.com/gke-accelerator": "nvidia-l4"}},
            {
                "name": "h100",
                "nodeLabels": {"cloud.google.com/gke-accelerator": "nvidia-h100"},
                "topologyName": "racks",
            },
        ],
        "cohorts": [{"name": "research"}, {"name": "vision", "parentName": "research"}],
        "admissionChecks": [
            {"name": "dws", "provisioningRequest": {"provisioningClassName": "queued-provisioning.gke.io"}},
        ],
        "clusterQueues": [
            {
                "name": "gpu",
                "cohortName": "vision",
                "namespaceSelector": {},
                "resourceGroups": [
                    {
                        "coveredResources": ["nvidia.com/gpu"],
                        "flavors": [
                            {"name": "l4", "resources": [{"name": "nvidia.com/gpu", "nominalQuota": 8}]},
                            {"name": "h100", "resources": [{"name": "nvidia.com/gpu", "nominalQuota": 16}]},
                        ],
                    }
                ],
                "admissionChecksStrategy": {"admissionChecks": [{"name": "dws", "onFlavors": ["l4"]}]},
            }
        ],
        "priorityClasses": [{"name": "batch", "value": 1000}],
        "workloadPriorityClasses": [{"name": "urgent", "value": 100}],
        "teams": [{"name": "team-a", "localQueues": [{"name": "gpu", "clusterQueue": "gpu"}]}],
        "localQueues": [{"namespace": "shared", "name": "gpu", "clusterQueue": "gpu"}],
        "multiKueue": {"credentials": {"type": "ServiceAccountToken", "rotation": "2026-11", "rotateBy": "2027-02-01"}},
    }
    return copy.deepcopy(data | changes)


def fleet(*workers: str, **changes: Any) -> FleetSpec:
    """The same, parsed and checked."""
    return parse_fleet(fleet_data(*(workers or (WORKER,)), **changes))


def standalone_data(**changes: Any) -> dict[str, Any]:
    """One cluster that takes and runs jobs itself, in Standard mode."""
    data = fleet_data()
    del data["multiKueue"]
    data["clusters"] = [
        {
            "name": "batch",
            "role": "standalone",
            "region": "us-central1",
            "mode": "Standard",
            "zones": ["us-central1-a"],
        }
    ]
    return data | changes


def one_pool_data() -> dict[str, Any]:
    """One Standard cluster, `batch`, with one pool and one queue."""
    resources = {"cpu": 90, "memory": "300Gi", "nvidia.com/gpu": 8}
    quotas = [{"name": name, "nominalQuota": quota} for name, quota in resources.items()]
    group = {"coveredResources": list(resources), "flavors": [{"name": "l4", "resources": quotas}]}
    return {
        "name": "lab",
        "project": "lab-project",
        "clusters": [{"name": "batch", "role": "standalone", "region": "us-central1", "mode": "Standard"}],
        "nodePools": [{"name": "l4", "machineType": "g2-standard-24", "autoscaling": {"totalMaxNodeCount": 4}}],
        "flavors": [{"name": "l4", "nodePool": "l4"}],
        "clusterQueues": [{"name": "gpu", "namespaceSelector": {}, "resourceGroups": [group]}],
        "teams": [{"name": "vision", "localQueues": [{"name": "gpu", "clusterQueue": "gpu"}]}],
    }
