"""The explanation and the decision never disagree, and every change that is said to admit a workload does."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.decide.build import job
from tests.decide.test_properties import NAMES, clusters

from drawn import examples
from kueue_admission.decide.decisions import Decision, Evicted, Parked, QuotaReserved, Requeued
from kueue_admission.decide.engine import Engine
from kueue_admission.decide.events import CycleStarted, PodsStopped, Submitted
from kueue_admission.decide.model import Objects, Snapshot
from kueue_admission.decide.pods import PodSet
from kueue_admission.decide.quota.cohort_tree import TreeNode
from kueue_admission.decide.reasons import RequeueReason
from kueue_admission.explain import Explanation, explain, next_cycles
from kueue_admission.explain.changes import Change
from kueue_admission.explain.next_cycles import look_ahead
from kueue_admission.explain.trials import raise_quota

jobs = st.lists(
    st.tuples(st.sampled_from(NAMES), st.integers(1, 9), st.integers(0, 3)),
    min_size=1,
    max_size=10,
)


def history(made: Objects, arrivals: list[tuple[str, int, int]]) -> Snapshot:
    """A cluster after some cycles."""
    engine = Engine(made)
    for index, (to, cores, priority) in enumerate(arrivals):
        engine.handle(Submitted(float(index), job(f"w{index:02}", cores, to, priority=priority, created=float(index))))
    for step in range(4):
        for decision in engine.handle(CycleStarted(100.0 + step)):
            if isinstance(decision, Evicted):
                engine.handle(PodsStopped(100.0 + step, decision.key))
    return engine.snapshot()


def decided(snapshot: Snapshot, key: str, cycles: int = 30) -> list[Decision]:
    """What the next cycles decide about a workload beside all others that wait; nothing stops meanwhile."""
    engine = Engine.from_snapshot(snapshot)
    result = [d for _ in range(cycles) for d in engine.handle(CycleStarted(snapshot.now))]
    return [d for d in result if d.key == key]


def alone(snapshot: Snapshot, key: str) -> Snapshot:
    kept = tuple(w for w in snapshot.workloads if w.key == key or w.status.admission is not None)
    return replace(snapshot, workloads=kept)


def pending(snapshot: Snapshot) -> list[str]:
    return [w.key for w in snapshot.workloads if w.status.admission is None]


def with_shared_pods(snapshot: Snapshot) -> Snapshot:
    """As when read: pods of equal text are one object."""
    known: dict[tuple[PodSet, ...], tuple[PodSet, ...]] = {}
    shared = (replace(w, pod_sets=known.setdefault(w.pod_sets, w.pod_sets)) for w in snapshot.workloads)
    return replace(snapshot, workloads=tuple(shared))


def check(explanation: Explanation, snapshot: Snapshot) -> None:
    key = explanation.workload
    by_itself = next(
        d for d in decided(alone(snapshot, key), key, 1) if isinstance(d, Parked | Requeued | QuotaReserved)
    )
    if admits(snapshot, key):
        assert explanation.reason == "PendingEvaluation"
        assert "There is room for it" in explanation.headline
        assert not explanation.changes
    elif isinstance(by_itself, QuotaReserved) or by_itself.requeue_reason is RequeueReason.PENDING_PREEMPTION:
        last = [d for d in decided(snapshot, key) if isinstance(d, Parked | Requeued)][-1:]
        assert [(d.reason, d.message) for d in last] in ([], [(explanation.reason, explanation.message)])
        assert explanation.blockers or explanation.victims
    else:
        assert explanation.reason == by_itself.reason
        assert explanation.message == by_itself.message


class TestAgreement:
    @settings(max_examples=examples(25), deadline=None)
    @given(clusters(), jobs)
    def test_the_answer_is_what_the_cycles_decide(self, made: Objects, arrivals: list[tuple[str, int, int]]) -> None:
        snapshot = history(made, arrivals)
        for key in pending(snapshot)[:3]:
            check(explain(snapshot, key), snapshot)

    @settings(max_examples=examples(25), deadline=None)
    @given(clusters(), jobs)
    def test_equal_workloads_that_are_left_out_change_nothing(
        self, made: Objects, arrivals: list[tuple[str, int, int]]
    ) -> None:
        snapshot = with_shared_pods(history(made, [arrival for arrival in arrivals for _ in range(3)]))
        for key in pending(snapshot)[-3:]:
            every = look_ahead(snapshot, key)
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(next_cycles, "MOST_EQUALS", 1)
                few = look_ahead(snapshot, key)
            assert (few.outcome, few.reason, few.message, few.turns) == (
                every.outcome, every.reason, every.message, every.turns,
            )  # fmt: skip

    @settings(max_examples=examples(25), deadline=None)
    @given(clusters(), jobs)
    def test_changes_do_what_they_say(self, made: Objects, arrivals: list[tuple[str, int, int]]) -> None:
        snapshot = history(made, arrivals)
        for key in pending(snapshot)[:2]:
            explanation = explain(snapshot, key)
            assert explain(snapshot, key) == explanation
            for change in explanation.changes:
                if not change.admits or change.preempts:
                    continue
                if change.kind == "finish" and " more " not in change.what:
                    wait_for(snapshot, key, change)
                elif change.kind in ("nominalQuota", "lendingLimit") and ", and raise" not in change.what:
                    raise_by_the_least(snapshot, key, change)


def admits(snapshot: Snapshot, key: str) -> bool:
    return any(isinstance(decision, QuotaReserved) for decision in decided(snapshot, key))


def wait_for(snapshot: Snapshot, key: str, change: Change) -> None:
    ends = set(change.what.replace(",", "").split())
    left = tuple(w for w in snapshot.workloads if w.key not in ends)
    assert len(left) < len(snapshot.workloads)
    assert admits(replace(snapshot, workloads=left), key)


def raise_by_the_least(snapshot: Snapshot, key: str, change: Change) -> None:
    _, _, field, _, _, owner, _, _, flavor, *_ = change.what.replace(":", "").split()
    by = 1000 * int(change.what.partition("cpu by ")[2].partition(",")[0])
    [node] = [node for node in every_node(Engine(snapshot.objects)) if node.name == owner]
    assert admits(raise_quota(node, flavor, field, {"cpu": by}).on(snapshot, key), key)
    assert not admits(raise_quota(node, flavor, field, {"cpu": by - 1}).on(snapshot, key), key)


def every_node(engine: Engine) -> list[TreeNode]:
    return [*engine.cache.queues.values(), *engine.cache.cohorts.values()]
