"""Node pools and the clusters they are on.

Rules about one pool alone are in `pool_rules`; those about reservations, flavors and quotas are in the modules beside.

Source: https://cloud.google.com/kubernetes-engine/docs/concepts/node-pools,
https://cloud.google.com/kubernetes-engine/docs/how-to/compact-placement (one zone).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from kueue_admission.kernel.form_rules import listed_twice
from kueue_admission.kernel.problem import Problem, where_read
from kueue_admission.kernel.quantity import Quantity
from kueue_fleet.fleet_file.check.scope import Scope, entry_check
from kueue_fleet.fleet_file.model.capacity import Reserved
from kueue_fleet.fleet_file.model.clusters import ClusterEntry
from kueue_fleet.fleet_file.model.node_pools import NodePoolEntry
from kueue_fleet.fleet_file.model.pool_rules import pool_problems_on
from kueue_fleet.fleet_file.model.resolved_pools import SYSTEM_POOL, ResolvedNodePool
from kueue_fleet.fleet_file.model.zone_rules import offered_nowhere, offered_problems
from kueue_fleet.fleet_file.rules.clusters import (
    CONSUMPTION,
    EXISTING_POOL,
    NOT_OF_GKE,
    NOT_OFFERED,
    ON_MANAGER,
    POOL_LABEL,
    POOL_SIZE,
    RESERVATION,
    RUNS_NO_JOBS,
    SYSTEM_POOL_TOO_SMALL,
    UNKNOWN_MACHINE,
)
from kueue_fleet.fleet_file.rules.files import NAME_TAKEN, NOT_THERE
from kueue_fleet.gke.consumption import is_offered, options_of, zones_with
from kueue_fleet.gke.machines import machine_type, nearest_machine

MOST_NODES_PER_ZONE: Final = 1_000
"""Nodes of a pool in one zone. Source: https://cloud.google.com/kubernetes-engine/quotas"""


@entry_check("nodePools")
def _name(scope: Scope, pool: NodePoolEntry) -> Iterator[Problem]:
    if pool.name == SYSTEM_POOL:
        wrong = f"{SYSTEM_POOL} is the pool that every cluster has for Kueue"
        yield NAME_TAKEN.at(f"{scope.path(pool)}.name", wrong, "use another name")


@entry_check("nodePools")
def _existing(scope: Scope, pool: NodePoolEntry) -> Iterator[Problem]:
    """An imported cluster may have pools that stay their owner's; `import` writes `upsertExistingObjects` there."""
    new = [cluster.name for cluster in scope.fleet.new_clusters if not cluster.upsert_existing_objects]
    new_clusters = [name for name in new if name in scope.fleet.clusters_of(pool)]
    if pool.existing and new_clusters:
        wrong = f"true, but the fleet makes {new_clusters[0]}, on which it is, so that no pool is there"
        fix = "remove it, or set existing on the cluster too"
        yield EXISTING_POOL.at(f"{scope.path(pool)}.existing", wrong, fix)


@entry_check("nodePools")
def _on_each_cluster(scope: Scope, pool: NodePoolEntry) -> Iterator[Problem]:
    for name in scope.fleet.clusters_of(pool):
        yield from _gke(scope, pool, name)
        yield from _resolved(scope, pool, name)


@where_read
def _resolved(scope: Scope, pool: NodePoolEntry, cluster: str) -> Iterator[Problem]:
    resolved_pool = scope.fleet.node_pool_on(pool.name, cluster)
    if resolved_pool is not None:
        yield from _zones(scope, pool, resolved_pool)
        yield from _offered(scope, pool, resolved_pool)
        yield from _labels(scope, pool, resolved_pool)
        yield from _largest(scope, pool, resolved_pool)
        yield from _consumption(scope, pool, resolved_pool)


