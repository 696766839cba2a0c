from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from tests.controller.build import (
    NOW,
    WORKLOADS,
    Fixture,
    admitted_copy,
    condition,
    configured,
    waiting_copy,
    when,
    workload,
)

from kueue_fleet.controller.patches import CHECK_MANAGER, DISPATCH_MANAGER, REJECT_MANAGER
from kueue_fleet.dispatch import GivenUp, parse_report
from kueue_fleet.dispatch.report import DISPATCH_CONDITION
from kueue_fleet.dispatch.watchdog import GIVEN_UP_CONDITION
from kueue_fleet.kube.answers import ApiError

CHECK = "kueue-fleet.dev/admission-check"
BOTH = {"multikueue": "Pending", "fleet": "Pending"}
READY = {"multikueue": "Pending", "fleet": "Ready"}
RUN = {"provreq.kueue.x-k8s.io/maxRunDurationSeconds": "60"}


def gated(dispatch: dict[str, Any] | None = None, **rules: Any) -> Fixture:
    made = Fixture(checks=[{"name": "fleet", **rules}], dispatch=dispatch or {})
    made.take_check("fleet", CHECK)
    return made


def dispatch_condition(fixture: Fixture) -> dict[str, Any]:
    [found] = [one for one in fixture.status()["conditions"] if one["type"] == DISPATCH_CONDITION]
    return dict(found)


async def test_the_best_cluster_is_nominated_with_the_reason_for_users() -> None:
    fixture = Fixture()
    again = await fixture.look(workload())
    assert fixture.nominated() == ["us"]
    assert again == NOW + 300
    found = dispatch_condition(fixture)
    assert (found["status"], found["reason"], found["lastTransitionTime"]) == ("True", "Nominated", when())
    assert parse_report(found["message"]).nominated == ("us",)
    assert fixture.told == [("Nominated", "Nominated us of 2 clusters", False)]
    assert b'kueue_fleet_nominations_total{cluster="us"} 1.0' in fixture.metrics.text()


async def test_only_our_own_fields_are_written_under_our_own_name_at_the_version_that_was_seen() -> None:
    fixture = Fixture()
    await fixture.look(workload())
    [(path, body, manager)] = fixture.api.applied
    assert path.endswith("/namespaces/ns/workloads/train/status")
    assert manager == DISPATCH_MANAGER
    assert set(body["status"]) == {"nominatedClusterNames", "conditions"}
    assert set(body["metadata"]) == {"name", "namespace", "resourceVersion"}


async def test_looked_at_again_nothing_is_written() -> None:
    fixture = Fixture()
    await fixture.look(workload())
    await fixture.reconciler.reconcile("ns/train")
    fixture.restart()
    await fixture.reconciler.reconcile("ns/train")
    assert len(fixture.api.applied) == 1


@pytest.mark.parametrize(
    "changes",
    [
        {"conditions": []},
        {"conditions": [condition("QuotaReserved"), condition("Evicted")]},
        {"conditions": [condition("QuotaReserved"), condition("Finished")]},
        {"conditions": [condition("QuotaReserved"), condition("Admitted")]},
        {"deletionTimestamp": when()},
        {"checks": {"multikueue": "Ready"}},
        {"checks": {"multikueue": "Retry"}},
        {"checks": {"multikueue": "Rejected"}},
        {"checks": {"multikueue": "Pending", "other": "Pending"}},
        {"checks": {"other": "Pending"}},
        {"checks": {}},
        {"status": {"clusterName": "eu"}},
    ],
)
async def test_when_kueue_would_not_nominate_neither_do_we(changes: dict[str, Any]) -> None:
    fixture = Fixture()
    await fixture.look(workload(**changes))
    assert fixture.api.applied == []


async def test_a_fleet_with_another_dispatcher_is_left_to_it() -> None:
    fixture = Fixture(dispatches=False)
    await fixture.look(workload())
    assert fixture.api.applied == []


async def test_a_second_workload_does_not_count_the_gpus_of_the_first_while_it_is_on_its_way() -> None:
    fixture = Fixture()
    await fixture.look(workload("one", 6))
    await fixture.look(workload("two", 6))
    await fixture.look(workload("three", 2))
    assert [fixture.nominated(name) for name in ("one", "two", "three")] == [["us"], ["eu"], ["us"]]


