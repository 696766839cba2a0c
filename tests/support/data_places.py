"""Places in data as YAML has it, for inputs that are right but for one of them."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

Place = tuple[str | int, ...]
"""Keys and indices, from the outside in."""


def places(value: Any, place: Place = ()) -> Iterator[Place]:
    """Every place below a value."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield (*place, key)
        yield from places(inner, (*place, key))


def with_value(data: Any, place: Place, value: Any) -> Any:
    """A copy with another value there."""
    changed, inner = _copy(data, place)
    inner[place[-1]] = value
    return changed


def without(data: Any, place: Place) -> Any:
    """A copy without what is there."""
    changed, inner = _copy(data, place)
    del inner[place[-1]]
    return changed


def _copy(data: Any, place: Place) -> tuple[Any, Any]:
    changed = copy.deepcopy(data)
    inner = changed
    for key in place[:-1]:
        inner = inner[key]
    return changed, inner
