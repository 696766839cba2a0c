"""The reference page says what the models say."""

from __future__ import annotations

from pathlib import Path

import pytest

from kueue_fleet.fleet_file import json_schema
from kueue_fleet.fleet_file.reference import reference_markdown

PAGE = Path(__file__).parents[2] / "docs" / "reference.md"


def test_the_page_in_the_repository_is_current(request: pytest.FixtureRequest) -> None:
    text = reference_markdown()
    if request.config.getoption("update_snapshots"):
        PAGE.write_text(text + "\n")
    assert PAGE.read_text() == text + "\n", "run `make golden`"


def test_every_field_is_on_it() -> None:
    text = reference_markdown()
    for name, definition in json_schema()["$defs"].items():
        if "properties" in definition:
            assert f"\n## {name}\n" in text
            assert all(f"\n| `{field}` |" in text for field in definition["properties"])


def test_every_link_leads_somewhere() -> None:
    text = reference_markdown()
    headings = {line.removeprefix("## ").lower() for line in text.splitlines() if line.startswith("## ")}
    targets = {part.partition(")")[0] for part in text.split("](#")[1:]}
    assert targets <= headings, targets - headings


def test_types_defaults_and_limits_are_in_words() -> None:
    lines = reference_markdown().splitlines()
    assert "| `clusters` | list of [ClusterEntry](#clusterentry) | **required** | One manager with up to 100 workers, or one standalone cluster; a queue is on at most 20 of the workers. |" in lines  # fmt: skip  # noqa: E501
    assert any(line.startswith("| `headroomPercent` | whole number, 0 to 1000 | `0` |") for line in lines)
    assert any(line.startswith('| `mode` | `Autopilot`, `Standard` | `"Autopilot"` |') for line in lines)
