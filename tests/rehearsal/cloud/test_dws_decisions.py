from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from kueue_fleet.fleet_file.model.rehearsal_section import DwsSection, RehearsalSection, StockRange
from kueue_rehearsal.cloud.dws_decisions import (
    CreateNodes,
    NodeUse,
    Request,
    SetCondition,
    Situation,
    Supply,
    demand,
    max_run_seconds,
    next_step,
    parse_request,
    plan_node_removals,
    plan_request,
    stock,
    updated_status,
    wait_seconds,
)
from kueue_rehearsal.cloud.node_planning import NodePlan
from kueue_rehearsal.cloud.node_pools import NodePool, parse_node_pool
from kueue_rehearsal.cloud.node_templates import Place
from kueue_rehearsal.node_agent.status import parse_timestamp, timestamp

SUPPLY = Supply(Place.of("worker", "us-east4"))
NOW = 1_800_000_000.0
EAGER = RehearsalSection(dws=DwsSection(accept_seconds=1.0, least_wait_seconds=2.0, most_wait_seconds=2.0))


def eager(**changes: Any) -> RehearsalSection:
    return RehearsalSection(dws=EAGER.dws.model_copy(update=changes))


def template(gpu: int = 1, **spec: Any) -> dict[str, Any]:
    resources = {"requests": {"cpu": "1"}, "limits": {"nvidia.com/gpu": gpu}} if gpu else {}
    selector = {"cloud.google.com/gke-accelerator": "nvidia-l4"} if gpu else {}
    return {"template": {"spec": {"containers": [{"resources": resources}], "nodeSelector": selector, **spec}}}


def request(count: int = 2, name: str = "wl-dws-1", **parameters: str) -> Request:
    return Request(
        key=f"team/{name}",
        uid="u",
        created=timestamp(NOW),
        parameters=parameters,
        pod_sets=(("main", count),),
        conditions={},
    )


def with_conditions(base: Request, **since: float) -> Request:
    conditions = {
        kind: {"type": kind, "status": "True", "reason": "R", "lastTransitionTime": timestamp(at)}
        for kind, at in since.items()
    }
    return replace(base, conditions=conditions)


def situation(plan: NodePlan | str, *, available: int = 8, nodes: int = 0, ready: int | None = None) -> Situation:
    return Situation(plan, {"nvidia-l4": available}, nodes, nodes if ready is None else ready)


PLAN = plan_request(request(), {"main": template()}, SUPPLY, NOW)


def step(
    of: Request, at: float = NOW, settings: RehearsalSection = EAGER, **facts: Any
) -> SetCondition | CreateNodes | None:
    return next_step(of, situation(facts.pop("plan", PLAN), **facts), settings, at)


def kind(made: SetCondition | CreateNodes | None) -> str:
    return f"{made.type}={made.status}:{made.reason}" if isinstance(made, SetCondition) else type(made).__name__


def test_the_nodes_of_a_request_carry_its_name_its_taint_and_its_end() -> None:
    result = plan_request(request(maxRunDurationSeconds="600"), {"main": template()}, SUPPLY, NOW)
    assert len(result.add) == 2
    for node in result.add:
        assert node.labels["autoscaling.gke.io/provisioning-request"] == request().resize_request
        assert node.labels["cloud.google.com/gke-queued"] == "true"
        assert node.labels["cloud.google.com/gke-max-run-duration-seconds"] == "600"
        assert {"key": "cloud.google.com/gke-queued", "value": "true", "effect": "NoSchedule"} in node.taints
        assert node.annotations["node.gke.io/machine-termination-datetime"] == timestamp(NOW + 600)
    assert demand(result.add) == {"nvidia-l4": 2}


def test_the_resize_request_is_named_as_gke_names_it() -> None:
    # Seen in the tests of GKE's cluster autoscaler.
    assert (
        Request("default/prov-failed", "u", "", {}, (), {}).resize_request == "gke-default-prov-failed-2ba917d6dc64dab7"
    )
    long = Request(f"{'n' * 40}/{'r' * 100}", "u", "", {}, (), {})
    assert long.resize_request.startswith(f"gke-{'n' * 20}-{'r' * 20}-")
    assert len(long.resize_request) == 4 + 20 + 1 + 20 + 1 + 16


