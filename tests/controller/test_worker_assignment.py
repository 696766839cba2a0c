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
    made = Fixture(dispatches=dispatches, **section)
    for worker in made.workers.values():
        watch = Watch(made.api, "/anything", lambda key, item: None)
        watch.connected = True
        watch.synced.set()
        worker.watches = [watch]
    return made


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
    made = fixture()
    await made.look(workload())
    assert assigned(made) == ""
    put(made, "us", waiting_copy())
    order: list[str] = []
    for name, api in {"manager": made.api, **made.apis}.items():
        apply = api.apply

        async def noted(path: str, body: Json, manager: str, name: str = name, apply: Any = apply) -> Json:
            order.append(name)
            return dict(await apply(path, body, manager))

        api.apply = noted  # type: ignore[method-assign]
    await made.reconciler.reconcile(KEY)
    assert order == ["manager", "us"]
    assert (assigned(made), check_on(made, "us")["state"]) == ("us", "Ready")
    assert b'kueue_fleet_assignments_total{cluster="us"} 1.0' in made.metrics.text()


async def test_both_writes_name_what_was_seen() -> None:
    made = fixture()
    await made.look(workload())
    put(made, "us", waiting_copy())
    version = made.manager.records[KEY].version
    seen = made.apis["us"].lists[WORKLOADS][KEY]["metadata"]["resourceVersion"]
    await made.reconciler.reconcile(KEY)
    _, on_manager, manager = made.api.applied[-1]
    assert (on_manager["metadata"]["resourceVersion"], manager) == (str(version), ASSIGNMENT_MANAGER)
    [(path, on_worker, manager)] = made.apis["us"].applied
    assert path.endswith("/namespaces/ns/workloads/train/status")
    assert manager == ASSIGNMENT_MANAGER
    assert on_worker["metadata"] == {"name": "train", "namespace": "ns", "uid": "uid-train", "resourceVersion": seen}
    assert [one["name"] for one in on_worker["status"]["admissionChecks"]] == [ASSIGNMENT_CHECK]


async def test_a_copy_that_changed_is_not_granted_anything_by_what_was_decided_before() -> None:
    made = fixture()
    await made.look(workload())
    put(made, "us", waiting_copy())
    made.apis["us"].put(WORKLOADS, waiting_copy(conditions=[]))
    with pytest.raises(ApiError, match="Conflict"):
        await made.reconciler.reconcile(KEY)
    assert check_on(made, "us")["state"] == "Pending"


async def test_it_is_not_written_twice_while_the_watch_is_behind() -> None:
    made = fixture()
    await made.look(workload())
    put(made, "us", waiting_copy())
    for _ in range(3):
        await made.reconciler.reconcile(KEY)
    assert len(made.apis["us"].applied) == 1


async def test_a_worker_that_is_lost_admits_nothing_and_another_one_has_the_job_at_once() -> None:
    made = fixture()
    await made.look(workload())
    assert made.nominated() == ["us"]
    put(made, "us", waiting_copy(ready=False))
    lose(made, "us")
    await made.reconciler.reconcile(KEY)
    assert made.nominated() == ["us", "eu"]
    # Alone, the lost worker gets as far as that; its copy has no assignment.
    made.apis["us"].put(WORKLOADS, waiting_copy())
    put(made, "eu", waiting_copy())
    await made.reconciler.reconcile(KEY)
    assert (assigned(made), check_on(made, "eu")["state"]) == ("eu", "Ready")
    made.connect("us")
    made.workers["us"].watches[0].connected = True
    put(made, "us", waiting_copy())
    await made.reconciler.reconcile(KEY)
    assert (assigned(made), check_on(made, "us")["state"]) == ("eu", "Pending")


async def test_a_worker_that_is_lost_after_the_assignment_keeps_the_job_until_it_is_back() -> None:
    made = fixture()
    await made.look(workload())
    put(made, "us", waiting_copy())
    await made.reconciler.reconcile(KEY)
    lose(made, "us")
    made.clock.now += 7200
    for _ in range(2):
        made.restart()
        await made.reconciler.reconcile(KEY)
    assert (made.nominated(), assigned(made)) == (["us"], "us")
    [report] = [one for one in made.status()["conditions"] if one["type"] == "kueue-fleet.dev/Dispatch"]
    assert (report["reason"], report["status"]) == ("WaitingForWorker", "True")
    assert report["message"].startswith("Waits: it may run on us, and no route to host")
    made.connect("us")
    made.workers["us"].watches[0].connected = True
    put(made, "us", admitted_copy(labels=COPY))
    await made.reconciler.reconcile(KEY)
    assert (made.nominated(), assigned(made)) == (["us"], "us")


async def test_a_new_leader_without_any_news_of_the_lost_worker_waits_too() -> None:
    made = fixture()
    made.take(workload(conditions=[condition("QuotaReserved"), condition(ASSIGNED_CONDITION, reason=US)]))
    made.forget_workers()
    made.restart()
    made.workers["us"].watches = [Watch(made.api, "/anything", lambda key, item: None)]
    await made.reconciler.reconcile(KEY)
    assert made.nominated() == ["us"]
    assert assigned(made) == "us"


