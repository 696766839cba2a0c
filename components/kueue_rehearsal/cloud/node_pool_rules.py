"""What GKE refuses about a node pool when it is made or changed.

The rules of the pool by itself are `gke.pool_rules`; Pulumi's own checks (property names, what replaces a pool) are in
`standins`.

Source: https://cloud.google.com/kubernetes-engine/docs/how-to/consuming-reservations
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kueue_admission.kernel.manifest import Manifest
from kueue_fleet.gke.pool import Pool, property_path, read_pool, reservation_name
from kueue_fleet.gke.pool_rules import breaches

_NAME = re.compile(r"[a-z]([a-z0-9-]{0,38}[a-z0-9])?")


@dataclass(frozen=True, slots=True)
class Reservation:
    """Machines that are reserved in one zone."""

    name: str
    zone: str
    machine_type: str
    count: int
    accelerator: str | None = None
    """The GPUs attached to an N1 machine."""
    active: bool = True
    """False for a future reservation that has not begun, or has ended."""
    ends_at: float | None = None
    """When a future reservation ends, in seconds since the epoch."""
    ended: bool = False


def refusals(
    name: str, body: Manifest, region: str, cluster_zones: Sequence[str], reservations: Sequence[Reservation]
) -> list[str]:
    """Why GKE would not have such a pool; empty when it would. Clusters are taken to be on a release channel."""
    pool = read_pool(body, region=region, zones=cluster_zones, zone_count=len(cluster_zones), release_channel=True)
    problems = []
    if not _NAME.fullmatch(name):
        problems.append(f"name: {name!r}: up to 40 lower case letters, digits and hyphens, beginning with a letter")
    if pool.machine is None:
        problems.append(f"nodeConfig.machineType: the rehearsal does not know {pool.machine_type}")
    for rule, breach in breaches(pool):
        if rule.refused:
            problems.append(f"{property_path(pool, breach)}: {breach.wrong}; {breach.fix}")
    return problems + list(_reservation(pool, reservations))


def reservation_end(body: Manifest, reservations: Sequence[Reservation]) -> float | None:
    """When Google takes the machines of the pool away: the first end of the reservation that it names, if it has one.

    Source: https://cloud.google.com/compute/docs/instances/future-reservations-calendar-mode-overview
    """
    names = set(map(reservation_name, read_pool(body).reservations))
    ends = [one.ends_at for one in reservations if one.name in names and one.ends_at is not None]
    return min(ends, default=None)


def _reservation(pool: Pool, reservations: Sequence[Reservation]) -> Iterator[str]:
    if pool.reservation_type != "SPECIFIC_RESERVATION" or len(pool.reservations) != 1:
        return
    name = reservation_name(pool.reservations[0])
    known_reservations = [one for one in reservations if one.name == name]
    if known_reservations:
        yield from _fits_reservation(pool, name, known_reservations)


def _fits_reservation(pool: Pool, name: str, reservations: Sequence[Reservation]) -> Iterator[str]:
    what = f"nodeConfig.reservationAffinity: reservation {name}"
    zones = [zone for zone in pool.zones if zone not in {one.zone for one in reservations}]
    if zones:
        there = ", ".join(sorted(one.zone for one in reservations))
        yield f"{what} is in {there}, not in {', '.join(zones)} of the pool"
    for one in reservations:
        if one.machine_type != pool.machine_type:
            yield f"{what} has {one.machine_type}, the pool has {pool.machine_type}"
        elif pool.machine is not None and one.accelerator not in (None, pool.machine.accelerator):
            yield f"{what} has {one.accelerator}, the pool has {pool.machine.accelerator}"
    counts = [(count or 0) * pool.zone_count for count in (pool.node_count, pool.initial_node_count)]
    wanted_nodes = max(*counts, pool.least_nodes)
    if not all(one.active for one in reservations):
        if wanted_nodes or pool.autoscaling:
            if any(one.ended for one in reservations):
                yield f"{what} has ended: the pool must have no nodes and no autoscaling"
            else:
                yield f"{what} has not begun: the pool must have no nodes and no autoscaling until then"
        return
    room = sum(one.count for one in reservations if one.zone in pool.zones)
    if wanted_nodes > room:
        yield f"{what} has {room} machines, the pool asks for {wanted_nodes}"
