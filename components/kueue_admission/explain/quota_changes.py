"""Changes for a workload that waits for quota, or asks for more than there can be."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from heapq import nsmallest
from itertools import chain

from kueue_admission.api.cluster_queue import ClusterQueuePreemption
from kueue_admission.decide.amounts import format_amount, is_unlimited
from kueue_admission.decide.model import FlavorQuotas, ResourceQuota, Workload
from kueue_admission.decide.queue.cluster_queue import QueueNode
from kueue_admission.decide.quota.cohort_tree import TreeNode, local_available, raw_available
from kueue_admission.decide.scheduler.entry import Entry
from kueue_admission.explain.changes import NewAmount
from kueue_admission.explain.figures import all_queues_below, totals_of
from kueue_admission.explain.placement import is_on, unplaced
from kueue_admission.explain.trials import (
    FIELDS,
    Edit,
    Trials,
    edit_pods,
    edit_queue,
    least,
    raise_quota,
    together,
    without,
)
from kueue_admission.explain.worker_state import listed

MOST_VICTIMS = 64
"""How many holders are considered when asking whose end would make room."""


def quota_changes(trials: Trials, entry: Entry) -> None:
    """More quota and higher limits, more priority, other preemption policies, fewer pods, others finishing."""
    for group in entry.queue.groups:
        for flavor in group.flavors:
            _raise(trials, entry, flavor, "nominalQuota")
            _raise(trials, entry, flavor, "borrowingLimit")
            _lend(trials, entry, flavor)
    if not trials.found:
        _cover(trials, entry)
    _policies(trials, entry)
    _priority(trials, entry)
    _fewer_pods(trials)
    finishing(trials, entry)


def _raise(trials: Trials, entry: Entry, flavor: str, field: str) -> None:
    """The least increase of one flavor's quotas, or borrowing limits, that admits the workload."""
    queue, ids = entry.queue, trials.before.engine.cache.ids
    if trials.with_workers and flavor in trials.of_workers:
        return
    missing_amounts = _missing(trials, entry, flavor)
    current_value = getattr(queue, FIELDS[field])
    if any(
        ids.id(flavor, resource) not in current_value or is_unlimited(amount)
        for resource, amount in missing_amounts.items()
    ):
        return
    amounts = _least_amounts(trials, missing_amounts, lambda more: raise_quota(queue, flavor, field, more))
    if amounts:
        offer_more(trials, flavor, field, [(queue, amounts)])


def offer_more(trials: Trials, flavor: str, field: str, raises: Sequence[tuple[TreeNode, Mapping[str, int]]]) -> bool:
    """Add to one of FIELDS of one flavor, unless that is more quota than its nodes can hold; whether it admits."""
    if field == "nominalQuota" and any(
        amount > trials.room.get((flavor, resource), amount) for _, more in raises for resource, amount in more.items()
    ):
        return False
    amounts = [tuple(_new_amounts(trials, node, flavor, field, more)) for node, more in raises]
    what = ", and ".join(_raise_text(trials, own_amounts) for own_amounts in amounts)
    edit = together(raise_quota(node, flavor, field, more) for node, more in raises)
    return trials.offer(field, what, edit, amounts=tuple(chain.from_iterable(amounts)))


def _missing(trials: Trials, entry: Entry, flavor: str) -> dict[str, int]:
    """How much of the flavor's quota the workload lacks, by resource."""
    queue, cache = entry.queue, trials.before.engine.cache
    amounts = {
        resource: request - raw_available(queue, cache.ids.id(flavor, resource))
        for group in queue.groups
        if flavor in group.flavor_names
        for resource, request in totals_of(cache, entry.info, queue).items()
        if resource in group.covered
    }
    return {resource: amount for resource, amount in amounts.items() if amount > 0}


