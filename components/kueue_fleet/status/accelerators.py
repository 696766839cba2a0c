"""How many GPUs, or chips of TPUs, listed objects of Kueue ask for, and what they hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from kueue_admission.forms.quantity import Quantity
from kueue_fleet.status.conditions import Manifest


def accelerators_held(workload: Manifest, resource: str) -> int:
    """How many GPUs or TPU chips it has quota for."""
    return sum(amount_of(each.get("resourceUsage"), resource) for each in assignments(workload))


def quota_held(workload: Manifest) -> dict[str, Quantity]:
    """What it has quota for, by resource."""
    held: dict[str, Quantity] = {}
    for each in assignments(workload):
        for resource, amount in (each.get("resourceUsage") or {}).items():
            held[resource] = held.get(resource, Quantity(0)) + Quantity(str(amount))
    return held


def accelerators_asked(workload: Manifest, resource: str) -> int:
    """How many GPUs or TPU chips its pods ask for; an init container's are among those of the others."""
    total = 0
    for pod_set in (workload.get("spec") or {}).get("podSets") or ():
        pod: Mapping[str, Any] = (pod_set.get("template") or {}).get("spec") or {}
        needs = [container.get("resources") or {} for container in pod.get("containers") or ()]
        found = sum(
            amount_of({**(need.get("limits") or {}), **(need.get("requests") or {})}, resource) for need in needs
        )
        total += int(pod_set.get("count", 1)) * found
    return total


def assignments(workload: Manifest) -> Sequence[Manifest]:
    """The flavors and amounts of each of its pod sets; empty without quota."""
    return ((workload.get("status") or {}).get("admission") or {}).get("podSetAssignments") or ()


def reserved(queue: Manifest, resource: str, which: Literal["total", "borrowed"]) -> dict[str, int]:
    """Flavor → how much of the resource the ClusterQueue has reserved, or borrowed."""
    return {
        flavor["name"]: amount_of({resource: each.get(which) or "0"}, resource)
        for flavor in (queue.get("status") or {}).get("flavorsReservation") or ()
        for each in flavor.get("resources") or ()
        if each["name"] == resource
    }


def amount_of(amounts: Mapping[str, Any] | None, resource: str) -> int:
    """The amount of the resource, in whole units."""
    found = (amounts or {}).get(resource)
    return 0 if found is None else Quantity(str(found)).value
