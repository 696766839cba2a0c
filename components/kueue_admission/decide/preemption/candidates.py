"""Who may be preempted at all, and in which order.

Source: kueue@v0.19.2 pkg/scheduler/preemption/common/{ordering,preemption_policy}.go.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cmp_to_key, partial
from operator import attrgetter
from typing import Any, NamedTuple

from kueue_admission.api.cluster_queue import PreemptionPolicy
from kueue_admission.decide.gates import Gates
from kueue_admission.decide.queue.cluster_queue import QueueNode
from kueue_admission.decide.reasons import PreemptionReason
from kueue_admission.decide.workload.state import WorkloadInfo

TIMESTAMP_BUFFER_SECONDS = 300.0
"""How much newer a workload has to be before LowerOrNewerEqualPriority preempts it."""


class Target(NamedTuple):
    """A workload to preempt, and by which right."""

    info: WorkloadInfo
    reason: PreemptionReason


def satisfies_policy(preemptor: WorkloadInfo, candidate: WorkloadInfo, policy: PreemptionPolicy, gates: Gates) -> bool:
    """Whether `policy` lets `preemptor` preempt `candidate`."""
    if policy == "Any":
        return True
    if policy == "Never":
        return False
    if preemptor.priority > candidate.priority:
        return True
    if policy == "LowerPriority" or preemptor.priority != candidate.priority:
        return False
    newer_by = candidate.queue_time - preemptor.queue_time
    return newer_by > (TIMESTAMP_BUFFER_SECONDS if gates.scheduler_timestamp_preemption_buffer else 0)


def candidates_in(
    queue: QueueNode, preemptor: WorkloadInfo, policy: PreemptionPolicy, frs: frozenset[int], gates: Gates
) -> list[WorkloadInfo]:
    """The workloads of `queue` that use one of `frs` and that `policy` lets `preemptor` preempt."""
    if policy == "Never":
        return []
    if policy == "Any":
        return [info for info in queue.workloads.values() if not frs.isdisjoint(info.frs)]
    if policy == "LowerPriority":
        priority = preemptor.priority
        return [info for info in queue.workloads.values() if info.priority < priority and not frs.isdisjoint(info.frs)]
    return [
        info
        for info in queue.workloads.values()
        if not frs.isdisjoint(info.frs) and satisfies_policy(preemptor, info, policy, gates)
    ]


VictimOrder = tuple[bool, bool, int, float, str]
"""Sorts candidates: the first is preempted first."""


def victim_key(usage: Callable[[WorkloadInfo], float] | None, own_queue: str = "") -> Callable[[WorkloadInfo], Any]:
    """What candidates are sorted by: already evicted, not of `own_queue`, lower priority, most recently reserved, uid.

    Without `own_queue` they are all of one side. With `usage`, workloads of the LocalQueue that has used more come
    before lower priority, within one ClusterQueue; Kueue compares LocalQueues of different names only.
    """
    if usage is None:
        return partial(victim_order, own_queue=own_queue) if own_queue else attrgetter("victim_order")

    def compare(a: WorkloadInfo, b: WorkloadInfo) -> int:
        first, second = victim_order(a, own_queue), victim_order(b, own_queue)
        if first[:2] == second[:2] and a.cluster_queue == b.cluster_queue and a.workload.queue != b.workload.queue:
            more, less = usage(a), usage(b)
            if more != less:
                return -1 if more > less else 1
        return -1 if first < second else 1

    return cmp_to_key(compare)


def victim_order(info: WorkloadInfo, own_queue: str) -> VictimOrder:
    """The sort key of that order, for a preemptor in `own_queue`."""
    kept_rank, priority, reservation_time, uid = info.victim_order
    return kept_rank, info.cluster_queue == own_queue, priority, reservation_time, uid
