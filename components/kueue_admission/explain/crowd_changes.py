"""Changes for a workload for which there is room, and that others keep from it in the next cycles."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from kueue_admission.api.cluster_queue import ClusterQueuePreemption, QueueingStrategy
from kueue_admission.decide.model import ClusterQueue, Workload
from kueue_admission.decide.queue.cluster_queue import QueueNode
from kueue_admission.explain.answer import Blocker
from kueue_admission.explain.changes import NewAmount
from kueue_admission.explain.quota_changes import finishing, offer_more, offer_policies, while_borrowing
from kueue_admission.explain.trials import Edit, Trials, edit_queue, raise_quota, without
from kueue_admission.explain.turns import never_starts


def crowd_changes(trials: Trials) -> None:
    """Other policies and strategies of the queues involved, more quota, a higher priority, others gone."""
    entry, outlook = trials.before.entry, trials.before.outlook
    assert entry is not None
    assert outlook is not None
    blockers = outlook.blockers
    names = dict.fromkeys((*(blocker.queue for blocker in blockers), entry.queue.name))
    for queue in trials.before.engine.objects.cluster_queues:
        if queue.name in names:
            _queue_changes(trials, queue)
    _more_quota(trials, entry.queue, outlook.short)
    _priority(trials, entry.info.priority, blockers)
    finishing(trials, entry)
    _remove_waiting(trials, blockers)


def _queue_changes(trials: Trials, queue: ClusterQueue) -> None:
    now = queue.preemption

    policies: list[tuple[str, str, ClusterQueuePreemption]] = []
    if queue.cohort and now.reclaim_within_cohort != "Any":
        policies.append(("reclaimWithinCohort", "Any", now.model_copy(update={"reclaim_within_cohort": "Any"})))
    if queue.cohort and now.borrow_within_cohort.policy == "Never":
        policies.append(("borrowWithinCohort.policy", *while_borrowing(now)))
    for field, value, policy in policies:
        offer_policies(trials, queue.name, field, value, policy)
    other: QueueingStrategy = "StrictFIFO" if queue.queueing_strategy == "BestEffortFIFO" else "BestEffortFIFO"
    edit = edit_queue(queue.name, lambda q: replace(q, queueing_strategy=other))
    what = f"set queueingStrategy of ClusterQueue {queue.name} to {other}"
    trials.offer_if_admitted("queueingStrategy", what, edit)


def _more_quota(trials: Trials, queue: QueueNode, short: Iterable[tuple[str, str, int]]) -> None:
    """As much as lacked at its turn, in each flavor."""
    flavors: dict[str, dict[str, int]] = {}
    for flavor, resource, amount in short:
        flavors.setdefault(flavor, {})[resource] = amount
    for flavor, amounts in flavors.items():
        if trials.with_workers and flavor in trials.of_workers:
            continue
        if trials.admits(raise_quota(queue, flavor, "nominalQuota", amounts), preempting=True):
            offer_more(trials, flavor, "nominalQuota", [(queue, amounts)])


def _priority(trials: Trials, now: int, blockers: Iterable[Blocker]) -> None:
    """The least priority with which its turn comes before theirs."""
    priorities = {blocker.priority + more for blocker in blockers for more in (0, 1)}
    for priority in sorted(priority_value for priority_value in priorities if priority_value > now):

        def change(workload: Workload, priority: int = priority) -> Workload:
            return replace(workload, priority=priority)

        what = f"give the workload priority {priority} or more (it has {now})"
        new = NewAmount("Workload", trials.key, "priority", now, priority)
        if trials.offer_if_admitted("priority", what, Edit(workload=change), new):
            return


def _remove_waiting(trials: Trials, blockers: Iterable[Blocker]) -> None:
    """Those that wait themselves have started and ended, or are deleted: those that never start."""
    holders = {w.key for w in trials.snapshot.workloads if w.status.admission is not None}
    keys = [blocker.workload for blocker in blockers if blocker.workload not in holders]
    never = [blocker.workload for blocker in blockers if never_starts(blocker)]
    if never:
        what = (
            f"delete {', '.join(never)}, or let {'it' if len(never) == 1 else 'them'} ask for what the queue can have"
        )
        trials.offer_if_admitted("turn", what, without(never))
    elif keys:
        one = len(keys) == 1
        what = f"wait until {', '.join(keys)}, which wait{'s' * one} now, {'has' if one else 'have'} run and finished"
        trials.offer_if_admitted("turn", what, without(keys))
