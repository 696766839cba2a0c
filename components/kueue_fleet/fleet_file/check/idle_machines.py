"""Machines that are paid for whether a job uses them or not, and that no job can get.

Source: https://cloud.google.com/compute/docs/instances/reservations-overview (reserved machines are billed as if they
ran).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from kueue_admission.kernel.problem import Problem
from kueue_fleet.fleet_file.check.pool_quotas import held_by, promises_on
from kueue_fleet.fleet_file.check.reservations import users_of
from kueue_fleet.fleet_file.check.scope import Scope, entry_check, fleet_check
from kueue_fleet.fleet_file.model.capacity import Calendar, ReservationEntry, Reserved
from kueue_fleet.fleet_file.model.clusters import ClusterEntry
from kueue_fleet.fleet_file.model.entries import ClusterQueueEntry, CohortEntry, FlavorEntry
from kueue_fleet.fleet_file.model.fleet import FleetSpec
from kueue_fleet.fleet_file.model.per_cluster import backup_flavors
from kueue_fleet.fleet_file.model.resolved_pools import ResolvedNodePool
from kueue_fleet.fleet_file.rules.files import UNUSED
from kueue_fleet.fleet_file.rules.queues import UNIT
from kueue_fleet.gke.labels import ACCELERATOR_RESOURCES, RESERVATION_NAME
from kueue_fleet.settings.quotas import FleetResourceGroup

_SPARE: Final = 4
"""A share of this may be meant to stand in for machines that break."""
_MANY: Final = 8
"""Devices of one large machine: fewer may be spare too."""

_CPU: Final = 1000
_LARGE: Final = 8 * _CPU
"""Thousandths of CPUs of a node, on average."""


@fleet_check
def _larger_than_pools(scope: Scope) -> Iterator[Problem]:
    """A machine more for each pool is for its upgrades."""
    fleet, users = scope.fleet, users_of(scope)
    by_others = {flavor.node_labels.get(RESERVATION_NAME) for flavor in fleet.flavors}
    for flavor in fleet.flavors:
        for priority in flavor.compute_class.priorities if flavor.compute_class is not None else ():
            by_others |= {one.name for one in priority.reservations.specific} if priority.reservations else set()
    for entry in (*scope.entries("reservations"), *scope.entries("futureReservations")):
        pools = users.get(entry.name, [])
        is_backup = isinstance(entry, ReservationEntry) and entry.purpose == "backup"
        if not pools or is_backup or entry.shared_with or entry.name in by_others:
            continue
        total = sum(pool.full_nodes for pool in pools)
        surge = sum(1 if pool.entry.upgrades is None else pool.entry.upgrades.max_surge or 1 for pool in pools)
        if total and entry.count > total + surge:
            in_gpus = entry.count == sum(pool.full_nodes * pool.gpus_per_node for pool in pools) != total
            yield UNUSED.at(
                f"{scope.path(entry)}.count",
                f"{entry.count} machines, but its pools have at most {total} nodes, so that {entry.count - total} are "
                "paid for and run nothing",
                f"write {total}, as it counts machines and not GPUs"
                if in_gpus
                else f"write {total}, let pools have more nodes, or share it with other projects",
            )


@entry_check("clusters")
def _without_quota(scope: Scope, cluster: ClusterEntry) -> Iterator[Problem]:
    """Of a flavor that has its nodes for itself."""
    for flavor, pools, promised_amounts in _with_own_nodes(scope, cluster.name):
        if not all(isinstance(pool.capacity, Reserved | Calendar) for pool in pools):
            continue
        for resource in _covered(scope, flavor, cluster.name):
            held, total = held_by(pools, resource) or 0, promised_amounts.get(resource, 0)
            idle = held - total
            if idle * _SPARE > held and idle >= _MANY:
                yield UNUSED.at(
                    scope.path(flavor),
                    f"queues may use {total} {resource} of it on {{cluster}}, but its reserved nodes hold {held}, so "
                    f"that {idle} are paid for and no job gets them",
                    f"raise nominalQuota by {idle}, in a queue or its cohort",
                ).on(cluster.name)


@entry_check("clusters")
def _counted_in_nodes(scope: Scope, cluster: ClusterEntry) -> Iterator[Problem]:
    """Quota for at most one CPU of each large node: it is likely to be a number of nodes."""
    for flavor, pools, promised_amounts in _with_own_nodes(scope, cluster.name):
        total, usage = promised_amounts.get("cpu", 0), held_by(pools, "cpu")
        nodes = sum(pool.full_nodes for pool in pools)
        if usage is None or any(pool.devices_per_node for pool in pools):
            continue
        if 0 < total <= nodes * _CPU and usage >= nodes * _LARGE:
            texts = [f"{amount / _CPU:.10g}" for amount in (total, usage)]
            yield UNIT.at(
                scope.path(flavor),
                f"queues may use {texts[0]} cpu of it on {{cluster}}, not more than one of each of its {nodes} nodes, "
                f"which have {texts[1]} in all",
                f"write CPUs and not nodes: {texts[1]} for all of them",
            ).on(cluster.name)


@entry_check("clusters")
def _paid_later(scope: Scope, cluster: ClusterEntry) -> Iterator[Problem]:
    """Reserved machines of a queue's own that its jobs get after others of the kind, which are started for them."""
    fleet = scope.fleet
    for queue in fleet.queues_on(cluster.name) if cluster.runs_jobs else ():
        backups = backup_flavors(fleet, queue)
        for g, group in enumerate(queue.resource_groups):
            started: dict[str, str] = {}
            for name, kinds, reserved in _kinds_in_turn(fleet, group, cluster.name):
                first = next((started[kind] for kind in kinds if kind in started), None)
                if reserved and first is not None and name not in backups:
                    yield UNUSED.at(
                        f"{scope.path(queue)}.resourceGroups[{g}].flavors[{name}]",
                        f"comes after {first}, so that jobs start nodes of {first} on {{cluster}} while reserved ones, "
                        "which are paid for, run nothing",
                        f"put it before {first}",
                    ).on(cluster.name)
                elif reserved is False:
                    started = {**dict.fromkeys(kinds, name), **started}


