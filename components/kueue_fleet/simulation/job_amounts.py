"""Requests of jobs that are valid, and smaller or larger by orders than anything that can be meant.

A number without a unit is bytes of memory and whole CPUs; the suffix m is a thousandth of either.
Source: https://kubernetes.io/docs/concepts/configuration/manage-resources-containers/#meaning-of-memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from kueue_admission.forms.quantity import ZERO, Quantity
from kueue_admission.simulate.documents import Document
from kueue_fleet.fleet_file import FleetSpec
from kueue_fleet.simulation.provisioning_request import pod_set_templates, queued_jobs

_BYTES: Final = ("memory", "ephemeral-storage")
_LEAST_BYTES: Final = Quantity("1Mi")
_LEAST_CPU: Final = Quantity("10m")
_MOST_CPU: Final = Quantity("2000")
"""No machine of Google's has as many; the largest, x4-megamem-1920, has 1920."""
_MOST_GIBIBYTES: Final = 4096
"""A larger number without a unit is taken to be in Mi."""


def warn_of_amounts(fleet: FleetSpec, manifests: Iterable[Document]) -> Iterator[str]:
    """Amounts that miss their unit or have one too much, each with its file and line and the likely spelling."""
    for named, job, _ in queued_jobs(fleet, manifests):
        for pod_set in pod_set_templates(job):
            for container in (pod_set.template.get("spec") or {}).get("containers") or ():
                for name, text in _requests(container).items():
                    if wrong := _wrong(name, text, Quantity(text)):
                        yield f"{named}: pod set {pod_set.name} requests {wrong}"


def _requests(container: Mapping[str, Any]) -> dict[str, str]:
    """What the container requests; limits count where there are no requests."""
    resources = container.get("resources") or {}
    given = {**(resources.get("limits") or {}), **(resources.get("requests") or {})}
    return {name: str(amount) for name, amount in given.items()}


def _wrong(name: str, text: str, amount: Quantity) -> str:
    number = text.removesuffix("m")
    if name in _BYTES and ZERO < amount < _LEAST_BYTES:
        unit = "Gi" if text == number and amount <= Quantity(str(_MOST_GIBIBYTES)) else "Mi"
        wrote = f"{number}{unit}" if number.isdigit() else "a larger unit, such as Gi"
        return f"{text} of {name}, which is {amount.decimal.normalize():f} bytes; write {wrote}"
    if name == "cpu" and ZERO < amount < _LEAST_CPU and text != number:
        return f"{text} of cpu, which is {amount.decimal.normalize():f} CPUs; write {number} if whole CPUs are meant"
    if name == "cpu" and amount >= _MOST_CPU:
        return f"{text} of cpu, which is more CPUs than any machine has; write {text}m if thousandths are meant"
    return ""
