"""Bounds on what a YAML text may expand to: how deep it is nested, and how much its aliases repeat.

A few hundred bytes can stand for a thousand levels, or for billions of values. Both are refused before the text is
turned into data, in time that depends on the length of the text alone.
"""

from __future__ import annotations

import re
from typing import Any, Final

import yaml

from kueue_admission.kernel.form_rules import YAML
from kueue_admission.kernel.problem import Problem, SpecError

MOST_LEVELS: Final = 200
"""Maps and lists within each other that are read. A fleet has about a dozen, the schema of a CRD about 50."""
MOST_REPEATED: Final = 100_000
"""Values that aliases and merge keys may add to those that are written."""
_FEW_LEVELS: Final = MOST_LEVELS // 4
"""Levels of each kind that cannot make too many together."""
_IN_A_ROW: Final = re.compile(rf"(?:[-?][ \t]+){{{_FEW_LEVELS}}}")
_BRACKET: Final = re.compile(r"[][{}]")
_ANCHOR: Final = re.compile(r"&([\w-]+)")
_ALIAS: Final = re.compile(r"\*([\w-]+)")


def refuse_deep_text(text: str, source: str, loader: Any) -> None:
    """Refuse text with more levels than MOST_LEVELS. Raises SpecError, with the line where they begin.

    Reading goes into each level by a call of its own, and too many of them end the whole process.
    """
    if not _may_be_deep(text):
        return
    depth = 0
    try:
        for event in yaml.parse(text, loader):
            if isinstance(event, yaml.CollectionStartEvent):
                depth += 1
                if depth > MOST_LEVELS and event.start_mark is not None:
                    raise _too_deep(source, event.start_mark.line + 1)
            elif isinstance(event, yaml.CollectionEndEvent):
                depth -= 1
    except yaml.YAMLError:
        return  # The parser says what is wrong.


def _may_be_deep(text: str) -> bool:
    """Whether it is worth counting libyaml's events, which takes as long as reading.

    A level takes a bracket, a mark in the same row, or a further space of indentation, which can be two levels: a list
    may begin in the column of the key that it belongs to. Brackets within text count here too, and do no harm.
    """
    if f"\n{' ' * _FEW_LEVELS}" in text or _IN_A_ROW.search(text):
        return True
    if text.count("[") + text.count("{") <= _FEW_LEVELS:
        return False
    depth = 0
    for bracket in _BRACKET.finditer(text):
        depth = depth + 1 if bracket[0] in "[{" else max(0, depth - 1)
        if depth > _FEW_LEVELS:
            return True
    return False


def has_aliases(text: str) -> bool:
    """Whether a name that may be an anchor may be an alias too: what `refuse_expansion` refuses has one."""
    return not set(_ANCHOR.findall(text)).isdisjoint(_ALIAS.findall(text))


def refuse_expansion(node: Any, source: str) -> None:
    """Refuse a document whose aliases repeat too much, nest too deep, or lead to themselves. Raises SpecError."""
    sizes: dict[int, int] = {}
    depths: dict[int, int] = {}
    open_nodes: set[int] = set()
    stack = [(node, False)]
    while stack:
        here, done = stack.pop()
        key = id(here)
        if key in sizes:
            continue
        below = _children(here)
        if done:
            open_nodes.discard(key)
            sizes[key] = 1 + sum(sizes[id(child)] for child in below)
            depths[key] = 1 + max((depths[id(child)] for child in below), default=0)
            continue
        if key in open_nodes:
            raise SpecError([_problem(source, here, "an alias leads back to itself", "write the values out")])
        open_nodes.add(key)
        stack.append((here, True))
        stack.extend((child, False) for child in below)
    if depths[id(node)] > MOST_LEVELS:
        raise _too_deep(source, node.start_mark.line + 1)
    if sizes[id(node)] - len(sizes) > MOST_REPEATED:
        wrong = f"aliases and merge keys repeat more than {MOST_REPEATED:,} values"
        raise SpecError([_problem(source, node, wrong, "write the values out")])


def _children(node: Any) -> list[Any]:
    if isinstance(node, yaml.MappingNode):
        return [part for pair in node.value for part in pair]
    return list(node.value) if isinstance(node, yaml.SequenceNode) else []


def _problem(source: str, node: Any, wrong: str, fix: str) -> Problem:
    return YAML.at("", wrong, fix, source=source, line=node.start_mark.line + 1)


def _too_deep(source: str, line: int) -> SpecError:
    return SpecError([YAML.at("", "is nested too deeply", "write plain fields and lists", source=source, line=line)])
