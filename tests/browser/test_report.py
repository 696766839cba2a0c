"""The report of a simulation in a real browser: drawn without an error, readable large and small, light and dark."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from math import inf
from pathlib import Path
from typing import Literal, NamedTuple

import pytest
from playwright.sync_api import Browser, Page, sync_playwright
from tests.browser.screenshots import PICTURE_LOOKS, PICTURES, write_report

from kueue_admission.cli.simulate_report import Choice, report_page
from kueue_admission.decide.decisions import QuotaReserved
from kueue_admission.decide.model import Admission, PodSetAssignment
from kueue_admission.simulate.records import Record
from kueue_admission.simulate.result import Quota, Result
from kueue_fleet.gke.labels import GPU_RESOURCE as GPU
from needed_programs import CHROMIUM, needed

READABLE = (Path(__file__).parent / "readable.js").read_text()
PATIENCE_SECONDS = 120
"""A busy machine is slow, which says nothing about the report."""

Scheme = Literal["light", "dark"]
LOOKS: list[tuple[int, Scheme]] = [(width, scheme) for width in (1280, 400) for scheme in ("light", "dark")]

QUOTA = "clusterQueues[dws].resourceGroups[0].flavors[t4-dws].resources[nvidia.com/gpu].nominalQuota=2"
FLEET = ["stacks/Pulumi.dws-multikueue.yaml", "-w", "examples/dws-multikueue/workload.yaml", "--seed", "7"]
PLATFORM = ["stacks/Pulumi.batch-platform.yaml", "-w", "examples/batch-platform/workload.yaml"]
ALWAYS = ["In numbers", "Use by flavor", "Pending", "Use by team"]
REPORTS = {
    "a fleet": (FLEET, ALWAYS),
    "a what-if": ([*FLEET, "--what-if", QUOTA], ALWAYS),
    "a platform": (
        [*PLATFORM, "--jobs", "examples/batch-platform/jobs.yaml"],
        [*ALWAYS, "GPU hours and cost", "Preemptions and other evictions", "Jobs"],
    ),
}


class Looked(NamedTuple):
    """A report in a window, and what the browser said while it was drawn."""

    page: Page
    said: list[str]


class Window:
    """One window of the browser for all reports, each of which is loaded into it again: opening one takes longer."""

    def __init__(self, browser: Browser) -> None:
        context = browser.new_context(offline=True)
        context.set_default_timeout(PATIENCE_SECONDS * 1000)
        self.page = context.new_page()
        self._said: list[str] = []
        self.page.on("console", lambda message: self._said.append(f"{message.type}: {message.text}"))
        self.page.on("pageerror", lambda error: self._said.append(str(error)))
        self.page.on("requestfailed", lambda asked: self._said.append(f"asked for {asked.url[:80]}"))

    def look(self, file: Path, width: int, scheme: Scheme) -> Looked:
        self.page.goto("about:blank")
        self._said = []
        self.page.set_viewport_size({"width": width, "height": 900})
        self.page.emulate_media(media="screen", color_scheme=scheme)
        self.page.goto(file.as_uri())
        return Looked(self.page, self._said)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as driver:
        # Containers run tests as root, where Chromium has no sandbox; what it shows is ours.
        started = driver.chromium.launch(executable_path=needed(CHROMIUM), args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture(scope="module")
def window(browser: Browser) -> Window:
    return Window(browser)


Written = Callable[[list[str]], Path]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Written:
    """A report as the command writes it with these arguments, once."""

    @cache
    def write(*arguments: str) -> Path:
        return write_report([*arguments], tmp_path_factory.mktemp("report"))

    return lambda arguments: write(*arguments)


@pytest.fixture(params=REPORTS, scope="module")
def report(request: pytest.FixtureRequest, written: Written) -> tuple[Path, list[str]]:
    """A report, and the headings of plots that it has at least."""
    arguments, headings = REPORTS[request.param]
    return written(arguments), headings


@pytest.fixture(params=LOOKS, ids=[f"{width} px, {scheme}" for width, scheme in LOOKS])
def looked(window: Window, report: tuple[Path, list[str]], request: pytest.FixtureRequest) -> Looked:
    return window.look(report[0], *request.param)


def test_it_is_drawn_without_errors_and_readable(looked: Looked, report: tuple[Path, list[str]]) -> None:
    page = looked.page
    assert looked.said == []
    assert page.evaluate(READABLE) == []
    headings = page.locator("h2").all_text_contents()
    assert [expected for expected in report[1] if expected not in headings] == []
    for chart in page.locator(".chart svg").all():
        assert chart.locator("path").count(), chart.get_attribute("aria-label")


def test_a_page_that_is_printed_is_light_and_has_no_controls(window: Window, report: tuple[Path, list[str]]) -> None:
    page, output = window.look(report[0], 1280, "dark")
    page.emulate_media(media="print", color_scheme="dark")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(252, 252, 250)"
    assert not any(control.is_visible() for control in page.locator("main input, main select, summary").all())
    assert output == []


@pytest.fixture(scope="module")
def platform(written: Written) -> Path:
    """The report with most in it, with a change."""
    return written([*FLEET, "--what-if", "jobs[detector].count=60"])


def test_jobs_are_sorted_filtered_and_turned_over(window: Window, platform: Path) -> None:
    page, output = window.look(platform, 1280, "light")
    rows, count = page.locator("h2:text('Jobs') ~ .panel tbody tr"), page.get_by_role("status")
    assert (rows.count(), count.text_content()) == (25, "1 to 25 of 61 jobs")
    page.get_by_role("button", name="Next").click()
    page.get_by_role("button", name="Next").click()
    assert (rows.count(), count.text_content()) == (11, "51 to 61 of 61 jobs")
    assert page.get_by_role("button", name="Next").is_disabled()
    waited = page.locator("th", has=page.get_by_role("button", name="waited", exact=True))
    for order in ("ascending", "descending"):
        waited.get_by_role("button").click()
        assert waited.get_attribute("aria-sort") == order
        cells = rows.locator("td[data-heading=waited]").all_text_contents()
        numbers = [float(cell) for cell in cells if cell != "-"]
        assert numbers == sorted(numbers, reverse=order == "descending")
    page.get_by_label("Show only rows with").fill("DEADLINE team-language")
    assert (rows.count(), count.text_content()) == (1, "1 to 1 of 1 jobs")
    tracks = rows.locator(".track").all()
    assert [("before: " in (track.get_attribute("aria-label") or "")) for track in tracks] == [False, True]
    page.get_by_label("Show only rows with").fill("nothing-like-this")
    assert (rows.count(), count.text_content()) == (0, "0 to 0 of 0 jobs")
    assert output == []


def test_a_chart_says_its_amounts_by_pointer_by_keys_and_as_a_table(window: Window, platform: Path) -> None:
    page, output = window.look(platform, 1280, "light")
    panel = page.locator(".panel", has=page.locator("h3", has_text="t4-dws")).first
    assert "own quota in use at most 12, quota 12, before at most 12" in (
        panel.locator("svg").get_attribute("aria-label") or ""
    )
    panel.locator("svg").focus()
    page.keyboard.press("ArrowRight")
    assert (panel.locator(".readout").text_content() or "").startswith("At 0 hours: own quota in use ")
    panel.locator("svg").hover(position={"x": 150, "y": 50})
    assert not (panel.locator(".readout").text_content() or "").startswith("At 0 hours")
    panel.locator("summary").click()
    panel.locator("th").first.wait_for()  # It is made when the browser tells that it is open, a moment later.
    headings = panel.locator("th").all_text_contents()
    assert headings == ["hours", "own quota in use", "quota", "free", "before"]
    assert 30 < panel.locator("tbody tr").count() <= 61
    page.get_by_label("Cluster").select_option("worker-us-east4")
    assert "quota 4" in (panel.locator("svg").get_attribute("aria-label") or "")
    page.get_by_label("Resource").select_option("cpu")
    assert "CPUs: " in (panel.locator("svg").get_attribute("aria-label") or "")
    assert output == []


NAMES_AND_COLOURS = """(swatches) => swatches.map(
  (swatch) => [swatch.nextSibling.textContent.split(" on ")[0], swatch.style.background])"""


def test_a_flavor_has_one_colour_everywhere(window: Window, written: Written) -> None:
    page, _ = window.look(written(REPORTS["a platform"][0]), 1280, "light")
    colours: dict[str, set[str]] = {}
    for name, colour in page.locator(".swatch").evaluate_all(NAMES_AND_COLOURS):
        colours.setdefault(name, set()).add(colour)
    assert {name: len(result) for name, result in colours.items()} == dict.fromkeys(colours, 1)
    assert len({*map(str, colours.values())}) == len(colours) >= 6


def test_names_of_jobs_are_shown_and_not_run(window: Window, tmp_path: Path) -> None:
    bad = "</script><img src=x onerror=document.title='run'><script>document.title='run'</script>"
    file = tmp_path / "report.html"
    records = tuple(Record(f"ns/{n}", bad, bad, float(n), label=bad) for n in range(2))
    file.write_text(report_page(bad, {"File": bad}, [("", Result(records, teams={bad: bad}))]))
    page, output = window.look(file, 400, "dark")
    assert page.title() == bad
    assert page.locator("main img").count() == 0
    assert page.locator(f"td:has-text('{bad[:20]}')").count() >= 2
    # Even a script that came into the page would not run.
    page.evaluate(
        "(text) => document.body.append(Object.assign(document.createElement('script'), {text}))",
        "document.title='run'",
    )
    assert page.title() == bad
    assert [message for message in output if "Content Security Policy" not in message] == []


LONG = "a-name-that-was-made-of-a-branch-a-commit-and-a-date-2026-11-22-0123456789abcdef0123456789abcdef"
BACKWARDS = "\u202e\u0639\u0631\u0628<b>&amp;\"'`${x}"


def finished(name: str, at: float) -> Record:
    """A job that has this name, and everything else that it meets."""
    admission = Admission(name, (PodSetAssignment("main", 1, ((GPU, name),), ((GPU, 1),)),))
    record = Record(f"{name}/{name}", name, name, at, cluster_queue=name, cluster=name, requests=((GPU, 1),))
    record.take(QuotaReserved(at, record.key, admission), at)
    record.admitted_at = record.first_admitted_at = at
    record.begin(at)
    record.start(at)
    record.finish(at + 300)
    return record


WAITING = Record("ns/waits", "ns", "waits", 0.0, cluster_queue="cq", requests=((GPU, 1),))
UNUSUAL = {
    "no job": ((), "There were no jobs."),
    "none admitted": ((WAITING,), "Nothing was admitted."),
    "one job": ((finished("one", 0.0),), "1 to 1 of 1 jobs"),
    "long and hostile names": (
        tuple(finished(name, 9.0 * n) for n, name in enumerate((LONG, BACKWARDS, "W" * 100, "\U0001f600" * 60))),
        "1 to 4 of 4 jobs",
    ),
}


@pytest.mark.parametrize(("records", "says"), UNUSUAL.values(), ids=UNUSUAL)
def test_what_is_unusual_is_readable_too(
    window: Window, tmp_path: Path, records: tuple[Record, ...], says: str
) -> None:
    file = tmp_path / "report.html"
    quotas = tuple(Quota(record.cluster or "", record.cluster_queue, record.name, GPU, 1) for record in records)
    file.write_text(report_page(LONG, {"File": LONG}, [("", Result(records, quotas=quotas, until=500.0))]))
    for width, scheme in (LOOKS[0], LOOKS[-1]):
        page, output = window.look(file, width, scheme)
        assert page.evaluate(READABLE) == [], (width, scheme)
        assert says in page.locator("main").inner_text()
        assert output == []


def test_a_choice_of_fleets_is_readable(window: Window, tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    choices = [
        Choice("today", 9004.5, 0.0, "met", ""),
        Choice("", 2373.0, 783.6, f"{LONG} missed", f"{LONG}: 6 to 1"),
        Choice("recommended", 2447.0, 23.0, "met", f"{BACKWARDS}: 8 to 0"),
    ]
    file.write_text(report_page("Plan", {}, [("Today", Result(())), ("Recommended", Result(()))], choices))
    for width, scheme in LOOKS:
        page, output = window.look(file, width, scheme)
        assert page.evaluate(READABLE) == [], (width, scheme)
        assert page.locator(".dot").count() == len(choices)
        assert output == []


JOBS = 15_000
OPENS_MS = 1000
TRIES = 3


def test_it_opens_in_a_second_with_fifteen_thousand_jobs(browser: Browser, tmp_path: Path) -> None:
    """The best of at most three, in the processor time of the page's own process: other tests run at the same time."""
    admission = Admission("cq", (PodSetAssignment("main", 1, ((GPU, "a"),), ((GPU, 1),)),))
    records = []
    for n in range(JOBS):
        record = Record(f"ns/job-{n}", "ns", f"job-{n}", float(n), cluster_queue="cq", requests=((GPU, 1),))
        record.take(QuotaReserved(n + 5.0, record.key, admission), n + 5.0)
        record.admitted_at = record.first_admitted_at = n + 9.0
        record.begin(n + 9.0)
        record.start(n + 12.0)
        record.finish(n + 300.0 + n % 97)
        records.append(record)
    file = tmp_path / "report.html"
    file.write_text(report_page("Many", {}, [("", Result(tuple(records)))]))
    taken = [inf]
    while min(taken) >= OPENS_MS and len(taken) <= TRIES:
        page = browser.new_page()
        session = page.context.new_cdp_session(page)
        session.send("Performance.enable", {"timeDomain": "threadTicks"})
        page.goto(file.as_uri())
        metrics = {item["name"]: item["value"] for item in session.send("Performance.getMetrics")["metrics"]}
        taken.append(1000 * metrics["TaskDuration"])
        assert page.get_by_role("status").text_content() == "1 to 25 of 15,000 jobs"
        page.close()
    assert min(taken) < OPENS_MS, taken


