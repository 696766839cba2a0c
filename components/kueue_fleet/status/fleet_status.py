"""From listed objects to the status of a fleet."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from typing import Any, Final

from kueue_fleet.fleet_file import Calendar, FleetSpec
from kueue_fleet.fleet_file.in_words import listed
from kueue_fleet.fleet_file.spending import BudgetUse
from kueue_fleet.status.accelerators import quota_held
from kueue_fleet.status.conditions import Manifest, condition, dominant_reasons, is_true
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
) -> FleetStatus:
    """How `fleet` is at `now`; `clusters` is in the order to show them, `rotate_by`, `calendars`, `teams` and
    `budgets` are of its file, `stuck` is what `stuck_workloads` found."""
    home = next((name for name, found in clusters.items() if found.role != "worker"), "")
    connections = _connections(clusters.get(home))
    return FleetStatus(
        fleet=fleet,
        clusters=tuple(_cluster(name, found, connections.get(name)) for name, found in clusters.items()),
        queues=tuple(queue for name, found in clusters.items() for queue in _queues(name, found)),
        pending=tuple(sorted(_pending(home, clusters, now), key=lambda each: -each.waiting_seconds)),
        requests=tuple(
            sorted(
                (request for name, found in clusters.items() for request in _requests(name, found, now)),
                key=lambda each: -each.age_seconds,
            )
        ),
        rotate_by=rotate_by,
        days_left=(rotate_by - now.date()).days if rotate_by else None,
        calendars=tuple(calendars),
        teams=tuple(teams),
        budgets=tuple(budgets),
        stuck=tuple(stuck),
    )


def calendar_status(fleet: FleetSpec, now: datetime) -> Iterator[CalendarStatus]:
    """The pools of calendar reservations that have not ended, and the days that are left."""
    for cluster in fleet.job_clusters:
        for pool in fleet.node_pools_on(cluster):
            capacity = pool.capacity
            if isinstance(capacity, Calendar) and now < capacity.end:
                is_open = capacity.start <= now
                starts, ends = (
                    each.astimezone(UTC).strftime("%Y-%m-%dT%H:%MZ") for each in (capacity.start, capacity.end)
                )
                days = ((capacity.end if is_open else capacity.start) - now).days
                yield CalendarStatus(pool.name, cluster, capacity.reservation, starts, ends, days, is_open)


def _connections(manager: ClusterObjects | None) -> dict[str, tuple[bool, str]]:
    """Worker → whether the manager reaches it, and what it says if not."""
    found = {}
    for item in manager.of("multikueueclusters") if manager else ():
        active = is_true(item, "Active")
        message = "" if active else str((condition(item, "Active") or {}).get("message", "not looked at yet"))
        found[item["metadata"]["name"]] = active, message
    return found


def _cluster(name: str, found: ClusterObjects, connection: tuple[bool, str] | None) -> ClusterStatus:
    workloads = [each for each in found.of("workloads") if not is_true(each, "Finished")]
    admitted = sum(is_true(each, "Admitted") and not _leaves(each) for each in workloads)
    reserved = sum(is_true(each, "QuotaReserved") for each in workloads) - admitted
    known = found.knows("workloads")
    return ClusterStatus(
        name=name,
        role=found.role,
        reachable=not found.unreachable,
        message=found.unreachable or (connection[1] if connection else ""),
        connected=connection[0] if connection else None,
        pending=len(workloads) - admitted - reserved if known else None,
        reserved=reserved if known else None,
        admitted=admitted if known else None,
    )


def _leaves(workload: Manifest) -> bool:
    """Whether it was evicted or deleted, whatever it still holds."""
    return is_true(workload, "Evicted") or "deletionTimestamp" in workload["metadata"]


def _queues(cluster: str, found: ClusterObjects) -> Iterator[QueueStatus]:
    for queue in found.of("clusterqueues"):
        status = queue.get("status") or {}
        active = is_true(queue, "Active")
        yield QueueStatus(
            name=queue["metadata"]["name"],
            cluster=cluster,
            active=active,
            reason="" if active else str((condition(queue, "Active") or {}).get("message", "not looked at yet")),
            pending=int(status.get("pendingWorkloads", 0)),
            admitted=int(status.get("admittedWorkloads", 0)),
            use=tuple(_use(queue)),
        )


def _use(queue: Manifest) -> Iterator[Use]:
    reserved: dict[tuple[str, str], Mapping[str, Any]] = {
        (flavor["name"], resource["name"]): resource
        for flavor in (queue.get("status") or {}).get("flavorsReservation") or ()
        for resource in flavor.get("resources") or ()
    }
    for group in queue["spec"].get("resourceGroups") or ():
        for flavor in group["flavors"]:
            for quota in flavor["resources"]:
                held = reserved.get((flavor["name"], quota["name"]), {})
                yield Use(
                    flavor=flavor["name"],
                    resource=quota["name"],
                    used=str(held.get("total", "0")),
                    nominal=str(quota["nominalQuota"]),
                    borrowed=str(held.get("borrowed") or "0"),
                )


def _pending(home: str, clusters: Mapping[str, ClusterObjects], now: datetime) -> Iterator[PendingWorkload]:
    """What users submitted and is not admitted: Workloads of the manager, or of the standalone cluster."""
    if home not in clusters:
        return
    copies: dict[tuple[str, str], dict[str, Manifest]] = {}
    for name, found in clusters.items():
        for workload in found.of("workloads") if name != home else ():
            copies.setdefault(_key(workload), {})[name] = workload
    for workload in clusters[home].of("workloads"):
        if is_true(workload, "Admitted") or is_true(workload, "Finished"):
            continue
        reasons = dominant_reasons(home, workload, copies.get(_key(workload), {}))
        # A worker that only waits for others' quota is nearer than one that can never take it.
        cluster, (reason, message) = min(reasons.items(), key=lambda each: (each[1][0] == "ExceedsMaxQuota", each[0]))
        fits_nowhere = home not in reasons and all(why == "ExceedsMaxQuota" for why, _ in reasons.values())
        held = quota_held(workload) if fits_nowhere else {}
        metadata = workload["metadata"]
        owner = next((owner["name"] for owner in metadata.get("ownerReferences") or ()), metadata["name"])
        yield PendingWorkload(
            namespace=metadata["namespace"],
            name=owner,
            queue=str(workload["spec"].get("queueName", "")),
            cluster=cluster,
            reason=reason,
            message=message,
            waiting_seconds=_age(metadata["creationTimestamp"], now),
            keeps=listed([f"{amount} {resource}" for resource, amount in held.items()]),
        )


def _requests(cluster: str, found: ClusterObjects, now: datetime) -> Iterator[RequestStatus]:
    for request in found.of("provisioningrequests"):
        state = next((each for each in _REQUEST_STATES if is_true(request, each)), "Pending")
        if state == "Provisioned":
            continue
        waits = condition(request, "Provisioned") if state == "Accepted" else condition(request, state)
        yield RequestStatus(
            cluster=cluster,
            namespace=request["metadata"]["namespace"],
            name=request["metadata"]["name"],
            state=state,
            message=str((waits or {}).get("message", "")),
            age_seconds=_age(request["metadata"]["creationTimestamp"], now),
        )


def _key(workload: Manifest) -> tuple[str, str]:
    return workload["metadata"]["namespace"], workload["metadata"]["name"]


def _age(since: str, now: datetime) -> float:
    return max(0.0, (now - datetime.fromisoformat(since)).total_seconds())
