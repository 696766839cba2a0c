"""The dashboard of a fleet as Grafana's own schema and components take it."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Browser
from tests.browser.grafana.dashboard_page import Board, Shown, example, page, schema_problems, shown

from kueue_fleet.objects.dashboards import grafana_dashboard

NOTHING_TO_SHOW = {
    "Preemptions, by who caused them",
    "Queues that are not active",
    "Quota that waits for nodes",
    "Writes that failed",
}
"""Panels of what did not happen in the example."""


def test_grafanas_schema_knows_all_of_the_dashboard() -> None:
    assert schema_problems(grafana_dashboard("lab", "lab", controller=True)) == []


WRONG: dict[str, Callable[[Board, dict[str, Any]], object]] = {
    "titel": lambda board, _: board.update(titel="x"),
    "nam": lambda board, _: board["templating"]["list"][0].update(nam="x"),
    "collapse": lambda board, _: board["panels"][0].update(collapse=True),
    "descriptions": lambda _, panel: panel.update(descriptions="x"),
    "wide": lambda _, panel: panel["gridPos"].update(wide=3),
    "legends": lambda _, panel: panel["options"].update(legends={}),
    "tabel": lambda _, panel: panel["options"]["legend"].update(displayMode="tabel"),
    "query": lambda _, panel: panel["targets"][0].update(query="up"),
    "overides": lambda _, panel: panel["fieldConfig"].update(overides=[]),
    "units": lambda _, panel: panel["fieldConfig"]["defaults"].update(units="s"),
    "lineWith": lambda _, panel: panel["fieldConfig"]["defaults"].update(custom={"lineWith": 2}),
}


def test_what_is_misspelt_is_found_wherever_it_is() -> None:
    """Each in a panel of its own, as the schema names one unknown key of an object."""
    board = json.loads(json.dumps(grafana_dashboard("lab", "lab")))
    panels = [panel for panel in board["panels"] if panel["type"] == "timeseries"]
    for misspell, panel in zip(WRONG.values(), panels, strict=False):
        misspell(board, panel)
    result = schema_problems(board)
    assert len(result) == len(WRONG), result
    assert [word for word in WRONG if not any(f'"{word}"' in problem for problem in result)] == [], result


def drawn(browser: Browser, what: Shown) -> tuple[dict[str, str], list[str]]:
    """The text of each panel by its title, and what the page says of errors."""
    errors: list[str] = []
    tab = browser.new_page(viewport={"width": 1280, "height": 1200})
    tab.on("pageerror", lambda error: errors.append(str(error)))
    with page(what) as url:
        tab.goto(url, wait_until="networkidle")
        panels = tab.locator("[data-panel]").all()
        texts = {str(panel.get_attribute("data-panel")): panel.inner_text() for panel in panels}
    tab.close()
    return texts, errors


def test_grafanas_components_draw_every_panel_and_a_legend_has_no_braces(browser: Browser) -> None:
    what = shown()
    texts, errors = drawn(browser, what)
    assert errors == []
    assert [*texts] == [panel["title"] for panel in what.board["panels"] if panel["type"] != "row"]
    assert {title for title, text in texts.items() if "No data" in text} == NOTHING_TO_SHOW
    assert [title for title, text in texts.items() if "{" in text] == []
    assert "vision inadmissible manager-europe-west4" in texts["Jobs that wait"]


@pytest.mark.parametrize("change", [{"type": "gauge"}, {"transparent": True}], ids=str)
def test_the_page_draws_nothing_of_which_it_does_not_know_a_part(browser: Browser, change: dict[str, Any]) -> None:
    board = copy.deepcopy(example()[0])
    board["panels"][1].update(change)
    texts, errors = drawn(browser, Shown(board, {}))
    assert texts == {}
    assert "Jobs that wait: the page that draws dashboards does not know" in errors[0]
