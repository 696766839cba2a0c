"""Node pools as GKE's API prints them, as entries of a fleet file.

In: the output of `gcloud container node-pools list --format yaml`, by cluster. Out: entries of `nodePools`. Source of
the fields: https://cloud.google.com/kubernetes-engine/docs/reference/rest/v1/projects.locations.clusters.nodePools.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from kueue_fleet.gke.declared_pools import EFFECTS
from kueue_fleet.gke.labels import ARCHITECTURE, GPU_RESOURCE, QUEUED
from kueue_fleet.kueue_api.problem import Problem

Data = dict[str, Any]
"""A node pool of a fleet file as plain data."""
Object = Mapping[str, Any]
"""A node pool as gcloud prints it."""

# The cluster's own pools; a fleet file has `systemPool` instead.
_SYSTEM_POOLS: Final = ("system", "default-pool")
# Google sets these itself.
_GKE_TAINTS: Final = (GPU_RESOURCE, QUEUED, ARCHITECTURE)
_GKE_LABEL: Final = re.compile(r"^(cloud\.google\.com|addon\.gke\.io)/")
_RESERVATION: Final = re.compile(
    r"(?:projects/(?P<project>[^/]+)/reservations/)?(?P<name>[^/]+)"
    r"(?:/reservationBlocks/(?P<block>[^/]+)(?:/reservationSubBlocks/(?P<sub>[^/]+))?)?"
)


def node_pool_entries(pools: Mapping[str, Sequence[Object]]) -> tuple[list[Data], list[Problem], list[str]]:
    """The entries for the pools of each cluster, what cannot be said, and notes."""
    problems: list[Problem] = []
    notes: list[str] = []
    entries: dict[str, dict[str, Data]] = {}
    for cluster, of_cluster in pools.items():
        for number, pool in enumerate(of_cluster):
            if not isinstance(pool.get("name"), str) or not isinstance(pool.get("config"), Mapping):
                problems.append(
                    Problem(
                        f"{cluster}.nodePools[{number}]",
                        "is no node pool with a name and a config",
                        "give the output of `gcloud container node-pools list --format yaml`",
                    )
                )
            elif pool["name"] in _SYSTEM_POOLS:
                notes.append(f"node pool {pool['name']} of {cluster} is not taken over; see clusters[].systemPool")
            else:
                entries.setdefault(pool["name"], {})[cluster] = _entry(pool)
    standard = [cluster for cluster, of_cluster in pools.items() if of_cluster]
    return [_merge(name, by, standard, problems) for name, by in entries.items()], problems, notes


def _merge(name: str, by_cluster: Mapping[str, Data], standard: Sequence[str], problems: list[Problem]) -> Data:
    (first, base), *others = by_cluster.items()
    different: dict[str, Data] = {}
    for cluster, other in others:
        changed = {field: value for field, value in other.items() if value != base.get(field)}
        lost = sorted(set(base) - set(other))
        if "machineType" in changed or lost:
            problems.append(
                Problem(
                    f"{cluster}.nodePool {name}.{'machineType' if 'machineType' in changed else lost[0]}",
                    f"is another than on {first}",
                    "rename one of the two pools",
                )
            )
        elif changed:
            different[cluster] = changed
    where = {} if list(by_cluster) == list(standard) else {"clusters": list(by_cluster)}
    return {"name": name, **where, **base, **({"perCluster": different} if different else {})}


def _entry(pool: Object) -> Data:
    config = pool["config"]
    entry: Data = {"machineType": config.get("machineType", "e2-medium")}
    if pool.get("locations"):
        entry["zones"] = list(pool["locations"])
    entry |= _accelerator(config) | _sizes(pool) | _disks(config)
    labels = {key: value for key, value in (config.get("labels") or {}).items() if not _GKE_LABEL.match(key)}
    taints = [
        {"key": taint["key"], "value": taint.get("value", ""), "effect": EFFECTS.get(taint["effect"], taint["effect"])}
        for taint in config.get("taints") or ()
        if taint["key"] not in _GKE_TAINTS
    ]
    entry |= {"labels": labels} if labels else {}
    entry |= {"taints": taints} if taints else {}
    if (pool.get("placementPolicy") or {}).get("type") == "COMPACT":
        entry["compactPlacement"] = True
    entry |= _upkeep(pool)
    entry["capacity"] = _capacity(pool, config)
    return entry


def _accelerator(config: Object) -> Data:
    found = config.get("accelerators") or ()
    if not found:
        return {}
    first = found[0]
    driver = (first.get("gpuDriverInstallationConfig") or {}).get("gpuDriverVersion")
    accelerator = {"type": first["acceleratorType"], "count": int(first["acceleratorCount"])}
    return {"accelerator": {**accelerator, **({"driverVersion": driver} if driver else {})}}


def _sizes(pool: Object) -> Data:
    scaling = pool.get("autoscaling") or {}
    if not scaling.get("enabled"):
        return {"nodeCount": int(pool.get("initialNodeCount", 0))}
    zones = max(1, len(pool.get("locations") or ()))
    least = scaling.get("totalMinNodeCount", int(scaling.get("minNodeCount", 0)) * zones)
    most = scaling.get("totalMaxNodeCount", int(scaling.get("maxNodeCount", 0)) * zones)
    policy = scaling.get("locationPolicy")
    sizes = {"totalMinNodeCount": int(least), "totalMaxNodeCount": int(most)}
    return {"autoscaling": {**sizes, **({"locationPolicy": policy} if policy in ("ANY", "BALANCED") else {})}}


def _disks(config: Object) -> Data:
    entry: Data = {field: config[field] for field in ("diskSizeGb", "diskType") if field in config}
    for block in ("localNvmeSsdBlockConfig", "ephemeralStorageLocalSsdConfig"):
        count = (config.get(block) or {}).get("localSsdCount")
        if count:
            entry["localSsdCount"] = int(count)
    return entry


def _upkeep(pool: Object) -> Data:
    entry: Data = {}
    management = pool.get("management") or {}
    if management:
        entry["management"] = {field: bool(management.get(field, False)) for field in ("autoRepair", "autoUpgrade")}
    upgrade = pool.get("upgradeSettings") or {}
    if upgrade.get("strategy", "SURGE") == "SURGE" and ("maxSurge" in upgrade or "maxUnavailable" in upgrade):
        entry["upgrade"] = {field: int(upgrade.get(field, 0)) for field in ("maxSurge", "maxUnavailable")}
    most = (pool.get("maxPodsConstraint") or {}).get("maxPodsPerNode")
    return {**entry, "maxPodsPerNode": int(most)} if most else entry


def _capacity(pool: Object, config: Object) -> Data:
    affinity = config.get("reservationAffinity") or {}
    queued = bool((pool.get("queuedProvisioning") or {}).get("enabled"))
    if config.get("flexStart") or queued:
        seconds = str(config.get("maxRunDuration", "604800s"))
        return {"type": "flexStart", "queuedProvisioning": queued, "maxRunDuration": seconds}
    if affinity.get("consumeReservationType") == "SPECIFIC_RESERVATION" and affinity.get("values"):
        found = _RESERVATION.fullmatch(affinity["values"][0])
        parts = found.groupdict() if found else {"name": affinity["values"][0]}
        names = {"name": "reservation", "project": "project", "block": "block", "sub": "subBlock"}
        return {"type": "reserved", **{names[key]: value for key, value in parts.items() if value}}
    return {"type": "spot" if config.get("spot") or config.get("preemptible") else "onDemand"}
