"""What dispatch decides about and what it decides, as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, Protocol

from kueue_admission.decide.model import Workload
from kueue_admission.read.dispatch_report import GivenUp, Verdict
from kueue_fleet.dispatch.residency import Residency
from kueue_fleet.dispatch.worker_quota import Fit

MOST_CLUSTERS = 20
"""As many as `status.nominatedClusterNames` holds (kueue@v0.19.2 apis/kueue/v1beta2/workload_types.go)."""


class FilterReason(StrEnum):
    """Why a cluster is not a candidate; where Kueue has a word for it, Kueue's."""

    REGION_NOT_ALLOWED = "RegionNotAllowed"
    DISCONNECTED = "Disconnected"
    UNKNOWN = "Unknown"
    """The controller does not know the worker as it is now."""
    CHECK_MISSING = "AdmissionCheckNotFound"
    """Its queue lacks the admission check of the assignment, so that a copy could be admitted without one."""
    QUEUE_NOT_FOUND = "QueueNotFound"
    QUEUE_INACTIVE = "QueueInactive"
    NO_MATCHING_FLAVOR = "NoMatchingFlavor"
    EXCEEDS_MAX_QUOTA = "ExceedsMaxQuota"
    MISCONFIGURED = "Misconfigured"
    LESS_QUOTA_NOW = "LessQuotaNow"
    """It asks for more than its queue can have there now, and not for more than at another time."""
    BEING_WITHDRAWN = "BeingWithdrawn"
    """Its earlier copy is still to be removed."""


OUT_OF_REACH: Final = frozenset((FilterReason.DISCONNECTED, FilterReason.UNKNOWN))
"""A nominated cluster with one of these stays nominated: its copy keeps its place until the cluster is back."""


class Reason(StrEnum):
    """The outcome of a decision; the reason of the condition that reports it."""

    NOMINATED = "Nominated"
    WIDENED = "Widened"
    NO_SUITABLE_CLUSTER = "NoSuitableCluster"
    DEADLINE_EXCEEDED = "DeadlineExceeded"
    FITS_NO_CLUSTER = "FitsNoCluster"
    """No cluster can ever run it as they are configured."""
    WAITING_FOR_WORKER = "WaitingForWorker"
    """It may run on a cluster that cannot be asked, or that its queue does not have any more."""


class Action(StrEnum):
    """What is to be written."""

    NOMINATE = "Nominate"
    """Another list of clusters."""
    KEEP = "Keep"
    """Nothing: the list is right."""
    REMIND = "Remind"
    """The same list with another message, so that Kueue tries again what failed."""
    GIVE_UP = "GiveUp"
    """An empty list, and a new start later."""
    REJECT = "Reject"
    """An empty list, and the MultiKueue check in state Rejected: Kueue deactivates the workload and frees its quota."""


class Examiner(Protocol):
    """What says how a workload would fit on a worker; `WorkerQuota` does."""

    def examine(self, workload: Workload, now: float) -> Fit:
        """What the workload would find there."""
        ...


@dataclass(frozen=True, slots=True)
class Worker:
    """A worker cluster as dispatch sees it.

    `problem` is why Kueue is not connected to it or, without `quota`, why nothing is known of the workload's quota.
    `unknown` is why the controller does not know the worker as it is now; empty if it does. `guarded`: whether the
    queue there has the admission check of the assignment.
    `prices` are per device and hour, by flavor; `waiting_seconds` is what was seen so far for the workload's queue;
    `stale_copy` is a copy of the workload that is there without a nomination. `fits_later`: whether it may fit there at
    another time if it asks for more than its queue can have now (`LaterQuota`).
    """

    name: str
    region: str
    connected: bool = True
    problem: str = ""
    unknown: str = ""
    guarded: bool = True
    quota: Examiner | None = None
    prices: Mapping[str, float] = field(default_factory=dict)
    waiting_seconds: float | None = None
    stale_copy: bool = False
    fits_later: bool = False


@dataclass(frozen=True, slots=True)
class Request:
    """A workload with quota on the manager, and what was nominated for it.

    `started` is the time of the first nomination since it got its quota, or of the first look that found no cluster;
    None before that. `given_up` are clusters that failed it since it got its quota, by name. `bound` are the clusters
    where it may run already (`assignment.bound_to`); those of them in `withdrawn` are not to have it. `reserved` are
    the nominated clusters where its copy has quota, `unsent` those where no copy of it was seen. `asked` is when its
    nominations were last written; None: not known.
    """

    workload: Workload
    residency: Residency = field(default_factory=Residency)
    nominated: tuple[str, ...] = ()
    started: float | None = None
    gave_up: bool = False
    """Whether the last decision was to give up; `started` is then the time of that."""
    given_up: Mapping[str, GivenUp] = field(default_factory=dict)
    bound: frozenset[str] = frozenset()
    withdrawn: frozenset[str] = frozenset()
    reserved: frozenset[str] = frozenset()
    unsent: frozenset[str] = frozenset()
    asked: float | None = None
    could_run: bool = False
    """Whether some cluster could run it one day, by the last look that nominated none."""


@dataclass(frozen=True, slots=True)
class Decision:
    """Where the workload may go now, and why each cluster is or is not among them.

    `retry_at` is when the decision may change without an event; None if only something else can change it.
    """

    key: str
    now: float
    action: Action
    reason: Reason
    nominated: tuple[str, ...]
    message: str
    verdicts: tuple[Verdict, ...]
    started: float
    retry_at: float | None
