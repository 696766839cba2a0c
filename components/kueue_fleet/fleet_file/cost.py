"""What is paid for a fleet whether it is used or not, and what is paid for nodes while they are there.

A line for each cluster, pool and reservation, in USD for an hour, and the prices that are not known. Not included:
traffic, NAT, logs and metrics, disks of jobs, and discounts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from kueue_fleet.fleet_file.in_words import listed
from kueue_fleet.fleet_file.model.capacity import Calendar, FlexStart, ReservationEntry, Reserved, Spot
from kueue_fleet.fleet_file.model.fleet import FleetSpec
from kueue_fleet.fleet_file.model.resolved_pools import ResolvedNodePool
from kueue_fleet.fleet_file.model.storage import Bucket
from kueue_fleet.gke.gpu_sharing import WHOLE
from kueue_fleet.gke.machines import MachineType, machine_type, with_accelerator
from kueue_fleet.gke.prices import CLUSTER, Missing, Model, Prices
from kueue_fleet.gke.zones import region_of

Class = Literal["cluster", "owned", "reserved", "calendar", "onDemand", "spot", "flexStart", "storage"]
"""What is paid for: a cluster's fee, nodes by where they come from, `owned` outside GKE, or a file server or disk that
holds data."""

_MODELS: Final[dict[type, Model]] = {Spot: "spot", FlexStart: "flexStart"}


@dataclass(frozen=True, slots=True)
class CostLine:
    """What one part of a fleet costs, in USD for an hour."""

    cluster: str
    """Its cluster; "" for a reservation or storage, which has none."""
    name: str
    """Of the pool, reservation or storage; "" for the cluster's fee."""
    kind: Class
    least: int
    """How many of them are paid whether they are used or not."""
    most: int
    """How many there are at most."""
    what: str
    """Machine type; of storage, what it is and where."""
    each: float
    """One of them, as far as prices are known."""
    missing: tuple[str, ...] = ()
    """What is not in `each`, because its price is not known."""
    share: float | None = None
    """What a pod's one `nvidia.com/gpu` costs with its part of the node, where GPUs are shared; None: they are not, or
    its price is not known."""

    @property
    def part_of(self) -> str:
        """Its cluster; what has none is part of `reservations` or `storage`."""
        return self.cluster or ("storage" if self.kind == "storage" else "reservations")

    @property
    def always(self) -> float:
        """What is paid whether it is used or not."""
        return self.least * self.each

    @property
    def in_use(self) -> float:
        """What is paid besides, while all nodes are there."""
        return (self.most - self.least) * self.each


@dataclass(frozen=True, slots=True)
class Cost:
    """What a fleet costs."""

    prices: str
    """Of when the prices are, or whose."""
    lines: tuple[CostLine, ...]
    unknown: tuple[str, ...]
    """What is not in the sums, each with the reason."""

    @property
    def always(self) -> float:
        """What is paid for an hour whether it is used or not."""
        return sum(line.always for line in self.lines)

    @property
    def in_use(self) -> float:
        """What is paid for an hour besides, while all nodes are there."""
        return sum(line.in_use for line in self.lines)

    def by(self, key: Callable[[CostLine], str]) -> dict[str, tuple[float, float]]:
        """`always` and `in_use` of the lines that `key` puts together."""
        sums: dict[str, tuple[float, float]] = {}
        for line in self.lines:
            always, in_use = sums.get(key(line), (0.0, 0.0))
            sums[key(line)] = always + line.always, in_use + line.in_use
        return sums


@dataclass(frozen=True, slots=True)
class Unpriced:
    """A GPU or TPU chip whose cost is not known."""

    what: str
    """The machine type, or the flavor, that it is of."""
    why: str
    """What is not known."""


def fleet_lines(fleet: FleetSpec, prices: Prices) -> list[CostLine]:
    """What clusters, pools and reservations cost."""
    return [*_clusters(fleet, prices), *(_reservation(entry, prices) for entry in fleet.reservations)]


def accelerator_hour(fleet: FleetSpec, cluster: str, flavor: str, prices: Prices) -> float | Unpriced:
    """What one GPU, share of a GPU, or TPU chip of a flavor costs for an hour, with its part of the node, in USD.

    Machines of a reservation cost what they cost on demand. Of several pools of the flavor the most expensive counts.
    """
    entry = fleet.flavor(flavor)
    prices_there = []
    for pool in fleet.flavor_nodes(entry, cluster) if entry is not None else ():
        cost = _device_hour(pool, prices)
        if isinstance(cost, Unpriced):
            return cost
        if cost is not None:
            prices_there.append(cost)
    no_nodes = f"the nodes of flavor {flavor} on {cluster}, which no pool of the file has"
    return max(prices_there) if prices_there else Unpriced(f"flavor {flavor}", no_nodes)


def _device_hour(pool: ResolvedNodePool, prices: Prices) -> float | Unpriced | None:
    """What one of the GPUs, shares of GPUs, or TPU chips costs with its part of the node; None without any."""
    if isinstance(pool.capacity, Calendar):
        return Unpriced(pool.machine_type, f"the price of calendar reservation {pool.capacity.reservation}")
    parts = _node(pool, prices)
    if missing_prices := [part for part in parts if isinstance(part, Missing)]:
        return Unpriced(pool.machine_type, f"the price of {missing_prices[0]}")
    if not pool.devices_per_node:
        return None
    return sum(part for part in parts if not isinstance(part, Missing)) / pool.devices_per_node


