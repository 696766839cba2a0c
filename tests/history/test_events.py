"""What is read of a Workload as events."""

from __future__ import annotations

import json
from dataclasses import asdict

import pytest
from tests.history.workloads import (
    ADMITTED,
    ASSIGNED,
    EVICTED,
    EXHAUSTED,
    FINISHED,
    RESERVED,
    Json,
    condition,
    request,
    workload,
)

from kueue_admission.history.events import Place, request_events, workload_events
from kueue_admission.history.schema import Event, Kind
from kueue_admission.read.fields import seconds_of
from kueue_admission.read.printed import Printed, PrintedWorkload

PLACE = Place("manager", "europe-west4", {"vision": "team-vision"}, ("project",))


def events(data: Json) -> dict[Kind, Event]:
    return {event.kind: event for event in workload_events(PrintedWorkload.of(data), PLACE)}


def test_the_life_of_a_workload_is_an_event_for_each_transition() -> None:
    check = {"name": "dws", "state": "Ready", "lastTransitionTime": "2026-11-01T09:04:00Z"}
    result = workload(
        RESERVED,
        ADMITTED,
        condition("PodsReady", "2026-11-01T09:06:00Z", reason="Started"),
        FINISHED,
        admission=ASSIGNED,
        admissionChecks=[check],
        clusterName="worker-eu",
    )
    results = {
        event.kind: (event.time - seconds_of("2026-11-01T09:00:00Z"), event.worker, event.reason)
        for event in events(result).values()
    }
    assert results == {
        Kind.ARRIVED: (0, "", ""),
        Kind.NOMINATED: (60, "worker-eu", ""),
        Kind.RESERVED: (60, "", ""),
        Kind.CHECK: (240, "", "Ready"),
        Kind.ADMITTED: (300, "worker-eu", ""),
        Kind.STARTED: (360, "", ""),
        Kind.ENDED: (3600, "", "Succeeded"),
    }


def test_an_arrival_has_what_admission_sees_and_nothing_else_of_the_pods() -> None:
    arrived = events(workload())[Kind.ARRIVED]
    assert (arrived.team, arrived.queue, arrived.priority, arrived.priority_class) == (
        "team-vision",
        "gpu",
        100,
        "normal",
    )
    assert arrived.requests == {"cpu": 1.0, "nvidia.com/gpu": 2.0}
    assert json.loads(arrived.pod_sets) == [
        {
            "name": "main",
            "count": 2,
            "template": {
                "spec": {
                    "nodeSelector": {"zone": "a"},
                    "containers": [{"resources": {"requests": {"cpu": "500m", "nvidia.com/gpu": "1"}}}],
                }
            },
        }
    ]
    text = json.dumps(asdict(arrived), default=str)
    assert not any(
        secret in text for secret in ("s3cr3t", "hunter2", "secret-model", "the-key", "trainer", "team-secret")
    )


def test_labels_are_those_that_decide_and_those_that_were_asked_for() -> None:
    assert events(workload())[Kind.ARRIVED].labels == {"kueue-fleet.dev/regions": "eu", "project": "p"}


def test_flavors_are_those_of_the_admission() -> None:
    assert events(workload(RESERVED, admission=ASSIGNED))[Kind.RESERVED].flavors == ("l4",)


def test_an_eviction_has_the_same_key_after_the_workload_has_quota_again() -> None:
    count = [{"reason": "Preempted", "underlyingCause": "", "count": 1}]
    then = events(workload(EVICTED, evictions=count))[Kind.EVICTED]
    later = condition("Evicted", "2026-11-01T09:40:00Z", status="False", reason="QuotaReserved")
    again = events(workload(later, evictions=count))[Kind.EVICTED]
    assert then.key == again.key
    assert (then.exact, again.exact) == (True, False)


def test_evictions_that_nobody_saw_are_in_the_count() -> None:
    later = condition("Evicted", "2026-11-01T09:40:00Z", status="False", reason="QuotaReserved")
    result = events(workload(later, evictions=[{"reason": "PodsReadyTimeout", "underlyingCause": "", "count": 3}]))
    assert (result[Kind.EVICTED].reason, result[Kind.EVICTED].count) == ("PodsReadyTimeout", 3)


