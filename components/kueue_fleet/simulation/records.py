"""The story of one workload, as the simulation writes it down; times on the engines' clock."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from kueue_fleet.admission.decisions import (
    Admitted,
    BackoffStarted,
    ChecksPending,
    Deactivated,
    Decision,
    Evicted,
    Inadmissible,
    Parked,
    Queued,
    QuotaReserved,
    Released,
    Requeued,
)
from kueue_fleet.admission.model import Admission
from kueue_fleet.admission.reasons import QuotaReservedReason


class State(StrEnum):
    """Where a workload stands."""

    PENDING = "Pending"
    QUOTA_RESERVED = "QuotaReserved"
    ADMITTED = "Admitted"
    FINISHED = "Finished"


@dataclass(slots=True)
class Eviction:
    """One eviction, with Kueue's reason; `preemptor` is the workload for which, if any."""

    time: float
    reason: str
    preemptor: str = ""


@dataclass(slots=True)
class Record:
    """What happened to a workload so far.

    `name` is that of its job where there is one, `run_seconds` None runs for ever. `attempt` counts evictions, so that
    what was planned for an earlier run can be recognised as stale.
    """

    key: str
    namespace: str
    name: str
    arrived_at: float
    run_seconds: float | None = None
    label: str = ""
    cluster: str | None = None
    cluster_queue: str = ""
    reason: str = QuotaReservedReason.PENDING_EVALUATION.value
    message: str = ""
    admission: Admission | None = None
    reserved_at: float | None = None
    admitted_at: float | None = None
    finished_at: float | None = None
    evictions: list[Eviction] = field(default_factory=list)
    attempt: int = 0
    first_admitted_at: float | None = None
    copies_thrown_away: int = 0
    """Copies on workers that held quota when another worker won, or when the workload was taken back."""

    @property
    def state(self) -> State:
        """Where it stands."""
        if self.finished_at is not None:
            return State.FINISHED
        if self.admitted_at is not None:
            return State.ADMITTED
        return State.PENDING if self.reserved_at is None else State.QUOTA_RESERVED

    @property
    def flavors(self) -> dict[str, dict[str, str]]:
        """The flavor of each resource of each pod set, from the reservation."""
        return {} if self.admission is None else {ps.name: dict(ps.flavors) for ps in self.admission.pod_sets}

    def take(self, decision: Decision, at: float) -> None:
        """Write a decision down that holds from `at`."""
        match decision:
            case Queued():
                self.cluster_queue = decision.cluster_queue
            case QuotaReserved():
                self.cluster_queue = decision.admission.cluster_queue
                self.admission, self.reserved_at = decision.admission, at
                self.reason, self.message = "QuotaReserved", ""
            case ChecksPending():
                self.reason = decision.reason.value
                self.message = f"waits for {', '.join(decision.checks)}" if decision.checks else ""
            case Admitted():
                self.admitted_at = at
                self.first_admitted_at = at if self.first_admitted_at is None else self.first_admitted_at
                self.reason, self.message = "Admitted", ""
            case Evicted():
                self.evictions.append(Eviction(at, decision.reason.value, decision.preemptor))
                self.attempt += 1
                self.reason, self.message = decision.reason.value, decision.message
            case Released():
                self.admission = self.reserved_at = self.admitted_at = None
            case Inadmissible():
                self.reason, self.message = str(decision.reason), decision.message
            case Requeued() | Parked():
                self.reason = decision.reason.value if decision.reason else QuotaReservedReason.PENDING_EVALUATION.value
                self.message = decision.message
            case BackoffStarted() | Deactivated():
                pass

    def finish(self, at: float) -> None:
        """Its run is over."""
        self.finished_at = at
        self.reason, self.message = "Succeeded", ""

    def park(self, why: QuotaReservedReason | None) -> None:
        """It is parked with others of its shape, for this reason; None if it is not."""
        if why is not None and why.value != self.reason:
            self.reason, self.message = why.value, ""