def _clusters(fleet: FleetSpec, prices: Prices) -> Iterator[CostLine]:
    for cluster in fleet.clusters:
        if cluster.outside_gke:
            yield from (_pool(nodes, prices) for nodes in fleet.nodes_on(cluster.name))
            continue
        fee = cost_line(cluster.name, "", "cluster", (1, 1), "", [prices.price(CLUSTER, cluster.region, "onDemand")])
        yield fee
        for pool in fleet.every_pool_on(cluster.name):
            yield _pool(pool, prices)


def _pool(pool: ResolvedNodePool, prices: Prices) -> CostLine:
    parts = _disk(pool, prices) if isinstance(pool.capacity, Reserved | Calendar) else _node(pool, prices)
    nodes = pool.min_nodes, pool.max_nodes
    kind: Class = "owned" if pool.outside_gke else pool.capacity.type
    line = cost_line(pool.cluster, pool.name, kind, nodes, pool.machine_type, parts)
    share = _device_hour(pool, prices) if pool.sharing != WHOLE else None
    return replace(line, share=None if isinstance(share, Unpriced) else share)


def _disk(pool: ResolvedNodePool, prices: Prices) -> list[float | Missing]:
    """The boot disk of one node; those of Spot and flex-start nodes cost what others do."""
    return prices.of_disk(pool.disk_type, pool.disk_size_gb, pool.region)


def _node(pool: ResolvedNodePool, prices: Prices) -> list[float | Missing]:
    """One node with its machine; of a cluster that is not of GKE, what its owner says."""
    if pool.outside_gke:
        price = pool.price_per_hour
        return [Missing(f"nodes {pool.name}", pool.cluster) if price is None else price]
    model = _MODELS.get(type(pool.capacity), "onDemand")
    parts = prices.of_machine(pool.machine_type, pool.machine, pool.region, model)
    return [*_disk(pool, prices), *parts, *prices.of_local_ssds(pool.local_ssd_count, pool.region, model)]


def _reservation(entry: ReservationEntry, prices: Prices) -> CostLine:
    region = region_of(entry.zone)
    parts = prices.of_machine(entry.machine_type, _reserved_machine(entry), region, "onDemand")
    parts += prices.of_local_ssds(entry.local_ssd_count, region, "onDemand")
    return cost_line("", entry.name, "reserved", (entry.count, entry.count), entry.machine_type, parts)


def _reserved_machine(entry: ReservationEntry) -> MachineType | None:
    machine = machine_type(entry.machine_type)
    if machine is None or entry.accelerator is None:
        return machine
    return with_accelerator(machine, entry.accelerator.type, entry.accelerator.count)


def cost_line(
    cluster: str, name: str, kind: Class, nodes: tuple[int, int], what: str, parts: Iterable[float | Missing]
) -> CostLine:
    """What `nodes` of something cost, at least and at most, by the prices of the parts of one."""
    line_parts = list(parts)
    missing_prices = dict.fromkeys(str(part) for part in line_parts if isinstance(part, Missing))
    return CostLine(
        cluster,
        name,
        kind,
        *nodes,
        what,
        sum(part for part in line_parts if not isinstance(part, Missing)),
        tuple(missing_prices),
    )


def not_counted(fleet: FleetSpec) -> Iterator[str]:
    """What costs something, but not an amount that follows from the file."""
    own = {entry.name for entry in fleet.reservations}
    for name in dict.fromkeys(
        pool.capacity.reservation for pool in _pools(fleet) if isinstance(pool.capacity, Reserved)
    ):
        if name not in own:
            yield f"reservation {name}, which is not in this file"
    for name in dict.fromkeys(
        pool.capacity.reservation for pool in _pools(fleet) if isinstance(pool.capacity, Calendar)
    ):
        yield f"calendar reservation {name}: DWS Calendar names the price on request"
    for entry in fleet.commitments:
        yield f"commitment {entry.name}: its contract has the price, paid whether it is used or not"
    for data in fleet.storage:
        if isinstance(data.volume, Bucket):
            yield f"buckets of storage {data.name}, which are paid by what they hold"
    for flavor in fleet.flavors:
        if flavor.compute_class is not None:
            yield f"nodes of compute class {flavor.name}, whose price depends on the priority that GKE takes"
    yield from _nodes_of_others(fleet)


def _nodes_of_others(fleet: FleetSpec) -> Iterator[str]:
    """Nodes that no pool of the file has."""
    for cluster in fleet.clusters:
        if cluster.outside_gke and not cluster.nodes:
            yield f"nodes of {cluster.name}, which the file does not name"
        elif cluster.platform == "Autopilot":
            yield f"pods on {cluster.name} (Autopilot), which are billed by their requests"
        elif cluster.node_auto_provisioning is not None:
            limits = [
                f"{resource_limit.maximum} {resource_limit.resource_type}"
                for resource_limit in cluster.node_auto_provisioning.resource_limits
            ]
            yield f"nodes of {cluster.name} by auto-provisioning, up to {listed(limits)} with the pools of the file"


def _pools(fleet: FleetSpec) -> Sequence[ResolvedNodePool]:
    return [pool for cluster in fleet.cluster_names for pool in fleet.node_pools_on(cluster)]
