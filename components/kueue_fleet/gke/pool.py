"""The one view of a node pool: what GKE is asked for, read from the properties of the resource.

The check of a fleet file, the rehearsal, the policies, preflight and the costs all look at pools through `Pool`. A fact
is one line of the class: its name, the property that it is read from, how it is read, and what holds where a pool does
not say it: the default of the provider (terraform-provider-google 8) or of GKE.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any, Final

from kueue_admission.kernel.if_known import if_known
from kueue_admission.kernel.unknown import UNKNOWN, NotKnownError, Unknown, is_known
from kueue_fleet.gke.gpu_sharing import PROPERTIES, WHOLE, GpuSharing
from kueue_fleet.gke.labels import NodeTaint
from kueue_fleet.gke.machines import (
    BOOT_DISK_GB,
    DEFAULT_MACHINE_TYPE,
    HYPERDISK_ONLY,
    PODS_PER_NODE,
    MachineType,
    machine_type,
    with_accelerator,
)
from kueue_fleet.gke.tpu_slices import WORKLOAD_POLICY_TPU, topology_of_nodes

RESERVATION_KEY: Final = "compute.googleapis.com/reservation-name"
"""Key of the affinity to a reservation, as Compute Engine has it."""
EFFECTS: Final[Mapping[str, str]] = {
    "NO_SCHEDULE": "NoSchedule",
    "PREFER_NO_SCHEDULE": "PreferNoSchedule",
    "NO_EXECUTE": "NoExecute",
}
"""Effects of taints in Google's words, and in those of Kubernetes."""


@dataclass(frozen=True, slots=True)
class Gpus:
    """GPUs that a pool asks for on each node; None for what it leaves to the machine type."""

    type: str | None = None
    count: int | None = None
    sharing: GpuSharing = WHOLE


class _Inputs:
    """The properties of a pool, of which some may not be known."""

    def __init__(self, properties: Mapping[str, Any]) -> None:
        self._properties = properties

    def get(self, path: str) -> Any:
        """The value at a dotted path; None where there is none. Raises NotKnownError."""
        value: Any = self._properties
        for key in path.split("."):
            if isinstance(value, list):
                # Pulumi has some objects of Terraform that occur once as lists.
                value = _certain(value[0]) if value else None
            if not isinstance(value, Mapping):
                return None
            value = _certain(value.get(key))
        return value

    def items(self, path: str) -> list[Any]:
        """Items of a list, all of whose parts are known; of a single object, itself."""
        value = self.get(path)
        values = value if isinstance(value, list) else [] if value is None else [value]
        for item in values:
            _certain(item)
            for part in item.values() if isinstance(item, dict) else ():
                _certain(part)
        return values


_Read = Callable[[_Inputs, str], Any]


def _certain(value: Any) -> Any:
    if value is UNKNOWN:
        raise NotKnownError
    return value


def _as_text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def _as_whole(value: Any) -> int | None:
    try:
        return None if value is None or isinstance(value, bool) else int(float(value))
    except (TypeError, ValueError, OverflowError):
        return None


def _text(inputs: _Inputs, path: str) -> str | None:
    return _as_text(inputs.get(path))


def _flag(inputs: _Inputs, path: str) -> bool | None:
    value = inputs.get(path)
    return None if value is None else str(value).lower() == "true"


def _whole(inputs: _Inputs, path: str) -> int | None:
    return _as_whole(inputs.get(path))


def _texts(inputs: _Inputs, path: str) -> tuple[str, ...]:
    return tuple(map(str, inputs.items(path)))


def _either(read: _Read, other: str) -> _Read:
    """The same from the path `other` where there is nothing at the first."""
    return lambda given, path: read(given, path) or read(given, other)


def _gpus(inputs: _Inputs, path: str) -> tuple[Gpus, ...]:
    blocks = [one for one in inputs.items(path) if isinstance(one, dict)]
    gpu_blocks = (
        Gpus(_as_text(one.get("type")), _as_whole(one.get("count")), _sharing(_Inputs(one))) for one in blocks
    )
    # The provider asks GKE for none where there are 0.
    return tuple(gpus for gpus in gpu_blocks if gpus.count != 0)


