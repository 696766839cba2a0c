"""Paths of what a file holds: `clusterQueues[dws].resourceGroups[0].flavors`, items of lists by name or number."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from kueue_admission.kernel.form_rules import FaultError
from kueue_admission.kernel.syntax import whole_number

Parts = tuple[tuple[str, bool], ...]
"""The keys of a path, each with whether it stands in brackets."""
_PART: Final = re.compile(r"(?:^|\.)([^.\[\]=]+)|\[([^\]]+)\]")


def parts_of(text: str) -> tuple[Parts, str]:
    """The path that a text begins with, and the rest of it."""
    end, parts = 0, []
    while end < len(text) and (match := _PART.match(text, end)) is not None:
        parts.append((match[1] or match[2], match[1] is None))
        end = match.end()
    return tuple(parts), text[end:]


def item_index(items: Sequence[Any], key: str) -> int | None:
    """Where in a list the item is that brackets name; None: nowhere."""
    for index, item in enumerate(items):
        if isinstance(item, Mapping) and item.get("name") == key:
            return index
    number = whole_number(key)
    return number if number is not None and number < len(items) else None


def keys_of(data: Any) -> str:
    """What a path may go on with there, as an instruction."""
    if isinstance(data, Mapping):
        return f"there are {', '.join(map(str, list(data)[:10])) or 'no fields'}"
    if isinstance(data, list):
        names = [
            str(item["name"]) if isinstance(item, Mapping) and "name" in item else str(n) for n, item in enumerate(data)
        ]
        return f"write one of {', '.join(names[:10]) or 'nothing, the list is empty'} in brackets"
    return "end the path before it"


def value_at(data: Any, path: str) -> Any:
    """What is at `path`. Raises FaultError where that leads nowhere."""
    parts, rest = parts_of(path)
    if rest or not parts:
        raise FaultError(f'"{path}" is not a path', "write it as clusterQueues[dws].resourceGroups[0].flavors")
    for key, is_bracketed in parts:
        index = item_index(data, key) if isinstance(data, list) and is_bracketed else None
        if index is not None:
            data = data[index]
        elif isinstance(data, Mapping) and key in data:
            data = data[key]
        else:
            raise FaultError(f"{path} is not in the file, as there is no {key}", keys_of(data))
    return data