@entry_check("clusters")
def _system_pool(scope: Scope, cluster: ClusterEntry) -> Iterator[Problem]:
    if cluster.platform != "Standard":
        return
    if machine_type(cluster.system_pool.machine_type) is None:
        yield UNKNOWN_MACHINE.at(
            f"{scope.path(cluster)}.systemPool.machineType",
            f"{cluster.system_pool.machine_type} is not in the catalogue",
            known_instead(cluster.system_pool.machine_type),
        )
        return
    pools = scope.fleet.every_pool_on(cluster.name)
    others = [pool for pool in pools[1:] if not any(taint.effect != "PreferNoSchedule" for taint in pool.taints)]
    if cluster.existing or others or cluster.node_auto_provisioning is not None:
        return  # Nodes that may take them.
    requests, free = scope.fleet.kueue_on(cluster.name).resources.requests, pools[0].allocatable
    cpu, memory = Quantity(f"{free['cpu']}m"), Quantity(f"{free['memory'] // 2**20}Mi")
    for name, room, amount in (("cpu", cpu, requests.cpu), ("memory", memory, requests.memory)):
        if room < amount:
            machine = cluster.system_pool.machine_type
            yield SYSTEM_POOL_TOO_SMALL.at(
                f"{scope.path(cluster)}.systemPool.machineType",
                f"{machine} leaves pods {room} of {name}, and each of Kueue's asks for {amount}",
                "write a larger machine, or request less in kueue.resources",
            )


def path_on(scope: Scope, pool: NodePoolEntry, cluster: str) -> str:
    """Where the pool's fields for a cluster are written."""
    return f"{scope.path(pool)}.perCluster[{cluster}]" if cluster in pool.per_cluster else scope.path(pool)


@entry_check("nodePools")
def _machine_type(scope: Scope, pool: NodePoolEntry) -> Iterator[Problem]:
    if machine_type(pool.machine_type) is not None:
        return
    yield UNKNOWN_MACHINE.at(
        f"{scope.path(pool)}.machineType",
        f"{pool.machine_type} is not in the catalogue, so its size is not checked",
        known_instead(pool.machine_type),
    )


def known_instead(machine_name: str) -> str:
    """What to do about a machine type that the catalogue does not have."""
    near = nearest_machine(machine_name)
    return f"did you mean {near}?" if near else "make sure that it exists"


@where_read
def _consumption(scope: Scope, pool: NodePoolEntry, node_pool: ResolvedNodePool) -> Iterator[Problem]:
    """The largest machines do not have every class of capacity, nor all zones TPUs of DWS."""
    machine, option = node_pool.machine_type, node_pool.capacity.type
    path = f"{path_on(scope, pool, node_pool.cluster)}.capacity"
    if not is_offered(machine, option):
        ways = ", ".join(options_of(machine))
        yield CONSUMPTION.at(path, f"is {option}, but Google does not offer {machine} so", f"use one of {ways}")
    zones = zones_with(machine, option)
    elsewhere = [zone for zone in node_pool.node_locations if zones is not None and zone not in zones]
    if zones is not None and elsewhere:
        yield NOT_OFFERED.at(
            path,
            f"is {option}, but {machine} is not known to be offered so in {', '.join(elsewhere)}",
            f"use {', '.join(zones)}, or make sure that it is",
        )


@entry_check("nodePools")
def _clusters(scope: Scope, pool: NodePoolEntry) -> Iterator[Problem]:
    """Standard clusters that run jobs; other values only for clusters that have the pool."""
    fleet, path = scope.fleet, scope.path(pool)
    where = fleet.clusters_of(pool)
    if not where:
        yield RUNS_NO_JOBS.at(
            path, "is on no cluster, since no Standard cluster runs jobs", "set mode: Standard on one"
        )
    for index, name in enumerate(pool.clusters or ()):
        if name not in fleet.cluster_names:
            continue
        if fleet.cluster(name).outside_gke:
            wrong = f"{name} is not of GKE, and has its nodes from its owner"
            yield NOT_OF_GKE.at(f"{path}.clusters[{index}]", wrong, f"describe them in clusters[{name}].nodes")
        elif fleet.cluster(name).platform == "Autopilot":
            yield RUNS_NO_JOBS.at(
                f"{path}.clusters[{index}]",
                f"{name} is an Autopilot cluster, which makes its own nodes",
                "remove it here, or set its mode to Standard",
            )
        elif not fleet.cluster(name).runs_jobs:
            yield ON_MANAGER.at(
                f"{path}.clusters[{index}]", f"{name} is the manager, which runs no jobs", "remove it here"
            )
    for name in pool.per_cluster:
        at = f"{path}.perCluster[{name}]"
        yield from scope.unknown("clusters", name, at)
        if name in fleet.cluster_names and name not in where:
            yield NOT_THERE.at(at, f"the pool is not on {name}", f"remove it, or add {name} to the pool's clusters")


