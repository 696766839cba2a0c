"""The flavor assigner: which flavor each pod set would get, resource by resource.

`assign` reads the queue's quota and usage and changes nothing; preemption is simulated by the oracle it is given, which
leaves usage as it was.

A slice of an elastic job that takes the place of another one (`Cache.replaced`) is looked for in the flavors of that
one, and only what it needs beyond it counts: the other has its quota until this one has all of it, so the quota of the
job never sinks meanwhile, and is never counted twice.
Source: kueue@v0.19.2 pkg/scheduler/flavorassigner/flavorassigner.go.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from kueue_admission.decide.amounts import resource_order
from kueue_admission.decide.flavors.assignment import (
    BEST,
    MODE_OF,
    WORST,
    Assignment,
    FlavorAttempt,
    FlavorChoice,
    Mode,
    PodSetResult,
    Possibility,
    Rank,
    is_preferred,
    resolve_no_fit_reason,
    should_try_next,
)
from kueue_admission.decide.flavors.evidence import (
    Evidence,
    ExceedsCapacity,
    FlavorNotAllowed,
    InsufficientQuota,
    NotNominated,
    ResourceUnavailable,
    SliceElsewhere,
)
from kueue_admission.decide.queue.cluster_queue import GroupLayout, QueueNode
from kueue_admission.decide.quota.cohort_tree import available, borrow_level
from kueue_admission.decide.reasons import QuotaReservedReason, most_severe
from kueue_admission.decide.scheduler.cache import Cache
from kueue_admission.decide.workload.scan_progress import ScanProgress
from kueue_admission.decide.workload.state import PodSetRequests, WorkloadInfo

Oracle = Callable[[QueueNode, WorkloadInfo, int, int], tuple[Possibility, int]]
"""Simulates preemption for one flavor-resource and amount: what is possible, and the borrow level afterwards."""

_PODS = "pods"


class _Search(NamedTuple):
    """What a search through the flavors needs to know."""

    cache: Cache
    info: WorkloadInfo
    queue: QueueNode
    oracle: Oracle
    cycle: int
    replaced: WorkloadInfo | None


def assign(
    cache: Cache, info: WorkloadInfo, oracle: Oracle, *, cycle: int = 0, counts: Sequence[int] | None = None
) -> Assignment:
    """Flavors for every pod set of `info` in its ClusterQueue, with `counts` pods each if given.

    The search continues from `info.last_progress` if there is one; `info.nomination` holds it to flavors chosen earlier
    in the cycle.
    """
    queue = cache.queues[info.cluster_queue]
    search = _Search(cache, info, queue, oracle, cycle, cache.replaced(info))
    assignment = Assignment()
    tried_flavors: list[dict[str, int]] = []
    requests = (
        info.pod_sets if counts is None else [ps.scaled_to(n) for ps, n in zip(info.pod_sets, counts, strict=True)]
    )
    for members in _grouped(requests):
        results = _assign_group(search, members, assignment)
        for result in results:
            _append(assignment, result, tried_flavors, search)
        if any(result.error or (result.requests and not result.flavors) for result in results):
            assignment.progress = ScanProgress(tuple(tried_flavors), queue.generation, cycle, info.shape)
            resolve_no_fit_reason(assignment, queue)
            return assignment
    assignment.progress = ScanProgress(tuple(tried_flavors), queue.generation, cycle, info.shape)
    if assignment.mode is not Mode.NO_FIT and cache.gates.topology_aware_scheduling:
        cache.places.place(cache, info, queue, assignment)
    if assignment.mode is Mode.NO_FIT:
        resolve_no_fit_reason(assignment, queue)
    return assignment


def _grouped(requests: Sequence[PodSetRequests]) -> list[list[tuple[int, PodSetRequests]]]:
    """Pod sets that must get the same flavors together, in order of first appearance."""
    if len(requests) == 1:
        return [[(0, requests[0])]]
    groups: dict[str, list[tuple[int, PodSetRequests]]] = {}
    for index, pod_set in enumerate(requests):
        topology = pod_set.pod_set.topology
        name = topology.group if topology is not None and topology.group is not None else str(index)
        groups.setdefault(name, []).append((index, pod_set))
    return list(groups.values())


def _assign_group(
    search: _Search, members: list[tuple[int, PodSetRequests]], assignment: Assignment
) -> list[PodSetResult]:
    queue = search.queue
    amounts = [_amounts_of(queue, requests) for _, requests in members]
    totals: dict[str, int] = {}
    for pairs in amounts:
        for resource, amount in pairs:
            totals[resource] = totals.get(resource, 0) + amount
    resource_names = sorted(totals, key=resource_order) if len(totals) > 1 else list(totals)
    choices = {
        resource: FlavorChoice(flavor, Mode.FIT)
        for _, requests in members
        for resource, flavor in (requests.flavors or {}).items()
    }
    evidence: list[Evidence] = []
    considered_flavors: list[tuple[str, list[FlavorAttempt]]] = []
    is_found = True
    for resource in resource_names:
        group = queue.group_of.get(resource)
        if group is None and (totals[resource] == 0 or search.cache.configuration.ignore_undeclared_resources):
            continue
        if resource in choices:
            continue
        if group is None:
            flavor_choices: dict[str, FlavorChoice] = {}
            reasons: list[Evidence] = [ResourceUnavailable(resource)]
            attempts: list[FlavorAttempt] = []
        else:
            amounts_needed = [(name, totals[name]) for name in resource_names if name in group.covered]
            flavor_choices, reasons, attempts = _find_flavor(
                search, members, amounts_needed, resource, group, assignment.usage
            )
        considered_flavors.append((resource, attempts))
        if not flavor_choices:
            is_found, evidence = False, reasons
            break
        choices.update(flavor_choices)
        evidence += reasons
    overrides: dict[str, QuotaReservedReason] = {}
    results = []
    for (_, requests), pairs in zip(members, amounts, strict=True):
        flavors = _flavors_for(search, requests, pairs, choices) if is_found else None
        result = PodSetResult(requests.name, requests.count, pairs, flavors, evidence)
        result.considered = considered_flavors
        result.overrides = overrides  # What a flavor fails by is that of the whole group.
        result.topology, result.topology_levels = requests.topology, requests.topology_levels
        results.append(result)
    return results


def _amounts_of(queue: QueueNode, requests: PodSetRequests) -> tuple[tuple[str, int], ...]:
    """What the quota of a pod set is counted by: its pods too, where the queue has quota for them."""
    if _PODS not in queue.group_of:
        return requests.requests
    return (*(pair for pair in requests.requests if pair[0] != _PODS), (_PODS, requests.count))


def _flavors_for(
    search: _Search,
    requests: PodSetRequests,
    amounts: tuple[tuple[str, int], ...],
    flavor_choices: dict[str, FlavorChoice],
) -> dict[str, FlavorChoice]:
    """The chosen flavors of the resources this pod set asks for.

    A pod set in a topology group that asks for nothing takes the group's topology-aware flavors, to be placed with it,
    where the release does so.
    """
    if amounts:
        names = {resource for resource, _ in amounts}
        return {resource: choice for resource, choice in flavor_choices.items() if resource in names}
    topology = requests.pod_set.topology
    places = search.cache.gates.behaviours.places_pods_without_requests
    if places and topology is not None and topology.group is not None:
        return {res: choice for res, choice in flavor_choices.items() if choice.flavor in search.queue.tas_flavors}
    return {}


def _find_flavor(
    search: _Search,
    members: list[tuple[int, PodSetRequests]],
    wanted_requests: list[tuple[str, int]],
    resource: str,
    group: GroupLayout,
    assumed_usage: dict[int, int],
) -> tuple[dict[str, FlavorChoice], list[Evidence], list[FlavorAttempt]]:
    """Walk the flavors of one resource group; the best choice, what spoke against flavors, and every attempt."""
    cache, info, queue = search.cache, search.info, search.queue
    fungibility = queue.spec.fungibility
    fungible, behaviours = cache.gates.flavor_fungibility, cache.gates.behaviours
    evidence: list[Evidence] = []
    attempts: list[FlavorAttempt] = []
    best: dict[str, FlavorChoice] = {}
    best_rank = WORST
    start = 0
    if fungible and info.last_progress is not None:
        start = info.last_progress.next_index(members[0][0], resource, len(group.flavors))
    last_index = -1
    for index in range(start, len(group.flavors)):
        last_index = index
        flavor = group.flavors[index]
        against = _against(search, members, resource, flavor, group)
        if against is not None:
            evidence.append(against)
            if not isinstance(against, (NotNominated, FlavorNotAllowed)):
                attempts.append(
                    FlavorAttempt(
                        flavor, Mode.NO_FIT, evidence=(against,), no_fit_reason=QuotaReservedReason.NO_MATCHING_FLAVOR
                    )
                )
            continue
        choice, rank, attempt = _try_flavor(search, flavor, group.frs[index], wanted_requests, assumed_usage, members)
        evidence += attempt.evidence
        attempts.append(attempt)
        stops = not should_try_next(rank, fungibility) if fungible else rank[0] == Possibility.FIT
        better = is_preferred(rank, best_rank, fungibility, behaviours) if fungible else rank[0] > best_rank[0]
        if stops or better:
            best, best_rank = choice, rank
        if stops:
            break
    if fungible:
        stop_index = -1 if last_index == len(group.flavors) - 1 else last_index
        for taken in best.values():
            taken.tried_index = stop_index
    if best_rank[0] == Possibility.FIT:
        evidence = []
    return best, evidence, attempts


def _against(
    search: _Search, members: list[tuple[int, PodSetRequests]], resource: str, flavor: str, group: GroupLayout
) -> Evidence | None:
    """What rules a flavor out for one of the pod sets, whatever the quota."""
    nomination = search.info.nomination
    if nomination and all(nomination.get(requests.name, {}).get(resource) != flavor for _, requests in members):
        return NotNominated(flavor, resource)
    allowed_flavors = search.info.workload.allowed_flavors
    if allowed_flavors is not None and flavor not in allowed_flavors and search.cache.gates.concurrent_admission:
        return FlavorNotAllowed(flavor)
    for _, requests in members:
        evidence = search.cache.eligibility(requests, flavor, search.queue, group)
        if evidence is not None:
            return evidence
    return None


def _beyond_replaced(
    search: _Search, flavor: str, resource: str, amount: int, members: list[tuple[int, PodSetRequests]]
) -> tuple[int, SliceElsewhere | None]:
    """What the pod sets need of a flavor beyond what the slice has that they replace; or that it has another one."""
    replaced_usage = search.replaced
    if replaced_usage is None:
        return amount, None
    for index, _ in members:
        before = replaced_usage.pod_sets[index]
        original = (before.flavors or {}).get(resource, "")
        if original != flavor:
            return amount, SliceElsewhere(flavor, original)
        amount -= dict(before.requests).get(resource, 0)
    return amount, None


def _try_flavor(
    search: _Search,
    flavor: str,
    frs: dict[str, int],
    wanted_requests: list[tuple[str, int]],
    assumed_usage: dict[int, int],
    members: list[tuple[int, PodSetRequests]],
) -> tuple[dict[str, FlavorChoice], Rank, FlavorAttempt]:
    """How well one flavor fits all requested resources of its group: as well as the worst of them."""
    fungibility, behaviours = search.queue.spec.fungibility, search.cache.gates.behaviours
    choice: dict[str, FlavorChoice] = {}
    rank: Rank = BEST
    borrow = 0
    evidence: list[Evidence] = []
    reason: QuotaReservedReason | None = None
    for resource, total in wanted_requests:
        amount, elsewhere = _beyond_replaced(search, flavor, resource, total, members)
        if elsewhere is not None:
            evidence.append(elsewhere)
            rank, reason = WORST, QuotaReservedReason.NO_MATCHING_FLAVOR
        possibility, level, against, why = _fits_quota(search, flavor, resource, frs[resource], assumed_usage, amount)
        if against is not None:
            evidence.append(against)
            reason = most_severe(reason, why)
        if level > borrow:
            borrow = level
        this = (possibility, level)
        if is_preferred(rank, this, fungibility, behaviours):
            rank = this
        if rank[0] != Possibility.NO_FIT:
            choice[resource] = FlavorChoice(flavor, MODE_OF[possibility], level)
    shown_rank = rank[0] if Possibility.NO_FIT < rank[0] < Possibility.FIT else None
    attempt = FlavorAttempt(
        flavor,
        MODE_OF[rank[0]],
        borrow,
        None if shown_rank is None else Possibility(shown_rank),
        tuple(evidence),
        reason,
    )
    return choice, rank, attempt


def _fits_quota(
    search: _Search, flavor: str, resource: str, fr: int, assumed_usage: dict[int, int], amount: int
) -> tuple[Possibility, int, Evidence | None, QuotaReservedReason | None]:
    """How `amount` of one flavor-resource could be had: the possibility, borrow level, what is missing and why."""
    queue = search.queue
    earlier = assumed_usage.get(fr, 0)
    total = earlier + amount
    capacity = queue.potential.get(fr, 0)
    if total > capacity:
        against = ExceedsCapacity(flavor, resource, earlier, amount, capacity)
        return Possibility.NO_FIT, 0, against, QuotaReservedReason.EXCEEDS_MAX_QUOTA
    level, may_reclaim = borrow_level(queue, fr, total)
    free = available(queue, fr)
    if total <= free:
        return Possibility.FIT, level, None, None
    missing_quota = InsufficientQuota(flavor, resource, total, free)
    if queue.nominal.get(fr, 0) >= total or may_reclaim or queue.can_preempt_while_borrowing:
        possibility, level = search.oracle(queue, search.info, fr, total)
        return possibility, level, missing_quota, None
    return Possibility.NO_FIT, level, missing_quota, QuotaReservedReason.WAITING_FOR_QUOTA


def _append(assignment: Assignment, result: PodSetResult, tried_flavors: list[dict[str, int]], search: _Search) -> None:
    assignment.pod_sets.append(result)
    amounts = dict(result.requests)
    had = _held_by(search.replaced, result.name)
    for resource, choice in result.flavors.items():
        if choice.borrow > assignment.borrowing:
            assignment.borrowing = choice.borrow
        fr = search.cache.ids.id(choice.flavor, resource)
        assignment.usage[fr] = assignment.usage.get(fr, 0) + amounts.get(resource, 0) - had.get(resource, 0)
    tried_flavors.append({resource: choice.tried_index for resource, choice in result.flavors.items()})


def _held_by(workload_info: WorkloadInfo | None, pod_set: str) -> dict[str, int]:
    """What the pod set of this name has already in the slice that is replaced."""
    for before in workload_info.pod_sets if workload_info is not None else ():
        if before.name == pod_set:
            return dict(before.requests)
    return {}


def needing_preemption(assignment: Assignment, cache: Cache) -> frozenset[int]:
    """The flavor-resources that were chosen although they need preemption."""
    return frozenset(
        cache.ids.id(choice.flavor, resource)
        for pod_set in assignment.pod_sets
        for resource, choice in pod_set.flavors.items()
        if choice.mode is Mode.PREEMPT
    )


def total_requests(assignment: Assignment, info: WorkloadInfo, cache: Cache) -> tuple[tuple[int, int], ...]:
    """What the workload needs of each flavor-resource: without zero amounts, and without the implied `pods`.

    Kueue leaves `pods` out here too, so that preemption is not sized by it.
    """
    totals: dict[int, int] = {}
    replaced_info = cache.replaced(info)
    for index, (result, requests) in enumerate(zip(assignment.pod_sets, info.pod_sets, strict=False)):
        count = result.count if replaced_info is None else requests.count - replaced_info.pod_sets[index].count
        for resource, amount in requests.scaled_to(count).requests:
            choice = result.flavors.get(resource)
            if amount and choice is not None:
                fr = cache.ids.id(choice.flavor, resource)
                totals[fr] = totals.get(fr, 0) + amount
    return tuple(totals.items())
