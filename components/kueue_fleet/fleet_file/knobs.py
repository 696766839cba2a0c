"""What may be changed of a file, as levels: the values of a `mayChange` where they stand in the file's data."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from kueue_admission.kernel.form_rules import FaultError
from kueue_admission.kernel.paths import value_at
from kueue_admission.kernel.syntax import whole_number
from kueue_fleet.fleet_file.model.planning import MayChange

_AMOUNT: Final = re.compile(r"([0-9]{1,12})([A-Za-z]*)")
_AIM: Final = re.compile(r"(^|\.)goals\b|^plan\b")
"""Goals, and what plan may do: a fleet is not better as less is asked of it."""
_TEXT: Final = re.compile(r"[A-Za-z][A-Za-z0-9._-]*")


class Place(NamedTuple):
    """A value of the file: a text; or a number, the level times `factor` before the `unit` that the file has there."""

    path: str
    factor: int
    today: int | str
    unit: str = ""

    def text(self, level: int | str) -> str:
        """What the file has there at a level."""
        return level if isinstance(level, str) else f"{level * self.factor}{self.unit}"

    @property
    def level(self) -> int | str | None:
        """Of the file as it is; None: between two."""
        if isinstance(self.today, str):
            return self.today
        return None if self.today % self.factor else self.today // self.factor


@dataclass(frozen=True, slots=True)
class Knob:
    """Values of the file that change together; `levels` are those that may be tried."""

    text: str
    places: tuple[Place, ...]
    levels: Sequence[int] | Sequence[str]

    @property
    def is_ordered(self) -> bool:
        """Whether a higher level is more of something: texts have no order."""
        return isinstance(self.levels, range)

    @property
    def today(self) -> int:
        """Which of the levels the file has."""
        return self.levels.index(self.places[0].level)

    def changes(self, number: int) -> Iterator[tuple[str, str]]:
        """Paths and what is there at a level, where that is other than in the file."""
        level = self.levels[number]
        yield from ((place.path, place.text(level)) for place in self.places if place.level != level)


def knob_of(entry: MayChange, data: Any, text: str = "") -> Knob:
    """The knob that an entry is for a file's data. Raises FaultError for the first thing that is wrong."""
    places = tuple(_place(part, data, is_text=bool(entry.values)) for part in entry.paths)
    for value in entry.values:
        if not _TEXT.fullmatch(value):
            raise FaultError(f"{value!r} is not a name, such as a machine type", "write least and most for numbers")
    for place in places:
        if place.level not in entry.levels:
            wrong = f"{place.path} is {place.today}{place.unit} in the file, which is none of the levels"
            raise FaultError(wrong, "widen them, change the file, or give it another factor, as in PATH*8")
        if place.level != places[0].level:
            wrong = f"{places[0].path} and {place.path} are of different levels in the file"
            raise FaultError(wrong, "change the file, or give each an entry of its own")
    return Knob(text or ",".join(entry.paths), places, entry.levels)


def _place(part: str, data: Any, *, is_text: bool) -> Place:
    path, star, factor = (factor.strip() for factor in part.partition("*"))
    if _AIM.search(path):
        raise FaultError(f"{path} is what plan aims at", "write a path of nodes, machines or quotas")
    times, place = whole_number(factor) if star else 1, value_at(data, path)
    if is_text:
        if not isinstance(place, str) or star:
            raise FaultError(f"{part} is not a text of the file", "give the path of one, such as a machineType")
        return Place(path, 1, place)
    amount = None if isinstance(place, bool) else _AMOUNT.fullmatch(str(place))
    if not times or amount is None:
        wrong = f"{path} is not a whole number in the file" if times else f"*{factor} is not a factor"
        raise FaultError(wrong, "give the path of a number that is written in the file, and a factor above 0")
    return Place(path, times, int(amount[1]), amount[2])
