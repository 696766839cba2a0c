"""What the parts of a fleet file are drawn with."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final, TypeVar

from hypothesis import strategies as st

Data = dict[str, Any]
"""A part of a fleet file."""
Draw = st.DrawFn

_T = TypeVar("_T")

flags = st.booleans()


def one_of(*values: Any) -> st.SearchStrategy[Any]:
    """One of the values, the first when Hypothesis looks for the smallest example."""
    return st.sampled_from(values)


def some_of(values: Sequence[_T], at_least: int = 0) -> st.SearchStrategy[list[_T]]:
    """Some of the values, in their order."""
    number = len(values)
    few = st.lists(st.integers(0, max(number - 1, 0)), min_size=at_least, max_size=number, unique=True)
    return few.map(lambda chosen: [values[index] for index in sorted(chosen)])


def fields(draw: Draw, /, **optional: st.SearchStrategy[Any]) -> Data:
    """Some of the fields, sometimes all of them; written in camelCase already."""
    names = list(optional)
    if _EVERYTHING.get():
        return {name: draw(value) for name, value in optional.items()}
    chosen: list[str] = []
    for start in range(0, len(names), _BITS):
        bits = draw(_MASKS)
        chosen += [name for bit, name in enumerate(names[start : start + _BITS]) if bits >> bit & 1]
    return {name: draw(optional[name]) for name in chosen}


_BITS: Final = 6
# One draw for several fields: a draw costs Hypothesis as much as a small model costs pydantic.
_MASKS = st.sampled_from([0] * 12 + [1 << bit for bit in range(_BITS)] + [2**_BITS - 1] * 6)


_EVERYTHING: ContextVar[bool] = ContextVar("everything", default=False)


@contextmanager
def all_fields(everything: bool) -> Iterator[None]:
    """While this lasts, `fields` leaves out none, if `everything` is asked for."""
    before = _EVERYTHING.set(everything)
    try:
        yield
    finally:
        _EVERYTHING.reset(before)


@st.composite
def composed(draw: Draw, /, make: Callable[[Draw], _T]) -> _T:
    """What `make` draws, as a strategy."""
    return make(draw)


@st.composite
def part(draw: Draw, /, **optional: st.SearchStrategy[Any]) -> Data:
    """A map with some of the fields."""
    return fields(draw, **optional)


def where(clusters: Sequence[str], default: Sequence[str], draw: Draw) -> Data:
    """`clusters`, which may be left out where they are the default."""
    return {} if list(clusters) == list(default) and draw(flags) else {"clusters": list(clusters)}


def named(entries: Sequence[Mapping[str, Any]]) -> list[str]:
    """The names of a section's entries."""
    return [entry["name"] for entry in entries]
