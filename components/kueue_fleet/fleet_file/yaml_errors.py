"""libyaml's errors in plain words, for the mistakes people make."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

import yaml

from kueue_fleet.kueue_api.problem import Problem

_SHOWN: Final = 120
"""Characters of a wrong row that a message has."""
_CONFLICT: Final = re.compile(r"<{7}|={7}|>{7}")
"""A row that Git puts between two versions of a text."""


class _Words(NamedTuple):
    """What is said of an error."""

    wrong: str
    fix: str
    earlier: bool = False
    """Whether that is in the row where the part began, instead of where reading it failed."""


_MISTAKES: Final = (
    ("escape", _Words("what follows a backslash is not known", "double the backslash, or use single quotes")),
    ("unhashable key", _Words("a list or a map stands where a name is needed", "put a template's braces in quotes")),
    ("for merging", _Words("<< merges something other than maps", "give it an alias of a map, or a list of those")),
    ("quoted scalar", _Words("a quote is opened and not closed", "close it", earlier=True)),
    ("flow", _Words("a bracket is opened and not closed, or a comma is missing", "close it", earlier=True)),
    ("expected ':'", _Words("there is no colon", "write it as 'name: value'", earlier=True)),
    (
        "mapping values are not allowed",
        _Words("the colon or the indentation is wrong", "line it up with the keys beside it"),
    ),
    ("node content", _Words("a bracket is closed that was not opened", "remove it")),
    ("did not find expected", _Words("the indentation is wrong", "line it up with what it belongs to")),
    (
        "undefined alias",
        _Words("there is no anchor of the alias", "put the value in quotes, or define the anchor above it"),
    ),
    ("constructor for the tag", _Words("a tag is not allowed", "remove what begins with !")),
    ("cannot start any token", _Words("a value begins with a character that YAML reserves", "put the value in quotes")),
)
"""What libyaml's context and reason have in them, and what is said then; the first that fits."""


def explain(error: yaml.MarkedYAMLError, text: str, source: str) -> Problem:
    """The problem that `error` is, found while reading `text`, which came from `source`."""
    mark = error.problem_mark or error.context_mark
    line = mark.line if mark is not None else 0
    opened = error.context_mark.line if error.context_mark is not None else line
    lines = [*text.split("\n"), ""]
    while opened > 0 and not lines[min(opened, len(lines) - 1)].strip():
        opened -= 1  # The end of the text is where libyaml puts what was never closed.
    tabbed = next((n for n in (line, line - 1) if 0 <= n < len(lines) and re.match(r" *\t", lines[n])), None)
    if tabbed is not None:
        fix = "use spaces, two for each level"
        return Problem("", "a tab is used for indentation", fix, source=source, line=tabbed + 1)
    failed, begun = (lines[min(n, len(lines) - 1)].strip()[:_SHOWN] for n in (line, opened))
    words = _words(error, failed, begun)
    shown, at = (begun, opened) if words.earlier else (failed, line)
    return Problem("", f"{words.wrong}: {shown}", words.fix, source=source, line=at + 1)


def _words(error: yaml.MarkedYAMLError, failed: str, begun: str) -> _Words:
    for row in (begun, failed):
        if _CONFLICT.match(row):
            return _Words("Git's mark of a conflict is left", "keep one version, and remove the marks", row is begun)
    reason = error.problem or str(error)
    found = f"{error.context or ''}: {reason}"
    if "did not find expected key" in found and failed.endswith(("]", "}")):
        found = "node content"
    words = next((words for part, words in _MISTAKES if part in found), None)
    return words or _Words(f"is not readable as YAML, {reason}", "correct it")
