from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from tests.controller.build import NOW, Fixture, admitted_copy, condition, configured, when, workload

from kueue_admission.read.printed import PrintedJob
from kueue_fleet.controller.rescue import RESCUE_MANAGER, path_of_job, status_of_job
from kueue_fleet.dispatch.assignment import ASSIGNED_CONDITION
from kueue_fleet.kube.answers import ApiError, Json
from kueue_fleet.kube.watching import Watch

JOBS = "/apis/batch/v1/namespaces/ns/jobs"
EVICTED = [condition("QuotaReserved"), condition("Evicted"), condition("Admitted")]
ORIGIN = {"kueue.x-k8s.io/multikueue-origin": "multikueue"}


def fixture() -> Fixture:
    """Every worker is followed."""
    result = Fixture(watchdog={"stuckAfter": "1m"})
    for worker in result.workers.values():
        watch = Watch(result.api, "/anything", lambda key, item: None)
        watch.connected = True
        watch.synced.set()
        worker.watches = [watch]
    return result


def left(kind: str = "Job", **changes: Any) -> Json:
    """A Workload that was evicted at NOW and keeps its quota, of a job `train-job`."""
    result = workload(**{"conditions": EVICTED, **changes})
    result["metadata"]["ownerReferences"] = [{"kind": kind, "name": "train-job", "uid": "u1", "controller": True}]
    return result


def job(uid: str = "u1", *, suspend: bool = True) -> Json:
    metadata = {"name": "train-job", "namespace": "ns", "uid": uid}
    return {"metadata": metadata, "spec": {"suspend": suspend}, "status": {"active": 1}}


def copy(**metadata: Any) -> Json:
    result = workload(conditions=[condition("QuotaReserved"), condition("Evicted")])
    result["metadata"] |= {"labels": ORIGIN, **metadata}
    return result


async def test_a_job_whose_pods_are_gone_is_told_so_once_with_an_event() -> None:
    result = fixture()
    result.api.put("/apis/batch/v1/jobs", job())
    assert await result.look(left()) == NOW + 60
    assert result.api.applied == []
    result.clock.now += 60
    assert await result.reconciler.reconcile("ns/train") == NOW + 120
    [(path, body, manager)] = result.api.applied
    assert path == f"{JOBS}/train-job/status"
    assert manager == RESCUE_MANAGER
    version = body["metadata"].pop("resourceVersion")
    assert body["metadata"] == {"name": "train-job", "namespace": "ns", "uid": "u1"}
    assert int(version) > 0
    assert body["status"] == {"active": 0, "ready": 0, "terminating": 0}
    [(reason, message, warning)] = result.told
    assert (reason, warning) == ("StuckEviction", True)
    assert "no worker has a copy" in message
    assert b'kueue_fleet_rescued_total{reason="StuckEviction"} 1.0' in result.metrics.text()


async def test_a_deleted_workload_of_a_running_job_is_finished_in_the_same_way() -> None:
    """Kueue keeps its finalizer: https://github.com/kubernetes/kubernetes/pull/135104 refuses what it then writes."""
    result = fixture()
    result.api.put("/apis/batch/v1/jobs", job())
    deleted = left(conditions=[condition("QuotaReserved"), condition("Admitted")])
    deleted["metadata"]["deletionTimestamp"] = when()
    assert await result.look(deleted) == NOW + 60
    result.clock.now += 60
    await result.reconciler.reconcile("ns/train")
    [(path, body, _)] = result.api.applied
    assert (path, body["status"]["active"]) == (f"{JOBS}/train-job/status", 0)
    [(reason, message, _)] = result.told
    assert (reason, message.split(",")[0]) == ("StuckEviction", "Deleted 60 s ago")


async def test_an_eviction_that_falls_due_while_the_manager_is_not_followed_is_looked_at_afterwards() -> None:
    result = fixture()
    result.api.put("/apis/batch/v1/jobs", job())
    key = result.take(left())
    watches = result.manager.watch(result.api)
    result.clock.now += 60
    assert await result.reconciler.reconcile(key) is None
    result.touched.clear()
    for watch in watches:
        assert key not in result.touched
        watch.synced.set()
        watch._set(connected=True)
    assert result.touched.count(key) == 1
    await result.reconciler.reconcile(key)
    assert result.told[-1][0] == "StuckEviction"


