"""The reference page says what the models say."""

from __future__ import annotations

import re
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
    for definition in json_schema()["$defs"].values():
        for field, schema in definition.get("properties", {}).items():
            if schema.get("deprecated"):
                continue
            assert re.search(rf"`([\w\[\].*]+\.)?{field}`", text), field


@pytest.mark.parametrize(
    "row",
    [
        "| `clusters` | [ClusterEntry](#clusterentry)[]! | One manager with up to 100 workers, ",
        "| `headroomPercent` | integer 0..1000 = `0` | Quota of the manager beyond ",
        "| `mode` | **`Autopilot`**, `Standard` | ",
        "| `maintenance.exclusions[].end` | time | ",
        "| `existing.subnets.*.name` | text! | ",
        "| `flavors[].resources[].lendingLimit` | quantity | ",
        "| `dispatch.widenAfter` | duration = `5m` | ",
    ],
)
def test_paths_types_defaults_and_limits(row: str) -> None:
    assert f"\n{row}" in reference_markdown()


def test_the_differences_of_a_cluster_are_one_row() -> None:
    row = "`perCluster` | PoolOverride{} | Differences on single clusters. Fields, as beside it: `zones`,"
    assert row in reference_markdown()


def test_fields_that_another_section_has_are_not_written_again() -> None:
    text = reference_markdown()
    assert "As [FleetResourceGroup](#fleetresourcegroup), without `perCluster` and `during`. |" in text
    assert "`manager.resourceGroups[]." not in text


def test_the_text_leaves_out_what_the_type_says() -> None:
    assert "| `deletionProtection` | boolean = `true` | Clusters, node pools, " in reference_markdown()


def test_every_link_leads_somewhere() -> None:
    text = reference_markdown()
    headings = {line.removeprefix("## ").lower() for line in text.splitlines() if line.startswith("## ")}
    targets = {part.partition(")")[0] for part in text.split("](#")[1:]}
    assert targets == headings - {"fleetspec", "rehearsalsection"}
