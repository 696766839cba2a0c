"""Queues whose quotas follow capacity or windows: who writes them, and what a slack queue is.

Source: kueue@v0.19.2 pkg/controller/admissionchecks/multikueue/clusterqueue.go, which writes the quotas of the manager
by those of its workers.
"""

from __future__ import annotations

from collections.abc import Iterator

from kueue_admission.api.cohort_tree import root_of
from kueue_admission.kernel.problem import Problem, where_read
from kueue_fleet.fleet_file.check.scope import Scope, entry_check
from kueue_fleet.fleet_file.model.entries import ClusterQueueEntry
from kueue_fleet.fleet_file.model.kueue_installation import kueue_configuration
from kueue_fleet.fleet_file.model.per_cluster import local_queues
from kueue_fleet.fleet_file.rules.teams import OWN_CONTROLLER, QUOTA_AUTOMATION, SLACK

_GATE = "MultiKueueManagerQuotaAutomation"


@entry_check("clusterQueues")
def _queue(scope: Scope, queue: ClusterQueueEntry) -> Iterator[Problem]:
    """One whose quotas change has the controller, alone; a slack queue has no jobs, and a cohort."""
    if queue.quota_follows == "capacity":
        yield from _writer(scope, f"{scope.path(queue)}.quotaFollows", "capacity", "set quotaFollows to file")
    if queue.windows:
        yield from _writer(scope, f"{scope.path(queue)}.resourceGroups", "has windows", "remove during")
    if queue.slack:
        yield from _slack(scope, queue)


@where_read
def _writer(scope: Scope, at: str, what: str, otherwise: str) -> Iterator[Problem]:
    manager = scope.fleet.manager_name
    if scope.fleet.controller is None:
        yield OWN_CONTROLLER.at(
            at, f"{what}, but only the fleet's controller writes quotas", "add the section controller"
        )
    if manager is not None and kueue_configuration(scope.fleet, manager).get("featureGates", {}).get(_GATE):
        yield QUOTA_AUTOMATION.at(
            at,
            f"{what}, but with the feature gate {_GATE} Kueue writes quotas of the manager too",
            f"remove the feature gate from kueue.configuration, or {otherwise}",
        )


@where_read
def _slack(scope: Scope, queue: ClusterQueueEntry) -> Iterator[Problem]:
    at, fleet = f"{scope.path(queue)}.slack", scope.fleet
    if queue.quota_follows != "capacity":
        yield SLACK.at(at, "true, but its quota does not follow capacity", "set quotaFollows to capacity")
    if queue.cohort_name is None:
        yield SLACK.at(at, "true, but it is in no cohort, and lends nothing", "set cohortName, or remove slack")
        return
    queue_names = [
        f"{namespace}/{name}" for namespace, name, spec in local_queues(fleet) if spec.cluster_queue == queue.name
    ]
    if queue_names:
        fix = "remove it, or let it lead to another queue"
        yield SLACK.at(at, f"true, but LocalQueue {queue_names[0]} leads to it, whose jobs could use what is lost", fix)
    root = root_of(queue.cohort_name, fleet.cohort_parents)
    first = next(
        cluster_queue
        for cluster_queue in fleet.cluster_queues
        if cluster_queue.slack and root_of(cluster_queue.cohort_name, fleet.cohort_parents) == root
    )
    if first is not queue:
        yield SLACK.at(at, f"true, and {first.name} is the slack queue of that cohort already", "keep one of them")
