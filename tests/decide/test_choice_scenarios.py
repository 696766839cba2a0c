"""Smaller tables of Kueue's: flavor choice, reasons, policies, inactive queues, quota held back, two cycles."""

from __future__ import annotations

from typing import Any

import pytest
from tests.decide.expand import ZERO, admission, ids, load_scenarios, manifests
from tests.decide.harness import build, configuration, one_workload
from tests.decide.test_assigner_scenarios import run_assign

from kueue_admission.decide.engine import Engine
from kueue_admission.decide.events import CycleStarted, Deleted, Submitted, TimePassed
from kueue_admission.decide.flavors.assignment import Assignment, FlavorChoice, Mode, PodSetResult, merge_attempts
from kueue_admission.decide.flavors.evidence import InsufficientQuota
from kueue_admission.decide.preemption.candidates import satisfies_policy
from kueue_admission.decide.quota.cohort_tree import add_usage
from kueue_admission.decide.reasons import InactiveReason
from kueue_admission.decide.scheduler.examination import quota_to_reserve
from kueue_admission.kernel.problem import Problem
from kueue_admission.read.fields import Fields
from kueue_admission.read.kueue_objects import parse_objects
from kueue_admission.read.workloads import parse_admission

NO_FIT = load_scenarios("no_fit_reasons")
CHOICE = load_scenarios("assign_flavor_choice")
POLICY = load_scenarios("preemption_policy")
INACTIVE = load_scenarios("inactive")
RESERVE = load_scenarios("reserve")
TWICE = load_scenarios("schedule_twice")


@pytest.mark.parametrize("case", NO_FIT, ids=ids(NO_FIT))
def test_the_reason_of_the_whole_and_of_each_flavor(case: dict[str, Any]) -> None:
    cache, assignment = run_assign(case)
    assert (assignment.no_fit_reason or "") == case["noFitReason"]
    results = {
        attempt.flavor: attempt.no_fit_reason or ""
        for result in assignment.pod_sets
        for attempt in merge_attempts(result, cache.queues[case["target"]])
    }
    expected = case["attempts"]
    assert {flavor: results.get(flavor) for flavor in expected if flavor in results} == {
        flavor: reason for flavor, reason in expected.items() if flavor in results
    }


@pytest.mark.parametrize("case", CHOICE, ids=ids(CHOICE))
def test_the_better_flavor_is_chosen(case: dict[str, Any]) -> None:
    _, assignment = run_assign(case)
    assert assignment.mode.name == case["mode"]
    result = {resource: choice.flavor for resource, choice in assignment.pod_sets[0].flavors.items()}
    assert result == case["want"]


@pytest.mark.parametrize("case", POLICY, ids=ids(POLICY))
def test_who_may_be_preempted_under_a_policy(case: dict[str, Any]) -> None:
    cache, _ = build(case)
    preemptor = cache.info(one_workload("default/preemptor", case["preemptor"]))
    candidate = cache.info(one_workload("default/candidate", case["candidate"]))
    result = satisfies_policy(preemptor, candidate, case["policy"], cache.gates)
    assert result is case["want"]


@pytest.mark.parametrize("case", INACTIVE, ids=ids(INACTIVE))
def test_why_a_queue_is_inactive(case: dict[str, Any]) -> None:
    checks = [
        {
            "kind": "AdmissionCheck",
            "metadata": {"name": name},
            "spec": {"controllerName": controller},
            "status": {"conditions": [{"type": "Active", "status": "True" if active else "False"}]},
        }
        for name, (controller, active) in case["checks"].items()
    ]
    objects = manifests({k: v for k, v in case.items() if k != "checks"}) + checks
    engine = Engine(parse_objects(objects, configuration(case)).objects)
    (queue,) = engine.cache.queues.values()
    reason = queue.inactive[0][0] if queue.inactive else InactiveReason.READY
    assert [reason.value, queue.inactive_message] == case["want"]


@pytest.mark.parametrize("case", RESERVE, ids=ids(RESERVE))
def test_quota_held_back_for_who_found_nobody_to_preempt(case: dict[str, Any]) -> None:
    memory = {"on-demand": {"memory": "100"}, "spot": {"memory": "0/100"}}
    gpu = {"model-a": {"gpu": "10/0"}, "model-b": {"gpu": "10/5"}}
    flavors: dict[str, Any] = {name: {} for name in (*memory, *gpu)}
    cache, _ = build({"flavors": flavors, "queues": {"cq": {"cohortName": "eng", "groups": [memory, gpu]}}})
    queue = cache.queues["cq"]

    def fr(text: str) -> int:
        flavor, _, resource = text.partition(" ")
        return cache.ids.id(flavor, resource)

    for text, amount in case["used"].items():
        add_usage(queue, fr(text), amount)
    assignment = Assignment()
    result = PodSetResult("main", 1, (), {"memory": FlavorChoice("on-demand", Mode[case["mode"]])})
    result.evidence = [InsufficientQuota("on-demand", "memory", 1, 0)]
    assignment.pod_sets.append(result)
    assignment.borrowing = case["borrowing"]
    assignment.usage = {fr(text): amount for text, amount in case["request"].items()}
    results = {" ".join(cache.ids.names[key]): amount for key, amount in quota_to_reserve(assignment, queue)}
    assert results == case["want"]


@pytest.mark.parametrize("case", TWICE, ids=ids(TWICE))
def test_a_second_cycle_after_some_workloads_are_gone(case: dict[str, Any]) -> None:
    parsed = parse_objects(manifests(case), configuration(case))
    engine = Engine(parsed.objects)
    for workload in parsed.workloads:
        engine.handle(Submitted(ZERO, workload))
    engine.handle(CycleStarted(ZERO))
    for key in case["deleted"]:
        engine.handle(Deleted(ZERO, key))
    engine.handle(TimePassed(ZERO + 1))
    engine.handle(CycleStarted(ZERO + 1))
    problems: list[Problem] = []
    expected = {key: parse_admission(Fields(admission(a), key, problems), {}) for key, a in case["assigned"].items()}
    result = {key: info.admission for key, info in engine.workloads.items() if info.admission is not None}
    assert result == expected
