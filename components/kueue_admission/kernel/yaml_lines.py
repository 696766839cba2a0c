"""The line of a problem's path in the text of a YAML document."""

from __future__ import annotations

from typing import Any, NamedTuple

import yaml

from kueue_admission.kernel.suggest import plain


class _Below(NamedTuple):
    """What is directly below a node, each with its line."""

    parts: dict[str, tuple[int, Any]]
    """By what a path calls it: a key of a map, a key in brackets, an item's name or number in brackets."""
    lengths: frozenset[int]
    """Of those names."""
    keys: dict[str, tuple[int, Any]]
    """By what is left of a key without case, hyphens and underscores."""


class Lines:
    """The lines of the paths of one document."""

    def __init__(self, root: Any) -> None:
        self._root = root
        self._below: dict[int, _Below] = {}

    def of(self, path: str) -> int:
        """The line, counted from 1, of `path`; of the part of it that is there.

        A path names items of lists by their name or their number: `clusterQueues[dws].resourceGroups[0].flavors`. Names
        may hold dots and brackets, so each step takes the longest key or name that the rest of the path begins with.
        What is missing is in the line of what it is missing from.
        """
        return self._walk(path)[0]

    def node_of(self, path: str) -> Any | None:
        """The node of `path`; None where a part of it is not there."""
        _, node, rest = self._walk(path)
        return None if rest else node

    def _walk(self, path: str) -> tuple[int, Any, str]:
        """The line and the node of the part of a path that is there, and the rest of the path."""
        node = self._root
        line = int(node.start_mark.line) + 1
        while path and (step := self._step(node, path)) is not None:
            length, line, node = step
            path = path[length:].removeprefix(".")
        return line, node, path

    def _step(self, node: Any, path: str) -> tuple[int, int, Any] | None:
        """The way on from a node: how much of the path it is, its line, and the node there."""
        if id(node) not in self._below:
            self._below[id(node)] = _below(node)
        below = self._below[id(node)]
        for length in sorted(below.lengths, reverse=True):
            if (length == len(path) or path[length : length + 1] in (".", "[")) and path[:length] in below.parts:
                return length, *below.parts[path[:length]]
        # A key that is written otherwise is read as what it means.
        step = path.partition(".")[0].partition("[")[0]
        place = below.keys.get(plain(step)) if step else None
        return (len(step), *place) if place else None


def _below(node: Any) -> _Below:
    parts: dict[str, tuple[int, Any]] = {}
    keys: dict[str, tuple[int, Any]] = {}
    if isinstance(node, yaml.MappingNode):
        # Merged keys (`<<:`) come first in a node, before those that override them.
        for key, value in node.value:
            name = str(key.value)
            parts[name] = parts[f"[{name}]"] = keys[plain(name)] = (key.start_mark.line + 1, value)
    elif isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            place = (item.start_mark.line + 1, item)
            parts.setdefault(f"[{_name(item)}]", place)
            parts.setdefault(f"[{index}]", place)
    return _Below(parts, frozenset(map(len, parts)), keys)


def _name(item: Any) -> str | None:
    """What a path calls an item of a list: its name."""
    if not isinstance(item, yaml.MappingNode):
        return None
    return next((str(value.value) for key, value in reversed(item.value) if key.value == "name"), None)
