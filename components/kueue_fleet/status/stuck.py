"""Jobs that wait for what does not come by itself; docs/stuck.md says who undoes each kind, and after how long."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime

from kueue_admission.decide.model import CheckState, WorkloadCheck
from kueue_admission.forms.names import ORIGIN_LABEL
from kueue_admission.read.fields import Fields
from kueue_admission.read.manifests import since
from kueue_fleet.dispatch import WatchdogSettings
from kueue_fleet.dispatch.rescue import LOST_JOB, OWNER_NOT_FOUND, STUCK_COPY, STUCK_EVICTION
from kueue_fleet.dispatch.watchdog import PROVISIONING_TIMEOUT, STUCK_CHECK, watch_checks
from kueue_fleet.fleet_file.in_words import listed
from kueue_fleet.status.accelerators import quota_held
from kueue_fleet.status.conditions import Manifest, condition, is_true
from kueue_fleet.status.model import ClusterObjects, StuckWorkload


def stuck_workloads(
    clusters: Mapping[str, ClusterObjects], settings: WatchdogSettings, now: datetime
) -> list[StuckWorkload]:
    """Of every cluster, the longest first; `settings` say how long each kind may take.

    What has no time is not known to be overdue.
    """
    found = (each for each in _stuck_workloads(clusters, settings, now) if each.seconds < now.timestamp())
    return sorted(found, key=lambda each: -each.seconds)


def _stuck_workloads(
    clusters: Mapping[str, ClusterObjects], settings: WatchdogSettings, now: datetime
) -> Iterator[StuckWorkload]:
    moment = now.timestamp()
    for cluster, found in clusters.items():
        for workload in found.of("workloads"):
            what = _of_workload(workload, settings, moment)
            if what is not None:
                why, message, began = what
                yield _stuck(cluster, workload, why, message, moment - began)
        for request in found.of("provisioningrequests"):
            accepted = since(request, "Accepted")
            over = any(is_true(request, each) for each in ("Provisioned", "Failed", "BookingExpired"))
            if accepted is not None and not over and moment >= accepted + settings.provisioning_timeout:
                message = f"{request['metadata']['name']} is Accepted, and not Provisioned"
                yield _stuck(cluster, request, PROVISIONING_TIMEOUT, message, moment - accepted)


def _of_workload(workload: Manifest, settings: WatchdogSettings, now: float) -> tuple[str, str, float] | None:
    """Reason, message, and since when."""
    metadata, status = workload["metadata"], workload.get("status") or {}
    if is_true(workload, "Finished"):
        return _lost(workload, settings, now)
    evicted, deleted = since(workload, "Evicted"), Fields(metadata, "", []).seconds("deletionTimestamp")
    left = deleted if evicted is None else evicted
    if is_true(workload, "QuotaReserved"):
        if left is None or now < left + settings.stuck_after:
            return None
        held = listed([f"{amount} {resource}" for resource, amount in quota_held(workload).items()])
        what = f"{'Deleted' if evicted is None else 'Evicted'}, and still has its quota{': ' if held else ''}{held}"
        is_copy = ORIGIN_LABEL in (metadata.get("labels") or {}) and not metadata.get("ownerReferences")
        return STUCK_COPY if is_copy else STUCK_EVICTION, what, left
    if (workload.get("spec") or {}).get("active") is False or deleted is not None:
        return None
    checks = [
        WorkloadCheck(each.text("name"), CheckState.RETRY, each.seconds("lastTransitionTime", 0.0) or 0.0)
        for each in Fields(status, "", []).children("admissionChecks")
        if each.text("state") == CheckState.RETRY
    ]
    requeue_at = Fields(status, "", []).child("requeueState").seconds("requeueAt")
    names, due = watch_checks(checks, requeue_at, settings.stuck_after, now)
    message = f"{', '.join(names)} is Retry without quota, where Kueue does not look at it again"
    return (STUCK_CHECK, message, due - settings.stuck_after) if names else None


def _lost(workload: Manifest, settings: WatchdogSettings, now: float) -> tuple[str, str, float] | None:
    """Of a Workload that is finished, as its job is gone on the worker, while it is there on the manager."""
    metadata, where = workload["metadata"], (workload.get("status") or {}).get("clusterName")
    finished, at = condition(workload, "Finished") or {}, since(workload, "Finished")
    there = metadata.get("ownerReferences") and "deletionTimestamp" not in metadata
    if finished.get("reason") != OWNER_NOT_FOUND or not where or not there:
        return None
    overdue = at is not None and now >= at + settings.stuck_after
    return (LOST_JOB, f"it was deleted on {where}, and never ends here", at) if at is not None and overdue else None


def _stuck(cluster: str, thing: Manifest, why: str, message: str, seconds: float) -> StuckWorkload:
    metadata = thing["metadata"]
    owner = next((each["name"] for each in metadata.get("ownerReferences") or ()), metadata["name"])
    return StuckWorkload(cluster, metadata["namespace"], owner, why, message, seconds)
