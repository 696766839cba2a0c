"""Plain data in words, for sentences about a file: `nodeLabels a b, stopPolicy Hold` and not a line of JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def listed(names: Sequence[str]) -> str:
    """The names as in a sentence: `a, b and c`."""
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def in_words(value: Any) -> str:
    """A value of a file in words: a map by its name and its fields, a list by its items; nothing for what is empty."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Mapping):
        name_text = str(value["name"]) if "name" in value else ""
        rest = ", ".join(fields_in_words(value))
        return f"{name_text} ({rest})" if name_text and rest else name_text or rest or "nothing"
    if isinstance(value, list | tuple):
        return listed([*map(in_words, value)]) or "nothing"
    return str(value)


def fields_in_words(value: Mapping[str, Any]) -> list[str]:
    """Each field but the name that is not empty; quotas by their flavors alone."""
    words = []
    for key, item in value.items():
        if key == "resourceGroups" and item:
            flavors = [str(flavor["name"]) for group in item for flavor in group["flavors"]]
            words.append(f"quotas on {listed(flavors)}")
        elif key != "name" and item not in ({}, [], None):
            words.append(f"{key} {in_words(item)}")
    return words
