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
SHORT = {
    f"{NO}it changes no decision": "-",
    f"{NO}they change no decision": "-",
    f"{NO}it costs nothing": "free",
    f"{NO}a job, which the file does not have": "job",
    f"{NO}a fault is not in the file": "fault",
}
"""Reasons that the page has above its table; of the others it has only that there is one."""


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
    head = list(rows()[0])
    lines = [head, ["---"] * len(head)]
    lines += [
        [
            text if column == "feature" else SHORT.get(text, "no") if text.startswith(NO) else "yes"
            for column, text in row.items()
        ]
        for row in rows()
    ]
    table = "".join(f"| {' | '.join(line)} |\n" for line in lines)
    text = PAGE.read_text()
    made = text.partition("| feature |")[0] + table
    if request.config.getoption("update_snapshots"):
        PAGE.write_text(made)
    assert made == text
