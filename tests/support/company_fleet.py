"""A fleet with everything that the components can make: a company's, with a manager and three regions."""

from __future__ import annotations

import copy
from typing import Any

MANAGER = "manager-europe-west4"
WORKERS = ("worker-europe-west4", "worker-us-east4", "worker-asia-southeast1")
REGIONS = dict(zip((MANAGER, *WORKERS), ("europe-west4", "europe-west4", "us-east4", "asia-southeast1"), strict=True))
ZONES = {"europe-west4": "europe-west4-a", "us-east4": "us-east4-c", "asia-southeast1": "asia-southeast1-b"}
TEAMS = ("vision", "language", "speech", "robotics", "research", "platform")
KEY = "projects/company-keys/locations/{region}/keyRings/gke/cryptoKeys/{use}"


def _cluster(name: str) -> dict[str, Any]:
    region = REGIONS[name]
    return {
        "name": name,
        "role": "manager" if name == MANAGER else "worker",
        "region": region,
        "mode": "Standard",
        "zones": [ZONES[region]],
        "maintenance": {
            "start": "2026-01-03T00:00:00Z",
            "end": "2026-01-04T00:00:00Z",
            "recurrence": "FREQ=WEEKLY;BYDAY=SA,SU",
            "exclusions": [{"name": "year-end", "start": "2026-12-20T00:00:00Z", "end": "2027-01-04T00:00:00Z"}],
        },
        "databaseEncryptionKey": KEY.format(region=region, use="etcd"),
        "diskEncryptionKey": KEY.format(region=region, use="disks"),
        "rbacSecurityGroup": "gke-security-groups@company.test",
        "binaryAuthorization": True,
    }


def _pool(name: str, capacity: dict[str, Any], **other: Any) -> dict[str, Any]:
    return {
        "name": name,
        "machineType": "g2-standard-24",
        "autoscaling": {"totalMaxNodeCount": 12},
        "capacity": capacity,
        **other,
    }


def _quota(flavor: str, gpus: int) -> dict[str, Any]:
    amounts = {"nvidia.com/gpu": gpus, "cpu": gpus * 10, "memory": f"{gpus * 40}Gi", "ephemeral-storage": "80Gi"}
    return {"name": flavor, "resources": [{"name": name, "nominalQuota": text} for name, text in amounts.items()]}


