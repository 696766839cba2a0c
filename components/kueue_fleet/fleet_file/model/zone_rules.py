"""Zones that a fleet names, against the table of zones and of where machine types are offered.

Source: https://cloud.google.com/compute/docs/regions-zones
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kueue_admission.kernel import suggest
from kueue_admission.kernel.form_rules import listed_twice
from kueue_admission.kernel.problem import Problem
from kueue_fleet.fleet_file.rules.clusters import NOT_OFFERED, ZONE
from kueue_fleet.gke.zones import is_elsewhere, is_unknown_zone, region_of, regions_offering, zones_of, zones_offering


def zone_problems(path: str, zone: str) -> Iterator[Problem]:
    """A zone that its region does not have."""
    if is_unknown_zone(zone):
        yield ZONE.at(path, f"is {zone}, which does not exist", f"use one of {', '.join(zones_of(region_of(zone)))}")


def zones_in_region(path: str, zones: Sequence[str], region: str) -> Iterator[Problem]:
    """Zones of a cluster that are in its region and exist, each once."""
    for index, zone in enumerate(zones):
        here = f"{path}[{index}]"
        if zone in zones[:index]:
            yield listed_twice(here, zone, "zone")
        else:
            yield from zone_in_region(here, zone, region)


def zone_in_region(path: str, zone: str, region: str) -> Iterator[Problem]:
    """A zone of a cluster that is not in its region, or does not exist."""
    if is_elsewhere(zone, region):
        wrong = f"is {zone}, which is not in {region}, the cluster's region"
        yield ZONE.at(path, wrong, f"name zones of {region}, or change region")
    else:
        yield from zone_problems(path, zone)


def offered_problems(path: str, machine_type: str, zones: Sequence[str], region: str) -> Iterator[Problem]:
    """A machine type that some of the zones are not known to offer, but others of the region are."""
    offering_zones = zones_offering(machine_type, region)
    if offering_zones is None or not zones_of(region):
        return
    missing_zones = [zone for zone in zones if zone in zones_of(region) and zone not in offering_zones]
    if missing_zones and offering_zones:
        yield NOT_OFFERED.at(
            path,
            f"{machine_type} is not known to be offered in {', '.join(missing_zones)}",
            f"use {', '.join(offering_zones)}, or make sure that it is",
        )


def offered_nowhere(path: str, machine_type: str, region: str) -> Iterator[Problem]:
    """A machine type that no zone of the region is known to offer."""
    if zones_of(region) and zones_offering(machine_type, region) == ():
        yield NOT_OFFERED.at(
            path,
            f"{machine_type} is not known to be offered in {region}",
            f"use one of {', '.join(regions_offering(machine_type)[: suggest.LISTED])}, or make sure that it is",
        )
