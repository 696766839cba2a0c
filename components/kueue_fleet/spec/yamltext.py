"""YAML as the fleet reads it: the 1.2 core schema, with duplicate keys refused.

In: text. Out: plain data, in which `yes` and `on` are text, `010` is ten, `12:30` is text and dates are text, as in
Pulumi's own reader; so a file means the same to the checker and to `pulumi up`. Every failure names its line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, ClassVar, Final

import yaml

from kueue_fleet.spec.problem import Problem, SpecError

_Base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


_DEEPEST: Final = 500
"""Levels within one row, or of brackets, that are read."""
_SHOWN: Final = 120
"""Characters of a wrong row that a message has."""
_BRACKET: Final = re.compile(r"[][{}]")


class _Loader(_Base):  # type: ignore[misc]
    """libyaml's loader where PyYAML has it, which is ten times faster."""

    yaml_implicit_resolvers: ClassVar[dict[str, list[tuple[str, re.Pattern[str]]]]] = {}

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        self._refuse_duplicates(node)
        made: dict[Any, Any] = super().construct_mapping(node, deep=deep)
        return made

    def _refuse_duplicates(self, node: Any) -> None:
        first: dict[Any, int] = {}
        for key, _ in node.value:
            if key.tag == "tag:yaml.org,2002:merge" or not isinstance(key, yaml.ScalarNode):
                continue
            line = key.start_mark.line + 1
            if key.value in first:
                raise _DuplicateKeyError(key.value, first[key.value], line)
            first[key.value] = line


class _DuplicateKeyError(Exception):
    def __init__(self, key: str, first: int, again: int) -> None:
        super().__init__(key)
        self.key, self.first, self.again = key, first, again


_RESOLVERS: Final = (
    ("null", r"~|null|Null|NULL|", "~nN\0"),
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("int", r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+", "-+0123456789"),
    (
        "float",
        r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)",
        "-+.0123456789",
    ),
    ("merge", r"<<", "<"),
)
for _name, _pattern, _first in _RESOLVERS:
    for _letter in _first:
        _Loader.yaml_implicit_resolvers.setdefault("" if _letter == "\0" else _letter, []).append(
            (f"tag:yaml.org,2002:{_name}", re.compile(rf"(?:{_pattern})\Z"))
        )


def _integer(loader: Any, node: Any) -> int:
    text = loader.construct_scalar(node)
    try:
        return int(text, 0) if text[:2] in ("0o", "0x") else int(text)
    except ValueError:
        raise yaml.MarkedYAMLError(problem=f"a number has {len(text)} digits", problem_mark=node.start_mark) from None


_Loader.add_constructor("tag:yaml.org,2002:int", _integer)


def load_yaml(text: str, source: str) -> Any:
    """The one document in `text`. Raises SpecError, with `source` and the line, for text that is no good YAML."""
    documents = load_documents(text, source)
    if len(documents) > 1:
        raise SpecError([Problem(source, f"holds {len(documents)} YAML documents", "keep one fleet to a file")])
    return documents[0][1] if documents else None


def load_documents(text: str, source: str) -> list[tuple[int, Any]]:
    """Every document in `text` with the line where it begins. Raises SpecError as `load_yaml` does."""
    deep = _too_deep(text)
    if deep is not None:
        raise SpecError([Problem(f"{source}:{deep}", "is nested too deeply", "write plain fields and lists")])
    try:
        return list(_documents(text))
    except _DuplicateKeyError as error:
        raise SpecError(
            [
                Problem(
                    f"{source}:{error.again}",
                    f"{error.key} is written twice in the same map, first in line {error.first}",
                    "remove one of the two",
                )
            ]
        ) from None
    except yaml.MarkedYAMLError as error:
        raise SpecError([_explain(error, text, source)]) from None
    except yaml.YAMLError as error:
        line = text.count("\n", 0, getattr(error, "position", 0)) + 1
        reason = str(getattr(error, "reason", None) or error)
        raise SpecError([Problem(f"{source}:{line}", f"is not readable as YAML: {reason}", "remove it")]) from None


def _too_deep(text: str) -> int | None:
    """The line where more brackets are open, or more lists begin in one row, than can be read.

    Reading goes into each level by a call of its own, and too many of them end the whole process. Counting brackets
    is quick, but takes those for some that are within text; where there are many, libyaml's events are counted.
    """
    depth, most = 0, 0
    if text.count("[") + text.count("{") > _DEEPEST:
        for found in _BRACKET.finditer(text):
            depth = depth + 1 if found[0] in "[{" else max(0, depth - 1)
            most = max(most, depth)
    if most <= _DEEPEST and not any(f"{mark} " * _DEEPEST in text for mark in "-?"):
        return None
    depth = 0
    try:
        for event in yaml.parse(text, _Loader):
            if isinstance(event, yaml.CollectionStartEvent):
                depth += 1
                if depth > _DEEPEST and event.start_mark is not None:
                    return int(event.start_mark.line) + 1
            elif isinstance(event, yaml.CollectionEndEvent):
                depth -= 1
    except yaml.YAMLError:
        return None
    return None


def _documents(text: str) -> Iterator[tuple[int, Any]]:
    loader: Any = _Loader(text)
    try:
        while loader.check_node():
            node = loader.get_node()
            yield node.start_mark.line + 1, loader.construct_document(node)
    finally:
        loader.dispose()


def _explain(error: yaml.MarkedYAMLError, text: str, source: str) -> Problem:
    """libyaml's error in plain words, for the mistakes people make."""
    mark = error.problem_mark or error.context_mark
    line = mark.line if mark is not None else 0
    opened = error.context_mark.line if error.context_mark is not None else line
    lines = [*text.split("\n"), ""]
    shown = lines[min(line, len(lines) - 1)].strip()[:_SHOWN]
    while opened > 0 and not lines[min(opened, len(lines) - 1)].strip():
        opened -= 1  # The end of the text is where libyaml puts what was never closed.
    begun = lines[min(opened, len(lines) - 1)].strip()[:_SHOWN]
    reason, context = error.problem or str(error), error.context or ""
    where, earlier = f"{source}:{line + 1}", f"{source}:{opened + 1}"
    tabbed = next((n for n in (line, line - 1) if 0 <= n < len(lines) and re.match(r" *\t", lines[n])), None)
    if tabbed is not None:
        return Problem(f"{source}:{tabbed + 1}", "a tab is used for indentation", "use spaces, two for each level")
    if "quoted scalar" in context:
        return Problem(earlier, f"a quote is opened and not closed: {begun}", "close it")
    if "flow" in context:
        return Problem(earlier, f"a bracket is opened and not closed, or a comma is missing: {begun}", "close it")
    if "expected ':'" in reason:
        return Problem(earlier, f"there is no colon: {begun}", "write it as 'name: value'")
    if "mapping values are not allowed" in reason:
        return Problem(where, f"the colon or the indentation is wrong: {shown}", "line it up with the keys beside it")
    if "did not find expected" in reason:
        return Problem(where, f"the indentation is wrong: {shown}", "line it up with what it belongs to")
    if "undefined alias" in reason:
        return Problem(where, f"{reason}: {shown}", "put the value in quotes")
    if "constructor for the tag" in reason:
        return Problem(where, f"a tag is not allowed: {shown}", "remove what begins with !")
    if "cannot start any token" in reason:
        return Problem(where, f"a value begins with a character that YAML reserves: {shown}", "put the value in quotes")
    return Problem(where, f"is not readable as YAML, {reason}: {shown}", "correct it")
