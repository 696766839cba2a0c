"""Scratch disks in Google Cloud, and what they cost."""

from collections.abc import Iterator
from typing import Any

from kueue_fleet.fleet_file import FleetSpec
from kueue_fleet.fleet_file.cost import CostLine, cost_line
from kueue_fleet.gke.prices import Prices
from kueue_fleet.gke.zones import region_of
from kueue_fleet.google.resource import CloudResource


def scratch_disk_arguments(fleet: FleetSpec, surroundings: object) -> dict[str, Any]:
    """The arguments of the disks."""
    return {"spec": fleet} if fleet.scratch_disks else {}


def scratch_disks(name: str, *, project: Any, spec: FleetSpec) -> Iterator[CloudResource]:
    """A disk for each entry."""
    for entry in spec.scratch_disks:
        properties = {
            "project": project,
            "name": entry.name,
            "zone": entry.zone,
            "type": "pd-balanced",
            "size": entry.size_gib,
        }
        yield CloudResource(
            "gcp:compute/disk:Disk",
            f"{name}/{entry.name}/{entry.zone}",
            properties,
            protect=spec.deletion_protection,
        )


def scratch_disk_costs(fleet: FleetSpec, prices: Prices) -> Iterator[CostLine]:
    """Each disk, which is paid by its size."""
    for entry in fleet.scratch_disks:
        parts = prices.of_disk("pd-balanced", entry.size_gib, region_of(entry.zone))
        yield cost_line("", entry.name, "storage", (1, 1), f"{entry.size_gib} GiB in {entry.zone}", parts)
