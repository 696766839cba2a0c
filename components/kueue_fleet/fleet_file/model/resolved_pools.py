"""What a node pool is on one cluster, with everything filled in.

`ResolvedNodePool`: zones, GPUs, sizes, and all labels and taints that its nodes carry, GKE's own among them. Components
declare pools from it, rules compare flavors with it, and the rehearsal makes nodes from it, so that all three mean the
same nodes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from kueue_admission.api.resource_flavor import Taint
from kueue_admission.kernel.if_known import if_known
from kueue_admission.kernel.unknown import is_known
from kueue_fleet.fleet_file.model.capacity import Calendar, Capacity, FlexStart, OnDemand, Spot
from kueue_fleet.fleet_file.model.clusters import ClusterEntry
from kueue_fleet.fleet_file.model.node_pools import NodePoolEntry
from kueue_fleet.fleet_file.model.plain_clusters import ClusterNodes
from kueue_fleet.fleet_file.model.pool_fields import (
    DriverVersion,
    PoolAutoscaling,
    PoolManagement,
)
from kueue_fleet.fleet_file.model.pool_properties import pool_view
from kueue_fleet.gke.accelerator_networks import Card, cards_of
from kueue_fleet.gke.gpu_direct import Plugin, plugin_of
from kueue_fleet.gke.gpu_sharing import WHOLE, GpuSharing
from kueue_fleet.gke.labels import GPU_RESOURCE
from kueue_fleet.gke.machines import PODS_PER_NODE, MachineType
from kueue_fleet.gke.pool_nodes import known_labels, node_taints
from kueue_fleet.gke.tpu_slices import slice_nodes
from kueue_fleet.gke.zones import DEFAULT_ZONES, default_zones

NO_LIMIT: Final = 2**63 - 1
"""What pods may request of a node outside GKE of which the file does not say it."""
SYSTEM_POOL: Final = "system"
"""Name of the pool that every Standard cluster has for Kueue and the like."""


class CardNetwork(NamedTuple):
    """The network of one network card of each node."""

    card: Card
    network: str
    """Name of the VPC network."""
    subnetwork: str
    """Name of its subnet."""
    made: bool
    """Whether the fleet makes them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedNodePool:
    """A node pool as it is on one cluster. The defaults are those of nodes outside GKE."""

    entry: NodePoolEntry
    """The pool as the file has it for that cluster."""
    name: str
    cluster: str
    region: str
    zones: tuple[str, ...] = ()
    """Zones of the nodes that are named, for the pool or for its cluster."""
    machine_type: str
    machine: MachineType | None
    """Its machines with the GPUs attached to them; None if the type is not in the catalogue."""
    accelerator: str | None = None
    """Kind of GPU or TPU, as in the label cloud.google.com/gke-accelerator or gke-tpu-accelerator."""
    gpus_per_node: int
    """Whole GPUs, shared or not."""
    sharing: GpuSharing = WHOLE
    """How its GPUs are shared."""
    shares_per_gpu: int = 1
    """Devices that pods can request for each GPU; 1 where GPUs are not shared, or it is not known."""
    tpu_topology: str | None = None
    """Topology of its TPU slices; None without TPUs."""
    driver_version: DriverVersion = "INSTALLATION_DISABLED"
    node_count: int | None = None
    """Nodes in each zone, fixed; 0 before a calendar reservation is active."""
    autoscaling: PoolAutoscaling | None
    """Limits for all zones together; None with a fixed size."""
    disk_size_gb: int = 0
    disk_type: str = ""
    local_ssd_count: int = 0
    max_pods_per_node: int | None = None
    own_labels: Mapping[str, str]
    """Labels that this fleet asks for."""
    labels: Mapping[str, str]
    """Every label that all of its nodes carry, GKE's own among them; the zone only where there is one."""
    taints: tuple[Taint, ...]
    """Every taint of its nodes, GKE's own among them."""
    compact_placement: bool = False
    capacity: Capacity
    full_nodes: int
    """The most nodes it ever has, once its reservation is active."""

    @property
    def node_locations(self) -> tuple[str, ...]:
        """The zones that GKE is asked for: those that are named, or the region's first three; empty: GKE's choice."""
        return self.zones or default_zones(self.region)

    @property
    def networks(self) -> tuple[CardNetwork, ...]:
        """The networks of its nodes' cards, beside that of the node; none where GKE makes them, or there are none."""
        networks_entry = self.entry.accelerator_networks
        cards = cards_of(self.machine_type) if networks_entry is not None else ()
        if networks_entry is not None and networks_entry.existing:
            pairs = zip(cards, networks_entry.existing, strict=False)
            return tuple(CardNetwork(card, network.network, network.subnetwork, made=False) for card, network in pairs)
        return tuple(_made_network(self.cluster, card) for card in cards)

    @property
    def plugin(self) -> Plugin | None:
        """The NCCL plugin that the fleet puts on its nodes."""
        nccl_plugin = self.entry.nccl_plugin
        own = self.entry.accelerator_networks is not None and not self.entry.existing
        return plugin_of(self.machine_type) if (own if nccl_plugin is None else nccl_plugin) else None

    @property
    def accelerators_per_node(self) -> int:
        """GPUs or TPU chips of one node."""
        return self.machine.accelerators if self.machine else self.gpus_per_node

    @property
    def devices_per_node(self) -> int:
        """What pods can request of the GPUs or TPU chips of one node; more than there are where GPUs are shared."""
        return self.accelerators_per_node * self.shares_per_gpu

    @property
    def slice_nodes(self) -> int:
        """Nodes of one TPU slice; 1 without TPUs."""
        return slice_nodes(self.machine_type, self.tpu_topology) or 1 if self.tpu_topology else 1

    @property
    def zone_count(self) -> int:
        """In how many zones its nodes are."""
        return len(self.zones) or DEFAULT_ZONES

    @property
    def outside_gke(self) -> bool:
        """Whether they are nodes of a cluster that is not of GKE: the file may not name all of their labels."""
        return isinstance(self.machine, _OwnMachine)

    @property
    def price_per_hour(self) -> float | None:
        """What the owner says that a node outside GKE costs; None: not known, or the price is Google's."""
        return self.machine.price_per_hour if isinstance(self.machine, _OwnMachine) else None

    @property
    def closed(self) -> bool:
        """Whether it waits for its calendar reservation, and has no nodes until then."""
        return isinstance(self.capacity, Calendar) and not self.capacity.active

    @property
    def queued(self) -> bool:
        """Whether nodes come only for ProvisioningRequests."""
        return isinstance(self.capacity, FlexStart) and self.capacity.queued_provisioning

    @property
    def sized(self) -> bool:
        """Whether the file says how many nodes it has."""
        return self.node_count is not None or self.autoscaling is not None or self.full_nodes > 0

    @property
    def min_nodes(self) -> int:
        """The fewest nodes it has, in all zones."""
        if self.node_count is not None:
            return self.node_count * self.zone_count
        return self.autoscaling.total_min_node_count if self.autoscaling else 0

    @property
    def max_nodes(self) -> int:
        """The most nodes it has as it is now, in all zones; 0 before a calendar reservation is active."""
        return 0 if self.closed else self.full_nodes

    @property
    def known_allocatable(self) -> Mapping[str, int] | None:
        """What pods may request of one node: milli-CPUs, bytes, pieces; None: the machine is not in the catalogue."""
        if self.machine is None:
            return None
        disk, local_ssds = self.disk_size_gb * 1000**3, self.local_ssd_count or self.machine.local_ssds
        return self.machine.allocatable_with(disk, self.pods_per_node, local_ssds)

    @property
    def allocatable(self) -> Mapping[str, int]:
        """The same of a machine that is known. Raises LookupError."""
        if (amounts := self.known_allocatable) is None:
            raise LookupError(f"{self.machine_type} is not in the machine catalogue")
        return amounts

    def amount_on_node(self, resource: str) -> int:
        """What pods may request of one node; 0: none, or the machine is not known, whose GPUs may be."""
        amounts = self.known_allocatable
        return ({GPU_RESOURCE: self.devices_per_node} if amounts is None else amounts).get(resource, 0)

    @property
    def pods_per_node(self) -> int:
        """How many pods run on one node."""
        return self.max_pods_per_node or PODS_PER_NODE


