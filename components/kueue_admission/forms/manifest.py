"""Objects of Kubernetes as plain data: what JSON and YAML have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeGuard

Manifest = Mapping[str, Any]
"""An object of Kubernetes, or a part of one, to be read."""


def is_object(data: object) -> TypeGuard[Manifest]:
    """Whether `data` has fields."""
    return type(data) is dict or isinstance(data, Mapping)  # The first is much cheaper to ask.


def inside(data: object, *names: str) -> Manifest:
    """The object at the end of these fields; empty where there is none."""
    for name in names:
        data = data.get(name) if is_object(data) else None
    return data if is_object(data) else {}
