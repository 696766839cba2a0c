"""The zones of each region, and where machine types with GPUs are offered, as far as known.

The zones are in `regions.csv`, the machine types in `machine_zones.csv`. Google adds to both: what is not listed may
exist.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Final

from kueue_fleet.gke.csv_tables import read_table, row_of
from kueue_fleet.gke.machines import machine_names, machine_type, n1_accelerators

DEFAULT_ZONES: Final = 3
"""In how many zones of its region GKE puts nodes where none are named."""


@cache
def _zones() -> Mapping[str, tuple[str, ...]]:
    return {row["region"]: _named(row) for row in read_table("regions")}


@cache
def _offered() -> Mapping[str, Mapping[str, tuple[str, ...]]]:
    """Zones by region, by the beginning of the machine type's name."""
    zones_by_type: dict[str, dict[str, tuple[str, ...]]] = {}
    for row in read_table("machine_zones"):
        zones_by_type.setdefault(row["machineTypes"], {})[row["region"]] = _named(row)
    return zones_by_type


def _named(row: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(f"{row['region']}-{letter}" for letter in row["zones"].split())


def region_names() -> tuple[str, ...]:
    """The regions that are known."""
    return tuple(_zones())


def zones_of(region: str) -> tuple[str, ...]:
    """The zones of a region; none for a region that is not known."""
    return _zones().get(region, ())


def is_unknown_zone(zone: str) -> bool:
    """Whether a region that is known has no such zone.

    AI zones, such as us-central1-ai1a, never count as missing: Google adds them where it has room for GPUs.
    """
    region, _, letter = zone.rpartition("-")
    return not letter.startswith("ai") and zone not in (zones_of(region) or (zone,))


def region_of(zone: str) -> str:
    """The region that a zone's name begins with."""
    return zone.rpartition("-")[0]


def region_at(location: str) -> str:
    """The region of a location, which is one itself, or a zone of it."""
    region = region_of(location)
    return region if region[-1:].isdigit() else location


def is_elsewhere(zone: str, region: str) -> bool:
    """Whether a zone is in another region; not said of a region that is not known and may be meant for the zone's."""
    own = region_of(zone)
    return own != region and (not zones_of(own) or bool(zones_of(region)))


def default_zones(region: str) -> tuple[str, ...]:
    """The zones that nodes of a regional cluster are asked for in where none are named: the region's first three.

    None for a region that is not known: there GKE chooses.
    """
    return zones_of(region)[:DEFAULT_ZONES]


def zones_offering(machine_type: str, region: str) -> tuple[str, ...] | None:
    """The zones of `region` where the machine type is offered; None where nothing is known about the type."""
    zone_row = row_of(machine_type, _offered())
    return None if zone_row is None else zone_row.get(region, ())


def regions_offering(machine_type: str) -> tuple[str, ...]:
    """The regions where the machine type is offered, as far as known."""
    return tuple(row_of(machine_type, _offered()) or ())


def regions_with(accelerator: str) -> tuple[str, ...] | None:
    """The regions where machines with that kind of GPU or TPU are offered; None where that is not known of each."""
    if accelerator in n1_accelerators():
        return regions_offering(accelerator) or None
    types = [
        name
        for name in machine_names()
        if (machine_facts := machine_type(name)) and machine_facts.accelerator == accelerator
    ]
    zone_rows = [row_of(name, _offered()) for name in types]
    if not zone_rows or None in zone_rows:
        return None
    return tuple(dict.fromkeys(region for regions in zone_rows for region in regions or ()))
