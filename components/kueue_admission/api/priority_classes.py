"""Both kinds of priority class; their fields stand at the top of the object, not under `spec`.

Source: kueue@v0.19.2 apis/kueue/v1beta2/workloadpriorityclass_types.go; kubernetes@v1.36
pkg/apis/scheduling/validation.
"""

from collections.abc import Iterator
from typing import Annotated, Final, Literal

from pydantic import Field

from kueue_admission.kernel.base import Flag, Int32, RuledModel, Text
from kueue_admission.kernel.form_rules import OUT_OF_RANGE
from kueue_admission.kernel.problem import Problem

HIGHEST_USER_PRIORITY: Final = 1_000_000_000
"""Above it are only Kubernetes' own classes."""


class WorkloadPriorityClassFields(RuledModel):
    """A WorkloadPriorityClass: priority in the queue, without a say in which pods the scheduler preempts."""

    value: Int32
    """The priority; higher goes first."""
    description: Annotated[Text, Field(max_length=2048)] = ""
    """When to use the class."""


class PriorityClassFields(RuledModel):
    """A PriorityClass of Kubernetes: priority of the pods themselves."""

    value: Int32
    """The priority; at most 1000000000, above is for the system. Immutable."""
    global_default: Flag = False
    """Whether pods without a class get this one."""
    preemption_policy: Literal["PreemptLowerPriority", "Never"] = "PreemptLowerPriority"
    """Whether pods of the class preempt others. Immutable."""
    description: Text = ""
    """When to use the class."""

    def own_problems(self) -> Iterator[Problem]:
        """ValidatePriorityClass: user classes end at 1000000000."""
        if self.value > HIGHEST_USER_PRIORITY:
            yield OUT_OF_RANGE.at(
                "value",
                f"{self.value} is above {HIGHEST_USER_PRIORITY}, the highest priority outside the system",
                "use a lower value",
            )
