"""How long things take that Kueue does not decide, constant or drawn. By default everything happens at once."""

from __future__ import annotations

import random
from dataclasses import dataclass, fields
from typing import Final

from kueue_admission.kernel.form_rules import OPTION, FaultError
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
