"""Requests of jobs that are valid, and smaller or larger by orders than anything that can be meant.

A number without a unit is bytes of memory and whole CPUs; the suffix m is a thousandth of either.
Source: https://kubernetes.io/docs/concepts/configuration/manage-resources-containers/#meaning-of-memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from kueue_admission.kernel.form_rules import Fault
from kueue_admission.kernel.manifest import inside
from kueue_admission.kernel.problem import Problem
from kueue_admission.kernel.quantity import ZERO, Quantity
from kueue_fleet.fleet_file import FleetSpec
from kueue_fleet.fleet_file.rules.queues import UNIT
from kueue_fleet.jobs.check import job_check
from kueue_fleet.jobs.queued_job import QueuedJob, of_pod_set

_BYTES: Final = ("memory", "ephemeral-storage")
_LEAST_BYTES: Final = Quantity("1Mi")
_LEAST_CPU: Final = Quantity("10m")
_MOST_CPU: Final = Quantity("2000")
"""No machine of Google's has as many; the largest, x4-megamem-1920, has 1920."""
_MOST_GIBIBYTES: Final = 4096
"""A larger number without a unit is taken to be in Mi."""


@job_check
def warn_of_amounts(fleet: FleetSpec, job: QueuedJob) -> Iterator[Problem]:
    """Amounts that miss their unit or have one too much, with the likely spelling."""
    for pod_set in job.pod_sets:
        for container in (pod_set.template.get("spec") or {}).get("containers") or ():
            for name, text in requests_of(container).items():
                if fault := _fault(name, text, Quantity(text)):
                    yield of_pod_set(job, pod_set, fault)


def requests_of(container: Mapping[str, Any]) -> dict[str, str]:
    """What the container requests; limits count where there are no requests."""
    return amounts_of(container, "limits", "requests")


def amounts_of(container: Mapping[str, Any], *fields: str) -> dict[str, str]:
    """What the container says of its resources in these fields, of which later ones count; null says nothing."""
    amounts = [amount for field in fields for amount in inside(container, "resources", field).items()]
    return {name: str(amount) for name, amount in amounts if amount is not None}


def _fault(name: str, text: str, amount: Quantity) -> Fault | None:
    number = text.removesuffix("m")
    if name in _BYTES and ZERO < amount < _LEAST_BYTES:
        unit = "Gi" if text == number and amount <= Quantity(str(_MOST_GIBIBYTES)) else "Mi"
        wrote = f"{number}{unit}" if number.isdigit() else "a larger unit, such as Gi"
        return Fault(
            f"requests {text} of {name}, which is {amount.decimal.normalize():f} bytes", f"write {wrote}", UNIT
        )
    if name == "cpu" and ZERO < amount < _LEAST_CPU and text != number:
        return Fault(
            f"requests {text} of cpu, which is {amount.decimal.normalize():f} CPUs",
            f"write {number} if whole CPUs are meant",
            UNIT,
        )
    if name == "cpu" and amount >= _MOST_CPU:
        return Fault(
            f"requests {text} of cpu, which is more CPUs than any machine has",
            f"write {text}m if thousandths are meant",
            UNIT,
        )
    return None
