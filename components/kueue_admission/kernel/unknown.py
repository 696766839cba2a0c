"""The word for what is not known: an output of Pulumi before the update, a field of a file that cannot be read.

And what a program knows later: outputs of Pulumi, and what it awaits, recognized without importing Pulumi.
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from typing import Any, Final, TypeGuard, TypeVar

T = TypeVar("T")

OUTPUT_TEXT: Final = "Calling __str__ on an Output[T]"
"""How the text begins that Pulumi writes in the place of an output in an f-string."""
IN_TEXT: Final = ("has an Output in an f-string", 'write pulumi.Output.concat("...", output), or the value itself')
"""What is wrong with such a text, and what to do."""
NOT_LATER: Final = "write the value itself: only arguments of components take what is known later"
"""What to do where an output is given, and plain data needed."""


class Unknown:
    """A value that only the update will know. There is one: `UNKNOWN`. It has no truth value, so no rule takes it."""

    def __bool__(self) -> bool:
        raise TypeError("a value that is not known yet is neither true nor false; ask is_known first")

    def __repr__(self) -> str:
        return "UNKNOWN"

    def __copy__(self) -> Unknown:
        return self

    def __deepcopy__(self, _: dict[int, Any]) -> Unknown:
        return self


UNKNOWN: Final = Unknown()
"""The value that is not known yet."""


def is_known(value: T | Unknown) -> TypeGuard[T]:
    """Whether a value, or the absence of one, is certain."""
    return value is not UNKNOWN


def is_set(value: Any) -> bool:
    """Whether there is something: not None, false, zero or empty. Yes where it is not known what."""
    return value is UNKNOWN or bool(value)


def holds_unknown(value: Any) -> bool:
    """Whether `value` or anything in it is not known."""
    if isinstance(value, Mapping):
        return any(map(holds_unknown, value.values()))
    return value is UNKNOWN or (isinstance(value, list | tuple) and any(map(holds_unknown, value)))


class NotKnownError(Exception):
    """A rule asked for what is not known, so there is nothing that it could say."""


def is_of_pulumi(kind: Any) -> bool:
    """Whether it is a class of resources, or of outputs of them, whose text is a warning of Pulumi."""
    return any(base.__module__.partition(".")[0] == "pulumi" for base in getattr(kind, "__mro__", ()))


def is_late(value: object) -> bool:
    """Whether it is known later: an output, or what a program awaits."""
    return isinstance(value, Awaitable) or (type(value).__name__ == "Output" and is_of_pulumi(type(value)))
