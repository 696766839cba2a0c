"""Kueue's own tables of preemption cases."""

from __future__ import annotations

from typing import Any

import pytest
from tests.decide.expand import ids, load_scenarios
from tests.decide.harness import build, given_assignment, one_workload

from kueue_admission.decide.preemption.preemptor import find_targets
from kueue_admission.decide.quota.cohort_tree import TreeNode

CLASSICAL = load_scenarios("preemption") + load_scenarios("preemption_hierarchical")
FAIR = [{"fairSharing": True, **case} for case in load_scenarios("preemption_fair")]


def _books(nodes: list[TreeNode]) -> dict[str, dict[int, int]]:
    return {node.name: {fr: used for fr, used in node.usage.items() if used} for node in nodes}


def _run(case: dict[str, Any]) -> tuple[dict[str, str], int]:
    cache, _ = build(case)
    info = cache.info(one_workload("default/in", {"uid": "wl-in", **case["incoming"]}))
    info.cluster_queue = case["target"]
    info.admission, info.usage = None, ()
    cache.refresh(info)
    info.cluster_queue = case["target"]
    nodes = [*cache.queues.values(), *cache.cohorts.values()]
    before = _books(nodes)
    assignment = given_assignment(cache, info, case["assign"], case.get("counts", {}))
    targets = find_targets(cache, info, assignment)
    assert _books(nodes) == before
    fresh = {target.info.key: target.reason.value for target in targets if not target.info.is_evicted}
    return fresh, len(targets)


@pytest.mark.parametrize("case", CLASSICAL, ids=ids(CLASSICAL))
def test_classical_preemption_takes_kueues_targets(case: dict[str, Any]) -> None:
    fresh, total = _run(case)
    assert fresh == case["want"]
    assert total == case["preempted"]


@pytest.mark.parametrize("case", FAIR, ids=ids(FAIR))
def test_fair_sharing_takes_kueues_targets(case: dict[str, Any]) -> None:
    fresh, _ = _run(case)
    assert fresh == case["want"]
