"""Why the workloads that hold the missing quota are not preempted.

Each rule is asked as the search for targets asks it (`decide.preemption`). A workload that no rule protects may be
preempted; it stays because all of those together do not make room, or as the search took another flavor.
"""

from __future__ import annotations

from collections.abc import Callable

from kueue_admission.api.cluster_queue import PreemptionPolicy
from kueue_admission.decide.amounts import format_amount
from kueue_admission.decide.engine import Engine
from kueue_admission.decide.flavors.assigner import needing_preemption
from kueue_admission.decide.flavors.evidence import InsufficientQuota
from kueue_admission.decide.model import DEFAULT_STRATEGIES
from kueue_admission.decide.preemption.candidates import TIMESTAMP_BUFFER_SECONDS, satisfies_policy
from kueue_admission.decide.preemption.classical import Variant, cohort_candidates
from kueue_admission.decide.preemption.fair_sharing import TargetOrder, allows
from kueue_admission.decide.preemption.simulation import PreemptionContext
from kueue_admission.decide.queue.cluster_queue import QueueNode
from kueue_admission.decide.quota.cohort_tree import (
    TreeNode,
    add_all,
    borrow_level,
    borrows_with,
    remove_all,
    within_nominal,
)
from kueue_admission.decide.scheduler.entry import Entry, Outcome
from kueue_admission.decide.workload.state import WorkloadInfo
from kueue_admission.explain.answer import ResourceFigures, Spared
from kueue_admission.explain.figures import LISTED, all_queues_below

_Answer = tuple[str, str]
"""A word for programs, and the sentence."""
_NOT_ENOUGH = ("NotEnough", "may be preempted, but all that may be hold less than is missing")
_Rule = Callable[[QueueNode, WorkloadInfo], _Answer | None]


def spared_in(engine: Engine, entry: Entry, flavor: str, figures: tuple[ResourceFigures, ...]) -> tuple[Spared, ...]:
    """Who holds what is missing in `flavor`, by ClusterQueue and by the rule that protects it.

    Empty where the workload fits or preempts, and where it asks for more than there can be.
    """
    ids = engine.cache.ids
    attempts = [
        attempt
        for pod_set in entry.assignment.pod_sets
        for _, attempts in pod_set.considered
        for attempt in attempts
        if attempt.flavor == flavor
    ]
    is_short = bool(attempts) and all(
        isinstance(evidence, InsufficientQuota) for attempt in attempts for evidence in attempt.evidence
    )
    if entry.outcome not in (Outcome.NO_FIT, Outcome.WAITING) or not is_short:
        return ()
    missing_resources = frozenset(ids.id(flavor, figure.resource) for figure in figures if figure.missing)
    preempting_flavors = needing_preemption(entry.assignment, engine.cache)
    frs = missing_resources or frozenset(fr for fr in preempting_flavors if ids.names[fr][0] == flavor)
    if not frs:
        return ()
    requests = tuple((ids.id(flavor, figure.resource), figure.asked) for figure in figures)
    rules = _Rules(PreemptionContext(engine.cache, entry.info, entry.queue, requests, frs, None))
    groups: dict[tuple[str, _Answer], list[WorkloadInfo]] = {}
    for queue in all_queues_below(entry.queue.root()):
        for info in sorted(queue.workloads.values(), key=lambda info: info.key):
            if not frs.isdisjoint(info.frs):
                groups.setdefault((queue.name, rules.protecting(queue, info)), []).append(info)
    unprotected_infos = [info for (_, answer), infos in groups.items() if answer == _NOT_ENOUGH for info in infos]
    short = ((ids.id(flavor, figure.resource), figure.missing) for figure in figures if figure.missing)
    is_enough = all(sum(dict(info.usage).get(fr, 0) for info in unprotected_infos) >= amount for fr, amount in short)
    instead = _beside_quota(entry, flavor) if is_enough else _NOT_ENOUGH
    groups = {(name, instead if it == _NOT_ENOUGH else it): infos for (name, it), infos in groups.items()}
    return tuple(
        Spared(queue, why, text, tuple(info.key for info in infos[:LISTED]), len(infos))
        for (queue, (why, text)), infos in groups.items()
    )


def _beside_quota(entry: Entry, flavor: str) -> _Answer:
    """Why those that may be preempted stay, though they hold what is missing."""
    others = sorted({name for pod_set in entry.assignment.pod_sets for name in pod_set.overrides} - {flavor})
    if others:
        field = "flavorFungibility.whenCanPreempt"
        return "NextFlavor", f"may be preempted, but {field} is TryNextFlavor, and flavor {others[0]} has the quota"
    if flavor in entry.queue.tas_flavors:
        return "NoPlace", "may be preempted, but that leaves the pods no place in the topology"
    return "NotEnough", "may be preempted, but not even all that may be make room"


