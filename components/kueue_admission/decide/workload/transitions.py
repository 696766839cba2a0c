"""The lifecycle of a Workload as one table: which step is possible in which phase, and where it leads.

The diagram in docs/concepts.md is made from the table (`state_diagram`). A step that the table does not have raises
`IllegalTransitionError` with the workload's last steps. What a step changes is in `lifecycle`.
Source: kueue@v0.19.2 pkg/workload/workload.go (Status), pkg/controller/core/workload_controller.go (Reconcile).
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final, NamedTuple

from kueue_admission.decide.errors import InvariantError

_KEPT: Final = 12


class Phase(StrEnum):
    """Where a Workload stands, as its conditions say."""

    PENDING = "Pending"
    """Without quota, whether it is queued or not."""
    QUOTA_RESERVED = "QuotaReserved"
    """With quota; admission checks or the placement of its pods are still missing."""
    ADMITTED = "Admitted"
    """Its pods may run."""
    EVICTED = "Evicted"
    """Its pods are being ended, and it holds its quota until they are gone."""
    FINISHED = "Finished"


class Step(StrEnum):
    """What changes the phase."""

    RESERVE = "quota reserved"
    ADMIT = "admitted"
    EVICT = "evicted"
    STOP = "pods stopped"
    WITHDRAW = "quota withdrawn"
    """A queue was stopped before the workload was admitted."""
    FINISH = "finished"


TRANSITIONS: Final[Mapping[tuple[Phase, Step], Phase]] = {
    (Phase.PENDING, Step.RESERVE): Phase.QUOTA_RESERVED,
    (Phase.QUOTA_RESERVED, Step.ADMIT): Phase.ADMITTED,
    (Phase.QUOTA_RESERVED, Step.EVICT): Phase.EVICTED,
    (Phase.QUOTA_RESERVED, Step.WITHDRAW): Phase.PENDING,
    (Phase.ADMITTED, Step.EVICT): Phase.EVICTED,
    (Phase.EVICTED, Step.STOP): Phase.PENDING,
    (Phase.EVICTED, Step.WITHDRAW): Phase.PENDING,
    **{(phase, Step.FINISH): Phase.FINISHED for phase in Phase if phase is not Phase.FINISHED},
}
"""The phase after a step, by the phase before it. A step that is not here is a bug, of the core or of its caller."""


class PastStep(NamedTuple):
    """A step that a workload took: when, to which phase, and why."""

    at: float
    step: str
    phase: Phase
    why: str = ""

    def __str__(self) -> str:
        why = f" ({self.why})" if self.why else ""
        return f"{self.at:.1f} s: {self.step}{why}, now {self.phase.value}"


Story = tuple[PastStep, ...]
"""The last steps of a workload, oldest first."""


class IllegalTransitionError(InvariantError):
    """A step that a workload in its phase cannot take. The message has the workload's story."""

    def __init__(self, key: str, phase: Phase, step: Step, now: float, story: Story) -> None:
        possible = ", ".join(one.value for before, one in TRANSITIONS if before is phase) or "nothing"
        past = "".join(f"\n  {one}" for one in story)
        super().__init__(
            f"workload {key}: `{step.value}` at {now:.1f} s is not possible while it is {phase.value}, "
            f"only {possible}; its last steps:{past}"
        )
        self.key, self.phase, self.step, self.story = key, phase, step, story


def take_step(key: str, phase: Phase, step: Step, now: float, why: str, story: Story) -> Story:
    """The story with one step more.

    Raises:
        IllegalTransitionError: a workload in that phase cannot take the step.
    """
    after = TRANSITIONS.get((phase, step))
    if after is None:
        raise IllegalTransitionError(key, phase, step, now, story)
    return (*story[1 - _KEPT :], PastStep(now, step, after, why))
