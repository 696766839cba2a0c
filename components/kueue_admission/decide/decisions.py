"""What Kueue would do: the output of the engine.

`reason` is always Kueue's token, `message` its sentence.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from kueue_admission.decide.model import Admission
from kueue_admission.decide.reasons import (
    AdmittedReason,
    EvictionReason,
    PreemptionReason,
    QuotaReservedReason,
    RequeueReason,
)


class DeactivationCause(StrEnum):
    """Why Kueue itself set `spec.active: false`."""

    ADMISSION_CHECK = "AdmissionCheck"
    REQUEUING_LIMIT_EXCEEDED = "RequeuingLimitExceeded"
    MAXIMUM_EXECUTION_TIME_EXCEEDED = "MaximumExecutionTimeExceeded"


@dataclass(frozen=True, slots=True)
class Decision:
    """Anything that a cycle decides, at the time `now`, about the workload `key`."""

    now: float
    key: str


@dataclass(frozen=True, slots=True)
class QueueDecision(Decision):
    """The same about a workload in a ClusterQueue."""

    cluster_queue: str


@dataclass(frozen=True, slots=True)
class Queued(QueueDecision):
    """The workload waits in a ClusterQueue; `competing` if it is considered in the next cycles."""

    competing: bool = True


@dataclass(frozen=True, slots=True)
class Inadmissible(Decision):
    """The workload is in no queue: it is gated or inactive, or its LocalQueue is missing or stopped."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class QuotaReserved(Decision):
    """Phase one: the workload has quota, from these flavors."""

    admission: Admission
    borrow_level: int = 0


@dataclass(frozen=True, slots=True)
class ChecksPending(Decision):
    """The workload has quota and waits for these checks, or for its place in the topology."""

    reason: AdmittedReason
    checks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Admitted(QueueDecision):
    """Phase two: its pods may start."""


@dataclass(frozen=True, slots=True)
class Evicted(QueueDecision):
    """The workload's pods must stop. It keeps its quota until `events.PodsStopped`.

    For a preemption, `preemptor` is the workload for which, and `preemption` the right by which.
    """

    reason: EvictionReason
    message: str
    cause: DeactivationCause | str = ""
    preemptor: str = ""
    preemption: PreemptionReason | None = None


@dataclass(frozen=True, slots=True)
class Released(QueueDecision):
    """The workload gave its quota back."""


@dataclass(frozen=True, slots=True)
class NodesReplaced(QueueDecision):
    """The pods that were on nodes that failed have other places."""

    nodes: tuple[str, ...]
    admission: Admission


@dataclass(frozen=True, slots=True)
class Replaced(QueueDecision):
    """The slice of an elastic job is over: the workload `successor` has its quota, and more."""

    successor: str


@dataclass(frozen=True, slots=True)
class Requeued(QueueDecision):
    """Considered in a cycle and put back to compete again at once."""

    requeue_reason: RequeueReason
    reason: QuotaReservedReason | None
    message: str


@dataclass(frozen=True, slots=True)
class Parked(QueueDecision):
    """Considered in a cycle and put aside until something changes; perhaps with everything of its shape."""

    requeue_reason: RequeueReason
    reason: QuotaReservedReason | None
    message: str


@dataclass(frozen=True, slots=True)
class BackoffStarted(Decision):
    """The workload is not considered before `until`."""

    until: float
    count: int


@dataclass(frozen=True, slots=True)
class Deactivated(Decision):
    """Kueue sets `spec.active` to false; only a user sets it back."""

    cause: DeactivationCause
