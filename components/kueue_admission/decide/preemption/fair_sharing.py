"""Preemption with fair sharing: take from the queue that borrows most, as long as the shares come closer to each other.

Source: kueue@v0.19.2 pkg/scheduler/preemption/preemption.go (fairPreemptions) and fairsharing/.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from kueue_admission.decide.errors import InvariantError
from kueue_admission.decide.model import DEFAULT_STRATEGIES, FairSharingStrategy
from kueue_admission.decide.preemption.candidates import (
    Target,
    VictimOrder,
    candidates_in,
    victim_key,
    victim_order,
)
from kueue_admission.decide.preemption.simulation import PreemptionContext, add, drop_unneeded_victims, fits, trial
from kueue_admission.decide.queue.cluster_queue import QueueNode, queues_below
from kueue_admission.decide.quota.cohort_tree import TreeNode, Usage, add_all, borrows_with, remove_all
from kueue_admission.decide.quota.shares import Share, dominant_share
from kueue_admission.decide.reasons import PreemptionReason
from kueue_admission.decide.workload.state import WorkloadInfo

_NEGATIVE = Share(1.0, -1.0)


def fair_targets(context: PreemptionContext) -> list[Target]:
    """Workloads to preempt under fair sharing; empty if that does not make room."""
    candidates = fair_candidates(context)
    if not candidates:
        return []
    candidates.sort(key=victim_key(context.cache.by_usage, context.queue.name))
    strategies = context.cache.configuration.fair_sharing or DEFAULT_STRATEGIES
    with trial(context) as targets:
        # Shares are compared as if the incoming workload were there.
        add_all(context.queue, context.requests)
        fitting, retry = _first_strategy(context, candidates, strategies[0], targets)
        if not fitting and len(strategies) > 1:
            fitting = _second_strategy(context, retry, targets)
        remove_all(context.queue, context.requests)
        if not fitting:
            return []
        drop_unneeded_victims(context, targets, borrowing=True)
        return targets


def fair_candidates(context: PreemptionContext) -> list[WorkloadInfo]:
    """The workloads that may be preempted where the shares allow it."""
    queue, gates = context.queue, context.cache.gates
    policies = queue.spec.preemption
    workload_infos = candidates_in(queue, context.info, policies.within_cluster_queue, context.frs, gates)
    if queue.parent is not None and policies.reclaim_within_cohort != "Never":
        for other in queues_below(queue.root()):
            if other is not queue and any(borrows_with(other, fr, 0) for fr in context.frs):
                workload_infos += candidates_in(other, context.info, policies.reclaim_within_cohort, context.frs, gates)
    return workload_infos


def _fits(context: PreemptionContext) -> bool:
    remove_all(context.queue, context.requests)
    answer = fits(context, borrowing=True)
    add_all(context.queue, context.requests)
    return answer


def _first_strategy(
    context: PreemptionContext, candidates: list[WorkloadInfo], strategy: FairSharingStrategy, targets: list[Target]
) -> tuple[bool, list[WorkloadInfo]]:
    """Preempt while the rule allows; whether it now fits, and the candidates that were refused."""
    order = TargetOrder(context, candidates)
    retry: list[WorkloadInfo] = []
    is_entitled = context.cache.gates.fair_sharing_preempt_within_nominal and not any(
        borrows_with(context.queue, fr, 0) for fr in context.frs
    )
    while (queue := order.next_queue()) is not None:
        own = queue is context.queue
        if own or is_entitled:
            reason = PreemptionReason.IN_CLUSTER_QUEUE if own else PreemptionReason.IN_COHORT_RECLAMATION
            if _take(context, order.pop(queue), reason, targets):
                return True, []
            continue
        mine, theirs = order.shares(queue)
        if mine.weighted == float("inf") and theirs.weighted != float("inf"):
            while order.has_workload(queue):
                retry.append(order.pop(queue))
            continue
        # What is left of the share depends on the usage alone, and nothing changes until a candidate is taken.
        refused_usages: set[Usage] = set()
        while order.has_workload(queue):
            candidate = order.pop(queue)
            if candidate.usage not in refused_usages:
                if allows(strategy, mine, theirs, partial(order.share_without, queue, candidate)):
                    if _take(context, candidate, PreemptionReason.IN_COHORT_FAIR_SHARING, targets):
                        return True, []
                    break
                refused_usages.add(candidate.usage)
            retry.append(candidate)
    return False, retry


def _second_strategy(context: PreemptionContext, retry: list[WorkloadInfo], targets: list[Target]) -> bool:
    """One more workload per queue whose share is still above the preemptor's."""
    order = TargetOrder(context, retry)
    while (queue := order.next_queue()) is not None:
        mine, theirs = order.shares(queue)
        candidate = order.pop(queue)
        if mine.key < theirs.key and _take(context, candidate, PreemptionReason.IN_COHORT_FAIR_SHARING, targets):
            return True
        order.drop(queue)
    return False


def _take(context: PreemptionContext, candidate: WorkloadInfo, reason: PreemptionReason, targets: list[Target]) -> bool:
    add(context, targets, Target(candidate, reason))
    return _fits(context)


def allows(strategy: FairSharingStrategy, mine: Share, theirs: Share, final: Callable[[], Share]) -> bool:
    """Whether the strategy takes from `theirs`; `final` is that share once the candidate is gone."""
    if strategy is FairSharingStrategy.LESS_THAN_INITIAL_SHARE:
        return mine.key < theirs.key
    return mine.key <= final().key


