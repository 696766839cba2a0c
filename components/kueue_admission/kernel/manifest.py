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


def maps_in(data: object) -> list[Manifest]:
    """The maps of a list; none where it is not a list."""
    return [item for item in data if is_object(item)] if isinstance(data, list) else []


def is_live(manifest: Manifest) -> bool:
    """Whether an API server has it, or had it when it was printed."""
    metadata = inside(manifest, "metadata")
    return bool(metadata.get("uid") or metadata.get("creationTimestamp"))


def key_of(manifest: Manifest) -> str:
    """`namespace/name` of a namespaced object."""
    metadata = inside(manifest, "metadata")
    return f"{metadata.get('namespace') or 'default'}/{metadata.get('name')}"