def _made_network(cluster: str, card: Card) -> CardNetwork:
    """One VPC for each card; those for RDMA have subnets of one."""
    name = f"{cluster}-{card.network}"
    return CardNetwork(card, f"{cluster}-rdma" if card.device_mode == "RDMA" else name, name, made=True)


def resolve_pool(entry: NodePoolEntry, cluster: ClusterEntry) -> ResolvedNodePool:
    """The pool of the file as it is on `cluster`."""
    pool = entry.on(cluster.name)
    view = pool_view(pool, cluster)
    return ResolvedNodePool(
        entry=pool,
        name=pool.name,
        cluster=cluster.name,
        region=cluster.region,
        zones=view.zones,
        machine_type=pool.machine_type,
        machine=view.machine,
        accelerator=if_known(lambda: view.accelerator),
        gpus_per_node=if_known(lambda: view.gpus_per_node) or 0,
        sharing=if_known(lambda: view.sharing) or WHOLE,
        shares_per_gpu=if_known(lambda: view.shares_per_gpu) or 1,
        tpu_topology=pool.tpu_topology or view.slice_topology,
        driver_version=pool.accelerator.driver_version if pool.accelerator else "DEFAULT",
        node_count=0 if pool.closed else pool.node_count,
        autoscaling=None if pool.closed else pool.autoscaling,
        disk_size_gb=pool.disk_size_gb,
        disk_type=view.boot_disk,
        local_ssd_count=pool.local_ssd_count,
        max_pods_per_node=pool.max_pods_per_node,
        own_labels={key: value for key, value in view.labels.items() if is_known(value)},
        labels=known_labels(view),
        taints=tuple(Taint(**taint._asdict()) for taint in node_taints(view)),
        compact_placement=view.compact,
        capacity=pool.capacity,
        full_nodes=view.max_nodes,
    )


