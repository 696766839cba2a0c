"""What the log of Kueue says of one run of its performance harness (`--withLogs --withLogsLevel=2`).

From the lines of minimalkueue.err.log: when what happened, in seconds; what these times mean is `harness_delays`'.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

_MESSAGES: Final = {
    "Obtained heads": "heads",
    "Workload assumed in the cache": "assumed",
    "Workload create event": "created",
    "Workload processing done": "done",
    "Workload re-queued": "requeued",
    "Workload update event": "updated",
}


@dataclass(slots=True, eq=False)
class Call:
    """A call that writes a Workload: when it is made, when the scheduler goes on, when Kueue hears of the change.

    One that is never heard of was none: what it says stands there already.
    """

    made: float
    goes_on: float | None = None
    heard: float | None = None


@dataclass(slots=True)
class HarnessLog:
    """By Workload where it is a mapping. `cycles`: when those that preempt nobody began, and had decided.

    `stopped`: when Kueue heard of an eviction, and when that its quota is free.
    """

    created: dict[str, float] = field(default_factory=dict)
    cycles: list[tuple[float, float]] = field(default_factory=list)
    reservations: list[Call] = field(default_factory=list)
    explanations: list[Call] = field(default_factory=list)
    evictions: list[Call] = field(default_factory=list)
    admitted: dict[str, float] = field(default_factory=dict)
    finished: dict[str, float] = field(default_factory=dict)
    stopped: list[tuple[float, float]] = field(default_factory=list)


def read_log(lines: Iterable[str]) -> HarnessLog:
    """What these lines say; lines that say something else are passed over."""
    reader = _Reader()
    for line in lines:
        parts = line.split("\t")
        what = _MESSAGES.get(parts[4]) if len(parts) > 5 else None
        if what is not None:
            reader.take(_seconds(parts[0]), what, json.loads(parts[5]))
    return reader.log


def class_of(workload: str) -> str:
    """The class of a Workload: the first part of its name."""
    return workload.partition("/")[2].partition("-")[0]


def _seconds(text: str) -> float:
    second, _, fraction = text.rstrip("Z").partition(".")
    return datetime.fromisoformat(f"{second}+00:00").timestamp() + float(f"0.{fraction or 0}")


class _Reader:
    def __init__(self) -> None:
        self.log = HarnessLog()
        self._cycle_began: float | None = None
        self._explaining: Call | None = None
        self._explained: dict[str, Call] = {}
        self._reserved: dict[str, Call] = {}
        self._evicted: dict[str, float] = {}

    def take(self, time: float, what: str, data: dict[str, Any]) -> None:
        if what == "heads":
            self._cycle_began, self._explaining = time, None
            return
        if what == "done":
            self._go_on(time, preempts=False)
            return
        workload = f"{data['workload']['namespace']}/{data['workload']['name']}"
        match what:
            case "requeued":
                self._go_on(time, preempts=data.get("requeueReason") == "PendingPreemption")
                self._explaining = self._explained[workload] = Call(time)
                self.log.explanations.append(self._explaining)
            case "assumed":
                self._reserved[workload] = Call(time)
                self.log.reservations.append(self._reserved[workload])
            case "created":
                self.log.created.setdefault(workload, time)
            case _:
                self._change(time, workload, data.get("prevStatus"), data["status"])

    def _go_on(self, time: float, *, preempts: bool) -> None:
        """The scheduler is through with what it did until now: deciding, or saying why a workload waits."""
        if self._explaining is not None:
            self._explaining.goes_on = time
        elif self._cycle_began is not None and not preempts:
            self.log.cycles.append((self._cycle_began, time))
        self._cycle_began = self._explaining = None

    def _change(self, time: float, workload: str, before: str | None, status: str) -> None:
        """Kueue hears of a change; `before` is None where the status is the same."""
        match before, status:
            case (None, "pending"):
                _hear(self._explained.get(workload), time)
            case ("pending", "admitted"):
                _hear(self._reserved.get(workload), time)
                self.log.admitted[workload] = time
            case (None, "admitted"):
                self._evicted[workload] = time
                self.log.evictions.append(Call(time, time, time))
            case ("admitted", "pending"):
                self.log.stopped.append((self._evicted.pop(workload, time), time))
            case ("admitted", "finished"):
                self.log.finished.setdefault(workload, time)


def _hear(call: Call | None, time: float) -> None:
    if call is not None and call.heard is None:
        call.heard = time
