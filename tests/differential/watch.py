"""What Kueue's log tells about the scenarios of a batch, while it runs."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.differential import states
from tests.differential.parts import Parts
from tests.differential.settings import LATEST, keeps_progress
from tests.differential.steps import submitted
from tests.differential.trace import Line, Log, Trace

Json = dict[str, Any]

LONGEST_CYCLE_SECONDS = 0.5


class Scenario:
    """One scenario of a batch as it runs: its objects, what it waits for, where it stands, and the answer so far."""

    def __init__(self, case: Json, prefix: str, batch: str) -> None:
        self.case = case
        self.prefix = prefix
        self.parts = Parts(case, prefix, batch)
        self.trace = Trace(self._is_alone, writes_matter=not keeps_progress(case.get("release", LATEST)))
        self.event: list[Any] | None = ["start"]
        self.waits_for: tuple[str, str, float] | None = None
        """The message, the object's name and the earliest time of the line that says Kueue saw the event."""
        self.done = 0
        self.over = False
        self.states: dict[str, str] = {}
        self.stopped_locals: set[str] = set()
        self.getting_ready: dict[str, float] = {}
        self.answer: Json = {"made": {}, "rounds": []}
        self.workloads = submitted(case)

    def _is_alone(self, name: str) -> bool:
        """Whether a workload's ClusterQueue is in no cohort."""
        return "cohortName" not in self.case["queues"][self.case["localQueues"][self.workloads[name]["queue"]]]


class Watch:
    """Sorts the lines of Kueue's log by scenarios.

    `made_ready` is called for an admitted workload whose pods are to get ready.
    """

    def __init__(
        self, log: Path, scenarios: list[Scenario], batch: str, made_ready: Callable[[Scenario, str], None]
    ) -> None:
        self.log = Log(log)
        self.by_prefix = {one.prefix: one for one in scenarios}
        self.pattern = re.compile(f"^({re.escape(batch)}-\\d+-)(.*)$")
        self.first_cycle = 0
        self.last_active = 0.0
        """When Kueue last did something new; a Unix time."""
        self.unseen: set[str] = set()
        """Workloads that the scheduler has admitted, or whose pods are ready, and whose objects do not say so yet."""
        self._made_ready = made_ready
        self._cycle: Line | None = None
        self._cycle_is_open = False
        self._in_cycle: set[Scenario] = set()

    def is_idle(self, seconds: float) -> bool:
        """Whether Kueue did nothing new for so long and has nothing under way."""
        now = time.time()
        busy = self._cycle_is_open and self._cycle is not None and now - self._cycle.at > LONGEST_CYCLE_SECONDS
        waiting = self.unseen or any(one.waits_for for one in self.by_prefix.values())
        return now - self.last_active > seconds and not busy and not waiting

    def match(self, name: str) -> tuple[Scenario, str] | None:
        """The scenario an object belongs to, and its name there."""
        match = self.pattern.match(name)
        return None if match is None else (self.by_prefix[match[1]], match[2])

    def read(self) -> None:
        """Takes note of everything Kueue has logged since the last time."""
        for line in self.log.read():
            if line.text == "Obtained heads":
                self._cycle, self._cycle_is_open = line, True
            elif line.text == "Scheduling cycle complete":
                self._cycle_is_open = False
                for one in self._in_cycle:
                    if one.trace.complete(line.data["schedulingCycle"]):
                        self.last_active = time.time()
                self._in_cycle.clear()
            elif line.text in ("Attempting to move workloads", "Resetting the head of the ClusterQueue"):
                self._moved(line)
            elif line.text.startswith("Updated AFS"):
                self._sampled(line)
            elif "schedulingCycle" in line.data and "workload" in line.data:
                self._scheduled(line)
            else:
                self._changed(line)

    def _moved(self, line: Line) -> None:
        """A cohort tree, or a queue that is in none, was looked at again."""
        root = line.data.get("rootCohort")
        result = self.match(root or line.data["clusterQueue"])
        if result is not None and (root or "cohortName" not in result[0].case["queues"][result[1]]):
            one = result[0]
            if one.waits_for and one.waits_for[0] == "Reconcile Node" and line.at >= one.waits_for[2]:
                self._saw_event(one, line)
            one.trace.add(line, "m", result[1])

    def _saw_event(self, one: Scenario, line: Line) -> None:
        """Kueue has seen the event of the round; of a node, parts of it look at their queues before the log says so."""
        one.trace.add(line, "e")
        one.waits_for = None
        self.last_active = time.time()

    def _sampled(self, line: Line) -> None:
        data = line.data
        result = self.match(data["localQueue"]["name"] if "localQueue" in data else data["name"])
        if result is None:
            return
        one, name = result
        if "consumed" in data:
            one.trace.add(line, "s", name, data["consumed"], data["workload"]["name"].removeprefix(one.prefix))
        elif data["consumedResources"]:
            one.trace.add(line, "t", name, data["consumedResources"])

    def _scheduled(self, line: Line) -> None:
        result = self.match(line.data["workload"]["name"])
        if result is None or self._cycle is None:
            return
        one, name = result
        self.first_cycle = self.first_cycle or line.data["schedulingCycle"]
        cycle = one.trace.cycle(self._cycle)
        self._in_cycle.add(one)
        if line.text == "Attempting to schedule workload":
            cycle.order.append(name)
        elif line.text == "Workload assumed in the cache":
            cycle.outcomes[name] = "assumed"
            if not one.states.get(name, "").startswith(states.ADMITTED):
                # The new place of pods that had one may be the old one, which is no change to see.
                self.unseen.add(one.prefix + name)
        elif line.text == "Workload re-queued":
            self.unseen.discard(one.prefix + name)
            cycle.outcomes[name] = line.data["requeueReason"] or "generic"
        elif line.text == "Workload re-queued for second pass":
            cycle.outcomes[name] = "secondPass"
        else:
            cycle.outcomes[name] = "accounted"

    def _changed(self, line: Line) -> None:
        """Kueue sees an object that was made, changed or deleted."""
        data = line.data
        item = data.get("workload") or data.get("clusterQueue") or data.get("localQueue")
        if line.text == "Reconcile Node":
            item = data
        result = self.match(item["name"]) if item else None
        if result is None:
            return
        one, name = result
        holds = "workload" in data and data["status"] in ("quotaReserved", "admitted")
        if holds or data.get("status") == "finished" or line.text == "Workload delete event":
            self.unseen.discard(one.prefix + name)
        if holds:
            one.trace.add(line, "u", name)
            self.last_active = time.time()
            self._ready(one, name, line)
        if one.waits_for and one.waits_for[:2] == (line.text, one.prefix + name) and line.at >= one.waits_for[2]:
            self._saw_event(one, line)
        elif line.text == "Workload update event" and data["status"] == "pending":
            one.trace.add(line, "p", name)
        elif data.get("status") == "finished":
            one.trace.add(line, "f", name)

    def _ready(self, one: Scenario, name: str, line: Line) -> None:
        """The pods of an admitted workload get ready, if the workload is marked so; or Kueue has seen it."""
        if one.states.get(name, "").startswith(states.ADMITTED) or not one.workloads[name].get("ready"):
            return
        sent = one.getting_ready.get(name)
        if sent is None and line.data["status"] == "admitted":
            one.getting_ready[name] = time.time()
            self.unseen.add(f"{one.prefix}{name} ready")
            self._made_ready(one, name)
        elif sent is not None and line.at > sent and f"{one.prefix}{name} ready" in self.unseen:
            self.unseen.discard(f"{one.prefix}{name} ready")
            one.trace.add(line, "r", name)
