"""How long things take that Kueue does not decide, constant or drawn. By default everything happens at once."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, fields
from heapq import heappop, heappush
from typing import Final

from kueue_admission.kernel.form_rules import FaultError
from kueue_admission.kernel.job_rules import OPTION
from kueue_admission.kernel.syntax import whole_number
from kueue_admission.simulate.distributions import Changing, Distribution, constant, read_distribution
from kueue_admission.simulate.errors import SimulationError

_NOTHING: Final = constant(0.0)
_NUMBERS: Final = {"burst": "writes", "workers": "workers"}

Delay = Distribution | Changing
"""How long something takes: always the same, drawn, or as it is measured at different times."""


@dataclass(frozen=True, slots=True)
class Delays:
    """Seconds.

    `decision`: between two writes to the status of Workloads, in the long run: reservations (the scheduler continues
    meanwhile), evictions, and why a workload still waits, where that has changed (the scheduler waits).
    `burst` of them go through at once after a rest. `cycle`: what a cycle takes before its first write that it waits
    for. `write`: what one of those takes itself. `start`: from a reservation's turn to be written until the job
    knows of it. `release`: from the end of a job's run until its quota is free; `workers` of these at a time, further
    ones wait in line (0: all at once). `stop`: from an eviction until the pods are gone, and with them the quota.
    """

    decision: float = 0.0
    burst: int = 0
    cycle: Delay = _NOTHING
    write: Delay = _NOTHING
    start: Delay = _NOTHING
    release: Delay = _NOTHING
    workers: int = 0
    stop: Delay = _NOTHING


def parse_delays(texts: list[str], delays: Delays) -> Delays:
    """The delays `delays`, with those that `name=seconds` says otherwise. Raises SimulationError with every mistake."""
    values = {field.name: getattr(delays, field.name) for field in fields(Delays)}
    problems = []
    for text in texts:
        name, equals, value = text.partition("=")
        if name not in values or not equals:
            problems.append(OPTION.at(f"--delay {text!r}", "is not name=seconds", f"names are {', '.join(values)}"))
            continue
        try:
            values[name] = _parse(name, value)
        except FaultError as error:
            problems.append(OPTION.at(f"--delay {name}", f"{value!r} {error.fault.wrong}", error.fault.fix))
    if problems:
        raise SimulationError(problems)
    return Delays(**values)


def _parse(name: str, text: str) -> float | int | Distribution:
    if name in _NUMBERS:
        count = whole_number(text)
        if count is None:
            raise FaultError(f"is not a number of {_NUMBERS[name]}", "write 0 or more")
        return count
    distribution = read_distribution(text)
    if name != "decision":
        return distribution
    if distribution.kind != "constant":
        raise FaultError("is drawn, but decisions are evenly paced", "write a number")
    return distribution.numbers[0]


class DrawnDelays:
    """The delays of one cluster, one after the other; the same seed gives the same."""

    def __init__(self, delays: Delays, seed: str) -> None:
        self._delays = delays
        self._random = random.Random(seed)  # noqa: S311 - a simulation, not a secret

    def cycle(self, now: float) -> float:
        """Seconds that a cycle takes that begins now."""
        return self._draw(self._delays.cycle, now)

    def write(self, now: float) -> float:
        """Seconds that a write takes that the scheduler waits for, and whose turn is now."""
        return self._draw(self._delays.write, now)

    def start(self, now: float) -> float:
        """Seconds until a job knows that it may start, whose reservation is written from now on."""
        return self._draw(self._delays.start, now)

    def release(self, now: float) -> float:
        """Seconds until the quota is free of a run that a worker turns to now."""
        return self._draw(self._delays.release, now)

    def stop(self, now: float) -> float:
        """Seconds until the quota is free of a run that is evicted now."""
        return self._draw(self._delays.stop, now)

    def _draw(self, delay: Delay, now: float) -> float:
        return (delay.at(now) if isinstance(delay, Changing) else delay).draw_from(self._random)


class Writer:
    """The API calls by which decisions are written, one after the other over one rate-limited connection.

    A token bucket, as Kueue's client has one for Workloads (`clientConnection.qps` and `burst`); calls that find no
    token wait in line. A call takes `seconds`, but for `burst` calls that go through at once after a rest; 0 seconds:
    all at once. Invariant: calls are through in the order in which they are made.
    Source: k8s.io/client-go@v0.36.3 util/flowcontrol/throttle.go.
    """

    __slots__ = ("_after_burst", "_free_at", "_seconds")

    def __init__(self, seconds: float, burst: int = 0) -> None:
        self._seconds = seconds
        self._after_burst = seconds * (1 - burst)
        self._free_at = float("-inf")

    def write(self, now: float) -> float:
        """When a call made now is through."""
        since = max(self._free_at, now)
        self._free_at = since + self._seconds
        return max(now, since + self._after_burst)


class Workers:
    """Workers that deal with one thing after the other, such as those of a job's controller: `count` of them; 0: as
    many as there is to do.

    Invariant: what is due first is begun first, if it is passed on in that order.
    Source: MaxConcurrentReconciles of sigs.k8s.io/controller-runtime@v0.24.1 pkg/internal/controller/controller.go.
    """

    __slots__ = ("_count", "_free_at")

    def __init__(self, count: int) -> None:
        self._count = count
        self._free_at: list[float] = []

    def done(self, now: float, seconds: Callable[[float], float]) -> float:
        """When it is done that is due now, and takes `seconds(begun)` from when one of them turns to it."""
        if not self._count:
            return now + seconds(now)
        begun = now if len(self._free_at) < self._count else max(now, heappop(self._free_at))
        done = begun + seconds(begun)
        heappush(self._free_at, done)
        return done
