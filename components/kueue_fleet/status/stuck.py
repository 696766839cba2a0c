"""Jobs that wait for what does not come by itself; docs/stuck.md says who undoes each kind, and after how long."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime

from kueue_admission.decide.model import CheckState
from kueue_admission.kernel.names import ORIGIN_LABEL
from kueue_admission.read.printed import Printed, PrintedWorkload
from kueue_admission.read.workloads import parse_check_state
from kueue_fleet.dispatch.rescue import LOST_END, LOST_JOB, OWNER_NOT_FOUND, STUCK_COPY, STUCK_EVICTION
from kueue_fleet.dispatch.watchdog import PROVISIONING_TIMEOUT, STUCK_CHECK, watch_checks
from kueue_fleet.fleet_file.in_words import listed
from kueue_fleet.settings.dispatch import Watchdog
from kueue_fleet.status.conditions import NOT_DISPATCHED, why_not_dispatched
from kueue_fleet.status.model import ClusterObjects, StuckWorkload


def stuck_workloads(clusters: Mapping[str, ClusterObjects], settings: Watchdog, now: datetime) -> list[StuckWorkload]:
    """Of every cluster, the longest first; `settings` say how long each kind may take.

    What has no time is not known to be overdue.
    """
    workloads_there = (
        stuck_workload
        for stuck_workload in _stuck_workloads(clusters, settings, now)
        if stuck_workload.seconds < now.timestamp()
    )
    return sorted(workloads_there, key=lambda each: -each.seconds)


def _stuck_workloads(
    clusters: Mapping[str, ClusterObjects], settings: Watchdog, now: datetime
) -> Iterator[StuckWorkload]:
    moment = now.timestamp()
    copies = {(name, workload.key): workload for name, objects in clusters.items() for workload in objects.workloads}
    for cluster, objects in clusters.items():
        for workload in objects.workloads:
            what = _of_workload(workload, settings, moment)
            if what is None and objects.role == "manager":
                what = _not_dispatched(workload, settings, moment) or _lost_end(
                    workload, copies.get((workload.cluster_name, workload.key)), settings, moment
                )
            if what is not None:
                why, message, began = what
                yield _stuck(cluster, workload, why, message, moment - began)
        for request in objects.of("provisioningrequests"):
            acceptance_time = request.since("Accepted")
            over = any(map(request.is_true, ("Provisioned", "Failed", "BookingExpired")))
            if (
                acceptance_time is not None
                and not over
                and moment >= acceptance_time + settings.provisioning_timeout.seconds
            ):
                message = f"{request.name} is Accepted, and not Provisioned"
                yield _stuck(cluster, request, PROVISIONING_TIMEOUT, message, moment - acceptance_time)


def _of_workload(workload: PrintedWorkload, settings: Watchdog, now: float) -> tuple[str, str, float] | None:
    """Reason, message, and since when."""
    if workload.is_true("Finished"):
        return _lost(workload, settings, now)
    leave_time = workload.left_at
    if workload.is_true("QuotaReserved"):
        if leave_time is None or now < leave_time + settings.stuck_after.seconds:
            return None
        amounts_text = listed([f"{amount} {resource}" for resource, amount in workload.held.items()])
        how = "Evicted" if workload.is_true("Evicted") else "Deleted"
        what = f"{how}, and still has its quota{': ' if amounts_text else ''}{amounts_text}"
        is_copy = ORIGIN_LABEL in workload.labels and not workload.owners
        return STUCK_COPY if is_copy else STUCK_EVICTION, what, leave_time
    if not workload.is_active or workload.deleted_at is not None:
        return None
    checks = [check for check in map(parse_check_state, workload.checks) if check.state is CheckState.RETRY]
    requeue_at = workload.status.child("requeueState").seconds("requeueAt")
    names, due = watch_checks(checks, requeue_at, settings.stuck_after.seconds, now)
    message = f"{', '.join(names)} is Retry without quota, where Kueue does not look at it again"
    return (STUCK_CHECK, message, due - settings.stuck_after.seconds) if names else None


def _lost(workload: PrintedWorkload, settings: Watchdog, now: float) -> tuple[str, str, float] | None:
    """Of a Workload that is finished, as its job is gone on the worker, while it is there on the manager."""
    where, at = workload.cluster_name, workload.since("Finished")
    there = workload.owners and workload.deleted_at is None
    if workload.reason("Finished") != OWNER_NOT_FOUND or not where or not there:
        return None
    overdue = at is not None and now >= at + settings.stuck_after.seconds
    return (LOST_JOB, f"it was deleted on {where}, and never ends here", at) if at is not None and overdue else None


def _not_dispatched(workload: PrintedWorkload, settings: Watchdog, now: float) -> tuple[str, str, float] | None:
    """Of one that the manager, where no pod runs, admitted without a worker."""
    admission_time = workload.since("Admitted")
    why = why_not_dispatched(workload)
    if not why or admission_time is None or now < admission_time + settings.stuck_after.seconds:
        return None
    return NOT_DISPATCHED, why, admission_time


def _lost_end(
    workload: PrintedWorkload, copy: PrintedWorkload | None, settings: Watchdog, now: float
) -> tuple[str, str, float] | None:
    """Of one whose copy is finished, which Kueue cannot copy."""
    end_time = None if copy is None or workload.is_true("Finished") else copy.since("Finished")
    if end_time is None or now < end_time + settings.stuck_after.seconds:
        return None
    return LOST_END, f"it ended on {workload.cluster_name}, and goes on here", end_time


def _stuck(cluster: str, thing: Printed, why: str, message: str, seconds: float) -> StuckWorkload:
    return StuckWorkload(cluster, thing.namespace, thing.job_name, why, message, seconds)
