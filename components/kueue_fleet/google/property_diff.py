"""What changed between what is there and what is asked for, in the form Pulumi's engine wants it.

Deliberately does not know Kubernetes or GCP: which changes replace a resource is given as patterns.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from kueue_fleet.rehearsal.standins.property_values import UNKNOWN, Value

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


def _part_matches(part: str | int, wanted: str) -> bool:
    return wanted == "*" if isinstance(part, int) else part == wanted


def _holds(value: Value, rest: Pattern) -> bool:
    if not rest:
        return True
    if rest[0] == "*":
        return isinstance(value, list) and any(_holds(item, rest[1:]) for item in value)
    return isinstance(value, dict) and rest[0] in value and _holds(value[rest[0]], rest[1:])


def touches(path: Path, value: Value, pattern: Pattern) -> bool:
    """Whether changing `path` to `value` changes something that `pattern` names."""
    shared = min(len(path), len(pattern))
    if not all(_part_matches(part, wanted) for part, wanted in zip(path[:shared], pattern[:shared], strict=True)):
        return False
    return len(path) >= len(pattern) or _holds(value, pattern[len(path) :])


def is_within(path: Path, pattern: Pattern) -> bool:
    """Whether `path` is a property that `pattern` names, or below it."""
    return len(path) >= len(pattern) and touches(path, None, pattern)


def never_equal(path: Path, old: Value, new: Value) -> bool:
    """The equivalence that knows no two different spellings of one value."""
    return False


@dataclass
class Differ:
    """Collects the changes from an old to a new object.

    Invariant: `changes` has an entry for the outermost property that was added or removed as a whole, and for each
    innermost property that was updated.
    """

    replacing: Sequence[Pattern] = ()
    equivalent: Callable[[Path, Value, Value], bool] = never_equal
    """Asked about two unequal values (None for absent) whether the server holds them to be the same."""
    changes: dict[Path, Change] = field(default_factory=dict)

    def compare(self, old: Value, new: Value, path: Path = ()) -> None:
        """Adds the changes from `old` to `new`, both at `path`."""
        if isinstance(old, dict) and isinstance(new, dict):
            for key in [*old, *(key for key in new if key not in old)]:
                self._compare_members(old.get(key), new.get(key), (*path, key))
        elif isinstance(old, list) and isinstance(new, list):
            for index in range(max(len(old), len(new))):
                old_item = old[index] if index < len(old) else None
                new_item = new[index] if index < len(new) else None
                self._compare_members(old_item, new_item, (*path, index))
        elif new is UNKNOWN or (old != new and not self.equivalent(path, old, new)):
            self._record(path, Change.UPDATE, new)

    def _compare_members(self, old: Value, new: Value, path: Path) -> None:
        if old is None and new is None:
            return
        if old is None or new is None:
            if not self.equivalent(path, old, new):
                self._record(path, Change.ADD if old is None else Change.DELETE, new)
            return
        self.compare(old, new, path)

    def _record(self, path: Path, change: Change, value: Value) -> None:
        replaces = any(touches(path, value, pattern) for pattern in self.replacing)
        self.changes[path] = change.as_replacing() if replaces else change

    def ignore(self, properties: Iterable[str]) -> None:
        """Forgets the changes below the given properties (Pulumi's ignoreChanges)."""
        for text in properties:
            pattern = parse_pattern(text)
            for path in [path for path in self.changes if is_within(path, pattern)]:
                del self.changes[path]
