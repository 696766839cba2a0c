"""How many GPUs, or chips of TPUs, listed objects of Kueue ask for, and what they hold."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from kueue_admission.forms.manifest import Manifest
from kueue_admission.forms.quantity import Quantity
from kueue_admission.read.fields import Fields
from kueue_admission.read.printed import Printed, PrintedWorkload


def accelerators_held(workload: PrintedWorkload, resource: str) -> int:
    """How many GPUs or TPU chips it has quota for."""
    return sum(amount_of(each.child("resourceUsage").data, resource) for each in workload.assignments)


def accelerators_asked(workload: PrintedWorkload, resource: str) -> int:
    """How many GPUs or TPU chips its pods ask for; an init container's are among those of the others."""
    total = 0
    for pod_set in workload.pod_sets:
        needs = [each.child("resources") for each in pod_set.child("template").child("spec").children("containers")]
        found = sum(amount_of({**each.child("limits").data, **each.child("requests").data}, resource) for each in needs)
        total += pod_set.integer("count", 1) * found
    return total


def reserved(queue: Printed, resource: str, which: Literal["total", "borrowed"]) -> dict[str, int]:
    """Flavor → how much of the resource the ClusterQueue has reserved, or borrowed."""
    return {
        flavor.text("name"): amount_of({resource: each.data.get(which) or "0"}, resource)
        for flavor in queue.status.children("flavorsReservation")
        for each in flavor.children("resources")
        if each.text("name") == resource
    }


def quotas_in(queue: Printed) -> Iterator[tuple[str, Fields]]:
    """Each flavor of the ClusterQueue with the quota of each of its resources."""
    for group in queue.spec.children("resourceGroups"):
        for flavor in group.children("flavors"):
            yield from ((flavor.text("name"), quota) for quota in flavor.children("resources"))


def amount_of(amounts: Manifest, resource: str) -> int:
    """The amount of the resource, in whole units."""
    found = amounts.get(resource)
    return 0 if found is None else Quantity(str(found)).value