async def test_quota_is_kept_before_the_answer_of_the_server_comes() -> None:
    fixture = Fixture()
    fixture.api.failures = [ApiError(0, "", "answer lost")]
    with pytest.raises(ApiError):
        await fixture.look(workload("one", 6))
    await fixture.look(workload("two", 6))
    assert fixture.nominated("two") == ["eu"]


async def test_a_conflict_is_decided_anew_on_what_is_there_now() -> None:
    fixture = Fixture()
    key = fixture.take(workload())
    fixture.api.put(
        "/apis/kueue.x-k8s.io/v1beta2/workloads", workload(labels={"kueue-fleet.dev/regions": "europe-west4"})
    )
    with pytest.raises(ApiError) as refused:
        await fixture.reconciler.reconcile(key)
    assert refused.value.is_conflict
    fixture.manager.take_workload(key, fixture.api.lists["/apis/kueue.x-k8s.io/v1beta2/workloads"][key])
    await fixture.reconciler.reconcile(key)
    assert fixture.nominated() == ["eu"]


async def test_old_news_does_not_undo_what_was_written() -> None:
    fixture = Fixture()
    key = fixture.take(workload())
    old = fixture.api.lists["/apis/kueue.x-k8s.io/v1beta2/workloads"][key]
    await fixture.reconciler.reconcile(key)
    fixture.manager.take_workload(key, old)
    await fixture.reconciler.reconcile(key)
    assert len(fixture.api.applied) == 1


@pytest.mark.parametrize(
    ("namespace_label", "label", "nominated"),
    [
        (None, "europe-west4", ["eu"]),
        ("europe-west4", None, ["eu"]),
        ("europe-west4", "us-east4", []),
        ("eu", None, ["eu"]),
        (None, "nonsense", []),
        (None, "", []),
    ],
)
async def test_residency(namespace_label: str | None, label: str | None, nominated: list[str]) -> None:
    fixture = Fixture(regionGroups={"eu": ["europe-west4", "europe-west1"]})
    labels = {} if namespace_label is None else {"kueue-fleet.dev/regions": namespace_label}
    fixture.manager.take_namespace("ns", {"metadata": {"name": "ns", "labels": labels}})
    await fixture.look(workload(labels={} if label is None else {"kueue-fleet.dev/regions": label}))
    assert fixture.nominated() == nominated


async def test_a_namespace_that_is_bound_later_takes_nominations_back() -> None:
    fixture = Fixture()
    await fixture.look(workload())
    assert fixture.nominated() == ["us"]
    fixture.touched.clear()
    fixture.manager.take_namespace(
        "ns", {"metadata": {"name": "ns", "labels": {"kueue-fleet.dev/regions": "europe-west4"}}}
    )
    assert fixture.touched == [None]
    await fixture.reconciler.reconcile("ns/train")
    assert fixture.nominated() == ["eu"]


async def test_a_worker_that_kueue_is_not_connected_to_is_not_nominated() -> None:
    fixture = Fixture()
    fixture.connect("us", active=False, message="no route to host")
    await fixture.look(workload())
    assert fixture.nominated() == ["eu"]
    assert "us: Disconnected: no route to host" in dispatch_condition(fixture)["message"]


async def test_a_worker_that_we_cannot_read_is_not_nominated() -> None:
    fixture = Fixture()
    fixture.workers["us"].quota = None
    await fixture.look(workload())
    assert fixture.nominated() == ["eu"]


async def test_a_workload_that_the_core_does_not_model_is_still_dispatched_and_says_so() -> None:
    fixture = Fixture()
    await fixture.look(workload(annotations={"kueue.x-k8s.io/elastic-job": "true"}))
    assert fixture.nominated() == ["eu"]
    assert "its quota is not known, Workload ns/train: elastic jobs" in dispatch_condition(fixture)["message"]