US = "Assigned:us"


async def test_what_an_operator_calls_gone_is_not_waited_for() -> None:
    made = fixture()
    made.take(workload(conditions=[condition("QuotaReserved"), condition(ASSIGNED_CONDITION, reason=US)]))
    lose(made, "us")
    await made.reconciler.reconcile(KEY)
    assert (made.nominated(), assigned(made)) == (["us"], "us")
    gone = {"metadata": {"name": "system", "annotations": {"kueue-fleet.dev/gone-workers": "us"}}}
    made.manager.take_namespace("system", gone)
    await made.reconciler.reconcile(KEY)
    await made.reconciler.reconcile(KEY)
    assert (made.nominated(), assigned(made)) == (["us", "eu"], "")


async def test_of_an_assignment_that_cannot_be_read_nothing_is_decided() -> None:
    made = fixture()
    await made.look(workload(conditions=[condition("QuotaReserved"), condition(ASSIGNED_CONDITION)]))
    assert made.nominated() == []
    assert "it may run on ?" in dispatch_condition(made)["message"]


async def test_a_worker_that_answers_is_not_gone_whatever_an_operator_says() -> None:
    made = fixture()
    await made.look(workload())
    put(made, "us", admitted_copy(labels=COPY))
    made.manager.take_namespace(
        "system", {"metadata": {"name": "system", "annotations": {"kueue-fleet.dev/gone-workers": "us"}}}
    )
    await made.reconciler.reconcile(KEY)
    assert (made.nominated(), assigned(made)) == (["us"], "us")


async def test_an_assignment_without_a_copy_is_released_and_the_job_goes_on() -> None:
    made = fixture()
    await made.look(workload(conditions=[condition("QuotaReserved"), condition(ASSIGNED_CONDITION, reason=US)]))
    assert assigned(made) == ""
    [found] = [one for one in made.status()["conditions"] if one["type"] == ASSIGNED_CONDITION]
    assert (found["status"], found["reason"]) == ("False", "Released")
    assert found["message"] == "Assigned to no worker: released from us, there is no copy of it any more"


async def test_before_an_assignment_is_released_whatever_was_sent_to_the_copy_is_made_void() -> None:
    made = fixture()
    await made.look(workload())
    put(made, "us", waiting_copy())
    late = made.apis["us"].lists[WORKLOADS][KEY]["metadata"]["resourceVersion"]
    made.apis["us"].failures = [ApiError(0, "", "no answer")]
    with pytest.raises(ApiError):
        await made.reconciler.reconcile(KEY)
    put(made, "us", waiting_copy(conditions=[]))
    await made.reconciler.reconcile(KEY)
    assert assigned(made) == ""
    assert check_on(made, "us")["state"] == "Pending"
    assert made.apis["us"].lists[WORKLOADS][KEY]["metadata"]["resourceVersion"] != late


async def test_with_kueues_own_dispatchers_too_only_one_worker_may_admit_a_job() -> None:
    made = fixture(dispatches=False)
    await made.look(workload(status={"nominatedClusterNames": ["eu", "us"]}))
    put(made, "us", waiting_copy(conditions=[condition("QuotaReserved", -10)]))
    put(made, "eu", waiting_copy())
    await made.reconciler.reconcile(KEY)
    await made.reconciler.reconcile(KEY)
    assert assigned(made) == "us"
    assert (check_on(made, "us")["state"], check_on(made, "eu")["state"]) == ("Ready", "Pending")


async def test_what_kueue_gives_to_a_cluster_without_a_nomination_is_assigned_there() -> None:
    made = fixture()
    put(made, "eu", waiting_copy())
    await made.look(workload(status={"clusterName": "eu"}))
    assert (assigned(made), check_on(made, "eu")["state"], made.nominated()) == ("eu", "Ready", [])


async def test_where_kueue_admitted_a_job_is_remembered() -> None:
    made = fixture()
    admitted = [condition("QuotaReserved"), condition("Admitted")]
    await made.look(workload(conditions=admitted, checks={"multikueue": "Ready"}, status={"clusterName": "eu"}))
    assert assigned(made) == "eu"
    await made.reconciler.reconcile(KEY)
    assert len(made.api.applied) == 1


async def test_a_workload_of_the_worker_itself_needs_no_assignment() -> None:
    made = fixture()
    worker = made.workers["us"]
    told: list[str] = []
    worker.on_local = told.append
    local = waiting_copy()
    local["metadata"]["labels"] = {}
    put(made, "us", local)
    assert told == [KEY]
    await made.reconciler.assigner.let_in("us", KEY)
    assert check_on(made, "us")["state"] == "Ready"


@pytest.mark.parametrize("origin", ["multikueue", "another"])
async def test_a_copy_is_no_workload_of_the_worker_itself(origin: str) -> None:
    made = fixture()
    told: list[str] = []
    made.workers["us"].on_local = told.append
    copy = waiting_copy()
    copy["metadata"]["labels"] = {"kueue.x-k8s.io/multikueue-origin": origin}
    put(made, "us", copy)
    assert told == []
    await made.reconciler.assigner.let_in("us", KEY)
    assert made.apis["us"].applied == []


