"""Jobs that wait for what does not come by itself, as `status` names them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from kueue_fleet.settings.dispatch import Watchdog
from kueue_fleet.status import ClusterObjects, fleet_status
from kueue_fleet.status.stuck import stuck_workloads

NOW = datetime(2026, 11, 26, 12, 0, 0, tzinfo=UTC)
LATE, RECENT = "2026-11-26T11:50:00Z", "2026-11-26T11:59:30Z"
Object = dict[str, Any]


def true(*kinds: str, at: str = LATE) -> list[Object]:
    return [{"type": kind, "status": "True", "lastTransitionTime": at, "reason": "R"} for kind in kinds]


def workload(conditions: list[Object], checks: list[Object] | None = None, **metadata: Any) -> Object:
    owners = [{"kind": "Job", "name": "train", "uid": "u"}]
    assigned = {"name": "main", "flavors": {"nvidia.com/gpu": "l4"}, "resourceUsage": {"nvidia.com/gpu": "4"}}
    held = {"admission": {"clusterQueue": "gpu", "podSetAssignments": [assigned]}}
    return {
        "metadata": {
            "namespace": "team",
            "name": "job-train",
            "ownerReferences": owners,
            "creationTimestamp": LATE,
            **metadata,
        },
        "spec": {"queueName": "gpu"},
        "status": {"conditions": conditions, "admissionChecks": checks or [], **held},
    }


def running() -> Object:
    result = workload(true("QuotaReserved", "Admitted"))
    result["status"]["clusterName"] = "worker-us"
    return result


def undispatched(*kinds: str, flavors: Object | None = None, at: str = LATE) -> Object:
    """Admitted by the manager, without a worker."""
    result = workload(true("QuotaReserved", "Admitted", *kinds, at=at))
    result["status"]["admission"]["podSetAssignments"] = [{"name": "main", **(flavors or {})}]
    return result


def lost(**metadata: Any) -> Object:
    """Finished because its Job is gone on the worker; the manager has it still."""
    result = workload([{**condition, "reason": "OwnerNotFound"} for condition in true("Finished")], **metadata)
    result["status"]["clusterName"] = "worker-us"
    return result


def request(*conditions: Object) -> Object:
    owners = [{"kind": "Workload", "name": "job-train", "uid": "u"}]
    metadata = {"namespace": "team", "name": "job-train-dws-1", "ownerReferences": owners, "creationTimestamp": LATE}
    return {"metadata": metadata, "status": {"conditions": list(conditions)}}


def named(role: str = "manager", timeout: float = 259200.0, **objects: list[Object]) -> list[tuple[str, str, float]]:
    settings = Watchdog(provisioning_timeout=f"{timeout}s")
    result = stuck_workloads({"here": ClusterObjects(role, objects)}, settings, NOW)
    return [(f"{item.namespace}/{item.name} {item.why}", item.message, item.seconds) for item in result]


@pytest.mark.parametrize(
    ("item", "said"),
    [
        (
            workload(true("QuotaReserved", "Admitted"), deletionTimestamp=LATE),
            ("team/train StuckEviction", "Deleted, and still has its quota: 4 nvidia.com/gpu", 600.0),
        ),
        (
            workload(true("QuotaReserved", "Admitted", "Evicted")),
            ("team/train StuckEviction", "Evicted, and still has its quota: 4 nvidia.com/gpu", 600.0),
        ),
        (
            workload(
                true("QuotaReserved", "Evicted"),
                ownerReferences=[],
                labels={"kueue.x-k8s.io/multikueue-origin": "multikueue"},
            ),
            ("team/job-train StuckCopy", "Evicted, and still has its quota: 4 nvidia.com/gpu", 600.0),
        ),
        (
            workload(true("Evicted"), [{"name": "dws", "state": "Retry", "lastTransitionTime": LATE}]),
            (
                "team/train StuckCheck",
                "dws is Retry without quota, where Kueue does not look at it again",
                600.0,
            ),
        ),
        (
            lost(),
            ("team/train LostJob", "it was deleted on worker-us, and never ends here", 600.0),
        ),
    ],
    ids=["a deletion", "an eviction", "a copy", "a check", "a lost job"],
)
def test_what_does_not_end_by_itself_is_named_with_what_it_holds(item: Object, said: tuple[str, str, float]) -> None:
    assert named(workloads=[item]) == [said]


@pytest.mark.parametrize(
    "item",
    [
        running(),
        workload(true("QuotaReserved", "Evicted", at=RECENT)),
        workload(true("QuotaReserved", "Finished"), deletionTimestamp=LATE),
        lost(deletionTimestamp=LATE),
        workload(true("Evicted"), [{"name": "dws", "state": "Retry", "lastTransitionTime": RECENT}]),
        workload(true("Evicted"), [{"name": "dws", "state": "Pending", "lastTransitionTime": LATE}]),
    ],
    ids=["runs", "is just evicted", "is finished", "is deleted here too", "a recent check", "waits its turn"],
)
def test_what_moves_on_is_not(item: Object) -> None:
    assert named(workloads=[item]) == []


NOBODY = "admitted without a worker, where no pod runs: it "


@pytest.mark.parametrize(
    ("flavors", "why"),
    [
        (None, "requests nothing that its queue counts"),
        ({"flavors": {"cpu": "f"}, "resourceUsage": {"cpu": "4"}}, "lost its MultiKueue check"),
    ],
)
def test_a_job_that_the_manager_admits_without_a_worker_is_named(flavors: Object | None, why: str) -> None:
    item = undispatched(flavors=flavors)
    assert named(workloads=[item]) == [("team/train NotDispatched", f"{NOBODY}{why}", 600.0)]
    assert named("standalone", workloads=[item]) == []
    assert named(workloads=[undispatched("Finished")]) == []
    assert named(workloads=[undispatched(at=RECENT)]) == []


def test_a_job_whose_copy_has_ended_long_before_it_is_named() -> None:
    def found(end: str, *kinds: str) -> list[tuple[str, str]]:
        item, copy = running(), workload(true("Finished", at=end))
        item["status"]["conditions"] += true(*kinds)
        clusters = {
            "manager": ClusterObjects("manager", {"workloads": [item]}),
            "worker-us": ClusterObjects("worker", {"workloads": [copy]}),
        }
        return [(entry.why, entry.message) for entry in stuck_workloads(clusters, Watchdog(), NOW)]

    assert found(LATE) == [("LostEnd", "it ended on worker-us, and goes on here")]
    assert found(RECENT) == []
    assert found(LATE, "Finished") == []


def test_a_request_that_stays_accepted_longer_than_the_watchdog_waits_is_named() -> None:
    late = request(*true("Accepted"))
    words = ("team/job-train ProvisioningTimeout", "job-train-dws-1 is Accepted, and not Provisioned", 600.0)
    assert named("standalone", 600.0, provisioningrequests=[late]) == [words]
    assert named("standalone", 601.0, provisioningrequests=[late]) == []
    assert named("standalone", 600.0, provisioningrequests=[request(*true("Accepted", "Provisioned"))]) == []


def test_a_workload_that_leaves_does_not_count_as_admitted() -> None:
    items = [workload(true("QuotaReserved", "Admitted"), deletionTimestamp=LATE)]
    [cluster] = fleet_status("f", {"here": ClusterObjects("manager", {"workloads": items})}, None, NOW).clusters
    assert (cluster.reserved, cluster.admitted) == (1, 0)
