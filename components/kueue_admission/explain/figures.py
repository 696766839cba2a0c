"""The quotas of a workload's queue in numbers: by flavor and resource what there is, who holds it, what is missing."""

from __future__ import annotations

from heapq import nsmallest

from kueue_admission.decide.flavors.assignment import FlavorAttempt, merge_attempts
from kueue_admission.decide.flavors.evidence import sentence
from kueue_admission.decide.queue.cluster_queue import QueueNode
from kueue_admission.decide.quota.cohort_tree import TreeNode, available
from kueue_admission.decide.scheduler.cache import Cache
from kueue_admission.decide.scheduler.entry import Entry
from kueue_admission.decide.workload.state import WorkloadInfo
from kueue_admission.explain.answer import FlavorFigures, Holder, Request, ResourceFigures
from kueue_admission.kernel.names import MULTIKUEUE_CONTROLLER

LISTED = 3
"""How many holders and how many workloads ahead are listed."""


def requests_of(info: WorkloadInfo) -> tuple[Request, ...]:
    """What each pod set asks for."""
    return tuple(Request(ps.name, ps.count, ps.requests) for ps in info.pod_sets)


def totals_of(cache: Cache, info: WorkloadInfo, queue: QueueNode) -> dict[str, int]:
    """What all pod sets ask for together, with `pods` where the queue has a quota for it.

    Of an elastic job's slice, that is what it needs beyond the one whose place it takes.
    """
    totals: dict[str, int] = {}
    for workload_info, sign in ((info, 1), (cache.replaced(info), -1)):
        for pod_set in workload_info.pod_sets if workload_info is not None else ():
            amounts = dict(pod_set.requests)
            if "pods" in queue.group_of:
                amounts["pods"] = pod_set.count
            for resource, amount in amounts.items():
                totals[resource] = totals.get(resource, 0) + sign * amount
    return {resource: totals[resource] for resource in sorted(totals)}


def figures(cache: Cache, info: WorkloadInfo, entry: Entry) -> tuple[FlavorFigures, ...]:
    """Every flavor of the queue, in the order in which Kueue tries them."""
    queue = entry.queue
    totals, of_workers = totals_of(cache, info, queue), flavors_of_workers(cache, queue)
    attempts: dict[str, list[FlavorAttempt]] = {}
    for pod_set in entry.assignment.pod_sets:
        for attempt in merge_attempts(pod_set, queue):
            attempts.setdefault(attempt.flavor, []).append(attempt)
    all_figures: list[FlavorFigures] = []
    for group in queue.groups:
        for flavor in group.flavors:
            flavor_attempts = attempts.get(flavor, [])
            against = dict.fromkeys(sentence(piece) for attempt in flavor_attempts for piece in attempt.evidence)
            resources = tuple(
                _figures(cache, queue, flavor, name, amount)
                for name, amount in totals.items()
                if name in group.covered and amount
            )
            all_figures.append(
                FlavorFigures(
                    flavor, bool(flavor_attempts), tuple(against), resources, is_of_workers=flavor in of_workers
                )
            )
    return tuple(all_figures)


def flavors_of_workers(cache: Cache, queue: QueueNode) -> frozenset[str]:
    """The flavors of the queue whose jobs MultiKueue sends to worker clusters."""
    dispatching = (name for name, check in cache.checks.items() if check.controller == MULTIKUEUE_CONTROLLER)
    return frozenset().union(*(queue.checks.get(name, ()) for name in dispatching))


def _figures(cache: Cache, queue: QueueNode, flavor: str, resource: str, asked_amount: int) -> ResourceFigures:
    fr = cache.ids.id(flavor, resource)
    free = available(queue, fr)
    root = queue.root()
    holders = [
        (-amount, info.priority, info.key, node.name)
        for node in all_queues_below(root)
        for info in node.workloads.values()
        for used_nodes, amount in info.usage
        if used_nodes == fr and amount
    ]
    return ResourceFigures(
        resource=resource,
        asked=asked_amount,
        nominal=queue.nominal.get(fr),
        borrowing_limit=queue.borrowing_limit.get(fr),
        used_by_queue=queue.usage.get(fr, 0),
        used_in_cohort=None if root is queue else -sum(one[0] for one in holders),
        capacity=queue.potential.get(fr, 0),
        free=free,
        missing=max(0, asked_amount - free),
        holders=tuple(Holder(key, name, prio, -less) for less, prio, key, name in nsmallest(LISTED, holders)),
        holder_count=len(holders),
    )


def all_queues_below(node: TreeNode) -> list[QueueNode]:
    """The ClusterQueues of a tree, those that are inactive too."""
    if isinstance(node, QueueNode):
        return [node]
    return [queue for member in node.members for queue in all_queues_below(member)]