def _sharing(gpus: _Inputs) -> GpuSharing:
    size, strategy, clients = PROPERTIES.values()
    return GpuSharing(_text(gpus, size), _text(gpus, strategy), _whole(gpus, clients))


def _taints(inputs: _Inputs, path: str) -> tuple[NodeTaint, ...]:
    blocks = [one for one in inputs.items(path) if isinstance(one, dict)]
    parts = ((str(one.get("key")), str(one.get("value") or ""), str(one.get("effect"))) for one in blocks)
    return tuple(NodeTaint(key, value, EFFECTS.get(effect, effect)) for key, value, effect in parts)


def _labels(inputs: _Inputs, path: str) -> Mapping[str, str | Unknown]:
    """By key; a value of a key that is known may still be `UNKNOWN`."""
    labels = inputs.get(path)
    return {str(key): value for key, value in labels.items()} if isinstance(labels, Mapping) else {}


def _reservation_type(inputs: _Inputs, path: str) -> str | None:
    kind = _text(inputs, path)
    return None if kind == "UNSPECIFIED" else kind


def _tpu_topology(inputs: _Inputs, path: str) -> str | None:
    policy, machine = _text(inputs, "placementPolicy.policyName"), _text(inputs, "nodeConfig.machineType") or ""
    if policy is not None and machine.startswith(WORKLOAD_POLICY_TPU):
        raise NotKnownError  # The workload policy has it, a resource of its own.
    return _text(inputs, path)


def _seconds(inputs: _Inputs, path: str) -> int | None:
    text = _text(inputs, path) or ""
    return int(text[:-1]) if re.fullmatch(r"[0-9]+s", text) else None


def _images(inputs: _Inputs, path: str) -> tuple[str, ...]:
    return tuple(str(one.get("diskImage")) for one in inputs.items(path) if isinstance(one, dict))


def _number(inputs: _Inputs, path: str) -> int | None:
    """How many there are, whether each is known or not."""
    number = inputs.get(path)
    return len(number) or None if isinstance(number, list) else None


def _block_ssds(inputs: _Inputs, path: str) -> int:
    return sum(_whole(inputs, count_path) or 0 for count_path in (path, "nodeConfig.localSsdCount"))


def _is(value: str) -> _Read:
    return lambda given, path: _text(given, path) == value


def _is_there(inputs: _Inputs, path: str) -> bool:
    return inputs.get(path) is not None


