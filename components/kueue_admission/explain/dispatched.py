"""What the fleet's own dispatcher wrote on a Workload: the condition that says where it may run, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kueue_admission.read.manifests import Manifest, conditions_of

if TYPE_CHECKING:
    from kueue_fleet.dispatch.report import ParsedReport

_OURS: Final = "kueue-fleet.dev/"
"""How the types of the fleet's own conditions begin; most workloads have none, and need nothing of the dispatcher."""


def dispatch_report(manifest: Manifest) -> ParsedReport | None:
    """What the condition `kueue-fleet.dev/Dispatch` of a Workload says; None where there is none that can be read."""
    written = [each for each in conditions_of(manifest) if str(each.get("type")).startswith(_OURS)]
    if not written:
        return None
    from kueue_fleet.dispatch.report import DISPATCH_CONDITION, parse_report

    for each in written:
        if each.get("type") == DISPATCH_CONDITION:
            message = each.get("message")
            return parse_report(message) if isinstance(message, str) and message else None
    return None
