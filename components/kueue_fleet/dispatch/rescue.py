"""Evictions that Kueue 0.19 never finishes, and how long they are waited for.

A copy that is evicted on its worker before its job is there: the quota of an evicted Workload is given back by the
reconciler of its job (kueue@v0.19.2 pkg/controller/jobframework/reconciler.go, "handle eviction"), and there is none.
The copy is withdrawn, by withdrawing the nomination, and offered again. So is one that was assigned and is not
admitted.

A Workload that is evicted or deleted on the manager while its remote pods run: its copy can be removed before the
job's status was copied back (pkg/controller/admissionchecks/multikueue/workload.go, step 5; of a deleted one always, as
Reconcile has it), so that the manager's job counts an active pod from then on. An evicted one then keeps its quota; of
a deleted one, Kueue cannot restore the job's pod template (pkg/controller/jobs/job/job_controller.go, Stop), which the
API server refuses as long as a pod is active (kubernetes@v1.36.3 pkg/registry/batch/job/strategy.go,
shouldAllowMutablePodTemplate), so that the finalizer kueue.x-k8s.io/resource-in-use stays.
Once no worker has a copy, the status is corrected. Nothing is done while the worker that ran it cannot be asked:
removed from a queue or unreachable, its pods still run.

A job that ends on its worker before the manager has recorded that worker: its Workload is finished without having been
admitted (step 3), and nothing resumes the manager's job any more. The same where the Workload is evicted after the job
has ended and before it is finished, as when its worker leaves the queue just then: Kueue suspends the job for that.

A job that was admitted on a worker, where its copy or its job is deleted: Kueue keeps it Admitted for up to
`workerLostTimeout` before release 0.19, which retries its check at once. The check is set to Retry in the same way.

A Job that starts over: an API server lets its counters of failed and succeeded pods not go back, nor the conditions by
which it was about to fail or to succeed. From its second start on, Kueue can copy no status that has less, and not its
end either, as SyncJob copies the whole status; the end of its copy is written. What is refused, by
kubernetes@v1.36.3 pkg/apis/batch/validation/validation.go (ValidateJobStatusUpdate): a lower `failed`; a lower
`succeeded`, except of an Indexed Job with as many completions as parallelism; the removal of FailureTarget or
SuccessCriteriaMet; another `startTime` of a Job that is not suspended. JobSets and RayJobs have no such field.

A job whose remote Job was deleted: where its copy is finished for that before it is gone itself, the manager's Workload
is finished too (step 3 takes any reason but OutOfSync for an end), and its job, which is still there, counts pods from
then on. That is only said.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from kueue_admission.decide.model import CheckState
from kueue_fleet.dispatch.assignment import Copy, WorkerView
from kueue_fleet.dispatch.watchdog import WatchdogDecision

STUCK_COPY: Final = "StuckCopy"
"""Reason of the event about a copy that was taken back."""
STUCK_EVICTION: Final = "StuckEviction"
"""Reason of the event about a job of the manager whose status was corrected."""
HELD_EVICTION: Final = "HeldEviction"
"""Reason of the event about an eviction that waits for a worker where pods of the job may still run."""
ENDED_SUSPENDED: Final = "EndedSuspended"
"""Reason of the event about a job of the manager that had ended, and was suspended all the same."""
LOST_COPY: Final = "LostCopy"
"""Reason of the event about a job that was taken back from a worker that has no copy of it any more."""
LOST_END: Final = "LostEnd"
"""Reason of the event about a Job of the manager that got the end of its copy, which Kueue could not copy."""
LOST_JOB: Final = "LostJob"
"""Reason of the event about a job of the manager that never ends, as its Workload is finished."""
OWNER_NOT_FOUND: Final = "OwnerNotFound"
"""Kueue's reason for finishing the Workload of a job that is gone."""


def watch_copy(cluster: str, copy: Copy | None, patience: float, now: float) -> WatchdogDecision:
    """Whether to take a copy back from a worker. `patience`: seconds after its eviction, or after its assignment."""
    if copy is None or copy.owned or copy.reserved_at is None or copy.admitted or copy.finished or copy.deleted:
        return WatchdogDecision(give_up=False)
    if copy.evicted_at is not None:
        since, what = (
            copy.evicted_at,
            "was evicted {seconds:.0f} s ago, has no job there to release its quota",
        )
    elif copy.check is CheckState.READY and copy.ready_since is not None:
        since, what = copy.ready_since, "could be admitted {seconds:.0f} s ago and is not"
    else:
        return WatchdogDecision(give_up=False)
    if now < since + patience:
        return WatchdogDecision(give_up=False, retry_at=since + patience)
    message = what.format(seconds=now - since)
    return WatchdogDecision(give_up=True, message=f"The copy on {cluster} {message}, and is withdrawn")


def watch_eviction(
    what: str, left_at: float, worker: str, views: Mapping[str, WorkerView], patience: float, now: float
) -> WatchdogDecision:
    """Whether the eviction of a Workload of the manager that keeps its quota, or its deletion, has to be finished.

    `what` is Evicted or Deleted, `left_at` when it was. `worker` is the worker that it was assigned to, empty if that
    is not known; `views` are all workers of the fleet, those that its queue does not have any more too. Where its pods
    may still run nothing is done: a worker has a copy, or the one that ran it cannot be asked. Without an assignment
    every worker has to be asked. What fails is retried after longer and longer times.
    """
    due = left_at + patience
    if now < due:
        return WatchdogDecision(give_up=False, retry_at=due)
    holds = "" if views else "no worker is known"
    if worker and worker not in views:
        holds = f"it ran on {worker}, which is not in the fleet any more"
    for name, view in sorted(views.items()):
        if view.gone:
            continue
        if view.known and view.copy is not None:
            holds = f"{name} has a copy of it"
        elif not view.known and worker in ("", name):
            holds = f"{name} cannot be asked"
    if holds:
        message = f"{what}, and its pods may still run: {holds}"
        return WatchdogDecision(give_up=False, message=message, retry_at=now + patience)
    return WatchdogDecision(
        give_up=True,
        message=f"{what} {now - left_at:.0f} s ago, and no worker has a copy of it; the status of its job still "
        "counted pods, and is corrected",
        retry_at=now + max(patience, now - left_at),
    )
