"""Figures in pages are those that `make bench` has measured."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from tests.bench import page_figures
from tests.bench.page_figures import ROOT, last_release, named, names_in, pages, shown, stored, tables, with_figures

from kueue_rehearsal.engines import ENGINES

PARTS = stored()
FIGURES = named(PARTS)
PAGES = [page for page in pages() if names_in(page.read_text())]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_shows_what_was_measured(page: str) -> None:
    text = page.read_text()  # type: ignore[attr-defined]
    assert with_figures(text, PARTS) == text


def test_every_figure_is_shown_somewhere() -> None:
    assert {name for page in PAGES for name in names_in(page.read_text())} == set(FIGURES)


def test_a_figure_says_when_and_where_it_was_measured() -> None:
    assert all(part["date"] and "cores" in part["machine"] and "load" in part["machine"] for part in PARTS.values())


def test_a_table_that_is_older_than_the_release_says_so() -> None:
    """`make bench PARTS=...` measures those again."""
    output = re.findall(r"^### `(\w+)`\n\n\S+, before the last release: ", tables(PARTS), re.MULTILINE)
    assert output == [name for name, part in PARTS.items() if part["date"] < last_release()]


def test_a_figure_that_is_older_than_the_release_shows_its_day() -> None:
    text = "".join(page.read_text() for page in PAGES)
    marked = set(re.findall(r"<!-- figure ([\w-]+) -->[^<]* \(of [\d-]+\)<!-- / -->", text))
    assert marked == {name for name, figure in FIGURES.items() if figure["date"] < last_release()}


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (481.2, "s", "8 minutes"),
        (63.2, "s", "63 s"),
        (0.21, "s", "0.21 s"),
        (13900, "tests", "13,900 tests"),
        (2765, "MiB", "2.7 GiB"),
    ],
)
def test_how_a_figure_is_written(value: float, unit: str, text: str) -> None:
    assert shown({"value": value, "unit": unit}) == text


def test_a_figure_that_nobody_has_measured() -> None:
    with pytest.raises(KeyError, match="wishes"):
        with_figures("<!-- figure wishes -->1<!-- / -->", PARTS)


def test_a_part_that_is_measured_again_replaces_what_it_had(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept, page = tmp_path / "figures.json", tmp_path / "page.md"
    kept.write_text(json.dumps({"fleets": {}, "suite": {"date": "2026-01-01", "machine": "", "figures": []}}))
    page.write_text("<!-- figure first -->?<!-- / -->")
    monkeypatch.setattr(page_figures, "FIGURES", kept)
    monkeypatch.setattr(page_figures, "pages", lambda: [page])
    row = {"what": "a", "value": 12.3, "unit": "s", "limit": None, "peer": "", "peer_value": 0.0, "shown": "first"}
    page_figures.store("fleets", [row], 3.25)
    part = json.loads(kept.read_text())["fleets"]
    assert (part["figures"], part["machine"].rpartition(", ")[2]) == ([row], "load 3.2")
    assert page.read_text() == "<!-- figure first -->12 s<!-- / -->"


def test_the_estimate_of_a_build_is_what_was_measured() -> None:
    expected = sum(engine.build_seconds for engine in ENGINES if engine.for_rehearsal)
    assert expected == pytest.approx(FIGURES["engines"]["value"], rel=0.25)