@pytest.mark.parametrize(
    ("parameters", "templates", "message"),
    [
        ({"maxRunDurationSeconds": "soon"}, {"main": template()}, "'soon' is not a number of seconds between 1 and"),
        ({"maxRunDurationSeconds": "²"}, {"main": template()}, "'²' is not a number of seconds between 1 and"),
        ({"maxRunDurationSeconds": "604801"}, {"main": template()}, r"between 1 and 604800 \(7 days\)"),
        ({"maxRunDurationSeconds": "0"}, {"main": template()}, "between 1 and"),
        ({"capacitySearchStrategy": "OBTAINABILITY"}, {"main": template()}, "is not modelled; leave it out"),
        ({}, {}, 'PodTemplate "main" not found'),
        ({}, {"main": template(gpu=0)}, "every pod set must ask for one"),
        ({}, {"main": template(gpu=99)}, "no machine type has enough nvidia.com/gpu"),
    ],
)
def test_what_dws_cannot_serve_is_refused_with_the_reason(
    parameters: dict[str, str], templates: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        plan_request(replace(request(), parameters=parameters), templates, SUPPLY, NOW)


def test_the_longest_run_is_seven_days_and_also_the_default() -> None:
    assert max_run_seconds(request()) == 604_800
    assert max_run_seconds(request(maxRunDurationSeconds="604800")) == 604_800


def test_a_request_goes_from_not_accepted_to_provisioned() -> None:
    new = request()
    assert kind(step(new)) == "Accepted=False:NotAccepted"
    waiting = replace(new, conditions={"Accepted": {"status": "False", "lastTransitionTime": timestamp(NOW)}})
    assert step(waiting, NOW + 0.5) is None
    accepted = step(waiting, NOW + 1)
    assert kind(accepted) == "Accepted=True:SuccessfullyQueued"
    assert isinstance(accepted, SetCondition)
    assert accepted.details["ResizeRequestName"] == new.resize_request
    assert accepted.details["AcceleratorType"] == "nvidia-l4"
    queued = with_conditions(new, Accepted=NOW)
    assert step(queued, NOW + 1) is None
    assert step(queued, NOW + 2) == CreateNodes(PLAN.add)
    assert step(queued, NOW + 3, nodes=1) == CreateNodes(PLAN.add)
    assert step(queued, NOW + 3, nodes=2, ready=1) is None
    assert kind(step(queued, NOW + 3, nodes=2)) == "Provisioned=True:Provisioned"


def test_a_request_waits_for_all_of_its_capacity_and_says_so_once() -> None:
    queued = with_conditions(request(), Accepted=NOW)
    short = step(queued, NOW + 5, available=1)
    assert kind(short) == "Provisioned=False:ResourcePoolExhausted"
    assert isinstance(short, SetCondition)
    assert short.message == "Waiting for capacity: 2 nvidia-l4 are not available now."
    told = parse_request(
        {
            "metadata": {"namespace": "team", "name": "wl-dws-1", "uid": "u", "creationTimestamp": timestamp(NOW)},
            "spec": {"podSets": [{"podTemplateRef": {"name": "main"}, "count": 2}]},
            "status": updated_status(queued, {}, short, NOW + 5),
        }
    )
    assert step(told, NOW + 6, available=1) is None
    assert step(told, NOW + 6, available=2) == CreateNodes(PLAN.add)


def test_a_request_that_cannot_be_served_fails_whatever_its_state() -> None:
    queued = with_conditions(request(), Accepted=NOW)
    failed = step(queued, plan="no such accelerator")
    assert kind(failed) == "Failed=True:InvalidArgument"
    assert isinstance(failed, SetCondition)
    assert failed.message == "no such accelerator"


def test_the_booking_ends_after_ten_minutes_and_the_capacity_after_the_run_duration() -> None:
    provisioned = with_conditions(request(maxRunDurationSeconds="3600"), Accepted=NOW, Provisioned=NOW)
    assert step(provisioned, NOW + 599) is None
    assert kind(step(provisioned, NOW + 600)) == "BookingExpired=True:BookingExpired"
    booked = with_conditions(provisioned, Accepted=NOW, Provisioned=NOW, BookingExpired=NOW + 600)
    assert step(booked, NOW + 3599) is None
    assert kind(step(booked, NOW + 3600)) == "CapacityRevoked=True:CapacityRevoked"
    assert kind(step(provisioned, NOW + 3600)) == "CapacityRevoked=True:CapacityRevoked"


@pytest.mark.parametrize("end", ["Failed", "CapacityRevoked"])
def test_nothing_follows_the_end(end: str) -> None:
    assert step(with_conditions(request(), Accepted=NOW, **{end: NOW}), NOW + 10**6) is None


def test_failures_and_revocations_can_be_asked_for() -> None:
    queued = with_conditions(request(), Accepted=NOW)
    assert kind(step(queued, NOW + 2, eager(fail_percent=100))) == "Failed=True:ResourcePoolExhausted"
    provisioned = with_conditions(request(), Accepted=NOW, Provisioned=NOW)
    revoking = eager(revoke_percent=100, revoke_seconds=10)
    assert step(provisioned, NOW + 9, revoking) is None
    assert kind(step(provisioned, NOW + 10, revoking)) == "CapacityRevoked=True:CapacityRevoked"


def test_stock_and_waits_depend_on_the_seed_and_the_place_only() -> None:
    settings = RehearsalSection(seed=7, dws=DwsSection(low=1, high=5, interval_seconds=10))
    times = range(0, 2000, 10)

    def draw(settings: RehearsalSection, region: str) -> list[int]:
        return [stock(settings, region, "nvidia-l4", at) for at in times]

    assert draw(settings, "us-east4") == draw(settings, "us-east4")
    assert draw(settings, "us-east4") != draw(settings, "europe-west4")
    assert draw(settings, "us-east4") != draw(settings.model_copy(update={"seed": 8}), "us-east4")
    assert set(draw(settings, "us-east4")) == {1, 2, 3, 4, 5}
    assert stock(settings, "us-east4", "nvidia-l4", 19.9) == stock(settings, "us-east4", "nvidia-l4", 10)
    waits = [wait_seconds(settings, request(name=str(number))) for number in range(50)]
    assert all(settings.dws.least_wait_seconds <= wait <= settings.dws.most_wait_seconds for wait in waits)
    assert len(set(waits)) > 40


def test_the_most_precise_entry_of_the_stock_counts() -> None:
    settings = RehearsalSection(
        dws=DwsSection(
            stock={
                "us-east4/nvidia-l4": StockRange(low=3, high=3),
                "us-east4": StockRange(low=0, high=0),
                "nvidia-l4": StockRange(low=9, high=9),
            }
        )
    )
    assert stock(settings, "us-east4", "nvidia-l4", 0) == 3
    assert stock(settings, "us-east4", "nvidia-b200", 0) == 0
    assert stock(settings, "asia-southeast1", "nvidia-l4", 0) == 9


def test_shares_of_failures_are_about_what_was_asked_for() -> None:
    settings = eager(fail_percent=30)
    kinds = Counter(
        kind(step(with_conditions(request(name=f"r{number}"), Accepted=NOW), NOW + 2, settings))
        for number in range(400)
    )
    assert 80 <= kinds["Failed=True:ResourcePoolExhausted"] <= 160
    assert kinds["CreateNodes"] == 400 - kinds["Failed=True:ResourcePoolExhausted"]


def test_a_condition_keeps_its_time_while_its_status_does_not_change() -> None:
    queued = with_conditions(request(), Accepted=NOW)
    body = updated_status(queued, {"A": "1"}, SetCondition("Accepted", "True", "R2", "m", {"B": "2"}), NOW + 50)
    assert body["provisioningClassDetails"] == {"A": "1", "B": "2"}
    assert body["conditions"] == [
        {
            "type": "Accepted",
            "status": "True",
            "reason": "R2",
            "message": "m",
            "lastTransitionTime": timestamp(NOW),
            "observedGeneration": 1,
        }
    ]


def removals(use: NodeUse, known: Request | None, at: float) -> bool:
    requests = {} if known is None else {use.resize_request: known}
    return plan_node_removals([use], requests, RehearsalSection(dws=DwsSection(idle_seconds=5)), at) == [use.name]


EMPTY = NodeUse("n", "r", active_pods=0, ever_used=False, empty_since=NOW)
BUSY = NodeUse("n", "r", active_pods=1, ever_used=True, empty_since=None)
USED = replace(EMPTY, ever_used=True)


@pytest.mark.parametrize(
    ("use", "conditions", "seconds", "removed"),
    [
        (EMPTY, None, 0, True),
        (BUSY, None, 999, False),
        (EMPTY, {}, 999, False),
        (EMPTY, {"BookingExpired": NOW}, 0, True),
        (EMPTY, {"Failed": NOW}, 0, True),
        (BUSY, {"BookingExpired": NOW}, 999, False),
        (BUSY, {"CapacityRevoked": NOW}, 0, True),
        (USED, {}, 4, False),
        (USED, {}, 5, True),
    ],
)
def test_capacity_is_given_back(
    use: NodeUse, conditions: dict[str, float] | None, seconds: float, removed: bool
) -> None:
    known = None if conditions is None else with_conditions(request(), Provisioned=NOW, **conditions)
    assert removals(use, known, NOW + seconds) is removed


def test_times_are_read_as_they_are_written() -> None:
    for at in itertools.chain(range(0, 100_000, 12_345), [int(NOW)]):
        assert parse_timestamp(timestamp(at)) == at


def queued_pool(most: int, **config: Any) -> NodePool:
    body = {
        "autoscaling": {"totalMaxNodeCount": most},
        "queuedProvisioning": {"enabled": True},
        "nodeLocations": ["us-east4-a"],
        "nodeConfig": {"machineType": "g2-standard-4", **config},
    }
    return parse_node_pool("dws", body, ["us-east4-a"])


def test_on_a_standard_cluster_nodes_come_from_the_queued_pool() -> None:
    supply = Supply(Place.of("worker", "us-east4"), autopilot=False, pools=(queued_pool(2, maxRunDuration="300s"),))
    result = plan_request(request(), {"main": template()}, supply, NOW)
    assert {node.labels["cloud.google.com/gke-nodepool"] for node in result.add} == {"dws"}
    assert {node.labels["cloud.google.com/gke-max-run-duration-seconds"] for node in result.add} == {"300"}
    assert demand(result.add) == {"nvidia-l4": 2, "nodes of pool dws": 2}
    waiting = step(with_conditions(request(), Accepted=NOW), NOW + 9, plan=result, available=8)
    assert isinstance(waiting, SetCondition)
    assert waiting.message == "Waiting for capacity: 2 nodes of pool dws are not available now."


def test_a_request_that_no_queued_pool_ever_holds_is_refused() -> None:
    supply = Supply(Place.of("worker", "us-east4"), autopilot=False, pools=(queued_pool(1),))
    with pytest.raises(ValueError, match="node pool dws: it has its maximum of 1 nodes"):
        plan_request(request(), {"main": template()}, supply, NOW)
    with pytest.raises(ValueError, match="no node pool with queued provisioning, and no node auto-provisioning"):
        plan_request(request(), {"main": template()}, replace(supply, pools=()), NOW)


def test_failures_can_be_those_of_one_region() -> None:
    settings = eager(fail_percent_in={"us-east4": 100})
    accepted = with_conditions(request(), Accepted=NOW)
    for region, expected in (("us-east4", "Failed=True:ResourcePoolExhausted"), ("asia-southeast1", "CreateNodes")):
        seen = replace(situation(PLAN), region=region)
        assert kind(next_step(accepted, seen, settings, NOW + 9)) == expected
