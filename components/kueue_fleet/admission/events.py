"""What happens to a cluster: the input of the engine. Every event carries its time.

Within one time, events are handled in the order in which they are given.
"""

from __future__ import annotations

from dataclasses import dataclass

from kueue_fleet.admission.model import CheckState, Objects, Workload


@dataclass(frozen=True, slots=True)
class Submitted:
    """A workload appears, with whatever status it has."""

    now: float
    workload: Workload


@dataclass(frozen=True, slots=True)
class Deleted:
    """A workload is deleted."""

    now: float
    key: str


@dataclass(frozen=True, slots=True)
class Finished:
    """A workload's job has succeeded or failed."""

    now: float
    key: str


@dataclass(frozen=True, slots=True)
class PodsStopped:
    """The pods of an evicted workload are gone: it gives its quota back."""

    now: float
    key: str


@dataclass(frozen=True, slots=True)
class CheckStateChanged:
    """An admission check controller says something about one check of a workload."""

    now: float
    key: str
    check: str
    state: CheckState
    message: str = ""
    requeue_after: float | None = None


@dataclass(frozen=True, slots=True)
class PodsReadyChanged:
    """All pods of a workload are ready, or no longer so because one failed."""

    now: float
    key: str
    ready: bool


@dataclass(frozen=True, slots=True)
class ReclaimableChanged:
    """Pods of a running workload are no longer needed; totals per pod set."""

    now: float
    key: str
    reclaimable: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class PriorityChanged:
    """A workload's priority class, or its value, changes."""

    now: float
    key: str
    priority: int


@dataclass(frozen=True, slots=True)
class ActiveChanged:
    """Somebody sets `spec.active`."""

    now: float
    key: str
    active: bool


@dataclass(frozen=True, slots=True)
class GatedByChanged:
    """The annotation kueue.x-k8s.io/admission-gated-by changes; empty when the last gate goes."""

    now: float
    key: str
    gated_by: str


@dataclass(frozen=True, slots=True)
class AllowedFlavorsChanged:
    """The annotation kueue.x-k8s.io/workload-allowed-resource-flavors changes; None when it goes."""

    now: float
    key: str
    flavors: tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class PreemptionGateOpened:
    """A preemption gate of a workload opens."""

    now: float
    key: str
    gate: str


@dataclass(frozen=True, slots=True)
class ObjectsChanged:
    """Queues, quotas, flavors, nodes or anything else that is configured is now this."""

    now: float
    objects: Objects


@dataclass(frozen=True, slots=True)
class TimePassed:
    """Time passes without anything else; timers that are due go off."""

    now: float


@dataclass(frozen=True, slots=True)
class CycleStarted:
    """The scheduler runs one cycle.

    `without` are workloads that gave their quota back and are not in their queue again when it takes its heads.
    """

    now: float
    without: frozenset[str] = frozenset()


Event = (
    Submitted
    | Deleted
    | Finished
    | PodsStopped
    | CheckStateChanged
    | PodsReadyChanged
    | ReclaimableChanged
    | PriorityChanged
    | ActiveChanged
    | GatedByChanged
    | AllowedFlavorsChanged
    | PreemptionGateOpened
    | ObjectsChanged
    | TimePassed
    | CycleStarted
)
"""Anything that happens to a cluster."""
