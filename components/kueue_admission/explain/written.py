"""What Kueue itself wrote on a pending Workload, and whether the core says the same."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from kueue_admission.decide.reasons import QuotaReservedReason
from kueue_admission.decide.scheduler.entry import Outcome
from kueue_admission.explain.answer import Written
from kueue_admission.explain.diagnosis import Diagnosis
from kueue_admission.forms.manifest import Manifest, inside
from kueue_admission.read.fields import Fields
from kueue_admission.read.manifests import conditions_of

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
    conditions = {str(one.get("type")): one for one in conditions_of(manifest)}
    found = conditions.get("QuotaReserved")
    if found is None or found.get("status") != "False":
        return None
    reason, message = str(found.get("reason", "")), str(found.get("message", ""))
    if reason in _NO_REFUSAL or not message or message == conditions.get("Evicted", {}).get("message"):
        return None
    generations = found.get("observedGeneration"), inside(manifest, "metadata").get("generation")
    changed = all(isinstance(each, int) for each in generations) and generations[0] != generations[1]
    since = _time(found) or 0.0
    freed = [at for other in others if (at := _freed(other)) is not None and since <= at and now - at < SETTLES]
    return Condition(reason, message, not changed and not freed)


def _freed(manifest: Manifest) -> float | None:
    """When a Workload gave its quota back, if it did."""
    conditions = {str(one.get("type")): one for one in conditions_of(manifest)}
    if conditions.get("Finished", {}).get("status") == "True":
        return _time(conditions["Finished"])
    reserved = conditions.get("QuotaReserved", {})
    if "Evicted" in conditions and reserved.get("status") == "False":
        return _time(reserved)
    return None


def _time(condition: Manifest) -> float | None:
    """When the condition changed last; None if it does not say so."""
    return Fields(condition, "", []).seconds("lastTransitionTime")


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
