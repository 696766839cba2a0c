"""Preemption of jobs that wait for capacity on a MultiKueue worker, which Kueue begins and never ends.

MultiKueue makes the worker's Job when its workload is admitted there (reconcileGroup, 6b), and only a Job's reconciler
gives an evicted workload's quota back. A copy that is preempted between the two, while its ProvisioningRequest waits,
is Evicted and holds its quota until the manager takes it away.

Source: kueue@v0.19.2 pkg/controller/admissionchecks/multikueue/workload.go, pkg/controller/jobframework/reconciler.go.
"""

from __future__ import annotations

from collections.abc import Iterator

from kueue_fleet.fleet_file.check.scope import Scope
from kueue_fleet.fleet_file.model.entries import ClusterQueueEntry
from kueue_fleet.kueue_api.cohort_tree import root_of
from kueue_fleet.kueue_api.problem import Problem, rule


def check_waiting_copies(scope: Scope) -> Iterator[Problem]:
    """Warns of every preemption that can hit a copy which waits for a ProvisioningRequest."""
    fleet = scope.fleet
    waiting = [queue for queue in fleet.cluster_queues if fleet.is_dispatched(queue.name) and _waits(scope, queue)]
    for queue in waiting:
        if queue.preemption.within_cluster_queue != "Never":
            yield _problem(scope, queue, "withinClusterQueue", queue.preemption.within_cluster_queue, queue)
    yield from _reclaims(scope, waiting)


@rule
def _reclaims(scope: Scope, waiting: list[ClusterQueueEntry]) -> Iterator[Problem]:
    parents = scope.fleet.cohort_parents
    for queue in scope.fleet.cluster_queues:
        if queue.preemption.reclaim_within_cohort == "Never" or queue.cohort_name is None:
            continue
        for other in waiting:
            if other is not queue and root_of(other.cohort_name, parents) == root_of(queue.cohort_name, parents):
                policy = queue.preemption.reclaim_within_cohort
                yield _problem(scope, queue, "reclaimWithinCohort", policy, other)
                break


def _waits(scope: Scope, queue: ClusterQueueEntry) -> bool:
    checks = [scope.fleet.check(name) for name in queue.check_names]
    return any(check is not None and check.provisioning_request is not None for check in checks)


def _problem(scope: Scope, queue: ClusterQueueEntry, field: str, policy: str, victim: ClusterQueueEntry) -> Problem:
    whose = "a job" if victim is queue else f"a job of queue {victim.name}"
    return Problem(
        f"{scope.path(queue)}.preemption.{field}",
        f"{policy} can preempt {whose} that waits for its ProvisioningRequest on a worker, and Kueue 0.19 then keeps "
        "that job's quota",
        "set it to Never; jobs of higher priority go first all the same",
        "warning",
    )
