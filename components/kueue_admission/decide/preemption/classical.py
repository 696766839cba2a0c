"""Classical preemption: within the queue, and from other queues of the cohort tree by distance.

A candidate of another queue is either one over which the preemptor has a hierarchical advantage (the request fits in
the quota of a subtree that the candidate's queue is outside of, or borrows from), or one chosen by priority.

Why the order decides: candidates are taken out one after the other until the workload fits, the cheapest first: those
that are evicted already, then by right (hierarchy, priority, own queue), and within each lower priority first and of
equals the most recent, which loses the least work. Less usage never makes less room, so the first prefix that fits is
enough, and nothing behind it is looked at. It may hold too many: one that was taken early can be needless once a
larger one is gone. So all but the last are put back in turn, the most expensive first, and stay if the workload still
fits. None of the rest can be spared, though a smaller set may exist. The workloads of a queue that stops borrowing
during the trial are not candidates any longer, so `_is_valid` asks at their turn, not before.

Source: kueue@v0.19.2 pkg/scheduler/preemption/preemption.go and classical/.
"""

from __future__ import annotations

from enum import IntEnum

from kueue_admission.decide.preemption.candidates import Target, candidates_in, victim_key
from kueue_admission.decide.preemption.simulation import PreemptionContext, add, drop_unneeded_victims, fits, trial
from kueue_admission.decide.queue.cluster_queue import queues_of
from kueue_admission.decide.quota.cohort_tree import TreeNode, fits_in_quota, within_nominal
from kueue_admission.decide.reasons import PreemptionReason
from kueue_admission.decide.workload.state import WorkloadInfo


class Variant(IntEnum):
    """By which right a candidate may be preempted.

    `WITHOUT_BORROWING`: only if the preemptor's queue does not borrow afterwards.
    """

    WITHIN_QUEUE = 0
    HIERARCHICAL = 1
    WITHOUT_BORROWING = 2
    WHILE_BORROWING = 3


REASON_OF = (
    PreemptionReason.IN_CLUSTER_QUEUE,
    PreemptionReason.IN_COHORT_RECLAMATION,
    PreemptionReason.IN_COHORT_RECLAMATION,
    PreemptionReason.IN_COHORT_RECLAIM_WHILE_BORROWING,
)
"""Why a workload is preempted, by the number of its variant."""


Candidate = tuple[WorkloadInfo, Variant, TreeNode | None]
"""A workload, by which right it may be preempted, and the lowest cohort that has both queues below it."""


def classical_targets(context: PreemptionContext) -> list[Target]:
    """A small set of workloads whose removal makes room, by Kueue's heuristic; empty if there is none."""
    own = own_candidates(context)
    by_hierarchy, by_priority = cohort_candidates(context, only_usable=True)
    if not (own or by_hierarchy or by_priority):
        return []
    ordered_candidates: list[Candidate] = []
    # Each list has its evicted workloads first.
    counts = [_count_evicted(candidates) for candidates in (by_hierarchy, by_priority, own)]
    for candidates, evicted_count in zip((by_hierarchy, by_priority, own), counts, strict=True):
        ordered_candidates += candidates[:evicted_count]
    for candidates, evicted_count in zip((by_hierarchy, by_priority, own), counts, strict=True):
        ordered_candidates += candidates[evicted_count:]
    for borrowing in _attempts(context, by_hierarchy, by_priority):
        with trial(context) as targets:
            for info, variant, common in ordered_candidates:
                if common is not None and not _is_valid(context, info, variant, common, borrowing=borrowing):
                    continue
                add(context, targets, Target(info, REASON_OF[variant]))
                if fits(context, borrowing=borrowing):
                    drop_unneeded_victims(context, targets, borrowing=borrowing)
                    return targets
    return []


def _attempts(
    context: PreemptionContext, by_hierarchy: list[Candidate], by_priority: list[Candidate]
) -> tuple[bool, ...]:
    """With which answers to `may the queue borrow?` to try, in order."""
    if not (by_hierarchy or by_priority) or _may_only_borrow(context):
        return (True,)
    forbidden = context.queue.spec.preemption.borrow_within_cohort.policy == "Never"
    return (False, True) if forbidden and not by_hierarchy else (True, False)


