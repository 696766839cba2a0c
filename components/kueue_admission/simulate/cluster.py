"""One cluster on the virtual clock: its engine, when its scheduler runs, and how long its decisions take."""

from __future__ import annotations

from collections.abc import Callable

from kueue_admission.decide.decisions import (
    Admitted,
    BackoffStarted,
    ChecksPending,
    Deactivated,
    Decision,
    Evicted,
    Inadmissible,
    NodesReplaced,
    Parked,
    Queued,
    QuotaReserved,
    Released,
    Replaced,
    Requeued,
)
from kueue_admission.decide.engine import Engine
from kueue_admission.decide.events import CycleStarted, Deleted, Event, Finished, TimePassed
from kueue_admission.decide.model import Objects
from kueue_admission.simulate.contention import Contended, Contention
from kueue_admission.simulate.delays import Delays, DrawnDelays, Writer

Listener = Callable[["SimulatedCluster", Decision, float], None]
"""Called with every decision and the time from which it holds."""

_CHANGES = (QuotaReserved, Admitted, Evicted, Released, Replaced)


class SimulatedCluster:
    """An engine that is given events, and runs cycles as long as they change anything.

    Kueue's scheduler never rests while a queue has a head. A cycle that only puts heads back where they were would be
    repeated indefinitely, so cycles stop after `patience` of those, as many as there are flavors to try, until the next
    event.
    """

    def __init__(self, name: str, objects: Objects, delays: Delays, listener: Listener, seed: int = 0) -> None:
        self.name = name
        self.engine = Engine(objects)
        self.changes = 0
        self.touch: Callable[[], object] = _ignore
        """Called when anything is done to it."""
        self._delays = DrawnDelays(delays, f"{seed}:{name}")
        self._listener = listener
        self._busy_until = float("-inf")
        self._fruitless = 0
        self._writer = Writer(delays.decision, delays.burst)
        self._said: dict[str, tuple[object, str]] = {}
        self._begun: dict[str, float] = {}
        most = max((sum(len(group.flavors) for group in queue.groups) for queue in objects.cluster_queues), default=0)
        self.patience = most + 2
        self._contention = Contention()

    def handle(self, event: Event) -> None:
        """Give the engine an event now."""
        self.touch()
        self._fruitless = 0
        self._contention.see(event)
        for decision in self.engine.handle(event):
            self._hear(decision, self._evict(decision, event.now) if isinstance(decision, Evicted) else event.now)
        if isinstance(event, (Finished, Deleted)):
            self._begun.pop(event.key, None)
            self._said.pop(event.key, None)

    def contended(self) -> list[Contended]:
        """Workloads that were preempted for each other again and again."""
        return self._contention.found(self.name)

    def next_wake(self) -> float | None:
        """When a cycle or a timer is due."""
        timer = self.engine.next_timer()
        if self._fruitless <= self.patience and self._busy_until <= self.engine.now and not self.engine.wants_cycle:
            # To be asked at once whether it wants a cycle would be a step of the clock in which nothing happens.
            self._fruitless = self.patience + 1
        if self._fruitless > self.patience:
            return timer
        return self._busy_until if timer is None else min(timer, self._busy_until)

    def wake(self, now: float) -> None:
        """Let due timers go off, and run a cycle if one could do anything."""
        self.touch()
        timer = self.engine.next_timer()
        if timer is not None and timer <= now:
            self.handle(TimePassed(now))
        if now < self._busy_until or self._fruitless > self.patience:
            return
        if not self.engine.wants_cycle:
            self._fruitless = self.patience + 1
            return
        self._cycle(now)

    def _cycle(self, now: float) -> None:
        fruitless, moment = True, now + self._delays.cycle(now)
        at = moment
        for decision in self.engine.handle(CycleStarted(now, self._contention.left_out(self.engine))):
            match decision:
                case QuotaReserved():
                    turn = self._writer.write(moment)
                    at = self._begun[decision.key] = turn + self._delays.start(turn)
                case Evicted():
                    at = moment = self._evict(decision, moment)
                case Requeued() | Parked():
                    at = moment = self._explain(decision, moment)
                case Queued() | Inadmissible() | Released() | BackoffStarted() | Deactivated():
                    at = moment
                case ChecksPending() | Admitted() | Replaced() | NodesReplaced():
                    pass  # Written with the reservation.
            fruitless = fruitless and isinstance(decision, Requeued)
            self._hear(decision, at)
        self._fruitless = self._fruitless + 1 if fruitless else 0
        self._busy_until = moment

    def _explain(self, decision: Requeued | Parked, moment: float) -> float:
        """When it is written why a workload waits; nothing is written that is there already."""
        reason_and_message = (decision.reason, decision.message)
        if self._said.get(decision.key) == reason_and_message:
            return moment
        self._said[decision.key] = reason_and_message
        return self._write(moment)

    def _write(self, moment: float) -> float:
        """When the scheduler continues, which waits for what it writes."""
        turn = self._writer.write(moment)
        return turn + self._delays.write(turn)

    def _evict(self, decision: Evicted, moment: float) -> float:
        return max(self._write(moment), self._begun.pop(decision.key, moment))

    def _hear(self, decision: Decision, at: float) -> None:
        if isinstance(decision, _CHANGES):
            self.changes += 1
            self._said.pop(decision.key, None)
            if isinstance(decision, Evicted):
                self._contention.hear(decision)
        self._listener(self, decision, at)


def _ignore() -> None:
    """No clock drives the cluster."""
