"""Node pools as a limit on what runs: quota may promise more than there are nodes.

Where a flavor leads to none of the fleet's pools, nodes are GKE's to make, without limit. Pools grow and shrink at
once; which of two pods came first to a node is not modelled.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from kueue_fleet.admission.model import Admission, Workload
from kueue_fleet.fleet_file import FleetSpec
from kueue_fleet.fleet_file.model.resolved_pools import ResolvedNodePool
from kueue_fleet.simulation.workload_file import StockOutEntry


@dataclass(slots=True)
class _Pool:
    """`nodes` has what is free on each node that is in use."""

    name: str
    most: int
    allocatable: Mapping[str, int]
    nodes: list[dict[str, int]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Place:
    pool: _Pool
    node: dict[str, int]
    requests: tuple[tuple[str, int], ...]


class Nodes:
    """The node pools of one cluster, and who is on them; pools get no nodes while a flavor of theirs has none."""

    def __init__(self, fleet: FleetSpec, cluster: str, stock_outs: Sequence[StockOutEntry] = ()) -> None:
        pools = {pool.name: _pool(pool) for pool in fleet.node_pools_on(cluster)}
        self._pools: dict[str, tuple[_Pool, ...]] = {}
        for flavor in fleet.flavors:
            leads_to = [pools[pool.name] for pool in fleet.flavor_nodes(flavor, cluster)]
            if leads_to:
                self._pools[flavor.name] = tuple(leads_to)
        self._places: dict[str, list[_Place]] = {}
        self._stock_outs = [each for each in stock_outs if each.cluster in (None, cluster)]

    def place(self, workload: Workload, admission: Admission, now: float) -> str:
        """Give the pods their places, all or none. Empty, or why not."""
        out = {each.flavor for each in self._stock_outs if each.at <= now < each.at + each.seconds}
        places: list[_Place] = []
        by_name = {pod_set.name: pod_set for pod_set in workload.pod_sets}
        for assignment in admission.pod_sets:
            flavors = {flavor for _, flavor in assignment.flavors}
            pools = self._pools_of(flavors)
            if pools is None:
                continue
            requests = (*by_name[assignment.name].node_requests, ("pods", 1))
            for _ in range(assignment.count):
                place = _find(pools, requests, grows=not flavors & out)
                if place is None:
                    _take_back(places)
                    full = ", ".join(f"{pool.name} ({len(pool.nodes)} of {pool.most} nodes in use)" for pool in pools)
                    why = ", which gets no nodes now" if flavors & out else ""
                    return f"its pods do not all fit on node pool {full or 'none'}{why}"
                places.append(place)
        self._places[workload.key] = places
        return ""

    def free(self, key: str) -> bool:
        """Take the workload's pods away; whether that made room."""
        places = self._places.pop(key, [])
        _take_back(places)
        return bool(places)

    def _pools_of(self, flavors: set[str]) -> Sequence[_Pool] | None:
        """Pools to which every flavor leads that leads to any; None if no flavor does."""
        limited = [self._pools[flavor] for flavor in sorted(flavors) if flavor in self._pools]
        if not limited:
            return None
        return [pool for pool in limited[0] if all(pool in others for others in limited[1:])]


def _pool(pool: ResolvedNodePool) -> _Pool:
    return _Pool(pool.name, pool.max_nodes, pool.allocatable if pool.machine is not None else {})


def _find(pools: Sequence[_Pool], requests: Sequence[tuple[str, int]], *, grows: bool) -> _Place | None:
    """The first node with room, else a new one if the pools get any."""
    for pool in pools:
        node = next((node for node in pool.nodes if _fits(node, requests)), None)
        if node is None and grows and len(pool.nodes) < pool.most and _fits(pool.allocatable, requests):
            node = dict(pool.allocatable)
            pool.nodes.append(node)
        if node is not None:
            for resource, amount in requests:
                node[resource] -= amount
            return _Place(pool, node, tuple(requests))
    return None


def _fits(free: Mapping[str, int], requests: Sequence[tuple[str, int]]) -> bool:
    return all(free.get(resource, 0) >= amount for resource, amount in requests)


def _take_back(places: Sequence[_Place]) -> None:
    for place in places:
        for resource, amount in place.requests:
            place.node[resource] += amount
        if place.node == place.pool.allocatable:
            place.pool.nodes = [node for node in place.pool.nodes if node is not place.node]
