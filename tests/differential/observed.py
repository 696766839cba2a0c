"""The state of a workload as Kueue's object shows it, and the changes the script makes to its status."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from tests.differential import states
from tests.differential.steps import reclaimed

Json = dict[str, Any]


def state_of(item: Json, prefix: str, names_by_uid: Mapping[str, str], *, stopped: bool) -> str | None:
    """The state in words; None of a workload that is finished. `stopped`: its queue is."""
    status = item.get("status", {})
    conditions = {one["type"]: one for one in status.get("conditions", ())}
    if is_true(conditions, "Finished"):
        return None
    if "admission" not in status:
        if not item["spec"].get("active", True):
            return states.DEACTIVATED
        return states.PENDING if stopped else states.pending(conditions.get("QuotaReserved", {}).get("reason", ""))
    pod_sets = [_pod_set(one, prefix) for one in status["admission"]["podSetAssignments"]]
    if is_true(conditions, "Evicted"):
        why = conditions["Evicted"]["reason"]
        if why == "Preempted":
            preempted = conditions["Preempted"]
            match = re.search(r"\(UID: ([-0-9a-f]+)", preempted["message"])
            assert match, preempted["message"]
            why += f" {preempted['reason']} by {names_by_uid[match[1]].removeprefix(prefix)}"
        return states.held(states.EVICTED, pod_sets, why)
    return states.held(states.ADMITTED if is_true(conditions, "Admitted") else states.RESERVED, pod_sets)


def _pod_set(one: Json, prefix: str) -> str:
    flavors = {resource: flavor.removeprefix(prefix) for resource, flavor in one.get("flavors", {}).items()}
    places: dict[str, int] = {}
    for part in one.get("topologyAssignment", {}).get("slices", ()):
        for place, count in _places(part, prefix):
            places[place] = places.get(place, 0) + count
    return states.pod_set_text(one["name"], one["count"], flavors, places)


def _places(part: Json, prefix: str) -> list[tuple[str, int]]:
    """One slice of a topology assignment: every domain with its number of pods."""
    size = part["domainCount"]
    columns = []
    for level in part["valuesPerLevel"]:
        if "universal" in level:
            columns.append([level["universal"]] * size)
        else:
            given = level["individual"]
            head, tail = given.get("prefix", ""), given.get("suffix", "")
            columns.append([head + root + tail for root in given["roots"]])
    counts = part["podCounts"]
    numbers = [counts["universal"]] * size if "universal" in counts else counts["individual"]
    names = ["/".join(value.removeprefix(prefix) for value in values) for values in zip(*columns, strict=True)]
    return list(zip(names, numbers, strict=True))


def time_of(item: Json) -> int:
    """When a workload that holds quota was evicted, or got its quota; a Unix time."""
    conditions = {one["type"]: one for one in item["status"]["conditions"]}
    last = "Evicted" if is_true(conditions, "Evicted") else "QuotaReserved"
    return seconds(conditions[last]["lastTransitionTime"])


def seconds(text: str) -> int:
    """A time of the API as a Unix time."""
    return int(datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC).timestamp())


def now_text() -> str:
    """The time as the API writes it."""
    return datetime.fromtimestamp(time.time(), tz=UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def is_true(conditions: Mapping[str, Json], kind: str) -> bool:
    """Whether a condition is there and true."""
    return kind in conditions and conditions[kind]["status"] == "True"


def _set(item: Json, kind: str, status: str, reason: str, message: str) -> None:
    conditions = item["status"].setdefault("conditions", [])
    old = next((one for one in conditions if one["type"] == kind), None)
    same = old is not None and old["status"] == status
    since = old["lastTransitionTime"] if old is not None and same else now_text()
    new = {"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": since}
    if old is None:
        conditions.append(new)
    else:
        old.update(new)


def _end(case: Json, item: Json, event: list[Any]) -> None:
    _set(item, "Finished", "True", "Succeeded", "by the script")


def _release(case: Json, item: Json, event: list[Any]) -> None:
    """What Kueue's job reconciler does when the pods of an evicted workload are gone."""
    evicted = next(c for c in item["status"]["conditions"] if c["type"] == "Evicted")
    again = evicted["reason"] in ("Preempted", "NodeFailures")
    _set(item, "Requeued", "True" if again else "False", evicted["reason"], evicted["message"])
    _set(item, "QuotaReserved", "False", "PendingEvaluation", evicted["message"])
    if any(c["type"] == "Admitted" for c in item["status"]["conditions"]):
        _set(item, "Admitted", "False", "NoReservation", "The workload has no reservation")
    if any(c["type"] == "PodsReady" for c in item["status"]["conditions"]):
        _set(item, "PodsReady", "False", "WaitForStart", "by the script")
    item["status"].pop("admission", None)


def _check(case: Json, item: Json, event: list[Any]) -> None:
    for check in item["status"].get("admissionChecks", ()):
        check.update(state=event[2], message="by the script", lastTransitionTime=now_text())
        if event[2] == "Retry" and len(event) > 3:
            check["requeueAfterSeconds"] = event[3]


def _reclaim(case: Json, item: Json, event: list[Any]) -> None:
    pods = reclaimed(case, event[1])
    assert pods is not None
    item["status"]["reclaimablePods"] = [{"name": pods[0], "count": pods[1]}]


def _unready(case: Json, item: Json, event: list[Any]) -> None:
    _set(item, "PodsReady", "False", "WaitForRecovery", "by the script")


def ready(case: Json, item: Json, event: list[Any]) -> None:
    """All pods of the workload are ready."""
    _set(item, "PodsReady", "True", "Started", "by the script")


Change = Callable[[Json, Json, list[Any]], None]
CHANGES: Mapping[str, Change] = {
    "finish": _end, "release": _release, "check": _check, "reclaim": _reclaim, "unready": _unready,
    "ready": ready,
}  # fmt: skip
"""By kind of event: what it does to the status of a workload's object."""
