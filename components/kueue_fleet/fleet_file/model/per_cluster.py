"""What of an entry holds on which cluster.

A queue keeps the flavors that its cluster has, with the amounts for that cluster; the manager's copy of a dispatched
queue has the sum of the workers' quotas on a flavor of the manager, unless they are written by hand, and the MultiKueue
check.
Turning models into objects is the job of `manifests`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kueue_admission.api import (
    AdmissionChecksStrategy,
    AdmissionCheckStrategyRule,
    ClusterQueueSpec,
    CohortSpec,
    ResourceGroup,
)
from kueue_admission.api.cluster_queue import LocalQueueSpec
from kueue_admission.api.cohort_tree import root_of, with_ancestors
from kueue_admission.api.multi_kueue import MOST_CLUSTERS
from kueue_admission.kernel.names import ACCELERATOR_RESOURCES, BUDGET_CHECK, FALLBACK_CHECK
from kueue_admission.kernel.quantity import Quantity
from kueue_fleet.fleet_file.model.capacity import FlexStart, Reserved, Spot
from kueue_fleet.fleet_file.model.entries import ClusterQueueEntry, CohortEntry
from kueue_fleet.fleet_file.model.fleet import FleetSpec
from kueue_fleet.fleet_file.model.goals import Goals
from kueue_fleet.fleet_file.model.manager_flavors import Place
from kueue_fleet.settings.dispatch import ASSIGNMENT_CHECK
from kueue_fleet.settings.quota_sums import lent, placed_groups, summed_groups, with_former
from kueue_fleet.settings.quotas import FleetResourceGroup


@dataclass(frozen=True, slots=True)
class DispatchGroup:
    """Queues that are dispatched to the same workers, with the AdmissionCheck and MultiKueueConfig they share."""

    check_name: str
    config_name: str
    workers: tuple[str, ...]
    """Most preferred first."""
    queues: tuple[str, ...]


def dispatch_groups(fleet: FleetSpec) -> tuple[DispatchGroup, ...]:
    """How queues are dispatched: one group for the queues on every worker, one for each smaller set of workers.

    Kueue offers a job to every cluster of its queue's MultiKueueConfig, so a queue that only some workers have needs a
    config of its own. The group of all workers carries the names of the multiKueue section, and is there even without
    queues, unless there are more workers than a config can name. A further group adds the name of its first queue.
    """
    if fleet.multi_kueue is None or fleet.manager is None or not fleet.worker_names:
        return ()
    every = fleet.worker_names
    by_workers: dict[tuple[str, ...], list[str]] = {every: []} if len(every) <= MOST_CLUSTERS else {}
    for name in fleet.dispatched:
        by_workers.setdefault(fleet.dispatch_workers(name), []).append(name)
    return tuple(
        DispatchGroup(
            check_name=_suffixed(fleet.multi_kueue.admission_check_name, queues if workers != every else ()),
            config_name=_suffixed(fleet.multi_kueue.config_name, queues if workers != every else ()),
            workers=workers,
            queues=tuple(queues),
        )
        for workers, queues in by_workers.items()
    )


def _suffixed(name: str, queues: Sequence[str]) -> str:
    return f"{name}-{queues[0]}" if queues else name


def groups_on(fleet: FleetSpec, groups: Sequence[FleetResourceGroup], cluster: str) -> tuple[ResourceGroup, ...]:
    """The resource groups with the flavors and amounts of `cluster`; see `placed_groups`."""
    return placed_groups(groups, cluster, fleet.flavors_on(cluster), lambda name: fleet.is_closed(name, cluster))


def _summed_groups(
    fleet: FleetSpec, entry: ClusterQueueEntry | CohortEntry, cohort: str | None, clusters: Sequence[str]
) -> tuple[ResourceGroup, ...]:
    """The sum over `clusters`; what no dispatched queue of the tree of `cohort` can use is not counted."""
    quotas = (
        (name, quota)
        for cluster in clusters
        for group in groups_on(fleet, entry.resource_groups, cluster)
        for flavor in group.flavors
        if (name := fleet.manager_flavor(cohort, cluster, flavor.name)) is not None
        for quota in flavor.resources
    )
    return summed_groups(entry.resource_groups, quotas, _headroom(fleet))


def _headroom(fleet: FleetSpec) -> int:
    return fleet.multi_kueue.headroom_percent if fleet.multi_kueue is not None else 0


def queue_on(fleet: FleetSpec, queue: ClusterQueueEntry, cluster: str) -> ClusterQueueSpec:
    """The ClusterQueue as it is on `cluster`: a worker's or standalone cluster's own, or the manager's copy."""
    dispatching = _dispatches(fleet, queue, cluster)
    groups = quotas_on(fleet, queue, cluster)
    rules = _rules_on(fleet, queue, cluster, groups)
    if dispatching:
        group = next(group for group in dispatch_groups(fleet) if queue.name in group.queues)
        rules.append(AdmissionCheckStrategyRule.model_construct(name=group.check_name, on_flavors=()))
    if is_assigned(fleet, queue, cluster):
        rules.append(AdmissionCheckStrategyRule.model_construct(name=ASSIGNMENT_CHECK, on_flavors=()))
    patient = tuple(entry.flavor for entry in queue.fallback)
    patient += tuple(name for name in backup_flavors(fleet, queue) if patient and name not in patient)
    if patient and fleet.controller_cluster == cluster:
        # The manager's flavor stands for all of the workers' that the queue has.
        on_flavors = () if dispatching else patient
        rules.append(AdmissionCheckStrategyRule.model_construct(name=FALLBACK_CHECK, on_flavors=on_flavors))
    if fleet.controller_cluster == cluster and queue.name in budgeted_queues(fleet):
        rules.append(AdmissionCheckStrategyRule.model_construct(name=BUDGET_CHECK, on_flavors=()))
    return ClusterQueueSpec.model_construct(
        resource_groups=groups,
        cohort_name=queue.cohort_name,
        queueing_strategy=queue.queueing_strategy,
        namespace_selector=queue.namespace_selector,
        flavor_fungibility=queue.flavor_fungibility,
        preemption=queue.preemption,
        admission_checks_strategy=AdmissionChecksStrategy.model_construct(admission_checks=tuple(rules))
        if rules
        else None,
        stop_policy=queue.stop_policy,
        fair_sharing=queue.fair_sharing,
        admission_scope=queue.admission_scope,
        concurrent_admission_policy=None if dispatching else queue.concurrent_admission_policy,
    )


