"""A node pool of the file as Google's provider has it: for each property, the field of the file that says it.

Google's side of a fleet is rendered by the table, and the rules of GKE judge what is rendered; `import` reads a pool
that runs already back by it; and what a rule says of a property holds for the field.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final

from kueue_admission.kernel.unknown import UNKNOWN, NotKnownError
from kueue_fleet.fleet_file.model.capacity import Calendar, FlexStart, OnDemand, Reserved, Spot
from kueue_fleet.fleet_file.model.clusters import ClusterEntry
from kueue_fleet.fleet_file.model.pool_fields import Accelerator, NodePoolFields
from kueue_fleet.fleet_file.model.property_rows import (
    Row,
    field_at,
    number_of,
    properties_of,
    property_at,
    same,
    set_at,
)
from kueue_fleet.gke.accelerator_networks import cards_of
from kueue_fleet.gke.labels import QUEUED
from kueue_fleet.gke.machines import PODS_PER_NODE, MachineType, machine_type
from kueue_fleet.gke.pool import EFFECTS, RESERVATION_KEY, Pool, default_disk, read_pool
from kueue_fleet.gke.tpu_slices import asked_topology
from kueue_fleet.gke.zones import DEFAULT_ZONES

NO_GPUS: Final = {"type": "nvidia-tesla-t4", "count": 0}
"""What removes GPUs: without the property a node keeps those that it had. The type does not matter."""
_OF_GPUS: Final = {
    "driverVersion": "gpuDriverInstallationConfig.gpuDriverVersion",
    "partitionSize": "gpuPartitionSize",
    "sharing.strategy": "gpuSharingConfig.gpuSharingStrategy",
    "sharing.maxSharedClientsPerGpu": "gpuSharingConfig.maxSharedClientsPerGpu",
}
"""What the file says of GPUs beside their type and count, and what of `nodeConfig.guestAccelerators` it is."""
_EFFECTS: Final[Mapping[str, str]] = {effect: theirs for theirs, effect in EFFECTS.items()}
_RESERVATION: Final = re.compile(
    r"(?:projects/(?P<project>[^/]+)/reservations/)?(?P<reservation>[^/]+)"
    r"(?:/reservationBlocks/(?P<block>[^/]+)(?:/reservationSubBlocks/(?P<subBlock>[^/]+))?)?"
)


def _of_kubelets(field: str) -> Row[NodePoolFields]:
    """Source: https://cloud.google.com/kubernetes-engine/docs/how-to/node-system-config (GKE makes the nodes again)."""
    return same(f"nodeConfig.kubeletConfig.{field}", f"kubeletConfig.{field}", in_turn=True)


def _machine(pool: NodePoolFields) -> MachineType | None:
    return machine_type(pool.machine_type)


def _gpus(pool: NodePoolFields) -> list[dict[str, Any]]:
    """Those that the file asks for; otherwise the machine decides."""
    machine, gpu = _machine(pool), pool.accelerator
    own = machine if machine is not None and machine.gpus else None
    if gpu is None and own is None:
        return [NO_GPUS]
    gpu_fields: dict[str, Any] = {
        "type": (gpu and gpu.type) or (own and own.accelerator),
        "count": (gpu and gpu.count) or (own and own.gpus),
    }
    for field, property_ in _OF_GPUS.items():
        set_at(gpu_fields, property_, field_at(field)(gpu or Accelerator()))
    return [{name: value for name, value in gpu_fields.items() if value is not None}]


def _accelerator(gpus: Any) -> dict[str, Any] | None:
    first = gpus[0] if isinstance(gpus, list) and gpus else {}
    if not first.get("count"):
        return None
    accelerator_fields: dict[str, Any] = {"type": first["type"], "count": int(first["count"])}
    for field, property_ in _OF_GPUS.items():
        set_at(accelerator_fields, field, number_of(property_at(first, property_)))
    return accelerator_fields


def _taints(pool: NodePoolFields) -> list[dict[str, Any]] | None:
    taints = [{"key": one.key, "value": one.value, "effect": _EFFECTS[one.effect]} for one in pool.taints]
    return taints or None


def _taints_back(taints: list[Mapping[str, Any]]) -> list[dict[str, Any]] | None:
    taints_there = [
        {"key": one["key"], "value": one.get("value", ""), "effect": EFFECTS.get(one["effect"], one["effect"])}
        for one in taints
    ]
    return taints_there or None


def _disks(pool: NodePoolFields) -> list[dict[str, Any]] | None:
    return [disk.wire() for disk in pool.secondary_boot_disks] or None


def _disks_back(disks: list[Mapping[str, Any]]) -> list[dict[str, Any]] | None:
    """GKE may report a disk of data as one whose mode is not specified."""
    return [{key: value for key, value in disk.items() if value != "MODE_UNSPECIFIED"} for disk in disks] or None


def _networks(pool: NodePoolFields) -> list[dict[str, Any]] | None:
    """Those that the fleet makes have their names on a cluster."""
    networks_entry = pool.accelerator_networks
    if networks_entry is None:
        return None
    unknown_network = {"network": UNKNOWN, "subnetwork": UNKNOWN}
    return [network.wire() for network in networks_entry.existing] or [
        unknown_network for _ in cards_of(pool.machine_type)
    ]


