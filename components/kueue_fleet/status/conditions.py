"""What Kueue's conditions say of a Workload that waits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

Manifest = Mapping[str, Any]
"""An object of Kubernetes as plain data."""


def condition(thing: Manifest | None, kind: str) -> Manifest | None:
    """The condition of that type, if there is one."""
    conditions: Iterable[Manifest] = ((thing or {}).get("status") or {}).get("conditions") or ()
    return next((each for each in conditions if each["type"] == kind), None)


def is_true(thing: Manifest | None, kind: str) -> bool:
    """Whether the condition of that type is True."""
    found = condition(thing, kind)
    return found is not None and found["status"] == "True"


def dominant_reasons(
    home: str, workload: Manifest | None, copies: Mapping[str, Manifest]
) -> dict[str, tuple[str, str]]:
    """Why a Workload waits, by cluster: Kueue's reason and its message.

    The one of `home` as long as it has no quota there; then those of its copies on workers; without any, the checks
    that are not Ready.
    """
    if workload is None:
        return {home: ("PendingEvaluation", "Kueue has not made its Workload yet")}
    if is_true(workload, "QuotaReserved") and copies:
        return {cluster: _reason(copy) for cluster, copy in sorted(copies.items())}
    return {home: _reason(workload)}


def _reason(workload: Manifest) -> tuple[str, str]:
    """Of one cluster's Workload alone.

    One that is evicted keeps its quota until its pods are gone, which matters more than that it has quota. One that is
    not active waits until a user activates it.
    """
    evicted = condition(workload, "Evicted")
    message = str((evicted or {}).get("message", ""))
    if (workload.get("spec") or {}).get("active") is False:
        return "Deactivated", message or "its field active is false"
    reserved = condition(workload, "QuotaReserved")
    if reserved is None:
        return "PendingEvaluation", "Kueue has not looked at it yet"
    if reserved["status"] != "True":
        return str(reserved.get("reason", "")), str(reserved.get("message", ""))
    if is_true(workload, "Evicted"):
        return "Evicted", message
    if is_true(workload, "Admitted"):
        return "Admitted", "it may run there"
    checks = (workload.get("status") or {}).get("admissionChecks") or ()
    waiting = [_of_check(check) for check in checks if check["state"] != "Ready"]
    return "UnsatisfiedAdmissionChecks", "; ".join(waiting) or "admission checks"


def _of_check(check: Manifest) -> str:
    words = f"{check['name']} {check['state']}"
    return f"{words}: {check['message']}" if check.get("message") else words