def _least_amounts(
    trials: Trials, amounts: Mapping[str, int], edit: Callable[[Mapping[str, int]], Edit]
) -> dict[str, int] | None:
    """The least of each amount with which the edit admits the workload; None if these amounts are not enough."""
    least_amounts = dict(amounts)
    for resource in amounts:

        def works(amount: int, name: str = resource) -> bool:
            return trials.admits(edit({**least_amounts, name: amount}))

        least_amount = least(least_amounts[resource], works)
        if least_amount is None:
            return None
        least_amounts[resource] = least_amount
    return least_amounts


def _lend(trials: Trials, entry: Entry, flavor: str) -> None:
    """A higher lendingLimit of one that keeps quota to itself and does not use it, else of all such together."""
    if trials.with_workers and flavor in trials.of_workers:
        return
    ids, missing_amounts = trials.before.engine.cache.ids, _missing(trials, entry, flavor)
    own = {entry.queue.name, *(node.name for node in entry.queue.path())}
    kept_amounts: list[tuple[TreeNode, dict[str, int]]] = []
    for node in _nodes_below(entry.queue.root()):
        unused_amounts = {resource: local_available(node, ids.id(flavor, resource)) for resource in missing_amounts}
        more = {
            resource: min(missing_amounts[resource], amount) for resource, amount in unused_amounts.items() if amount
        }
        if more and node.name not in own:
            kept_amounts.append((node, more))
    enough = [_offer_to_lend(trials, flavor, [node_amounts]) for node_amounts in kept_amounts]
    if len(kept_amounts) > 1 and not any(enough):
        _offer_to_lend(trials, flavor, kept_amounts)


def _offer_to_lend(trials: Trials, flavor: str, lenders: list[tuple[TreeNode, dict[str, int]]]) -> bool:
    """The first lenders whose limits have to be raised by this much, the last of them by the least that is enough."""

    def raised(those: Iterable[tuple[TreeNode, Mapping[str, int]]]) -> Edit:
        return together(raise_quota(node, flavor, "lendingLimit", more) for node, more in those)

    count = least(len(lenders), lambda n: trials.admits(raised(lenders[:n])))
    if count is None:
        return False
    *first, (last, most) = lenders[:count]
    needed_amounts = [*first, (last, _least_amounts(trials, most, lambda more: raised([*first, (last, more)])) or most)]
    return offer_more(trials, flavor, "lendingLimit", needed_amounts)


def _nodes_below(node: TreeNode) -> Iterator[TreeNode]:
    yield node
    for child in node.members:
        yield from _nodes_below(child)


def _new_amounts(
    trials: Trials, node: TreeNode, flavor: str, field: str, more: Mapping[str, int]
) -> Iterator[NewAmount]:
    current_value = getattr(node, FIELDS[field])
    for resource, amount in more.items():
        before = current_value[trials.before.engine.cache.ids.id(flavor, resource)]
        kind = "ClusterQueue" if node.is_queue else "Cohort"
        yield NewAmount(kind, node.name, field, before, before + amount, flavor, resource)


def _raise_text(trials: Trials, amounts: Sequence[NewAmount]) -> str:
    """The words for those of one queue or cohort, in one flavor."""
    parts = [
        f"{new.resource} by {format_amount(new.resource, new.after - (new.before or 0))}, from "
        f"{format_amount(new.resource, new.before or 0)} to {format_amount(new.resource, new.after)}"
        for new in amounts
    ]
    first = amounts[0]
    where = f"in flavor {first.flavor}"
    if first.flavor in trials.of_workers:
        where = f"on a worker cluster, and {where} here if that does not follow"
    return f"raise the {first.field} of {first.kind} {first.name} {where}: {'; '.join(parts)}"


