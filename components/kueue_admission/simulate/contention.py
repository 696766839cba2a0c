"""Workloads that take quota from each other in turn, until one of them comes a cycle too late.

One workload preempts another, which gives its quota back and is in its queue again at once; if it is considered before
the preemptor there, it has its quota again, and is preempted again. In Kueue that ends by chance: at some time a cycle
takes its heads after the quota is free and before the workload is back in its queue. Here it ends after `TURNS` turns.

Two workloads of which each preempts the other, however the cycles come, never end in Kueue. After twice as many turns
the one that was preempted last waits here until something happens that does not concern the two.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from kueue_admission.decide.decisions import Evicted
from kueue_admission.decide.engine import Engine
from kueue_admission.decide.events import Deleted, Event, Finished, ObjectsChanged, Submitted
from kueue_admission.decide.reasons import EvictionReason

TURNS: Final = 4
"""After so many preemptions for the same workload, the one that was preempted is late for a cycle."""


@dataclass(frozen=True, slots=True)
class Contended:
    """A workload that was preempted for the same other one again and again, and how often; `cluster` is where."""

    cluster: str
    preemptor: str
    preempted: str
    times: int


class Contention:
    """What is contended on one cluster, and who is left out of its next cycle for that."""

    def __init__(self) -> None:
        self._turns: dict[tuple[str, str], int] = {}
        self._contended: set[str] = set()
        self._late: dict[str, str] = {}
        self._waiting: dict[str, str] = {}

    def hear(self, decision: Evicted) -> None:
        """A workload is evicted."""
        if decision.reason is not EvictionReason.PREEMPTED:
            self._waiting.clear()
            return
        pair = decision.preemptor, decision.key
        turns = self._turns[pair] = self._turns.get(pair, 0) + 1
        if turns >= TURNS:
            self._contended.update(pair)
            (self._late if turns < 2 * TURNS else self._waiting)[decision.key] = decision.preemptor

    def see(self, event: Event) -> None:
        """Something else happens: who waits for that competes again."""
        if not self._waiting:
            return
        match event:
            case ObjectsChanged() | Finished():
                self._waiting.clear()
            case Submitted() | Deleted():
                key = event.workload.key if isinstance(event, Submitted) else event.key
                if key not in self._contended:
                    self._waiting.clear()
                elif isinstance(event, Deleted):
                    self._waiting = {late: by for late, by in self._waiting.items() if by != key}

    def left_out(self, engine: Engine) -> frozenset[str]:
        """Who is not in its queue when the next cycle takes its heads."""
        if not self._late and not self._waiting:
            return frozenset()
        free = {key for key in (*self._late, *self._waiting) if key in engine.workloads}
        keys_left = frozenset(key for key in free if not engine.workloads[key].is_reserved)
        for key in keys_left:
            self._late.pop(key, None)
        return keys_left

    def found(self, cluster: str) -> list[Contended]:
        """Every pair, most contended first."""
        pairs = [Contended(cluster, *pair, turns) for pair, turns in self._turns.items() if turns >= TURNS]
        return sorted(pairs, key=lambda pair: (-pair.times, pair.preemptor, pair.preempted))
