"""A decision as it is written on the Workload."""

from __future__ import annotations

from kueue_admission.read.dispatch_report import ParsedReport, ParsedVerdict, one_line
from kueue_fleet.dispatch.model import Decision, Filtered, Reason, Verdict


def report_of(decision: Decision) -> ParsedReport:
    """What is written of a decision."""
    nominated_names = decision.nominated if decision.reason in (Reason.NOMINATED, Reason.WIDENED) else ()
    return ParsedReport(one_line(decision.message), tuple(map(_written, decision.verdicts)), nominated_names)


def _written(verdict: Verdict) -> ParsedVerdict:
    message = one_line(verdict.message)
    if isinstance(verdict, Filtered):
        return ParsedVerdict(verdict.cluster, message, verdict.reason.value)
    parts = (round(part, 3) for part in (verdict.score, verdict.price, verdict.waiting, verdict.free))
    return ParsedVerdict(verdict.cluster, message, None, *parts)