async def test_a_worker_whose_queues_cannot_be_read_says_what_is_wrong_with_them() -> None:
    fixture = Fixture()
    worker = fixture.workers["us"]
    worker._manifests["clusterqueues", "gpu"] = configured("ClusterQueue", "gpu", {"resourceGroups": "none"})
    worker.read_configuration()
    await fixture.look(workload())
    why = "the controller cannot use what is configured there: ClusterQueue gpu.spec.resourceGroups"
    assert f"us: Unknown: {why}" in dispatch_condition(fixture)["message"]


async def test_it_widens_after_the_time_counted_from_the_condition() -> None:
    fixture = Fixture()
    await fixture.look(workload())
    fixture.clock.now += 299
    await fixture.reconciler.reconcile("ns/train")
    assert fixture.nominated() == ["us"]
    fixture.clock.now += 1
    fixture.restart()
    await fixture.reconciler.reconcile("ns/train")
    assert fixture.nominated() == ["us", "eu"]
    assert dispatch_condition(fixture)["lastTransitionTime"] == when()


async def test_kueue_is_asked_again_for_a_copy_until_the_worker_has_it() -> None:
    fixture = Fixture()
    fixture.manager.take_config("multikueue", configured("MultiKueueConfig", "multikueue", {"clusters": ["us"]}))
    assert await fixture.look(workload()) == NOW + 259200
    assert await fixture.reconciler.reconcile("ns/train") == NOW + 30
    fixture.clock.now += 30
    assert await fixture.reconciler.reconcile("ns/train") == NOW + 60
    found = dispatch_condition(fixture)
    assert "asked again" in found["message"]
    assert parse_report(found["message"]).nominated == ("us",)
    assert found["lastTransitionTime"] == when()
    assert [reason for reason, _, _ in fixture.told] == ["Nominated"], "one event is enough"
    fixture.workers["us"].take_workload("ns/train", waiting_copy(ready=False))
    fixture.clock.now += 30
    await fixture.reconciler.reconcile("ns/train")
    assert dispatch_condition(fixture) == found


async def test_it_gives_up_and_starts_over_where_no_check_of_ours_gives_the_quota_back() -> None:
    fixture = Fixture(dispatch={"giveUpAfter": "1h"})
    await fixture.look(workload())
    fixture.clock.now += 3600
    await fixture.reconciler.reconcile("ns/train")
    assert fixture.nominated() == []
    assert dispatch_condition(fixture)["reason"] == "DeadlineExceeded"
    fixture.clock.now += 299
    assert await fixture.reconciler.reconcile("ns/train") == fixture.clock.now + 1
    fixture.clock.now += 1
    await fixture.reconciler.reconcile("ns/train")
    assert fixture.nominated() == ["us"]
    assert dispatch_condition(fixture)["reason"] == "Nominated"


async def test_with_a_check_of_ours_giving_up_gives_the_quota_back() -> None:
    fixture = gated(dispatch={"giveUpAfter": "1h"})
    await fixture.look(workload(checks=READY))
    fixture.clock.now += 3600
    await fixture.reconciler.reconcile("ns/train")
    await fixture.reconciler.reconcile("ns/train")
    found = fixture.check("fleet")
    assert (found["state"], found["requeueAfterSeconds"]) == ("Retry", 300)
    assert found["message"] == "Not admitted by us within 3600 s"


async def test_after_the_eviction_the_old_deadline_means_nothing() -> None:
    fixture = gated()
    old = condition(DISPATCH_CONDITION, 0, status=False, reason="DeadlineExceeded", message="Not admitted")
    item = workload(checks=BOTH, conditions=[condition("QuotaReserved", 400), old])
    fixture.clock.now += 401
    await fixture.look(item)
    assert fixture.check("fleet")["state"] == "Ready"
    assert fixture.nominated() == ["us"]


async def test_what_kueue_cleared_at_an_eviction_is_no_nomination_of_now() -> None:
    fixture = Fixture()
    old = condition(DISPATCH_CONDITION, 0, reason="Nominated", message="Nominated us of 2 clusters")
    await fixture.look(workload(conditions=[condition("QuotaReserved", 0), old]))
    assert fixture.nominated() == ["us"]


