"""What the fleet's own dispatcher wrote on a Workload: the condition that says where it may run, and why."""

from __future__ import annotations

from kueue_fleet.admission.dispatch.report import DISPATCH_CONDITION, ParsedReport, parse_report
from kueue_fleet.explain.relevance import Manifest, conditions_of


def dispatch_report(manifest: Manifest) -> ParsedReport | None:
    """What the condition `kueue-fleet.dev/Dispatch` of a Workload says; None where there is none that can be read."""
    for each in conditions_of(manifest):
        if each.get("type") == DISPATCH_CONDITION:
            message = each.get("message")
            return parse_report(message) if isinstance(message, str) and message else None
    return None