def company_data(**changes: Any) -> dict[str, Any]:
    """The fleet as a file has it; `changes` replace whole sections."""
    pools = [
        _pool(
            "l4-reserved",
            {"type": "reserved", "reservation": "l4-us-east4"},
            clusters=["worker-us-east4"],
            autoscaling=None,
            nodeCount=4,
        ),
        _pool("l4-flex", {"type": "flexStart", "maxRunDuration": "72h"}),
        _pool(
            "l4-spot",
            {"type": "spot"},
            labels={"company.test/purpose": "batch"},
            taints=[{"key": "company.test/spot", "value": "true", "effect": "NoSchedule"}],
        ),
        _pool("l4-on-demand", {"type": "onDemand"}, upgrade={"maxSurge": 0, "maxUnavailable": 1}),
        _pool(
            "t4-now",
            {"type": "flexStart", "queuedProvisioning": False},
            machineType="n1-standard-8",
            accelerator={"type": "nvidia-tesla-t4", "count": 2, "driverVersion": "INSTALLATION_DISABLED"},
            clusters=["worker-us-east4"],
            localSsdCount=1,
            maxPodsPerNode=32,
        ),
        _pool(
            "a100-compact",
            {"type": "onDemand"},
            machineType="a2-highgpu-8g",
            clusters=["worker-europe-west4"],
            zones=["europe-west4-a"],
            compactPlacement=True,
            autoscaling={"totalMinNodeCount": 1, "totalMaxNodeCount": 4},
            initialNodeCount=1,
        ),
        _pool(
            "h100-calendar",
            {"type": "calendar", "reservation": "h100-december", "start": "2026-12-01T00:00:00Z", "duration": "336h"},
            machineType="a3-highgpu-8g",
            clusters=["worker-us-east4"],
            autoscaling={"totalMaxNodeCount": 2},
        ),
        _pool(
            "b200",
            {"type": "flexStart", "queuedProvisioning": False},
            machineType="a4-highgpu-8g",
            clusters=["worker-asia-southeast1"],
            zones=["asia-southeast1-b"],
            compactPlacement=True,
            autoscaling={"totalMaxNodeCount": 2},
        ),
        _pool(
            "h100-shared",
            {"type": "reserved", "reservation": "h100", "project": "company-gpus"},
            machineType="a3-highgpu-8g",
            clusters=["worker-asia-southeast1"],
        ),
    ]
    flavors = [pool["name"] for pool in pools]
    data: dict[str, Any] = {
        "name": "company",
        "project": "company-batch",
        "labels": {"cost-center": "ml"},
        "clusters": [_cluster(name) for name in (MANAGER, *WORKERS)],
        "nodePools": [{key: value for key, value in pool.items() if value is not None} for pool in pools],
        "reservations": [
            {"name": "l4-us-east4", "zone": "us-east4-c", "machineType": "g2-standard-24", "count": 4},
            {
                "name": "l4-backup",
                "zone": "us-east4-a",
                "machineType": "g2-standard-24",
                "count": 1,
                "localSsdCount": 2,
                "sharedWith": ["123456789012"],
                "purpose": "backup",
            },
        ],
        "futureReservations": [
            {
                "name": "h100-december",
                "zone": "us-east4-c",
                "machineType": "a3-highgpu-8g",
                "count": 2,
                "start": "2026-12-01T00:00:00Z",
                "duration": "336h",
                "planningStatus": "SUBMITTED",
            }
        ],
        "commitments": [
            {
                "name": "l4-year",
                "region": "us-east4",
                "plan": "TWELVE_MONTH",
                "type": "GRAPHICS_OPTIMIZED",
                "resources": [
                    {"type": "VCPU", "amount": 96},
                    {"type": "MEMORY", "amount": 393216},
                    {"type": "ACCELERATOR", "amount": 8, "acceleratorType": "nvidia-l4"},
                ],
                "reservations": ["l4-us-east4"],
                "confirm": "I-accept-the-cost",
            }
        ],
        "flavors": [{"name": name, "nodePool": name} for name in flavors],
        "admissionChecks": [
            {
                "name": "dws",
                "provisioningRequest": {
                    "provisioningClassName": "queued-provisioning.gke.io",
                    "managedResources": ["nvidia.com/gpu"],
                },
            }
        ],
        "clusterQueues": [
            {
                "name": "gpu",
                "namespaceSelector": {},
                "resourceGroups": [
                    {
                        "coveredResources": ["nvidia.com/gpu", "cpu", "memory", "ephemeral-storage"],
                        "flavors": [_quota(name, 2) for name in flavors],
                    }
                ],
                "admissionChecksStrategy": {"admissionChecks": [{"name": "dws", "onFlavors": ["l4-flex"]}]},
            }
        ],
        "teams": [
            {
                "name": team,
                "localQueues": [{"name": "gpu", "clusterQueue": "gpu"}],
                "googleServiceAccount": {},
                "members": [f"group:{team}@company.test"],
                "resourceQuota": {"pods": "500"},
            }
            for team in TEAMS
        ],
        "multiKueue": {"credentials": {"type": "ServiceAccountToken", "rotation": "2026-11", "rotateBy": "2027-02-01"}},
        "observability": {
            "grafana": {"version": "12.11.0"},
            "alerts": {"notificationChannels": ["projects/company-batch/notificationChannels/1"]},
        },
    }
    return copy.deepcopy(data | changes)


def without_worker(*names: str) -> dict[str, Any]:
    """The same fleet without some of its regions: the workers, and all that is on them alone."""
    data = company_data()
    data["clusters"] = [cluster for cluster in data["clusters"] if cluster["name"] not in names]
    gone = {pool["name"] for pool in data["nodePools"] if set(pool.get("clusters", ["others"])) <= set(names)}
    data["nodePools"] = [pool for pool in data["nodePools"] if pool["name"] not in gone]
    data["flavors"] = [flavor for flavor in data["flavors"] if flavor["name"] not in gone]
    group = data["clusterQueues"][0]["resourceGroups"][0]
    group["flavors"] = [flavor for flavor in group["flavors"] if flavor["name"] not in gone]
    return data