class _Rules:
    """The rules of one search for targets."""

    def __init__(self, context: PreemptionContext) -> None:
        self._context = context
        self._own = context.queue
        self._above = set(map(id, context.queue.path()))
        self._policies = context.queue.spec.preemption
        self._fair = context.cache.configuration.fair_sharing is not None
        self._variants: dict[str, Variant] = {}
        if not self._fair:
            for candidates in cohort_candidates(context):
                self._variants.update({info.key: variant for info, variant, _ in candidates})

    def protecting(self, queue: QueueNode, info: WorkloadInfo) -> _Answer:
        """The first rule that protects `info`, which holds quota of `queue`."""
        rules: list[_Rule] = [self._never, self._priority, self._no_search]
        if queue is not self._own:
            rules.insert(1, self._not_borrowing)
            rules.append(self._share if self._fair else self._while_borrowing)
        for rule in rules:
            protection = rule(queue, info)
            if protection is not None:
                return protection
        return _NOT_ENOUGH

    def _policy(self, queue: QueueNode) -> tuple[str, PreemptionPolicy]:
        if queue is self._own:
            return "withinClusterQueue", self._policies.within_cluster_queue
        return "reclaimWithinCohort", self._policies.reclaim_within_cohort

    def _never(self, queue: QueueNode, _: WorkloadInfo) -> _Answer | None:
        field, policy = self._policy(queue)
        return ("PolicyNever", f"{field} of ClusterQueue {self._own.name} is Never") if policy == "Never" else None

    def _not_borrowing(self, queue: QueueNode, _: WorkloadInfo) -> _Answer | None:
        """Whether the queue, or a cohort above it but not above the preemptor's, uses no more than its own quota."""
        if not queue.active:
            return "QueueInactive", f"preemption passes over ClusterQueue {queue.name}, which is inactive"
        for node in (queue, *(() if self._fair else queue.path())):
            if id(node) in self._above:
                return None
            if within_nominal(node, self._context.frs):
                kind = "ClusterQueue" if node is queue else "cohort"
                return "NotBorrowing", f"{kind} {node.name} does not borrow: it uses {self._use(node)}"
        return None

    def _use(self, node: TreeNode) -> str:
        amount_texts = []
        for fr in sorted(self._context.frs):
            resource = self._context.cache.ids.names[fr][1]
            used_text, quota = (format_amount(resource, amounts.get(fr, 0)) for amounts in (node.usage, node.subtree))
            amount_texts.append(f"{used_text} of its {quota} {resource}")
        return ", ".join(amount_texts)

    def _priority(self, queue: QueueNode, info: WorkloadInfo) -> _Answer | None:
        field, policy = self._policy(queue)
        mine, gates = self._context.info, self._context.cache.gates
        if satisfies_policy(mine, info, policy, gates):
            return None
        if policy == "LowerOrNewerEqualPriority" and info.priority == mine.priority:
            by = f" by more than {TIMESTAMP_BUFFER_SECONDS:g} s" if gates.scheduler_timestamp_preemption_buffer else ""
            return "NotNewer", f"has the same priority and is not newer{by}, as {field}: {policy} asks for"
        return "Priority", f"its priority is not below {mine.priority}, as {field}: {policy} asks for"

    def _no_search(self, _: QueueNode, __: WorkloadInfo) -> _Answer | None:
        """Whether the flavor is given up before any target is looked for, as the queue would borrow."""
        own, requests_there = self._own, dict(self._context.requests)
        if own.can_preempt_while_borrowing:
            return None
        for fr in sorted(self._context.frs):
            if own.nominal.get(fr, 0) < requests_there[fr] and not borrow_level(own, fr, requests_there[fr])[1]:
                field = "reclaimWithinCohort" if self._fair else "borrowWithinCohort.policy"
                return "WouldBorrow", f"ClusterQueue {own.name} would borrow for it, and {field} is Never"
        return None

    def _while_borrowing(self, _: QueueNode, info: WorkloadInfo) -> _Answer | None:
        """Whether only a queue that does not borrow afterwards may preempt it."""
        context = self._context
        would_borrow = any(borrows_with(self._own, fr, amount) for fr, amount in context.requests)
        if self._variants.get(info.key) is not Variant.WITHOUT_BORROWING or not would_borrow:
            return None
        rule = self._policies.borrow_within_cohort
        if rule.policy == "Never":
            why = "borrowWithinCohort.policy is Never"
        elif info.priority >= context.info.priority:
            why = f"its priority is not below {context.info.priority}, as borrowWithinCohort asks for"
        else:
            why = f"its priority is above maxPriorityThreshold {rule.max_priority_threshold}"
        return "WouldBorrow", f"ClusterQueue {self._own.name} would borrow for it, and {why}"

    def _share(self, queue: QueueNode, info: WorkloadInfo) -> _Answer | None:
        """Whether no strategy of fair sharing takes it first; shares are compared with the workload counted."""
        context = self._context
        would_borrow = any(borrows_with(self._own, fr, amount) for fr, amount in context.requests)
        if context.cache.gates.fair_sharing_preempt_within_nominal and not would_borrow:
            return None
        order = TargetOrder(context, [info])
        add_all(self._own, context.requests)
        mine, theirs = order.shares(queue)
        after = order.share_without(queue, info)
        remove_all(self._own, context.requests)
        strategies = context.cache.configuration.fair_sharing or DEFAULT_STRATEGIES
        if any(allows(strategy, mine, theirs, lambda: after) for strategy in strategies):
            return None
        return "FairShare", (
            f"fair sharing ({', '.join(strategies)}): ClusterQueue {self._own.name} would have a share of "
            f"{mine.rounded}; {queue.name} has {theirs.rounded}, and {after.rounded} without it"
        )