async def test_never_retry_or_anything_else_while_evicted() -> None:
    fixture = gated(runDuration={})
    evicted = [condition("QuotaReserved"), condition("Evicted")]
    gave_up = condition(DISPATCH_CONDITION, 10, status=False, reason="DeadlineExceeded")
    fixture.clock.now += 7200
    await fixture.look(workload(checks=READY, conditions=[*evicted, gave_up]))
    await fixture.look(workload("other", checks=BOTH, conditions=evicted))
    assert fixture.api.applied == []


async def test_a_check_that_can_never_pass_rejects() -> None:
    fixture = gated(runDuration={})
    await fixture.look(workload(checks=BOTH))
    assert fixture.check("fleet")["state"] == "Rejected"
    assert fixture.nominated() == []
    assert fixture.told[0][0] == "CheckRejected"
    [(_, body, manager)] = fixture.api.applied
    assert manager == CHECK_MANAGER
    assert [one["name"] for one in body["status"]["admissionChecks"]] == ["fleet"]


async def test_a_check_that_passes_lets_the_workload_be_dispatched_at_once() -> None:
    fixture = gated(runDuration={})
    await fixture.look(workload(checks=BOTH, annotations=RUN))
    assert fixture.check("fleet")["state"] == "Ready"
    assert fixture.nominated() == ["us"]


async def test_a_check_of_somebody_else_is_not_answered() -> None:
    fixture = Fixture(checks=[{"name": "fleet"}])
    fixture.take_check("fleet", "example.com/other")
    await fixture.look(workload(checks=BOTH))
    assert fixture.api.applied == []


async def test_a_window_that_opens_later() -> None:
    window = {"name": "w", "start": when(600), "duration": "1h"}
    fixture = gated(calendar=[window])
    again = await fixture.look(workload(checks=BOTH))
    assert again == NOW + 600
    assert fixture.check("fleet")["message"] == f"Waits for window w, which opens at {when(600)}"
    await fixture.reconciler.reconcile("ns/train")
    assert len(fixture.api.applied) == 1
    fixture.clock.now += 600
    await fixture.reconciler.reconcile("ns/train")
    assert fixture.check("fleet")["state"] == "Ready"
    assert fixture.nominated() == ["us"]


async def test_a_window_that_closes_before_the_admission_sends_the_workload_back_to_wait() -> None:
    windows = [
        {"name": "first", "start": when(-600), "duration": "1h"},
        {"name": "second", "start": when(7200), "duration": "1h"},
    ]
    fixture = gated(calendar=windows)
    await fixture.look(workload(checks=BOTH))
    assert fixture.check("fleet")["state"] == "Ready"
    fixture.clock.now += 3000
    await fixture.reconciler.reconcile("ns/train")
    found = fixture.check("fleet")
    assert (found["state"], found["requeueAfterSeconds"]) == ("Retry", 4200)


@pytest.mark.parametrize("clusters", [None, [], ["us", "new"]])
async def test_nobody_is_rejected_while_the_workers_of_the_queue_are_not_known(clusters: list[str] | None) -> None:
    fixture = gated()
    known = configured("MultiKueueConfig", "multikueue", {"clusters": ["eu", "us"]})
    changed = None if clusters is None else configured("MultiKueueConfig", "multikueue", {"clusters": clusters})
    fixture.manager.take_config("multikueue", changed)
    await fixture.look(workload(checks=BOTH, labels={"kueue-fleet.dev/regions": "europe-west4"}))
    found = fixture.check("fleet")
    assert found["state"] == "Pending"
    assert found["message"].endswith("waits until all workers of its queue are known")
    fixture.manager.take_config("multikueue", known)
    await fixture.reconciler.reconcile("ns/train")
    assert fixture.check("fleet")["state"] == "Ready"


