"""Numbers of seconds that are given, or drawn: `30`, `exponential(600)` by its mean, `uniform(60, 120)`."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Final

from pydantic import Field, PlainValidator

from kueue_admission.kernel.base import Number
from kueue_admission.kernel.form_rules import FaultError
from kueue_admission.kernel.syntax import number

MOST_SECONDS: Final = 10**9
"""The most seconds that anything may take, 31 years. A clock adds them up, and still has to count single seconds."""
_CALL: Final = re.compile(r"\s*(exponential|uniform)\s*\(([^()]*)\)\s*")
_ARGUMENTS: Final = {"exponential": 1, "uniform": 2}


@dataclass(frozen=True, slots=True)
class Distribution:
    """`kind` is `constant`, `exponential`, `uniform` or `observed`; `numbers` its value, its mean, its least and most,
    or what was seen, of which each is drawn as often."""

    kind: str
    numbers: tuple[float, ...]

    def draw(self, *purpose: object) -> float:
        """The number drawn for a purpose; always the same for the same purpose, which names the seed."""
        if self.kind == "constant":
            return self.numbers[0]
        return self.draw_from(random.Random(":".join(map(str, purpose))))  # noqa: S311 - a simulation, not a secret

    def draw_from(self, source: random.Random) -> float:
        """The next number of a source."""
        if self.kind == "constant":
            return self.numbers[0]
        if self.kind == "exponential":
            return -self.numbers[0] * math.log1p(-source.random())
        if self.kind == "observed":
            return source.choice(self.numbers)
        least, most = self.numbers
        return least + (most - least) * source.random()


@dataclass(frozen=True, slots=True)
class Changing:
    """Distributions that follow each other: each holds for `seconds` of the clock, from second 0; the last always."""

    seconds: float
    parts: tuple[Distribution, ...]

    def at(self, now: float) -> Distribution:
        """The one that holds now."""
        return self.parts[max(0, min(int(now // self.seconds), len(self.parts) - 1))]


def constant(seconds: float) -> Distribution:
    """Always the same number."""
    return Distribution("constant", (seconds,))


def exponential(mean: float) -> Distribution:
    """Times between things that happen at random."""
    return Distribution("exponential", (mean,))


def observed(seconds: Iterable[float]) -> Distribution:
    """One of the numbers that were seen, at least one."""
    return Distribution("observed", tuple(seconds))


def parse_distribution(value: object) -> Distribution:
    """A distribution from a number or text. Raises FaultError for anything else, and for negative numbers."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return constant(*_checked((value,)))
    match = _CALL.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise FaultError("is not a number of seconds", "write a number, exponential(mean) or uniform(least, most)")
    kind, parts = match[1], match[2].split(",")
    numbers = tuple(figure for part in parts if (figure := number(part.strip())) is not None)
    if len(numbers) != len(parts):
        raise FaultError("has an argument that is not a number", "write numbers")
    if len(numbers) != _ARGUMENTS[kind]:
        raise FaultError("has the wrong number of arguments", "write exponential(mean) or uniform(least, most)")
    if kind == "uniform" and numbers[0] > numbers[1]:
        raise FaultError("is the wrong way round", "write uniform(least, most)")
    return Distribution(kind, _checked(numbers))


def read_distribution(text: str) -> Distribution:
    """The same from text alone, as options have it."""
    figure = number(text)
    return parse_distribution(text if figure is None else figure)


def as_seconds(value: object) -> float | None:
    """The seconds that a number is, or a text with one; None for anything else, and for what no clock counts."""
    seconds = number(value) if isinstance(value, str) else value
    if not isinstance(seconds, (int, float)) or isinstance(seconds, bool) or not 0 <= seconds <= MOST_SECONDS:
        return None
    return float(seconds)


def _checked(numbers: tuple[float, ...]) -> tuple[float, ...]:
    seconds = tuple(found for number in numbers if (found := as_seconds(number)) is not None)
    if len(seconds) != len(numbers):
        raise FaultError(f"is negative, or more than {MOST_SECONDS:,} seconds", "write a number in between")
    return seconds


def _validate(value: object) -> Distribution:
    try:
        return value if isinstance(value, Distribution) else parse_distribution(value)
    except FaultError as error:
        raise error.fault.error() from None


Seconds = Annotated[Distribution, PlainValidator(_validate)]
"""A field that holds a distribution."""
Second = Annotated[Number, Field(ge=0, le=MOST_SECONDS)]
"""A field that holds a number of seconds."""
