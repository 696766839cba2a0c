"""Kueue's own tables of quota arithmetic and of dominant resource shares."""

from __future__ import annotations

from typing import Any

import pytest
from tests.decide.expand import ids, load_scenarios
from tests.decide.harness import build

from kueue_admission.decide.amounts import to_int64
from kueue_admission.decide.quota.cohort_tree import TreeNode, add_usage, available, remove_usage
from kueue_admission.decide.quota.shares import dominant_share
from kueue_admission.decide.scheduler.cache import Cache

AVAILABLE = load_scenarios("available")
SHARES = load_scenarios("shares")


def _fr(cache: Cache, text: str) -> int:
    flavor, _, resource = text.partition(" ")
    return cache.ids.id(flavor, resource)


def _free(cache: Cache, wanted: dict[str, dict[str, int]]) -> dict[str, dict[str, int]]:
    return {
        name: {text: to_int64(available(cache.queues[name], _fr(cache, text))) for text in amounts}
        for name, amounts in wanted.items()
    }


def _use(cache: Cache, usage: dict[str, dict[str, int]], change: Any) -> None:
    for name, amounts in usage.items():
        for text, amount in amounts.items():
            change(cache.queues[name], _fr(cache, text), amount)


@pytest.mark.parametrize("case", AVAILABLE, ids=ids(AVAILABLE))
def test_available_and_potential_quota(case: dict[str, Any]) -> None:
    cache, _ = build(case)
    assert _free(cache, case["potential"]) == case["potential"]
    potential = {
        name: {text: to_int64(cache.queues[name].potential[_fr(cache, text)]) for text in amounts}
        for name, amounts in case["potential"].items()
    }
    assert potential == case["potential"]
    _use(cache, case["usage"], add_usage)
    assert _free(cache, case["available"]) == case["available"]
    _use(cache, case["usage"], remove_usage)
    assert _free(cache, case["potential"]) == case["potential"]


@pytest.mark.parametrize("case", SHARES, ids=ids(SHARES))
def test_dominant_resource_shares(case: dict[str, Any]) -> None:
    cache, _ = build(case)
    _use(cache, case["usage"], add_usage)
    extra = {_fr(cache, text): amount for text, amount in case["extra"].items()}
    nodes: dict[str, TreeNode] = {f"queue {name}": node for name, node in cache.queues.items()}
    nodes.update({f"cohort {name}": node for name, node in cache.cohorts.items()})
    result = {}
    for name, node in nodes.items():
        share = dominant_share(node, cache.ids, extra)
        result[name] = [share.rounded, share.dominant, share.is_borrowing]
    assert result == case["want"]
