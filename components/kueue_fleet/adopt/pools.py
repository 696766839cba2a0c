"""Node pools as GKE's API prints them, as entries of a fleet file.

Source of the fields:
https://cloud.google.com/kubernetes-engine/docs/reference/rest/v1/projects.locations.clusters.nodePools.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from kueue_admission.forms.problem import Problem
from kueue_fleet.adopt.live_objects import Data, Object
from kueue_fleet.adopt.quotas import once
from kueue_fleet.fleet_file.fleet_rules import IMPORT_DIFFERENCE, IMPORT_FORM
from kueue_fleet.gke.declared_pools import EFFECTS
from kueue_fleet.gke.labels import ARCHITECTURE, GPU_RESOURCE, QUEUED, TPU_RESOURCE
from kueue_fleet.gke.zones import region_of

_FIX: Final = "give the output of `gcloud container node-pools list --format yaml`"
# The cluster's own pools; a fleet file has `systemPool` instead.
_SYSTEM_POOLS: Final = ("system", "default-pool")
_SIZES: Final = ("nodeCount", "autoscaling", "initialNodeCount")
_OF_CONFIG: Final = """
machineType diskSizeGb diskType accelerators labels taints reservationAffinity spot preemptible flexStart maxRunDuration
ephemeralStorageLocalSsdConfig imageType

oauthScopes serviceAccount metadata shieldedInstanceConfig workloadMetadataConfig gvnic gcfsConfig resourceLabels
bootDisk effectiveCgroupMode loggingConfig windowsNodeConfig kubeletConfig bootDiskKmsKey containerdConfig
"""
"""Fields of a pool's config that the file has; then those that a fleet sets by itself, or that GKE only reports."""
_OF_POOL: Final = """
name config initialNodeCount locations autoscaling management maxPodsConstraint placementPolicy queuedProvisioning
upgradeSettings

conditions etag instanceGroupUrls networkConfig podIpv4CidrSize selfLink status statusMessage updateInfo version
"""
"""The same of the pool itself."""
# Google sets these itself.
_GKE_TAINTS: Final = (GPU_RESOURCE, TPU_RESOURCE, QUEUED, ARCHITECTURE)
_GKE_LABEL: Final = re.compile(r"^(cloud\.google\.com|addon\.gke\.io)/")
_RESERVATION: Final = re.compile(
    r"(?:projects/(?P<project>[^/]+)/reservations/)?(?P<name>[^/]+)"
    r"(?:/reservationBlocks/(?P<block>[^/]+)(?:/reservationSubBlocks/(?P<sub>[^/]+))?)?"
)


def node_pool_entries(
    pools: Mapping[str, Sequence[Object]], manager: str | None = None, of_flavors: Collection[str] = ()
) -> tuple[list[Data], list[Problem], list[str]]:
    """The entries for the pools of each cluster, what cannot be said, and notes on what is left out.

    A cluster's own pool that is one `of_flavors` has jobs of queues, and an entry.
    """
    problems: list[Problem] = []
    notes: list[str] = []
    entries: dict[str, dict[str, Data]] = {}
    for cluster, of_cluster in pools.items():
        for number, pool in enumerate(of_cluster):
            of_gke = isinstance(pool, Mapping) and isinstance(pool.get("name"), str)
            if not of_gke or not isinstance(pool.get("config"), Mapping):
                wrong = "is not a node pool with a name and a config"
                problems.append(IMPORT_FORM.at(f"{cluster}.nodePools[{number}]", wrong, _FIX))
                continue
            subject = f"node pool {pool['name']} of {cluster}"
            try:
                elsewhere = _made_elsewhere(pool, of_flavors, of_manager=cluster == manager)
                if elsewhere is not None:
                    notes.append(f"{subject} is left out: {elsewhere}")
                    continue
                entry, texts = _entry(pool), _left_out(pool)
            except (AttributeError, KeyError, TypeError, ValueError):  # Fields of other types than GKE's.
                problems.append(IMPORT_FORM.at(f"{cluster}.nodePools[{pool['name']}]", "is malformed", _FIX))
            else:
                entries.setdefault(pool["name"], {})[cluster] = entry
                notes += [f"{subject}: {text}" for text in texts]
    standard = [cluster for cluster, of_cluster in pools.items() if of_cluster and cluster != manager]
    return [_merge(name, by, standard, problems) for name, by in entries.items()], problems, notes


