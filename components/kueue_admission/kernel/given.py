"""Fields that take more than they read as: lists for tuples, text for amounts and times.

Pydantic reads the plain type; these are what type checkers take a field for.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

_Item = TypeVar("_Item")
_Read = TypeVar("_Read")
_Given = TypeVar("_Given")

if TYPE_CHECKING:
    from dataclasses import InitVar as InitVar

    ListOf = Sequence

    ListOfText = list[_Item] | tuple[_Item, ...]

    class Given(Generic[_Read, _Given]):
        """A field that reads as one type, and whose constructor takes more (PEP 681)."""

        def __get__(self, instance: object, owner: type | None = None, /) -> _Read: ...

        def __set__(self, instance: object, value: _Given, /) -> None: ...

else:

    class ListOf:
        """A list, kept as a tuple."""

        def __class_getitem__(cls, item: Any) -> Any:
            return tuple[item, ...]

    ListOfText = ListOf
    """The same of names and other texts: one text, which is a sequence of texts, is refused."""

    class Given:
        """A field that reads as the first type and takes the second."""

        def __class_getitem__(cls, types: Any) -> Any:
            return types[0]

    class InitVar:
        """What a constructor takes that is not a field of what it makes."""

        def __class_getitem__(cls, taken: Any) -> Any:
            return taken


NOT_GIVEN: Final[Any] = None
"""Default of an optional field. Untyped: to a type checker such a field is more than a plain value."""