def is_assigned(fleet: FleetSpec, queue: ClusterQueueEntry, cluster: str) -> bool:
    """Whether the fleet's own controller says which jobs of the queue may be admitted on `cluster`.

    So it is on every worker, and on one that gets no jobs any more too, where some may still wait.
    """
    if fleet.controller is None or fleet.multi_kueue is None or fleet.cluster(cluster).role != "worker":
        return False
    return fleet.multi_kueue.queues is None or queue.name in fleet.multi_kueue.queues


def backup_flavors(fleet: FleetSpec, queue: ClusterQueueEntry) -> tuple[str, ...]:
    """The queue's flavors whose nodes are of a reservation of the file that is kept as a backup."""
    backups = {entry.name for entry in fleet.reservations if entry.purpose == "backup"}
    flavors = []
    for name in dict.fromkeys(queue.flavor_names) if backups else ():
        entry = fleet.flavor(name)
        pools = [p for on in fleet.job_clusters for p in fleet.flavor_nodes(entry, on)] if entry is not None else []
        if any(
            isinstance(pool.capacity, Reserved)
            and pool.capacity.reservation in backups
            and (pool.capacity.project or fleet.project_of(pool.cluster)) == fleet.project
            for pool in pools
        ):
            flavors.append(name)
    return tuple(flavors)


def following_clusters(fleet: FleetSpec, queue: ClusterQueueEntry) -> tuple[str, ...]:
    """Where the fleet's controller writes the queue's quotas; on the manager not those that are written by hand."""
    by_hand = fleet.manager_name if queue.manager is not None and fleet.is_dispatched(queue.name) else None
    follows = queue.quota_follows == "capacity" or queue.windows
    return tuple(name for name in fleet.queue_clusters(queue) if follows and name != by_hand)


