from __future__ import annotations

from typing import Any

import pytest
from tests.controller.build import (
    COPY,
    WORKLOADS,
    Fixture,
    admitted_copy,
    condition,
    configured,
    dispatch_condition,
    waiting_copy,
    when,
    workload,
)

from kueue_fleet.controller.patches import ASSIGNMENT_MANAGER
from kueue_fleet.dispatch.assignment import ASSIGNED_CONDITION
from kueue_fleet.kube.answers import ApiError, Json
from kueue_fleet.kube.watching import Watch
from kueue_fleet.settings.dispatch import ASSIGNMENT_CHECK

KEY = "ns/train"


def fixture(*, dispatches: bool = True, **section: Any) -> Fixture:
    """Every worker is followed."""
    result = Fixture(dispatches=dispatches, **section)
    for worker in result.workers.values():
        watch = Watch(result.api, "/anything", lambda key, item: None)
        watch.connected = True
        watch.synced.set()
        worker.watches = [watch]
    return result


def lose(made: Fixture, name: str) -> None:
    """Neither Kueue nor the controller can reach the worker."""
    made.connect(name, active=False, message="no route to host")
    made.workers[name].watches[0].connected = False


def put(made: Fixture, name: str, item: Json) -> None:
    """The worker has this Workload, and the controller sees it."""
    made.workers[name].take_workload(KEY, made.apis[name].put(WORKLOADS, item))


def check_on(made: Fixture, name: str) -> Json:
    checks = made.apis[name].lists[WORKLOADS][KEY]["status"]["admissionChecks"]
    return dict(next(one for one in checks if one["name"] == ASSIGNMENT_CHECK))


def assigned(made: Fixture) -> str:
    return made.manager.records[KEY].assigned


async def test_the_assignment_is_on_the_manager_before_the_copy_may_be_admitted() -> None:
    result = fixture()
    await result.look(workload())
    assert assigned(result) == ""
    put(result, "us", waiting_copy())
    order: list[str] = []
    for name, api in {"manager": result.api, **result.apis}.items():
        apply = api.apply

        async def noted(path: str, body: Json, manager: str, name: str = name, apply: Any = apply) -> Json:
            order.append(name)
            return dict(await apply(path, body, manager))

        api.apply = noted  # type: ignore[method-assign]
    await result.reconciler.reconcile(KEY)
    assert order == ["manager", "us"]
    assert (assigned(result), check_on(result, "us")["state"]) == ("us", "Ready")
    assert b'kueue_fleet_assignments_total{cluster="us"} 1.0' in result.metrics.text()


async def test_both_writes_name_what_was_seen() -> None:
    result = fixture()
    await result.look(workload())
    put(result, "us", waiting_copy())
    version = result.manager.records[KEY].version
    seen = result.apis["us"].lists[WORKLOADS][KEY]["metadata"]["resourceVersion"]
    await result.reconciler.reconcile(KEY)
    _, on_manager, manager = result.api.applied[-1]
    assert (on_manager["metadata"]["resourceVersion"], manager) == (str(version), ASSIGNMENT_MANAGER)
    [(path, on_worker, manager)] = result.apis["us"].applied
    assert path.endswith("/namespaces/ns/workloads/train/status")
    assert manager == ASSIGNMENT_MANAGER
    assert on_worker["metadata"] == {"name": "train", "namespace": "ns", "uid": "uid-train", "resourceVersion": seen}
    assert [one["name"] for one in on_worker["status"]["admissionChecks"]] == [ASSIGNMENT_CHECK]


async def test_a_copy_that_changed_is_not_granted_anything_by_what_was_decided_before() -> None:
    result = fixture()
    await result.look(workload())
    put(result, "us", waiting_copy())
    result.apis["us"].put(WORKLOADS, waiting_copy(conditions=[]))
    with pytest.raises(ApiError, match="Conflict"):
        await result.reconciler.reconcile(KEY)
    assert check_on(result, "us")["state"] == "Pending"


async def test_it_is_not_written_twice_while_the_watch_is_behind() -> None:
    result = fixture()
    await result.look(workload())
    put(result, "us", waiting_copy())
    for _ in range(3):
        await result.reconciler.reconcile(KEY)
    assert len(result.apis["us"].applied) == 1