async def test_a_copy_of_another_manager_is_never_assigned() -> None:
    made = fixture()
    await made.look(workload())
    copy = waiting_copy()
    copy["metadata"]["labels"] = {"kueue.x-k8s.io/multikueue-origin": "another"}
    put(made, "us", copy)
    await made.reconciler.reconcile(KEY)
    assert made.apis["us"].applied == []


async def test_kueue_on_the_worker_is_told_that_the_check_is_answered() -> None:
    made = fixture()
    check = configured("AdmissionCheck", ASSIGNMENT_CHECK, {"controllerName": "kueue-fleet.dev/assignment"})
    told: list[int] = []
    made.workers["us"].on_check = lambda: told.append(1)
    path = "/apis/kueue.x-k8s.io/v1beta2/admissionchecks"
    made.workers["us"].take_configured("admissionchecks", ASSIGNMENT_CHECK, made.apis["us"].put(path, check))
    assert told == [1]
    await made.reconciler.assigner.activate("us")
    [(where, body, _)] = made.apis["us"].applied
    assert where == f"{path}/{ASSIGNMENT_CHECK}/status"
    assert body["metadata"]["resourceVersion"] == made.workers["us"]._check_version
    active = made.apis["us"].lists[path][ASSIGNMENT_CHECK]
    made.workers["us"].take_configured("admissionchecks", ASSIGNMENT_CHECK, active)
    await made.reconciler.assigner.activate("us")
    assert len(made.apis["us"].applied) == 1


async def test_a_queue_without_the_check_is_not_used() -> None:
    made = fixture()
    worker = made.workers["us"]
    queue = worker._manifests["clusterqueues", "gpu"]
    worker._manifests["clusterqueues", "gpu"] = {
        **queue,
        "spec": {key: value for key, value in queue["spec"].items() if key != "admissionChecksStrategy"},
    }
    worker.read_configuration()
    await made.look(workload())
    assert made.nominated() == ["eu"]
    [report] = [one for one in made.status()["conditions"] if one["type"] == "kueue-fleet.dev/Dispatch"]
    assert f"us: AdmissionCheckNotFound: its queue has no admission check {ASSIGNMENT_CHECK}" in report["message"]


async def test_nothing_is_decided_about_a_namespace_that_was_not_seen_yet() -> None:
    made = fixture()
    made.manager.take_namespace("ns", None)
    await made.look(workload())
    assert made.api.applied == []
    label = {"kueue-fleet.dev/regions": "europe-west4"}
    made.touched.clear()
    made.manager.take_namespace("ns", {"metadata": {"name": "ns", "labels": label}})
    assert made.touched == [None]
    await made.reconciler.reconcile(KEY)
    assert made.nominated() == ["eu"]


async def test_nothing_is_decided_while_any_watch_of_the_manager_is_broken() -> None:
    made = fixture()
    watches = made.manager.watch(made.api)
    for watch in watches:
        watch.connected = True
        watch.synced.set()
    watches[0].connected = False
    await made.look(workload())
    assert made.api.applied == []
    watches[0].connected = True
    await made.reconciler.reconcile(KEY)
    assert made.nominated() == ["us"]


GROUP = "leaderworkerset.x-k8s.io/v1"


def component(index: int, **status: Any) -> Json:
    """One group of a LeaderWorkerSet."""
    made = workload(f"lws-{index}", 20, annotations={"kueue.x-k8s.io/job-owner-gvk": f"{GROUP}, Kind=LeaderWorkerSet"})
    owner = {"apiVersion": GROUP, "kind": "LeaderWorkerSet", "name": "lws", "uid": "lws-uid"}
    made["metadata"]["ownerReferences"] = [owner]
    made["status"] |= status
    return made


async def test_where_kueue_nominates_by_itself_it_is_left_to_kueue() -> None:
    made = fixture()
    made.take(component(0, clusterName="us"))
    await made.look(component(1, nominatedClusterNames=["us"]))
    assert made.api.applied == []
    made.manager.take_workload("ns/lws-0", None)
    await made.reconciler.reconcile("ns/lws-1")
    assert made.nominated("lws-1") == []


async def test_one_worker_that_cannot_be_read_leaves_only_that_worker_out() -> None:
    made = fixture()
    worker = made.workers["us"]
    for index in range(1500):
        worker._manifests["cohorts", f"c{index}"] = configured("Cohort", f"c{index}", {"parentName": f"c{index + 1}"})
    queue = worker._manifests["clusterqueues", "gpu"]
    worker._manifests["clusterqueues", "gpu"] = {**queue, "spec": {**queue["spec"], "cohortName": "c0"}}
    worker.read_configuration()
    await made.look(workload())
    assert made.nominated() == ["eu"]
    [report] = [one for one in made.status()["conditions"] if one["type"] == "kueue-fleet.dev/Dispatch"]
    assert "us: Unknown: the controller cannot use what is configured there: RecursionError" in report["message"]
    assert when()
