"""What Kueue would do: the output of the engine. Every decision carries its time and the workload's key.

`reason` is always Kueue's token, `message` its sentence.
"""

from __future__ import annotations

from dataclasses import dataclass

from kueue_fleet.admission.model import Admission
from kueue_fleet.admission.reasons import (
    AdmittedReason,
    DeactivationCause,
    EvictionReason,
    PreemptionReason,
    QuotaReservedReason,
    RequeueReason,
)


@dataclass(frozen=True, slots=True)
class Queued:
    """The workload waits in a ClusterQueue; `competing` if it is considered in the next cycles."""

    now: float
    key: str
    cluster_queue: str
    competing: bool = True


@dataclass(frozen=True, slots=True)
class Inadmissible:
    """The workload is in no queue: it is gated or inactive, or its LocalQueue is missing or stopped."""

    now: float
    key: str
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class QuotaReserved:
    """Phase one: the workload has quota, from these flavors."""

    now: float
    key: str
    admission: Admission
    borrow_level: int = 0


@dataclass(frozen=True, slots=True)
class ChecksPending:
    """The workload has quota and waits for these checks, or for its place in the topology."""

    now: float
    key: str
    reason: AdmittedReason
    checks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Admitted:
    """Phase two: its pods may start."""

    now: float
    key: str
    cluster_queue: str


@dataclass(frozen=True, slots=True)
class Evicted:
    """The workload's pods must stop. Its quota stays taken until `events.PodsStopped`.

    For a preemption, `preemptor` is the workload for which, and `preemption` the right by which.
    """

    now: float
    key: str
    cluster_queue: str
    reason: EvictionReason
    message: str
    cause: DeactivationCause | str = ""
    preemptor: str = ""
    preemption: PreemptionReason | None = None


@dataclass(frozen=True, slots=True)
class Released:
    """The workload gave its quota back."""

    now: float
    key: str
    cluster_queue: str


@dataclass(frozen=True, slots=True)
class Requeued:
    """Considered in a cycle and put back to compete again at once."""

    now: float
    key: str
    cluster_queue: str
    requeue_reason: RequeueReason
    reason: QuotaReservedReason | None
    message: str


@dataclass(frozen=True, slots=True)
class Parked:
    """Considered in a cycle and put aside until something changes; perhaps with everything of its shape."""

    now: float
    key: str
    cluster_queue: str
    requeue_reason: RequeueReason
    reason: QuotaReservedReason | None
    message: str
    with_its_shape: bool


@dataclass(frozen=True, slots=True)
class BackoffStarted:
    """The workload is not considered before `until`."""

    now: float
    key: str
    until: float
    count: int


@dataclass(frozen=True, slots=True)
class Deactivated:
    """Kueue sets `spec.active` to false; only somebody else sets it back."""

    now: float
    key: str
    cause: DeactivationCause


Decision = (
    Queued
    | Inadmissible
    | QuotaReserved
    | ChecksPending
    | Admitted
    | Evicted
    | Released
    | Requeued
    | Parked
    | BackoffStarted
    | Deactivated
)
"""Anything that a cycle decides."""