async def test_a_worker_that_is_lost_admits_nothing_and_another_one_has_the_job_at_once() -> None:
    result = fixture()
    await result.look(workload())
    assert result.nominated() == ["us"]
    put(result, "us", waiting_copy(ready=False))
    lose(result, "us")
    await result.reconciler.reconcile(KEY)
    assert result.nominated() == ["us", "eu"]
    # Alone, the lost worker gets as far as that; its copy has no assignment.
    result.apis["us"].put(WORKLOADS, waiting_copy())
    put(result, "eu", waiting_copy())
    await result.reconciler.reconcile(KEY)
    assert (assigned(result), check_on(result, "eu")["state"]) == ("eu", "Ready")
    result.connect("us")
    result.workers["us"].watches[0].connected = True
    put(result, "us", waiting_copy())
    await result.reconciler.reconcile(KEY)
    assert (assigned(result), check_on(result, "us")["state"]) == ("eu", "Pending")


async def test_a_worker_that_is_lost_after_the_assignment_keeps_the_job_until_it_is_back() -> None:
    result = fixture()
    await result.look(workload())
    put(result, "us", waiting_copy())
    await result.reconciler.reconcile(KEY)
    lose(result, "us")
    result.clock.now += 7200
    for _ in range(2):
        result.restart()
        await result.reconciler.reconcile(KEY)
    assert (result.nominated(), assigned(result)) == (["us"], "us")
    [report] = [one for one in result.status()["conditions"] if one["type"] == "kueue-fleet.dev/Dispatch"]
    assert (report["reason"], report["status"]) == ("WaitingForWorker", "True")
    assert report["message"].startswith("Waits: it may run on us, and no route to host")
    result.connect("us")
    result.workers["us"].watches[0].connected = True
    put(result, "us", admitted_copy(labels=COPY))
    await result.reconciler.reconcile(KEY)
    assert (result.nominated(), assigned(result)) == (["us"], "us")


async def test_a_new_leader_without_any_news_of_the_lost_worker_waits_too() -> None:
    result = fixture()
    result.take(workload(conditions=[condition("QuotaReserved"), condition(ASSIGNED_CONDITION, reason=US)]))
    result.forget_workers()
    result.restart()
    result.workers["us"].watches = [Watch(result.api, "/anything", lambda key, item: None)]
    await result.reconciler.reconcile(KEY)
    assert result.nominated() == ["us"]
    assert assigned(result) == "us"


US = "Assigned:us"


async def test_what_an_operator_calls_gone_is_not_waited_for() -> None:
    result = fixture()
    result.take(workload(conditions=[condition("QuotaReserved"), condition(ASSIGNED_CONDITION, reason=US)]))
    lose(result, "us")
    await result.reconciler.reconcile(KEY)
    assert (result.nominated(), assigned(result)) == (["us"], "us")
    gone = {"metadata": {"name": "system", "annotations": {"kueue-fleet.dev/gone-workers": "us"}}}
    result.manager.take_namespace("system", gone)
    await result.reconciler.reconcile(KEY)
    await result.reconciler.reconcile(KEY)
    assert (result.nominated(), assigned(result)) == (["us", "eu"], "")


async def test_of_an_assignment_that_cannot_be_read_nothing_is_decided() -> None:
    result = fixture()
    await result.look(workload(conditions=[condition("QuotaReserved"), condition(ASSIGNED_CONDITION)]))
    assert result.nominated() == []
    assert "it may run on ?" in dispatch_condition(result)["message"]


async def test_a_worker_that_answers_is_not_gone_whatever_an_operator_says() -> None:
    result = fixture()
    await result.look(workload())
    put(result, "us", admitted_copy(labels=COPY))
    result.manager.take_namespace(
        "system", {"metadata": {"name": "system", "annotations": {"kueue-fleet.dev/gone-workers": "us"}}}
    )
    await result.reconciler.reconcile(KEY)
    assert (result.nominated(), assigned(result)) == (["us"], "us")


