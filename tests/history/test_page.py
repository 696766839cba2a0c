"""The page's table of events and columns is made from the schema."""

from __future__ import annotations

import inspect
import re
from dataclasses import fields
from pathlib import Path

import pytest

from kueue_admission.history.schema import Event, Kind

PAGE = Path(__file__).parents[2] / "docs" / "record.md"


def schema_page() -> str:
    """The events and columns as two Markdown tables."""
    about = re.findall(r'(\w+) = "\w+"\n\s+"""(.*?)"""', inspect.getsource(Kind))
    rows = ["| event | |", "|---|---|", *(f"| `{Kind[name].value}` | {text} |" for name, text in about)]
    rows += ["", "| column | |", "|---|---|"]
    rows += [f"| `{column.name}` | {column.metadata['about']} |" for column in fields(Event)]
    return "\n".join(rows)


def test_the_page_has_the_schema(request: pytest.FixtureRequest) -> None:
    text = PAGE.read_text()
    result = re.sub(
        r"(<!-- made from .*? -->\n).*?(<!-- end -->)",
        lambda found: f"{found[1]}{schema_page()}\n{found[2]}",
        text,
        flags=re.S,
    )
    if request.config.getoption("update_snapshots"):
        PAGE.write_text(result)
    assert PAGE.read_text() == result
