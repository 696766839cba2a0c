"""Kueue's own cases of order: which flavor is better, how many pods fit, which head of a cycle goes first."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import pytest
from tests.decide.expand import ids, load_scenarios
from tests.decide.harness import build

from kueue_admission.api.cluster_queue import FlavorFungibility
from kueue_admission.decide.behaviours import Behaviours
from kueue_admission.decide.flavors.assignment import Assignment, Possibility, is_preferred
from kueue_admission.decide.model import (
    ClusterQueue,
    WaitForPodsReady,
    Workload,
    WorkloadStatus,
)
from kueue_admission.decide.pods import PodSet
from kueue_admission.decide.queue.cluster_queue import QueueNode
from kueue_admission.decide.scheduler.cache import Cache
from kueue_admission.decide.scheduler.entry import Entry
from kueue_admission.decide.scheduler.examination import search_counts
from kueue_admission.decide.scheduler.ordering import classical_order, fair_order
from kueue_admission.decide.workload.state import WorkloadInfo, refresh_order

PREFERRED = load_scenarios("preferred")
COUNTS = load_scenarios("pod_counts")
ORDER = load_scenarios("entry_order")
LESS = load_scenarios("entry_less")


@pytest.mark.parametrize("case", PREFERRED, ids=ids(PREFERRED))
def test_which_flavor_is_better(case: dict[str, Any]) -> None:
    a, b = ((Possibility[name], level) for name, level in (case["a"], case["b"]))
    fungibility = FlavorFungibility.model_construct(preference=case.get("preference"))
    assert is_preferred(a, b, fungibility, Behaviours()) is case["want"]


@pytest.mark.parametrize("case", COUNTS, ids=ids(COUNTS))
def test_how_many_pods_fit(case: dict[str, Any]) -> None:
    pod_sets = []
    for number, text in enumerate(case["podSets"]):
        count, _, least = text.partition("/")
        pod_sets.append(PodSet(name=f"ps{number}", count=int(count), min_count=int(least) if least else None))

    def fits(counts: list[int]) -> int | None:
        return sum(counts) if sum(counts) <= case["limit"] else None

    assert search_counts(tuple(pod_sets), fits) == case["want"]


def head(cache: Cache, name: str, uid: str, fields: dict[str, Any], *, by_creation: bool = False) -> WorkloadInfo:
    at, reason = fields.get("evicted", (None, None))
    status = WorkloadStatus(evicted_at=at, evicted_reason=reason, preempted_reason=fields.get("preempted"))
    created, priority = fields.get("created", 0), fields.get("priority", 0)
    info = WorkloadInfo(Workload("default", name, uid, "", (), created=created, priority=priority, status=status))
    refresh_order(info, cache.gates, WaitForPodsReady(requeue_by_eviction=not by_creation))
    return info


@pytest.mark.parametrize("case", ORDER, ids=ids(ORDER))
def test_the_order_of_heads(case: dict[str, Any]) -> None:
    cache, _ = build(case)
    entries = []
    for number, (name, fields) in enumerate(case["entries"].items()):
        info = head(cache, name, f"{number:02}", fields, by_creation=case.get("byCreation", False))
        entry = Entry(info, QueueNode(ClusterQueue(name)), is_preemptor=fields.get("preemptor", False))
        entry.assignment = Assignment()
        entry.assignment.borrowing = fields.get("borrowing", 0)
        entries.append(entry)
    for given in (entries, entries[::-1]):
        assert [entry.info.workload.name for entry in classical_order(given, cache)] == case["want"]


@pytest.mark.parametrize("case", LESS, ids=ids(LESS))
def test_which_of_two_heads_of_a_cohort_goes_first(case: dict[str, Any]) -> None:
    cache, _ = build({**case, "fairSharing": True})
    entries = []
    for name, fields in case["heads"].items():
        info = head(cache, name, name, fields)
        entry = Entry(info, cache.queues[name], is_preemptor=fields.get("preemptor", False))
        entry.assignment = Assignment()
        entry.assignment.usage = {cache.ids.id("default", "cpu"): 1000}
        entries.append(entry)
    for given in permutations(entries):
        assert [entry.info.workload.name for entry in fair_order(list(given), cache)] == case["want"]
