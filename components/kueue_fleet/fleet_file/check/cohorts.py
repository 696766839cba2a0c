"""The tree of cohorts.

A cycle disables every queue of the tree; a parent that no entry declares is an implicit cohort without quota or limits
(kueue@v0.19.2 apis/kueue/v1beta2/cohort_types.go).
"""

from __future__ import annotations

from collections.abc import Iterator

from kueue_admission.api.check_objects import cycle_faults
from kueue_admission.api.cohort_tree import root_of, with_ancestors
from kueue_admission.kernel import suggest
from kueue_admission.kernel.problem import Problem
from kueue_admission.kernel.quantity import Quantity
from kueue_fleet.fleet_file.check.quota_amounts import by_flavor
from kueue_fleet.fleet_file.check.scope import Scope, entry_check, fleet_check
from kueue_fleet.fleet_file.model.entries import ClusterQueueEntry, CohortEntry
from kueue_fleet.fleet_file.model.per_cluster import groups_on
from kueue_fleet.fleet_file.rules.files import NO_EFFECT, UNUSED
from kueue_fleet.fleet_file.rules.queues import COHORT_ALONE, COHORT_UNDECLARED, COUNTED_TWICE


@entry_check("cohorts")
def _flavors(scope: Scope, cohort: CohortEntry) -> Iterator[Problem]:
    for g, group in enumerate(cohort.resource_groups):
        for flavor in group.flavors:
            path = f"{scope.path(cohort)}.resourceGroups[{g}].flavors[{flavor.name}].name"
            yield from scope.unknown("flavors", flavor.name, path)


@entry_check("cohorts")
def _borrowed_by_none(scope: Scope, cohort: CohortEntry) -> Iterator[Problem]:
    """A queue uses quota of its cohorts for the flavors and resources that it has itself, if only with 0."""
    fleet, parents = scope.fleet, scope.fleet.cohort_parents
    root = root_of(cohort.name, parents)
    tree = [queue for queue in fleet.cluster_queues if root_of(queue.cohort_name, parents) == root]
    used = {of for queue in tree for of in by_flavor(queue.resource_groups)}
    for g, group in enumerate(cohort.resource_groups):
        for flavor, resource in by_flavor([group]) if tree else ():
            if (flavor, resource) not in used and fleet.flavor(flavor) is not None:
                yield NO_EFFECT.at(
                    f"{scope.path(cohort)}.resourceGroups[{g}].flavors[{flavor}].resources[{resource}]",
                    f"has no effect, since no queue of the cohort has {resource} of flavor {flavor}",
                    "add it to one with a nominalQuota of 0, or remove it here",
                )


@fleet_check
def _cycles(scope: Scope) -> Iterator[Problem]:
    at = {cohort.name: cohort for cohort in scope.fleet.cohorts}
    for name, fault in cycle_faults(scope.fleet.cohort_parents):
        yield fault.rule.at(f"{scope.path(at[name])}.parentName", fault.wrong, fault.fix)


@entry_check("cohorts", "clusterQueues")
def _parent(scope: Scope, entry: CohortEntry | ClusterQueueEntry) -> Iterator[Problem]:
    alias, name = (
        ("parentName", entry.parent_name) if isinstance(entry, CohortEntry) else ("cohortName", entry.cohort_name)
    )
    names = scope.names("cohorts")
    if name is None or name in names or not names:
        return
    near = suggest.nearest(name, names)
    yield COHORT_UNDECLARED.at(
        f"{scope.path(entry)}.{alias}",
        f"no entry of cohorts declares {name}, so it is a cohort without quota, limits or parent",
        f"did you mean {near}?" if near else f"add {name} to cohorts if it should have any",
    )


def _members(scope: Scope) -> dict[str, list[str]]:
    """The names of the queues in each cohort."""
    members: dict[str, list[str]] = {}
    for queue in scope.fleet.cluster_queues:
        if queue.cohort_name is not None:
            members.setdefault(queue.cohort_name, []).append(queue.name)
    return members


