"""The nodes that Kueue's topology-aware scheduling sees: those that pools always have, with the labels of GKE."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from kueue_admission.kernel.names import HOSTNAME_LABEL
from kueue_fleet.fleet_file import FleetSpec
from kueue_fleet.fleet_file.model.capacity import Reserved
from kueue_fleet.fleet_file.model.resolved_pools import ResolvedNodePool
from kueue_fleet.gke.block_topology import cube_labels, topology_labels
from kueue_fleet.gke.labels import ZONE


def topology_nodes(fleet: FleetSpec, cluster: str) -> Iterator[dict[str, Any]]:
    """Nodes of the pools to which flavors with a topology lead; those that come when they are needed are not there."""
    pools: dict[str, ResolvedNodePool] = {}
    for flavor in fleet.flavors:
        if flavor.topology_name is not None and cluster in fleet.clusters_of(flavor):
            pools |= {pool.name: pool for pool in fleet.flavor_nodes(flavor, cluster)}
    for pool in pools.values():
        if pool.machine is not None:
            yield from (_node(pool, number) for number in range(0 if pool.closed else pool.min_nodes))


def placed_labels(pool: ResolvedNodePool, number: int) -> dict[str, str]:
    """The labels of a pool's node that say where its machine stands; `number` from 0."""
    if pool.entry.accelerator_topology_mode is None or not isinstance(pool.capacity, Reserved):
        return topology_labels(pool.machine_type, pool.name, number)
    return cube_labels(f"{pool.capacity.reservation}-{pool.capacity.block}", pool.name, number)


def _node(pool: ResolvedNodePool, number: int) -> dict[str, Any]:
    name = f"{'' if pool.outside_gke else 'gke-'}{pool.cluster}-{pool.name}-{number}"
    zones = pool.node_locations
    place = {ZONE: zones[number % len(zones)]} if zones else {}
    labels = {**pool.labels, **place, **placed_labels(pool, number)}
    amounts = {key: f"{amount}m" if key == "cpu" else str(amount) for key, amount in pool.allocatable.items()}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {**labels, HOSTNAME_LABEL: name}},
        "spec": {"taints": [taint.model_dump(exclude_none=True) for taint in pool.taints]},
        "status": {"allocatable": amounts, "conditions": [{"type": "Ready", "status": "True"}]},
    }
