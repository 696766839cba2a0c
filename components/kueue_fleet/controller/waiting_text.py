"""What is said to whoever reads a Workload that waits: of this job, and of the queue and clusters that it is for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from kueue_admission.decide.model import CheckState
from kueue_admission.decide.reasons import AdmittedReason, QuotaReservedReason
from kueue_admission.explain.answer import CheckStanding, Explanation
from kueue_admission.explain.entry_text import check_text
from kueue_admission.forms.names import FALLBACK_CHECK
from kueue_admission.forms.printable import printable
from kueue_fleet.controller.fallback import NOTHING
from kueue_fleet.controller.fleet import Fleet
from kueue_fleet.controller.records import Record
from kueue_fleet.dispatch import Fit, WorkerQuota
from kueue_fleet.dispatch.fleet_checks import format_time
from kueue_fleet.dispatch.pace import Estimate

_LONGEST: Final = 500
"""Characters of a line: what others have written into a Workload can be long."""


@dataclass(frozen=True, slots=True)
class Said:
    """`reason` is Kueue's token; `lasting` is written again at once when it changes, `passing` after a while."""

    reason: str
    since: float
    lasting: tuple[str, ...]
    passing: tuple[str, ...]

    @property
    def text(self) -> str:
        """Headline and next step first."""
        lines = map(printable, self.passing + self.lasting)
        return "\n".join(line if len(line) <= _LONGEST else f"{line[: _LONGEST - 3]}..." for line in lines)


def about_waiting(
    fleet: Fleet, record: Record, quota: WorkerQuota, place: tuple[int, int], start: Estimate | None, now: float
) -> Said:
    """Why a Workload waits. `place`: its number in its queue and how many wait there; `start`: in how many seconds."""
    reason, headline, step = _why(record, quota, now)
    has_quota = record.reserved_at is not None
    since = record.reserved_at or max(record.workload.created, record.evicted_at or 0.0)
    at = "not known" if start is None else _times(start, now)
    position = (
        () if has_quota else (f"Position: {place[0]} of {place[1]} in ClusterQueue {quota.place(record.workload)[0]}",)
    )
    return Said(
        str(reason),
        since,
        (f"Waits for: {'; '.join(_waits_for(fleet, record))}", *_goes_on(record)),
        (headline, f"Next: {step}", *position, f"Start: {at}"),
    )


def _times(start: Estimate, now: float) -> str:
    p50, p90 = (format_time(round((now + each) / 60) * 60) for each in start[:2])
    return f"p50 {p50}, p90 {p90}, by {start.rests_on} jobs that its ClusterQueue admitted lately"


def _why(record: Record, quota: WorkerQuota, now: float) -> tuple[str, str, str]:
    """Reason, headline and next step."""
    workload, status = record.workload, record.status
    if record.unreadable:
        step = "Submit it again without that, or ask whoever administers the fleet."
        return QuotaReservedReason.MISCONFIGURED, f"The fleet's controller cannot read it: {record.unreadable}.", step
    if record.leaves:
        headline = "It was evicted and keeps its quota until its pods are gone."
        return status.evicted_reason or "Evicted", headline, "Wait until they have stopped."
    if record.reserved_at is not None:
        return AdmittedReason.UNSATISFIED_ADMISSION_CHECKS, *_about_checks(record)
    if record.over_budget:
        return "OverBudget", f"{record.over_budget}.", "Wait until then, or ask whoever answers for the budget."
    if workload.gated_by:
        headline = f"Its annotation holds it back: {workload.gated_by}."
        return QuotaReservedReason.ADMISSION_GATED, headline, "Wait until whoever set the gate removes it."
    if status.requeue_at is not None and status.requeue_at > now:
        headline = (
            f"It is held back until {format_time(status.requeue_at)} after {status.evicted_reason or 'its eviction'}."
        )
        return QuotaReservedReason.PENDING_EVALUATION, headline, "Wait until then."
    found = quota.explain(workload, now)
    if isinstance(found, Fit):
        return found.reason, f"{found.message}.", "Ask whoever administers the queue: it does not change by itself."
    return _about_quota(record, found)


def _about_quota(record: Record, found: Explanation) -> tuple[str, str, str]:
    if found.reason is None and record.kueue_says:
        # It would have room by quota alone: what Kueue found beside that, as in a topology, it has written itself.
        headline = f"{found.headline} Kueue says: {record.kueue_says.rstrip('.')}."
        return QuotaReservedReason.PENDING_EVALUATION, headline, found.next_step
    return found.reason or QuotaReservedReason.PENDING_EVALUATION, found.headline, found.next_step


def _about_checks(record: Record) -> tuple[str, str]:
    """Headline and next step of a job that has its quota."""
    report = record.current_report
    if report is not None and not record.nominated and report.said.summary:
        return (
            f"{report.said.summary.rstrip('.')}.",
            "Wait: it is offered to clusters again; or submit what one can have.",
        )
    open_ones = [(name, one) for name, one in sorted(record.checks.items()) if one.state is not CheckState.READY]
    if not open_ones:
        return "It has its quota, and every check is ready.", "Wait: Kueue admits it next."
    name, check = open_ones[0]
    headline = f"It has its quota, and {check_text(CheckStanding(name, '', check.state, check.message, ''))}."
    where = record.cluster_name or ", ".join(record.nominated)
    return headline, f"Wait for {where} to admit it." if where else f"Wait for whoever answers AdmissionCheck {name}."


def _waits_for(fleet: Fleet, record: Record) -> Iterator[str]:
    """What it waits for, and since when: quota, nodes, a cluster."""
    if record.reserved_at is None:
        yield f"quota since {format_time(max(record.workload.created, record.evicted_at or 0.0))}"
        return
    places = {"": fleet.manager.requests.of(record.key, record.uid)}
    places |= {name: worker.provisioning(record.key) for name, worker in fleet.workers.items()}
    nodes = [
        f"nodes{f' of {name}' if name else ''} by an accepted ProvisioningRequest since {format_time(one.accepted_at)}"
        for name, requests in places.items()
        for one in requests
        if one.accepted_at is not None and one.provisioned_at is None and not one.failed
    ]
    copies = {name: worker.copy(record.key) for name, worker in fleet.workers.items()}
    quota = [
        f"admission on {name}, where it has quota since {format_time(copy.reserved_at)}"
        for name, copy in copies.items()
        if copy is not None and copy.reserved_at is not None
    ]
    checks = [name for name, one in sorted(record.checks.items()) if one.state is not CheckState.READY]
    yield from nodes or quota or [f"{', '.join(checks) or 'admission'} since {format_time(record.reserved_at)}"]


def _goes_on(record: Record) -> Iterator[str]:
    """The flavor that comes next, of a job whose queue has `fallback`."""
    check = record.checks.get(FALLBACK_CHECK) if record.reserved_at is not None else None
    if check is not None and check.message not in ("", NOTHING):
        yield f"Then: {check.message}"