@fleet_check
def _unused(scope: Scope) -> Iterator[Problem]:
    fleet, members = scope.fleet, _members(scope)
    children = {cohort.parent_name for cohort in fleet.cohorts}
    for cohort in fleet.cohorts:
        if cohort.name not in members and cohort.name not in children:
            yield UNUSED.at(
                scope.path(cohort),
                "no queue and no cohort is in this cohort",
                "name it as cohortName of a queue, or remove it",
            )


@fleet_check
def _counted_twice(scope: Scope) -> Iterator[Problem]:
    """Cohorts with as much quota of their own as their queues have together: Kueue adds the two.

    Source: https://github.com/kubernetes-sigs/kueue/issues/5289, kueue@v0.19.2 pkg/cache/scheduler/resource_node.go.
    """
    fleet, parents = scope.fleet, scope.fleet.cohort_parents
    for cohort in fleet.cohorts:
        within = [queue for queue in fleet.cluster_queues if cohort.name in with_ancestors(queue.cohort_name, parents)]
        for cluster in fleet.job_clusters if cohort.resource_groups else ():
            here = [queue for queue in within if cluster in fleet.clusters_of(queue)]
            quotas = by_flavor(groups_on(fleet, cohort.resource_groups, cluster)).items()
            own = {of: quota.nominal_quota for of, quota in quotas if quota.nominal_quota}
            below = [by_flavor(groups_on(fleet, queue.resource_groups, cluster)) for queue in here]
            sums = {
                of: Quantity.total(amounts_below[of].nominal_quota for amounts_below in below if of in amounts_below)
                for of in own
            }
            # CPU and memory are often given away freely, to limit GPUs alone.
            whole_names = [of for of in own if "/" in of[1]] or [*own]
            if whole_names and all(own[of] == sums[of] for of in whole_names):
                flavor, resource = whole_names[0]
                yield COUNTED_TWICE.at(
                    f"{scope.path(cohort)}.resourceGroups",
                    f"{own[flavor, resource]} {resource} of flavor {flavor} is just what its queues have together "
                    f"({', '.join(queue.name for queue in here)}), and Kueue adds the two: they can use "
                    f"{own[flavor, resource] + sums[flavor, resource]}",
                    "remove resourceGroups here or the quotas of the queues, unless the nodes hold both",
                )
                break


@fleet_check
def _alone(scope: Scope) -> Iterator[Problem]:
    """Queues in whose cohort there is no other to borrow from."""
    fleet, members = scope.fleet, _members(scope)
    children = {cohort.parent_name for cohort in fleet.cohorts}
    if fleet.cohorts and any(fleet.cohort(name) is None for name in members):
        return
    for queue in fleet.cluster_queues:
        name = queue.cohort_name
        cohort_entry = fleet.cohort(name) if name is not None else None
        shares = cohort_entry is not None and (
            cohort_entry.resource_groups or cohort_entry.parent_name or cohort_entry.name in children
        )
        if name is not None and len(members[name]) == 1 and name not in children and not shares:
            yield COHORT_ALONE.at(
                f"{scope.path(queue)}.cohortName",
                f"{queue.name} is alone in cohort {name}, so there is no queue to borrow from",
                "put another queue in it, or remove cohortName",
            )


@entry_check("clusterQueues")
def _nothing_in_common(scope: Scope, queue: ClusterQueueEntry) -> Iterator[Problem]:
    """A queue of whose flavors the rest of its tree has none; flavors that are missing are said elsewhere."""
    fleet, parents = scope.fleet, scope.fleet.cohort_parents
    root = root_of(queue.cohort_name, parents)
    queues = [one for one in fleet.cluster_queues if one is not queue and root_of(one.cohort_name, parents) == root]
    cohorts = [one for one in fleet.cohorts if root_of(one.name, parents) == root]
    groups = [*(one.resource_groups for one in queues), *(one.resource_groups for one in cohorts)]
    elsewhere, own = {name for some in groups for name, _ in by_flavor(some)}, {*queue.flavor_names}
    known = all(fleet.flavor(name) for name in elsewhere | own) and all(one.resource_groups for one in queues)
    if root is not None and queues and own and known and not elsewhere & own:
        yield COHORT_ALONE.at(
            f"{scope.path(queue)}.cohortName",
            f"nothing else in cohort {root} has a flavor of {queue.name}, so that it neither borrows nor lends",
            "give such a flavor to another queue there, or remove cohortName",
        )
