"""What a program knows later: outputs of Pulumi, and what it awaits, recognized without importing Pulumi."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any, Final

OUTPUT_TEXT: Final = "Calling __str__ on an Output[T]"
"""How the text begins that Pulumi writes in the place of an output in an f-string."""
IN_TEXT: Final = ("has an Output in an f-string", 'write pulumi.Output.concat("...", output), or the value itself')
"""What is wrong with such a text, and what to do."""
NOT_LATER: Final = "write the value itself: only arguments of components take what is known later"
"""What to do where an output is given, and plain data needed."""


def is_of_pulumi(kind: Any) -> bool:
    """Whether it is a class of resources, or of outputs of them, whose text is a warning of Pulumi."""
    return any(base.__module__.partition(".")[0] == "pulumi" for base in getattr(kind, "__mro__", ()))


def is_late(value: object) -> bool:
    """Whether it is known later: an output, or what a program awaits."""
    return isinstance(value, Awaitable) or (type(value).__name__ == "Output" and is_of_pulumi(type(value)))