def _may_only_borrow(context: PreemptionContext) -> bool:
    """Whether the queue would borrow for what it asks for, while it may not preempt for that by priority."""
    queue = context.queue
    forbidden = queue.spec.preemption.borrow_within_cohort.policy == "Never"
    return forbidden and not all(queue.nominal.get(fr, 0) > queue.usage.get(fr, 0) for fr in context.frs)


def own_candidates(context: PreemptionContext) -> list[Candidate]:
    """Candidates of the queue itself."""
    queue = context.queue
    infos = candidates_in(
        queue, context.info, queue.spec.preemption.within_cluster_queue, context.frs, context.cache.gates
    )
    infos.sort(key=victim_key(context.cache.by_usage))
    return [(info, Variant.WITHIN_QUEUE, None) for info in infos]


def _count_evicted(candidates: list[Candidate]) -> int:
    for index, (info, _, _) in enumerate(candidates):
        if info.evicted_at is None:
            return index
    return len(candidates)


def cohort_candidates(
    context: PreemptionContext, *, only_usable: bool = False
) -> tuple[list[Candidate], list[Candidate]]:
    """Candidates of other queues: those by hierarchical advantage, and those by priority.

    `only_usable`: without those by priority where `_is_valid` refuses all of them, as the queue would borrow.
    """
    queue = context.queue
    by_hierarchy: list[Candidate] = []
    by_priority: list[Candidate] = []
    if queue.parent is None or queue.spec.preemption.reclaim_within_cohort == "Never":
        return by_hierarchy, by_priority
    advantage, rest = fits_in_quota(queue, context.requests)
    done: TreeNode | None = None
    left_out = only_usable and _may_only_borrow(context)
    for cohort in queue.path():
        if advantage or not left_out:
            _collect(context, cohort, cohort, done, advantage, by_hierarchy if advantage else by_priority)
        fitting, rest = fits_in_quota(cohort, rest)
        advantage = advantage or fitting
        done = cohort
    key = victim_key(context.cache.by_usage)
    for candidates in (by_hierarchy, by_priority):
        candidates.sort(key=lambda candidate: key(candidate[0]))
    return by_hierarchy, by_priority


def _collect(
    context: PreemptionContext,
    cohort: TreeNode,
    common: TreeNode,
    done: TreeNode | None,
    advantage: bool,
    collected: list[Candidate],
) -> None:
    """Candidates below `cohort`, passing over subtrees within their quota and the one already looked at."""
    for child in cohort.cohorts:
        if child is not done and not within_nominal(child, context.frs):
            _collect(context, child, common, done, advantage, collected)
    policy = context.queue.spec.preemption.reclaim_within_cohort
    for queue in queues_of(cohort):
        if queue is context.queue or within_nominal(queue, context.frs):
            continue
        candidates = candidates_in(queue, context.info, policy, context.frs, context.cache.gates)
        if advantage:
            collected += [(info, Variant.HIERARCHICAL, common) for info in candidates]
        elif context.queue.spec.preemption.borrow_within_cohort.policy == "Never":
            collected += [(info, Variant.WITHOUT_BORROWING, common) for info in candidates]
        else:
            collected += [(info, _priority_variant(context, info), common) for info in candidates]


def _priority_variant(context: PreemptionContext, candidate: WorkloadInfo) -> Variant:
    threshold = context.queue.spec.preemption.borrow_within_cohort.max_priority_threshold
    if candidate.priority >= context.info.priority or (threshold is not None and candidate.priority > threshold):
        return Variant.WITHOUT_BORROWING
    return Variant.WHILE_BORROWING


def _is_valid(
    context: PreemptionContext, info: WorkloadInfo, variant: Variant, common: TreeNode, *, borrowing: bool
) -> bool:
    """Whether a candidate may be taken now; its queue or a cohort of it may have come within quota meanwhile."""
    if borrowing and variant is Variant.WITHOUT_BORROWING:
        return False
    frs = context.frs
    node: TreeNode | None = context.cache.queues[info.cluster_queue]
    while node is not None and node is not common:
        if within_nominal(node, frs):
            return False
        node = node.parent
    return True
