"""The evidence in numbers: quotas and their holders per flavor, the place in the queue, the victims."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import nsmallest

from kueue_admission.decide.engine import Engine
from kueue_admission.decide.flavors.assignment import FlavorAttempt, merge_attempts
from kueue_admission.decide.flavors.evidence import sentence
from kueue_admission.decide.queue.cluster_queue import QueueNode
from kueue_admission.decide.quota.cohort_tree import TreeNode, available
from kueue_admission.decide.scheduler.cache import Cache
from kueue_admission.decide.scheduler.entry import Entry, Outcome
from kueue_admission.decide.workload.state import WorkloadInfo
from kueue_admission.explain.answer import FlavorFigures, Holder, Holding, Position, Request, ResourceFigures, Waiting

LISTED = 3
"""How many holders and how many workloads ahead are listed."""


def listed(names: Sequence[str]) -> str:
    """The first names, and how many more there are."""
    return ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")


def requests_of(info: WorkloadInfo) -> tuple[Request, ...]:
    """What each pod set asks for."""
    return tuple(Request(ps.name, ps.count, ps.requests) for ps in info.pod_sets)


def holdings_of(engine: Engine, info: WorkloadInfo) -> tuple[Holding, ...]:
    """What it holds of each flavor; nothing without a reservation."""
    held: dict[str, list[tuple[str, int]]] = {}
    for fr, amount in info.usage:
        flavor, resource = engine.cache.ids.names[fr]
        held.setdefault(flavor, []).append((resource, amount))
    return tuple(Holding(flavor, tuple(sorted(held[flavor]))) for flavor in sorted(held))


def totals_of(cache: Cache, info: WorkloadInfo, queue: QueueNode) -> dict[str, int]:
    """What all pod sets ask for together, with `pods` where the queue has a quota for it.

    Of an elastic job's slice, that is what it needs beyond the one whose place it takes.
    """
    totals: dict[str, int] = {}
    for each, sign in ((info, 1), (cache.replaced(info), -1)):
        for pod_set in each.pod_sets if each is not None else ():
            amounts = dict(pod_set.requests)
            if "pods" in queue.group_of:
                amounts["pods"] = pod_set.count
            for resource, amount in amounts.items():
                totals[resource] = totals.get(resource, 0) + sign * amount
    return {resource: totals[resource] for resource in sorted(totals)}


def figures(cache: Cache, info: WorkloadInfo, entry: Entry) -> tuple[FlavorFigures, ...]:
    """Every flavor of the queue, in the order in which Kueue tries them."""
    queue = entry.queue
    totals = totals_of(cache, info, queue)
    attempts: dict[str, list[FlavorAttempt]] = {}
    for pod_set in entry.assignment.pod_sets:
        for attempt in merge_attempts(pod_set, queue):
            attempts.setdefault(attempt.flavor, []).append(attempt)
    found: list[FlavorFigures] = []
    for group in queue.groups:
        for flavor in group.flavors:
            tried = attempts.get(flavor, [])
            against = dict.fromkeys(sentence(piece) for attempt in tried for piece in attempt.evidence)
            resources = tuple(
                _figures(cache, queue, flavor, name, amount)
                for name, amount in totals.items()
                if name in group.covered and amount
            )
            found.append(FlavorFigures(flavor, bool(tried), tuple(against), resources))
    return tuple(found)


def _figures(cache: Cache, queue: QueueNode, flavor: str, resource: str, asked: int) -> ResourceFigures:
    fr = cache.ids.id(flavor, resource)
    free = available(queue, fr)
    root = queue.root()
    held = [
        (-amount, info.priority, info.key, node.name)
        for node in all_queues_below(root)
        for info in node.workloads.values()
        for used, amount in info.usage
        if used == fr and amount
    ]
    return ResourceFigures(
        resource=resource,
        asked=asked,
        nominal=queue.nominal.get(fr),
        borrowing_limit=queue.borrowing_limit.get(fr),
        used_by_queue=queue.usage.get(fr, 0),
        used_in_cohort=None if root is queue else -sum(one[0] for one in held),
        capacity=queue.potential.get(fr, 0),
        free=free,
        missing=max(0, asked - free),
        holders=tuple(Holder(key, name, prio, -less) for less, prio, key, name in nsmallest(LISTED, held)),
        holder_count=len(held),
    )


def all_queues_below(node: TreeNode) -> list[QueueNode]:
    """The ClusterQueues of a tree, those that are inactive too."""
    if isinstance(node, QueueNode):
        return [node]
    return [queue for member in node.members for queue in all_queues_below(member)]


def position_of(engine: Engine, info: WorkloadInfo) -> Position | None:
    """Its place among the pending workloads; None if it is in no queue."""
    if info.cluster_queue not in engine.cache.queues or info.key not in engine.pending(info.cluster_queue):
        return None
    pending = engine.pending(info.cluster_queue)
    mine = pending.order_of(info)
    ahead = [other for other in pending.infos() if pending.order_of(other) < mine]
    first = nsmallest(LISTED, ahead, key=pending.order_of)
    listed = tuple(Waiting(other.key, other.priority, _reason(engine, other)) for other in first)
    return Position(len(ahead) + 1, len(pending), pending.strategy, listed)


def _reason(engine: Engine, info: WorkloadInfo) -> str:
    entry = engine.examine(info.key)
    if entry.outcome is Outcome.ADMITTED:
        return "PendingEvaluation"
    return str(entry.why or "PendingEvaluation")


def victims_of(entry: Entry | None) -> tuple[Holder, ...]:
    """Who would be preempted for it; the amount is not meant here and is 0."""
    if entry is None or entry.outcome is not Outcome.PREEMPTING:
        return ()
    found = {t.info.key: Holder(t.info.key, t.info.cluster_queue, t.info.priority, 0) for t in entry.targets}
    return tuple(found[key] for key in sorted(found))
