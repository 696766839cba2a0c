"""Reading plain dicts field by field, with a path and a list of everything that is wrong with them.

A `Fields` never raises: a wrong value becomes a problem, and a harmless default replaces it, so that all problems of
all objects are found at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, TypeVar

from kueue_admission.kernel.duration import Duration
from kueue_admission.kernel.form_rules import OBJECT, FaultError
from kueue_admission.kernel.manifest import Manifest, is_object
from kueue_admission.kernel.problem import Problem, Rule
from kueue_admission.kernel.quantity import Quantity

E = TypeVar("E", bound=StrEnum)


class Fields:
    """One object within the input, where it is, and the shared list of problems.

    Where: its path, or the object around it with the field, and the index in a list, that it is in. Most paths are
    never asked for.
    """

    __slots__ = ("_at", "data", "problems")

    def __init__(
        self, data: Manifest, at: str | tuple[Fields, str] | tuple[Fields, str, int], problems: list[Problem]
    ) -> None:
        self._at = at
        self.data = data
        self.problems = problems

    @property
    def path(self) -> str:
        """Where the object is, such as `Job default/train.spec.template`."""
        if isinstance(self._at, str):
            return self._at
        around, name, *index = self._at
        name = f"{name}[{index[0]}]" if index else name
        return f"{around.path}.{name}" if around.path else name

    def __contains__(self, name: str) -> bool:
        return self.data.get(name) is not None

    def wrong(self, name: str, what: str, fix: str, rule: Rule = OBJECT) -> None:
        """Report a problem with the field `name`, or with the object itself if that is empty."""
        path = self.path
        at = f"{path}.{name}" if name and path else name or path
        self.problems.append(rule.at(at, what, fix))

    def child(self, name: str) -> Fields:
        """The object in the field `name`; empty when it is not set."""
        value = self.data.get(name)
        if value is None:
            value = {}
        elif type(value) is not dict and not is_object(value):  # The first is much cheaper to ask.
            self.wrong(name, f"is {_kind(value)}, not an object", "write fields under it")
            value = {}
        return Fields(value, (self, name), self.problems)

    def children(self, name: str) -> Iterator[Fields]:
        """The objects in the list `name`."""
        for index, value in enumerate(self._list(name)):
            if type(value) is dict or is_object(value):
                yield Fields(value, (self, name, index), self.problems)
            else:
                self.wrong(f"{name}[{index}]", f"is {_kind(value)}, not an object", "write fields under it")

    def texts(self, name: str) -> tuple[str, ...]:
        """The strings in the list `name`."""
        values = []
        for index, value in enumerate(self._list(name)):
            if isinstance(value, str):
                values.append(value)
            else:
                self.wrong(f"{name}[{index}]", f"is {_kind(value)}, not text", "write a string")
        return tuple(values)

    def pairs(self, name: str) -> tuple[tuple[str, str], ...]:
        """The mapping from text to text in `name`, sorted."""
        child = self.child(name)
        for key, value in child.data.items():
            if not isinstance(key, str) or not isinstance(value, str):
                child.wrong(str(key), f"is {_kind(value)}, not text", "put it in quotes")
        return tuple(sorted((str(key), str(value)) for key, value in child.data.items()))

    def text(self, name: str, default: str = "") -> str:
        """The text in `name`."""
        value = self.data.get(name)
        if type(value) is str:  # Much cheaper to ask than what follows.
            return value
        if value is None:
            return default
        if not isinstance(value, str):
            self.wrong(name, f"is {_kind(value)}, not text", "put it in quotes")
            return default
        return value

    def required_text(self, name: str) -> str:
        """The text in `name`, which must be there."""
        value = self.text(name)
        if not self.data.get(name):
            self.wrong(name, "is missing", "add it")
        return value

    def integer(self, name: str, default: int = 0, *, least: int | None = None) -> int:
        """The whole number in `name`, at least `least`."""
        value = self.data.get(name)
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, int):
            self.wrong(name, f"is {_kind(value)}, not a whole number", "write a number without quotes")
            return default
        if least is not None and value < least:
            self.wrong(name, f"is {value}", f"write {least} or more")
            return default
        return value

    def flag(self, name: str, *, default: bool = False) -> bool:
        """The true or false in `name`."""
        value = self.data.get(name)
        if value is None:
            return default
        if not isinstance(value, bool):
            self.wrong(name, f"is {_kind(value)}, neither true nor false", "write true or false")
            return default
        return value

    def choice(self, name: str, options: type[E], default: E) -> E:
        """One of an enum's words."""
        value = self.data.get(name)
        if value is None or value == "":
            return default
        try:
            return options(value)
        except ValueError:
            self.wrong(name, f"is {value!r}", f"write one of {', '.join(option.value for option in options)}")
            return default

    def quantity(self, name: str) -> Quantity | None:
        """The quantity in `name`; None when it is not set, or is wrong."""
        value = self.data.get(name)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, (str, int, float)):
            self.wrong(name, f"is {_kind(value)}, not a quantity", 'write a number such as 4, "500m" or "64Gi"')
            return None
        try:
            return Quantity(repr(value) if isinstance(value, float) else value)
        except FaultError as error:
            self.wrong(name, f"{value!r} {error.fault.wrong}", error.fault.fix)
            return None

    def quantities(self, name: str) -> dict[str, Quantity]:
        """The resource list in `name`; what is not a quantity, or negative, is left out and reported."""
        child = self.child(name)
        amounts = {}
        for resource in child.data:
            quantity = child.quantity(resource)
            if quantity is None:
                continue
            if quantity < Quantity(0):
                child.wrong(resource, f"is {quantity}", "write 0 or more")
                continue
            amounts[resource] = quantity
        return amounts

    def numbers(self, name: str) -> dict[str, float]:
        """The mapping from text to numbers in `name`."""
        child = self.child(name)
        numbers = {}
        for key, value in child.data.items():
            if isinstance(value, bool) or not isinstance(value, (int, float)):
                child.wrong(str(key), f"is {_kind(value)}, not a number", "write a number without quotes")
            else:
                numbers[str(key)] = float(value)
        return numbers

    def length(self, name: str, default: float) -> float:
        """The duration in `name`, in seconds."""
        value = self.data.get(name)
        if value is None:
            return default
        if not isinstance(value, str):
            self.wrong(name, f"is {_kind(value)}, not a duration", "write it as 30m")
            return default
        try:
            return Duration(value).seconds
        except FaultError as error:
            self.wrong(name, f'"{value}" {error.fault.wrong}', error.fault.fix)
            return default

    def seconds(self, name: str, default: float | None = None) -> float | None:
        """The time stamp in `name` as seconds since 1970."""
        value = self.data.get(name)
        if value is None or value == "":
            return default
        try:
            return seconds_of(value)
        except ValueError:
            self.wrong(name, f"{value!r} is not a time", "write it as 2026-01-31T12:00:00Z")
            return default

    def _list(self, name: str) -> list[Any]:
        value = self.data.get(name)
        if value is None:
            return []
        if not isinstance(value, list):
            self.wrong(name, f"is {_kind(value)}, not a list", "write a list")
            return []
        return value


def seconds_of(value: object) -> float:
    """A time stamp as seconds since 1970. Raises ValueError."""
    moment = value if isinstance(value, datetime) else datetime.fromisoformat(str(value))
    # Without a zone it is UTC, as in Kubernetes: the same input means the same on every machine.
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _kind(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (int, float)):
        return f"the number {value}"
    if isinstance(value, str):
        return f"the text {value!r}"
    if isinstance(value, Mapping):
        return "an object"
    return "a list" if isinstance(value, list) else f"{value!r}"