def _fact(path: str, read: _Read, default: Any = None) -> Any:
    return field(default_factory=lambda: default, metadata={"path": path, "read": read})


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class Pool:
    """A node pool as GKE is asked for it.

    Asking for a fact that is not known yet raises NotKnownError.
    """

    name: str = _fact("name", _text, "")
    machine_type: str = _fact("nodeConfig.machineType", _text, DEFAULT_MACHINE_TYPE)
    gpus: tuple[Gpus, ...] = _fact("nodeConfig.guestAccelerators", _gpus, ())
    driver_version: str = _fact(
        "nodeConfig.guestAccelerators.gpuDriverInstallationConfig.gpuDriverVersion", _text, "DEFAULT"
    )
    """DEFAULT, LATEST or INSTALLATION_DISABLED."""
    region: str = ""
    """The cluster's region."""
    zones: tuple[str, ...] = _fact("nodeLocations", _texts, ())
    """Zones of the nodes; empty where GKE chooses them."""
    zone_count: int = 0
    """In how many zones nodes are, GKE's choice included."""
    node_count: int | None = _fact("nodeCount", _whole)
    """Nodes in each zone, fixed."""
    initial_node_count: int | None = _fact("initialNodeCount", _whole)
    """Nodes in each zone at the start."""
    autoscaling: bool = _fact("autoscaling", _is_there, False)
    limits_in_total: bool = False
    """Whether autoscaling has limits for all zones together."""
    limits_by_zone: bool = False
    """Whether autoscaling has limits for each zone."""
    least_nodes: int = 0
    """Autoscaling's minimum, in all zones together."""
    most_nodes: int = 0
    """Autoscaling's maximum, in all zones together."""
    location_policy: str | None = _fact("autoscaling.locationPolicy", _text)
    """ANY or BALANCED; None: GKE's choice."""
    queued: bool = _fact("queuedProvisioning.enabled", _flag, False)
    """Whether nodes come only for ProvisioningRequests."""
    flex_start: bool = _fact("nodeConfig.flexStart", _flag, False)
    spot: bool = _fact("nodeConfig.spot", _either(_flag, "nodeConfig.preemptible"), False)
    """Whether nodes are Spot VMs, or preemptible ones."""
    max_run_duration: str | None = _fact("nodeConfig.maxRunDuration", _text)
    """How long a node lives, as it is written."""
    max_run_seconds: int | None = _fact("nodeConfig.maxRunDuration", _seconds)
    """The same in seconds; None where that is not whole seconds."""
    reservation_type: str | None = _fact("nodeConfig.reservationAffinity.consumeReservationType", _reservation_type)
    """NO_RESERVATION, ANY_RESERVATION, SPECIFIC_RESERVATION; None: whatever Compute Engine does."""
    reservation_key: str | None = _fact("nodeConfig.reservationAffinity.key", _text)
    reservations: tuple[str, ...] = _fact("nodeConfig.reservationAffinity.values", _texts, ())
    compact: bool = _fact("placementPolicy.type", _is("COMPACT"), False)
    network_profile: str | None = _fact("networkConfig.acceleratorNetworkProfile", _text)
    """How GKE makes the networks of the accelerators; None: it makes none."""
    own_networks: int | None = _fact("networkConfig.additionalNodeNetworkConfigs", _number)
    """Networks that it names for cards of its nodes beside their own; None: it names none."""
    tpu_topology: str | None = _fact("placementPolicy.tpuTopology", _tpu_topology)
    """The topology that is asked for, of a multi-host TPU slice; None: that of one node."""
    blue_green: bool = _fact("upgradeSettings.strategy", _is("BLUE_GREEN"), False)
    """Whether upgrades are blue-green, not surge upgrades."""
    max_surge: int | None = _fact("upgradeSettings.maxSurge", _whole)
    max_unavailable: int | None = _fact("upgradeSettings.maxUnavailable", _whole)
    auto_repair: bool = _fact("management.autoRepair", _flag, True)
    auto_upgrade: bool = _fact("management.autoUpgrade", _flag, True)
    release_channel: bool = True
    """Whether the cluster is on a release channel."""
    disk_type: str | None = _fact("nodeConfig.diskType", _either(_text, "nodeConfig.bootDisk.diskType"))
    disk_gb: int = _fact("nodeConfig.diskSizeGb", _either(_whole, "nodeConfig.bootDisk.sizeGb"), BOOT_DISK_GB)
    ephemeral_local_ssds: int = _fact("nodeConfig.ephemeralStorageLocalSsdConfig.localSsdCount", _whole, 0)
    """Local SSDs for ephemeral storage."""
    secondary_disks: tuple[str, ...] = _fact("nodeConfig.secondaryBootDisks", _images, ())
    """Images of the disks that nodes have beside the boot disk, with container images or data."""
    image_streaming: bool = _fact("nodeConfig.gcfsConfig.enabled", _flag, False)
    """Whether GKE streams container images; where a pool does not say it, that is the cluster's."""
    fast_socket: bool = _fact("nodeConfig.fastSocket.enabled", _flag, False)
    """Whether NCCL Fast Socket is on the nodes."""
    block_local_ssds: int = _fact("nodeConfig.localNvmeSsdBlockConfig.localSsdCount", _block_ssds, 0)
    """Local SSDs as raw block devices."""
    pods_per_node: int = _fact("maxPodsPerNode", _whole, PODS_PER_NODE)
    labels: Mapping[str, str | Unknown] = _fact("nodeConfig.labels", _labels, {})
    """The pool's own node labels; a value of a key that is known may still be `UNKNOWN`."""
    taints: tuple[NodeTaint, ...] = _fact("nodeConfig.taints", _taints, ())
    """The pool's own taints."""

    def __getattribute__(self, name: str) -> Any:
        value = object.__getattribute__(self, name)
        if value is UNKNOWN:
            raise NotKnownError(name)
        return value

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Pool):
            return NotImplemented
        return all(vars(self)[one.name] == vars(other)[one.name] for one in fields(self))

    __hash__ = None  # type: ignore[assignment]  # Labels are a map.

    def but(self, **facts: Any) -> Pool:
        """The same pool with other facts."""
        return Pool(**{one.name: vars(self)[one.name] for one in fields(self)} | facts)

    @property
    def unknown(self) -> frozenset[str]:
        """Names of the facts that are not known."""
        return frozenset(name for name, value in vars(self).items() if value is UNKNOWN)

    @cached_property
    def machine(self) -> MachineType | None:
        """Its machine with the GPUs attached to it; None if the type is not in the catalogue."""
        machine_facts = machine_type(self.machine_type)
        if machine_facts is not None and machine_facts.accelerator is None:
            first_gpus = next((gpus for gpus in self.gpus if gpus.type and gpus.count), None)
            machine_facts = (
                machine_facts
                if first_gpus is None
                else with_accelerator(machine_facts, str(first_gpus.type), int(first_gpus.count or 0))
            )
        # Shares that are not known are of partitions that are refused.
        accelerator = machine_facts and machine_facts.gpus and machine_facts.accelerator
        shares = if_known(lambda: self.sharing.shares(accelerator)) if accelerator else None
        return machine_facts if machine_facts is None or shares in (None, 1) else replace(machine_facts, shares=shares)

    @property
    def sharing(self) -> GpuSharing:
        """How its GPUs are shared."""
        return next((gpus.sharing for gpus in self.gpus), WHOLE)

    @property
    def accelerator(self) -> str | None:
        """Kind of GPU or TPU; NotKnownError where the machine is not in the catalogue, and the pool says none."""
        if self.machine is not None:
            return self.machine.accelerator
        return next((gpus.type for gpus in self.gpus), None) or _certain(UNKNOWN)

    @property
    def gpus_per_node(self) -> int:
        """GPUs of one node; NotKnownError where the machine is not in the catalogue, and the pool says none."""
        if self.machine is not None:
            return self.machine.gpus
        first_gpus = next((gpus for gpus in self.gpus if gpus.count is not None), None)
        if first_gpus is None:
            raise NotKnownError("gpus")
        is_tpu = first_gpus.type is not None and "tpu" in first_gpus.type and "nvidia" not in first_gpus.type
        return 0 if is_tpu else int(first_gpus.count or 0)

    @property
    def shares_per_gpu(self) -> int:
        """Devices that pods can request for each GPU; NotKnownError for partitions that are not in the table."""
        return self.sharing.shares(self.accelerator)

    @property
    def fixed(self) -> int | None:
        """Nodes in each zone of a pool that does not scale by itself; None: it does not say."""
        return self.initial_node_count if self.node_count is None else self.node_count

    @property
    def min_nodes(self) -> int:
        """The fewest nodes, in all zones."""
        return self.least_nodes if self.autoscaling else self.fixed * self.zone_count if self.fixed else 0

    @property
    def max_nodes(self) -> int:
        """The most nodes, in all zones."""
        return self.most_nodes if self.autoscaling else self.fixed * self.zone_count if self.fixed else 0

    @property
    def boot_disk(self) -> str:
        """The kind of boot disk, the default filled in."""
        return self.disk_type or default_disk(self.machine_type)

    @property
    def slice_topology(self) -> str | None:
        """Topology of its TPU slices; default: that of one node. None without TPUs."""
        return self.tpu_topology or topology_of_nodes(self.machine_type, 1)

    @property
    def reservation(self) -> str | None:
        """Name of the reservation that its nodes come from, whosever it is."""
        return next(map(reservation_name, self.reservations), None)


