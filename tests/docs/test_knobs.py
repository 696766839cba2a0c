"""The page of settings: every path is one of the fleet file, and every default is that of its model."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from kueue_fleet.fleet_file.schema import json_schema

PAGE = Path(__file__).parents[2] / "docs" / "knobs.md"
ROWS = re.findall(r"^\| (?!to \||-)(.+?) \| (.+?) \| (.*?) ?\|$", PAGE.read_text(), re.MULTILINE)


@cache
def whole_schema() -> dict[str, Any]:
    return json_schema()


def objects_in(schema: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The maps of fields that a value of this schema, or an item of it, may be."""
    if "$ref" in schema:
        yield from objects_in(whole_schema()["$defs"][schema["$ref"].rpartition("/")[2]])
    if "properties" in schema:
        yield schema["properties"]
    for part in (*schema.get("anyOf", ()), *schema.get("oneOf", ()), *filter(None, [schema.get("items")])):
        yield from objects_in(part)


def field_at(path: str) -> dict[str, Any]:
    """The schema of a field. Raises KeyError where the fleet file has none such."""
    fields = list(objects_in(whole_schema()["$defs"]["FleetSpec"]))
    result: dict[str, Any] = {}
    for name in path.replace("[]", "").split("."):
        known = {key: field for item in fields for key, field in item.items()}
        result = known[name]
        fields = list(objects_in(result))
    return result


def test_there_are_rows() -> None:
    assert len(ROWS) >= 25


@pytest.mark.parametrize(("what", "where", "default"), ROWS)
def test_each_path_and_default_is_that_of_the_model(what: str, where: str, default: str) -> None:
    paths = [path for path in re.findall(r"`([^`]+)`", where) if "/" not in path and path != "External"]
    assert paths, what
    fields = [field_at(path) for path in paths]
    value = fields[0].get("default")
    if isinstance(value, (str, int, bool)):
        output = value if isinstance(value, str) else json.dumps(value)
        assert default.startswith(f"`{output}`")
    else:
        assert "`" not in default


def test_a_path_that_is_not_there_is_found() -> None:
    with pytest.raises(KeyError, match="whenCanBorow"):
        field_at("clusterQueues[].flavorFungibility.whenCanBorow")
