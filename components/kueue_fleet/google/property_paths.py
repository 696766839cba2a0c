"""Paths to the properties of a resource, patterns of such paths, and how one property changed.

In the form that Pulumi's engine has them.
"""

from __future__ import annotations

import enum
from typing import TypeAlias

Path: TypeAlias = tuple[str | int, ...]
"""Keys and indices that lead to a value."""
Pattern: TypeAlias = tuple[str, ...]
"""Property names; `*` stands for every index of a list."""


class Change(enum.IntEnum):
    """How one property changed; the numbers are those of the protocol's PropertyDiff.Kind."""

    ADD = 0
    ADD_REPLACE = 1
    DELETE = 2
    DELETE_REPLACE = 3
    UPDATE = 4
    UPDATE_REPLACE = 5

    @property
    def replaces(self) -> bool:
        """Whether the change cannot be made in place."""
        return self in (Change.ADD_REPLACE, Change.DELETE_REPLACE, Change.UPDATE_REPLACE)

    def as_replacing(self) -> Change:
        """The same change, when it cannot be made in place."""
        return self if self.replaces else Change(self + 1)


def parse_pattern(text: str) -> Pattern:
    """`spec.containers[*].image` as a pattern."""
    return tuple(part for part in text.replace("[*]", ".*").split(".") if part)


def render_path(path: Path) -> str:
    """`path` in Pulumi's notation, for example `metadata.annotations["a.b/c"]` or `webhooks[0].name`."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        elif any(character in part for character in '."[]'):
            text += '["' + part.replace('"', '\\"') + '"]'
        else:
            text += f".{part}" if text else part
    return text


def is_within(path: Path, pattern: Pattern) -> bool:
    """Whether `path` is a property that `pattern` names, or below it."""
    return len(path) >= len(pattern) and all(
        pattern_part == "*" if isinstance(part, int) else part == pattern_part
        for part, pattern_part in zip(path, pattern, strict=False)
    )
