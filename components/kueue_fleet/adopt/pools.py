"""Node pools as GKE's API prints them, as entries of a fleet file.

Source of the fields:
https://cloud.google.com/kubernetes-engine/docs/reference/rest/v1/projects.locations.clusters.nodePools.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

from kueue_admission.kernel.problem import Problem
from kueue_fleet.adopt.google_cloud import pool_state
from kueue_fleet.adopt.live_objects import Data, Object
from kueue_fleet.adopt.quotas import once
from kueue_fleet.fleet_file.check.google_cloud import OWN_LABELS
from kueue_fleet.fleet_file.model.pool_properties import ROWS, pool_fields
from kueue_fleet.fleet_file.model.property_rows import property_at
from kueue_fleet.fleet_file.rules.commands import IMPORT_DIFFERENCE, IMPORT_FORM
from kueue_fleet.gke.labels import ARCHITECTURE, GPU_RESOURCE, QUEUED, TPU_RESOURCE
from kueue_fleet.gke.machines import DEFAULT_MACHINE_TYPE
from kueue_fleet.gke.zones import region_of

_FIX: Final = "give the output of `gcloud container node-pools list --format yaml`"
# The cluster's own pools; a fleet file has `systemPool` instead.
_SYSTEM_POOLS: Final = ("system", "default-pool")
_SIZES: Final = ("nodeCount", "autoscaling", "initialNodeCount")
_OF_CONFIG: Final = """
oauthScopes serviceAccount metadata shieldedInstanceConfig workloadMetadataConfig gvnic gcfsConfig resourceLabels
bootDisk effectiveCgroupMode loggingConfig kubeletConfig bootDiskKmsKey containerdConfig imageType
preemptible accelerators
"""
"""Fields of a pool's config that a fleet sets by itself, that GKE only reports, or that have another name here."""
_OF_POOL: Final = """
config locations maxPodsConstraint
conditions etag instanceGroupUrls networkConfig podIpv4CidrSize selfLink status statusMessage updateInfo version
"""
"""The same of the pool itself."""
_PROPERTIES: Final = {row.property for row in ROWS}
_BLOCKS: Final = {
    property_path[: at.start()] for property_path in _PROPERTIES for at in re.finditer(r"\.", property_path)
}
_REPORTED: Final = re.compile(
    r"autoscaling\.(enabled|autoprovisioned|m..NodeCount)$|management\.upgradeOptions$|upgradeSettings\.blueGreenSettings$"
    r"|networkConfig\.(podRange|podIpv4\w+|enablePrivateNodes|createPodRange|subnetwork|networkTierConfig)$"
    r"|nodeConfig\.kubeletConfig\.insecureKubeletReadonlyPortEnabled$|nodeConfig\.gcfsConfig"
)
"""Properties in such blocks that GKE reports, or that a fleet sets or says in another way."""
_LEGACY_ENDPOINTS: Final = "disable-legacy-endpoints"
# Google sets these itself.
_GKE_TAINTS: Final = (GPU_RESOURCE, TPU_RESOURCE, QUEUED, ARCHITECTURE)
_GKE_LABEL: Final = re.compile(r"^(cloud\.google\.com|addon\.gke\.io)/")


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


def leave_to_channel(pool: Data) -> list[str]:
    """Take out of an entry that its pool is not upgraded or repaired, which GKE refuses; notes on that."""
    notes: list[str] = []
    for fields in (pool, *pool.get("perCluster", {}).values()):
        management = fields.get("management") or {}
        # Nodes of flex-start cannot be repaired.
        flex_start = {**pool, **fields}.get("capacity", {}).get("type") == "flexStart"
        for name, done in {"autoUpgrade": "upgrades", **({} if flex_start else {"autoRepair": "repairs"})}.items():
            if management.get(name) is False:
                del management[name]
                why = f"clusters of a fleet are on a release channel, which {done} their nodes"
                notes.append(f"node pool {pool['name']}: management.{name} false is left out: {why}")
    return notes


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
    """The properties of a pool for which a fleet file has no field, or another value."""
    config = pool["config"]
    known_parts = {
        *_OF_CONFIG.split(),
        *_OF_POOL.split(),
        *(part for row in ROWS for part in row.property.split(".")[:2]),
    }
    fields = [f"config.{name}" for name, value in config.items() if value and name not in known_parts]
    fields += [name for name, value in pool.items() if value and name not in known_parts]
    fields += [f"config.accelerators[{number}]" for number in range(1, len(config.get("accelerators") or ()))]
    fields += [*_inside(pool_state(pool)), *_of_owner(config)]
    losses = [f"{', '.join(fields)} left out: a fleet file has no field for it"] if fields else []
    if config.get("imageType", "COS_CONTAINERD") != "COS_CONTAINERD":
        losses.append(f"image {config['imageType']} becomes COS_CONTAINERD")
    if config.get("preemptible"):
        losses.append("preemptible nodes become Spot nodes")
    if (pool.get("upgradeSettings") or {}).get("strategy", "SURGE") not in ("SURGE", "SHORT_LIVED"):
        losses.append(f"upgrades {pool['upgradeSettings']['strategy']} become SURGE")
    affinity = (config.get("reservationAffinity") or {}).get("consumeReservationType")
    if affinity == "ANY_RESERVATION" and (config.get("spot") or config.get("preemptible")):
        losses.append("it may take nodes of any reservation, and will take none")
    return losses