class _Offer(NamedTuple):
    """A queue in its cohort's heap: the highest share first, among equals the one whose next candidate comes first.

    It is stale once the queue's number of pops is no longer `number`.
    """

    order: tuple[bool, float, VictimOrder]
    name: str
    number: int
    share: tuple[bool, float]
    queue: QueueNode


class TargetOrder:
    """From which queue to take next: down from the root, always to the child with the highest share.

    A queue or cohort that no longer borrows is not looked at again, except on the preemptor's own path. To make
    progress, `pop` or `drop` something between two calls of `next_queue`.
    """

    def __init__(self, context: PreemptionContext, candidates: list[WorkloadInfo]) -> None:
        self._context = context
        self._ids = context.cache.ids
        self._own = context.queue
        self._above = set(map(id, context.queue.path()))
        self._left: dict[str, list[WorkloadInfo]] = {}
        for candidate in reversed(candidates):
            self._left.setdefault(candidate.cluster_queue, []).append(candidate)
        self._pruned: set[int] = set()
        # Per cohort, its queues with candidates, best first. A queue's own share, and its next candidate, change only
        # when one of its workloads is popped: then it is in `_changed` and what the heap says of it is stale.
        self._heaps: dict[int, list[_Offer]] = {}
        self._changed: dict[int, dict[str, QueueNode]] = {}
        self._offers: dict[str, int] = dict.fromkeys(self._left, 0)
        for name in self._left:
            self._note_change(context.cache.queues[name])

    def next_queue(self) -> QueueNode | None:
        """The queue to take from; None when nothing is left."""
        own = self._own
        if own.parent is None:
            return own if id(own) not in self._pruned and self.has_workload(own) else None
        root = own.root()
        while id(root) not in self._pruned:
            queue_node = self._descend(root)
            if queue_node is not None:
                return queue_node
        return None

    def has_workload(self, queue: QueueNode) -> bool:
        """Whether there is a candidate left in `queue`."""
        return bool(self._left.get(queue.name))

    def pop(self, queue: QueueNode) -> WorkloadInfo:
        """The next candidate of `queue`."""
        self._offers[queue.name] += 1
        self._note_change(queue)
        return self._left[queue.name].pop()

    def _note_change(self, queue: QueueNode) -> None:
        self._changed.setdefault(id(queue.parent), {})[queue.name] = queue

    def drop(self, queue: QueueNode) -> None:
        """Take nothing more from `queue`."""
        self._pruned.add(id(queue))

    def shares(self, queue: QueueNode) -> tuple[Share, Share]:
        """Shares of the preemptor's and of the target's side, just below the lowest cohort that has both."""
        common = self._common(queue)
        return self._share_below(self._own, common), self._share_below(queue, common)

    def share_without(self, queue: QueueNode, candidate: WorkloadInfo) -> Share:
        """The target's share if `candidate` were gone."""
        common = self._common(queue)
        # Asked of every candidate: a context manager would take a tenth of the whole search.
        remove_all(queue, candidate.usage)
        share = self._share_below(queue, common)
        add_all(queue, candidate.usage)
        return share

    def _common(self, queue: QueueNode) -> TreeNode:
        for cohort in queue.path():
            if id(cohort) in self._above:
                return cohort
        raise InvariantError(f"ClusterQueues {self._own.name} and {queue.name} are in different trees")

    def _share_below(self, queue: QueueNode, common: TreeNode) -> Share:
        node: TreeNode = queue
        while node.parent is not common:
            if node.parent is None:
                raise InvariantError(f"ClusterQueue {queue.name} is not below cohort {common.name}")
            node = node.parent
        return dominant_share(node, self._ids)

    def _descend(self, cohort: TreeNode) -> QueueNode | None:
        queue, queue_key = self._best_queue(cohort)
        child, child_share = self._best_cohort(cohort)
        if child is None and queue is None:
            self._pruned.add(id(cohort))
            return None
        if child is not None and child_share.key >= queue_key:
            return self._descend(child)
        return queue

    def _best_queue(self, cohort: TreeNode) -> tuple[QueueNode | None, tuple[bool, float]]:
        heap = self._heaps.setdefault(id(cohort), [])
        for queue in self._changed.pop(id(cohort), {}).values():
            self._offer(heap, queue)
        while heap:
            first = heap[0]
            if first.number == self._offers[first.queue.name] and id(first.queue) not in self._pruned:
                return first.queue, first.share
            heapq.heappop(heap)
        return None, _NEGATIVE.key

    def _offer(self, heap: list[_Offer], queue: QueueNode) -> None:
        """Put the queue into its cohort's heap, unless there is nothing to take from it any more."""
        candidates_left = self._left[queue.name]
        if not candidates_left or id(queue) in self._pruned:
            return
        share = dominant_share(queue, self._ids)
        if not share.is_borrowing and queue is not self._own:
            self._pruned.add(id(queue))
            return
        infinite, ratio = share.key
        order = (not infinite, -ratio, victim_order(candidates_left[-1], self._own.name))
        heapq.heappush(heap, _Offer(order, queue.name, self._offers[queue.name], share.key, queue))

    def _best_cohort(self, cohort: TreeNode) -> tuple[TreeNode | None, Share]:
        best, best_share = None, _NEGATIVE
        for child in cohort.cohorts:
            if id(child) in self._pruned:
                continue
            share = dominant_share(child, self._ids)
            if not share.is_borrowing and id(child) not in self._above:
                self._pruned.add(id(child))
            elif share.key >= best_share.key:
                best, best_share = child, share
        return best, best_share
