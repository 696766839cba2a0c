"""What the controller keeps of a Workload on a worker: whether its job may run there, and what keeps it from that."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kueue_fleet.admission.model import CheckState
from kueue_fleet.admission.reading.fields import Fields
from kueue_fleet.dispatch import Copy
from kueue_fleet.fleet_file.model.dispatch import ASSIGNMENT_CHECK
from kueue_fleet.kube.answers import Json


def read_copy(item: Json) -> Copy:
    """The copy as its worker has it; not whether its queue has the assignment check."""
    metadata, status = item["metadata"], item.get("status") or {}
    conditions = {one.get("type"): one for one in status.get("conditions") or () if one.get("status") == "True"}
    checks = {one.get("name"): one for one in status.get("admissionChecks") or ()}
    ours = checks.get(ASSIGNMENT_CHECK)
    state = None if ours is None else _state(ours)
    return Copy(
        uid=str(metadata.get("uid", "")),
        version=str(metadata.get("resourceVersion", "")),
        reserved_at=_since(conditions.get("QuotaReserved")),
        ready_since=_since(ours) if state is CheckState.READY else None,
        check=state,
        others_ready=all(_state(one) is CheckState.READY for name, one in checks.items() if name != ASSIGNMENT_CHECK),
        admitted="Admitted" in conditions,
        evicted_at=_since(conditions.get("Evicted")),
        finished="Finished" in conditions,
        owned=bool(metadata.get("ownerReferences")),
        deleted="deletionTimestamp" in metadata,
    )


def _state(check: Mapping[str, Any]) -> CheckState:
    try:
        return CheckState(str(check.get("state", "Pending")))
    except ValueError:
        return CheckState.PENDING


def _since(entry: Mapping[str, Any] | None) -> float | None:
    return None if entry is None else Fields(entry, "condition", []).seconds("lastTransitionTime", 0.0) or 0.0
