"""From listed objects to the status of a fleet."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from typing import Final

from kueue_admission.read.goals import Judged
from kueue_admission.read.lost_capacity import LostCapacity, lost_capacity
from kueue_admission.read.printed import Printed, PrintedWorkload
from kueue_fleet.fleet_file import Calendar, FleetSpec
from kueue_fleet.fleet_file.in_words import listed
from kueue_fleet.fleet_file.spending import BudgetUse
from kueue_fleet.status.accelerators import quotas_in
from kueue_fleet.status.conditions import NOT_DISPATCHED, dominant_reasons, why_not_dispatched
from kueue_fleet.status.model import (
    CalendarStatus,
    ClusterObjects,
    ClusterStatus,
    FleetStatus,
    PendingWorkload,
    QueueStatus,
    RequestStatus,
    StuckWorkload,
    TeamUse,
    Use,
)

_NAMED: Final = 3
"""Jobs that a text about a queue names."""
# The latest of these that is True is where a ProvisioningRequest stands.
_REQUEST_STATES: Final = ("CapacityRevoked", "BookingExpired", "Failed", "Provisioned", "Accepted")


def fleet_status(
    fleet: str,
    clusters: Mapping[str, ClusterObjects],
    rotate_by: date | None,
    now: datetime,
    calendars: Sequence[CalendarStatus] = (),
    teams: Sequence[TeamUse] = (),
    budgets: Sequence[BudgetUse] = (),
    stuck: Sequence[StuckWorkload] = (),
    goals: Sequence[Judged] = (),
) -> FleetStatus:
    """How `fleet` is at `now`; `clusters` is in the order to show them, `rotate_by`, `calendars`, `teams` and
    `budgets` are of its file, `stuck` is what `stuck_workloads` found, `goals` what
    `judge_recorded`."""
    home = next((name for name, objects in clusters.items() if objects.role != "worker"), "")
    connections = _connections(clusters.get(home))
    return FleetStatus(
        fleet=fleet,
        clusters=tuple(_cluster(name, objects, connections.get(name)) for name, objects in clusters.items()),
        queues=tuple(queue for name, objects in clusters.items() for queue in _queues(name, objects)),
        pending=tuple(sorted(_pending(home, clusters, now), key=lambda each: -each.waiting_seconds)),
        requests=tuple(
            sorted(
                (request for name, objects in clusters.items() for request in _requests(name, objects, now)),
                key=lambda each: -each.age_seconds,
            )
        ),
        rotate_by=rotate_by,
        days_left=(rotate_by - now.date()).days if rotate_by else None,
        calendars=tuple(calendars),
        teams=tuple(teams),
        budgets=tuple(budgets),
        stuck=tuple(stuck),
        goals=tuple(goals),
        lost=tuple(dict.fromkeys(_lost(clusters))),
    )


def _lost(clusters: Mapping[str, ClusterObjects]) -> Iterator[LostCapacity]:
    """Of the clusters with the nodes; the manager repeats it."""
    for objects in clusters.values():
        if objects.role != "manager":
            for queue in objects.of("clusterqueues"):
                yield from lost_capacity(queue)


def calendar_status(fleet: FleetSpec, now: datetime) -> Iterator[CalendarStatus]:
    """The pools of calendar reservations that have not ended, and the days that are left."""
    for cluster in fleet.job_clusters:
        for pool in fleet.node_pools_on(cluster):
            capacity = pool.capacity
            if isinstance(capacity, Calendar) and now < capacity.end:
                is_open = capacity.start <= now
                starts, ends = (
                    moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%MZ") for moment in (capacity.start, capacity.end)
                )
                days = ((capacity.end if is_open else capacity.start) - now).days
                yield CalendarStatus(pool.name, cluster, capacity.reservation, starts, ends, days, is_open)


def _connections(manager: ClusterObjects | None) -> dict[str, tuple[bool, str]]:
    """Worker → whether the manager reaches it, and what it says if not."""
    return {item.name: _active(item) for item in manager.of("multikueueclusters")} if manager else {}


def _active(item: Printed) -> tuple[bool, str]:
    """Whether Kueue can use it, and what it says if not."""
    text = item.message("Active") if "Active" in item.conditions else "not looked at yet"
    return (True, "") if item.is_true("Active") else (False, text)


def _cluster(name: str, cluster_objects: ClusterObjects, connection: tuple[bool, str] | None) -> ClusterStatus:
    workloads = [workload for workload in cluster_objects.workloads if not workload.is_true("Finished")]
    # What was evicted or deleted is not admitted any more, whatever it still holds.
    admitted_count = sum(workload.is_true("Admitted") and workload.left_at is None for workload in workloads)
    reserved_count = sum(workload.is_true("QuotaReserved") for workload in workloads) - admitted_count
    is_known = cluster_objects.knows("workloads")
    return ClusterStatus(
        name=name,
        role=cluster_objects.role,
        reachable=not cluster_objects.unreachable,
        message=cluster_objects.unreachable or (connection[1] if connection else ""),
        connected=connection[0] if connection else None,
        pending=len(workloads) - admitted_count - reserved_count if is_known else None,
        reserved=reserved_count if is_known else None,
        admitted=admitted_count if is_known else None,
    )


def _queues(cluster: str, cluster_objects: ClusterObjects) -> Iterator[QueueStatus]:
    for queue in cluster_objects.of("clusterqueues"):
        active, reason = _active(queue)
        holders = [] if queue.deleted_at is None else _holders(queue.name, cluster_objects)
        yield QueueStatus(
            name=queue.name,
            cluster=cluster,
            active=active,
            reason="; ".join((reason, _awaited(holders))) if holders else reason,
            pending=queue.status.integer("pendingWorkloads"),
            admitted=queue.status.integer("admittedWorkloads"),
            use=tuple(_use(queue)),
        )


def _holders(queue: str, cluster_objects: ClusterObjects) -> list[PrintedWorkload]:
    """The Workloads that have quota of a ClusterQueue, for which Kueue keeps it when it is deleted."""
    return [
        workload
        for workload in cluster_objects.workloads
        if workload.cluster_queue == queue and workload.is_true("QuotaReserved") and not workload.is_true("Finished")
    ]


def _awaited(holders: Sequence[PrintedWorkload]) -> str:
    """What a ClusterQueue in deletion waits for, and what ends it: without LocalQueues `HoldAndDrain` does not."""
    names = sorted({f"{workload.namespace}/{workload.job_name}" for workload in holders})
    rest = len(names) - _NAMED
    named_text = listed([*names[:_NAMED], *([f"{rest} more"] if rest > 0 else [])])
    return f"it waits for jobs with quota, {named_text}: delete them, or set active: false in their Workloads' spec"


def _use(queue: Printed) -> Iterator[Use]:
    reserved_amounts = {
        (flavor.text("name"), resource.text("name")): resource.data
        for flavor in queue.status.children("flavorsReservation")
        for resource in flavor.children("resources")
    }
    for flavor, quota in quotas_in(queue):
        reserved_here = reserved_amounts.get((flavor, quota.text("name")), {})
        yield Use(
            flavor=flavor,
            resource=quota.text("name"),
            used=str(reserved_here.get("total", "0")),
            nominal=str(quota.data.get("nominalQuota") or "0"),
            borrowed=str(reserved_here.get("borrowed") or "0"),
        )


def _pending(home: str, clusters: Mapping[str, ClusterObjects], now: datetime) -> Iterator[PendingWorkload]:
    """What users submitted and is not admitted: Workloads of the manager, or of the standalone cluster."""
    if home not in clusters:
        return
    copies: dict[str, dict[str, PrintedWorkload]] = {}
    for name, objects in clusters.items():
        for workload in objects.workloads if name != home else ():
            copies.setdefault(workload.key, {})[name] = workload
    is_manager = clusters[home].role == "manager"
    for workload in clusters[home].workloads:
        not_dispatched = why_not_dispatched(workload) if is_manager else ""
        if workload.is_true("Finished") or (workload.is_true("Admitted") and not not_dispatched):
            continue
        reasons = dominant_reasons(home, workload, copies.get(workload.key, {}))
        if not_dispatched:
            reasons = {home: (NOT_DISPATCHED, not_dispatched)}
        # A worker that only waits for others' quota is nearer than one that can never take it.
        cluster, (reason, message) = min(reasons.items(), key=lambda each: (each[1][0] == "ExceedsMaxQuota", each[0]))
        fits_nowhere = home not in reasons and all(why == "ExceedsMaxQuota" for why, _ in reasons.values())
        amounts = workload.held if fits_nowhere else {}
        yield PendingWorkload(
            namespace=workload.namespace,
            name=workload.job_name,
            queue=workload.queue,
            cluster=cluster,
            reason=reason,
            message=message,
            waiting_seconds=_age(workload, now),
            keeps=listed([f"{amount} {resource}" for resource, amount in amounts.items()]),
        )


def _requests(cluster: str, cluster_objects: ClusterObjects, now: datetime) -> Iterator[RequestStatus]:
    for request in cluster_objects.of("provisioningrequests"):
        state = next(filter(request.is_true, _REQUEST_STATES), "Pending")
        if state == "Provisioned":
            continue
        yield RequestStatus(
            cluster=cluster,
            namespace=request.namespace,
            name=request.name,
            state=state,
            message=request.message("Provisioned" if state == "Accepted" else state),
            age_seconds=_age(request, now),
        )


def _age(thing: Printed, now: datetime) -> float:
    return max(0.0, now.timestamp() - (thing.created or 0.0))
