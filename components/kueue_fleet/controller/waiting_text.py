"""What a Workload that waits says to its readers: of this job, and of the queue and clusters that it is for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import ceil, inf
from typing import Final

from kueue_admission.decide.amounts import format_amount
from kueue_admission.decide.model import CheckState, Workload
from kueue_admission.decide.reasons import AdmittedReason, QuotaReservedReason
from kueue_admission.explain.answer import CheckStanding, Explanation
from kueue_admission.explain.entry_text import check_text, lacks_quota_of_workers, room_text, rooms_text, shortage
from kueue_admission.kernel.names import FALLBACK_CHECK
from kueue_admission.kernel.printable import printable
from kueue_admission.read.dispatch_report import NEXT, POSITION, START
from kueue_fleet.controller.fallback import NOTHING
from kueue_fleet.controller.fleet import Fleet
from kueue_fleet.controller.records import Record
from kueue_fleet.dispatch import Fit, WorkerQuota
from kueue_fleet.dispatch.fleet_checks import format_time
from kueue_fleet.dispatch.waiting import Estimate

_LONGEST: Final = 500
"""Characters of a line: what others have written into a Workload can be long."""


@dataclass(frozen=True, slots=True)
class WaitingMessage:
    """`reason` is Kueue's token; `lasting` is written again at once when it changes, `passing` after a while, or
    when the estimate is past."""

    reason: str
    since: float
    lasting: tuple[str, ...]
    passing: tuple[str, ...]
    until: float = inf
    """When the estimate of its start is past."""

    @property
    def text(self) -> str:
        """Headline and next step first."""
        lines = map(printable, self.passing + self.lasting)
        return "\n".join(line if len(line) <= _LONGEST else f"{line[: _LONGEST - 3]}..." for line in lines)


def about_waiting(
    fleet: Fleet,
    record: Record,
    quota: WorkerQuota,
    allowed_regions: Sequence[str],
    place: tuple[int, int],
    start: Estimate | None,
    now: float,
) -> WaitingMessage:
    """Why a Workload waits. `allowed_regions`: the workers that it may run on.

    `place`: its number in its queue and how many wait there; `start`: in how many seconds it may start.
    """
    reason, headline, step = _why(fleet, record, quota, allowed_regions, now)
    has_quota = record.reserved_at is not None
    since = record.reserved_at or max(record.workload.created, record.evicted_at or 0.0)
    at = "not known" if start is None else _times(start, now)
    rests_on = () if start is None else (f"Rests on: {start.rests_on} jobs that its ClusterQueue admitted lately",)
    position = (
        ()
        if has_quota
        else (f"{POSITION}: {place[0]} of {place[1]} in ClusterQueue {quota.place(record.workload)[0]}",)
    )
    return WaitingMessage(
        str(reason),
        since,
        (f"Waits for: {'; '.join(_waits_for(fleet, record))}", *_goes_on(record)),
        (headline, f"{NEXT}: {step}", *position, f"{START}: {at}", *rests_on),
        until=inf if start is None else _minute_after(now + start.p50),
    )


def _times(start: Estimate, now: float) -> str:
    p50, p90 = (format_time(_minute_after(now + delay)) for delay in start[:2])
    return f"p50 {p50}, p90 {p90}"


def _minute_after(at: float) -> float:
    """The next full minute: an estimate is never in the past when it is written."""
    return ceil(at / 60) * 60.0


def _why(
    fleet: Fleet, record: Record, quota: WorkerQuota, allowed_regions: Sequence[str], now: float
) -> tuple[str, str, str]:
    """Reason, headline and next step."""
    workload, status = record.workload, record.status
    if record.unreadable:
        step = "Submit it again without that, or ask whoever administers the fleet."
        return QuotaReservedReason.MISCONFIGURED, f"The fleet's controller cannot read it: {record.unreadable}.", step
    if record.leaves:
        headline = "It was evicted and keeps its quota until its pods are gone."
        return status.evicted_reason or "Evicted", headline, "Wait until they have stopped."
    if record.reserved_at is not None:
        return AdmittedReason.UNSATISFIED_ADMISSION_CHECKS, *_about_checks(fleet, record)
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
    reasons = quota.explain(workload, now)
    if isinstance(reasons, Fit):
        return reasons.reason, f"{reasons.message}.", "Ask whoever administers the queue: it does not change by itself."
    reason, headline, step = _about_quota(record, reasons)
    short = shortage(reasons) if lacks_quota_of_workers(reasons) else None
    if short is not None:
        headline += _room_on(fleet, allowed_regions, workload, short[1].resource)
    return reason, headline, step


def _room_on(fleet: Fleet, names: Iterable[str], workload: Workload, resource: str) -> str:
    """How much its queue could have of a resource on each of these workers now, as far as that is known."""
    workers = {name: fleet.workers[name] for name in sorted(names) if name in fleet.workers}
    rooms = {
        name: worker.quota.room(workload, resource)
        for name, worker in workers.items()
        if worker.quota is not None and not worker.unknown
    }
    return rooms_text([room_text(name, room[0], resource, *room[1:]) for name, room in rooms.items() if room])


def _about_quota(record: Record, explanation: Explanation) -> tuple[str, str, str]:
    if explanation.reason is None and record.kueue_says:
        # It would have room by quota alone: what Kueue found beside that, as in a topology, it has written itself.
        headline = f"{explanation.headline} Kueue says: {record.kueue_says.rstrip('.')}."
        return QuotaReservedReason.PENDING_EVALUATION, headline, explanation.next_step
    return explanation.reason or QuotaReservedReason.PENDING_EVALUATION, explanation.headline, explanation.next_step


def _about_checks(fleet: Fleet, record: Record) -> tuple[str, str]:
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
    copies = [
        fleet.workers[worker_name].copy(record.key) for worker_name in record.nominated if worker_name in fleet.workers
    ]
    if record.nominated and not any(copy is not None and copy.reserved_at is not None for copy in copies):
        there = ", ".join(record.nominated)
        room = _room_on(fleet, record.nominated, record.workload, asked_most(record.workload)[0])
        headline = f"It asks for {_request_text(record.workload)} on {there}, and waits there.{room}"
    where = record.cluster_name or ", ".join(record.nominated)
    return headline, f"Wait for {where} to admit it." if where else f"Wait for whoever answers AdmissionCheck {name}."


def asked_most(workload: Workload) -> tuple[str, int]:
    """The resource by which a job is measured, and how much of it it asks for: devices, or CPU if it asks for none."""
    names = dict(workload.requests)
    resource = max((name for name in names if "/" in name), key=names.__getitem__, default="cpu")
    return resource, names.get(resource, 0)


def _request_text(workload: Workload) -> str:
    resource, amount = asked_most(workload)
    return f"{format_amount(resource, amount)} {resource}"


def _waits_for(fleet: Fleet, record: Record) -> Iterator[str]:
    """What it waits for, and since when: quota, nodes, a cluster."""
    if record.reserved_at is None:
        since = max(record.workload.created, record.evicted_at or 0.0)
        yield f"quota of {_request_text(record.workload)} since {format_time(since)}"
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
    of_workers = f"quota of {_request_text(record.workload)} on {', '.join(record.nominated)}"
    rest = of_workers if record.nominated else ", ".join(checks) or "admission"
    yield from nodes or quota or [f"{rest} since {format_time(record.reserved_at)}"]


def _goes_on(record: Record) -> Iterator[str]:
    """The flavor that comes next, of a job whose queue has `fallback`."""
    check = record.checks.get(FALLBACK_CHECK) if record.reserved_at is not None else None
    if check is not None and check.message not in ("", NOTHING):
        yield f"Then: {check.message}"
