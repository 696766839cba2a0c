"""The head of a queue in one scheduling cycle, and what becomes of it."""

from __future__ import annotations

from enum import Enum

from kueue_admission.decide.flavors.assignment import Assignment
from kueue_admission.decide.preemption.candidates import Target
from kueue_admission.decide.queue.cluster_queue import QueueNode
from kueue_admission.decide.quota.cohort_tree import Usage
from kueue_admission.decide.reasons import QuotaReservedReason, RequeueReason
from kueue_admission.decide.workload.state import WorkloadInfo

NOTHING_ASSIGNED = Assignment()
"""The assignment of a head that was not nominated."""


class Outcome(Enum):
    """What became of a head."""

    INADMISSIBLE = "inadmissible"
    """It was not even nominated: its queue, namespace, checks or requests forbid it."""
    NO_FIT = "noFit"
    PREEMPTING = "preempting"
    """Its targets are being evicted; it comes back when they are gone."""
    WAITING = "waiting"
    """It needs preemption and found no targets, or waits for targets of others."""
    SKIPPED = "skipped"
    """What it was nominated for was taken by an earlier head of this cycle."""
    GATED = "gated"
    BLOCKED = "blocked"
    """Admission waits until the pods of all admitted workloads are ready."""
    REFUSED = "refused"
    """It would be admitted, but the API server refuses its Admission, whenever Kueue writes it."""
    MIGRATING = "migrating"
    """It fits, and a variant of the same job on a less preferred flavor is being evicted."""
    EVICTED = "evicted"
    """It is admitted, a node failed under its pods, and there is no other place for them."""
    ADMITTED = "admitted"
    """It has quota; whether it is Admitted depends on its checks."""


class Entry:
    """A head in a cycle. `targets` are to be evicted for it; `text`, if set, replaces the assignment's message.

    `replaced` is the slice of the same job that is finished once this one has quota, `migrates` the variant of it that
    leaves a less preferred flavor for this one.

    `counted` is the quota that it has for the heads after it: what it was given, or holds back until the cycle ends.
    """

    __slots__ = (
        "assignment",
        "counted",
        "info",
        "is_preemptor",
        "migrates",
        "outcome",
        "queue",
        "replaced",
        "requeue_reason",
        "suffix",
        "targets",
        "text",
        "why",
    )

    def __init__(self, info: WorkloadInfo, queue: QueueNode, *, is_preemptor: bool) -> None:
        self.info = info
        self.queue = queue
        self.is_preemptor = is_preemptor
        self.assignment = NOTHING_ASSIGNED
        self.targets: list[Target] = []
        self.replaced: WorkloadInfo | None = None
        self.migrates: WorkloadInfo | None = None
        self.counted: Usage = ()
        self.outcome = Outcome.INADMISSIBLE
        self.requeue_reason = RequeueReason.GENERIC
        self.why: QuotaReservedReason | None = None
        self.text: str | None = None
        self.suffix = ""

    def usage(self) -> Usage:
        """The quota it would add; none if it has its reservation already."""
        return () if self.info.is_reserved else tuple(self.assignment.usage.items())

    def leaving(self) -> dict[str, WorkloadInfo]:
        """By key: who is gone by the time that it has its quota."""
        workload_infos = {target.info.key: target.info for target in self.targets}
        if self.replaced is not None:
            workload_infos[self.replaced.key] = self.replaced
        return workload_infos

    def message(self) -> str:
        """Kueue's message for it."""
        return (self.assignment.message() if self.text is None else self.text) + self.suffix

    def refuse(self, outcome: Outcome, why: QuotaReservedReason | None, text: str | None = None) -> None:
        """Note what became of the entry, and why."""
        self.outcome, self.why = outcome, why
        if text is not None:
            self.text = text
