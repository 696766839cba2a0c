"""What Kueue itself wrote on a pending Workload, and whether the core says the same."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from kueue_admission.decide.reasons import QuotaReservedReason
from kueue_admission.decide.scheduler.entry import Outcome
from kueue_admission.decide.scheduler.examination import examine
from kueue_admission.explain.answer import Written
from kueue_admission.explain.diagnosis import Diagnosis
from kueue_admission.kernel.manifest import Manifest
from kueue_admission.read.printed import PrintedWorkload

SETTLES: Final = 10.0
"""Seconds after which Kueue has looked again at what waits for quota that came free; it collects changes for one."""
_LACKING: Final = (Outcome.NO_FIT, Outcome.WAITING)
_NO_REFUSAL: Final = frozenset(("", QuotaReservedReason.PENDING_EVALUATION))


class Condition(NamedTuple):
    """The condition QuotaReserved=False of a Workload; `is_current`: nothing in the input is newer."""

    reason: str
    message: str
    is_current: bool


def written_on(manifest: Manifest, others: Iterable[Manifest], now: float) -> Condition | None:
    """The last refusal of Kueue's scheduler; None if there is none.

    What only repeats why the workload was evicted is not a refusal. Not current is one that was made for another
    generation of the Workload, or before quota of `others`, the workloads of the cluster, came free a moment ago.
    """
    printed_workload = PrintedWorkload.of(manifest)
    reason, message = printed_workload.refusal or ("", "")
    if reason in _NO_REFUSAL or not message:
        return None
    refusal = printed_workload.conditions["QuotaReserved"]
    generations = refusal.get("observedGeneration"), printed_workload.metadata.data.get("generation")
    has_changed = all(isinstance(generation, int) for generation in generations) and generations[0] != generations[1]
    since = printed_workload.changed_at("QuotaReserved") or 0.0
    freed_amounts = (_freed(PrintedWorkload.of(other)) for other in others)
    is_free = any(at is not None and since <= at and now - at < SETTLES for at in freed_amounts)
    return Condition(reason, message, not has_changed and not is_free)


def _freed(workload: PrintedWorkload) -> float | None:
    """When a Workload gave its quota back, if it did."""
    if workload.is_true("Finished"):
        return workload.changed_at("Finished")
    gone = "Evicted" in workload.conditions and not workload.is_true("QuotaReserved")
    return workload.changed_at("QuotaReserved") if gone else None


def as_written(diagnosis: Diagnosis, condition: Condition | None) -> Diagnosis:
    """The diagnosis in Kueue's words, where Kueue's last search has begun behind the first flavor.

    Kueue says only what it found from there on. What each flavor lacks stays as found for all of them.
    """
    entry = diagnosis.entry
    if condition is None or not condition.is_current or entry is None or entry.outcome not in _LACKING:
        return diagnosis
    if condition.message == diagnosis.message:
        return diagnosis
    engine = diagnosis.engine
    for try_index in range(max(len(group.flavors) for group in entry.queue.groups) - 1 if entry.queue.groups else 0):
        other = examine(engine.cache, entry.info, now=engine.now, tried=try_index)
        if other.outcome in _LACKING and other.message() == condition.message:
            return diagnosis._replace(reason=other.why or diagnosis.reason, message=condition.message)
    return diagnosis


def equal_before(diagnosis: Diagnosis, condition: Condition | None) -> str:
    """The equal workload that failed before, for which Kueue does not look at this one and writes nothing on it.

    Empty where there is none. Kueue parks a workload with those of its scheduling shape, and its controller gives new
    ones no condition by default (UnadmittedWorkloadsExplicitStatus). Source: kueue@v0.19.2
    pkg/controller/core/workload_controller.go (shouldCheckEquivalenceHash).
    """
    entry = diagnosis.entry
    if entry is None or condition is not None or entry.outcome not in _LACKING or entry.info.shape < 0:
        return ""
    info, pending = entry.info, diagnosis.engine.queues.pending.get(entry.info.cluster_queue)
    if pending is None or pending.strategy != "BestEffortFIFO" or info.workload.status.evaluated is not None:
        return ""
    equal = (other.key for other in pending.infos() if other.shape == info.shape and other.workload.status.evaluated)
    return min((key for key in equal if key != info.key), default="")


def compare(condition: Condition | None, diagnosis: Diagnosis) -> Written | None:
    """The condition beside what the core decides."""
    if condition is None or diagnosis.state != "Pending":
        return None
    is_admitted = diagnosis.outlook is not None and diagnosis.outlook.outcome is Outcome.ADMITTED
    same = not is_admitted
    if condition.reason in set(QuotaReservedReason):
        same = condition.reason == diagnosis.reason
    same = same or condition.message == diagnosis.message
    return Written(condition.reason, condition.message, condition.is_current, same)
