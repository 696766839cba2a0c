"""What the controller does about capacity that does not come."""

from __future__ import annotations

from typing import Any

import pytest
from tests.controller.build import (
    NOW,
    Fixture,
    admitted_copy,
    condition,
    dispatch_condition,
    given_up,
    waiting_copy,
    when,
    workload,
)

from kueue_fleet.dispatch import GivenUp
from kueue_fleet.dispatch.watchdog import GIVEN_UP_CONDITION
from kueue_fleet.kube.api import PROVISIONING_REQUESTS


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
    await fixture.look(workload(conditions=[condition("QuotaReserved"), *given_up(-60)]))
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
    [result] = [one for one in fixture.status()["conditions"] if one["type"] == GIVEN_UP_CONDITION]
    assert (result["reason"], result["message"]) == ("RetriesUsed", words)


async def test_what_stays_keeps_its_count() -> None:
    fixture = Fixture(watchdog={"provisioningTimeout": "10s", "retries": 1})
    fixture.connect("eu", active=False)
    await fixture.look(workload(conditions=[condition("QuotaReserved"), *given_up(10)]))
    fixture.workers["us"].take_workload("ns/train", waiting_copy(ready=False))
    fixture.workers["us"].take_provisioning("ns/train-dws-1", provisioning())
    fixture.clock.now += 60
    await fixture.reconciler.reconcile("ns/train")
    record = fixture.manager.records["ns/train"]
    assert record.retries_used
    assert record.given_up == {"us": GivenUp(1, NOW + 10)}


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


def standalone(**watchdog: Any) -> Fixture:
    """The controller of a cluster whose own queues ask DWS for nodes."""
    result = Fixture(dispatches=False, watchdog=watchdog)
    result.configuration = result.configuration.model_copy(update={"asks_in": "solo"})
    result.restart()
    return result


def asked(fixture: Fixture, at: float = 0.0, uid: str = "uid-1") -> None:
    """Kueue has made a ProvisioningRequest, which was accepted."""
    request = provisioning(at)
    request["metadata"]["uid"] = uid
    fixture.manager.take_request("ns/train-dws-1", fixture.api.put(PROVISIONING_REQUESTS, request))


async def test_on_a_standalone_cluster_a_request_that_is_overdue_is_made_again_and_counted() -> None:
    fixture = standalone(provisioningTimeout="10m", retries=1)
    key = fixture.take(workload(checks={"dws": "Pending"}))
    asked(fixture)
    assert await fixture.reconciler.reconcile(key) == NOW + 600
    fixture.clock.now += 600
    await fixture.reconciler.reconcile(key)
    assert fixture.api.deleted == [("ns/train-dws-1", "uid-1")]
    words = "ProvisioningRequest train-dws-1 on solo was accepted 600 s ago and is not provisioned; retry 1 of 1"
    assert fixture.told == [("ProvisioningTimeout", words, True)]
    # The watch has yet to say that it is gone.
    await fixture.reconciler.reconcile(key)
    assert len(fixture.api.deleted) == 1
    asked(fixture, 600, "uid-2")
    assert await fixture.reconciler.reconcile(key) == NOW + 1200
    fixture.clock.now += 600
    for _ in range(2):
        await fixture.reconciler.reconcile(key)
        fixture.restart()
    assert len(fixture.api.deleted) == 1
    [(reason, message, _)] = fixture.told[1:]
    assert (reason, message.endswith("all 1 retries are used, and it stays")) == ("RetriesUsed", True)


async def test_a_leader_that_ends_after_counting_is_followed_by_one_that_deletes_and_does_not_count_again() -> None:
    fixture = standalone(provisioningTimeout="10m", retries=1)
    counted = [condition("QuotaReserved"), *given_up(600, "solo")]
    key = fixture.take(workload(checks={"dws": "Pending"}, conditions=counted))
    asked(fixture)
    fixture.clock.now += 601
    await fixture.reconciler.reconcile(key)
    assert (fixture.api.deleted, fixture.api.applied) == ([("ns/train-dws-1", "uid-1")], [])


async def test_a_request_that_kueue_has_taken_away_meanwhile_is_no_failure() -> None:
    fixture = standalone(provisioningTimeout="10m")
    key = fixture.take(workload(checks={"dws": "Pending"}))
    asked(fixture)
    fixture.api.remove(PROVISIONING_REQUESTS, "ns/train-dws-1")
    fixture.clock.now += 600
    await fixture.reconciler.reconcile(key)
    assert [reason for reason, _, _ in fixture.told] == ["ProvisioningTimeout"]


@pytest.mark.parametrize(
    ("item", "at"),
    [
        (workload(checks={"dws": "Ready"}, conditions=[condition("QuotaReserved"), condition("Admitted")]), 0.0),
        (workload(checks={"dws": "Retry"}, conditions=[condition("QuotaReserved"), condition("Evicted")]), 0.0),
        (workload(checks={"dws": "Pending"}), 1.0),
    ],
    ids=["admitted", "evicted", "not yet overdue"],
)
async def test_any_other_request_is_left_alone(item: dict[str, Any], at: float) -> None:
    fixture = standalone(provisioningTimeout="10m")
    key = fixture.take(item)
    asked(fixture, at)
    fixture.clock.now += 600
    await fixture.reconciler.reconcile(key)
    assert fixture.api.deleted == []


def left_behind(**changes: Any) -> dict[str, Any]:
    """A Workload that lost its quota, whose check became Retry after that: kueue#5129."""
    result = workload(**{"conditions": [condition("QuotaReserved", status=False), condition("Evicted")], **changes})
    result["status"]["admissionChecks"] = [
        {"name": "dws", "state": "Retry", "lastTransitionTime": when(), "message": ""}
    ]
    del result["status"]["admission"]
    return result


async def test_a_check_that_kueue_left_in_retry_is_pending_again_after_the_set_time_with_an_event() -> None:
    fixture = standalone(stuckAfter="1m")
    item = left_behind()
    item["status"]["requeueState"] = {"count": 1, "requeueAt": when(30)}
    assert await fixture.look(item) == NOW + 90
    assert fixture.api.applied == []
    fixture.clock.now += 90
    await fixture.reconciler.reconcile("ns/train")
    assert fixture.check("dws")["state"] == "Pending"
    # Kueue takes it out of what it has put aside for this.
    [requeued] = [one for one in fixture.status()["conditions"] if one["type"] == "Requeued"]
    assert (requeued["status"], requeued["lastTransitionTime"]) == ("True", when(90))
    assert [reason for reason, _, _ in fixture.told] == ["StuckCheck"]
    assert b'kueue_fleet_rescued_total{reason="StuckCheck"} 1.0' in fixture.metrics.text()
    assert await fixture.reconciler.reconcile("ns/train") is None


@pytest.mark.parametrize(
    "item",
    [
        left_behind(active=False),
        left_behind(deletionTimestamp=when()),
        left_behind(conditions=[condition("Finished")]),
        left_behind(conditions=[condition("QuotaReserved")]),
    ],
    ids=["not active", "deleted", "finished", "Kueue is to evict it"],
)
async def test_a_check_in_retry_that_holds_up_nothing_is_left_alone(item: dict[str, Any]) -> None:
    fixture = standalone(stuckAfter="1m")
    fixture.take(item)
    fixture.clock.now += 600
    await fixture.reconciler.reconcile("ns/train")
    assert fixture.api.applied == []
