"""The JSON schema of fleet files, for editors."""

from __future__ import annotations

from typing import Any

from kueue_fleet.spec.fleet import FleetSpec


def json_schema() -> dict[str, Any]:
    """JSON schema (draft 2020-12) of a bare fleet file."""
    return FleetSpec.model_json_schema(by_alias=True)