def default_disk(machine: str) -> str:
    """The kind of boot disk that this fleet gives to machines for which none is named."""
    return "hyperdisk-balanced" if machine.startswith(HYPERDISK_ONLY) else "pd-balanced"


def reservation_name(value: str) -> str:
    """The name in `NAME`, or in `projects/PROJECT/reservations/NAME` with or without a block of it."""
    _, separator, rest = value.partition("reservations/")
    return (rest if separator else value).partition("/")[0]


def read_pool(
    properties: Mapping[str, Any],
    *,
    region: str | Unknown = UNKNOWN,
    zones: Sequence[str] | Unknown = UNKNOWN,
    zone_count: int | Unknown = UNKNOWN,
    release_channel: bool | Unknown = UNKNOWN,
    image_streaming: bool | Unknown = UNKNOWN,
) -> Pool:
    """The view of a pool with these properties, in which `UNKNOWN` stands for what is not known.

    The rest is the cluster's: `zones`, `zone_count` and `image_streaming` are those of a pool that says none.
    """
    inputs = _Inputs(properties)
    values: dict[str, Any] = {"region": region, "release_channel": release_channel, "image_streaming": image_streaming}
    for one in fields(Pool):
        if "read" in one.metadata:
            try:
                value = one.metadata["read"](inputs, one.metadata["path"])
            except NotKnownError:
                value = UNKNOWN
            if value is not None:
                values[one.name] = value
    if values["zones"] is UNKNOWN:
        values["zone_count"] = UNKNOWN
    elif values["zones"]:
        values["zone_count"] = len(values["zones"])
    else:
        values |= {"zones": tuple(zones) if is_known(zones) else UNKNOWN, "zone_count": zone_count}
    try:
        values |= _limits(inputs, values["zone_count"])
    except NotKnownError:
        values |= dict.fromkeys(("limits_in_total", "limits_by_zone", "least_nodes", "most_nodes"), UNKNOWN)
    return Pool(**values)


