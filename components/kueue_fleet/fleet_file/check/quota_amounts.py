"""The manager's quotas against the workers'.

Kueue lets a job leave the manager only when it fits the manager's quota, and never compares that with the workers'.
A job that fits the manager and no worker keeps its quota on the manager until somebody deletes it.
Source: kueue@v0.19.2 pkg/controller/admissionchecks/multikueue/workload.go, and for the most that queues can ever have
pkg/cache/scheduler/resource_node.go (potentialAvailable, accumulateFromChild, localQuota).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from kueue_admission.api import ResourceGroup, ResourceQuota
from kueue_admission.api.cohort_tree import root_of, with_ancestors
from kueue_admission.kernel.problem import Problem, where_read
from kueue_admission.kernel.quantity import ZERO, Quantity
from kueue_fleet.fleet_file.check.scope import Scope, entry_check, fleet_check
from kueue_fleet.fleet_file.model.entries import ClusterQueueEntry
from kueue_fleet.fleet_file.model.fleet import FleetSpec
from kueue_fleet.fleet_file.model.per_cluster import cohort_on, cohorts_on, groups_on, manager_groups, quotas_on
from kueue_fleet.fleet_file.rules.files import NOT_THERE
from kueue_fleet.fleet_file.rules.queues import FITS_NO_WORKER, MANAGER_QUOTA, MANAGER_QUOTA_UNUSED, MANAGER_SHARES
from kueue_fleet.settings.dispatch import DISPATCHER_NAME


@entry_check("clusterQueues")
def _manager_quotas(scope: Scope, queue: ClusterQueueEntry) -> Iterator[Problem]:
    if queue.manager is not None and scope.fleet.is_dispatched(queue.name):
        groups = queue.manager.resource_groups
        yield from _flavors(scope, queue, groups)
        yield from _amounts(scope, queue, groups)
        yield from _shares(scope, queue, groups)


@where_read
def _flavors(scope: Scope, queue: ClusterQueueEntry, groups: Sequence[ResourceGroup]) -> Iterator[Problem]:
    fleet = scope.fleet
    if fleet.manager is None or fleet.multi_kueue is None:
        return
    here = fleet.flavors_on(fleet.manager.name).union(fleet.manager_flavor_names)
    for g, group in enumerate(groups):
        for flavor in group.flavors:
            path = f"{scope.path(queue)}.manager.resourceGroups[{g}].flavors[{flavor.name}].name"
            if flavor.name in here:
                continue
            if fleet.flavor(flavor.name) is None:
                yield from scope.unknown("flavors", flavor.name, path, also=here)
            else:
                yield NOT_THERE.at(
                    path,
                    f"flavor {flavor.name} does not exist on the manager, {fleet.manager.name}",
                    f"use {_derived(fleet, queue) or fleet.multi_kueue.manager_flavor_name}, or add "
                    f"{fleet.manager.name} to "
                    f"flavors[{flavor.name}].clusters",
                )


def _derived(fleet: FleetSpec, queue: ClusterQueueEntry) -> str | None:
    """The manager's flavor that the queue's quota would be on if it were not written by hand."""
    places = fleet.places_of(queue, fleet.dispatch_workers(queue.name))
    return next((fleet.manager_flavor(queue.cohort_name, *place) for place in places), None)


@where_read
def _shares(scope: Scope, queue: ClusterQueueEntry, groups: Sequence[ResourceGroup]) -> Iterator[Problem]:
    """By hand, queues that share nothing on any worker may share a flavor of the manager: derived quotas never do."""
    fleet, parents = scope.fleet, scope.fleet.cohort_parents
    root, own = root_of(queue.cohort_name, parents), _derived(fleet, queue)
    names = {name for name, _ in by_flavor(groups)}
    for other in fleet.cluster_queues if root is not None and own is not None else ():
        if not fleet.is_dispatched(other.name) or root_of(other.cohort_name, parents) != root:
            continue
        quotas = by_flavor(manager_groups(fleet, other))
        flavors = [name for (name, _), quota in quotas.items() if name in names and quota.nominal_quota > ZERO]
        if flavors and _derived(fleet, other) != own:
            yield MANAGER_SHARES.at(
                f"{scope.path(queue)}.manager.resourceGroups",
                f"its quota on the manager is on flavor {flavors[0]}, and so is that of {other.name} in its cohort, "
                "but they share no flavor on any worker: a job of one takes quota that only jobs of the other can use",
                f"remove manager, or use {own}",
            )
            return


@where_read
def _amounts(scope: Scope, queue: ClusterQueueEntry, groups: Sequence[ResourceGroup]) -> Iterator[Problem]:
    fleet = scope.fleet
    manager = _totals(groups)
    workers = {
        worker: _totals(groups_on(fleet, queue.resource_groups, worker))
        for worker in fleet.dispatch_workers(queue.name)
    }
    for name in dict.fromkeys(name for totals in workers.values() for name in totals):
        path = f"{scope.path(queue)}.manager.resourceGroups"
        largest = max(workers, key=lambda worker: workers[worker].get(name, ZERO))
        most = workers[largest].get(name, ZERO)
        total = sum((totals[name] for totals in workers.values() if name in totals), start=ZERO)
        if name not in manager:
            yield MANAGER_QUOTA.at(
                path,
                f"no quota for {name}, which the workers have, and a job that requests it never leaves the manager",
                f"add {name}, at least {most.plain}",
            )
        elif ZERO <= manager[name] < most:
            yield MANAGER_QUOTA.at(
                _path(groups, name, path),
                f"{manager[name].plain} is less than the {most.plain} of worker {largest}, so a job that fits there "
                "never leaves the manager",
                f"write at least {most.plain}, or {total.plain} to use all workers at once",
            )
        elif most <= manager[name] < total:
            yield MANAGER_QUOTA_UNUSED.at(
                _path(groups, name, path),
                f"{manager[name].plain} is less than the {total.plain} of all workers together, so some of it is "
                "never used",
                f"write at least {total.plain}, or remove manager to have the sum",
            )
    for name in manager:
        if not any(name in totals for totals in workers.values()):
            yield MANAGER_QUOTA_UNUSED.at(
                _path(groups, name, f"{scope.path(queue)}.manager.resourceGroups"),
                f"{name} is covered on the manager, but by no worker",
                "remove it, or add quota for it to the queue",
            )


@fleet_check
def _fits_no_worker(scope: Scope) -> Iterator[Problem]:
    """The manager has quota for larger jobs than any one worker, and nothing takes it back from such a job."""
    fleet = scope.fleet
    if fleet.manager is None or fleet.multi_kueue is None or fleet.multi_kueue.dispatcher == "External":
        return
    manager = most_quota(fleet, fleet.manager.name)
    workers = {worker: most_quota(fleet, worker) for worker in fleet.worker_names}
    queues: dict[str, list[str]] = {}
    for queue in fleet.dispatched:
        quotas = [workers[worker].get(queue, {}) for worker in fleet.dispatch_workers(queue)]
        manager_amounts = manager.get(queue, {})
        resource = _main_resource(manager_amounts)
        most = max((amounts.get(resource, ZERO) for amounts in quotas), default=ZERO)
        if most < manager_amounts.get(resource, ZERO):
            queues.setdefault(f"{most.plain} {resource}", []).append(queue)
    if queues:
        amounts = " or ".join(f"{amount} in {some_queues(names)}" for amount, names in queues.items())
        yield FITS_NO_WORKER.at(
            "multiKueue.dispatcher",
            f"a pod set of more than {amounts} fits the manager's quota and no worker's, and its job keeps that quota",
            (
                f"set it to External, and multiKueue.external.name to {DISPATCHER_NAME}, so that "
                "the controller rejects such jobs"
                if fleet.controller
                else "dispatch with the section controller, which rejects such jobs"
            )
            + ", or find them with kueue-fleet status",
        )


def _main_resource(amounts: Mapping[str, Quantity]) -> str:
    """The devices of a queue, else what it covers first."""
    return next((name for name in amounts if "/" in name), next(iter(amounts), ""))


def some_queues(names: Sequence[str]) -> str:
    """`queue a`, `queues a, b, c and 2 more`."""
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return f"queue{'s' if len(names) > 1 else ''} {', '.join(names[:3])}{more}"


def _totals(groups: Sequence[ResourceGroup]) -> dict[str, Quantity]:
    totals: dict[str, Quantity] = {}
    for group in groups:
        for flavor in group.flavors:
            for quota in flavor.resources:
                totals[quota.name] = totals.get(quota.name, ZERO) + quota.nominal_quota
    return totals


def _path(groups: Sequence[ResourceGroup], name: str, base: str) -> str:
    """Where the manager's quota for a resource is: the amount itself if there is only one."""
    for g, group in enumerate(groups):
        if name in group.covered_resources:
            at = f"{base}[{g}]"
            if len(group.flavors) == 1:
                return f"{at}.flavors[{group.flavors[0].name}].resources[{name}].nominalQuota"
            return f"{at}.flavors"
    return base


