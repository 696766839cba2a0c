"""Evictions and deletions on the manager that Kueue does not finish: the job's status is corrected, as no pod is left.

Decided by `dispatch.rescue`. Only the status of the job is written: Kueue then returns the quota. A job that has ended
and is still suspended is resumed. For Jobs and JobSets; where other kinds count their pods is not known here.
"""

from __future__ import annotations

import logging
import math
from typing import Final

from kueue_admission.decide.model import CheckState
from kueue_admission.read.printed import PrintedJob
from kueue_fleet.controller import patches
from kueue_fleet.controller.fleet import Fleet
from kueue_fleet.controller.records import Record
from kueue_fleet.dispatch import CheckDecision, Residency, watch_eviction
from kueue_fleet.dispatch.assignment import End
from kueue_fleet.dispatch.fleet_checks import format_time
from kueue_fleet.dispatch.rescue import ENDED_SUSPENDED, HELD_EVICTION, LOST_COPY, LOST_END, LOST_JOB, STUCK_EVICTION
from kueue_fleet.kube.answers import ApiError, Json

RESCUE_MANAGER: Final = "kueue-fleet-rescue"
"""Field manager of what is taken back and corrected."""
_KINDS: Final = {"Job": ("batch/v1", "jobs"), "JobSet": ("jobset.x-k8s.io/v1alpha2", "jobsets")}
_ENDS: Final = {"Succeeded": ("SuccessCriteriaMet", "Complete"), "Failed": ("FailureTarget", "Failed")}
"""By the reason with which Kueue finishes a Workload: the conditions of its Job."""
_NO_JOBS: Final = {"ready": 0, "succeeded": 0, "failed": 0, "active": 0, "suspended": 0}

log = logging.getLogger(__name__)


class Rescue:
    """Finishes evictions and deletions. `patience`: seconds that Kueue has for one."""

    def __init__(self, fleet: Fleet, patience: float) -> None:
        self._fleet = fleet
        self._patience = patience
        self._again: dict[str, float] = {}
        self._held: dict[str, str] = {}
        self._missed: dict[str, float] = {}
        """Since when the worker of an admitted Workload has no copy of it."""

    async def reconcile(self, record: Record, now: float) -> float | None:
        """Finish the eviction or deletion of a Workload if that is overdue; when to look again. Raises ApiError."""
        self._missed.pop(record.key, None)
        if now < self._again.get(record.key, 0.0):
            # Each change of the Workload is a reason to look, and none to say the same again.
            return self._again[record.key]
        check = self._fleet.manager.dispatch_check(record)
        if not record.leaves or record.left_at is None or check is None:
            return None
        what = "Deleted" if record.evicted_at is None else "Evicted"
        views = self._fleet.worker_views(record, Residency(), self._fleet.workers)
        verdict = watch_eviction(what, record.left_at, record.assigned, views, self._patience, now)
        if verdict.give_up and record.owner.kind not in _KINDS:
            # No number in it: the same words are written once.
            message = f"{what}, and no worker has a copy of it; the status of a {record.owner.kind} is not corrected"
            self._hold(record, HELD_EVICTION, message)
            return now + self._patience
        if verdict.give_up:
            if not await self._correct(record, verdict.message):
                # Kueue has yet to suspend the job, which is not a change of the Workload.
                return now + self._patience
            self._again[record.key] = verdict.retry_at or now
        elif verdict.message:
            self._hold(record, HELD_EVICTION, verdict.message)
        return verdict.retry_at

    def look_for_lost(self, record: Record, now: float) -> float:
        """Say of a job that its remote Job was deleted, if it has been gone for long enough; when to look again."""
        due = math.inf if record.lost_at is None or record.deleted_at is not None else record.lost_at + self._patience
        if due <= now:
            why = f"Its {record.owner.kind} was deleted on {record.cluster_name}; it never ends here"
            self._hold(record, LOST_JOB, why)
            return math.inf
        return due

    async def resume(self, record: Record) -> None:
        """Resume a job that has ended, and that Kueue leaves suspended; nothing runs by that. Raises ApiError.

        Kueue 0.17 does not copy the end of a Job that is suspended: it is written as the Workload has it.
        """
        not_admitted = record.admitted_at is None or record.evicted_at is not None
        left_so = record.finished and record.reserved_at is not None and not_admitted
        if not left_so or self._fleet.manager.dispatch_check(record) is None or record.owner.kind not in _KINDS:
            return
        job = await self._job(record)
        if job is not None and job.is_suspended and await self._end(record, job, record.end):
            job = await self._job(record)
        if job is None or job.ended_at is None or not job.is_suspended:
            return
        body = {**_head(record, job), "spec": {"suspend": False}}
        await self._fleet.api.apply(path_of_job(record), body, RESCUE_MANAGER)
        self._report(record, ENDED_SUSPENDED, "It has ended on its worker, was still suspended here, and is resumed")

    async def look_at_copy(self, key: str, record: Record | None, now: float) -> float:
        """Help a job whose copy has ended or is gone, and of which Kueue makes nothing; when to look again.

        Raises ApiError.
        """
        if record is None or not record.holds_quota:
            self._missed.pop(key, None)
            return math.inf
        copy, check = self._fleet.copy(record), self._fleet.manager.dispatch_check(record)
        worker = self._fleet.workers.get(record.cluster_name)
        if copy is not None or check is None or worker is None or not worker.followed:
            self._missed.pop(key, None)
            return math.inf if copy is None or copy.end is None else await self._finish(record, copy.end, now)
        due = self._missed.setdefault(key, now) + self._patience
        if record.checks[check].state is CheckState.READY and due <= now:
            why = f"{record.cluster_name} has no copy of it any more"
            body = patches.check_body(record, {check: (CheckDecision(CheckState.RETRY, why), None)}, now)
            await self._fleet.write_status(record, body, patches.REJECT_MANAGER)
            self._report(record, LOST_COPY, f"{why}, and it is taken back")
            del self._missed[key]
        return max(due, now + self._patience / 2)

    async def _finish(self, record: Record, end: End, now: float) -> float:
        """Write the end of a Job's copy if Kueue has not copied it in time; when to look again."""
        if record.owner.kind != "Job":
            return math.inf
        if now < end.at + self._patience:
            return end.at + self._patience
        job = await self._job(record)
        if job is not None and await self._end(record, job, end):
            self._report(record, LOST_END, "It has ended on its worker, which Kueue could not copy, and ends here too")
        return now + self._patience

    async def _end(self, record: Record, job: PrintedJob, end: End | None) -> bool:
        """Write the end of a Job that has none; whether that was so."""
        condition = end_of_job(record, job, end)
        if not condition or job.ended_at is not None:
            return False
        body = status_of_job(record, job)
        body["status"] |= condition
        await self._fleet.api.apply(f"{path_of_job(record)}/status", body, RESCUE_MANAGER)
        return True

    async def _job(self, record: Record) -> PrintedJob | None:
        """The job of a Workload; None if it is gone, or another one by now."""
        try:
            job = PrintedJob.of(await self._fleet.api.get(path_of_job(record)))
        except ApiError as error:
            if error.is_not_found:
                return None
            raise
        return job if job.uid == record.owner.uid else None

    def _report(self, record: Record, reason: str, why: str) -> None:
        self._fleet.metrics.rescued.labels(reason).inc()
        log.warning("rescue", extra={"fields": {"workload": record.key, "why": why}})
        self._fleet.tell(record, reason, why, True)

    def _hold(self, record: Record, reason: str, message: str) -> None:
        """Say once what is not undone, and why."""
        if self._held.get(record.key) != message:
            self._held[record.key] = message
            log.warning("held", extra={"fields": {"workload": record.key, "why": message}})
            self._fleet.tell(record, reason, message, True)

    async def _correct(self, record: Record, why: str) -> bool:
        """Write a status without pods, and return True; False if the job is another one by now, or not suspended."""
        job = await self._job(record)
        if job is None or not job.is_suspended:
            return False
        await self._fleet.api.apply(f"{path_of_job(record)}/status", status_of_job(record, job), RESCUE_MANAGER)
        self._report(record, STUCK_EVICTION, why)
        return True

    def forget(self, key: str) -> None:
        """The Workload moves on."""
        self._again.pop(key, None)
        self._held.pop(key, None)


