"""Large YAML texts, such as dumps of clusters, read about ten times as fast as libyaml and PyYAML read them.

Gives data only. `yaml_text` is slower and knows more: the line of each field, keys that are written twice, anchors, and
what is wrong with a text that cannot be read.
"""

from __future__ import annotations

import re
from typing import Any, Final

_MARKER: Final = re.compile(r"^---(?=\s|$)", re.MULTILINE)
_CONTENT: Final = re.compile(r"^[ \t]*[^ \t\r\n#]", re.MULTILINE)
_ANCHOR_OR_TAG: Final = re.compile(r"(?:^|[\s\[{,])(?:&\w|!\S)", re.MULTILINE)
_BEFORE: Final = (" ", "\t", "\n", "[", "{", ",")
_OTHER: Final = ("<<", "\n%", "\n...", "\r", "\0", "\x0b", "\x0c")
_FAR_SPACE: Final = re.compile(r"[^\S \t\n]")
"""Whitespace of other alphabets: text to YAML, but yaml12 0.2 drops it where a value begins or ends with it."""


def load_large(text: str) -> list[tuple[int, Any]] | None:
    """The line, counted from 1, and the data of each document that is not empty.

    None for a text which is not good YAML, or has anchors, tags, merge keys or directives: `yaml_text` has to read it.
    Types are those of YAML 1.2, as there. Of a key that is written twice in a map, the last value counts.
    """
    if _is_special(text):
        return None
    import yaml12

    documents_there: list[tuple[int, Any]] = []
    begins = [0, *(marker.end() for marker in _MARKER.finditer(text))]
    for begin, end in zip(begins, [*(at - 3 for at in begins[1:]), len(text)], strict=True):
        document = text[begin:end]
        content = _CONTENT.search(document)
        if content is None:
            continue
        try:
            data = yaml12.parse_yaml(document)
        except ValueError:
            return None
        documents_there.append((text.count("\n", 0, begin + content.end()) + 1, data))
    return documents_there


def _is_special(text: str) -> bool:
    if text.startswith("%") or any(mark in text for mark in _OTHER):
        return True
    if not text.isascii() and _FAR_SPACE.search(text):
        return True
    quickly = text[:1] in "&!" or any(f"{before}{mark}" in text for before in _BEFORE for mark in "&!")
    return quickly and _ANCHOR_OR_TAG.search(text) is not None
