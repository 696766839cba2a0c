"""The status of a fleet from objects as API servers list them."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from kueue_admission.kernel.names import LOST_CAPACITY_ANNOTATION
from kueue_admission.read.lost_capacity import LostCapacity, write_lost
from kueue_fleet.fleet_file import parse_fleet_text
from kueue_fleet.status import ClusterObjects, FleetStatus, calendar_status, fleet_status

NOW = datetime(2026, 11, 21, 12, 0, 0, tzinfo=UTC)
Object = dict[str, Any]


def conditions(**states: tuple[bool, str, str]) -> Object:
    return {
        "conditions": [
            {"type": kind, "status": str(holds), "reason": reason, "message": message}
            for kind, (holds, reason, message) in states.items()
        ]
    }


def workload(name: str, created: str = "2026-11-21T11:50:00Z", **states: tuple[bool, str, str]) -> Object:
    return {
        "metadata": {
            "namespace": "team-a",
            "name": f"job-{name}-x",
            "creationTimestamp": created,
            "ownerReferences": [{"name": name, "uid": name}],
        },
        "spec": {"queueName": "gpu"},
        "status": conditions(**states),
    }


def queue(*, active: bool = True, used: str = "0", borrowed: str = "0") -> Object:
    resource = {"name": "nvidia.com/gpu", "total": used, "borrowed": borrowed}
    return {
        "metadata": {"name": "dws"},
        "spec": {
            "resourceGroups": [
                {
                    "coveredResources": ["nvidia.com/gpu"],
                    "flavors": [{"name": "t4", "resources": [{"name": "nvidia.com/gpu", "nominalQuota": "4"}]}],
                }
            ]
        },
        "status": {
            "pendingWorkloads": 2,
            "admittedWorkloads": 1,
            "flavorsReservation": [{"name": "t4", "resources": [resource]}],
            **conditions(Active=(active, "Ready" if active else "FlavorNotFound", "Can't admit new workloads")),
        },
    }


def request(name: str, created: str, **states: tuple[bool, str, str]) -> Object:
    metadata = {"namespace": "team-a", "name": name, "creationTimestamp": created}
    return {"metadata": metadata, "status": conditions(**states)}


RESERVED = (True, "QuotaReserved", "Quota reserved in ClusterQueue dws")
ADMITTED = (True, "Admitted", "The workload is admitted")


def connection(name: str, *, active: bool = True) -> Object:
    return {"metadata": {"name": name}, "status": conditions(Active=(active, "Active", "the token has expired"))}


def look(manager: dict[str, list[Object]], **workers: dict[str, list[Object]]) -> FleetStatus:
    clusters = {"manager": ClusterObjects("manager", manager)}
    clusters |= {name: ClusterObjects("worker", objects) for name, objects in workers.items()}
    return fleet_status("prod", clusters, date(2026, 12, 1), NOW)


def test_workloads_are_counted_by_where_they_stand() -> None:
    workloads = [
        workload("a"),
        workload("b", QuotaReserved=RESERVED),
        workload("c", QuotaReserved=RESERVED, Admitted=ADMITTED),
        workload("d", Admitted=ADMITTED, Finished=(True, "Succeeded", "")),
    ]
    [cluster] = look({"workloads": workloads}).clusters
    assert (cluster.pending, cluster.reserved, cluster.admitted) == (1, 1, 1)


def test_queues_have_use_against_quota_and_say_why_they_are_closed() -> None:
    [result] = look({"clusterqueues": [queue(used="5", borrowed="1")]}).queues
    assert (result.active, result.reason, result.pending, result.admitted) == (True, "", 2, 1)
    assert [(use.flavor, use.used, use.nominal, use.borrowed) for use in result.use] == [("t4", "5", "4", "1")]
    [closed] = look({"clusterqueues": [queue(active=False)]}).queues
    assert (closed.active, closed.reason) == (False, "Can't admit new workloads")


def test_a_deleted_queue_names_the_jobs_that_keep_it() -> None:
    """As a destroy leaves it that gave up waiting; HoldAndDrain of it, without LocalQueues, would evict nothing."""
    deleted = queue(active=False)
    deleted["metadata"]["deletionTimestamp"] = "2026-11-21T11:59:00Z"
    names = ["e", "d", "c", "b", "a"]
    workloads = [workload(name, QuotaReserved=RESERVED) for name in names]
    over = workload("over", QuotaReserved=RESERVED, Finished=(True, "Succeeded", ""))
    elsewhere, waiting = workload("elsewhere", QuotaReserved=RESERVED), workload("waiting")
    for item in (*workloads, over):
        item["status"]["admission"] = {"clusterQueue": "dws"}
    elsewhere["status"]["admission"] = {"clusterQueue": "other"}
    objects = {"clusterqueues": [deleted], "workloads": [*workloads, over, elsewhere, waiting]}
    [result] = look(objects).queues
    assert result.reason == (
        "Can't admit new workloads; it waits for jobs with quota, team-a/a, team-a/b, team-a/c and 2 more: "
        "delete them, or set active: false in their Workloads' spec"
    )
    [result] = look({**objects, "workloads": [over, elsewhere, waiting]}).queues
    assert result.reason == "Can't admit new workloads"
    del deleted["metadata"]["deletionTimestamp"]
    [result] = look(objects).queues
    assert result.reason == "Can't admit new workloads"


def test_workers_are_connected_as_the_manager_says() -> None:
    manager = {"multikueueclusters": [connection("w1"), connection("w2", active=False)]}
    _, first, second, third = look(manager, w1={}, w2={}, w3={}).clusters
    assert (first.connected, first.message) == (True, "")
    assert (second.connected, second.message) == (False, "the token has expired")
    assert third.connected is None


def test_what_waits_has_the_reason_of_the_worker_that_is_nearest() -> None:
    manager = {
        "workloads": [
            workload("old", "2026-11-21T11:00:00Z", QuotaReserved=(False, "WaitingForQuota", "1 more needed")),
            workload("new", QuotaReserved=RESERVED),
        ]
    }
    never = workload("new", QuotaReserved=(False, "ExceedsMaxQuota", "too big"))
    soon = workload("new", QuotaReserved=(False, "WaitingForQuota", "2 more needed"))
    old, new = look(manager, w1={"workloads": [never]}, w2={"workloads": [soon]}).pending
    assert (old.name, old.cluster, old.reason, old.waiting_seconds) == ("old", "manager", "WaitingForQuota", 3600)
    assert (new.name, new.cluster, new.reason, new.message) == ("new", "w2", "WaitingForQuota", "2 more needed")


def test_what_no_worker_can_ever_hold_keeps_quota_on_the_manager() -> None:
    waiting = workload("new", QuotaReserved=RESERVED)
    usage = [{"nvidia.com/gpu": "16", "cpu": "500m"}, {"nvidia.com/gpu": "8", "cpu": "1"}]
    waiting["status"]["admission"] = {"podSetAssignments": [{"resourceUsage": item} for item in usage]}
    never = workload("new", QuotaReserved=(False, "ExceedsMaxQuota", "too big"))
    soon = workload("new", QuotaReserved=(False, "WaitingForQuota", "2 more needed"))
    [result] = look({"workloads": [waiting]}, w1={"workloads": [never]}, w2={"workloads": [never]}).pending
    assert (result.reason, result.message) == ("ExceedsMaxQuota", "too big")
    assert result.keeps == "24 nvidia.com/gpu and 1500m cpu"
    [result] = look({"workloads": [waiting]}, w1={"workloads": [never]}, w2={"workloads": [soon]}).pending
    assert result.keeps == ""
    [result] = look({"workloads": [never]}).pending
    assert result.keeps == ""


def test_a_copy_that_is_evicted_and_holds_its_quota_says_so() -> None:
    manager = {"workloads": [workload("a", QuotaReserved=RESERVED)]}
    stuck = workload("a", QuotaReserved=RESERVED, Evicted=(True, "Preempted", "Preempted to accommodate a workload"))
    [pending] = look(manager, w1={"workloads": [stuck]}).pending
    assert (pending.cluster, pending.reason) == ("w1", "Evicted")
    assert pending.message == "Preempted to accommodate a workload"


def test_checks_that_are_not_ready_are_the_reason_without_copies() -> None:
    waiting = workload("a", QuotaReserved=RESERVED)
    waiting["status"]["admissionChecks"] = [{"name": "budget", "state": "Pending"}, {"name": "x", "state": "Ready"}]
    [pending] = look({"workloads": [waiting]}).pending
    assert (pending.reason, pending.message) == ("UnsatisfiedAdmissionChecks", "budget Pending")


def test_requests_that_have_their_capacity_are_no_news() -> None:
    accepted = (True, "SuccessfullyQueued", "queued")
    short = (False, "ResourcePoolExhausted", "1 nvidia-tesla-t4 is not available")
    requests = [
        request("served", "2026-11-21T11:00:00Z", Accepted=accepted, Provisioned=(True, "Provisioned", "")),
        request("waits", "2026-11-21T11:30:00Z", Accepted=accepted, Provisioned=short),
        request("fresh", "2026-11-21T11:59:00Z"),
        request("lost", "2026-11-21T10:00:00Z", Accepted=accepted, CapacityRevoked=(True, "CapacityRevoked", "gone")),
    ]
    result = look({}, w1={"provisioningrequests": requests}).requests
    assert [(item.name, item.state, item.message, item.age_seconds) for item in result] == [
        ("lost", "CapacityRevoked", "gone", 7200),
        ("waits", "Accepted", "1 nvidia-tesla-t4 is not available", 1800),
        ("fresh", "Pending", "", 60),
    ]


def test_a_cluster_that_does_not_answer_hides_no_other() -> None:
    clusters = {
        "manager": ClusterObjects("manager", unreachable="no answer: NewConnectionError"),
        "w1": ClusterObjects("worker", {"clusterqueues": [queue()]}),
    }
    result = fleet_status("prod", clusters, None, NOW)
    assert [cluster.reachable for cluster in result.clusters] == [False, True]
    assert len(result.queues) == 1
    assert result.days_left is None


def test_json_is_in_camel_case_with_a_version_and_days_left() -> None:
    document = look({"workloads": [workload("a")]}).as_json()
    assert document["schemaVersion"] == 1
    assert (document["rotateBy"], document["daysLeft"]) == ("2026-12-01", 10)
    assert document["pending"][0]["waitingSeconds"] == 600.0


def test_calendar_reservations_that_have_not_ended() -> None:
    text = (Path(__file__).parents[2] / "examples/jobs/fleet.yaml").read_text()
    fleet = parse_fleet_text(text, "fleet.yaml")

    def at(day: str) -> list[tuple[bool, int]]:
        now = datetime.fromisoformat(day)
        return [(item.is_open, item.days_left) for item in calendar_status(fleet, now)]

    assert at("2027-02-27T00:00:00Z") == [(False, 2)]
    assert at("2027-03-01T00:00:00Z") == [(True, 14)]
    assert at("2027-03-14T12:00:00Z") == [(True, 0)]
    assert at("2027-03-15T00:00:00Z") == []
    [result] = calendar_status(fleet, datetime.fromisoformat("2027-03-02T00:00:00Z"))
    assert (result.reservation, result.pool, result.ends) == ("h100-march", "h100-calendar", "2027-03-15T00:00Z")
    document = fleet_status("f", {}, None, NOW, [result]).as_json()
    assert document["calendars"][0]["daysLeft"] == 13


def test_what_is_lost_is_said_once_of_the_cluster_with_the_nodes() -> None:
    lost = LostCapacity("us", "h100", (("nvidia.com/gpu", "8"),), ("gke-a (NotReady)",))
    queues = [
        {
            "kind": "ClusterQueue",
            "metadata": {"name": name, "annotations": {LOST_CAPACITY_ANNOTATION: write_lost([lost])}},
        }
        for name in ("red", "blue")
    ]
    clusters = {role: ClusterObjects(role, {"clusterqueues": queues}) for role in ("manager", "worker")}
    result = fleet_status("lab", clusters, None, NOW)
    assert result.lost == (lost,)
    assert str(lost) == "8 nvidia.com/gpu of flavor h100 on us: gke-a (NotReady)"
    assert result.as_json()["lost"][0]["amounts"] == {"nvidia.com/gpu": "8"}