async def test_a_retry_keeps_its_time_when_another_check_of_ours_changes() -> None:
    window = {"name": "w", "start": when(600), "duration": "1h"}
    fixture = Fixture(checks=[{"name": "fleet"}, {"name": "later", "calendar": [window]}])
    for name in ("fleet", "later"):
        fixture.take_check(name, CHECK)
    item = workload(checks={"multikueue": "Pending", "later": "Pending"})
    retry = {"name": "fleet", "state": "Retry", "message": "m", "lastTransitionTime": when(-60)}
    item["status"]["admissionChecks"].append({**retry, "requeueAfterSeconds": 4200})
    await fixture.look(item)
    [(_, body, _)] = fixture.api.applied
    assert {one["name"] for one in body["status"]["admissionChecks"]} == {"fleet", "later"}
    assert {**retry, "requeueAfterSeconds": 4200} in body["status"]["admissionChecks"]


async def test_who_was_let_in_is_not_sent_back_while_the_workers_are_not_known() -> None:
    fixture = gated()
    bound = {"kueue-fleet.dev/regions": "europe-west4"}
    await fixture.look(workload(checks=READY, labels=bound))
    fixture.manager.take_config("multikueue", None)
    await fixture.reconciler.reconcile("ns/train")
    assert fixture.check("fleet")["state"] == "Ready"


async def test_who_may_be_anywhere_passes_whatever_the_workers_are() -> None:
    fixture = gated()
    fixture.manager.take_config("multikueue", None)
    await fixture.look(workload(checks=BOTH))
    assert fixture.check("fleet")["state"] == "Ready"


async def test_no_worker_where_the_data_may_be_rejects() -> None:
    fixture = gated()
    await fixture.look(workload(checks=BOTH, labels={"kueue-fleet.dev/regions": "asia-east1"}))
    assert fixture.check("fleet")["state"] == "Rejected"


def provisioning(at: float = 0.0) -> dict[str, Any]:
    reference = {"kind": "Workload", "name": "train", "uid": "uid-train"}
    metadata = {"name": "train-dws-1", "namespace": "ns", "ownerReferences": [reference]}
    return {"metadata": metadata, "status": {"conditions": [condition("Accepted", at)]}}


async def test_capacity_that_never_comes_is_given_up_and_tried_elsewhere_with_an_event() -> None:
    prices = {"europe-west4": {"l4": 1.1}, "us-east4": {"l4": 1.0}}
    fixture = Fixture(watchdog={"provisioningTimeout": "10m", "retries": 1}, prices=prices)
    await fixture.look(workload())
    fixture.workers["us"].take_workload("ns/train", waiting_copy(ready=False))
    fixture.workers["us"].take_provisioning("ns/train-dws-1", provisioning())
    fixture.clock.now += 240
    assert await fixture.reconciler.reconcile("ns/train") == NOW + 300
    fixture.clock.now += 359
    await fixture.reconciler.reconcile("ns/train")
    assert fixture.nominated() == ["us", "eu"]
    fixture.clock.now += 1
    await fixture.reconciler.reconcile("ns/train")
    assert fixture.nominated() == ["eu"]
    assert fixture.told[-1] == (
        "ProvisioningTimeout",
        "ProvisioningRequest train-dws-1 on us was accepted 600 s ago and is not provisioned; retry 1 of 1",
        True,
    )
    assert "us: BeingWithdrawn" in dispatch_condition(fixture)["message"]


async def test_capacity_that_is_late_is_waited_for_where_no_other_cluster_is_better() -> None:
    prices = {"europe-west4": {"l4": 1.05}, "us-east4": {"l4": 1.0}}
    fixture = Fixture(watchdog={"provisioningTimeout": "10m"}, prices=prices)
    fixture.workers["eu"].take_workload("ns/other", admitted_copy("other", 8))
    await fixture.look(workload())
    fixture.workers["us"].take_workload("ns/train", waiting_copy(ready=False))
    fixture.workers["us"].take_provisioning("ns/train-dws-1", provisioning())
    fixture.clock.now += 900
    assert await fixture.reconciler.reconcile("ns/train") == NOW + 1500
    assert fixture.nominated() == ["us", "eu"]
    fixture.workers["eu"].take_workload("ns/other", None)
    await fixture.reconciler.reconcile("ns/train")
    assert fixture.nominated() == ["eu"]