FlavorResource = tuple[str, str]
"""The name of a flavor and of a resource."""


@dataclass(slots=True)
class _Node:
    """A queue or a cohort."""

    quotas: Mapping[FlavorResource, ResourceQuota] = field(default_factory=dict)
    members: list[_Node] = field(default_factory=list)
    parent: _Node | None = None
    _subtrees: dict[FlavorResource, Quantity] = field(default_factory=dict)

    def subtree(self, of: FlavorResource) -> Quantity:
        """Its own quota, and what its members lend it; summed up once the tree is complete."""
        if of not in self._subtrees:
            own = self.quotas[of].nominal_quota if of in self.quotas else ZERO
            self._subtrees[of] = Quantity.total((own, *(member.lent(of) for member in self.members)))
        return self._subtrees[of]

    def lent(self, of: FlavorResource) -> Quantity:
        """What it lends to the cohort above."""
        limit = self.quotas[of].lending_limit if of in self.quotas else None
        subtree = self.subtree(of)
        return subtree if limit is None else min(subtree, limit)

    def most(self, of: FlavorResource) -> Quantity:
        """What it can have while the rest of its tree uses nothing."""
        subtree = self.subtree(of)
        if self.parent is None:
            return subtree
        most = subtree - self.lent(of) + self.parent.most(of)
        limit = self.quotas[of].borrowing_limit if of in self.quotas else None
        return most if limit is None else min(most, subtree + limit)