def _dispatches(fleet: FleetSpec, queue: ClusterQueueEntry, cluster: str) -> bool:
    return cluster == fleet.manager_name and fleet.is_dispatched(queue.name)


def quotas_on(fleet: FleetSpec, queue: ClusterQueueEntry, cluster: str) -> Sequence[ResourceGroup]:
    """The queue's quotas on `cluster`; on the manager that dispatches it, those of `manager_groups`."""
    if _dispatches(fleet, queue, cluster):
        return manager_groups(fleet, queue)
    return groups_on(fleet, queue.resource_groups, cluster)


def manager_groups(fleet: FleetSpec, queue: ClusterQueueEntry) -> Sequence[ResourceGroup]:
    """The manager's quotas for a dispatched queue: written by hand, else derived from the workers'."""
    if queue.manager is not None:
        return queue.manager.resource_groups
    derived_groups = _summed_groups(fleet, queue, queue.cohort_name, fleet.dispatch_workers(queue.name))
    names = manager_flavor_names(fleet)
    return with_former(derived_groups, _borrowable(fleet, queue), names, in_cohort=queue.cohort_name is not None)


def manager_flavor_names(fleet: FleetSpec) -> tuple[str, ...]:
    """The flavors on which every derived quota of the manager is, or has been."""
    section = fleet.multi_kueue
    return () if section is None else (section.manager_flavor_name, *section.former_manager_flavor_names)


def _borrowable(fleet: FleetSpec, queue: ClusterQueueEntry) -> Mapping[str, Quantity] | None:
    """What the queue can borrow on its workers: what `lenders` lend there; None: no limit."""
    others = lenders(fleet, queue)
    if others is None:
        return None
    placed = ((groups_on(fleet, lender.resource_groups, place[0]), place[1]) for lender, at in others for place in at)
    return lent(placed, _headroom(fleet))


def lenders(
    fleet: FleetSpec, queue: ClusterQueueEntry
) -> Sequence[tuple[ClusterQueueEntry | CohortEntry, frozenset[Place]]] | None:
    """Who of the queue's tree lends to it on its workers, and there which of its own flavors.

    None where it shares a flavor with each queue of its group. Else some of the quota on its flavor of the manager is
    for capacity that it cannot use, and only others can.
    """
    if queue.name not in fleet.not_adjacent:
        return None
    tree, root = fleet.tree_of(queue.cohort_name), root_of(queue.cohort_name, fleet.cohort_parents)
    own = tree[queue.name]
    lender_places: list[tuple[ClusterQueueEntry | CohortEntry, frozenset[Place]]] = [
        (cluster_queue, own & tree[cluster_queue.name])
        for cluster_queue in fleet.cluster_queues
        if cluster_queue.name in tree and cluster_queue is not queue
    ]
    cohorts = (cohort for cohort in fleet.cohorts if root_of(cohort.name, fleet.cohort_parents) == root)
    lender_places += [
        (cohort, frozenset(at for at in own if cohort.name in _cohort_names(fleet, at[0]))) for cohort in cohorts
    ]
    return lender_places


def _rules_on(
    fleet: FleetSpec, queue: ClusterQueueEntry, cluster: str, groups: Sequence[ResourceGroup]
) -> list[AdmissionCheckStrategyRule]:
    """The queue's own checks on `cluster`: those that exist there, for the flavors that are there.

    A check for flavors none of which a worker has is left out, since an empty list would mean every flavor. The
    manager has flavors of its own, which stand for all of the workers', so there such a check is for every job.
    """
    dispatching = _dispatches(fleet, queue, cluster)
    here = fleet.checks_on(cluster)
    flavors = {flavor.name for group in groups for flavor in group.flavors}
    rules = []
    for rule in queue.check_rules:
        if rule.name not in here:
            continue
        names = tuple(name for name in rule.on_flavors if name in flavors)
        if dispatching or names or not rule.on_flavors:
            rules.append(AdmissionCheckStrategyRule.model_construct(name=rule.name, on_flavors=names))
    return rules