async def test_every_reservation_has_the_whole_budget() -> None:
    fixture = Fixture(watchdog={"provisioningTimeout": "10s", "retries": 1})
    fixture.connect("eu", active=False)
    used = condition(GIVEN_UP_CONDITION, -60, message=f"us 1 times, last at {when(-60)}")
    await fixture.look(workload(conditions=[condition("QuotaReserved"), used]))
    fixture.workers["us"].take_workload("ns/train", waiting_copy(ready=False))
    fixture.workers["us"].take_provisioning("ns/train-dws-1", provisioning())
    fixture.clock.now += 60
    await fixture.reconciler.reconcile("ns/train")
    assert fixture.nominated() == []
    assert fixture.told[-1][1].endswith("retry 1 of 1")


async def test_beyond_the_budget_it_stays() -> None:
    fixture = Fixture(watchdog={"provisioningTimeout": "10s", "retries": 0})
    await fixture.look(workload())
    fixture.workers["us"].take_workload("ns/train", waiting_copy(ready=False))
    fixture.workers["us"].take_provisioning("ns/train-dws-1", provisioning())
    fixture.clock.now += 60
    for _ in range(3):
        fixture.clock.now += 1
        await fixture.reconciler.reconcile("ns/train")
        fixture.restart()
    assert fixture.nominated() == ["us"]
    words = (
        f"ProvisioningRequest train-dws-1 on us was accepted at {when()} and is not provisioned after 10 s, "
        "all 0 retries are used, and it stays"
    )
    assert fixture.told[1:] == [("RetriesUsed", words, True)]
    [found] = [one for one in fixture.status()["conditions"] if one["type"] == GIVEN_UP_CONDITION]
    assert (found["reason"], found["message"]) == ("RetriesUsed", words)


async def test_what_stays_keeps_its_count() -> None:
    fixture = Fixture(watchdog={"provisioningTimeout": "10s", "retries": 1})
    fixture.connect("eu", active=False)
    used = condition(GIVEN_UP_CONDITION, 10, message=f"us 1 times, last at {when(10)}")
    await fixture.look(workload(conditions=[condition("QuotaReserved"), used]))
    fixture.workers["us"].take_workload("ns/train", waiting_copy(ready=False))
    fixture.workers["us"].take_provisioning("ns/train-dws-1", provisioning())
    fixture.clock.now += 60
    await fixture.reconciler.reconcile("ns/train")
    record = fixture.manager.records["ns/train"]
    assert record.retries_used
    assert record.given_up == {"us": GivenUp(1, NOW + 10)}


async def test_the_condition_says_why_no_cluster_is_suitable_now() -> None:
    fixture = Fixture()
    for name in ("eu", "us"):
        fixture.connect(name, active=False, message="no route to host")
    await fixture.look(workload(gpus=9))
    assert fixture.told == [
        ("NoSuitableCluster", "None of 2 clusters is suitable: eu Disconnected, us Disconnected", True)
    ]
    fixture.connect("us")
    await fixture.reconciler.reconcile("ns/train")
    found = dispatch_condition(fixture)
    assert "us: ExceedsMaxQuota" in found["message"]
    assert found["lastTransitionTime"] == when()
    assert len(fixture.told) == 1
    await fixture.reconciler.reconcile("ns/train")
    assert len(fixture.api.applied) == 2


async def test_a_job_that_no_worker_can_ever_hold_is_rejected_with_the_reason() -> None:
    fixture = Fixture(dispatch={"rejectAfter": "10s"})
    assert await fixture.look(workload(gpus=9)) == NOW + 10
    fixture.clock.now += 10
    fixture.restart()
    await fixture.reconciler.reconcile("ns/train")
    text = "None of 2 clusters can ever run this job: eu ExceedsMaxQuota, us ExceedsMaxQuota; request less, or change"
    assert dispatch_condition(fixture)["reason"] == "FitsNoCluster"
    found = fixture.check("multikueue")
    assert (found["state"], found["lastTransitionTime"]) == ("Rejected", when(10))
    assert found["message"].startswith(text)
    assert fixture.told[-1][0] == "FitsNoCluster"
    [*_, (_, body, manager)] = fixture.api.applied
    assert (manager, set(body["status"])) == (REJECT_MANAGER, {"admissionChecks"})
    fixture.clock.now += 3600
    written = len(fixture.api.applied)
    assert await fixture.reconciler.reconcile("ns/train") is None
    assert len(fixture.api.applied) == written