def most_quota(fleet: FleetSpec, cluster: str) -> dict[str, dict[str, Quantity]]:
    """For each queue on `cluster`, and each of its resources, the most that one pod set can get: from its best "
    "flavor."""
    found: dict[str, dict[str, Quantity]] = {}
    for queue, of_flavors in most_by_flavor(fleet, cluster).items():
        amounts = found[queue] = {}
        for (_, resource), most in of_flavors.items():
            amounts[resource] = max(amounts.get(resource, ZERO), most)
    return found


def most_by_flavor(fleet: FleetSpec, cluster: str) -> dict[str, dict[FlavorResource, Quantity]]:
    """For each queue on `cluster`, the most that it can ever have of each resource of each of its flavors.

    Of cohorts that form a cycle, in which Kueue admits nothing, one is taken as the topmost.
    """
    cohorts: dict[str, _Node] = {}
    here = cohorts_on(fleet, cluster)
    for cohort in here:
        cohorts[cohort.name] = _Node(by_flavor(cohort_on(fleet, cohort, cluster).resource_groups))
    parents: dict[str, str | None] = {}
    for cohort in here:
        if cohort.name not in with_ancestors(cohort.parent_name, parents):
            parents[cohort.name] = cohort.parent_name
            _join(cohorts[cohort.name], cohort.parent_name, cohorts)
    queues = {queue.name: _Node(by_flavor(quotas_on(fleet, queue, cluster))) for queue in fleet.queues_on(cluster)}
    for queue in fleet.queues_on(cluster):
        _join(queues[queue.name], queue.cohort_name, cohorts)
    return {name: {of: node.most(of) for of in node.quotas} for name, node in queues.items()}


def by_flavor(groups: Sequence[ResourceGroup]) -> dict[FlavorResource, ResourceQuota]:
    """The quotas of resource groups by flavor and resource."""
    return {
        (flavor.name, quota.name): quota for group in groups for flavor in group.flavors for quota in flavor.resources
    }


def _join(node: _Node, cohort: str | None, cohorts: dict[str, _Node]) -> None:
    """Put the node below its cohort, declared or not."""
    if cohort is not None:
        node.parent = cohorts.setdefault(cohort, _Node())
        node.parent.members.append(node)
