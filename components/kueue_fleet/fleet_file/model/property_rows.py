"""What the file says of a resource, and Google's provider has: a table of properties, each with the field that says it.

Such a table is read in both directions: a fleet is rendered by it, and `import` reads back by it what runs already.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from kueue_admission.kernel.unknown import UNKNOWN, NotKnownError

E = TypeVar("E")


@dataclass(frozen=True, slots=True)
class Row(Generic[E]):
    """One property."""

    property: str
    """Its path."""
    field: str
    """The path of the field in the file."""
    value: Callable[[E], Any]
    """What the property is, the default filled in; None: it is not said."""
    back: Callable[[Any], Any] = lambda value: value
    """What the field is, from what the property is; None: it is not said."""
    is_first: bool = False
    """Whether the property is a list, and the field its one item."""
    in_turn: bool = False
    """Whether GKE changes it by new nodes, one after another, as in an upgrade."""
    stays: str = ""
    """What stays where the field is taken away, since the provider has no way back: text with `name`, `region` and
    `was`."""


def same(property_: str, field: str | None = None, *, in_turn: bool = False) -> Row[Any]:
    """A property that is as in the file, under the same name unless `field` says another."""
    return Row(property_, field or property_, field_at(field or property_), number_of, in_turn=in_turn)


def number_of(value: Any) -> Any:
    """The value, a number where it is the text of one: Google's APIs have numbers of 64 bits as text."""
    return int(value) if isinstance(value, str) and value.isdecimal() else value


def field_at(path: str) -> Callable[[Any], Any]:
    """What reads the field at a dotted path; None where part of the path is not said."""
    names = [re.sub("[A-Z]", lambda upper: f"_{upper[0].lower()}", name) for name in path.split(".")]

    def value(entry: Any) -> Any:
        for name in names:
            entry = None if entry is None else getattr(entry, name)
        return entry

    return value


def properties_of(rows: Iterable[Row[E]], entry: E) -> dict[str, Any]:
    """What the file says of an entry, as properties; `UNKNOWN` where a field of the file could not be read."""
    properties: dict[str, Any] = {}
    for row in rows:
        try:
            value = row.value(entry)
        except NotKnownError:
            value = UNKNOWN
        set_at(properties, row.property, value)
    return properties


def set_at(block: dict[str, Any], path: str, value: Any) -> None:
    """Set a value at a dotted path; None is not said."""
    if value is not None:
        *parents, last = path.split(".")
        for parent in parents:
            block = block.setdefault(parent, {})
        block[last] = value


def property_at(properties: Mapping[str, Any] | None, path: str) -> Any:
    """The property at a dotted path; None where there is none."""
    value: Any = properties
    for part in path.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value
