"""libyaml's errors in plain words, for the mistakes people make.

libyaml names the place where it cannot go on, which is after the mistake: a quote that is not closed ends at the next
quote, rows further on. So the rows there, and the quoted text before, are looked at first; what libyaml says decides
where they show nothing.
"""

from __future__ import annotations

import re
from contextlib import suppress
from typing import Any, Final, NamedTuple

import yaml

from kueue_admission.kernel.form_rules import YAML
from kueue_admission.kernel.problem import Problem

_SHOWN: Final = 120
"""Characters of a wrong row that a message has."""
_CONFLICT: Final = re.compile(r"<{7}|={7}|>{7}")
"""A row that Git puts between two versions of a text."""
_Scanner: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Words(NamedTuple):
    """The words for an error."""

    wrong: str
    fix: str
    earlier: bool = False
    """Whether that is in the row where the part began, instead of where reading it failed."""


class _Place(NamedTuple):
    """Where reading failed, counted from 0."""

    rows: list[str]
    line: int
    column: int
    opened: int
    """The line where the part began that was being read."""

    def row(self, line: int) -> str:
        """Without spaces around it; nothing outside the text."""
        return self.rows[line].strip() if 0 <= line < len(self.rows) else ""

    @property
    def before(self) -> str:
        """What the row has before the place, from the last bracket or comma on."""
        return re.split(r"[\[{,]", self.rows[self.line][: self.column])[-1] if self.line < len(self.rows) else ""

    @property
    def character(self) -> str:
        """The one that reading failed at; empty at the end of a row."""
        return self.rows[self.line][self.column : self.column + 1] if self.line < len(self.rows) else ""


_TAB: Final = _Words("a tab is used for indentation", "use spaces, two for each level")
_NO_BREAK: Final = _Words("a no-break space is used for indentation", "replace it by a space; copied pages have such")
_OPEN_QUOTE: Final = _Words("a quote is opened and not closed", "close it", earlier=True)
_ROWS: Final = (
    (_CONFLICT, _Words("Git's mark of a conflict is left", "keep one version, and remove the marks")),
    (re.compile("```"), _Words("a fence of Markdown is left", "remove the rows with ```")),
    (
        re.compile(r".*\{\{.*\}\}"),
        _Words("a template is not filled in", "fill it in, or put it in quotes if it is text"),
    ),
    (re.compile(r"-[A-Za-z_\"'{\[]"), _Words("there is no space after a dash", "write '- name: value'")),
    (
        re.compile(r"[\w.-]+:[^\s/:][^:]*$"),
        _Words("there is no space after a colon", "write it as 'name: value'"),
    ),
)
"""Rows that are wrong whatever is around them, where reading fails at them."""
_MISTAKES: Final = (
    ("escape", _Words("what follows a backslash is not known", "double the backslash, or use single quotes")),
    ("unhashable key", _Words("a list or a map stands where a name is needed", "put a template's braces in quotes")),
    ("for merging", _Words("<< merges something other than maps", "give it an alias of a map, or a list of those")),
    ("quoted scalar", _OPEN_QUOTE),
    ("flow", _Words("a bracket is opened and not closed, or a comma is missing", "close it", earlier=True)),
    ("expected ':'", _Words("there is no colon", "write it as 'name: value'", earlier=True)),
    (
        "mapping values are not allowed",
        _Words("the colon or the indentation is wrong", "line it up with the keys beside it"),
    ),
    ("did not find expected", _Words("the indentation is wrong", "line it up with what it belongs to")),
    (
        "undefined alias",
        _Words("there is no anchor of the alias", "put the value in quotes, or define the anchor above it"),
    ),
    ("constructor for the tag", _Words("a tag is not allowed", "remove what begins with !")),
    ("cannot start any token", _Words("a value begins with a character that YAML reserves", "put the value in quotes")),
)
"""Parts of libyaml's context and reason, and the words for them; the first that fits."""


