"""What bounds a team beside its queues: the regions of its data, and ResourceQuotas, which Kueue does not look at.

Source: https://kubernetes.io/docs/concepts/policy/resource-quotas/. That the manager keeps job objects is
docs/tasks/residency.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final

from kueue_admission.kernel import suggest
from kueue_admission.kernel.problem import Problem
from kueue_admission.kernel.quantity import ZERO, Quantity
from kueue_fleet.fleet_file.check.pool_quotas import is_endless
from kueue_fleet.fleet_file.check.quota_amounts import most_by_flavor, most_quota
from kueue_fleet.fleet_file.check.scope import Scope, fleet_check
from kueue_fleet.fleet_file.model.fleet import FleetSpec
from kueue_fleet.fleet_file.rules.teams import REGIONS_NOT_KEPT, TEAM_QUOTA
from kueue_fleet.gke.labels import ACCELERATOR_RESOURCES

_REQUESTED: Final = ("requests.cpu", "requests.memory", "limits.cpu", "limits.memory")
_BOUNDED: Final = {f"requests.{name}": name for name in ACCELERATOR_RESOURCES} | {
    f"{of}{name}": name for name in ("cpu", "memory", "ephemeral-storage") for of in ("", "requests.", "limits.")
}
"""What bounds the requests for a resource: the limits of a pod are no less."""
_PODS: Final = ("pods", "count/pods")
_OF_EVERY_JOB: Final = (*_PODS, "count/jobs.batch", "cpu", "memory", *_REQUESTED)
"""What pods of a job count as, also those of a JobSet, which are of Jobs."""


@fleet_check
def _manager_elsewhere(scope: Scope) -> Iterator[Problem]:
    """Jobs of a team that is kept to some regions are stored where they are submitted."""
    fleet = scope.fleet
    manager = fleet.manager
    for team in fleet.teams if manager is not None else ():
        queues = (local.cluster_queue for local in team.local_queues)
        allowed_regions = fleet.allowed_regions(team)
        if (
            manager is not None
            and allowed_regions
            and manager.place not in allowed_regions
            and any(map(fleet.is_dispatched, queues))
        ):
            yield REGIONS_NOT_KEPT.at(
                f"{scope.path(team)}.allowedRegions",
                f"{', '.join(team.allowed_regions)}, but {manager.name}, which stores its jobs with their names, "
                f"commands and environment, is in {manager.place or 'a place that the file does not name'}",
                "put the manager into one of these regions, or have nothing in jobs that has to stay there",
            )


@fleet_check
def _below_queues(scope: Scope) -> Iterator[Problem]:
    """Resources of which Kueue admits more to a team than its namespaces may have: its pods are refused then."""
    fleet = scope.fleet
    most = {name: most_quota(fleet, name) for name in fleet.job_clusters}
    for team in fleet.teams:
        queues = {local.cluster_queue for local in team.local_queues}
        for name, limit in team.resource_quota.items():
            resource = _BOUNDED.get(name, "")
            amount = max(
                (of.get(queue, {}).get(resource, ZERO) for of in most.values() for queue in queues), default=ZERO
            )
            # Of 0, under which no job runs at all, `_too_few` speaks.
            is_said = name in _OF_EVERY_JOB and limit == ZERO
            if ZERO <= limit < amount and not is_said and not is_endless(resource, amount.counted(resource)):
                yield TEAM_QUOTA.at(
                    f"{scope.path(team)}.resourceQuota[{name}]",
                    f"{limit.plain}, but Kueue admits jobs of the team with up to {amount.plain}, which keep their "
                    "quota while their pods are refused",
                    f"write {amount.plain} or more, or give the team a queue with {limit.plain}",
                    "warning",
                )


@fleet_check
def _too_few(scope: Scope) -> Iterator[Problem]:
    """Teams that may make no job at all, or fewer pods than their quota of devices needs, full nodes each."""
    for team in scope.fleet.teams:
        queues = {local.cluster_queue for local in team.local_queues}
        for name, limit in team.resource_quota.items() if queues else ():
            path = f"{scope.path(team)}.resourceQuota[{name}]"
            if name in _OF_EVERY_JOB and limit == ZERO:
                wrong = "0, so that no pod of a job that Kueue admits to the team is ever made, and it keeps its quota"
                yield TEAM_QUOTA.at(path, wrong, "write what its jobs need, or remove it", "warning")
            elif name in _PODS and limit > ZERO and limit.decimal % 1 == 0:  # others are errors
                pods, devices = max(_pods_of(scope.fleet, queue) for queue in queues)
                if limit < Quantity(pods):
                    wrong = (
                        f"{limit.plain}, but the {devices} that Kueue admits to jobs of the team are on {pods} nodes"
                    )
                    fix = f"write {pods} or more, as a pod is on one node, or give the team less quota"
                    yield TEAM_QUOTA.at(path, f"{wrong}, and pods beyond it are refused", fix, "warning")


def _pods_of(fleet: FleetSpec, queue: str) -> tuple[int, str]:
    """How many pods at least use the devices that the queue can have of a flavor, and the devices; 0: not known."""
    found = [(0, "")]
    for cluster in fleet.job_clusters:
        for (name, resource), most in most_by_flavor(fleet, cluster).get(queue, {}).items():
            flavor = fleet.flavor(name)
            pools = fleet.flavor_nodes(flavor, cluster) if flavor is not None else ()
            per_node = max((pool.amount_on_node(resource) for pool in pools), default=0)
            if resource in ACCELERATOR_RESOURCES and per_node:
                found.append((math.ceil(most.decimal / per_node), f"{most.plain} {resource}"))
    return max(found)


@fleet_check
def _of_no_device(scope: Scope) -> Iterator[Problem]:
    """Amounts of a device that is nearly one of GKE's: Kubernetes takes any name."""
    known_names = [f"requests.{name}" for name in ACCELERATOR_RESOURCES]
    for team in scope.fleet.teams:
        for name in team.resource_quota:
            if name.startswith("requests.") and "/" in name:
                yield from suggest.misspelt(
                    f"{scope.path(team)}.resourceQuota", name, known_names, "limits no pod", likeness=0.9
                )
