"""Kueue's own table of flavor assignment: modes, flavors, borrow levels, reasons and attempts."""

from __future__ import annotations

from typing import Any

import pytest
from tests.decide.expand import ids, load_scenarios
from tests.decide.harness import build, one_workload

from kueue_admission.decide.amounts import to_int64
from kueue_admission.decide.flavors.assigner import assign
from kueue_admission.decide.flavors.assignment import Assignment, PodSetResult, Possibility, merge_attempts
from kueue_admission.decide.flavors.evidence import sentence
from kueue_admission.decide.queue.cluster_queue import QueueNode
from kueue_admission.decide.quota.cohort_tree import add_usage
from kueue_admission.decide.scheduler.cache import Cache
from kueue_admission.decide.workload.state import WorkloadInfo

CASES = load_scenarios("assign")


def run_assign(case: dict[str, Any]) -> tuple[Cache, Assignment]:
    """Assign flavors to the scenario's incoming workload; preemption is answered by its `oracle` table."""
    cache, _ = build(case)
    info = cache.info(one_workload("default/in", case["incoming"]))
    info.cluster_queue = case["target"]
    for name, amounts in case.get("usage", {}).items():
        for text, amount in amounts.items():
            flavor, _, resource = text.partition(" ")
            add_usage(cache.queues[name], cache.ids.id(flavor, resource), amount)
    answers = case.get("oracle", {})

    def oracle(queue: QueueNode, info: WorkloadInfo, fr: int, amount: int) -> tuple[Possibility, int]:
        del queue, info, amount
        possibility, level = answers.get(" ".join(cache.ids.names[fr]), (1, 0))
        return Possibility(possibility + 1), level

    return cache, assign(cache, info, oracle)


def _attempts(cache: Cache, case: dict[str, Any], result: PodSetResult) -> dict[str, list[Any]]:
    return {
        attempt.flavor: [
            attempt.mode.name,
            attempt.borrow,
            None if attempt.possibility is None else attempt.possibility - 1,
            attempt.no_fit_reason or "",
            sorted(map(sentence, attempt.evidence)),
        ]
        for attempt in merge_attempts(result, cache.queues[case["target"]])
    }


def _only_lacks(wanted: list[Any]) -> bool:
    return bool(wanted[4]) and all("does not provide resource" in reason for reason in wanted[4])


@pytest.mark.parametrize("case", CASES, ids=ids(CASES))
def test_flavors_are_assigned_as_kueue_does(case: dict[str, Any]) -> None:
    cache, assignment = run_assign(case)
    results = {
        result.name: {
            "count": result.count,
            "flavors": {
                resource: [choice.flavor, choice.mode.name, choice.tried_index]
                for resource, choice in result.flavors.items()
            },
            "reasons": sorted(map(sentence, result.evidence)),
            "error": result.error,
        }
        for result in assignment.pod_sets
    }
    expected = {name: {k: v for k, v in want.items() if k != "attempts"} for name, want in case["want"].items()}
    assert results == expected
    assert assignment.mode.name == case["mode"]
    assert assignment.borrowing == case["borrowing"]
    assert (assignment.no_fit_reason or "") == case["noFitReason"]
    usage = {" ".join(cache.ids.names[fr]): to_int64(amount) for fr, amount in assignment.usage.items()}
    assert usage == case["quota"]


@pytest.mark.parametrize("case", CASES, ids=ids(CASES))
def test_attempts_tell_what_was_tried(case: dict[str, Any]) -> None:
    cache, assignment = run_assign(case)
    for result in assignment.pod_sets:
        expected = case["want"][result.name]["attempts"]
        if not expected:
            continue
        results = _attempts(cache, case, result)
        # As in Kueue's own comparison: a flavor that fits may be one that lacks a resource of another group.
        compared = [f for f in results if f in expected and not (results[f][0] == "FIT" and _only_lacks(expected[f]))]
        assert {flavor: results[flavor] for flavor in compared} == {flavor: expected[flavor] for flavor in compared}
        if all(attempt[0] != "FIT" for attempt in results.values()):
            assert set(results) == set(expected)