async def test_nothing_is_written_while_a_worker_has_a_copy_or_is_not_known() -> None:
    result = fixture()
    key = result.take(left())
    result.clock.now += 600
    result.workers["us"].take_workload(key, copy())
    await result.reconciler.reconcile(key)
    result.workers["us"].take_workload(key, None)
    result.workers["eu"].watches[0].connected = False
    await result.reconciler.reconcile(key)
    assert result.api.applied == []


async def test_a_change_of_the_workload_is_no_reason_to_correct_it_again() -> None:
    result = fixture()
    result.api.put("/apis/batch/v1/jobs", job())
    result.clock.now += 60
    assert await result.look(left()) == NOW + 120
    result.clock.now += 1
    assert await result.look(left(labels={"x": "y"})) == NOW + 120
    assert (len(result.api.applied), len(result.told)) == (1, 1)
    result.clock.now += 60
    assert await result.look(left(labels={"x": "z"})) == NOW + 242
    assert (len(result.api.applied), len(result.told)) == (2, 2)


async def test_a_job_that_still_runs_on_a_worker_that_its_queue_lost_is_not_told_so_and_an_event_says_why() -> None:
    result = fixture()
    result.api.put("/apis/batch/v1/jobs", job())
    result.manager.take_config("multikueue", configured("MultiKueueConfig", "multikueue", {"clusters": ["eu"]}))
    key = result.take(left(conditions=[*EVICTED, condition(ASSIGNED_CONDITION, reason="Assigned:us")]))
    result.workers["us"].take_workload(key, admitted_copy(labels=ORIGIN))
    result.clock.now += 600
    for _ in range(3):
        assert await result.reconciler.reconcile(key) == result.clock.now + 60
    assert result.api.applied == []
    assert result.told == [("HeldEviction", "Evicted, and its pods may still run: us has a copy of it", True)]
    result.workers["us"].take_workload(key, None)
    result.workers["us"].watches[0].connected = False
    await result.reconciler.reconcile(key)
    assert result.told[-1][1] == "Evicted, and its pods may still run: us cannot be asked"
    assert result.api.applied == []
    namespace = {"metadata": {"name": "system", "annotations": {"kueue-fleet.dev/gone-workers": "asia, us"}}}
    result.manager.take_namespace("system", namespace)
    await result.reconciler.reconcile(key)
    assert result.told[-1][0] == "StuckEviction"


@pytest.mark.parametrize("found", [job("another"), job(suspend=False), None], ids=["another", "goes on", "gone"])
async def test_a_job_that_is_another_one_or_goes_on_is_not_corrected(found: Json | None) -> None:
    result = fixture()
    if found is not None:
        result.api.put("/apis/batch/v1/jobs", found)
    key = result.take(left())
    result.clock.now += 60
    assert await result.reconciler.reconcile(key) == NOW + 120
    assert (result.api.applied, result.told) == ([], [])


async def test_a_job_that_kueue_suspends_late_is_corrected_all_the_same() -> None:
    result = fixture()
    result.api.put("/apis/batch/v1/jobs", job(suspend=False))
    key = result.take(left())
    result.clock.now += 600
    assert await result.reconciler.reconcile(key) == result.clock.now + 60
    result.api.put("/apis/batch/v1/jobs", job())
    result.clock.now += 60
    await result.reconciler.reconcile(key)
    assert [told[0] for told in result.told] == ["StuckEviction"]


@pytest.mark.parametrize(
    "item",
    [
        left(checks={"other": "Pending"}),
        workload(conditions=[condition("Evicted")]),
    ],
    ids=["not dispatched", "no quota"],
)
async def test_what_is_not_ours_to_finish_is_left_alone(item: Json) -> None:
    result = fixture()
    key = result.take(item)
    result.clock.now += 600
    assert await result.reconciler.reconcile(key) is None
    assert result.api.applied == []


async def test_a_job_of_another_kind_is_named_once_and_left_alone() -> None:
    result = fixture()
    key = result.take(left(kind="RayJob"))
    result.clock.now += 60
    for _ in range(2):
        assert await result.reconciler.reconcile(key) == result.clock.now + 60
        result.clock.now += 60
    words = "Evicted, and no worker has a copy of it; the status of a RayJob is not corrected"
    assert (result.api.applied, result.told) == ([], [("HeldEviction", words, True)])


