"""How the controller nominates clusters, and what it writes and when."""

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
    dispatch_condition,
    waiting_copy,
    when,
    workload,
    written,
)

from kueue_admission.read.dispatch_report import DISPATCH_CONDITION
from kueue_fleet.controller.patches import DISPATCH_MANAGER
from kueue_fleet.kube.answers import ApiError


async def test_the_best_cluster_is_nominated_with_the_reason_for_users() -> None:
    fixture = Fixture()
    again = await fixture.look(workload())
    assert fixture.nominated() == ["us"]
    assert again == NOW + 300
    result = dispatch_condition(fixture)
    assert (result["status"], result["reason"], result["lastTransitionTime"]) == ("True", "Nominated", when())
    assert written(fixture)["report"]["nominated"] == ["us"]
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
    item = workload()
    item["status"]["admission"]["podSetAssignments"] = [{"name": "main", "delayedTopologyRequest": "Pending"}]
    item["status"]["admissionChecks"][0]["podSetUpdates"] = [{"name": "main", "nodeSelector": {"pool": "x"}}]
    await fixture.look(item)
    assert fixture.nominated() == ["eu"]
    assert "its quota is not known, Workload ns/train: placement by" in dispatch_condition(fixture)["message"]


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
    result = dispatch_condition(fixture)
    assert "asked again" in result["message"]
    assert written(fixture)["report"]["nominated"] == ["us"]
    assert result["lastTransitionTime"] == when()
    assert [reason for reason, _, _ in fixture.told] == ["Nominated"], "one event is enough"
    fixture.workers["us"].take_workload("ns/train", waiting_copy(ready=False))
    fixture.clock.now += 30
    await fixture.reconciler.reconcile("ns/train")
    assert dispatch_condition(fixture) == result


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


async def test_what_kueue_cleared_at_an_eviction_is_no_nomination_of_now() -> None:
    fixture = Fixture()
    old = condition(DISPATCH_CONDITION, 0, reason="Nominated", message="Nominated us of 2 clusters")
    await fixture.look(workload(conditions=[condition("QuotaReserved", 0), old]))
    assert fixture.nominated() == ["us"]


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
    result = dispatch_condition(fixture)
    assert "us: ExceedsMaxQuota" in result["message"]
    assert result["lastTransitionTime"] == when()
    assert len(fixture.told) == 1
    await fixture.reconciler.reconcile("ns/train")
    assert len(fixture.api.applied) == 2


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
    result = fixture.api.put("/apis/kueue.x-k8s.io/v1beta2/workloads", item)
    fixture.manager.take_workload("team-eu/train", result)
    await fixture.reconciler.reconcile("team-eu/train")
    assert fixture.manager.records["team-eu/train"].nominated == ("eu",)


async def test_a_clock_behind_kueues_does_not_make_a_decision_look_outdated() -> None:
    fixture = Fixture()
    fixture.clock.now = NOW - 30
    await fixture.look(workload())
    await fixture.reconciler.reconcile("ns/train")
    assert dispatch_condition(fixture)["lastTransitionTime"] == when()
    assert len(fixture.api.applied) == 1
