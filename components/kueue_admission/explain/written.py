"""What Kueue itself wrote on a pending Workload, and whether the core says the same."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from kueue_admission.decide.reasons import QuotaReservedReason
from kueue_admission.decide.scheduler.entry import Outcome
from kueue_admission.explain.answer import Written
from kueue_admission.explain.diagnosis import Diagnosis
from kueue_admission.forms.manifest import Manifest
from kueue_admission.read.printed import PrintedWorkload

SETTLES: Final = 10.0
"""Seconds after which Kueue has looked again at what waits for quota that came free; it collects changes for one."""
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
    printed = PrintedWorkload.of(manifest)
    reason, message = printed.refusal or ("", "")
    if reason in _NO_REFUSAL or not message:
        return None
    refused = printed.conditions["QuotaReserved"]
    generations = refused.get("observedGeneration"), printed.metadata.data.get("generation")
    changed = all(isinstance(each, int) for each in generations) and generations[0] != generations[1]
    since = printed.changed_at("QuotaReserved") or 0.0
    freed = (_freed(PrintedWorkload.of(other)) for other in others)
    is_free = any(at is not None and since <= at and now - at < SETTLES for at in freed)
    return Condition(reason, message, not changed and not is_free)


def _freed(workload: PrintedWorkload) -> float | None:
    """When a Workload gave its quota back, if it did."""
    if workload.is_true("Finished"):
        return workload.changed_at("Finished")
    gone = "Evicted" in workload.conditions and not workload.is_true("QuotaReserved")
    return workload.changed_at("QuotaReserved") if gone else None


def compare(condition: Condition | None, found: Diagnosis) -> Written | None:
    """The condition beside what the core decides."""
    if condition is None or found.state != "Pending":
        return None
    admitted = found.outlook is not None and found.outlook.outcome is Outcome.ADMITTED
    same = not admitted
    if condition.reason in set(QuotaReservedReason):
        same = condition.reason == found.reason
    same = same or condition.message == found.message
    return Written(condition.reason, condition.message, condition.is_current, same)