@dataclass(frozen=True, slots=True)
class _OwnMachine(MachineType):
    """A machine whose owner says what pods may request of it; what he leaves out is no limit."""

    given: Mapping[str, int] = field(default_factory=dict)
    price_per_hour: float | None = None

    def allocatable_with(self, disk_bytes: int, pods: int, local_ssds: int) -> dict[str, int]:
        """What the owner says, whatever the arguments."""
        return {**dict.fromkeys(("cpu", "memory", "ephemeral-storage"), NO_LIMIT), "pods": PODS_PER_NODE, **self.given}


def own_nodes(nodes: ClusterNodes, cluster: ClusterEntry) -> ResolvedNodePool:
    """Nodes of one kind of a cluster that is not of GKE, as a pool of a fixed size whose labels may be more."""
    allocatable_amounts = {name: value.counted(name) for name, value in nodes.allocatable.items()}
    machine = _OwnMachine(
        nodes.name,
        "",
        0,
        0,
        gpus=allocatable_amounts.get(GPU_RESOURCE, 0),
        given=allocatable_amounts,
        price_per_hour=nodes.price_per_hour,
    )
    labels = dict(nodes.labels)
    entry = NodePoolEntry.model_construct(
        name=nodes.name, machine_type=nodes.name, capacity=OnDemand(), existing=True, labels=labels, per_cluster={}
    )
    return ResolvedNodePool(
        entry=entry,
        name=nodes.name,
        cluster=cluster.name,
        region=cluster.place,
        machine_type=nodes.name,
        machine=machine,
        gpus_per_node=machine.gpus,
        autoscaling=PoolAutoscaling.model_construct(total_min_node_count=nodes.count, total_max_node_count=nodes.count),
        own_labels=labels,
        labels=labels,
        taints=tuple(nodes.taints),
        capacity=entry.capacity,
        full_nodes=nodes.count,
    )


def system_pool_entry(cluster: ClusterEntry) -> NodePoolEntry:
    """The pool for Kueue and the like that a Standard cluster has, as an entry of the file would have it."""
    system = cluster.system_pool
    return NodePoolEntry.model_construct(
        name=SYSTEM_POOL,
        machine_type=system.machine_type,
        autoscaling=PoolAutoscaling.model_construct(
            total_min_node_count=system.total_min_node_count,
            total_max_node_count=system.total_max_node_count,
            location_policy="ANY" if system.spot else "BALANCED",
        ),
        disk_size_gb=system.disk_size_gb,
        capacity=Spot(type="spot") if system.spot else OnDemand(type="onDemand"),
        management=PoolManagement(),
        labels={},
        per_cluster={},
    )
