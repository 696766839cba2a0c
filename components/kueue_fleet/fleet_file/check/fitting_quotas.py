"""Quotas that admit no job, or jobs whose pods no node of their flavor holds.

Kueue looks at quota and at no node, but for flavors with a topology. Source:
https://kueue.sigs.k8s.io/docs/concepts/cluster_queue/ (without a cohort, only nominalQuota can be used).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Final

from kueue_admission.api import ResourceQuota
from kueue_admission.api.cohort_tree import root_of, with_ancestors
from kueue_admission.kernel import suggest
from kueue_admission.kernel.if_known import if_known
from kueue_admission.kernel.problem import Problem, where_read
from kueue_admission.kernel.quantity import ZERO, Quantity
from kueue_fleet.fleet_file.check.pool_quotas import amount_text
from kueue_fleet.fleet_file.check.quota_amounts import FlavorResource, by_flavor, most_by_flavor
from kueue_fleet.fleet_file.check.scope import Scope, fleet_check
from kueue_fleet.fleet_file.model.entries import ClusterQueueEntry
from kueue_fleet.fleet_file.model.flavor_nodes import telling_label
from kueue_fleet.fleet_file.model.fleet import FleetSpec
from kueue_fleet.fleet_file.model.per_cluster import cohort_on, cohorts_on, quotas_on
from kueue_fleet.fleet_file.model.resolved_pools import NO_LIMIT, ResolvedNodePool
from kueue_fleet.fleet_file.rules.queues import AUTOPILOT_MANAGER, EMPTY_QUEUE, MIXED_NODES
from kueue_fleet.gke.labels import ACCELERATOR, GPU_RESOURCE
from kueue_fleet.settings.quotas import FleetResourceGroup

_LISTED: Final = 4

_Most = Mapping[str, Mapping[FlavorResource, Quantity]]
"""By cluster, the most of each resource of each flavor that a queue can ever have."""


@fleet_check
def _queues(scope: Scope) -> Iterator[Problem]:
    fleet = scope.fleet
    by_cluster = {name: most_by_flavor(fleet, name) for name in fleet.job_clusters}
    for queue in fleet.cluster_queues:
        here = [name for name in fleet.clusters_of(queue) if name in by_cluster]
        most = {name: by_cluster[name][queue.name] for name in here if queue.name in by_cluster[name]}
        yield from _nothing(scope, queue, most)
        yield from _mixed_nodes(scope, queue, most)
        yield from _kinds_of_gpu(scope, queue, most)


@where_read
def _nothing(scope: Scope, queue: ClusterQueueEntry, most: _Most) -> Iterator[Problem]:
    """Of the devices of a queue, or of all that it covers: what it has in windows, or once a reservation begins,
    counts."""
    fleet = scope.fleet
    resource_names = list(dict.fromkeys(name for group in queue.resource_groups for name in group.covered_resources))
    main = [name for name in resource_names if "/" in name] or resource_names
    unknown = any(fleet.flavor(name) is None for name in queue.flavor_names)
    is_unknown = unknown or any(fleet.is_closed(flavor, cluster) for cluster in most for flavor in queue.flavor_names)
    if not most or not main or queue.windows or queue.slack or queue.stop_policy not in (None, "None") or is_unknown:
        return
    amounts = (amount for of in most.values() for (_, resource), amount in of.items() if resource in main)
    if all(amount == ZERO for amount in amounts):  # what is below zero is refused by its field
        names = ", ".join(main)
        yield EMPTY_QUEUE.at(
            f"{scope.path(queue)}.resourceGroups",
            f"the quota for {names} is 0 in each flavor, and the queue can borrow none, so no job that requests it "
            "is ever admitted",
            _to_have_some(fleet, queue, main, most),
        )


def _to_have_some(fleet: FleetSpec, queue: ClusterQueueEntry, resource_names: Sequence[str], most: _Most) -> str:
    """How a queue that can borrow none gets quota: from its cohort, where limits of 0 keep it away, or its own."""
    parents, root = fleet.cohort_parents, root_of(queue.cohort_name, fleet.cohort_parents)
    if root is None:
        return "write a nominalQuota, or a cohortName by which it can borrow"
    above = [f"cohort {name}" for name in with_ancestors(queue.cohort_name, parents)]
    limits, lenders = list[str](), list[str]()
    for cluster in most:
        quotas = _quotas_in_tree(fleet, root, cluster)
        own = quotas.pop(queue.name, {})
        held = {
            of for some in quotas.values() for of, quota in some.items() if quota.nominal_quota > ZERO and of in own
        }
        held = {of for of in held if of[1] in resource_names}
        for name in ("", *above):
            some = quotas.pop(name, {}) if name else own
            if any(some[of].borrowing_limit == ZERO for of in held.intersection(some)):
                limits.append(f"borrowingLimit{f' of {name}' if name else ''}")
        for name, some in quotas.items():
            lends = [some[of] for of in held.intersection(some) if some[of].lending_limit == ZERO]
            if any(quota.nominal_quota > ZERO or fleet.queue(name) is None for quota in lends):
                lenders.append(name)
    if lenders:
        limits.append(f"lendingLimit of {suggest.either(list(dict.fromkeys(lenders))[:_LISTED])}")
    if not limits:
        return f"write a nominalQuota, here or for the same flavor elsewhere in cohort {root}"
    names = list(dict.fromkeys(limits))
    return f"raise {' and '.join(names)}, which {'is' if len(names) == 1 else 'are'} 0"


def _quotas_in_tree(fleet: FleetSpec, root: str, cluster: str) -> dict[str, dict[FlavorResource, ResourceQuota]]:
    """The quotas on a cluster of the queues below a cohort, and those of cohorts there, as `cohort NAME`."""
    parents = fleet.cohort_parents
    queues = [queue for queue in fleet.queues_on(cluster) if root_of(queue.cohort_name, parents) == root]
    cohorts = [cohort for cohort in cohorts_on(fleet, cluster) if root_of(cohort.name, parents) == root]
    return {queue.name: by_flavor(quotas_on(fleet, queue, cluster)) for queue in queues} | {
        f"cohort {cohort.name}": by_flavor(cohort_on(fleet, cohort, cluster).resource_groups) for cohort in cohorts
    }


@where_read
def _mixed_nodes(scope: Scope, queue: ClusterQueueEntry, most: _Most) -> Iterator[Problem]:
    """A pod as large as the nodes of one flavor gets the quota of another with smaller nodes: where that is tried
    first, or alone. Hardly a pod is as large as a node without GPUs, so that it counts if others are twice as large."""
    fleet = scope.fleet
    for g, group in enumerate(queue.resource_groups):
        for resource, least in ((GPU_RESOURCE, 1), ("cpu", 2)):
            small = _smaller_first(fleet, group, resource, least, most) if resource in group.covered_resources else None
            if small is None:
                continue
            name, size, largest, size_of_largest = small
            labels = [
                [fleet.flavor_on(entry, on).node_labels for on in most if _nodes(fleet, one, on, resource)]
                for one in (largest, name)
                if (entry := fleet.flavor(one)) is not None
            ]
            label = telling_label(labels[0][0], labels[1])
            select = f"let such pods select {label}" if label else f"put {largest} before it"
            yield MIXED_NODES.at(
                f"{scope.path(queue)}.resourceGroups[{g}].flavors",
                f"a pod gets {size_of_largest} {resource} of a node of {largest}, and {size} of one of {name}: one "
                f"that asks for more than that can get the quota of {name}, where it never starts",
                f"put {name} into a queue of its own, or {select}",
            )


def _smaller_first(
    fleet: FleetSpec, group: FleetResourceGroup, resource: str, least: int, most: _Most
) -> tuple[str, str, str, str] | None:
    """A flavor whose quota larger pods get than its nodes hold, and the one with the largest nodes, and their sizes."""
    names = [flavor.name for flavor in group.flavors]
    sizes = dict.fromkeys(names, 0)
    for name, on in product(names, most):
        amounts = [_most_of_pod(pool, resource) for pool in _nodes(fleet, name, on, resource)]
        sizes[name] = max([sizes[name], *(amount for amount in amounts if amount < NO_LIMIT)])
    largest = max(names, key=lambda name: sizes[name], default="")
    for name in names:
        first = names.index(name) < names.index(largest)
        here = [on for on in most if _takes_larger(fleet, name, resource, sizes[name], most[on])]
        before = any(first or not _nodes(fleet, largest, on, resource) for on in here)
        if 0 < sizes[name] < sizes[largest] and least * sizes[name] <= sizes[largest] and before:
            return name, amount_text(resource, sizes[name]), largest, amount_text(resource, sizes[largest])
    return None


@where_read
def _kinds_of_gpu(scope: Scope, queue: ClusterQueueEntry, most: _Most) -> Iterator[Problem]:
    """Jobs that are made on a manager on Autopilot select one kind of GPU; those of a compute class may have several.

    Source: `kueue_fleet.jobs.nodes`.
    """
    fleet = scope.fleet
    if not fleet.is_dispatched(queue.name) or fleet.cluster(fleet.home).mode != "Autopilot":
        return
    flavors = [flavor for name in queue.flavor_names if (flavor := fleet.flavor(name)) is not None]
    kinds = dict.fromkeys(
        kind
        for flavor in flavors
        for on in most
        for kind in (
            *(pool.accelerator for pool in _pools(fleet, flavor.name, on)),
            fleet.flavor_on(flavor, on).node_labels.get(ACCELERATOR),
        )
        if kind and on in fleet.clusters_of(flavor)
    )
    if len(kinds) > 1 and not any(flavor.compute_class for flavor in flavors):
        names = " and ".join(kinds)
        yield AUTOPILOT_MANAGER.at(
            f"{scope.path(queue)}.resourceGroups",
            f"lead to nodes with {names}, and {fleet.home} runs Autopilot, which refuses a job for GPUs that selects "
            f"no {ACCELERATOR}: each job can run on one of them only",
            "write mode: Standard for the manager, or make a queue for each kind of GPU",
        )


def _pools(fleet: FleetSpec, name: str, cluster: str) -> Sequence[ResolvedNodePool]:
    """The pools that a flavor leads to; DWS is asked for queued ones before pods are there."""
    flavor = fleet.flavor(name)
    return [pool for pool in fleet.flavor_nodes(flavor, cluster) if not pool.queued] if flavor is not None else []


def _nodes(fleet: FleetSpec, name: str, cluster: str, resource: str) -> Sequence[ResolvedNodePool]:
    """Those of them with GPUs; for CPUs, those without."""
    return [pool for pool in _pools(fleet, name, cluster) if bool(pool.devices_per_node) == (resource == GPU_RESOURCE)]


def _most_of_pod(pool: ResolvedNodePool, resource: str) -> int:
    """What a pod gets of a node; of shared GPUs, what a container gets."""
    of_gpus = if_known(lambda: pool.sharing.most_in_container(pool.accelerator, pool.gpus_per_node))
    return of_gpus if resource == GPU_RESOURCE and of_gpus else pool.amount_on_node(resource)


def _takes_larger(
    fleet: FleetSpec, name: str, resource: str, size: int, most: Mapping[FlavorResource, Quantity]
) -> bool:
    """Whether a larger pod than its nodes hold fits the flavor's quota, and Kueue does not see the nodes."""
    flavor, amount = fleet.flavor(name), most.get((name, resource), ZERO)
    return flavor is not None and flavor.topology_name is None and amount.counted(resource) > size
