"""What the fleet's own dispatcher wrote on a Workload: the condition that says where it may run, and why."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kueue_fleet.admission.dispatch.report import DISPATCH_CONDITION, ParsedReport, parse_report


def dispatch_report(manifest: Mapping[str, Any]) -> ParsedReport | None:
    """What the condition `kueue-fleet.dev/Dispatch` of a Workload says; None where there is none that can be read."""
    status = manifest.get("status")
    conditions = status.get("conditions") if isinstance(status, Mapping) else None
    for each in conditions if isinstance(conditions, list) else ():
        if isinstance(each, Mapping) and each.get("type") == DISPATCH_CONDITION:
            message = each.get("message")
            return parse_report(message) if isinstance(message, str) and message else None
    return None