def _kinds_in_turn(
    fleet: FleetSpec, group: FleetResourceGroup, cluster: str
) -> Iterator[tuple[str, Sequence[str], bool | None]]:
    """Flavors with their kinds of machines, and whether the queue has some of them reserved, or starts them."""
    for quotas in group.flavors:
        flavor = fleet.flavor(quotas.name)
        pools = fleet.flavor_nodes(flavor, cluster) if flavor is not None else ()
        paid = [isinstance(pool.capacity, Reserved | Calendar) or pool.autoscaling is None for pool in pools]
        own = any(quota.on(cluster).nominal_quota for quota in quotas.resources)
        reserved = own and bool(pools) and all(isinstance(pool.capacity, Reserved) for pool in pools)
        kinds = [pool.accelerator or pool.machine_type for pool in pools]
        yield quotas.name, kinds, True if reserved else None if any(paid) else False


def _with_own_nodes(
    scope: Scope, cluster: str
) -> Iterator[tuple[FlavorEntry, Sequence[ResolvedNodePool], Mapping[str, int]]]:
    """Flavors whose nodes on the cluster no other has, and what queues may use of each. Those in windows are left
    out."""
    fleet = scope.fleet
    if not fleet.cluster(cluster).runs_jobs or fleet.cluster(cluster).platform != "Standard":
        return
    promised_amounts = promises_on(scope, cluster)
    here = [fleet.flavor(name) for name in sorted(fleet.flavors_on(cluster))]
    pools_of = {flavor.name: fleet.flavor_nodes(flavor, cluster) for flavor in here if flavor is not None}
    in_windows = {name for queue in fleet.cluster_queues if queue.windows for name in queue.flavor_names}
    for flavor in fleet.flavors:
        pools = pools_of.get(flavor.name, ())
        names = {pool.name for pool in pools}
        is_shared = any(names & {pool.name for pool in of} for name, of in pools_of.items() if name != flavor.name)
        if pools and not is_shared and flavor.name not in in_windows:
            sums = {name: sum(of.values()) for name, of in promised_amounts.get(flavor.name, {}).items()}
            yield flavor, pools, sums


def _covered(scope: Scope, flavor: FlavorEntry, cluster: str) -> list[str]:
    """The kinds of devices for which a queue or cohort of the cluster has a quota of the flavor."""
    entries: list[ClusterQueueEntry | CohortEntry] = [
        queue for queue in scope.fleet.cluster_queues if cluster in scope.fleet.clusters_of(queue)
    ]
    resource_names = {
        quota.name
        for entry in (*entries, *scope.fleet.cohorts)
        for group in entry.resource_groups
        for quotas in group.flavors
        for quota in quotas.resources
        if quotas.name == flavor.name
    }
    return [name for name in ACCELERATOR_RESOURCES if name in resource_names]
