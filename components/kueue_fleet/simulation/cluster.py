"""One cluster on the virtual clock: its engine, when its scheduler runs, and how long its decisions take."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kueue_fleet.admission.decisions import Admitted, Decision, Evicted, QuotaReserved, Released, Requeued
from kueue_fleet.admission.engine import Engine
from kueue_fleet.admission.events import CycleStarted, Event, TimePassed
from kueue_fleet.admission.model import Objects
from kueue_fleet.simulation.agenda import Agenda

Listener = Callable[["SimulatedCluster", Decision, float], None]
"""Called with every decision and the time from which it holds."""

_CHANGES = (QuotaReserved, Admitted, Evicted, Released)
_QUIET_WAKES = 1000


@dataclass(frozen=True, slots=True)
class Delays:
    """How long things take that Kueue does not decide. Seconds; by default everything happens at once.

    `decision`: to write one reservation or eviction; they are written one after the other, and the next cycle waits.
    `release`: from the end of a workload's run until its quota is free. `stop`: from an eviction until its pods are
    gone.
    """

    decision: float = 0.0
    release: float = 0.0
    stop: float = 0.0


class SimulatedCluster:
    """An engine that is given events, and runs cycles by itself as long as they get anywhere.

    Kueue's scheduler never rests while a queue has a head. A cycle that only puts heads back where they were would be
    repeated without end, so cycles stop after as many of those as there are flavors to try, until the next event.
    """

    def __init__(self, name: str, objects: Objects, delays: Delays, listener: Listener) -> None:
        self.name = name
        self.engine = Engine(objects)
        self.changes = 0
        self._delays = delays
        self._listener = listener
        self._busy_until = float("-inf")
        self._fruitless = 0
        most = max((sum(len(group.flavors) for group in queue.groups) for queue in objects.cluster_queues), default=0)
        self._patience = most + 2

    def handle(self, event: Event) -> None:
        """Give the engine an event now."""
        self._fruitless = 0
        for decision in self.engine.handle(event):
            self._hear(decision, event.now)

    def next_wake(self) -> float | None:
        """When a cycle or a timer is due."""
        timer = self.engine.next_timer()
        if self._fruitless > self._patience:
            return timer
        return self._busy_until if timer is None else min(timer, self._busy_until)

    def wake(self, now: float) -> None:
        """Let due timers go off, and run a cycle if one could do anything."""
        timer = self.engine.next_timer()
        if timer is not None and timer <= now:
            self.handle(TimePassed(now))
        if now < self._busy_until or self._fruitless > self._patience:
            return
        if not self.engine.wants_cycle:
            self._fruitless = self._patience + 1
            return
        self._cycle(now)

    def _cycle(self, now: float) -> None:
        written, fruitless = 0, True
        for decision in self.engine.handle(CycleStarted(now)):
            fruitless = fruitless and isinstance(decision, Requeued)
            if isinstance(decision, (QuotaReserved, Evicted)):
                written += 1
            self._hear(decision, now + written * self._delays.decision)
        self._fruitless = self._fruitless + 1 if fruitless else 0
        self._busy_until = now + written * self._delays.decision

    def _hear(self, decision: Decision, at: float) -> None:
        if isinstance(decision, _CHANGES):
            self.changes += 1
        self._listener(self, decision, at)


def drive(agenda: Agenda, clusters: Sequence[SimulatedCluster], start: float, until: float | None) -> float:
    """Let time pass until `until`, or until nothing more happens; the time at the end.

    Timers that only try again what fails each time do not count as something happening.
    """
    now, quiet = start, 0
    while True:
        due = [wake for cluster in clusters if (wake := cluster.next_wake()) is not None]
        if agenda.next_time is not None:
            due.append(agenda.next_time)
        if not due or quiet > _QUIET_WAKES:
            return now if until is None else until
        if until is not None and max(now, min(due)) > until:
            return until
        now = max(now, min(due))
        before = sum(cluster.changes for cluster in clusters)
        happened = agenda.happen(now)
        for cluster in clusters:
            cluster.wake(now)
        changed = happened or agenda.next_time is not None
        quiet = 0 if changed or sum(cluster.changes for cluster in clusters) > before else quiet + 1