def _networks_back(networks: list[Mapping[str, Any]]) -> dict[str, Any] | None:
    return {"existing": [dict(network) for network in networks]} if networks else None


def _labels(pool: NodePoolFields) -> dict[str, str]:
    """An empty map removes the last label; none at all would keep it. GKE does not set the label of queued nodes."""
    return {**({QUEUED: "true"} if _queued(pool) else {}), **pool.labels}


def _labels_back(labels: Mapping[str, str]) -> dict[str, str] | None:
    return {key: value for key, value in labels.items() if key != QUEUED} or None


def _topology(pool: NodePoolFields) -> str | None:
    return asked_topology(pool.machine_type, pool.tpu_topology)


def _compact(pool: NodePoolFields) -> str | None:
    """Nodes of a multi-host TPU slice stand together too."""
    return "COMPACT" if pool.compact_placement or _topology(pool) is not None else None


def _queued(pool: NodePoolFields) -> bool | None:
    return (isinstance(pool.capacity, FlexStart) and pool.capacity.queued_provisioning) or None


def _is(kind: type) -> Callable[[NodePoolFields], bool | None]:
    return lambda pool: isinstance(pool.capacity, kind) or None


def _run_duration(pool: NodePoolFields) -> str | None:
    """In seconds; what is not whole seconds stays as it is written, and is refused."""
    if not isinstance(pool.capacity, FlexStart):
        return None
    seconds, rest = divmod(pool.capacity.max_run_duration.nanoseconds, 10**9)
    return str(pool.capacity.max_run_duration) if rest else f"{seconds}s"


def _reservation_type(pool: NodePoolFields) -> str | None:
    if isinstance(pool.capacity, Reserved | Calendar):
        return "SPECIFIC_RESERVATION"
    if isinstance(pool.capacity, OnDemand) and pool.capacity.affinity == "Any":
        return "ANY_RESERVATION"
    return "NO_RESERVATION" if isinstance(pool.capacity, FlexStart | Spot) else None


def _reservation(pool: NodePoolFields) -> list[str] | None:
    return [reservation_path(pool.capacity)] if isinstance(pool.capacity, Reserved | Calendar) else None


def reservation_path(capacity: Reserved | Calendar) -> str:
    """The reservation as GKE wants it: a name; with the project of a shared one, and with block and sub-block.

    Source: https://cloud.google.com/kubernetes-engine/docs/how-to/consuming-reservations.
    """
    if isinstance(capacity, Calendar):
        return capacity.reservation
    parts = (
        ("projects/{}/reservations/", capacity.project),
        ("{}", capacity.reservation),
        ("/reservationBlocks/{}", capacity.block),
        ("/reservationSubBlocks/{}", capacity.sub_block),
    )
    return "".join(text.format(name) for text, name in parts if name is not None)


ROWS: Final[tuple[Row[NodePoolFields], ...]] = (
    same("name"),
    Row("nodeLocations", "zones", lambda pool: list(pool.zones) or None),
    same("nodeCount"),
    same("autoscaling.totalMinNodeCount"),
    same("autoscaling.totalMaxNodeCount"),
    same("autoscaling.locationPolicy"),
    same("initialNodeCount"),
    Row("management.autoRepair", "management.autoRepair", lambda pool: pool.repairs),
    same("management.autoUpgrade"),
    # Nothing for flex-start, whose short-lived upgrades are GKE's own: the provider has no word for that strategy, and
    # any settings would always differ from GKE's. Source:
    # https://cloud.google.com/kubernetes-engine/docs/concepts/node-pool-upgrade-strategies.
    Row("upgradeSettings.strategy", "upgrade", lambda pool: pool.upgrades and "SURGE", lambda strategy: None),
    Row("upgradeSettings.maxSurge", "upgrade.maxSurge", lambda pool: pool.upgrades and pool.upgrades.max_surge),
    Row(
        "upgradeSettings.maxUnavailable",
        "upgrade.maxUnavailable",
        lambda pool: pool.upgrades and pool.upgrades.max_unavailable,
    ),
    # Left out, the provider would keep whatever the pool has.
    Row("maxPodsPerNode", "maxPodsPerNode", lambda pool: pool.max_pods_per_node or PODS_PER_NODE, int),
    same("networkConfig.acceleratorNetworkProfile", "acceleratorNetworkProfile"),
    Row("networkConfig.additionalNodeNetworkConfigs", "acceleratorNetworks", _networks, _networks_back),
    same("nodeConfig.machineType", "machineType", in_turn=True),
    same("nodeConfig.diskSizeGb", "diskSizeGb", in_turn=True),
    Row(
        "nodeConfig.diskType",
        "diskType",
        lambda pool: pool.disk_type or default_disk(pool.machine_type),
        in_turn=True,
    ),
    Row("nodeConfig.guestAccelerators", "accelerator", _gpus, _accelerator, is_first=True),
    # GKE reports the disks that come with a machine too: left out, they would replace the pool on every update.
    Row(
        "nodeConfig.ephemeralStorageLocalSsdConfig.localSsdCount",
        "localSsdCount",
        lambda pool: pool.local_ssd_count or ((machine := _machine(pool)) and machine.local_ssds) or None,
        int,
    ),
    Row("nodeConfig.secondaryBootDisks", "secondaryBootDisks", _disks, _disks_back),
    Row("nodeConfig.fastSocket.enabled", "fastSocket", lambda pool: pool.fast_socket or None),
    _of_kubelets("cpuManagerPolicy"),
    _of_kubelets("topologyManager.policy"),
    _of_kubelets("topologyManager.scope"),
    _of_kubelets("memoryManager.policy"),
    _of_kubelets("podPidsLimit"),
    Row("nodeConfig.labels", "labels", _labels, _labels_back),
    Row("nodeConfig.taints", "taints", _taints, _taints_back),
    Row("placementPolicy.type", "compactPlacement", _compact, lambda type_: type_ == "COMPACT" or None),
    Row("placementPolicy.tpuTopology", "tpuTopology", _topology),
    Row("queuedProvisioning.enabled", "capacity.queuedProvisioning", _queued),
    Row("nodeConfig.flexStart", "capacity", _is(FlexStart)),
    Row("nodeConfig.maxRunDuration", "capacity.maxRunDuration", _run_duration),
    Row("nodeConfig.spot", "capacity", _is(Spot)),
    Row("nodeConfig.reservationAffinity.consumeReservationType", "capacity", _reservation_type),
    Row("nodeConfig.reservationAffinity.key", "capacity", lambda pool: _reservation(pool) and RESERVATION_KEY),
    Row("nodeConfig.reservationAffinity.values", "capacity", _reservation),
)
"""Every property that the file says, in the provider's own order."""


