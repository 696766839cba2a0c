"""`explain` on clusters that the real Kueue has settled: what Kueue leaves pending is never said to get quota next."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests.differential import corpus, states
from tests.differential.compare import way
from tests.differential.replay import CHANCES, Replay

from drawn import some_of
from kueue_admission.decide.scheduler.entry import Outcome
from kueue_admission.explain import Condition, Explanation, explain
from kueue_admission.explain.diagnosis import Diagnosis, diagnose, only_relevant
from kueue_admission.explain.written import compare

Json = dict[str, Any]


def left_pending(case: Json, answer: Json) -> Iterator[tuple[str, str, Diagnosis]]:
    """Every workload that Kueue leaves pending at the end of a round: where, Kueue's reason, and what we find."""
    chosen = way(case, answer)
    assert not isinstance(chosen, str)
    run = Replay(case, answer["made"], chosen[0])
    standing: dict[str, str] = {}
    for number, one in enumerate(answer["rounds"]):
        for _ in run.play(one, chosen[1]):
            pass
        standing.update(one["changes"])
        snapshot = run.engine.snapshot()
        for workload in snapshot.workloads:
            kind, _, reason = standing.get(workload.name, "").partition(" ")
            if kind == states.PENDING and workload.status.admission is None:
                result = diagnose(only_relevant(snapshot, workload.key), workload.key)
                yield f"{case['name']}, round {number}, {workload.name}", reason, result


def test_no_workload_that_kueue_leaves_pending_is_said_to_get_quota_next() -> None:
    """Where Kueue has not looked again at what it once refused, the answer disagrees with Kueue, and says so."""
    promised, disagreed, looked_at, blocked = [], 0, 0, 0
    for case, answer in some_of(some_of(corpus.load(), "settled"), "clusters"):
        for where, reason, result in left_pending(case, answer):
            looked_at += 1
            blocked += result.fits and not result.admits
            if result.outlook is None or result.outlook.outcome is not Outcome.ADMITTED:
                continue
            written = compare(Condition(reason, "by Kueue", is_current=True) if reason else None, result)
            if written is None or written.agrees:
                promised.append(f"{where}: {reason}")
            else:
                disagreed += 1
    assert not promised, f"{len(promised)} of {looked_at}\n" + "\n".join(promised[:20])
    assert disagreed * 100 < looked_at
    assert blocked


def reported() -> dict[str, tuple[Json, Json]]:
    """What people reported, with the names of the reports, and the same with one thing changed."""
    records = [one for path in corpus.FOLDER.glob("asked-*") for one in corpus.read(path)]
    return {case["name"]: (case, answer) for case, answer in records}


def last_of(case: Json, answer: Json) -> Explanation:
    """What `explain` says of the last workload when all have come."""
    run = Replay(case, answer["made"], CHANCES[0])
    for one in answer["rounds"]:
        for _ in run.play(one, set()):
            pass
    return explain(run.engine.snapshot(), max(run.engine.workloads))


WITH = {
    "any": "set preemption.reclaimWithinCohort of ClusterQueue q0 to Any",
    "best-effort": "set queueingStrategy of ClusterQueue q0 to BestEffortFIFO",
    "priority": "give the workload priority 1 or more (it has 0)",
    "quota-raised": "raise the nominalQuota of ClusterQueue q1 in flavor f1: cpu by 1, from 0 to 1",
    "finished": "wait until default/w01 has finished",
    "borrowing": "set preemption.borrowWithinCohort.policy of ClusterQueue q0 to LowerPriority",
}
"""By the name of the scenario with it: the change that is offered if the real Kueue admits the workload then."""


@pytest.mark.parametrize("name", WITH)
def test_a_change_is_offered_if_the_real_kueue_admits_with_it(name: str) -> None:
    """kueue#4809: a StrictFIFO queue holds back what another queue could borrow."""
    known = reported()
    offered = {change.what for change in last_of(*known["asked-4809-reported"]).changes if change.admits}
    rounds = known[f"asked-4809-{name}"][1]["rounds"]
    states = [one["changes"]["w03"] for one in rounds if "w03" in one["changes"]]
    assert (WITH[name] in offered) is states[-1].startswith("Admitted")


@pytest.mark.parametrize("name", ["reported", "never", "borrowing"])
def test_who_holds_back_is_named_where_the_real_kueue_admits_nothing(name: str) -> None:
    case, answer = reported()[f"asked-4809-{name}"]
    assert answer["rounds"][-1]["changes"]["w03"] == "Pending WaitingForQuota"
    assert [(one.workload, one.does) for one in last_of(case, answer).blockers] == [("default/w02", "holdsBack")]
