"""How many GPUs, or chips of TPUs, listed objects of Kueue ask for, and what they hold."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from kueue_admission.kernel.manifest import Manifest
from kueue_admission.read.fields import Fields
from kueue_admission.read.printed import Printed, PrintedWorkload


def accelerators_held(workload: PrintedWorkload, resource: str) -> int:
    """How many GPUs or TPU chips it has quota for."""
    return sum(amount_of(assignment.child("resourceUsage").data, resource) for assignment in workload.assignments)


def accelerators_asked(workload: PrintedWorkload, resource: str) -> int:
    """How many GPUs or TPU chips its pods ask for; an init container's are among those of the others."""
    total = 0
    for pod_set in workload.pod_sets:
        needs = [
            container.child("resources") for container in pod_set.child("template").child("spec").children("containers")
        ]
        amount = sum(
            amount_of({**need.child("limits").data, **need.child("requests").data}, resource) for need in needs
        )
        total += pod_set.integer("count", 1) * amount
    return total


def reserved(queue: Printed, resource: str, which: Literal["total", "borrowed"]) -> dict[str, int]:
    """Flavor → how much of the resource the ClusterQueue has reserved, or borrowed."""
    return {
        flavor.text("name"): amount_of({resource: use_here.data.get(which) or "0"}, resource)
        for flavor in queue.status.children("flavorsReservation")
        for use_here in flavor.children("resources")
        if use_here.text("name") == resource
    }


def quotas_in(queue: Printed) -> Iterator[tuple[str, Fields]]:
    """Each flavor of the ClusterQueue with the quota of each of its resources."""
    for group in queue.spec.children("resourceGroups"):
        for flavor in group.children("flavors"):
            yield from ((flavor.text("name"), quota) for quota in flavor.children("resources"))


def amount_of(amounts: Manifest, resource: str) -> int:
    """The amount of the resource, in whole units; 0 of what no API server takes."""
    quantity = Fields(amounts, "", []).quantity(resource)
    return 0 if quantity is None else quantity.value
