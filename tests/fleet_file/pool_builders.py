"""A Standard cluster with node pools of every capacity class, to break."""

from __future__ import annotations

from typing import Any, Final

from tests.fleet_file.builders import Data, quota

GPU: Final = "nvidia.com/gpu"
ZONES: Final = ["us-central1-a", "us-central1-b", "us-central1-c"]
RESERVED, ON_DEMAND, SPOT, FLEX, QUEUED, CALENDAR = range(6)
"""Places of the pools in `pools_data`, and of the flavors derived from them."""


def pool(name: str, capacity: Data | None = None, **fields: object) -> Data:
    """A pool of g2-standard-24, with two L4 each."""
    result: Data = {"name": name, "machineType": "g2-standard-24", **fields}
    return result | ({"capacity": capacity} if capacity else {})


def scaled(most: int, least: int = 0, **fields: object) -> Data:
    """Autoscaling."""
    return {"totalMinNodeCount": least, "totalMaxNodeCount": most, **fields}


def flavor_quota(name: str, gpus: object = 4) -> Data:
    """Quotas on one flavor, for a few nodes."""
    return {"name": name, "resources": [quota(GPU, gpus), quota("cpu", 40), quota("memory", "150Gi")]}


NAMES: Final = ["reserved", "on-demand", "spot", "flex", "queued", "calendar"]
IN_TURN: Final = ["reserved", "on-demand", "spot", "flex", "calendar", "queued"]
"""The flavors of the queue in `pools_data`: DWS comes last, since a job that has quota there waits for it."""


def pools_data() -> Data:
    """One Standard cluster without any problem: six pools, a flavor from each, one queue on all of them."""
    return {
        "name": "pools",
        "project": "my-project",
        "clusters": [
            {"name": "batch", "role": "standalone", "region": "us-central1", "mode": "Standard", "zones": ZONES}
        ],
        "nodePools": [
            pool("reserved", {"type": "reserved", "reservation": "l4"}, zones=["us-central1-a"], nodeCount=4),
            pool("on-demand", autoscaling=scaled(24)),
            pool("spot", {"type": "spot"}, autoscaling=scaled(36)),
            pool("flex", {"type": "flexStart", "queuedProvisioning": False}, autoscaling=scaled(8)),
            pool("queued", {"type": "flexStart"}, autoscaling=scaled(8)),
            pool(
                "calendar",
                {
                    "type": "calendar",
                    "reservation": "december",
                    "start": "2026-12-01T00:00:00Z",
                    "duration": "336h",
                },
                zones=["us-central1-b"],
                nodeCount=2,
            ),
        ],
        "reservations": [{"name": "l4", "zone": "us-central1-a", "machineType": "g2-standard-24", "count": 4}],
        "futureReservations": [
            {
                "name": "december",
                "zone": "us-central1-b",
                "machineType": "g2-standard-24",
                "count": 2,
                "start": "2026-12-01T00:00:00Z",
                "duration": "336h",
            }
        ],
        "flavors": [{"name": name, "nodePool": name} for name in NAMES],
        "clusterQueues": [
            {
                "name": "gpu",
                "namespaceSelector": {},
                "resourceGroups": [
                    {
                        "coveredResources": [GPU, "cpu", "memory"],
                        "flavors": [flavor_quota(name) for name in IN_TURN],
                    }
                ],
                "admissionChecksStrategy": {"admissionChecks": [{"name": "dws", "onFlavors": ["queued"]}]},
            }
        ],
        "admissionChecks": [
            {
                "name": "dws",
                "provisioningRequest": {
                    "provisioningClassName": "queued-provisioning.gke.io",
                    "managedResources": [GPU],
                },
            }
        ],
        "teams": [{"name": "team-a", "localQueues": [{"name": "gpu", "clusterQueue": "gpu"}]}],
    }


FLAVORS: Final = "clusterQueues/0/resourceGroups/0/flavors"
"""Path of the queue's flavors in `pools_data`."""
ACCELERATOR: Final = "cloud.google.com/gke-accelerator"
SPOT_LABEL: Final = "cloud.google.com/gke-spot"


def hand(**fields: Any) -> Data:
    """The flavor of the on-demand nodes, written by hand."""
    return {"name": "on-demand", **fields}


def limits(**changes: int | None) -> Data:
    """Auto-provisioning with other limits; None leaves one out."""
    amounts = {"cpu": 1000, "memory": 4000, "nvidia-l4": 300} | {k.replace("_", "-"): v for k, v in changes.items()}
    return {"resourceLimits": [{"resourceType": k, "maximum": v} for k, v in amounts.items() if v is not None]}


def nap(settings: Data | None = None, gpus: int = 4, **flavor: Any) -> Data:
    """The on-demand nodes are auto-provisioned instead, for a flavor that is written by hand."""
    pools = pools_data()["nodePools"]
    names = ("reserved", "on-demand", "calendar", "queued")
    return {
        "nodePools": [pools[index] for index in (RESERVED, QUEUED, CALENDAR)],
        "flavors": [hand(**flavor) if name == "on-demand" else {"name": name, "nodePool": name} for name in names],
        FLAVORS: [flavor_quota(name, gpus if name == "on-demand" else 4) for name in names],
        "clusters/0/nodeAutoProvisioning": settings or limits(),
    }