def _cover(trials: Trials, entry: Entry) -> None:
    """Quota for resources that no resource group of the queue covers, in each flavor of its first group."""
    queue = entry.queue
    lacking = {
        r: n
        for r, n in totals_of(trials.before.engine.cache, entry.info, queue).items()
        if n and r not in queue.group_of
    }
    is_ignored = trials.before.engine.cache.configuration.ignore_undeclared_resources
    if is_ignored or not lacking or not queue.spec.groups:
        return
    first = queue.spec.groups[0]
    more = tuple((resource, ResourceQuota(amount)) for resource, amount in lacking.items())
    wider = replace(
        first,
        covered_resources=(*first.covered_resources, *lacking),
        flavors=tuple(FlavorQuotas(f.flavor, (*f.quotas, *more)) for f in first.flavors),
    )
    text = ", ".join(f"{resource} {format_amount(resource, amount)}" for resource, amount in lacking.items())
    trials.offer(
        "coveredResources",
        f"cover what ClusterQueue {queue.name} has no quota for, in each flavor of its first resource group: {text}",
        edit_queue(queue.name, lambda q: replace(q, groups=(wider, *q.groups[1:]))),
        amounts=tuple(
            NewAmount("ClusterQueue", queue.name, "nominalQuota", None, amount, f.flavor, resource)
            for f in first.flavors
            for resource, amount in lacking.items()
        ),
    )
    trials.offer(
        "excludeResourcePrefixes",
        f"have Kueue count no {', '.join(lacking)}: list it in resources.excludeResourcePrefixes of its Configuration",
        edit_pods(lambda each: replace(each, requests=tuple(pair for pair in each.requests if pair[0] not in lacking))),
    )


def _policies(trials: Trials, entry: Entry) -> None:
    """One preemption policy at a time, the mildest that helps."""
    queue = entry.queue
    now = queue.spec.preemption
    _stop_search(trials, queue)

    offer = partial(offer_policies, trials, queue.name)

    if now.within_cluster_queue == "Never":
        any(
            offer("withinClusterQueue", policy, now.model_copy(update={"within_cluster_queue": policy}))
            for policy in ("LowerPriority", "LowerOrNewerEqualPriority")
        )
    if queue.parent is None:
        return
    if now.reclaim_within_cohort != "Any":
        milder = ("LowerPriority",) if now.reclaim_within_cohort == "Never" else ()
        if any(
            offer("reclaimWithinCohort", policy, now.model_copy(update={"reclaim_within_cohort": policy}))
            for policy in (*milder, "Any")
        ):
            return
    if now.borrow_within_cohort.policy == "Never":
        offer("borrowWithinCohort.policy", *while_borrowing(now))


def offer_policies(trials: Trials, queue: str, field: str, value: str, policies: ClusterQueuePreemption) -> bool:
    """The preemption policies of a queue, which differ in a field; whether they admit the workload."""
    edit = edit_queue(queue, lambda known: replace(known, preemption=policies))
    what = f"set preemption.{field} of ClusterQueue {queue} to {value}"
    return trials.offer_if_admitted("preemption", what, edit)


def _stop_search(trials: Trials, queue: QueueNode) -> None:
    """Preemption in a flavor before the next one is tried: quota there does not show whether there are nodes for it."""
    now = queue.spec.fungibility
    if now.when_can_preempt == "TryNextFlavor" and any(len(group.flavors) > 1 for group in queue.groups):
        stopping = now.model_copy(update={"when_can_preempt": "MayStopSearch", "preference": None})
        edit = edit_queue(queue.name, lambda q: replace(q, fungibility=stopping))
        what = f"set flavorFungibility.whenCanPreempt of ClusterQueue {queue.name} to MayStopSearch"
        trials.offer_if_admitted("flavorFungibility", what, edit)


def while_borrowing(now: ClusterQueuePreemption) -> tuple[str, ClusterQueuePreemption]:
    """The policies with which a queue that borrows preempts too, and the change in words after the field's name."""
    lower = now.borrow_within_cohort.model_copy(update={"policy": "LowerPriority"})
    if now.reclaim_within_cohort != "Never":
        return "LowerPriority", now.model_copy(update={"borrow_within_cohort": lower})
    both = {"borrow_within_cohort": lower, "reclaim_within_cohort": "LowerPriority"}
    return "LowerPriority, with reclaimWithinCohort LowerPriority", now.model_copy(update=both)


