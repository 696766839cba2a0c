"""A node pool of a Standard cluster, read from what the NodePool resource says to Google, and the nodes it has.

`NodePool`, with templates of its nodes, and the nodes that are there whether any pod needs them or not. What GKE
refuses is in `node_pool_rules`; `node_planning` asks a pool for nodes as pods need them. Not modelled: Windows,
sandboxes, shared GPUs; GPUs are there even where no driver is installed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kueue_fleet.gke.block_topology import topology_labels
from kueue_fleet.gke.declared_pools import EFFECTS
from kueue_fleet.gke.labels import (
    ARM_TAINT,
    FLEX_START,
    GPU_TAINT,
    NETWORK_PROFILE,
    NODE_POOL,
    QUEUED_TAINT,
    SPOT,
    TPU_TAINT,
    ZONE,
)
from kueue_fleet.gke.machines import DEFAULT_MACHINE_TYPE, PODS_PER_NODE, MachineType, machine_type, with_accelerator
from kueue_fleet.gke.tpu_slices import topology_of_nodes
from kueue_fleet.kube.answers import JsonView
from kueue_rehearsal.cloud.node_templates import (
    AUTOSCALED,
    FINGERPRINT,
    RESIZE_REQUEST,
    NodeTemplate,
    Place,
    accelerator_labels,
    machine_labels,
    numbered_name,
)

_DRIVERS = {"DEFAULT": "default", "LATEST": "latest", "INSTALLATION_DISABLED": "disabled"}


@dataclass(frozen=True, slots=True)
class Limits:
    """How many nodes autoscaling keeps, in all zones together."""

    least: int
    most: int


@dataclass(frozen=True, slots=True)
class NodePool:
    """A node pool as GKE has it."""

    name: str
    machine: MachineType
    zones: tuple[str, ...]
    fixed: int | None
    """Nodes in each zone; None with autoscaling."""
    limits: Limits | None
    initial: int
    """Nodes in each zone at the beginning of an autoscaled pool."""
    labels: Mapping[str, str]
    """The pool's own labels."""
    taints: tuple[Mapping[str, str], ...]
    """The pool's own taints."""
    spot: bool = False
    flex_start: bool = False
    queued: bool = False
    max_run_seconds: int | None = None
    reservation: str | None = None
    ends_at: float | None = None
    """When its reservation ends and Google takes the nodes away, in seconds since the epoch."""
    disk_gb: int = 100
    disk_type: str = "pd-balanced"
    pods: int = PODS_PER_NODE
    tpu_topology: str | None = None
    """Topology of its TPU slices."""
    driver: str = "default"
    body: JsonView = field(default_factory=dict, repr=False, compare=False)
    """The inputs it was read from."""

    def is_over(self, now: float) -> bool:
        """Whether its reservation has ended."""
        return self.ends_at is not None and self.ends_at <= now

    @property
    def on_demand_of_pods(self) -> bool:
        """Whether nodes come for pods that wait; those of queued pools come for ProvisioningRequests only."""
        return self.limits is not None and not self.queued

    @property
    def least_nodes(self) -> int:
        """How many nodes there always are, in all zones."""
        return self.limits.least if self.limits else (self.fixed or 0) * len(self.zones)

    @property
    def most_nodes(self) -> int:
        """How many nodes there may be, in all zones."""
        return self.limits.most if self.limits else self.least_nodes

    @property
    def fingerprint(self) -> str:
        """The same for two pools whose nodes are the same."""
        parts = (self.machine.name, self.machine.accelerator, self.machine.gpus, dict(self.labels), self.taints)
        more = (self.spot, self.flex_start, self.queued, self.reservation, self.disk_gb, self.disk_type, self.pods)
        tpus = (self.machine.chips, self.tpu_topology) if self.machine.chips else ()
        text = json.dumps([*map(str, parts), *map(str, more), *map(str, tpus)])
        return hashlib.sha256(text.encode()).hexdigest()[:8]

    def template(
        self,
        place: Place,
        zone: str,
        key: str,
        *,
        labels: Mapping[str, str] | None = None,
        annotations: Mapping[str, str] | None = None,
    ) -> NodeTemplate:
        """The pool's node for `key`, the same for the same key, in `zone`; `labels` go beyond the pool's."""
        digest = hashlib.sha256(f"{place.cluster}/{self.name}/{self.fingerprint}/{key}".encode()).hexdigest()
        provisioning = "spot" if self.spot else "standard"
        all_labels = dict(self.labels)
        all_labels |= machine_labels(self.machine, place.region, zone, provisioning, self.disk_type)
        all_labels[NODE_POOL] = self.name
        taints = list(self.taints)
        all_labels |= accelerator_labels(self.machine, self.driver, self.tpu_topology)
        if self.machine.accelerator is not None:
            taints.append((TPU_TAINT if self.machine.chips else GPU_TAINT)._asdict())
        if self.queued:
            taints.append(QUEUED_TAINT._asdict())
        if self.machine.arch == "arm64":
            taints.append(ARM_TAINT._asdict())
        if self.spot:
            all_labels[SPOT] = "true"
        if self.flex_start:
            all_labels[FLEX_START] = "true"
        if self.limits is not None:
            all_labels[AUTOSCALED] = "true"
        if self.reservation is not None:
            all_labels["cloud.google.com/reservation-name"] = self.reservation
        network = self.body.get("networkConfig") or {}
        if network.get("acceleratorNetworkProfile"):
            all_labels[NETWORK_PROFILE] = network["acceleratorNetworkProfile"]
        all_labels |= topology_labels(self.machine.name, self.name, _number(key, digest))
        all_labels |= labels or {}
        name = numbered_name(f"gke-{place.cluster}-{self.name}", digest)
        all_labels["kubernetes.io/hostname"] = name
        return NodeTemplate(
            name=name,
            machine=self.machine,
            labels=all_labels,
            taints=_once(taints),
            annotations={FINGERPRINT: self.fingerprint, **(annotations or {})},
            disk_bytes=self.disk_gb * 1000**3,
            pods=self.pods,
        )

    def standing_nodes(self, place: Place) -> tuple[NodeTemplate, ...]:
        """The nodes that are there whether any pod needs them or not, spread over the zones."""
        return self._numbered(place, self.least_nodes)

    def first_nodes(self, place: Place) -> tuple[NodeTemplate, ...]:
        """The nodes that an autoscaled pool begins with."""
        return self._numbered(place, max(self.initial * len(self.zones), self.least_nodes))

    def _numbered(self, place: Place, count: int) -> tuple[NodeTemplate, ...]:
        return tuple(
            self.template(place, self.zones[number % len(self.zones)], f"standing/{number}")
            for number in range(0 if self.queued else count)
        )

    def zone_for_next(self, nodes: Iterable[JsonView]) -> str:
        """The zone with the fewest nodes of the pool; `nodes` are all of the cluster."""
        count = dict.fromkeys(self.zones, 0)
        for labels in (node["metadata"].get("labels") or {} for node in nodes):
            if labels.get(NODE_POOL) == self.name and labels.get(ZONE) in count:
                count[labels[ZONE]] += 1
        return min(self.zones, key=lambda zone: (count[zone], zone))


