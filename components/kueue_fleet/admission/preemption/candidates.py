"""Who may be preempted at all, and in which order.

Source: kueue@v0.19.2 pkg/scheduler/preemption/common/{ordering,preemption_policy}.go.
"""

from __future__ import annotations

from typing import NamedTuple

from kueue_fleet.admission.gates import Gates
from kueue_fleet.admission.queue.cluster_queue import QueueNode
from kueue_fleet.admission.reasons import PreemptionReason
from kueue_fleet.admission.workload.state import WorkloadInfo
from kueue_fleet.kueue_api.cluster_queue import PreemptionPolicy

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


def sort_candidates(candidates: list[WorkloadInfo], own_queue: str) -> None:
    """Sort in place: already evicted, other queues' first, lower priority, most recently reserved, uid."""
    candidates.sort(key=lambda info: victim_order(info, own_queue))


def victim_order(info: WorkloadInfo, own_queue: str) -> VictimOrder:
    """The sort key of that order, for a preemptor in `own_queue`."""
    kept, priority, reserved, uid = info.victim_order
    return kept, info.cluster_queue == own_queue, priority, reserved, uid
