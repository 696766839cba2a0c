"""The APIs of Google Cloud that a project has enabled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kueue_fleet.google.resource import CloudResource
from kueue_fleet.google.resource_types import API_SERVICE


def services(
    name: str, *, project: Any, apis: Sequence[str], elsewhere: Mapping[str, Sequence[str]] | None = None
) -> list[CloudResource]:
    """`apis`, such as container.googleapis.com, and those of other projects, `elsewhere`.

    They stay enabled when they go, since others may use them.
    """
    own = [(f"{name}/{api}", project, api) for api in apis]
    others = [(f"{name}/{other}/{api}", other, api) for other, names in (elsewhere or {}).items() for api in names]
    return [
        CloudResource(API_SERVICE, at, {"project": where, "service": api, "disableOnDestroy": False})
        for at, where, api in (*own, *others)
    ]
