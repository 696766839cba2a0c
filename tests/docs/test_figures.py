"""Figures in pages are those that `make bench` has measured."""

from __future__ import annotations

import re

import pytest
from tests.bench.page_figures import ROOT, names_in, pages, shown, stored, with_figures

from kueue_rehearsal.engines import ENGINES

FIGURES = stored()
PAGES = [page for page in pages() if names_in(page.read_text())]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_shows_what_was_measured(page: str) -> None:
    text = page.read_text()  # type: ignore[attr-defined]
    assert with_figures(text, FIGURES) == text


def test_every_figure_is_shown_somewhere() -> None:
    assert {name for page in PAGES for name in names_in(page.read_text())} == set(FIGURES)


def test_a_figure_says_when_and_where_it_was_measured() -> None:
    assert all(figure["date"] and "cores" in figure["machine"] for figure in FIGURES.values())


def test_no_figure_is_older_than_the_release_that_ships_it() -> None:
    """Run `make bench PARTS=...` for those that are: they were measured before the release that came before."""
    text = (ROOT / "CHANGELOG.md").read_text()
    _, unreleased, *_ = re.split(r"^## .*$", text, flags=re.MULTILINE)
    dates = re.findall(r"^## \S+ \((\d{4}-\d\d-\d\d)\)$", text, re.MULTILINE)
    before = dates[0 if unreleased.strip() else 1]
    assert [name for name, figure in FIGURES.items() if figure["date"] < before] == []


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [(481.2, "s", "8 minutes"), (63.2, "s", "63 s"), (0.21, "s", "0.21 s"), (13900, "tests", "13,900 tests")],
)
def test_how_a_figure_is_written(value: float, unit: str, text: str) -> None:
    assert shown({"value": value, "unit": unit}) == text


def test_a_figure_that_nobody_has_measured() -> None:
    with pytest.raises(KeyError, match="wishes"):
        with_figures("<!-- figure wishes -->1<!-- / -->", FIGURES)


def test_the_estimate_of_a_build_is_what_was_measured() -> None:
    expected = sum(engine.build_seconds for engine in ENGINES if engine.for_rehearsal)
    assert expected == pytest.approx(FIGURES["engines"]["value"], rel=0.25)
