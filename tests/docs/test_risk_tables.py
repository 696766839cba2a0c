"""The tables of risks of the live pages: each row names tests that are there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TABLES = ("| risk | protection | test |", "| OWASP Top 10 (2021) | protection | test |")


def rows() -> list[str]:
    """Those of both tables, without their heads."""
    text = (ROOT / "SECURITY.md").read_text()
    return [row for head in TABLES for row in text.partition(f"{head}\n")[2].partition("\n\n")[0].splitlines()[1:]]


def test_every_point_of_owasps_ten_has_a_row() -> None:
    assert re.findall("A[0-9]{2}", " ".join(row.split("|")[1] for row in rows())) == [f"A{n:02}" for n in range(1, 11)]


@pytest.mark.parametrize("row", rows(), ids=lambda row: row.split("|")[1].strip())
def test_a_row_names_tests_that_are_there(row: str) -> None:
    named = re.findall("`(tests/[^`]+)`", row.split("|")[3])
    assert named
    for item in named:
        path, _, name = item.partition("::")
        assert re.search(rf"^(async )?def {name}\(", (ROOT / path).read_text(), re.M), item
