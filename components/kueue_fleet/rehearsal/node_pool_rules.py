"""What GKE refuses about a node pool when it is made or changed.

In: the inputs of `gcp:container/nodePool:NodePool`, the cluster's place, and the reservations that are known. Out: the
reasons, all at once. Pulumi's own checks (property names, what replaces a pool) are in `standins`.

Sources: GoogleCloudPlatform/cluster-toolkit@10470803 modules/compute/gke-node-pool/main.tf (preconditions),
https://cloud.google.com/kubernetes-engine/docs/how-to/provisioningrequest,
https://cloud.google.com/kubernetes-engine/docs/concepts/dws,
https://cloud.google.com/kubernetes-engine/docs/how-to/compact-placement,
https://cloud.google.com/kubernetes-engine/docs/how-to/consuming-reservations
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kueue_fleet.gke.machines import MachineType, machine_type, n1_accelerators
from kueue_fleet.rehearsal.node_pools import RESERVATION_KEY, limits_of, machine_of, reservation_name
from kueue_fleet.spec.capacity import FLEX_START_MAX_SECONDS

Json = Mapping[str, Any]
"""An object as the API server sends it."""

_NAME = re.compile(r"[a-z]([a-z0-9-]{0,38}[a-z0-9])?")
_FLEX_START_COMPACT = ("a3-ultragpu", "a4-highgpu", "h4d")


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
    """False for a future reservation that has not begun."""


def refusals(
    name: str, body: Json, region: str, cluster_zones: Sequence[str], reservations: Sequence[Reservation]
) -> list[str]:
    """Why GKE would not have such a pool; empty when it would."""
    pool = _Pool(name, body, region, tuple(body.get("nodeLocations") or cluster_zones))
    checks = (_place, _machine, _size, _upgrade, _compact, _queued, _flex_start, _spot, _disks)
    found = [reason for check in checks for reason in check(pool)]
    return found + list(_reservation(pool, reservations))


class _Pool:
    """The inputs, with what several rules look at."""

    def __init__(self, name: str, body: Json, region: str, zones: tuple[str, ...]) -> None:
        self.name, self.body, self.region, self.zones = name, body, region, zones
        self.config: Json = body.get("nodeConfig") or {}
        self.scaling: Json | None = body.get("autoscaling")
        self.affinity: Json = self.config.get("reservationAffinity") or {}
        self.queued = (body.get("queuedProvisioning") or {}).get("enabled") is True
        self.flex_start = self.config.get("flexStart") is True
        self.spot = self.config.get("spot") is True or self.config.get("preemptible") is True
        self.compact = (body.get("placementPolicy") or {}).get("type") == "COMPACT"
        self.machine_type = str(self.config.get("machineType") or "")

    @property
    def consumes(self) -> str:
        return str(self.affinity.get("consumeReservationType") or "")


def _place(pool: _Pool) -> Iterator[str]:
    if not _NAME.fullmatch(pool.name):
        yield f"name: {pool.name!r}: up to 40 lower case letters, digits and hyphens, beginning with a letter"
    for zone in pool.zones:
        if zone.rpartition("-")[0] != pool.region:
            yield f"nodeLocations: zone {zone} is not in region {pool.region} of the cluster"


def _machine(pool: _Pool) -> Iterator[str]:
    machine = machine_of(pool.config)
    if machine is None:
        yield f"nodeConfig.machineType: the rehearsal does not know {pool.machine_type}"
        return
    asked = pool.config.get("guestAccelerators") or ()
    bare = machine_type(machine.name)
    for accelerator in asked:
        kind, count = str(accelerator.get("type")), int(accelerator.get("count") or 0)
        if bare is not None and bare.accelerator is not None:
            if (kind, count) != (bare.accelerator, bare.gpus):
                yield (
                    f"nodeConfig.guestAccelerators: {machine.name} has {bare.gpus} {bare.accelerator}, "
                    f"not {count} {kind}"
                )
        elif machine.family != "n1":
            yield f"nodeConfig.guestAccelerators: GPUs cannot be attached to {machine.name}, only to N1 machines"
        else:
            yield from _attachable(machine, kind, count)


def _attachable(machine: MachineType, kind: str, count: int) -> Iterator[str]:
    if kind not in n1_accelerators():
        yield f"nodeConfig.guestAccelerators: {kind} cannot be attached to N1 machines"
    elif count not in n1_accelerators()[kind]:
        yield f"nodeConfig.guestAccelerators: {count} {kind}: use {', '.join(map(str, n1_accelerators()[kind]))}"
    elif machine.cpus > n1_accelerators()[kind][count]:
        yield (
            f"nodeConfig.guestAccelerators: {count} {kind} go with at most {n1_accelerators()[kind][count]} vCPUs, "
            f"{machine.name} has {machine.cpus}"
        )


def _size(pool: _Pool) -> Iterator[str]:
    body, scaling = pool.body, pool.scaling
    if body.get("nodeCount") is not None and body.get("initialNodeCount") is not None:
        yield "nodeCount: cannot set both initial_node_count and node_count on node pool"
    if scaling is None:
        return
    total = [key for key in ("totalMinNodeCount", "totalMaxNodeCount") if scaling.get(key) is not None]
    by_zone = [key for key in ("minNodeCount", "maxNodeCount") if scaling.get(key) is not None]
    if total and by_zone:
        yield f"autoscaling: {total[0]} conflicts with {by_zone[0]}; use total or per-zone limits, not both"
        return
    limits = limits_of(scaling, len(pool.zones))
    if limits.most < 1:
        yield "autoscaling: the maximum must be at least 1"
    if limits.least > limits.most:
        yield f"autoscaling: the minimum, {limits.least}, is greater than the maximum, {limits.most}"
    initial = body.get("initialNodeCount")
    if initial is not None and not limits.least <= int(initial) * len(pool.zones) <= limits.most:
        yield (
            f"initialNodeCount: {int(initial)} in each of {len(pool.zones)} zones is not within autoscaling's "
            f"limits, {limits.least} to {limits.most}"
        )


def _upgrade(pool: _Pool) -> Iterator[str]:
    upgrade = pool.body.get("upgradeSettings") or {}
    if upgrade.get("strategy", "SURGE") == "SURGE" and upgrade:
        surge, unavailable = upgrade.get("maxSurge"), upgrade.get("maxUnavailable")
        if (surge, unavailable) != (None, None) and not int(surge or 0) and not int(unavailable or 0):
            yield "upgradeSettings: maxSurge and maxUnavailable cannot both be 0"


def _compact(pool: _Pool) -> Iterator[str]:
    if not pool.compact:
        return
    if len(pool.zones) != 1:
        yield f"placementPolicy: compact placement needs exactly one zone, the pool has {len(pool.zones)}"
    if (pool.body.get("upgradeSettings") or {}).get("strategy") == "BLUE_GREEN":
        yield "placementPolicy: compact placement does not go with blue-green upgrades"
    if pool.queued:
        yield "placementPolicy: compact placement does not go with queued provisioning"
    if pool.flex_start and not pool.machine_type.startswith(_FLEX_START_COMPACT):
        yield f"placementPolicy: compact placement with flex-start is not offered on {pool.machine_type}"


def _queued(pool: _Pool) -> Iterator[str]:
    if not pool.queued:
        return
    what = "queuedProvisioning"
    if pool.scaling is None:
        yield f"{what}: needs autoscaling, the pool has a fixed size"
    else:
        if limits_of(pool.scaling, len(pool.zones)).least:
            yield f"{what}: the minimum number of nodes must be 0"
        if pool.scaling.get("locationPolicy", "ANY") != "ANY":
            yield f"{what}: locationPolicy must be ANY"
    if pool.consumes != "NO_RESERVATION":
        yield f"{what}: reservationAffinity.consumeReservationType must be NO_RESERVATION"
    if pool.spot:
        yield f"{what}: does not go with spot"


def _flex_start(pool: _Pool) -> Iterator[str]:
    duration = pool.config.get("maxRunDuration")
    if duration is not None and not re.fullmatch(r"[0-9]+s", str(duration)):
        yield f"nodeConfig.maxRunDuration: {duration!r}: write seconds, such as 604800s"
        return
    seconds = int(str(duration)[:-1]) if duration is not None else None
    if not pool.flex_start:
        return
    what = "nodeConfig.flexStart"
    if seconds is not None and not 0 < seconds <= FLEX_START_MAX_SECONDS:
        yield f"{what}: maxRunDuration {duration} is not between 1s and {FLEX_START_MAX_SECONDS}s, 7 days"
    if (pool.body.get("management") or {}).get("autoRepair", True) is not False:
        yield f"{what}: auto-repair must be off"
    if pool.scaling is None:
        yield f"{what}: needs autoscaling, the pool has a fixed size"
    if pool.consumes != "NO_RESERVATION":
        yield f"{what}: reservationAffinity.consumeReservationType must be NO_RESERVATION"
    if pool.spot:
        yield f"{what}: does not go with spot"


def _spot(pool: _Pool) -> Iterator[str]:
    if pool.spot and pool.consumes not in ("", "NO_RESERVATION"):
        yield "nodeConfig.spot: Spot VMs cannot consume reservations"


def _disks(pool: _Pool) -> Iterator[str]:
    ephemeral, block = pool.config.get("ephemeralStorageLocalSsdConfig"), pool.config.get("localNvmeSsdBlockConfig")
    if ephemeral and block:
        yield "nodeConfig: ephemeralStorageLocalSsdConfig and localNvmeSsdBlockConfig exclude each other"


def _reservation(pool: _Pool, reservations: Sequence[Reservation]) -> Iterator[str]:
    values = list(pool.affinity.get("values") or [])
    what = "nodeConfig.reservationAffinity"
    if pool.consumes != "SPECIFIC_RESERVATION":
        if values:
            yield f"{what}: {pool.consumes or 'no type'} takes no reservation name"
        return
    if len(values) != 1 or pool.affinity.get("key") != RESERVATION_KEY:
        yield f"{what}: SPECIFIC_RESERVATION takes exactly one name, under the key {RESERVATION_KEY}"
        return
    name = reservation_name(str(values[0]))
    known = [one for one in reservations if one.name == name]
    if not known:
        return
    yield from _fits_reservation(pool, name, known)


def _fits_reservation(pool: _Pool, name: str, known: Sequence[Reservation]) -> Iterator[str]:
    what = f"nodeConfig.reservationAffinity: reservation {name}"
    missing = [zone for zone in pool.zones if zone not in {one.zone for one in known}]
    if missing:
        yield f"{what} is in {', '.join(sorted(one.zone for one in known))}, not in {', '.join(missing)} of the pool"
    machine = machine_of(pool.config)
    for one in known:
        if one.machine_type != pool.machine_type:
            yield f"{what} has {one.machine_type}, the pool has {pool.machine_type}"
        elif machine is not None and one.accelerator not in (None, machine.accelerator):
            yield f"{what} has {one.accelerator}, the pool has {machine.accelerator}"
    limits = limits_of(pool.scaling, len(pool.zones)) if pool.scaling else None
    counts = [int(pool.body.get(key) or 0) * len(pool.zones) for key in ("nodeCount", "initialNodeCount")]
    wanted = max([*counts, limits.least if limits else 0])
    if not all(one.active for one in known):
        if wanted or limits is not None:
            yield f"{what} has not begun: the pool must have no nodes and no autoscaling until then"
        return
    room = sum(one.count for one in known if one.zone in pool.zones)
    if wanted > room:
        yield f"{what} has {room} machines, the pool asks for {wanted}"
