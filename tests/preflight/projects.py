"""A fleet with something of everything, and a project that it fits into."""

from __future__ import annotations

from typing import Any

from tests.preflight.google_api import Project

from kueue_fleet.fleet_file import FleetSpec, parse_fleet
from kueue_fleet.preflight.needs import Needs, needs_of

ZONES = ("us-central1-a", "us-central1-b", "us-central1-c")


def fleet_data() -> dict[str, Any]:
    """One Standard cluster: reserved, spot, flex-start and attached GPUs, and a reservation of another project."""
    return {
        "name": "lab",
        "project": "my-project",
        "clusters": [{"name": "only", "role": "standalone", "region": "us-central1", "mode": "Standard"}],
        "nodePools": [
            pool("l4-kept", 2, "us-central1-a", capacity={"type": "reserved", "reservation": "kept"}),
            pool("l4-spot", 8, capacity={"type": "spot"}),
            pool("l4", 3, localSsdCount=2),
            pool("h100", 1, "us-central1-a", machineType="a3-highgpu-8g", capacity={"type": "flexStart"}),
            pool("t4", 2, machineType="n1-standard-4", accelerator={"type": "nvidia-tesla-t4", "count": 2}),
            pool(
                "shared",
                4,
                "us-central1-b",
                capacity={"type": "reserved", "reservation": "theirs", "project": "their-project"},
            ),
        ],
        "reservations": [{"name": "kept", "zone": "us-central1-a", "machineType": "g2-standard-24", "count": 2}],
    }


def pool(name: str, most: int, *zones: str, **fields: Any) -> dict[str, Any]:
    """A pool of 0 to `most` nodes."""
    limits = {"totalMinNodeCount": 0, "totalMaxNodeCount": most}
    where = {"zones": list(zones)} if zones else {}
    return {"name": name, "machineType": "g2-standard-24", "autoscaling": limits, **where, **fields}


def fleet() -> FleetSpec:
    return parse_fleet(fleet_data())


def needs() -> Needs:
    return needs_of(fleet())[0]


def reservation(name: str, zone: str, project: str = "my-project", **fields: Any) -> dict[str, Any]:
    """As the API answers: numbers in strings, and the GPUs that the machine comes with."""
    properties = {
        "machineType": "g2-standard-24",
        "guestAccelerators": [{"acceleratorType": "nvidia-l4", "acceleratorCount": 2}],
    }
    machines = {"count": "4", "inUseCount": "1", "assuredCount": "4", "instanceProperties": properties}
    return {
        "kind": "compute#reservation",
        "name": name,
        "zone": f"https://www.googleapis.com/compute/v1/projects/{project}/zones/{zone}",
        "selfLink": f"https://www.googleapis.com/compute/v1/projects/{project}/zones/{zone}/reservations/{name}",
        "status": "READY",
        "specificReservation": {**machines, **fields.pop("machines", {})},
        "specificReservationRequired": True,
        "shareSettings": {"shareType": "LOCAL"},
        **fields,
    }


def roomy_project() -> Project:
    """A project with room for `fleet`."""
    expected = needs()
    kinds = ("g2-standard-24", "a3-highgpu-8g", "n1-standard-4", "e2-standard-4")
    share = {"shareType": "SPECIFIC_PROJECTS", "projectMap": {"123456789012": {"projectId": "123456789012"}}}
    return Project(
        apis=[api.name for api in expected.apis],
        quotas={
            "CPUS_ALL_REGIONS": (100, 10),
            "GPUS_ALL_REGIONS": (64, 0),
            "NETWORKS": (5, 1),
            "ROUTERS": (10, 0),
            "SUBNETWORKS": (100, 3),
        },
        regions={
            "us-central1": {
                "CPUS": (72, 4),
                "INSTANCES": (100, 0),
                "LOCAL_SSD_TOTAL_GB": (10_000, 0),
                "NVIDIA_L4_GPUS": (20, 0),
                "NVIDIA_T4_GPUS": (4, 0),
                "PREEMPTIBLE_NVIDIA_H100_GPUS": (8, 0),
                "PREEMPTIBLE_NVIDIA_L4_GPUS": (16, 0),
                "RESERVATIONS": (10, 0),
                "SSD_TOTAL_GB": (5_000, 0),
            },
            "us-east4": {},
            "europe-west4": {},
        },
        machine_types={zone: list(kinds) for zone in (*ZONES, "us-central1-f")},
        accelerators={zone: ["nvidia-tesla-t4", "nvidia-l4"] for zone in ZONES},
        reservations={"us-central1-b": [reservation("theirs", "us-central1-b", "their-project", shareSettings=share)]},
        networks=["default"],
        permissions=[name for role in expected.roles for name in role.permissions],
    )
