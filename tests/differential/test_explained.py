"""`explain` on clusters that the real Kueue has settled: what Kueue leaves pending is never said to get quota next."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.differential import corpus, states
from tests.differential.compare import way
from tests.differential.replay import Replay

from drawn import some_of
from kueue_fleet.admission.scheduler.entry import Outcome
from kueue_fleet.explain import Condition
from kueue_fleet.explain.diagnosis import Diagnosis, diagnose, only_relevant
from kueue_fleet.explain.written import compare

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
                found = diagnose(only_relevant(snapshot, workload.key), workload.key)
                yield f"{case['name']}, round {number}, {workload.name}", reason, found


def test_no_workload_that_kueue_leaves_pending_is_said_to_get_quota_next() -> None:
    """Where Kueue has not looked again at what it once refused, the answer disagrees with Kueue, and says so."""
    promised, disagreed, looked_at, blocked = [], 0, 0, 0
    for case, answer in some_of(some_of(corpus.load(), "settled"), "clusters"):
        for where, reason, found in left_pending(case, answer):
            looked_at += 1
            blocked += found.fits and not found.admits
            if found.outlook is None or found.outlook.outcome is not Outcome.ADMITTED:
                continue
            written = compare(Condition(reason, "by Kueue", is_current=True) if reason else None, found)
            if written is None or written.agrees:
                promised.append(f"{where}: {reason}")
            else:
                disagreed += 1
    assert not promised, f"{len(promised)} of {looked_at}\n" + "\n".join(promised[:20])
    assert disagreed * 100 < looked_at
    assert blocked