def path_of_job(record: Record) -> str:
    """Where a Workload's job is."""
    version, plural = _KINDS[record.owner.kind]
    return f"/apis/{version}/namespaces/{record.namespace}/{plural}/{record.owner.name}"


def status_of_job(record: Record, job: PrintedJob) -> Json:
    """The status of a Workload's job without pods; refused if the job was changed since it was read."""
    status: Json = {"active": 0, "ready": 0, "terminating": 0}
    if record.owner.kind == "JobSet":
        # Kueue names pod sets like the replicated jobs that they are.
        status = {"replicatedJobsStatus": [{"name": one.name, **_NO_JOBS} for one in record.workload.pod_sets]}
    return {**_head(record, job), "status": status}


def end_of_job(record: Record, job: PrintedJob, end: End | None) -> Json:
    """What the status of a Job says of the end of its Workload; empty for other kinds, and for any other end.

    How many pods ended is not known, nor when the first one began, unless the status has it: after the Workload had
    quota. A Job that was about to fail or to succeed when it was evicted has only that end left. Source:
    k8s.io/kubernetes@v1.36.3 pkg/apis/batch/validation/validation.go (ValidateJobStatusUpdate).
    """
    if record.owner.kind != "Job" or end is None or record.reserved_at is None:
        return {}
    end_reasons = [reason for reason, (target, _) in _ENDS.items() if job.is_true(target)]
    reason = end_reasons[0] if end_reasons and end.reason in _ENDS else end.reason
    began = job.status.seconds("startTime")
    at = format_time(max(end.at, record.reserved_at if began is None else began))
    condition = {"status": "True", "reason": "WorkloadFinished", "message": end.message, "lastTransitionTime": at}
    times = {} if began is not None else {"startTime": format_time(record.reserved_at)}
    if reason == "Succeeded":
        times["completionTime"] = at
    conditions = [{"type": condition_type, **condition} for condition_type in _ENDS.get(reason, ())]
    return {**times, "conditions": conditions} if conditions else {}


def _head(record: Record, job: PrintedJob) -> Json:
    """What says which job it is, at the version that was read."""
    metadata = {
        "name": record.owner.name,
        "namespace": record.namespace,
        "uid": record.owner.uid,
        "resourceVersion": job.metadata.text("resourceVersion"),
    }
    return {"apiVersion": _KINDS[record.owner.kind][0], "kind": record.owner.kind, "metadata": metadata}
