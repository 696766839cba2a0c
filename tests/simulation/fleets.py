"""Fleets for the tests of the simulation: a manager and two workers with node pools of their own."""

from __future__ import annotations

import json
from typing import Any

from kueue_fleet.fleet_file import FleetSpec, parse_fleet
from kueue_fleet.jobs.workload_file import WorkloadFile, read_workload_file

EUROPE, US = "worker-europe-west4", "worker-us-east4"
GPU = "nvidia.com/gpu"


def fleet_data(**changes: Any) -> dict[str, Any]:
    """Each worker has a spot pool of at most `nodes` nodes with one L4 and 12 CPUs each, and quota for 96 CPUs."""
    nodes = changes.pop("nodes", 2)
    data: dict[str, Any] = {
        "name": "lab",
        "project": "lab-project",
        "clusters": [
            {"name": "manager", "role": "manager", "region": "europe-west4", "mode": "Standard"},
            {
                "name": EUROPE,
                "role": "worker",
                "region": "europe-west4",
                "mode": "Standard",
                "zones": ["europe-west4-a"],
            },
            {"name": US, "role": "worker", "region": "us-east4", "mode": "Standard", "zones": ["us-east4-a"]},
        ],
        "nodePools": [
            {
                "name": "l4-spot",
                "machineType": "g2-standard-12",
                "autoscaling": {"totalMinNodeCount": 0, "totalMaxNodeCount": nodes},
                "capacity": {"type": "spot"},
            }
        ],
        "flavors": [{"name": "l4-spot", "nodePool": "l4-spot"}],
        "clusterQueues": [
            {
                "name": "gpu",
                "namespaceSelector": {},
                "resourceGroups": [
                    {
                        "coveredResources": [GPU, "cpu", "memory"],
                        "flavors": [
                            {
                                "name": "l4-spot",
                                "resources": [
                                    {"name": GPU, "nominalQuota": nodes},
                                    {"name": "cpu", "nominalQuota": 96},
                                    {"name": "memory", "nominalQuota": "400Gi"},
                                ],
                            }
                        ],
                    }
                ],
            }
        ],
        "teams": [
            {"name": "team-a", "localQueues": [{"name": "gpu", "clusterQueue": "gpu"}]},
            {
                "name": "team-eu",
                "localQueues": [{"name": "gpu", "clusterQueue": "gpu"}],
                "allowedRegions": ["europe-west4"],
            },
        ],
        "multiKueue": {
            "workers": [US, EUROPE],
            "credentials": {"type": "ServiceAccountToken", "rotation": "2026-11", "rotateBy": "2027-02-01"},
        },
    }
    return data | changes


def dispatched_data(**dispatch: Any) -> dict[str, Any]:
    """The same with the fleet's own dispatcher."""
    data = fleet_data(nodes=8)
    data["multiKueue"] |= {"dispatcher": "External", "external": {"name": "kueue-fleet.dev/dispatcher"}}
    prices = {"us-east4": {"l4-spot": 1.0}, "europe-west4": {"l4-spot": 0.5}}
    return data | {"controller": {"image": "example.com/controller:1", "prices": prices, "dispatch": dispatch}}


def calendar_data(*, start: str = "2026-12-01T00:00:00Z", open_by_hand: bool = True, **queue: Any) -> dict[str, Any]:
    """One cluster, whose queue has first the H100 of a calendar reservation for a week, and then Spot ones."""
    active = {"active": True} if open_by_hand else {}
    capacity = {"type": "calendar", "reservation": "week", "start": start, "duration": "168h", **active}
    pools: list[dict[str, Any]] = [
        {"name": "week", "capacity": capacity, "nodeCount": 8},
        {"name": "later", "autoscaling": {"totalMaxNodeCount": 8}, "capacity": {"type": "spot"}},
    ]
    quotas = {GPU: 64, "cpu": 1600, "memory": "9Ti"}
    resources = [{"name": name, "nominalQuota": amount} for name, amount in quotas.items()]
    flavors = [{"name": pool["name"], "resources": resources} for pool in pools]
    return {
        "name": "lab",
        "project": "lab-project",
        "clusters": [
            {"name": "c", "role": "standalone", "region": "us-east4", "mode": "Standard", "zones": ["us-east4-a"]}
        ],
        "nodePools": [{"machineType": "a3-highgpu-8g", **pool} for pool in pools],
        "flavors": [{"name": pool["name"], "nodePool": pool["name"]} for pool in pools],
        "clusterQueues": [
            {
                "name": "q",
                "namespaceSelector": {},
                "resourceGroups": [{"coveredResources": list(quotas), "flavors": flavors}],
                **queue,
            }
        ],
        "localQueues": [{"namespace": "default", "name": "q", "clusterQueue": "q"}],
        **({"controller": {"image": "example.com/controller:1"}} if "fallback" in queue else {}),
    }


def fleet(**changes: Any) -> FleetSpec:
    return parse_fleet(fleet_data(**changes))


def job(name: str, **fields: Any) -> dict[str, Any]:
    given = {"namespace": "team-a", "queue": "gpu", "requests": {GPU: 1, "cpu": 10}, "runSeconds": 100}
    return {"name": name, **given, **fields}


def workload_file(jobs: list[dict[str, Any]], **rest: Any) -> WorkloadFile:
    return read_workload_file(json.dumps({"jobs": jobs, **rest}), "w.yaml")
