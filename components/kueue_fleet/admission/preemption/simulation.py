"""Taking workloads out of the usage to see whether another one would fit, and putting them back.

Source: kueue@v0.19.2 pkg/scheduler/preemption/preemption.go, pkg/cache/scheduler/snapshot.go.
"""

from __future__ import annotations

from typing import NamedTuple

from kueue_fleet.admission.preemption.candidates import Target
from kueue_fleet.admission.queue.cluster_queue import QueueNode
from kueue_fleet.admission.quota.cohort_tree import Usage, add_all, borrows_with, raw_available, remove_all
from kueue_fleet.admission.scheduler.cache import Cache
from kueue_fleet.admission.topology.placement import TopologyRequests, fits_topology
from kueue_fleet.admission.workload.state import WorkloadInfo


class PreemptionContext(NamedTuple):
    """One search for targets: who wants how much of what, and which flavor-resources need preemption."""

    cache: Cache
    info: WorkloadInfo
    queue: QueueNode
    requests: Usage
    frs: frozenset[int]
    topology: TopologyRequests | None


def take_out(context: PreemptionContext, info: WorkloadInfo) -> None:
    """Remove a workload's usage."""
    remove_all(context.cache.queues[info.cluster_queue], info.usage)
    if context.topology:
        context.cache.use_topology(info, -1)


def put_back(context: PreemptionContext, info: WorkloadInfo) -> None:
    """The inverse of `take_out`."""
    add_all(context.cache.queues[info.cluster_queue], info.usage)
    if context.topology:
        context.cache.use_topology(info, 1)


def fits(context: PreemptionContext, *, borrowing: bool) -> bool:
    """Whether the workload fits now, with or without borrowing."""
    queue = context.queue
    for fr, amount in context.requests:
        if amount > 0 and amount > raw_available(queue, fr):
            return False
        if not borrowing and borrows_with(queue, fr, amount):
            return False
    return not context.topology or fits_topology(context.cache, context.info, context.topology)


def fill_back(context: PreemptionContext, targets: list[Target], *, borrowing: bool) -> list[Target]:
    """Drop targets, from the last but one, without which the workload fits as well.

    Targets are taken out when this is called; those that remain stay so.
    """
    for index in range(len(targets) - 2, -1, -1):
        put_back(context, targets[index].info)
        if fits(context, borrowing=borrowing):
            targets[index] = targets[-1]
            targets.pop()
        else:
            take_out(context, targets[index].info)
    return targets


def restore(context: PreemptionContext, targets: list[Target]) -> None:
    """Put every target back."""
    for target in targets:
        put_back(context, target.info)