def _limits(inputs: _Inputs, zones: Any) -> dict[str, Any]:
    """Autoscaling's limits for all zones; those that are given for each zone are multiplied."""
    if inputs.get("autoscaling") is None:
        return {}
    least, most = (_whole(inputs, f"autoscaling.total{end}NodeCount") for end in ("Min", "Max"))
    by_zone = [_whole(inputs, f"autoscaling.{end}NodeCount") or 0 for end in ("min", "max")]
    found: dict[str, Any] = {"limits_in_total": bool(least or most), "limits_by_zone": any(by_zone)}
    for fact, total, limits in (("least_nodes", least, by_zone[0]), ("most_nodes", most, by_zone[1])):
        if found["limits_in_total"] or not limits:
            found[fact] = total or 0
        else:
            found[fact] = UNKNOWN if zones is UNKNOWN else limits * zones
    return found


PATHS: Final[Mapping[str, str]] = {one.name: one.metadata["path"] for one in fields(Pool) if one.metadata}
"""The property of each fact that is read from one."""


@dataclass(frozen=True, slots=True)
class Breach:
    """What breaks a rule."""

    fact: str
    """Name of the fact of `Pool`; `gpus.` and the rest of the property for those of the GPUs, such as `gpus.count`."""
    wrong: str
    """What is wrong, with the offending value."""
    fix: str
    """What to do, as an instruction."""
    index: int | None = None
    """Which one, of a fact that is a list."""


def property_path(pool: Pool, breach: Breach) -> str:
    """The property that a breach is about."""
    at = "" if breach.index is None else f"[{breach.index}]"
    match breach.fact:
        case "least_nodes" | "most_nodes":
            end = "Min" if breach.fact == "least_nodes" else "Max"
            counts_by_zone = pool.limits_by_zone and not pool.limits_in_total
            return f"autoscaling.{end.lower()}NodeCount" if counts_by_zone else f"autoscaling.total{end}NodeCount"
        case "labels":
            return f"nodeConfig.labels[{list(pool.labels)[breach.index or 0]}]"
        case "reservations":
            return PATHS["reservations"].rpartition(".")[0]
        case fact:
            name, dot, part = fact.partition(".")
            return PATHS[name] + at + dot + part
