"""What a pod asks of its node.

The containers' sum, or the largest init container beside the sidecars before it, then pod-level requests, then
overhead. A resource with a limit but no request requests its limit.
Source: k8s.io/component-helpers resource/helpers.go.
"""

from __future__ import annotations

from typing import Final

from kueue_admission.kernel.quantity import Quantity
from kueue_admission.read.fields import Fields

Requests = dict[str, Quantity]
"""What pods ask for, by resource."""

_POD_LEVEL: Final = ("cpu", "memory")


def pod_requests(fields: Fields) -> Requests:
    """What the pod with this `spec` asks for."""
    total: Requests = {}
    for container in fields.children("containers"):
        add_requests(total, container_requests(container))
    sidecars: Requests = {}
    most: Requests = {}
    for container in fields.children("initContainers"):
        needed_requests = container_requests(container)
        if container.text("restartPolicy") == "Always":
            add_requests(total, needed_requests)
            add_requests(sidecars, needed_requests)
            needed_requests = dict(sidecars)
        else:
            add_requests(needed_requests, sidecars)
        raise_to(most, needed_requests)
    raise_to(total, most)
    for name, quantity in container_requests(fields).items():
        if name in _POD_LEVEL or name.startswith("hugepages-"):
            total[name] = quantity
    add_requests(total, fields.quantities("overhead"))
    return total


def container_requests(container: Fields) -> Requests:
    """What a container, or a pod by itself, asks for.

    The API server takes extended resources only as whole numbers:
    https://kubernetes.io/docs/concepts/configuration/manage-resources-containers/#consuming-extended-resources.
    """
    requests: Requests = {}
    for kind in ("limits", "requests"):
        amounts = container.child("resources").child(kind)
        quantities = container.child("resources").quantities(kind)
        for name, quantity in quantities.items():
            if "/" in name and "kubernetes.io/" not in name and quantity.value != quantity.decimal:
                amounts.wrong(name, f"is {quantity}", "write a whole number, as it is a number of devices")
        requests |= quantities
    return requests


def add_requests(total: Requests, more: Requests) -> None:
    """Add amounts to others."""
    for name, quantity in more.items():
        total[name] = total[name] + quantity if name in total else quantity


def raise_to(total: Requests, least: Requests) -> None:
    """Raise amounts to at least these."""
    for name, quantity in least.items():
        if name not in total or total[name] < quantity:
            total[name] = quantity