ADD_STYLE = """(css) => {
  document.head.append(Object.assign(document.createElement("style"), { id: "bad", textContent: css }));
}"""
BROKEN = [
    ("main { width: 1400px; max-width: none }", "the page is"),
    ("p { color: #999 !important }", "has a contrast of"),
    ("h1 { width: 60px; overflow: hidden; white-space: nowrap; overflow-wrap: normal }", "is cut off"),
    ("dt { font-size: 9px !important }", "is 9px high"),
    (".times span { position: absolute; left: 90px }", "is on top of"),
    ("table { width: 1400px }", "a table is"),
]
SILENT = [
    ("document.querySelector('.chart svg').removeAttribute('aria-label')", "a drawing has no text"),
    ("document.querySelector('caption').remove()", "a table has no caption"),
    ("document.querySelector('label').replaceWith(document.querySelector('label select'))", "a select has no label"),
]


def test_what_cannot_be_read_is_found(window: Window, written: Written) -> None:
    page, _ = window.look(written(FLEET), 1280, "light")
    assert page.evaluate(READABLE) == []
    for style, says in BROKEN:
        page.evaluate(ADD_STYLE, style)
        assert any(says in wrong for wrong in page.evaluate(READABLE)), style
        page.evaluate("document.getElementById('bad').remove()")
    for script, says in SILENT:
        page.evaluate(script)
        assert any(says in wrong for wrong in page.evaluate(READABLE)), script


@pytest.mark.parametrize("name", ["report", "live-page", "dashboard"])
def test_the_pages_have_a_picture_of_each_look(name: str) -> None:
    """`make screenshots` takes them."""
    pictures = {look: (PICTURES / f"{name}-{look}.png").read_bytes() for look in PICTURE_LOOKS}
    widths = {look: int.from_bytes(picture[16:20]) for look, picture in pictures.items()}
    assert widths == {look: width for look, (width, _) in PICTURE_LOOKS.items()}
    assert max(map(len, pictures.values())) < 150_000


def test_without_a_browser_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.delenv(CHROMIUM.variable, raising=False)
    with pytest.raises(RuntimeError, match=r"none of chromium.* is on PATH; install one .*apt-get install chromium"):
        CHROMIUM.path()
    monkeypatch.setenv(CHROMIUM.variable, "/nowhere/chromium")
    with pytest.raises(RuntimeError, match="KUEUE_FLEET_BROWSER=/nowhere/chromium is not a program"):
        CHROMIUM.path()