async def test_a_job_whose_only_worker_leaves_the_queue_is_not_rejected_before_the_set_time() -> None:
    """It has waited for that worker for longer than that, which it could have run on one day."""
    fixture = Fixture(dispatch={"rejectAfter": "10s"})
    fixture.connect("eu", active=False, message="no route to host")
    await fixture.look(workload(gpus=9))
    fixture.clock.now += 3600
    fixture.connect("eu")
    assert await fixture.reconciler.reconcile("ns/train") == NOW + 3610
    assert fixture.check("multikueue")["state"] == "Pending"
    fixture.restart()
    fixture.clock.now += 9
    assert await fixture.reconciler.reconcile("ns/train") == NOW + 3610
    fixture.clock.now += 1
    await fixture.reconciler.reconcile("ns/train")
    assert fixture.check("multikueue")["state"] == "Rejected"


async def test_a_rejection_that_was_not_written_is_written_at_the_next_look() -> None:
    fixture = Fixture(dispatch={"rejectAfter": "0s"})
    fixture.api.failures = []
    key = fixture.take(workload(gpus=9))
    refused = fixture.api.apply

    async def refuse(path: str, body: Any, manager: str) -> Any:
        if manager == REJECT_MANAGER:
            raise ApiError(500, "InternalError", "down")
        return await refused(path, body, manager)

    fixture.api.apply = refuse  # type: ignore[method-assign]
    with pytest.raises(ApiError):
        await fixture.reconciler.reconcile(key)
    assert fixture.check("multikueue")["state"] == "Pending"
    fixture.api.apply = refused  # type: ignore[method-assign]
    fixture.restart()
    await fixture.reconciler.reconcile(key)
    assert fixture.check("multikueue")["state"] == "Rejected"


async def test_where_there_is_nothing_else_it_is_tried_there_again_once_the_copy_is_gone() -> None:
    fixture = Fixture(watchdog={"provisioningTimeout": "10s", "retries": 2})
    fixture.connect("eu", active=False)
    await fixture.look(workload())
    fixture.workers["us"].take_workload("ns/train", waiting_copy(ready=False))
    fixture.workers["us"].take_provisioning("ns/train-dws-1", provisioning())
    fixture.clock.now += 60
    await fixture.reconciler.reconcile("ns/train")
    assert fixture.nominated() == []
    fixture.workers["us"].take_provisioning("ns/train-dws-1", None)
    fixture.workers["us"].take_workload("ns/train", None)
    await fixture.reconciler.reconcile("ns/train")
    assert fixture.nominated() == ["us"]


async def test_what_is_not_on_its_way_any_more_holds_no_quota() -> None:
    fixture = Fixture()
    key = fixture.take(workload("one", 8))
    await fixture.reconciler.reconcile(key)
    fixture.api.remove("/apis/kueue.x-k8s.io/v1beta2/workloads", key)
    fixture.manager.take_workload(key, None)
    await fixture.reconciler.reconcile(key)
    await fixture.look(workload("two", 8))
    assert fixture.nominated("two") == ["us"]


async def test_the_quota_of_a_job_that_ended_is_free_again_when_its_copy_is_gone() -> None:
    fixture = Fixture()
    await fixture.look(workload("one", 8))
    fixture.workers["us"].take_workload("ns/one", admitted_copy("one", 8))
    admitted = [condition("QuotaReserved"), condition("Admitted")]
    ended = workload("one", 8, conditions=[*admitted, condition("Finished")], status={"clusterName": "us"})
    await fixture.look(workload("one", 8, conditions=admitted, status={"clusterName": "us"}))
    await fixture.look(ended)
    fixture.workers["us"].take_workload("ns/one", None)
    await fixture.reconciler.reconcile("ns/one")
    await fixture.look(workload("two", 8))
    assert fixture.nominated("two") == ["us"]


