"""What Kueue had settled at the end of each round of the corpus, as the dump of a live cluster: nothing gets quota."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from tests.differential import corpus
from tests.differential.compare import differs
from tests.differential.replay import Chance, Replay, chances_for

from kueue_admission.decide.decisions import Decision, Evicted, QuotaReserved
from kueue_admission.decide.events import Submitted
from kueue_admission.decide.model import Snapshot
from kueue_admission.simulate.cluster import SimulatedCluster
from kueue_admission.simulate.delays import Delays

Json = dict[str, Any]

EVERY = 40
"""One of so many scenarios is looked at: together they take seconds."""


def settled(case: Json, answer: Json, chance: Chance) -> Iterator[tuple[Snapshot, set[str]]]:
    """The cluster at the end of each round, and the workloads that a cycle has left without quota."""
    run = Replay(case, answer["made"], chance)
    for one in answer["rounds"]:
        for _ in run.play(one, set()):
            pass
        yield run.engine.snapshot(), set(run.evaluated)


def decided_at_once(snapshot: Snapshot, evaluated: set[str]) -> list[Decision]:
    """What is decided in the moment of the dump."""
    result: list[Decision] = []
    cluster = SimulatedCluster("", snapshot.objects, Delays(), lambda _, decision, at: result.append(decision))
    workloads = [
        replace(item, status=replace(item.status, evaluated="said" if item.key in evaluated else None))
        for item in snapshot.workloads
    ]
    for entry in sorted(workloads, key=lambda each: (each.status.admission is None, each.status.evaluated is None)):
        cluster.handle(Submitted(snapshot.now, entry, resumed=True))
    while (wake := cluster.next_wake()) is not None and wake <= snapshot.now:
        cluster.wake(snapshot.now)
    return result


def test_what_waits_in_a_settled_cluster_gets_nothing_at_first() -> None:
    waiting, wrong = 0, []
    for case, answer in corpus.load()[::EVERY]:
        for chance in chances_for(case):
            if differs(case, answer, chance, set()) is None:
                for number, (snapshot, evaluated) in enumerate(settled(case, answer, chance)):
                    waiting += sum(item.status.admission is None for item in snapshot.workloads)
                    given = [
                        entry
                        for entry in decided_at_once(snapshot, evaluated)
                        if isinstance(entry, QuotaReserved | Evicted)
                    ]
                    wrong += [f"{case['name']}, round {number}: {each}" for each in given]
                break
    assert not wrong, "\n".join(wrong)
    assert waiting > 500