async def test_an_assignment_without_a_copy_is_released_and_the_job_goes_on() -> None:
    result = fixture()
    await result.look(workload(conditions=[condition("QuotaReserved"), condition(ASSIGNED_CONDITION, reason=US)]))
    assert assigned(result) == ""
    [results] = [one for one in result.status()["conditions"] if one["type"] == ASSIGNED_CONDITION]
    assert (results["status"], results["reason"]) == ("False", "Released")
    assert results["message"] == "Assigned to no worker: released from us, there is no copy of it any more"


async def test_before_an_assignment_is_released_whatever_was_sent_to_the_copy_is_made_void() -> None:
    result = fixture()
    await result.look(workload())
    put(result, "us", waiting_copy())
    late = result.apis["us"].lists[WORKLOADS][KEY]["metadata"]["resourceVersion"]
    result.apis["us"].failures = [ApiError(0, "", "no answer")]
    with pytest.raises(ApiError):
        await result.reconciler.reconcile(KEY)
    put(result, "us", waiting_copy(conditions=[]))
    await result.reconciler.reconcile(KEY)
    assert assigned(result) == ""
    assert check_on(result, "us")["state"] == "Pending"
    assert result.apis["us"].lists[WORKLOADS][KEY]["metadata"]["resourceVersion"] != late


async def test_with_kueues_own_dispatchers_too_only_one_worker_may_admit_a_job() -> None:
    result = fixture(dispatches=False)
    await result.look(workload(status={"nominatedClusterNames": ["eu", "us"]}))
    put(result, "us", waiting_copy(conditions=[condition("QuotaReserved", -10)]))
    put(result, "eu", waiting_copy())
    await result.reconciler.reconcile(KEY)
    await result.reconciler.reconcile(KEY)
    assert assigned(result) == "us"
    assert (check_on(result, "us")["state"], check_on(result, "eu")["state"]) == ("Ready", "Pending")


async def test_what_kueue_gives_to_a_cluster_without_a_nomination_is_assigned_there() -> None:
    result = fixture()
    put(result, "eu", waiting_copy())
    await result.look(workload(status={"clusterName": "eu"}))
    assert (assigned(result), check_on(result, "eu")["state"], result.nominated()) == ("eu", "Ready", [])


async def test_where_kueue_admitted_a_job_is_remembered() -> None:
    result = fixture()
    admitted = [condition("QuotaReserved"), condition("Admitted")]
    await result.look(workload(conditions=admitted, checks={"multikueue": "Ready"}, status={"clusterName": "eu"}))
    assert assigned(result) == "eu"
    await result.reconciler.reconcile(KEY)
    assert len(result.api.applied) == 1


async def test_a_workload_of_the_worker_itself_needs_no_assignment() -> None:
    result = fixture()
    worker = result.workers["us"]
    told: list[str] = []
    worker.on_local = told.append
    local = waiting_copy()
    local["metadata"]["labels"] = {}
    put(result, "us", local)
    assert told == [KEY]
    await result.reconciler.assigner.let_in("us", KEY)
    assert check_on(result, "us")["state"] == "Ready"


@pytest.mark.parametrize("origin", ["multikueue", "another"])
async def test_a_copy_is_no_workload_of_the_worker_itself(origin: str) -> None:
    result = fixture()
    told: list[str] = []
    result.workers["us"].on_local = told.append
    copy = waiting_copy()
    copy["metadata"]["labels"] = {"kueue.x-k8s.io/multikueue-origin": origin}
    put(result, "us", copy)
    assert told == []
    await result.reconciler.assigner.let_in("us", KEY)
    assert result.apis["us"].applied == []


async def test_a_copy_of_another_manager_is_never_assigned() -> None:
    result = fixture()
    await result.look(workload())
    copy = waiting_copy()
    copy["metadata"]["labels"] = {"kueue.x-k8s.io/multikueue-origin": "another"}
    put(result, "us", copy)
    await result.reconciler.reconcile(KEY)
    assert result.apis["us"].applied == []