@where_read
def _zones(scope: Scope, pool: NodePoolEntry, there: ResolvedNodePool) -> Iterator[Problem]:
    """Each zone once; the one zone of a block of a reservation."""
    at = path_on(scope, pool, there.cluster)
    own, capacity = pool.on(there.cluster).zones, there.capacity
    for index, zone in enumerate(own):
        if zone in own[:index]:
            yield listed_twice(f"{at}.zones[{index}]", zone, "zone")
    if not own and isinstance(capacity, Reserved) and capacity.block is not None and len(there.zones) != 1:
        yield RESERVATION.at(
            f"{at}.zones",
            f"not set, but block {capacity.block} of the reservation is in one zone",
            "name the zone of the reservation",
        )


@where_read
def _gke(scope: Scope, pool: NodePoolEntry, cluster: str) -> Iterator[Problem]:
    """The rules of GKE that depend on the cluster's region and zones."""
    if cluster not in scope.fleet.cluster_names:
        return
    for problem in pool_problems_on(pool.on(cluster), scope.fleet.cluster(cluster)):
        own = "" if cluster in pool.per_cluster else ", or give {cluster} another value under perCluster"
        problem_there = replace(problem, wrong=f"{problem.wrong} (on {{cluster}})", fix=problem.fix + own)
        yield problem_there.on(cluster).at(path_on(scope, pool, cluster))


@where_read
def _offered(scope: Scope, pool: NodePoolEntry, node_pool: ResolvedNodePool) -> Iterator[Problem]:
    """The machine type, or the GPU attached to it, is offered in the pool's zones, as far as known."""
    at = f"{path_on(scope, pool, node_pool.cluster)}.zones"
    attached_accelerator = (
        node_pool.accelerator if node_pool.machine is not None and node_pool.machine.attached else None
    )
    what, field = (
        (attached_accelerator, "accelerator.type") if attached_accelerator else (pool.machine_type, "machineType")
    )
    yield from offered_problems(at, what, node_pool.zones, node_pool.region)
    yield from offered_nowhere(f"{scope.path(pool)}.{field}", what, node_pool.region)


@where_read
def _largest(scope: Scope, pool: NodePoolEntry, node_pool: ResolvedNodePool) -> Iterator[Problem]:
    """A pool has at most 1,000 nodes in each zone (GKE, Quotas and limits)."""
    most = MOST_NODES_PER_ZONE * node_pool.zone_count
    if node_pool.full_nodes > most:
        field = "autoscaling.totalMaxNodeCount" if pool.on(node_pool.cluster).autoscaling else "nodeCount"
        zones = f"{node_pool.zone_count} zone{'s' if node_pool.zone_count > 1 else ''}"
        yield POOL_SIZE.at(
            f"{path_on(scope, pool, node_pool.cluster)}.{field}",
            f"{node_pool.full_nodes} nodes in {zones}, but a pool has at most {MOST_NODES_PER_ZONE:,} in each",
            "write a smaller number, or split the pool",
        )


@where_read
def _labels(scope: Scope, pool: NodePoolEntry, node_pool: ResolvedNodePool) -> Iterator[Problem]:
    """Labels that GKE sets itself are not set to something else."""
    for key, value in node_pool.own_labels.items():
        if node_pool.labels[key] != value:
            yield POOL_LABEL.at(
                f"{scope.path(pool)}.labels[{key}]",
                f'"{value}", but GKE sets it to "{node_pool.labels[key]}"',
                "remove it, or use another key",
            )