def _inside(block: Object, path: str = "") -> Iterator[str]:
    """What a block holds for which a fleet file has no field, though it has some for others in the block."""
    for key, value in block.items():
        here = f"{path}{key}"
        if here in _BLOCKS and isinstance(value, Mapping):
            yield from _inside(value, f"{here}.")
        elif path not in ("", "nodeConfig.") and value and here not in _PROPERTIES and not _REPORTED.match(here):
            yield here.replace("nodeConfig.", "config.")


def _of_owner(config: Object) -> Iterator[str]:
    """Metadata, labels of the bill, settings of logs and of containerd that are neither GKE's nor the fleet's."""
    yield from (f"config.metadata[{key}]" for key in config.get("metadata") or () if key != _LEGACY_ENDPOINTS)
    yield from (f"config.resourceLabels[{key}]" for key in config.get("resourceLabels") or () if not _is_known(key))
    if (property_at(config, "loggingConfig.variantConfig.variant") or "DEFAULT") != "DEFAULT":
        yield "config.loggingConfig"
    if any((config.get("containerdConfig") or {}).values()):
        yield "config.containerdConfig"
    yield from (f"config.bootDisk.{key}" for key in config.get("bootDisk") or () if key.startswith("provisioned"))


def _is_known(label: str) -> bool:
    return label.startswith("goog-") or label in OWN_LABELS


def _entry(pool: Object) -> Data:
    state = pool_state(pool)
    config = state["nodeConfig"]
    labels = (config.get("labels") or {}).items()
    config["labels"] = {key: value for key, value in labels if not _GKE_LABEL.match(key)}
    config["taints"] = [taint for taint in config.get("taints") or () if taint["key"] not in _GKE_TAINTS]
    if management := state.get("management"):
        state["management"] = {name: bool(management.get(name)) for name in ("autoRepair", "autoUpgrade")}
    upgrade = state.pop("upgradeSettings", None) or {}
    if upgrade.get("strategy", "SURGE") == "SURGE" and ("maxSurge" in upgrade or "maxUnavailable" in upgrade):
        state["upgradeSettings"] = {name: int(upgrade.get(name, 0)) for name in ("maxSurge", "maxUnavailable")}
    return {"machineType": DEFAULT_MACHINE_TYPE, **pool_fields({**state, **_sizes(state)})}


def _sizes(state: Object) -> Data:
    """How many nodes there are, as a fleet would ask for it."""
    initial, zones = int(state.get("initialNodeCount", 0)), max(1, len(state.get("nodeLocations") or ()))
    scaling = state.get("autoscaling")
    if not scaling:
        return {"nodeCount": initial, "initialNodeCount": None}
    least = int(scaling.get("totalMinNodeCount", int(scaling.get("minNodeCount", 0)) * zones))
    most = int(scaling.get("totalMaxNodeCount", int(scaling.get("maxNodeCount", 0)) * zones))
    policy = scaling.get("locationPolicy")
    limits = {"totalMinNodeCount": least, "totalMaxNodeCount": most}
    # It was of use when the pool was made; the limits may have changed since.
    within = least <= initial * zones <= most
    return {
        "autoscaling": {**limits, "locationPolicy": policy if policy in ("ANY", "BALANCED") else None},
        "initialNodeCount": (initial or None) if within else None,
    }
