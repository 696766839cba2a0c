"""What Kueue's conditions say of a Workload that waits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kueue_admission.read.fields import Fields
from kueue_admission.read.printed import PrintedWorkload

NOT_DISPATCHED: Final = "NotDispatched"
"""Reason of a job that the manager admitted itself."""


def dominant_reasons(
    home: str, workload: PrintedWorkload | None, copies: Mapping[str, PrintedWorkload]
) -> dict[str, tuple[str, str]]:
    """Why a Workload waits, by cluster: Kueue's reason and its message.

    The one of `home` as long as it has no quota there; then those of its copies on workers; without any, the checks
    that are not Ready.
    """
    if workload is None:
        return {home: ("PendingEvaluation", "Kueue has not made its Workload yet")}
    if workload.is_true("QuotaReserved") and copies:
        return {cluster: _reason(copy) for cluster, copy in sorted(copies.items())}
    return {home: _reason(workload)}


def why_not_dispatched(workload: PrintedWorkload) -> str:
    """Why no pod of a job runs that is admitted on a manager; empty where a worker has it, or it has left."""
    over = workload.is_true("Finished") or workload.left_at is not None
    if over or workload.cluster_name or not workload.is_true("Admitted"):
        return ""
    why = "lost its MultiKueue check" if workload.held else "requests nothing that its queue counts"
    return f"admitted without a worker, where no pod runs: it {why}"


def _reason(workload: PrintedWorkload) -> tuple[str, str]:
    """Of one cluster's Workload alone.

    One that is evicted keeps its quota until its pods are gone, which matters more than that it has quota. One that is
    not active waits until a user activates it.
    """
    message = workload.message("Evicted")
    if not workload.is_active:
        return "Deactivated", message or "its field active is false"
    if "QuotaReserved" not in workload.conditions:
        return "PendingEvaluation", "Kueue has not looked at it yet"
    if not workload.is_true("QuotaReserved"):
        return workload.reason("QuotaReserved"), workload.message("QuotaReserved")
    if workload.is_true("Evicted"):
        return "Evicted", message
    if workload.is_true("Admitted"):
        return "Admitted", "it may run there"
    waiting = [_of_check(check) for check in workload.checks if check.text("state") != "Ready"]
    return "UnsatisfiedAdmissionChecks", "; ".join(waiting) or "admission checks"


def _of_check(check: Fields) -> str:
    words, message = f"{check.text('name')} {check.text('state')}", check.text("message")
    return f"{words}: {message}" if message else words
