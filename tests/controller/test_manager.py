from __future__ import annotations

from typing import Any

import pytest
from tests.controller.build import NOW, Fixture, condition, configured, data, given_up, workload

from kueue_admission.read.dispatch_report import DISPATCH_CONDITION
from kueue_fleet.kube.answers import Json


def dispatched(at: float = 0.0) -> list[dict[str, Any]]:
    return [condition(DISPATCH_CONDITION, at, reason="Nominated"), data(report={"nominated": ["us", "eu"]})]


def admitted(at: float, report: list[dict[str, Any]]) -> dict[str, Any]:
    conditions = [condition("QuotaReserved"), condition("Admitted", at), *report]
    return workload(conditions=conditions, status={"clusterName": "us"})


def test_how_long_an_admission_took_is_learned_from_the_workload() -> None:
    fixture = Fixture()
    fixture.take(admitted(20, dispatched()))
    assert fixture.manager.waiting.seconds("us", "gpu", NOW + 30) == 20.0


def test_a_condition_of_another_time_is_no_waiting_time() -> None:
    fixture = Fixture()
    fixture.take(admitted(20, dispatched(-1e9)))
    assert fixture.manager.waiting.seconds("us", "gpu", NOW + 30) is None
    waiting = [condition("QuotaReserved"), *dispatched(-1e9)]
    fixture.take(workload("other", conditions=waiting, status={"nominatedClusterNames": ["us"]}))
    assert fixture.manager.waiting.seconds("us", "gpu", NOW + 30) is None


def test_a_cluster_that_a_workload_was_taken_back_from_made_it_wait_until_then() -> None:
    fixture = Fixture()
    conditions = [condition("QuotaReserved"), *dispatched()]
    fixture.take(workload(conditions=conditions, status={"nominatedClusterNames": ["us"]}))
    assert fixture.manager.waiting.seconds("us", "gpu", NOW + 30) == 30.0
    again = [condition("QuotaReserved"), condition(DISPATCH_CONDITION), *given_up(60)]
    fixture.take(workload(conditions=again, status={"nominatedClusterNames": ["eu"]}))
    assert fixture.manager.waiting.seconds("us", "gpu", NOW + 90) == 60.0
    assert fixture.manager.waiting.seconds("eu", "gpu", NOW + 90) == 90.0


def test_another_workload_of_the_same_name_has_not_waited_yet() -> None:
    fixture = Fixture()
    conditions = [condition("QuotaReserved"), *dispatched()]
    fixture.take(workload(conditions=conditions, status={"nominatedClusterNames": ["us"]}))
    again = workload()
    again["metadata"]["uid"] = "uid-again"
    fixture.take(again)
    assert fixture.manager.waiting.seconds("us", "gpu", NOW + 30) is None


def test_workloads_are_looked_at_when_a_check_appears_or_means_something_else_and_not_when_it_is_active() -> None:
    fixture = Fixture()
    fixture.touched.clear()
    result = fixture.take_check("fleet", "kueue-fleet.dev/admission-check")
    assert fixture.touched == [None]
    result["status"] = {"conditions": [condition("Active")]}
    fixture.manager.take_check("fleet", result)
    assert fixture.touched == [None]
    changed = {"controllerName": "kueue.x-k8s.io/multikueue", "parameters": {"name": "multikueue"}}
    fixture.manager.take_check("fleet", configured("AdmissionCheck", "fleet", changed))
    assert fixture.touched == [None, None]


def versioned(version: int, **changes: Any) -> Json:
    result = workload(**changes)
    result["metadata"]["resourceVersion"] = str(version)
    return result


EU = {"kueue-fleet.dev/regions": "europe-west4"}


@pytest.mark.parametrize(
    ("listed", "reset"),
    [(850_000, True), (950_000, False)],
    ids=["restored from a backup", "and written to since"],
)
def test_what_a_list_tells_counts_although_its_versions_are_lower_than_those_that_were_known(
    listed: int, reset: bool
) -> None:
    manager = Fixture().manager
    manager.take_workload("ns/train", versioned(900_000))
    manager.take_list(listed, reset)
    manager.take_workload("ns/train", versioned(840_000, labels=EU))
    assert manager.records["ns/train"].regions == "europe-west4"
    assert manager.records["ns/train"].version == 840_000


def test_the_answer_to_a_write_that_is_newer_than_a_list_stays() -> None:
    manager = Fixture().manager
    manager.take_workload("ns/train", versioned(900, labels=EU))
    manager.take_list(850, False)
    manager.take_workload("ns/train", versioned(840))
    assert manager.records["ns/train"].regions == "europe-west4"
    manager.take_workload("ns/train", versioned(901))
    assert manager.records["ns/train"].regions is None
