"""Makes of a fleet what its controller writes quotas by; see `settings.fleet_quotas`."""

from __future__ import annotations

from kueue_fleet.fleet_file.model.capacity import Calendar, Reserved
from kueue_fleet.fleet_file.model.entries import ClusterQueueEntry, CohortEntry, FlavorEntry
from kueue_fleet.fleet_file.model.fleet import FleetSpec
from kueue_fleet.fleet_file.model.per_cluster import cohorts_on, lenders
from kueue_fleet.fleet_file.model.resolved_pools import ResolvedNodePool
from kueue_fleet.fleet_file.quota_windows import quota_windows
from kueue_fleet.settings.fleet_quotas import (
    ClusterCapacity,
    EntryQuotas,
    FlavorNodes,
    FleetQuotas,
    Lender,
    ManagerSums,
    PoolCapacity,
    QueueQuotas,
)


def fleet_quotas(fleet: FleetSpec) -> FleetQuotas:
    """The fleet as far as quotas depend on it.

    Pools of calendar reservations open and close by their dates where the fleet does not say `active`.
    """
    sums = fleet.multi_kueue
    return FleetQuotas(
        manager=fleet.manager_name,
        clusters=tuple(_cluster(fleet, name) for name in fleet.cluster_names),
        cohorts=tuple(
            EntryQuotas(name=cohort.name, resource_groups=cohort.resource_groups) for cohort in fleet.cohorts
        ),
        cluster_queues=tuple(_queue(fleet, cluster_queue) for cluster_queue in fleet.cluster_queues),
        multi_kueue=None
        if sums is None
        else ManagerSums(
            headroom_percent=sums.headroom_percent,
            manager_flavor_name=sums.manager_flavor_name,
            former_manager_flavor_names=tuple(sums.former_manager_flavor_names),
        ),
        reservations={reservation.name: reservation.count for reservation in reversed(fleet.reservations)},
        windows=quota_windows(fleet),
    )


def _cluster(fleet: FleetSpec, name: str) -> ClusterCapacity:
    entry = fleet.cluster(name)
    return ClusterCapacity(
        name=name,
        runs_jobs=entry.runs_jobs,
        flavors=tuple(_flavor(fleet, flavor, name) for flavor in fleet.flavors if name in fleet.clusters_of(flavor)),
        pools=tuple(map(_pool, fleet.node_pools_on(name))),
        cohorts=tuple(cohort.name for cohort in cohorts_on(fleet, name)),
        file={field: value for field, value in entry.wire().items() if field not in ("kueue", "name")},
    )


def _flavor(fleet: FleetSpec, flavor: FlavorEntry, cluster: str) -> FlavorNodes:
    pools = tuple(pool.name for pool in fleet.flavor_nodes(flavor, cluster) if not pool.outside_gke)
    labels = {} if pools else dict(fleet.flavor_on(flavor, cluster).node_labels)
    return FlavorNodes(name=flavor.name, pools=pools, labels=labels, waits=flavor.node_pool is not None)


def _pool(pool: ResolvedNodePool) -> PoolCapacity:
    capacity, entry = pool.capacity, pool.entry
    by_date = isinstance(capacity, Calendar) and (capacity.active is None or "active" not in capacity.model_fields_set)
    return PoolCapacity(
        name=pool.name,
        most_nodes=pool.full_nodes,
        sized=entry.node_count is not None or entry.autoscaling is not None or pool.full_nodes > 0,
        autoscaled=entry.autoscaling is not None,
        slice_nodes=pool.slice_nodes,
        reservation=capacity.reservation if isinstance(capacity, Reserved) else None,
        allocatable=pool.known_allocatable,
        devices=pool.devices_per_node,
        closed=pool.closed,
        begin=capacity.start if isinstance(capacity, Calendar) and by_date else None,
        end=capacity.end if isinstance(capacity, Calendar) and by_date else None,
    )


def _queue(fleet: FleetSpec, queue: ClusterQueueEntry) -> QueueQuotas:
    where, workers = fleet.clusters_of(queue), fleet.dispatch_workers(queue.name)
    others = lenders(fleet, queue)
    return QueueQuotas(
        name=queue.name,
        cohort_name=queue.cohort_name,
        quota_follows=queue.quota_follows,
        slack=queue.slack,
        resource_groups=queue.resource_groups,
        manager=queue.manager,
        clusters=tuple(name for name in fleet.cluster_names if name in where),
        workers=workers,
        manager_flavors={worker: _manager_flavors(fleet, queue, worker) for worker in workers},
        lenders=None if others is None else tuple(_lender(worker, sorted(places)) for worker, places in others),
    )


def _manager_flavors(fleet: FleetSpec, queue: ClusterQueueEntry, worker: str) -> dict[str, str]:
    names = (name for name in dict.fromkeys(queue.flavor_names) if name in fleet.flavors_on(worker))
    flavors = {name: fleet.manager_flavor(queue.cohort_name, worker, name) for name in names}
    return {name: flavor for name, flavor in flavors.items() if flavor is not None}


def _lender(entry: ClusterQueueEntry | CohortEntry, places: list[tuple[str, str]]) -> Lender:
    workers = dict.fromkeys(worker for worker, _ in places)
    flavors = {name: tuple(flavor for worker, flavor in places if worker == name) for name in workers}
    return Lender(name=entry.name, cohort=isinstance(entry, CohortEntry), flavors=flavors)