async def test_a_job_that_changed_since_it_was_read_is_refused_and_tried_again() -> None:
    result = fixture()
    result.api.put("/apis/batch/v1/jobs", job())
    key = result.take(left())
    result.clock.now += 60
    overtaken = result.api.get

    async def get(path: str, params: Mapping[str, str] | None = None) -> Json:
        answer = await overtaken(path, params)
        result.api.put("/apis/batch/v1/jobs", job())
        return answer

    result.api.get = get  # type: ignore[method-assign]
    with pytest.raises(ApiError, match="Conflict"):
        await result.reconciler.reconcile(key)
    assert result.told == []


def test_the_pods_of_a_job_set_are_counted_by_its_replicated_jobs() -> None:
    result = fixture()
    result.take(left(kind="JobSet"))
    record = result.manager.records["ns/train"]
    assert path_of_job(record) == "/apis/jobset.x-k8s.io/v1alpha2/namespaces/ns/jobsets/train-job"
    body = status_of_job(record, PrintedJob.of({"metadata": {"resourceVersion": "7"}}))
    [counts] = body["status"]["replicatedJobsStatus"]
    assert counts == {"name": "main", "ready": 0, "succeeded": 0, "failed": 0, "active": 0, "suspended": 0}


def ended(reason: str = "Succeeded", **changes: Any) -> Json:
    """A Workload that Kueue has finished without having admitted it."""
    finished = {**condition("Finished"), "reason": reason, "message": "Its pods ended"}
    return left(conditions=[condition("QuotaReserved"), finished], **changes)


def ended_job(*, suspend: bool = True, kind: str = "Complete") -> Json:
    return {**job(suspend=suspend), "status": {"conditions": [condition(kind)]}}


@pytest.mark.parametrize("also", [[], ["Admitted", "Evicted"]], ids=["never admitted", "evicted after its end"])
async def test_a_job_that_has_ended_and_is_suspended_is_resumed_with_an_event(also: list[str]) -> None:
    result = fixture()
    result.api.put("/apis/batch/v1/jobs", ended_job())
    item = ended()
    item["status"]["conditions"] += [condition(entry) for entry in also]
    assert await result.look(item) is None
    [(path, body, manager)] = result.api.applied
    assert (path, body["spec"], manager) == (f"{JOBS}/train-job", {"suspend": False}, RESCUE_MANAGER)
    assert [reason for reason, _, _ in result.told] == ["EndedSuspended"]


@pytest.mark.parametrize(
    ("reason", "types", "times"),
    [
        ("Succeeded", ["SuccessCriteriaMet", "Complete"], {"startTime": when(), "completionTime": when()}),
        ("Failed", ["FailureTarget", "Failed"], {"startTime": when()}),
    ],
)
async def test_a_job_whose_end_kueue_did_not_copy_gets_it_from_its_workload(
    reason: str, types: list[str], times: Json
) -> None:
    """Kueue 0.17.1; the API server takes no end of a Job without these conditions and times."""
    result = fixture()
    result.api.put("/apis/batch/v1/jobs", job())
    await result.look(ended(reason))
    [(path, body, _), (resumed, _, _)] = result.api.applied
    assert (path, resumed) == (f"{JOBS}/train-job/status", f"{JOBS}/train-job")
    conditions = body["status"].pop("conditions")
    assert [(entry["type"], entry["status"], entry["message"]) for entry in conditions] == [
        (item, "True", "Its pods ended") for item in types
    ]
    assert body["status"] == {"active": 0, "ready": 0, "terminating": 0, **times}


@pytest.mark.parametrize(
    ("item", "found"),
    [
        (ended(), ended_job(suspend=False)),
        (ended(), job(suspend=False)),
        (ended("OutOfSync"), job()),
        (ended(kind="JobSet"), job()),
        (ended(), None),
        (ended(kind="RayJob"), ended_job()),
        (ended(checks={"other": "Pending"}), ended_job()),
        (left(conditions=[condition("QuotaReserved"), condition("Admitted"), condition("Finished")]), ended_job()),
    ],
    ids=[
        "resumed",
        "runs",
        "ended otherwise",
        "a JobSet",
        "gone",
        "another kind of job",
        "not dispatched",
        "it was admitted",
    ],
)
async def test_any_other_finished_job_is_left_as_it_is(item: Json, found: Json | None) -> None:
    result = fixture()
    if found is not None:
        result.api.put("/apis/batch/v1/jobs", found)
    await result.look(item)
    assert (result.api.applied, result.told) == ([], [])


