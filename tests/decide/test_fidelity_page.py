"""The table in docs/fidelity.md counts the scenarios that are there."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.decide.expand import FOLDER, read_document

PAGE = Path(__file__).parents[2] / "docs" / "fidelity.md"
ROW = re.compile(r"^\| (?:`[^`]*` )?(Test[^|]*?) \| (\d+) \| (\d+) \|", re.MULTILINE)


class Counts(NamedTuple):
    """Cases that were carried over, and cases that were not."""

    carried_over: int
    left_out: int


ROWS = {found[1]: Counts(int(found[2]), int(found[3])) for found in ROW.finditer(PAGE.read_text(encoding="utf-8"))}


@cache
def files() -> dict[str, Counts]:
    """By the first test that a file of scenarios names as its source."""
    found = {}
    for path in sorted(FOLDER.glob("*.yaml")):
        loaded = read_document(path.stem)
        first = re.search(r"Test\w+", loaded["source"])
        assert first is not None, path
        found[first[0]] = Counts(len(loaded["cases"]), len(loaded.get("left_out") or {}))
    return found


def test_every_table_is_on_the_page_once() -> None:
    assert sorted(row.partition(",")[0] for row in ROWS) == sorted(files())


@pytest.mark.parametrize("row", ROWS)
def test_the_counts_are_those_of_the_files(row: str) -> None:
    assert ROWS[row] == files()[row.partition(",")[0]]
