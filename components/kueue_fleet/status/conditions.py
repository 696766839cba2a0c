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
    reserved = condition(workload, "QuotaReserved")
    if reserved is None or reserved["status"] != "True":
        return {home: _reason(reserved)}
    if copies:
        return {cluster: _of_copy(copy) for cluster, copy in sorted(copies.items())}
    checks = (workload.get("status") or {}).get("admissionChecks") or ()
    waiting = [f"{check['name']} {check['state']}" for check in checks if check["state"] != "Ready"]
    return {home: ("UnsatisfiedAdmissionChecks", ", ".join(waiting) or "admission checks")}


def _of_copy(copy: Manifest) -> tuple[str, str]:
    """A copy that is evicted keeps its quota until its pods are gone, which is worth more than that it has quota."""
    evicted = condition(copy, "Evicted")
    if evicted is not None and evicted["status"] == "True" and is_true(copy, "QuotaReserved"):
        return "Evicted", str(evicted.get("message", ""))
    return _reason(condition(copy, "QuotaReserved"))


def _reason(found: Manifest | None) -> tuple[str, str]:
    if found is None:
        return "PendingEvaluation", "Kueue has not looked at it yet"
    return str(found.get("reason", "")), str(found.get("message", ""))
