"""The page's table of events and columns is made from the schema."""

from __future__ import annotations

import inspect
import re
from dataclasses import fields
from pathlib import Path
from typing import Final

import pytest

from kueue_admission.history.schema import COLUMNS, Event, Kind

PAGE = Path(__file__).parents[2] / "docs" / "record.md"
_SHOWN: Final = {
    "str": "text",
    "Kind": "text",
    "int | None": "integer",
    "amounts": "map to number",
    "labels": "map to text",
    "texts": "list of text",
}


def schema_page() -> str:
    """The events and columns as two Markdown tables."""
    about = re.findall(r'(\w+) = "\w+"\n\s+"""(.*?)"""', inspect.getsource(Kind))
    rows = ["| event | |", "|---|---|", *(f"| `{Kind[name].value}` | {text} |" for name, text in about)]
    rows += ["", "| column | type | |", "|---|---|---|"]
    for column in fields(Event):
        kind = COLUMNS[column.name]
        rows.append(f"| `{column.name}` | {_SHOWN.get(kind, kind)} | {column.metadata['about']} |")
    return "\n".join(rows)


def test_the_page_has_the_schema(request: pytest.FixtureRequest) -> None:
    text = PAGE.read_text()
    made = re.sub(
        r"(<!-- made from .*? -->\n).*?(<!-- end -->)",
        lambda found: f"{found[1]}{schema_page()}\n{found[2]}",
        text,
        flags=re.S,
    )
    if request.config.getoption("update_snapshots"):
        PAGE.write_text(made)
    assert PAGE.read_text() == made
