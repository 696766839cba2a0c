"""No module of the library needs itself, not even for the types in its signatures."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

import grimp

ROOT = Path(__file__).parents[1]


def circles(imports: Mapping[str, set[str]]) -> Iterator[set[str]]:
    """The largest sets of modules in which each one leads to every other."""
    reached: dict[str, set[str]] = {}
    for module in imports:
        seen: set[str] = set()
        waiting = [module]
        while waiting:
            fresh = imports[waiting.pop()] - seen
            seen |= fresh
            waiting += fresh
        reached[module] = seen
    result: set[str] = set()
    for module in sorted(imports):
        if module in reached[module] and module not in result:
            circle = {other for other in reached[module] if module in reached[other]}
            result |= circle
            yield circle


def test_circles_are_found() -> None:
    assert list(circles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}, "e": set()})) == [{"a", "b", "c"}]


def test_there_are_none() -> None:
    packages = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["root_packages"]
    graph = grimp.build_graph(*packages)
    assert len(graph.modules) > 300
    result = list(circles({module: graph.find_modules_directly_imported_by(module) for module in graph.modules}))
    assert result == []
