"""Queues and nodes that come only when they are asked for: DWS flex-start with queued provisioning.

Nodes of such a pool come for a ProvisioningRequest and for nothing else. Without the admission check that makes one, a
job is admitted and its pods never start; with the check on other nodes, the request is never answered.

Preemption of jobs that wait for such nodes on a MultiKueue worker is begun by Kueue and never ended. MultiKueue makes
the worker's Job when its workload is admitted there (reconcileGroup, 6b), and only a Job's reconciler gives an evicted
workload's quota back. A copy that is preempted between the two, while its ProvisioningRequest waits, is Evicted and
holds its quota until the manager takes it away.

Source: https://cloud.google.com/kubernetes-engine/docs/how-to/provisioningrequest,
https://cloud.google.com/kubernetes-engine/docs/concepts/dws, kueue@v0.19.2
pkg/controller/admissionchecks/multikueue/workload.go and pkg/controller/jobframework/reconciler.go.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set

from kueue_admission.api.cohort_tree import root_of
from kueue_admission.kernel.names import MAX_RUN_PARAMETER
from kueue_admission.kernel.problem import Problem, Severity, where_read
from kueue_fleet.fleet_file.check.scope import Scope, entry_check, fleet_check
from kueue_fleet.fleet_file.model.capacity import FlexStart
from kueue_fleet.fleet_file.model.entries import AdmissionCheckEntry, ClusterQueueEntry, FlavorEntry
from kueue_fleet.fleet_file.model.manager_flavors import Place
from kueue_fleet.fleet_file.model.queued_nodes import requesting_checks
from kueue_fleet.fleet_file.model.resolved_pools import ResolvedNodePool
from kueue_fleet.fleet_file.rules.queues import DWS_CHECK, DWS_FIRST, DWS_PREEMPTION, DWS_RUN_TIME, DWS_SPOT
from kueue_fleet.gke.labels import QUEUED_PROVISIONING_CLASS, SPOT


@entry_check("clusterQueues")
def _each_cluster(scope: Scope, queue: ClusterQueueEntry) -> Iterator[Problem]:
    for name in scope.fleet.clusters_of(queue):
        yield from _queue(scope, queue, name)
        yield from _no_fallback(scope, queue, name)


@where_read
def _queue(scope: Scope, queue: ClusterQueueEntry, cluster: str) -> Iterator[Problem]:
    fleet = scope.fleet
    if cluster not in fleet.cluster_names:
        return
    for name in dict.fromkeys(queue.flavor_names):
        flavor = fleet.flavor(name)
        if flavor is not None:
            yield from _flavor(scope, queue, flavor, cluster)


@where_read
def _flavor(scope: Scope, queue: ClusterQueueEntry, flavor: FlavorEntry, cluster: str) -> Iterator[Problem]:
    fleet = scope.fleet
    if cluster not in fleet.clusters_of(flavor):
        return
    pools = fleet.flavor_nodes(flavor, cluster)
    checks = _dws_checks(scope, queue, flavor, cluster)
    queued_pools = [pool for pool in pools if pool.queued]
    # A cluster that is there holds such queues, and their jobs wait.
    are_there = all(pool.entry.existing and not pool.outside_gke for pool in pools)
    severity: Severity = "warning" if are_there else "error"
    if pools and len(queued_pools) == len(pools) and not checks:
        yield DWS_CHECK.at(
            f"{scope.path(queue)}.admissionChecksStrategy",
            f"no check asks for nodes of {', '.join(pool.name for pool in pools)} on {{cluster}}, which come only "
            f"when asked for, so jobs on flavor {flavor.name} never start",
            f"add an admission check with provisioningRequest of class {QUEUED_PROVISIONING_CLASS}, "
            f"onFlavors [{flavor.name}]",
            severity,
        ).on(cluster)
    if checks and pools and not queued_pools and fleet.cluster(cluster).node_auto_provisioning is None:
        yield DWS_CHECK.at(
            f"{scope.path(queue)}.admissionChecksStrategy.admissionChecks[{checks[0].name}]",
            f"asks DWS for nodes of flavor {flavor.name}, but no pool behind it on {{cluster}} has queued provisioning",
            "limit the check to other flavors with onFlavors, or set the pool's capacity to "
            "{type: flexStart, queuedProvisioning: true}",
            severity,
        ).on(cluster)
    if checks and not pools and SPOT in flavor.node_labels:
        yield DWS_SPOT.at(
            f"{scope.path(queue)}.admissionChecksStrategy.admissionChecks[{checks[0].name}]",
            f"asks DWS for nodes of flavor {flavor.name}, which are Spot VMs, but DWS nodes are not",
            f"limit the check to other flavors with onFlavors, or remove the flavor's label {SPOT}",
        )
    yield from _too_long(scope, checks, queued_pools)


@where_read
def _no_fallback(scope: Scope, queue: ClusterQueueEntry, cluster: str) -> Iterator[Problem]:
    """Kueue takes the next flavor when quota is used up, not when Google has no machines.

    The controller's watchdog tries another worker after days, where the job gets quota on the same flavor again.

    Source: https://github.com/kubernetes-sigs/kueue/issues/2560 and KEP-8691.
    """
    patient = {entry.flavor for entry in queue.fallback}
    for number, group in enumerate(queue.resource_groups):
        asks = [
            flavor.name not in patient and _waits_for_dws(scope, queue, scope.fleet.flavor(flavor.name), cluster)
            for flavor in group.flavors
        ]
        index = asks.index(True) if True in asks else len(asks)
        later = [
            flavor.name
            for flavor, asks_check in zip(group.flavors[index:], asks[index:], strict=True)
            if not asks_check
        ]
        if later:
            yield DWS_FIRST.at(
                f"{scope.path(queue)}.resourceGroups[{number}].flavors[{group.flavors[index].name}]",
                f"comes before {later[0]}, but a job that got quota here waits for DWS, however long that takes: the "
                "next flavor is for when quota is used up, not for when Google has no machines",
                "put it last, or say in the queue's fallback how long a job waits for it",
            )


def _waits_for_dws(scope: Scope, queue: ClusterQueueEntry, flavor: FlavorEntry | None, cluster: str) -> bool:
    """Whether a job that has quota on the flavor waits for DWS: on pools that have it, and on Autopilot."""
    if flavor is None or not _dws_checks(scope, queue, flavor, cluster):
        return False
    pools = scope.fleet.flavor_nodes(flavor, cluster)
    return not pools or any(pool.queued for pool in pools)


def _dws_checks(
    scope: Scope, queue: ClusterQueueEntry, flavor: FlavorEntry, cluster: str
) -> Sequence[AdmissionCheckEntry]:
    """The checks that ask DWS for a job of the queue that is on the flavor."""
    checks = requesting_checks(scope.fleet, queue, flavor.name, cluster)
    return [
        check
        for check in checks
        if check.provisioning_request is not None
        and check.provisioning_request.provisioning_class_name == QUEUED_PROVISIONING_CLASS
    ]


@where_read
def _too_long(
    scope: Scope, checks: Sequence[AdmissionCheckEntry], pools: Sequence[ResolvedNodePool]
) -> Iterator[Problem]:
    """A check asks for no more time than the nodes of the pool live."""
    for check in checks:
        seconds = check.provisioning_request.max_run_seconds if check.provisioning_request is not None else None
        for pool in pools:
            limit = pool.capacity.max_run_duration if isinstance(pool.capacity, FlexStart) else None
            if limit is not None and seconds is not None and seconds > limit.seconds:
                yield DWS_RUN_TIME.at(
                    f"{scope.path(check)}.provisioningRequest.parameters[{MAX_RUN_PARAMETER}]",
                    f'"{seconds}" is longer than nodes of pool {pool.name} live, {limit}',
                    "ask for less, or make the pool's capacity.maxRunDuration longer",
                )


@fleet_check
def check_waiting_copies(scope: Scope) -> Iterator[Problem]:
    """Every preemption that can hit a copy which waits for a ProvisioningRequest."""
    waiting = [(queue, places) for queue in scope.fleet.cluster_queues if (places := _waits_at(scope, queue))]
    for queue, _ in waiting:
        if queue.preemption.within_cluster_queue != "Never":
            yield _problem(scope, queue, "withinClusterQueue", queue.preemption.within_cluster_queue, queue)
    yield from _reclaims(scope, waiting)


@where_read
def _reclaims(scope: Scope, waiting: Sequence[tuple[ClusterQueueEntry, Set[Place]]]) -> Iterator[Problem]:
    """Kueue preempts for quota of one flavor on one cluster: queues that share none never meet."""
    fleet, parents = scope.fleet, scope.fleet.cohort_parents
    for queue in fleet.cluster_queues:
        if queue.preemption.reclaim_within_cohort == "Never" or queue.cohort_name is None:
            continue
        places = fleet.places_of(queue, fleet.clusters_of(queue))
        for other, there in waiting:
            same_tree = root_of(other.cohort_name, parents) == root_of(queue.cohort_name, parents)
            if other is not queue and same_tree and not places.isdisjoint(there):
                policy = queue.preemption.reclaim_within_cohort
                yield _problem(scope, queue, "reclaimWithinCohort", policy, other)
                break


def _waits_at(scope: Scope, queue: ClusterQueueEntry) -> Set[Place]:
    """What jobs of the queue hold while they wait for a ProvisioningRequest on a worker.

    The request may be for one pod set, and another have quota on any flavor that the queue has there.
    """
    fleet = scope.fleet
    places_waiting: set[Place] = set()
    for check_rule in queue.check_rules:
        check = fleet.check(check_rule.name)
        for worker in fleet.dispatch_workers(queue.name):
            places = fleet.places_of(queue, [worker])
            asks_check = not check_rule.on_flavors or any(flavor in check_rule.on_flavors for _, flavor in places)
            if check is not None and check.provisioning_request is not None and worker in fleet.clusters_of(check):
                places_waiting |= places if asks_check else frozenset()
    return places_waiting


def _problem(scope: Scope, queue: ClusterQueueEntry, field: str, policy: str, victim: ClusterQueueEntry) -> Problem:
    whose = "a job" if victim is queue else f"a job of queue {victim.name}"
    return DWS_PREEMPTION.at(
        f"{scope.path(queue)}.preemption.{field}",
        f"{policy} can preempt {whose} that waits for its ProvisioningRequest on a worker, and Kueue 0.19 then keeps "
        "that job's quota",
        "set it to Never; jobs of higher priority still go first",
    )