async def test_a_new_leader_does_not_count_what_the_old_one_gave_away() -> None:
    fixture = Fixture()
    await fixture.look(workload("one", 8))
    fixture.forget_workers()
    fixture.restart()
    await fixture.look(workload("two", 8))
    assert [fixture.nominated(name) for name in ("one", "two")] == [["us"], ["eu"]]


def overtake(fixture: Fixture, happens: Callable[[], object]) -> None:
    """Between a write and its answer, this happens, and the watch tells of it."""
    apply = fixture.api.apply

    async def overtaken(path: str, body: dict[str, Any], manager: str) -> dict[str, Any]:
        answer = await apply(path, body, manager)
        happens()
        return answer

    fixture.api.apply = overtaken  # type: ignore[method-assign]


async def test_an_answer_about_a_workload_that_is_gone_does_not_bring_it_back() -> None:
    fixture = Fixture()
    key = fixture.take(workload("one", 8))

    def gone() -> None:
        fixture.api.remove(WORKLOADS, key)
        fixture.manager.take_workload(key, None)

    overtake(fixture, gone)
    await fixture.reconciler.reconcile(key)
    assert key not in fixture.manager.records


async def test_an_answer_about_a_workload_does_not_hide_the_next_one_of_its_name() -> None:
    fixture = Fixture()
    key = fixture.take(workload("one", 8))
    again = workload("one", 8)
    again["metadata"]["uid"] = "uid-again"
    overtake(fixture, lambda: fixture.take(again))
    await fixture.reconciler.reconcile(key)
    assert fixture.manager.records[key].uid == "uid-again"


async def test_a_check_that_names_this_controller_becomes_active() -> None:
    fixture = gated()
    await fixture.reconciler.reconcile_check("fleet")
    [(path, body, _)] = fixture.api.applied
    assert path.endswith("/admissionchecks/fleet/status")
    [found] = body["status"]["conditions"]
    assert (found["type"], found["status"]) == ("Active", "True")
    await fixture.reconciler.reconcile_check("fleet")
    assert len(fixture.api.applied) == 1


async def test_a_check_without_rules_is_not_active_and_says_what_to_do() -> None:
    fixture = Fixture()
    fixture.take_check("unknown", CHECK)
    await fixture.reconciler.reconcile_check("unknown")
    [(_, body, _)] = fixture.api.applied
    [found] = body["status"]["conditions"]
    assert found["status"] == "False"
    assert "admissionController.checks of the fleet has no unknown" in found["message"]


async def test_checks_of_others_are_left_alone() -> None:
    fixture = Fixture()
    fixture.take_check("other", "example.com/other")
    await fixture.reconciler.reconcile_check("other")
    await fixture.reconciler.reconcile_check("gone")
    assert fixture.api.applied == []


async def test_a_queue_without_flavor_on_a_worker() -> None:
    fixture = Fixture()
    fixture.configure(fixture.workers["us"], flavors=())
    await fixture.look(workload())
    assert fixture.nominated() == ["eu"]
    assert "us: QueueInactive: ClusterQueue gpu is inactive" in dispatch_condition(fixture)["message"]


async def test_a_team_may_run_only_where_it_may() -> None:
    fixture = Fixture()
    for worker in fixture.workers.values():
        worker._manifests["localqueues", "team-eu/gpu"] = configured(
            "LocalQueue", "gpu", {"clusterQueue": "gpu"}, namespace="team-eu"
        )
        worker.read_configuration()
    item = workload()
    item["metadata"]["namespace"] = "team-eu"
    fixture.manager.take_namespace("team-eu", {"metadata": {"name": "team-eu"}})
    made = fixture.api.put("/apis/kueue.x-k8s.io/v1beta2/workloads", item)
    fixture.manager.take_workload("team-eu/train", made)
    await fixture.reconciler.reconcile("team-eu/train")
    assert fixture.manager.records["team-eu/train"].nominated == ("eu",)


async def test_a_clock_behind_kueues_does_not_make_a_decision_look_outdated() -> None:
    fixture = Fixture()
    fixture.clock.now = NOW - 30
    await fixture.look(workload())
    await fixture.reconciler.reconcile("ns/train")
    assert dispatch_condition(fixture)["lastTransitionTime"] == when()
    assert len(fixture.api.applied) == 1