def pool_properties(pool: NodePoolFields) -> dict[str, Any]:
    """What the file says of a pool, as properties; `UNKNOWN` where a field of the file could not be read."""
    return properties_of(ROWS, pool)


def pool_view(pool: NodePoolFields, cluster: ClusterEntry | None = None) -> Pool:
    """What GKE would be asked for, on `cluster`; without one, what depends on it is not known.

    Nor is what could not be read of the file.
    """
    of_cluster: dict[str, Any] = {}
    if cluster is not None:
        with suppress(NotKnownError):
            of_cluster["region"] = cluster.region
        with suppress(NotKnownError):
            of_cluster |= {"zones": cluster.zones, "zone_count": len(cluster.zones) or DEFAULT_ZONES}
        with suppress(NotKnownError):
            of_cluster["image_streaming"] = cluster.image_streaming
    view = read_pool(pool_properties(pool), release_channel=True, **of_cluster)
    with suppress(NotKnownError):
        if isinstance(pool.capacity, FlexStart):
            return view.but(max_run_duration=str(pool.capacity.max_run_duration))
    return view


def file_path(property_: str) -> str:
    """The field of the file that says a property, or part of it."""
    for row in ROWS:
        if property_ == row.property or property_.startswith((f"{row.property}.", f"{row.property}[")):
            rest = property_.removeprefix(row.property)
            return row.field + (_of_first(rest.partition("]")[2]) if row.is_first else rest)
    return next(row.field for row in ROWS if row.property.startswith(f"{property_}.")).partition(".")[0]


def _of_first(rest: str) -> str:
    words = {f".{property_}": f".{field}" for field, property_ in _OF_GPUS.items()}
    return words.get(rest, rest)


def pool_fields(properties: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of the file that say these properties; what the file has no field for is left out."""
    fields: dict[str, Any] = {}
    for row in ROWS:
        value = property_at(properties, row.property)
        back = None if value is None else row.back(value)
        if not row.field.startswith("capacity"):
            set_at(fields, row.field, back)
    if "tpuTopology" in fields:
        fields.pop("compactPlacement", None)
    return {**fields, "capacity": _capacity(properties)}


def _capacity(properties: Mapping[str, Any]) -> dict[str, Any]:
    is_queued = bool(property_at(properties, "queuedProvisioning.enabled"))
    config = properties.get("nodeConfig") or {}
    if config.get("flexStart") or is_queued:
        longest = str(config.get("maxRunDuration") or "604800s")
        return {"type": "flexStart", "queuedProvisioning": is_queued, "maxRunDuration": longest}
    affinity = config.get("reservationAffinity") or {}
    if affinity.get("consumeReservationType") == "SPECIFIC_RESERVATION" and affinity.get("values"):
        match = _RESERVATION.fullmatch(affinity["values"][0])
        parts = match.groupdict() if match else {"reservation": affinity["values"][0]}
        return {"type": "reserved", **{key: value for key, value in parts.items() if value}}
    if config.get("spot") or config.get("preemptible"):
        return {"type": "spot"}
    open_ones = affinity.get("consumeReservationType") == "ANY_RESERVATION"
    return {"type": "onDemand", **({"affinity": "Any"} if open_ones else {})}