def _number(key: str, digest: str) -> int:
    """Of a standing node its own; others stand wherever there is a place."""
    kind, _, number = key.partition("/")
    return int(number) if kind == "standing" and number.isdecimal() else int(digest[:6], 16) % 64


def _once(taints: Sequence[Mapping[str, str]]) -> tuple[Mapping[str, str], ...]:
    """The pool's own taint counts where GKE would add one of the same key and effect."""
    kept: dict[tuple[str, str], Mapping[str, str]] = {}
    for taint in taints:
        kept.setdefault((taint["key"], taint["effect"]), taint)
    return tuple(kept.values())


def parse_node_pool(name: str, body: JsonView, cluster_zones: Sequence[str]) -> NodePool:
    """The pool that the inputs describe; `node_pool_rules.refusals` has found nothing wrong with them.

    Raises KeyError for a machine type that is not in the catalogue.
    """
    config = body.get("nodeConfig") or {}
    zones = tuple(body.get("nodeLocations") or cluster_zones)
    scaling = body.get("autoscaling")
    affinity = config.get("reservationAffinity") or {}
    values = affinity.get("values") or ()
    duration = config.get("maxRunDuration")
    driver = "DEFAULT"
    for accelerator in config.get("guestAccelerators") or ():
        driver = (accelerator.get("gpuDriverInstallationConfig") or {}).get("gpuDriverVersion") or driver
    machine = machine_of(config)
    if machine is None:
        raise KeyError(config.get("machineType"))
    return NodePool(
        name=name,
        machine=machine,
        zones=zones,
        fixed=None if scaling else int(_first(body.get("nodeCount"), body.get("initialNodeCount"), 0)),
        limits=limits_of(scaling, len(zones)) if scaling else None,
        initial=int(_first(body.get("initialNodeCount"), body.get("nodeCount"), 0)),
        labels=dict(config.get("labels") or {}),
        taints=tuple(
            {"key": one["key"], "value": one.get("value", ""), "effect": EFFECTS[one["effect"]]}
            for one in config.get("taints") or ()
        ),
        spot=config.get("spot") is True,
        flex_start=config.get("flexStart") is True,
        queued=(body.get("queuedProvisioning") or {}).get("enabled") is True,
        max_run_seconds=int(str(duration).removesuffix("s")) if duration else None,
        reservation=reservation_name(str(values[0])) if values else None,
        disk_gb=int(config.get("diskSizeGb") or (config.get("bootDisk") or {}).get("sizeGb") or 100),
        disk_type=str(config.get("diskType") or (config.get("bootDisk") or {}).get("diskType") or "pd-balanced"),
        pods=int(body.get("maxPodsPerNode") or PODS_PER_NODE),
        tpu_topology=_tpu_topology(body, machine, zones),
        driver=_DRIVERS.get(driver, "default"),
        body=dict(body),
    )