def region_of_pools(pools: Sequence[Object]) -> str | None:
    """The region where all zones of these pools are; None where none or several are named."""
    zones = {str(zone) for pool in pools if isinstance(pool, Mapping) for zone in pool.get("locations") or ()}
    regions = {region_of(zone) for zone in zones}
    return regions.pop() if len(regions) == 1 else None


def _made_elsewhere(pool: Object, of_flavors: Collection[str], *, of_manager: bool) -> str | None:
    """Why a pool has no entry, and what the file has in its place; None for the others."""
    if of_manager:
        return "a manager runs no jobs; see clusters[].systemPool"
    if (pool.get("autoscaling") or {}).get("autoprovisioned"):
        return "node auto-provisioning made it; see clusters[].nodeAutoProvisioning"
    own = pool["name"] in _SYSTEM_POOLS and pool["name"] not in of_flavors
    return "it is the cluster's own; see clusters[].systemPool" if own else None


def _merge(name: str, by_cluster: Mapping[str, Data], standard: Sequence[str], problems: list[Problem]) -> Data:
    (first, base), *others = by_cluster.items()
    for cluster, other in others:
        if other["machineType"] != base["machineType"]:
            problems.append(
                IMPORT_DIFFERENCE.at(
                    f"{cluster}.nodePool {name}.machineType",
                    f"{other['machineType']}, but {base['machineType']} on {first}",
                    "rename one of the two pools",
                )
            )
    where = {} if list(by_cluster) == list(standard) else {"clusters": list(by_cluster)}
    return {"name": name, **where, **once(by_cluster, _SIZES)}


def _left_out(pool: Object) -> list[str]:
    """What of a pool a fleet file has no field for, or says otherwise."""
    config = pool["config"]
    fields = [f"config.{name}" for name, value in config.items() if value and name not in _OF_CONFIG.split()]
    fields += [name for name, value in pool.items() if value and name not in _OF_POOL.split()]
    first, *more = config.get("accelerators") or [{}]
    fields += [f"config.accelerators[0].{name}" for name in ("gpuSharingConfig", "gpuPartitionSize") if first.get(name)]
    fields += [f"config.accelerators[{number}]" for number in range(1, len(more) + 1)]
    found = [f"{', '.join(fields)} left out: a fleet file has no field for it"] if fields else []
    if config.get("imageType", "COS_CONTAINERD") != "COS_CONTAINERD":
        found.append(f"image {config['imageType']} becomes COS_CONTAINERD")
    if config.get("preemptible"):
        found.append("preemptible nodes become Spot nodes")
    if (pool.get("upgradeSettings") or {}).get("strategy", "SURGE") not in ("SURGE", "SHORT_LIVED"):
        found.append(f"upgrades {pool['upgradeSettings']['strategy']} become SURGE")
    if (config.get("reservationAffinity") or {}).get("consumeReservationType") == "ANY_RESERVATION":
        found.append("it may take nodes of any reservation, and will take none")
    return found


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
    placement = pool.get("placementPolicy") or {}
    if placement.get("tpuTopology"):
        entry["tpuTopology"] = placement["tpuTopology"]
    elif placement.get("type") == "COMPACT":
        entry["compactPlacement"] = True
    profile = (pool.get("networkConfig") or {}).get("acceleratorNetworkProfile")
    entry |= {"acceleratorNetworkProfile": profile} if profile else {}
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
    limits: Data = {"totalMinNodeCount": int(least), "totalMaxNodeCount": int(most)}
    if policy in ("ANY", "BALANCED"):
        limits["locationPolicy"] = policy
    initial = int(pool.get("initialNodeCount", 0))
    # It was of use when the pool was made; the limits may have changed since.
    within = int(least) <= initial * zones <= int(most)
    return {"autoscaling": limits, **({"initialNodeCount": initial} if initial and within else {})}


def _disks(config: Object) -> Data:
    entry: Data = {field: config[field] for field in ("diskSizeGb", "diskType") if field in config}
    count = (config.get("ephemeralStorageLocalSsdConfig") or {}).get("localSsdCount")
    return {**entry, "localSsdCount": int(count)} if count else entry


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