def runs(made: Fixture, end: str = "Succeeded", kind: str = "Job", **status: Any) -> str:
    """A Workload that runs on us, where its copy ended at NOW, and whose Job has this status here; its key."""
    made.api.put("/apis/batch/v1/jobs", {**job(suspend=False), "status": status})
    known = [condition("QuotaReserved"), condition("Admitted"), condition(ASSIGNED_CONDITION, reason="Assigned:us")]
    item = left(kind, conditions=known, status={"clusterName": "us"})
    finished = {**condition("Finished"), "reason": end, "message": "Its pods ended"}
    copied = admitted_copy(labels=ORIGIN)
    copied["status"]["conditions"].append(finished)
    key = made.take(item)
    made.workers["us"].take_workload(key, copied)
    return key


async def test_a_job_that_started_over_and_whose_end_kueue_cannot_copy_gets_that_of_its_copy() -> None:
    """The API server does not let its counter of failed pods go back."""
    result = fixture()
    key = runs(result, failed=1)
    assert await result.reconciler.reconcile(key) == NOW + 60
    assert result.api.applied == []
    result.clock.now += 60
    await result.reconciler.reconcile(key)
    path, body, manager = result.api.applied[-1]
    assert (path, manager) == (f"{JOBS}/train-job/status", RESCUE_MANAGER)
    assert [item["type"] for item in body["status"].pop("conditions")] == ["SuccessCriteriaMet", "Complete"]
    times = {"startTime": when(), "completionTime": when()}
    assert body["status"] == {"active": 0, "ready": 0, "terminating": 0, **times}
    assert [reason for reason, _, _ in result.told] == ["LostEnd"]
    assert b'kueue_fleet_rescued_total{reason="LostEnd"} 1.0' in result.metrics.text()


async def test_the_start_of_a_job_that_goes_on_is_not_written_again() -> None:
    result = fixture()
    key = runs(result, succeeded=1, startTime=when(9))
    result.clock.now += 60
    await result.reconciler.reconcile(key)
    status = result.api.applied[-1][1]["status"]
    assert "startTime" not in status
    assert status["completionTime"] == when(9)


@pytest.mark.parametrize(
    ("decided", "end", "types"),
    [
        ("FailureTarget", "Succeeded", ["FailureTarget", "Failed"]),
        ("SuccessCriteriaMet", "Failed", ["SuccessCriteriaMet", "Complete"]),
    ],
)
async def test_a_job_that_was_about_to_end_before_it_started_over_ends_so(
    decided: str, end: str, types: list[str]
) -> None:
    result = fixture()
    key = runs(result, end, conditions=[condition(decided)])
    result.clock.now += 60
    await result.reconciler.reconcile(key)
    assert [item["type"] for item in result.api.applied[-1][1]["status"]["conditions"]] == types


@pytest.mark.parametrize(
    ("end", "kind", "status"),
    [
        ("Succeeded", "Job", {"conditions": [condition("Complete")]}),
        ("OutOfSync", "Job", {"conditions": [condition("FailureTarget")]}),
        ("Succeeded", "JobSet", {}),
    ],
    ids=["its end is there", "it is no end", "another kind"],
)
async def test_no_other_end_is_written(end: str, kind: str, status: Json) -> None:
    result = fixture()
    key = runs(result, end, kind, **status)
    result.clock.now += 60
    await result.reconciler.reconcile(key)
    assert [path for path, _, _ in result.api.applied if path.startswith(JOBS)] == []
    assert result.told == []


def deserted(made: Fixture, check: str = "Ready") -> str:
    """A Workload that was admitted on us, where its copy is gone; its key."""
    known = [condition("QuotaReserved"), condition("Admitted"), condition(ASSIGNED_CONDITION, reason="Assigned:us")]
    return made.take(left(conditions=known, status={"clusterName": "us"}, checks={"multikueue": check}))


