"""Which of the nominated workers may admit a job: one at a time, and written down before that worker may.

Kueue's MultiKueue takes the worker that admitted its copy first, even when another one has been running the job for an
hour and the first was only out of reach. So every queue of a worker has an AdmissionCheck (`ASSIGNMENT_CHECK`) that the
fleet's controller answers, and no copy is admitted before the job is assigned to its worker. The assignment is a
condition on the manager's Workload. It is withdrawn only when the worker answers and has nothing that could run, or
when an operator has declared the worker gone. What is not known is not decided.

Source: kueue@v0.19.2 pkg/controller/admissionchecks/multikueue/workload.go (bestMatchByCondition, reconcileGroup).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

from kueue_admission.decide.model import CheckState

ASSIGNED_CONDITION: Final = "kueue-fleet.dev/Assigned"
"""Type of the condition on a Workload of the manager. True: only the worker in its reason may admit the job."""
UNREADABLE: Final = "?"
"""The worker of an assignment that cannot be read: no worker has this name, so nothing is decided."""

_ASSIGNED: Final = "Assigned"
"""The reason of the condition begins with it; the worker follows after a colon, with _ for -: no name of a worker
has the one, and no reason may have the other."""


@dataclass(frozen=True, slots=True)
class End:
    """How a Workload was finished: Kueue's reason and message, and when, in seconds of the epoch."""

    reason: str
    message: str
    at: float


@dataclass(frozen=True, slots=True)
class Copy:
    """A job's copy on a worker, as it was last seen.

    `check` is the state of `ASSIGNMENT_CHECK`, None where the copy does not have it; `guarded` says whether the queue
    there has it, so that Kueue will add it. `owned`: its job is on the worker too. Times are seconds of the epoch, None
    where a condition is not True; `ready_since` is that of the check. `end` is None for one that is not finished.
    """

    uid: str
    version: str
    reserved_at: float | None = None
    ready_since: float | None = None
    check: CheckState | None = None
    guarded: bool = True
    others_ready: bool = True
    admitted: bool = False
    evicted_at: float | None = None
    end: End | None = None
    owned: bool = False
    deleted: bool = False

    @property
    def finished(self) -> bool:
        """Whether it is done."""
        return self.end is not None

    @property
    def binds(self) -> bool:
        """Whether the job runs there, ran there, or can start there without another word of the controller."""
        if self.admitted or self.finished or self.check is CheckState.READY:
            return True
        if self.evicted_at is not None and self.owned and self.reserved_at is not None:
            # Its pods are still being ended: Kueue gives the quota back once they are gone.
            return True
        return self.check is None and not self.guarded

    @property
    def waits_for_assignment(self) -> bool:
        """Whether the assignment is all that keeps it from being admitted."""
        waiting = self.reserved_at is not None and self.others_ready and self.check is CheckState.PENDING
        return waiting and self.evicted_at is None and not (self.admitted or self.finished or self.deleted)


@dataclass(frozen=True, slots=True)
class WorkerView:
    """What is known of one worker and of a job's copy there.

    `known`: the controller follows the worker, so that `copy` is as it is now; else it is what was seen last.
    `connected`: Kueue is connected to it. `gone`: an operator says that nothing runs there any more. `allowed`: the job
    may be in its region.
    """

    known: bool = True
    connected: bool = True
    gone: bool = False
    allowed: bool = True
    copy: Copy | None = None


class Step(Enum):
    """What is to be written next."""

    NOTHING = "Nothing"
    ASSIGN = "Assign"
    """The assignment, on the manager."""
    GRANT = "Grant"
    """Ready, on the worker's copy."""
    RELEASE = "Release"
    """That there is no assignment any more, on the manager; before that, Pending again on the copy, if there is one."""


@dataclass(frozen=True, slots=True)
class AssignmentDecision:
    """The next step, the worker that it is about, and why."""

    step: Step
    worker: str = ""
    why: str = ""


_NOTHING: Final = AssignmentDecision(Step.NOTHING)


def bound_to(assigned_name: str, views: Mapping[str, WorkerView]) -> frozenset[str]:
    """The workers where the job may run, or may have run: it is offered to no other.

    `assigned_name` is the worker of the assignment, empty if there is none.
    """
    clusters_bound = {
        name for name, view in views.items() if not view.gone and view.copy is not None and view.copy.binds
    }
    if assigned_name and not _is_void(views.get(assigned_name, WorkerView(known=False))):
        clusters_bound.add(assigned_name)
    return frozenset(clusters_bound)


def decide_assignment(
    assigned_name: str, nominated_names: Sequence[str], views: Mapping[str, WorkerView]
) -> AssignmentDecision:
    """The next step for a job that its manager has not admitted.

    Args:
        assigned_name: the worker of the assignment; empty: there is none.
        nominated_names: the nominated workers, in their order.
        views: every worker that the fleet has, whether the job's queue has it or not.
    """
    if assigned_name:
        return _keep_or_release(assigned_name, nominated_names, views.get(assigned_name, WorkerView(known=False)))
    bound = sorted(bound_to("", views), key=lambda name: (not views[name].known, name))
    if bound:
        return AssignmentDecision(Step.ASSIGN, bound[0], "it may run there already")
    waiting = [
        (copy.reserved_at or 0.0, index, name)
        for index, name in enumerate(nominated_names)
        if (view := views.get(name)) is not None and _may_start(view) and (copy := view.copy) is not None
    ]
    if not waiting:
        return _NOTHING
    return AssignmentDecision(Step.ASSIGN, min(waiting)[2], "it has quota there, and all other checks are ready")


def _may_start(view: WorkerView) -> bool:
    is_reached = view.known and view.connected and view.allowed
    return is_reached and view.copy is not None and view.copy.waits_for_assignment


def _is_void(view: WorkerView) -> bool:
    """Whether an assignment to this worker has no effect any more."""
    return view.gone or (view.known and view.copy is None)


def _keep_or_release(assigned_name: str, nominated_names: Sequence[str], view: WorkerView) -> AssignmentDecision:
    if view.gone:
        return AssignmentDecision(Step.RELEASE, assigned_name, "an operator has declared the worker gone")
    if not view.known:
        return _NOTHING
    if view.copy is None:
        return AssignmentDecision(Step.RELEASE, assigned_name, "there is no copy of it any more")
    if view.copy.binds:
        return _NOTHING
    if assigned_name in nominated_names and _may_start(view):
        return AssignmentDecision(Step.GRANT, assigned_name)
    return AssignmentDecision(Step.RELEASE, assigned_name, "its copy there cannot be admitted now")


def assignment_reason(worker: str) -> str:
    """The reason of the condition that assigns a job to a worker."""
    return f"{_ASSIGNED}:{worker.replace('-', '_')}"


def assigned_worker(reason: str, message: str) -> str:
    """The worker of such a reason; `UNREADABLE` where it is another.

    Up to release 0.2.0 only the message had the worker. It is read because a job may have been assigned, but not yet
    admitted, when the controller is upgraded: its worker may have been told already.
    """
    kind, _, worker = reason.partition(":")
    if reason == _ASSIGNED:
        worker = message.removeprefix("Assigned to ").partition(":")[0]
        return UNREADABLE if worker == message or " " in worker else worker
    return worker.replace("_", "-") if kind == _ASSIGNED and worker else UNREADABLE
