"""A decision as the message of a condition."""

from __future__ import annotations

from kueue_admission.read.dispatch_report import ParsedVerdict, render_report
from kueue_fleet.dispatch.model import Decision, Filtered, Verdict


def describe(decision: Decision) -> str:
    """The message of a decision; below the 32768 characters that a condition holds, whatever is in it."""
    return render_report(decision.message, map(_written, decision.verdicts))


def _written(verdict: Verdict) -> ParsedVerdict:
    if isinstance(verdict, Filtered):
        return ParsedVerdict(verdict.cluster, verdict.message, verdict.reason)
    return ParsedVerdict(
        verdict.cluster, verdict.message, None, verdict.score, verdict.price, verdict.waiting, verdict.free
    )