async def test_a_job_whose_worker_has_no_copy_of_it_any_more_is_taken_back() -> None:
    """Kueue before 0.19 leaves it Admitted until workerLostTimeout."""
    result = fixture()
    key = deserted(result)
    assert await result.reconciler.reconcile(key) == NOW + 60
    assert (result.check("multikueue")["state"], result.told) == ("Ready", [])
    result.clock.now += 60
    await result.reconciler.reconcile(key)
    assert result.check("multikueue")["state"] == "Retry"
    assert result.told == [("LostCopy", "us has no copy of it any more, and it is taken back", True)]


@pytest.mark.parametrize("seen", [True, False], ids=["a copy that came late", "a worker that is away"])
async def test_a_job_whose_copy_may_be_there_stays(seen: bool) -> None:
    result = fixture()
    key = deserted(result)
    await result.reconciler.reconcile(key)
    result.clock.now += 60
    if seen:
        result.workers["us"].take_workload(key, admitted_copy(labels=ORIGIN))
    else:
        result.workers["us"].watches[0].connected = False
    await result.reconciler.reconcile(key)
    assert (result.check("multikueue")["state"], result.told) == ("Ready", [])


async def test_a_worker_that_was_away_is_asked_as_long_again() -> None:
    result = fixture()
    key = deserted(result)
    await result.reconciler.reconcile(key)
    result.workers["us"].watches[0].connected = False
    result.clock.now += 60
    await result.reconciler.reconcile(key)
    result.workers["us"].watches[0].connected = True
    assert await result.reconciler.reconcile(key) == NOW + 120
    assert result.told == []


def lost(**changes: Any) -> Json:
    """A Workload that Kueue finished since its Job was deleted on the worker, and that is there on the manager."""
    finished = {**condition("Finished"), "reason": "OwnerNotFound"}
    return left(conditions=[condition("QuotaReserved"), condition("Admitted"), finished], **changes)


async def test_a_job_that_was_deleted_on_its_worker_is_named_once_as_one_that_never_ends() -> None:
    result = fixture()
    key = result.take(lost(status={"clusterName": "us"}))
    assert await result.reconciler.reconcile(key) == NOW + 60
    result.clock.now += 60
    for _ in range(2):
        assert await result.reconciler.reconcile(key) is None
    assert result.told == [("LostJob", "Its Job was deleted on us; it never ends here", True)]


@pytest.mark.parametrize(
    "item",
    [lost(), lost(status={"clusterName": "us"}, deletionTimestamp=when())],
    ids=["on this cluster", "it is being deleted here too"],
)
async def test_any_other_job_that_is_gone_is_not_named(item: Json) -> None:
    result = fixture()
    key = result.take(item)
    result.clock.now += 60
    assert await result.reconciler.reconcile(key) is None
    assert result.told == []


async def test_a_copy_that_was_evicted_before_its_job_was_there_is_taken_back_and_offered_anew() -> None:
    result = fixture()
    key = result.take(workload(status={"nominatedClusterNames": ["us"]}))
    await result.reconciler.reconcile(key)
    result.workers["us"].take_workload(key, copy())
    again = await result.reconciler.reconcile(key)
    assert result.nominated() == ["us"]
    assert again == NOW + 60
    result.clock.now += 60
    await result.reconciler.reconcile(key)
    assert result.nominated() == ["eu"]
    assert "StuckCopy" in [reason for reason, _, _ in result.told]
    assert b'kueue_fleet_rescued_total{reason="StuckCopy"} 1.0' in result.metrics.text()


@pytest.mark.parametrize(
    "metadata", [{"labels": {}}, {"ownerReferences": [{"kind": "Job", "name": "j"}]}, {"deletionTimestamp": when()}]
)
async def test_a_copy_that_is_not_stuck_or_not_multikueues_stays(metadata: dict[str, Any]) -> None:
    result = fixture()
    key = result.take(workload(status={"nominatedClusterNames": ["us"]}))
    await result.reconciler.reconcile(key)
    result.workers["us"].take_workload(key, copy(**metadata))
    result.clock.now += 600
    await result.reconciler.reconcile(key)
    assert "us" in result.nominated()
    assert [reason for reason, _, _ in result.told if reason == "StuckCopy"] == []