def cohorts_on(fleet: FleetSpec, cluster: str) -> tuple[CohortEntry, ...]:
    """The cohorts that `cluster` needs: those of its queues and all above them; parents first, else in file order."""
    needed_cohorts, parents = _cohort_names(fleet, cluster), fleet.cohort_parents
    here = (cohort for cohort in fleet.cohorts if cohort.name in needed_cohorts)
    return tuple(sorted(here, key=lambda cohort: len(with_ancestors(cohort.name, parents))))


def _cohort_names(fleet: FleetSpec, cluster: str) -> set[str]:
    parents = fleet.cohort_parents
    return {name for queue in fleet.queues_on(cluster) for name in with_ancestors(queue.cohort_name, parents)}


def cohort_on(fleet: FleetSpec, cohort: CohortEntry, cluster: str) -> CohortSpec:
    """The Cohort as it is on `cluster`; the manager's has the sum of the workers' quotas."""
    if cluster == fleet.manager_name and fleet.multi_kueue is not None:
        workers = [worker for worker in fleet.worker_names if cohort.name in _cohort_names(fleet, worker)]
        groups = _summed_groups(fleet, cohort, cohort.name, workers)
    else:
        groups = groups_on(fleet, cohort.resource_groups, cluster)
    return CohortSpec.model_construct(
        parent_name=cohort.parent_name, resource_groups=groups, fair_sharing=cohort.fair_sharing
    )


def local_queues(fleet: FleetSpec) -> Sequence[tuple[str, str, LocalQueueSpec]]:
    """Every LocalQueue of the file as namespace, name and spec: the teams' first."""
    return [
        (namespace, queue.name, queue)
        for team in fleet.teams
        for namespace in team.namespace_names
        for queue in team.local_queues
    ] + [(queue.namespace, queue.name, queue) for queue in fleet.local_queues]


def cluster_queue_of(fleet: FleetSpec) -> Mapping[str, str]:
    """The ClusterQueue of each LocalQueue of the file, by namespace/name."""
    return {f"{namespace}/{name}": spec.cluster_queue for namespace, name, spec in local_queues(fleet)}


def queue_goals(fleet: FleetSpec) -> dict[str, Goals]:
    """The goals of queues that have some."""
    return {queue.name: queue.goals for queue in fleet.cluster_queues if queue.goals is not None}


def budgeted_queues(fleet: FleetSpec) -> frozenset[str]:
    """The ClusterQueues for which LocalQueues of teams with an enforced budget are."""
    names = {team.name for team in fleet.teams if team.budget is not None and team.budget.enforce is not None}
    queues = local_queues(fleet) if names else ()
    return frozenset(spec.cluster_queue for namespace, _, spec in queues if fleet.team_of.get(namespace) in names)


def limits_flavors(fleet: FleetSpec) -> bool:
    """Whether a budget limits the flavors that jobs may have."""
    return any(team.budget is not None and team.budget.enforce == "interruptibleOnly" for team in fleet.teams)


def interruptible_flavors(fleet: FleetSpec, queue: ClusterQueueEntry) -> tuple[str, ...]:
    """The queue's flavors with GPUs or TPUs that lead to nodes of Spot and DWS Flex Start alone, on each cluster."""
    return tuple(
        flavor.name
        for group in queue.resource_groups
        for flavor in group.flavors
        if not set(ACCELERATOR_RESOURCES).isdisjoint(group.covered_resources) and _is_interruptible(fleet, flavor.name)
    )


def _is_interruptible(fleet: FleetSpec, name: str) -> bool:
    entry = fleet.flavor(name)
    if entry is None:
        return False
    places = [
        fleet.flavor_nodes(entry, job_cluster)
        for job_cluster in fleet.job_clusters
        if name in fleet.flavors_on(job_cluster)
    ]
    nodes = [isinstance(pool.capacity, Spot | FlexStart) for pools in places for pool in pools]
    return all(places) and bool(nodes) and all(nodes)