def _priority(trials: Trials, entry: Entry) -> None:
    """The least priority with which it could preempt, under the policies as they are."""
    info = entry.info
    priorities = {other.priority for node in all_queues_below(entry.queue.root()) for other in node.workloads.values()}
    rungs = sorted(priority + 1 for priority in priorities if priority >= info.priority)

    def edit(index: int) -> Edit:
        return Edit(workload=lambda w: replace(w, priority=rungs[index - 1]))

    rung = least(len(rungs), lambda index: trials.admits(edit(index), preempting=True))
    if rung is not None:
        what = f"give the workload priority {rungs[rung - 1]} or more (it has {info.priority})"
        new = NewAmount("Workload", trials.key, "priority", info.priority, rungs[rung - 1])
        trials.offer("priority", what, edit(rung), amounts=(new,))


def _fewer_pods(trials: Trials) -> None:
    """The most pods of its largest pod set with which it would fit."""
    info = trials.before.engine.workloads[trials.key]
    largest = max(info.workload.pod_sets, key=lambda pod_set: pod_set.count, default=None)
    if largest is None or largest.count < 2:
        return

    def fewer(workload: Workload, less: int) -> Workload:
        pod_sets = tuple(
            replace(ps, count=ps.count - less, min_count=None) if ps.name == largest.name else ps
            for ps in workload.pod_sets
        )
        return replace(workload, pod_sets=pod_sets)

    def edit(less: int) -> Edit:
        return Edit(workload=lambda workload: fewer(workload, less))

    least_count = least(largest.count - 1, lambda less: trials.admits(edit(less)))
    if least_count is not None:
        count_left = largest.count - least_count
        pods = "1 pod" if count_left == 1 else f"{count_left} pods"
        what = f"ask for {pods} instead of {largest.count} in pod set {largest.name}"
        new = NewAmount("Workload", trials.key, f"podSets[{largest.name}].count", largest.count, count_left)
        trials.offer("count", what, edit(least_count), amounts=(new,))


def finishing(trials: Trials, entry: Entry) -> None:
    """Whose end would make room: the fewest of the largest holders, then without those that are not needed."""
    queue, ids = entry.queue, trials.before.engine.cache.ids
    totals = totals_of(trials.before.engine.cache, entry.info, queue)
    amounts_needed = {
        ids.id(flavor, r): max(1, amount)
        for group in queue.groups
        for flavor in group.flavors
        for r, amount in totals.items()
    }
    states = [lacking.state for lacking in unplaced(trials.before.engine, entry)]
    # Flavors of other trees may lead to the same nodes.
    queues = list(trials.before.engine.cache.queues.values()) if states else all_queues_below(queue.root())
    usage: dict[str, int] = {}
    for node in queues:
        for info in node.workloads.values():
            shares = [amount * 1000 // amounts_needed[fr] for fr, amount in info.usage if fr in amounts_needed]
            usage[info.key] = max(shares, default=0) or int(any(is_on(state, info) for state in states))
    largest = nsmallest(MOST_VICTIMS, ((-share, key) for key, share in usage.items() if share))
    order = [key for _, key in largest]

    def works(keys: list[str]) -> bool:
        return trials.admits(without(keys), preempting=True)

    count = least(len(order), lambda n: works(order[:n]))
    if count is None:
        return
    # Where nodes are what is short, holders of others are among the largest; those of one domain may be enough.
    needed_keys = _fewest(order[:count], works) if states or count <= 8 else order[:count]
    never = [key for key in needed_keys if key in trials.unplaceable]
    waits = [key for key in needed_keys if key not in trials.unplaceable]
    parts = [f"delete {listed(never)}, which no worker cluster can ever hold"] if never else []
    parts += [f"wait until {listed(waits)} {'has' if len(waits) == 1 else 'have'} finished"] if waits else []
    trials.offer("finish", ", and ".join(parts), without(needed_keys))


def _fewest(keys: list[str], works: Callable[[list[str]], bool]) -> list[str]:
    """Those of the keys, which work together, without any that is not needed."""
    size = len(keys) // 2
    while size:
        for begin in reversed(range(0, len(keys), size)):
            rest = keys[:begin] + keys[begin + size :]
            if rest and works(rest):
                keys = rest
        size //= 2
    return keys
