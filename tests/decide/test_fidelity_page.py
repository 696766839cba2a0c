"""docs/fidelity.md counts the scenarios of Kueue that are there."""

from __future__ import annotations

from pathlib import Path

from tests.decide.expand import FOLDER, read_document

PAGE = Path(__file__).parents[2] / "docs" / "fidelity.md"


def test_the_page_counts_the_cases_of_kueues_tables() -> None:
    tables = [read_document(path.stem) for path in FOLDER.glob("*.yaml")]
    carried_over = sum(len(table["cases"]) for table in tables)
    left_out = sum(len(table.get("left_out") or {}) for table in tables)
    page = " ".join(PAGE.read_text(encoding="utf-8").split())
    assert f"{carried_over} cases are carried over, {left_out} are left out" in page
