"""The page of features: each cell names a test that is there, or says why there is none."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
PAGE = TESTS.parent / "docs" / "features.md"
TABLE = TESTS / "docs" / "features.csv"
NO = "no: "
NOTHING_TO_KNOW = (
    "it changes no decision",
    "they change no decision",
    "it costs nothing",
    "a job, which the file does not have",
    "a fault is not in the file",
)
"""Reasons that lie in the feature itself."""


def rows() -> list[dict[str, str]]:
    return list(csv.DictReader(line for line in TABLE.read_text().splitlines() if not line.startswith("#")))


def cells() -> list[tuple[str, str, str]]:
    """Feature, column and what stands there."""
    return [(row["feature"], column, text) for row in rows() for column, text in row.items() if column != "feature"]


@pytest.mark.parametrize(("feature", "column", "text"), cells(), ids=lambda each: each[:40])
def test_a_cell_names_a_test_that_is_there_or_a_reason(feature: str, column: str, text: str) -> None:
    if text.startswith(NO):
        assert len(text) > len(NO)
        return
    path, _, name = text.partition("::")
    assert re.search(rf"^def {name}\(", (TESTS / path).read_text(), re.M), f"{feature}, {column}: there is no {text}"


def test_the_page_has_the_table(request: pytest.FixtureRequest) -> None:
    lines = [["feature", "no", "nothing to know"], ["---"] * 3]
    for row in rows():
        without = {column: text.removeprefix(NO) for column, text in row.items() if text.startswith(NO)}
        by_itself = [column for column, reason in without.items() if reason in NOTHING_TO_KNOW]
        lines.append(
            [row["feature"], ", ".join(column for column in without if column not in by_itself), ", ".join(by_itself)]
        )
    table = "".join(f"| {' | '.join(line)} |\n" for line in lines)
    text = PAGE.read_text()
    result = text.partition("| feature |")[0] + table
    if request.config.getoption("update_snapshots"):
        PAGE.write_text(result)
    assert result == text
