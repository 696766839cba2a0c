"""Rules about where nodes come from: Dynamic Workload Scheduler (DWS), reservations, spot, compact placement.

In: a `gcp:container/nodePool:NodePool`. Out: problems that GKE would report only at apply, or that would leave jobs
waiting for ever. Sources: https://cloud.google.com/kubernetes-engine/docs/how-to/provisioningrequest,
https://cloud.google.com/kubernetes-engine/docs/concepts/dws, GoogleCloudPlatform/cluster-toolkit@10470803
modules/compute/gke-node-pool/main.tf (preconditions).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from kueue_fleet.spec import Problem
from kueue_fleet.spec.capacity import FLEX_START_MAX_SECONDS
from kueue_fleet_policies.resource import NODE_POOL, Resource
from kueue_fleet_policies.rule import ResourceRule, Settings
from kueue_fleet_policies.values import UNKNOWN, holds_unknown, is_known, items, number

_AFFINITY: Final = "nodeConfig.reservationAffinity.consumeReservationType"
_RESERVATION_KEY: Final = "compute.googleapis.com/reservation-name"
_COMPACT_FLEX_START: Final = re.compile(r"^(a3-ultragpu-|a4-|a4x-|h4d-)")


def _queued(pool: Resource) -> bool:
    return pool.is_on("queuedProvisioning.enabled")


def _dws(pool: Resource) -> bool:
    return _queued(pool) or pool.is_on("nodeConfig.flexStart")


def _from_zero(pool: Resource, _: Settings) -> Iterator[Problem]:
    if not _queued(pool):
        return
    if pool.get("autoscaling") is None:
        yield Problem("autoscaling", "is missing on a queued pool", "set totalMinNodeCount 0 and totalMaxNodeCount")
    for path in ("autoscaling.totalMinNodeCount", "autoscaling.minNodeCount", "nodeCount", "initialNodeCount"):
        if number(pool.get(path)):
            yield Problem(
                path, f"is {number(pool.get(path)):.0f}, but a queued pool starts from nothing", "set it to 0"
            )


def _no_reservation(pool: Resource, _: Settings) -> Iterator[Problem]:
    affinity = pool.get(_AFFINITY)
    if _dws(pool) and affinity is not UNKNOWN and affinity != "NO_RESERVATION":
        said = "is missing" if affinity is None else f"is {affinity}"
        yield Problem(_AFFINITY, f"{said}, but DWS nodes come from no reservation", "set it to NO_RESERVATION")


def _dws_not_spot(pool: Resource, _: Settings) -> Iterator[Problem]:
    for path in ("nodeConfig.spot", "nodeConfig.preemptible"):
        if _dws(pool) and pool.is_on(path):
            yield Problem(path, "is true, but DWS nodes are not spot nodes", "remove it")


def _any_location(pool: Resource, _: Settings) -> Iterator[Problem]:
    policy = pool.get("autoscaling.locationPolicy")
    if _queued(pool) and is_known(policy) and pool.get("autoscaling") is not None and policy != "ANY":
        said = "is missing" if policy is None else f"is {policy}"
        yield Problem("autoscaling.locationPolicy", f"{said}, but a request is met in one zone", "set it to ANY")


def _flex_start_repair(pool: Resource, _: Settings) -> Iterator[Problem]:
    if pool.is_on("nodeConfig.flexStart") and pool.is_on("management.autoRepair"):
        yield Problem("management.autoRepair", "is true, which GKE refuses on flex-start nodes", "set it to false")


def _run_duration(pool: Resource, settings: Settings) -> Iterator[Problem]:
    path, most = "nodeConfig.maxRunDuration", settings.whole("maxSeconds")
    given = pool.get(path)
    seconds = number(given.removesuffix("s")) if isinstance(given, str) else number(given)
    if seconds is not None and seconds > most:
        yield Problem(path, f"is {seconds:.0f} s, longer than the {most} s allowed", f"set it to at most {most}s")


def _spot_reservation(pool: Resource, _: Settings) -> Iterator[Problem]:
    affinity = pool.get(_AFFINITY)
    spot = pool.is_on("nodeConfig.spot") or pool.is_on("nodeConfig.preemptible")
    if spot and not _dws(pool) and is_known(affinity) and affinity not in (None, "NO_RESERVATION"):
        yield Problem(_AFFINITY, f"is {affinity}, but spot nodes come from no reservation", "set it to NO_RESERVATION")


def _reservation_named(pool: Resource, _: Settings) -> Iterator[Problem]:
    affinity = pool.get("nodeConfig.reservationAffinity")
    kind = pool.get(_AFFINITY)
    if kind is None or holds_unknown(affinity):
        return
    key, values = pool.get("nodeConfig.reservationAffinity.key"), pool.get("nodeConfig.reservationAffinity.values")
    if kind == "SPECIFIC_RESERVATION":
        if key != _RESERVATION_KEY or len(items(values)) != 1:
            yield Problem(
                "nodeConfig.reservationAffinity",
                "is SPECIFIC_RESERVATION, but does not name one reservation",
                f"set key to {_RESERVATION_KEY} and values to the one name",
            )
    elif key or values:
        yield Problem(
            "nodeConfig.reservationAffinity",
            f"names a reservation, but consumeReservationType is {kind}",
            "set consumeReservationType to SPECIFIC_RESERVATION, or remove key and values",
        )


def _one_size(pool: Resource, _: Settings) -> Iterator[Problem]:
    if number(pool.get("nodeCount")) is not None and isinstance(pool.get("autoscaling"), dict | list):
        yield Problem(
            "nodeCount",
            "is set beside autoscaling, and each update would undo what the autoscaler did",
            "remove nodeCount or autoscaling",
        )


def _compact(pool: Resource, _: Settings) -> Iterator[Problem]:
    if pool.get("placementPolicy.type") != "COMPACT":
        return
    zones, location = pool.get("nodeLocations"), pool.get("location")
    tpu = not pool.lacks("placementPolicy.tpuTopology")
    zonal = not isinstance(location, str) or location.count("-") == 2
    if is_known(zones) and (len(zones) > 1 if zones else not zonal):
        yield Problem("nodeLocations", "is not one zone, but nodes next to each other are in one", "name one zone")
    if _queued(pool) and not tpu:
        yield Problem("placementPolicy.type", "is COMPACT on a queued pool, which GKE refuses", "remove it")
    machine = pool.get("nodeConfig.machineType")
    if (
        pool.is_on("nodeConfig.flexStart")
        and not _queued(pool)
        and isinstance(machine, str)
        and not _COMPACT_FLEX_START.match(machine)
    ):
        yield Problem(
            "placementPolicy.type",
            f"is COMPACT on a flex-start pool of {machine}, which GKE refuses",
            "remove it, or take A3 Ultra, A4 or H4D machines",
        )


def _upgrade_room(pool: Resource, _: Settings) -> Iterator[Problem]:
    surge, away = pool.get("upgradeSettings.maxSurge"), pool.get("upgradeSettings.maxUnavailable")
    if number(surge) == 0 and is_known(away) and not number(away):
        yield Problem(
            "upgradeSettings.maxSurge",
            "is 0, and so is maxUnavailable: no node could ever be replaced",
            "set one of them to 1",
        )


_PROVISIONING: Final = "https://cloud.google.com/kubernetes-engine/docs/how-to/provisioningrequest"
_DWS: Final = "https://cloud.google.com/kubernetes-engine/docs/concepts/dws"
_RESERVATIONS: Final = "https://cloud.google.com/kubernetes-engine/docs/how-to/consuming-reservations"
_GROUP: Final = "Capacity"

RULES: Final = (
    ResourceRule(
        name="dws-from-zero",
        asks="A queued pool has no nodes of its own.",
        source=_PROVISIONING,
        group=_GROUP,
        types=(NODE_POOL,),
        check=_from_zero,
    ),
    ResourceRule(
        name="dws-no-reservation",
        asks="A DWS pool takes nodes from no reservation.",
        source=_PROVISIONING,
        group=_GROUP,
        types=(NODE_POOL,),
        check=_no_reservation,
    ),
    ResourceRule(
        name="dws-not-spot",
        asks="A DWS pool has no spot nodes.",
        source=_DWS,
        group=_GROUP,
        types=(NODE_POOL,),
        check=_dws_not_spot,
    ),
    ResourceRule(
        name="dws-any-location",
        asks="A queued pool takes nodes where they are.",
        source=_PROVISIONING,
        group=_GROUP,
        types=(NODE_POOL,),
        check=_any_location,
    ),
    ResourceRule(
        name="dws-no-auto-repair",
        asks="A flex-start pool has auto-repair off.",
        source=_DWS,
        group=_GROUP,
        types=(NODE_POOL,),
        check=_flex_start_repair,
    ),
    ResourceRule(
        name="dws-run-duration",
        asks="A DWS node lives for at most seven days.",
        source=_DWS,
        group=_GROUP,
        types=(NODE_POOL,),
        check=_run_duration,
        options={
            "maxSeconds": {
                "type": "integer",
                "minimum": 1,
                "maximum": FLEX_START_MAX_SECONDS,
                "description": "Longest run that is allowed, in seconds.",
                "default": FLEX_START_MAX_SECONDS,
            }
        },
    ),
    ResourceRule(
        name="spot-no-reservation",
        asks="A spot pool takes nodes from no reservation.",
        source=_RESERVATIONS,
        group=_GROUP,
        types=(NODE_POOL,),
        check=_spot_reservation,
    ),
    ResourceRule(
        name="reservation-named",
        asks="A pool of reserved nodes names one reservation.",
        source=_RESERVATIONS,
        group=_GROUP,
        types=(NODE_POOL,),
        check=_reservation_named,
    ),
    ResourceRule(
        name="pool-one-size",
        asks="A pool has a fixed size or limits, not both.",
        source="https://cloud.google.com/kubernetes-engine/docs/concepts/cluster-autoscaler",
        group=_GROUP,
        types=(NODE_POOL,),
        check=_one_size,
    ),
    ResourceRule(
        name="pool-compact-placement",
        asks="Compact placement is used where it works.",
        source="https://cloud.google.com/kubernetes-engine/docs/how-to/compact-placement",
        group=_GROUP,
        types=(NODE_POOL,),
        check=_compact,
    ),
    ResourceRule(
        name="pool-upgradable",
        asks="A pool can be upgraded.",
        source="https://cloud.google.com/kubernetes-engine/docs/concepts/node-pool-upgrade-strategies",
        group=_GROUP,
        types=(NODE_POOL,),
        check=_upgrade_room,
    ),
)
"""The rules of this module."""