def remedy_of_twice(key: str) -> str:
    """What to do about a field that is written twice in a map."""
    if key in ("apiVersion", "kind"):
        return "where another object begins, put a row with --- before it"
    return "remove one of the two"


def explain(error: yaml.MarkedYAMLError, text: str, source: str) -> Problem:
    """The problem that `error` is, found while reading `text`, which came from `source`."""
    mark = error.problem_mark or error.context_mark
    line, column = (mark.line, mark.column) if mark is not None else (0, 0)
    first_line = error.context_mark.line if error.context_mark is not None else line
    rows = [*text.split("\n"), ""]
    while first_line > 0 and not rows[min(first_line, len(rows) - 1)].strip():
        first_line -= 1  # The end of the text is where libyaml puts what was never closed.
    place = _Place(rows, line, column, first_line)
    reason = f"{error.context or ''}: {error.problem or error}"
    at, words = _by_rows(place) or _by_quotes(place, text) or _by_place(place, reason) or _by_reason(place, reason)
    row_text = f": {place.row(at)[:_SHOWN]}" if words is not _TAB else ""
    return YAML.at("", f"{words.wrong}{row_text}", words.fix, source=source, line=at + 1)


def _by_rows(place: _Place) -> tuple[int, _Words] | None:
    """By what the row has where reading failed, the row before it, or the row where the part began."""
    for line in (place.line, place.line - 1):
        if 0 <= line < len(place.rows) and re.match(r" *\t", place.rows[line]):
            return line, _TAB
    for line in range(place.opened, min(place.line + 1, len(place.rows))):
        if re.match(r" *\u00a0", place.rows[line]):
            return line, _NO_BREAK
    for line in (place.opened, place.line, place.line - 1):
        for mistake, words in _ROWS:
            if mistake.match(place.row(line)):
                return line, words
    return None


def _by_quotes(place: _Place, text: str) -> tuple[int, _Words] | None:
    """By the last text in quotes before the place: rows of it, or more of the value behind it."""
    last: Any = None
    with suppress(yaml.YAMLError):
        for token in yaml.scan(text, Loader=_Scanner):
            if token.start_mark.line > place.line:
                break
            if isinstance(token, yaml.ScalarToken) and token.style in ("'", '"'):
                last = token
    if last is None or last.end_mark.line != place.line or last.end_mark.column > place.column + 1:
        return None
    if last.start_mark.line < place.line:
        return last.start_mark.line, _OPEN_QUOTE
    if last.end_mark.column == place.column and place.character not in ("", ":", ",", "]", "}"):
        return place.line, _Words(
            "a value goes on behind its closing quote", "put all of it in quotes of the other kind"
        )
    return None


def _by_place(place: _Place, reason: str) -> tuple[int, _Words] | None:
    """By the character that reading failed at, and what its row has before it."""
    if place.character == ":" and re.search(r":\s", place.before):
        fix = "put the value in quotes, a comma before the next name, or a map in { }"
        return place.line, _Words("a value has a colon in it, or two fields are in one row", fix)
    if "expected ':'" in reason or "mapping values" in reason:
        for line in (place.opened, place.line):
            if place.row(line).startswith(("{", "[")):
                return line, _Words("a map or a list stands where a field is needed", "write 'name: ' before it")
    if "did not find expected key" in reason:
        if place.character in ("]", "}"):
            return place.line, _Words("a bracket is closed that was not opened", "remove it")
        if re.match(r"-\s", place.row(place.line)):
            fix = "move it to its list, and line it up with the items there"
            return place.line, _Words("an item of a list stands among the fields of a map", fix)
    return None


def _by_reason(place: _Place, reason: str) -> tuple[int, _Words]:
    """By what libyaml says."""
    words = next((words for part, words in _MISTAKES if part in reason), None)
    words = words or _Words(f"is not readable as YAML, {reason.removeprefix(': ')}", "correct it")
    return (place.opened if words.earlier else place.line), words