async def test_kueue_on_the_worker_is_told_that_the_check_is_answered() -> None:
    result = fixture()
    check = configured("AdmissionCheck", ASSIGNMENT_CHECK, {"controllerName": "kueue-fleet.dev/assignment"})
    told: list[int] = []
    result.workers["us"].on_check = lambda: told.append(1)
    path = "/apis/kueue.x-k8s.io/v1beta2/admissionchecks"
    result.workers["us"].take_configured("admissionchecks", ASSIGNMENT_CHECK, result.apis["us"].put(path, check))
    assert told == [1]
    await result.reconciler.assigner.activate("us")
    [(where, body, _)] = result.apis["us"].applied
    assert where == f"{path}/{ASSIGNMENT_CHECK}/status"
    assert body["metadata"]["resourceVersion"] == result.workers["us"]._check_version
    active = result.apis["us"].lists[path][ASSIGNMENT_CHECK]
    result.workers["us"].take_configured("admissionchecks", ASSIGNMENT_CHECK, active)
    await result.reconciler.assigner.activate("us")
    assert len(result.apis["us"].applied) == 1


async def test_a_queue_without_the_check_is_not_used() -> None:
    result = fixture()
    worker = result.workers["us"]
    queue = worker._manifests["clusterqueues", "gpu"]
    worker._manifests["clusterqueues", "gpu"] = {
        **queue,
        "spec": {key: value for key, value in queue["spec"].items() if key != "admissionChecksStrategy"},
    }
    worker.read_configuration()
    await result.look(workload())
    assert result.nominated() == ["eu"]
    [report] = [one for one in result.status()["conditions"] if one["type"] == "kueue-fleet.dev/Dispatch"]
    assert f"us: AdmissionCheckNotFound: its queue has no admission check {ASSIGNMENT_CHECK}" in report["message"]


async def test_nothing_is_decided_about_a_namespace_that_was_not_seen_yet() -> None:
    result = fixture()
    result.manager.take_namespace("ns", None)
    await result.look(workload())
    assert result.api.applied == []
    label = {"kueue-fleet.dev/regions": "europe-west4"}
    result.touched.clear()
    result.manager.take_namespace("ns", {"metadata": {"name": "ns", "labels": label}})
    assert result.touched == [None]
    await result.reconciler.reconcile(KEY)
    assert result.nominated() == ["eu"]


async def test_nothing_is_decided_while_any_watch_of_the_manager_is_broken() -> None:
    result = fixture()
    watches = result.manager.watch(result.api)
    for watch in watches:
        watch.connected = True
        watch.synced.set()
    watches[0].connected = False
    await result.look(workload())
    assert result.api.applied == []
    watches[0].connected = True
    await result.reconciler.reconcile(KEY)
    assert result.nominated() == ["us"]


GROUP = "leaderworkerset.x-k8s.io/v1"


def component(index: int, **status: Any) -> Json:
    """One group of a LeaderWorkerSet."""
    result = workload(
        f"lws-{index}", 20, annotations={"kueue.x-k8s.io/job-owner-gvk": f"{GROUP}, Kind=LeaderWorkerSet"}
    )
    owner = {"apiVersion": GROUP, "kind": "LeaderWorkerSet", "name": "lws", "uid": "lws-uid"}
    result["metadata"]["ownerReferences"] = [owner]
    result["status"] |= status
    return result


async def test_where_kueue_nominates_by_itself_it_is_left_to_kueue() -> None:
    result = fixture()
    result.take(component(0, clusterName="us"))
    await result.look(component(1, nominatedClusterNames=["us"]))
    assert result.api.applied == []
    result.manager.take_workload("ns/lws-0", None)
    await result.reconciler.reconcile("ns/lws-1")
    assert result.nominated("lws-1") == []


async def test_one_worker_that_cannot_be_read_leaves_only_that_worker_out() -> None:
    result = fixture()
    worker = result.workers["us"]
    for index in range(1500):
        worker._manifests["cohorts", f"c{index}"] = configured("Cohort", f"c{index}", {"parentName": f"c{index + 1}"})
    queue = worker._manifests["clusterqueues", "gpu"]
    worker._manifests["clusterqueues", "gpu"] = {**queue, "spec": {**queue["spec"], "cohortName": "c0"}}
    worker.read_configuration()
    await result.look(workload())
    assert result.nominated() == ["eu"]
    [report] = [one for one in result.status()["conditions"] if one["type"] == "kueue-fleet.dev/Dispatch"]
    assert "us: Unknown: the controller cannot use what is configured there: RecursionError" in report["message"]
    assert when()
