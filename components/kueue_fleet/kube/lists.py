"""The items of a list that an API server answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kueue_fleet.kube.answers import ApiError, Json


def list_of(answer: Mapping[str, Any]) -> list[Json]:
    """The objects of a list. Raises ApiError where the answer is none."""
    items = answer.get("items")
    if not isinstance(items, list) or not all(map(_is_object, items)):
        raise ApiError(0, "", "the answer is not a list of objects, as API servers send it")
    return items


def _is_object(item: object) -> bool:
    metadata = item.get("metadata") if isinstance(item, dict) else None
    return isinstance(metadata, dict) and isinstance(metadata.get("name"), str)
