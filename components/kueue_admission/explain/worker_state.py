"""The evidence in numbers: what a workload holds, its place in the queue, the victims."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import nsmallest

from kueue_admission.decide.engine import Engine
from kueue_admission.decide.scheduler.entry import Entry, Outcome
from kueue_admission.decide.workload.state import WorkloadInfo
from kueue_admission.explain.answer import Holder, Holding, Position, Waiting
from kueue_admission.explain.figures import LISTED


def listed(names: Sequence[str]) -> str:
    """The first names, and how many more there are."""
    return ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")


def holdings_of(engine: Engine, info: WorkloadInfo) -> tuple[Holding, ...]:
    """What it holds of each flavor; nothing without a reservation."""
    flavors: dict[str, list[tuple[str, int]]] = {}
    for fr, amount in info.usage:
        flavor, resource = engine.cache.ids.names[fr]
        flavors.setdefault(flavor, []).append((resource, amount))
    return tuple(Holding(flavor, tuple(sorted(flavors[flavor]))) for flavor in sorted(flavors))


def position_of(engine: Engine, info: WorkloadInfo) -> Position | None:
    """Its place among the pending workloads; None if it is in no queue."""
    if info.cluster_queue not in engine.cache.queues or info.key not in engine.pending(info.cluster_queue):
        return None
    pending = engine.pending(info.cluster_queue)
    mine = pending.order_of(info)
    ahead = [other for other in pending.infos() if pending.order_of(other) < mine]
    first = nsmallest(LISTED, ahead, key=pending.order_of)
    waiting_list = tuple(Waiting(other.key, other.priority, _reason(engine, other)) for other in first)
    return Position(len(ahead) + 1, len(pending), pending.strategy, waiting_list)


def _reason(engine: Engine, info: WorkloadInfo) -> str:
    entry = engine.examine(info.key)
    if entry.outcome is Outcome.ADMITTED:
        return "PendingEvaluation"
    return str(entry.why or "PendingEvaluation")


def victims_of(entry: Entry | None) -> tuple[Holder, ...]:
    """Who would be preempted for it; the amount is not meant here and is 0."""
    if entry is None or entry.outcome is not Outcome.PREEMPTING:
        return ()
    holders = {t.info.key: Holder(t.info.key, t.info.cluster_queue, t.info.priority, 0) for t in entry.targets}
    return tuple(holders[key] for key in sorted(holders))
