"""How long things take that Kueue does not decide, constant or drawn. By default everything happens at once."""

from __future__ import annotations

import random
from dataclasses import dataclass, fields
from typing import Final

from pydantic_core import PydanticCustomError

from kueue_fleet.simulation.distributions import Distribution, constant, parse_distribution
from kueue_fleet.simulation.errors import SimulationError

_NOTHING: Final = constant(0.0)


@dataclass(frozen=True, slots=True)
class Delays:
    """Seconds.

    `decision`: between two writes to the status of Workloads, in the long run: reservations (the scheduler goes on
    meanwhile), evictions, and why a workload still waits, where that has changed (the scheduler stands still).
    `burst` of them go through at once after a rest. `write`: what one that the scheduler waits for takes by itself.
    `start`: from a reservation's turn to be written until the job knows of it. `release`: from the end of a job's run
    until its quota is free. `stop`: from an eviction until the pods are gone, and with them the quota.
    """

    decision: float = 0.0
    burst: int = 0
    write: Distribution = _NOTHING
    start: Distribution = _NOTHING
    release: Distribution = _NOTHING
    stop: Distribution = _NOTHING


def parse_delays(texts: list[str], given: Delays) -> Delays:
    """The delays `given`, with those that `name=seconds` says otherwise. Raises SimulationError with every mistake."""
    values = {field.name: getattr(given, field.name) for field in fields(Delays)}
    problems = []
    for text in texts:
        name, equals, value = text.partition("=")
        if name not in values or not equals:
            problems.append(f"--delay {text!r}: is not name=seconds; names are {', '.join(values)}")
            continue
        try:
            values[name] = _parse(name, value)
        except PydanticCustomError as error:
            problems.append(f"--delay {name}: {value!r} {error.message()}")
    if problems:
        raise SimulationError(problems)
    return Delays(**values)


def _parse(name: str, text: str) -> float | int | Distribution:
    if name == "burst":
        if not text.isascii() or not text.isdigit():
            raise PydanticCustomError("syntax", "is no number of writes; write 0 or more")
        return int(text)
    try:
        value: object = float(text)
    except ValueError:
        value = text
    found = parse_distribution(value)
    if name != "decision":
        return found
    if found.kind != "constant":
        raise PydanticCustomError("syntax", "is drawn, but decisions are evenly paced; write a number")
    return found.numbers[0]


class DrawnDelays:
    """The delays of one cluster, one after the other; the same seed gives the same."""

    def __init__(self, delays: Delays, seed: str) -> None:
        self._delays = delays
        self._random = random.Random(seed)  # noqa: S311 - a simulation, not a secret

    def write(self) -> float:
        """Seconds that a write takes that the scheduler waits for."""
        return self._delays.write.draw_from(self._random)

    def start(self) -> float:
        """Seconds until a job knows that it may start."""
        return self._delays.start.draw_from(self._random)

    def release(self) -> float:
        """Seconds from the end of a run until the quota is free."""
        return self._delays.release.draw_from(self._random)

    def stop(self) -> float:
        """Seconds from an eviction until the quota is free."""
        return self._delays.stop.draw_from(self._random)