def test_an_eviction_of_a_release_that_does_not_count_is_one_for_its_time() -> None:
    assert events(workload(EVICTED))[Kind.EVICTED].reason == "Preempted"


def test_pods_that_failed_are_an_interruption_and_pods_that_never_ran_are_not() -> None:
    lost = condition("PodsReady", "2026-11-01T09:30:00Z", status="False", reason="WaitForRecovery")
    waiting = condition("PodsReady", "2026-11-01T09:30:00Z", status="False", reason="WaitForStart")
    assert Kind.INTERRUPTED in events(workload(RESERVED, ADMITTED, lost))
    assert Kind.INTERRUPTED not in events(workload(RESERVED, ADMITTED, waiting))


def test_a_pod_set_that_is_too_long_is_left_out() -> None:
    data = workload()
    data["spec"]["podSets"][0]["template"]["spec"]["nodeSelector"] = {f"label-{n}": "x" * 60 for n in range(1000)}
    assert events(data)[Kind.ARRIVED].pod_sets == ""


def test_a_workload_that_admission_does_not_know_is_recorded_without_requests() -> None:
    data = workload()
    update = {"name": "main", "nodeSelector": {"pool": "x"}}
    data.setdefault("status", {})["admission"] = {
        "clusterQueue": "gpu",
        "podSetAssignments": [{"name": "main", "delayedTopologyRequest": "Pending"}],
    }
    data["status"]["admissionChecks"] = [{"name": "c", "state": "Ready", "podSetUpdates": [update]}]
    assert events(data)[Kind.ARRIVED].requests == {}


def test_nothing_is_recorded_of_a_variant() -> None:
    data = workload()
    parent = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Workload", "name": "job-train", "uid": "u"}
    data["metadata"]["ownerReferences"] = [parent]
    assert events(data) == {}


def stock_outs(data: Json) -> list[Event]:
    return list(request_events(Printed.of(data), PLACE))


def test_a_request_that_finds_no_capacity_is_a_stock_out_of_its_pool() -> None:
    accepted = condition("Accepted", "2026-11-01T09:01:02Z", reason="SuccessfullyQueued")
    (event,) = stock_outs(request(accepted, EXHAUSTED))
    assert (event.kind, event.time - seconds_of("2026-11-01T09:01:03Z"), event.exact) == (Kind.STOCK_OUT, 0, False)
    assert (event.workload, event.check, event.pool, event.team) == ("job-train-1", "dws", "t4", "team-vision")
    assert (event.cluster, event.region, event.reason) == ("manager", "europe-west4", "ResourcePoolExhausted")


def test_a_request_that_waits_and_then_fails_is_one_stock_out() -> None:
    failed = condition("Failed", "2026-11-01T09:09:00Z", reason="CapacityIsNotFound")
    assert [event.exact for event in stock_outs(request(failed))] == [True]
    waited, after = stock_outs(request(EXHAUSTED)), stock_outs(request(EXHAUSTED, failed))
    assert [event.key for event in waited + after] == 2 * ["r1/stockOut"]


@pytest.mark.parametrize(
    "conditions",
    [
        (),
        (condition("Provisioned", "2026-11-01T09:04:00Z", reason="Provisioned"),),
        (condition("Provisioned", "2026-11-01T09:01:03Z", "False", "NotProvisioned"),),
        (condition("Failed", "2026-11-01T09:09:00Z", reason="InvalidArgument"),),
        ({"type": "Provisioned", "status": "False", "reason": "ResourcePoolExhausted"},),
    ],
)
def test_what_came_was_refused_or_has_no_time_is_no_stock_out(conditions: tuple[Json, ...]) -> None:
    assert stock_outs(request(*conditions)) == []


def test_a_request_of_nobody_or_of_another_name_tells_what_is_known() -> None:
    orphan = request(EXHAUSTED)
    del orphan["metadata"]["ownerReferences"]
    assert stock_outs(orphan) == []
    assert [event.check for event in stock_outs(request(EXHAUSTED, name="by-hand"))] == [""]
