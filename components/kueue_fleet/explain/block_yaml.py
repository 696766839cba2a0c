"""The YAML that kubectl prints, read about fifteen times as fast as by a full reader.

In: the text of one block. Out: the same plain data that `spec.yamltext` makes of it. Only maps and lists in block
style are known, with plain and quoted scalars, also folded ones; for everything else (anchors, tags, comments, flow
style, literal blocks, a key written twice) `NotSimpleError` is raised, and the full reader is to be asked.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

_ROW: Final = re.compile(r"^( *)(- )?(?:([A-Za-z0-9_./:-]+?):(?: (.*))?|(.*))$", re.MULTILINE)
_TYPED: Final = frozenset("~nNtTfF-+.0123456789")
_NULL: Final = frozenset(("~", "null", "Null", "NULL"))
_TRUE: Final = frozenset(("true", "True", "TRUE"))
_FALSE: Final = frozenset(("false", "False", "FALSE"))
_NUMBER: Final = re.compile(
    r"(?P<int>[-+]?[0-9]+)|0[ox][0-9a-fA-F]+|[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?"
    r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)"
)
_NAME: Final = re.compile(
    r"([a-zA-Z][a-zA-Z0-9.]*-[-a-zA-Z0-9.]*|[a-eg-mo-su-z][-a-zA-Z0-9.]*|[0-9a-f]{8}-[0-9a-f]{4}-[-0-9a-f]*[0-9a-f])"
    r"|(['\"])([-a-zA-Z0-9.:]*)\2"
)
"""What is text beyond doubt: a name that can be no word of YAML, a UID, or something quoted."""
_SPECIAL: Final = frozenset(" &*!|>{}[]%@`#,?:-\"'\t")

Row = tuple[str, str, str, str, str]
"""A row of the table of a block."""


class NotSimpleError(Exception):
    """The text has something that only a full reader knows."""


def read_block(text: str) -> Any:
    """The data in `text`, which ends with its last line. Raises NotSimpleError."""
    if "\n\n" in text or " \n" in text or not text.replace("\n", "").isprintable():
        raise NotSimpleError
    rows: list[Row] = _ROW.findall(text.rstrip("\n"))
    found, end = _Reader(rows).block(0, len(rows[0][0]))
    if end != len(rows):
        raise NotSimpleError
    return found


def read_name(text: str) -> str | None:
    """The text that a scalar on one row stands for, mostly a name or a time; None if it is a number, or not simple."""
    simple = _NAME.fullmatch(text)
    if simple is not None:
        return simple[1] or simple[3]
    try:
        found = read_block(f"name: {text}")["name"]
    except NotSimpleError:
        return None
    return found if isinstance(found, str) else None


class _Reader:
    def __init__(self, rows: list[Row]) -> None:
        self._rows = rows
        self._count = len(rows)

    def block(self, at: int, indent: int) -> tuple[Any, int]:
        """The list or map whose first row is `at`, and the row after it."""
        return self._list(at, indent) if self._rows[at][1] else self._map(at, indent)

    def _list(self, at: int, indent: int) -> tuple[list[Any], int]:
        found: list[Any] = []
        rows = self._rows
        while at < self._count and rows[at][1] and len(rows[at][0]) == indent:
            _, _, key, _, text = rows[at]
            if key:
                item, at = self._map(at, indent + 2)
            elif text:
                item, at = self._scalar(text, at + 1, indent + 1)
            else:
                raise NotSimpleError
            found.append(item)
        return found, at

    def _map(self, at: int, indent: int) -> tuple[dict[str, Any], int]:
        """A map; its first row may be the one of a list item."""
        found: dict[str, Any] = {}
        rows, count = self._rows, self._count
        first = True
        while at < count:
            spaces, dash, key, value, other = rows[at]
            if first:
                first = False
            elif len(spaces) != indent or dash:
                break
            if not key or other or key in found or (key[0] in _TYPED and not isinstance(_typed(key), str)):
                raise NotSimpleError
            at += 1
            if value:
                # Most values are on one row, and most of those are text that means itself.
                if (at == count or len(rows[at][0]) <= indent) and value[0].isalpha() and value[0] not in _TYPED:
                    found[key] = _plain(value)
                else:
                    found[key], at = self._scalar(value, at, indent + 1)
            elif at < count and (len(rows[at][0]) > indent or (len(rows[at][0]) == indent and rows[at][1])):
                found[key], at = self.block(at, len(rows[at][0]))
            else:
                found[key] = None
        return found, at

    def _scalar(self, text: str, at: int, indent: int) -> tuple[Any, int]:
        """A scalar whose first row is behind; rows that are indented at least so far go on with it."""
        quote = text[:1]
        if quote in ("'", '"'):
            while not _is_closed(text, quote):
                text, at = self._join(text, at, indent)
            return _quoted(text, quote), at
        folded = False
        while at < self._count and len(self._rows[at][0]) >= indent:
            text, at = self._join(text, at, indent)
            folded = True
        if text in ("{}", "[]"):
            return ({} if text == "{}" else []), at
        plain = _plain(text)
        return (plain if folded or not plain or plain[0] not in _TYPED else _typed(plain)), at

    def _join(self, text: str, at: int, indent: int) -> tuple[str, int]:
        if at >= self._count or len(self._rows[at][0]) < indent:
            raise NotSimpleError
        _, dash, key, value, other = self._rows[at]
        more = f"{dash}{key}:{' ' + value if value else ''}" if key else f"{dash}{other}"
        return f"{text} {more}", at + 1


def _is_closed(text: str, quote: str) -> bool:
    if quote == '"':
        if "\\" in text:
            raise NotSimpleError
        return len(text) > 1 and text.endswith('"')
    return text[1:].replace("''", "").endswith("'")


def _quoted(text: str, quote: str) -> str:
    inner = text[1:-1]
    if quote == '"':
        if '"' in inner:
            raise NotSimpleError
        return inner
    inner = inner.replace("''", "\0")
    if "'" in inner:
        raise NotSimpleError
    return inner.replace("\0", "'")


def _plain(text: str) -> str:
    if " #" in text or ": " in text or text[-1:] in (":", " "):
        raise NotSimpleError
    if text[:1] in _SPECIAL and not (text[:1] == "-" and text[1:2] not in ("", " ")):
        raise NotSimpleError
    return text


_WORDS: Final[tuple[tuple[frozenset[str], Callable[[], Any]], ...]] = (
    (_NULL, lambda: None),
    (_TRUE, lambda: True),
    (_FALSE, lambda: False),
)


def _typed(text: str) -> Any:
    """The value of a plain scalar that begins as a number or a word of YAML may."""
    for words, value in _WORDS:
        if text in words:
            return value()
    number = _NUMBER.fullmatch(text)
    if number is None:
        return text
    if number["int"]:
        return int(text)
    raise NotSimpleError