def _tpu_topology(body: JsonView, machine: MachineType, zones: Sequence[str]) -> str | None:
    """What the pool says; of a slice whose workload policy says it, that of as many nodes as the pool has."""
    placement = body.get("placementPolicy") or {}
    if placement.get("tpuTopology") or not machine.chips:
        return placement.get("tpuTopology")
    scaling, nodes = body.get("autoscaling"), 1
    if placement.get("policyName"):
        nodes = limits_of(scaling, len(zones)).most if scaling else int(body.get("nodeCount") or 1)
    return topology_of_nodes(machine.name, nodes)


def reservation_name(value: str) -> str:
    """The name in `NAME`, or in `projects/PROJECT/reservations/NAME` with or without a block of it."""
    _, found, rest = value.partition("reservations/")
    return (rest if found else value).partition("/")[0]


def _first(*values: Any) -> Any:
    return next(value for value in values if value is not None)


def machine_of(config: JsonView) -> MachineType | None:
    """The machine of a nodeConfig, with its GPUs; None when the catalogue does not have it."""
    machine = machine_type(str(config.get("machineType") or DEFAULT_MACHINE_TYPE))
    if machine is None or machine.accelerator is not None:
        return machine
    for accelerator in config.get("guestAccelerators") or ():
        if count := int(accelerator["count"]):
            return with_accelerator(machine, str(accelerator["type"]), count)
    return machine


def limits_of(scaling: JsonView, zones: int) -> Limits:
    """Autoscaling's limits for all zones; those that are given for each zone are multiplied."""
    if scaling.get("totalMaxNodeCount") is not None:
        return Limits(int(scaling.get("totalMinNodeCount") or 0), int(scaling["totalMaxNodeCount"]))
    return Limits(int(scaling.get("minNodeCount") or 0) * zones, int(scaling.get("maxNodeCount") or 0) * zones)


def is_bound(node: JsonView) -> bool:
    """Whether a node belongs to a ProvisioningRequest."""
    return RESIZE_REQUEST in (node["metadata"].get("labels") or {})


def pool_nodes(nodes: Mapping[str, JsonView], pool: str) -> dict[str, JsonView]:
    """The nodes of a pool."""
    return {name: node for name, node in nodes.items() if (node["metadata"].get("labels") or {}).get(NODE_POOL) == pool}
