"""The report of a simulation in a real browser: drawn without an error, readable large and small, light and dark."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal, NamedTuple

import pytest
from playwright.sync_api import Browser, Page, sync_playwright
from typer.testing import CliRunner

from browser.installed import VARIABLE, browser_path
from kueue_fleet.cli import app

ROOT = Path(__file__).parents[2]
READABLE = (Path(__file__).parent / "readable.js").read_text()
PATIENCE_SECONDS = 120
"""A busy machine is slow, which says nothing about the report."""

Scheme = Literal["light", "dark"]
LOOKS: list[tuple[int, Scheme]] = [(width, scheme) for width in (1280, 400) for scheme in ("light", "dark")]

QUOTA = "clusterQueues[dws].resourceGroups[0].flavors[t4-dws].resources[nvidia.com/gpu].nominalQuota=2"
FLEET = ["stacks/Pulumi.dws-multikueue.yaml", "-w", "examples/dws-multikueue/workload.yaml", "--seed", "7"]
PLATFORM = ["stacks/Pulumi.batch-platform.yaml", "-w", "examples/batch-platform/workload.yaml"]
REPORTS = {
    "a fleet": (FLEET, ["Use by flavor", "Use by team", "Waiting times by queue", "Where jobs ran", "Each job"]),
    "a what-if": ([*FLEET, "--what-if", QUOTA], ["Use by flavor", "Use by team", "Waiting times by queue"] * 2),
    "a platform": (
        [*PLATFORM, "--jobs", "examples/batch-platform/jobs.yaml"],
        ["Use by flavor", "Use by team", "Waiting times by queue", "Where jobs ran", "Preemptions and other evictions"],
    ),
}


class Looked(NamedTuple):
    """A report in a window, and what the browser said while it was drawn."""

    page: Page
    said: list[str]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as driver:
        # Containers run tests as root, where Chromium has no sandbox; what it shows is ours.
        started = driver.chromium.launch(executable_path=browser_path(), args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture(scope="module", params=REPORTS)
def report(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """A report as the command writes it, and the headings of plots that it has at least."""
    arguments, headings = REPORTS[request.param]
    return write_report(arguments, tmp_path_factory.mktemp("report")), headings


def write_report(arguments: list[str], folder: Path) -> Path:
    """A report, by the command."""
    file = folder / "report.html"
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(ROOT)
        done = CliRunner().invoke(app, ["simulate", *arguments, "--html", str(file)])
    assert done.exit_code == 0, done.output
    return file


def look(browser: Browser, file: Path, width: int, scheme: Scheme) -> Looked:
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme, offline=True)
    context.set_default_timeout(PATIENCE_SECONDS * 1000)
    page, said = context.new_page(), list[str]()
    page.on("console", lambda message: said.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("requestfailed", lambda asked: said.append(f"asked for {asked.url[:80]}"))
    page.goto(file.as_uri())
    drawn = "[...document.querySelectorAll('.chart')].every((chart) => chart.querySelector('svg.main-svg'))"
    page.wait_for_function(drawn)
    return Looked(page, said)


@pytest.fixture(params=LOOKS, ids=[f"{width} px, {scheme}" for width, scheme in LOOKS])
def looked(browser: Browser, report: tuple[Path, list[str]], request: pytest.FixtureRequest) -> Iterator[Looked]:
    found = look(browser, report[0], *request.param)
    yield found
    found.page.context.close()


def test_it_is_drawn_without_errors_and_readable(looked: Looked, report: tuple[Path, list[str]]) -> None:
    page = looked.page
    assert looked.said == []
    assert page.evaluate(READABLE) == []
    headings = page.locator("section.plot:has(.chart) h3").all_text_contents()
    assert [wanted for wanted in report[1] if wanted not in headings] == []
    for chart in page.locator(".chart").all():
        name = chart.get_attribute("aria-label")
        traces = chart.evaluate("(chart) => chart.data.map((trace) => (trace.x || trace.q1).length)")
        assert traces, name
        assert all(traces), name
        paths = chart.evaluate(
            "(chart) => [...chart.querySelectorAll('.plot path')]"
            ".filter((path) => (path.getAttribute('d') || '').length > 4).length"
        )
        assert paths >= len(traces), name


def test_a_choice_and_a_change_of_scheme_draw_anew(browser: Browser, report: tuple[Path, list[str]]) -> None:
    page, said = look(browser, report[0], 1280, "light")
    ink = page.locator(".chart svg text").first.evaluate("(text) => getComputedStyle(text).fill")
    page.emulate_media(color_scheme="dark")
    page.wait_for_function("(ink) => getComputedStyle(document.querySelector('.chart svg text')).fill !== ink", arg=ink)
    assert page.evaluate(READABLE) == []
    title = page.locator(".ytitle").first.text_content()
    page.locator("select").first.select_option(index=1)
    page.wait_for_function("(title) => document.querySelector('.ytitle').textContent !== title", arg=title)
    assert said == []
    page.context.close()


ADD_STYLE = """(css) => {
  document.head.append(Object.assign(document.createElement("style"), { id: "bad", textContent: css }));
}"""
BROKEN = [
    ("main { width: 1400px; max-width: none }", "the page is"),
    ("p { color: #999 !important }", "has a contrast of"),
    ("h1 { width: 60px; overflow: hidden; white-space: nowrap; overflow-wrap: normal }", "is cut off"),
    ("dt { font-size: 9px !important }", "is 9px high"),
    ("svg text { fill: #bbb !important }", "has a contrast of"),
    ("svg.main-svg { margin-left: -60px }", "is cut off"),
    ("svg .xtitle { transform: translateY(-22px) }", "is on top of"),
    ("table { width: 1400px }", "a table is"),
]


def test_what_cannot_be_read_is_found(browser: Browser, tmp_path: Path) -> None:
    page, _ = look(browser, write_report(FLEET, tmp_path), 1280, "light")
    assert page.evaluate(READABLE) == []
    for style, says in BROKEN:
        page.evaluate(ADD_STYLE, style)
        assert any(says in wrong for wrong in page.evaluate(READABLE)), style
        page.evaluate("document.getElementById('bad').remove()")
    page.context.close()


def test_without_a_browser_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.delenv(VARIABLE, raising=False)
    with pytest.raises(RuntimeError, match=r"none of chromium.* is on PATH; install one .*apt-get install chromium"):
        browser_path()
    monkeypatch.setenv(VARIABLE, "/nowhere/chromium")
    with pytest.raises(RuntimeError, match="KUEUE_FLEET_BROWSER=/nowhere/chromium is not a program"):
        browser_path()
