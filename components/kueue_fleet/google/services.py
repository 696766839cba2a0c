"""The APIs of Google Cloud that a project has enabled."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kueue_fleet.google.resource import CloudResource

SERVICE = "gcp:projects/service:Service"
"""Pulumi's token of an API that is enabled."""


def services(name: str, *, project: Any, apis: Sequence[str]) -> list[CloudResource]:
    """`apis`, such as container.googleapis.com; they stay enabled when they go, since others may use them."""
    return [
        CloudResource(SERVICE, f"{name}/{api}", {"project": project, "service": api, "disableOnDestroy": False})
        for api in apis
    ]
