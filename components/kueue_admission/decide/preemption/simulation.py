"""Trials: whether a workload would fit if others were gone.

Source: kueue@v0.19.2 pkg/scheduler/preemption/preemption.go, pkg/cache/scheduler/snapshot.go.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from kueue_admission.decide.preemption.candidates import Target
from kueue_admission.decide.queue.cluster_queue import QueueNode
from kueue_admission.decide.quota.cohort_tree import Usage, add_all, borrows_with, raw_available, remove_all
from kueue_admission.decide.scheduler.cache import Cache, TopologyRequests
from kueue_admission.decide.workload.state import WorkloadInfo


class PreemptionContext(NamedTuple):
    """One search for targets: who wants how much of what, and which flavor-resources need preemption."""

    cache: Cache
    info: WorkloadInfo
    queue: QueueNode
    requests: Usage
    frs: frozenset[int]
    topology: TopologyRequests | None


@contextmanager
def trial(context: PreemptionContext) -> Iterator[list[Target]]:
    """A list of targets to `add` to; all that are in it at the end of the block get their usage back."""
    targets: list[Target] = []
    try:
        yield targets
    finally:
        for target in targets:
            _put_back(context, target.info)


def add(context: PreemptionContext, targets: list[Target], target: Target) -> None:
    """Take out a workload's usage, and note it as a target."""
    _take_out(context, target.info)
    targets.append(target)


def _take_out(context: PreemptionContext, info: WorkloadInfo) -> None:
    remove_all(context.cache.queues[info.cluster_queue], info.usage)
    if context.topology:
        context.cache.use_topology(info, -1, trial=True)


def _put_back(context: PreemptionContext, info: WorkloadInfo) -> None:
    add_all(context.cache.queues[info.cluster_queue], info.usage)
    if context.topology:
        context.cache.use_topology(info, 1, trial=True)


def fits(context: PreemptionContext, *, borrowing: bool) -> bool:
    """Whether the workload fits now, with or without borrowing."""
    queue = context.queue
    for fr, amount in context.requests:
        if amount > 0 and amount > raw_available(queue, fr):
            return False
        if not borrowing and borrows_with(queue, fr, amount):
            return False
    return not context.topology or context.cache.places.fits(context.cache, context.info, context.topology)


def drop_unneeded_victims(context: PreemptionContext, targets: list[Target], *, borrowing: bool) -> None:
    """Drop targets of a trial, from the last but one, without which the workload fits as well."""
    for index in range(len(targets) - 2, -1, -1):
        _put_back(context, targets[index].info)
        if fits(context, borrowing=borrowing):
            targets[index] = targets[-1]
            targets.pop()
        else:
            _take_out(context, targets[index].info)
