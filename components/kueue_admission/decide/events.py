"""What happens to a cluster: the input of the engine.

Within one time, events are handled in the order in which they are given.
"""

from __future__ import annotations

from dataclasses import dataclass

from kueue_admission.decide.model import CheckState, Objects, Workload


@dataclass(frozen=True, slots=True)
class Event:
    """Anything that happens to a cluster."""

    now: float


@dataclass(frozen=True, slots=True)
class WorkloadEvent(Event):
    """Anything that happens to one workload."""

    key: str


@dataclass(frozen=True, slots=True)
class Submitted(Event):
    """A workload appears, with whatever status it has.

    `resumed`: Kueue knows it already; one that a cycle has left without quota is where the cycle put it, not a head.
    """

    workload: Workload
    resumed: bool = False


@dataclass(frozen=True, slots=True)
class Deleted(WorkloadEvent):
    """A workload is deleted."""


@dataclass(frozen=True, slots=True)
class Finished(WorkloadEvent):
    """A workload's job has succeeded or failed."""


@dataclass(frozen=True, slots=True)
class PodsStopped(WorkloadEvent):
    """The pods of an evicted workload are gone: it gives its quota back."""


@dataclass(frozen=True, slots=True)
class CheckStateChanged(WorkloadEvent):
    """An admission check controller says something about one check of a workload."""

    check: str
    state: CheckState
    message: str = ""
    requeue_after: float | None = None


@dataclass(frozen=True, slots=True)
class PodsReadyChanged(WorkloadEvent):
    """All pods of a workload are ready, or no longer, because one failed."""

    ready: bool


@dataclass(frozen=True, slots=True)
class ReclaimableChanged(WorkloadEvent):
    """Pods of a running workload are no longer needed; totals per pod set."""

    reclaimable: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class CountsChanged(WorkloadEvent):
    """An elastic job wants other numbers of pods of its slice: any while it waits, fewer once it has quota."""

    counts: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class PriorityChanged(WorkloadEvent):
    """A workload's priority class, or its value, changes."""

    priority: int


@dataclass(frozen=True, slots=True)
class ActiveChanged(WorkloadEvent):
    """A user sets `spec.active`."""

    active: bool


@dataclass(frozen=True, slots=True)
class GatedByChanged(WorkloadEvent):
    """The annotation kueue.x-k8s.io/admission-gated-by changes; empty when the last gate goes."""

    gated_by: str


@dataclass(frozen=True, slots=True)
class AllowedFlavorsChanged(WorkloadEvent):
    """The annotation kueue.x-k8s.io/workload-allowed-resource-flavors changes; None when it goes."""

    flavors: tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class PreemptionGateOpened(WorkloadEvent):
    """A preemption gate of a workload opens."""

    gate: str


@dataclass(frozen=True, slots=True)
class ObjectsChanged(Event):
    """Queues, quotas, flavors, nodes or anything else that is configured is now this."""

    objects: Objects


@dataclass(frozen=True, slots=True)
class TimePassed(Event):
    """Time passes without anything else; timers that are due go off."""


@dataclass(frozen=True, slots=True)
class CycleStarted(Event):
    """The scheduler runs one cycle.

    `without` are workloads that gave their quota back and are not in their queue again when it takes its heads.
    """

    without: frozenset[str] = frozenset()
