"""The line of a problem's path in the text of a YAML document."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import yaml

from kueue_fleet.spec.suggest import plain


def line_of(node: Any, path: str) -> int:
    """The line, counted from 1, of `path` in the document of `node`; of the part of it that is there.

    A path names items of lists by their name or their number: `clusterQueues[dws].resourceGroups[0].flavors`. Names may
    hold dots and brackets, so each step takes the longest key or name that the rest of the path begins with. What is
    missing is in the line of what it is missing from.
    """
    line = int(node.start_mark.line) + 1
    while path:
        steps = list(_steps(node, path))
        if not steps:
            return line
        length, line, node = max(steps, key=lambda step: step[0])
        path = path[length:].removeprefix(".")
    return line


def _steps(node: Any, path: str) -> Iterator[tuple[int, int, Any]]:
    """The ways on from a node: how much of the path each is, its line, and the node there."""
    if isinstance(node, yaml.MappingNode):
        exact = False
        for key, value in node.value:
            name = str(key.value)
            for text in (name, f"[{name}]"):
                if _begins(path, text):
                    exact = True
                    yield len(text), key.start_mark.line + 1, value
        if not exact:
            yield from _misspelt(node, path)
    elif isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            for text in {f"[{index}]", f"[{_name(item)}]"}:
                if _begins(path, text):
                    yield len(text), item.start_mark.line + 1, item


def _misspelt(node: Any, path: str) -> Iterator[tuple[int, int, Any]]:
    """Keys that differ from the next step in case, hyphens and underscores only: they are read as what they mean."""
    step = path.partition(".")[0].partition("[")[0]
    for key, value in node.value:
        if step and plain(str(key.value)) == plain(step):
            yield len(step), key.start_mark.line + 1, value


def _begins(path: str, text: str) -> bool:
    rest = path[len(text) :]
    return path.startswith(text) and (not rest or rest[0] in ".[")


def _name(item: Any) -> str | None:
    """What a path calls an item of a list: its name."""
    if not isinstance(item, yaml.MappingNode):
        return None
    return next((str(value.value) for key, value in item.value if key.value == "name"), None)
