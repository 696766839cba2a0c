"""The page of `status --page` in a real browser: two widths, both themes, by keyboard, hostile names, 15,000 jobs."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page
from tests.cli.test_ui_server import SUMMARY, VIEW, job, running

from kueue_fleet.cli.ui_server import View

READABLE = (Path(__file__).parent / "readable.js").read_text()
HOSTILE = "<img src=x onerror=document.title='owned'><script>document.title='owned'</script>\x1b[31m\u202e" + "x" * 5000
USE = {"flavor": "l4", "resource": "nvidia.com/gpu", "used": "3", "nominal": "8", "borrowed": "0"}
QUEUE = {"name": "gpu", "cluster": "w", "active": False, "reason": "stopped", "pending": 2, "admitted": 1, "use": [USE]}
NODES = {"nodes": None, "most_nodes": 4, "on_nodes": None, "used": 3}
STUCK = {"cluster": "m", "namespace": "team", "name": "train", "why": "StuckCheck", "message": "m", "seconds": 90.0}
REQUEST = {"cluster": "w", "namespace": "team", "name": "r", "state": "Accepted", "message": "", "ageSeconds": 9000}
BUDGET = {"team": "vision", "of": "USD", "used": 79.2, "limit": 100, "per": "month", "unpriced": {"GPU hours": 2.0}}
FULL = {
    **SUMMARY,
    "stuck": [STUCK],
    "requests": [REQUEST],
    "flavors": [{"flavor": "l4", "cluster": "w", "resource": "nvidia.com/gpu", **NODES}],
    "queues": [QUEUE],
    "teams": [{"team": "vision", "jobs": 1, "gpus": 3, "borrowed": None, "waitingJobs": 2, "waitingGpus": 5}],
    "budgets": [BUDGET],
    "goals": [{"path": "teams[vision]", "standing": "missed", "why": "of 4 jobs 95 % waited at most 9 s"}],
    "hours": [{"hour": "2026-11-27T09:00+00:00", "arrived": 4, "began": 3, "ended": 2, "wait": 900.0}],
}


def opened(browser: Browser, url: str, width: int = 1280, scheme: str = "light") -> tuple[Page, list[str]]:
    """The page, and all that the browser complains of or asks elsewhere."""
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)  # type: ignore[arg-type]
    context.set_default_timeout(120_000)
    page, output = context.new_page(), list[str]()
    page.on("console", lambda message: None if "favicon" in message.text else output.append(message.text))
    page.on("pageerror", lambda error: output.append(str(error)))
    page.on("request", lambda asked: None if asked.url.startswith(url) else output.append(asked.url))
    page.goto(url)
    page.wait_for_selector("[data-job]")
    return page, output


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 400])
def test_it_is_readable(browser: Browser, width: int, scheme: str) -> None:
    with running(View(FULL, VIEW.jobs)) as url:
        page, output = opened(browser, url, width, scheme)
        assert output == []
        assert page.evaluate(READABLE) == []
        headings = page.locator("h2:visible").all_text_contents()
        assert headings == [
            "Clusters",
            "Stuck",
            "Jobs",
            "DWS requests",
            "Flavors",
            "Queues",
            "What if",
            "Teams",
            "Budgets",
            "Goals",
            "Last hours",
        ]
        assert "not known" in page.locator("#flavors").inner_text()
        assert "at least 79" in page.locator("#budgets").inner_text()
        assert page.locator("#queues meter").get_attribute("aria-label") == "3 of 8"
        page.context.close()


@pytest.mark.parametrize("width", [1280, 400])
def test_what_is_printed_has_names_and_no_controls(browser: Browser, width: int) -> None:
    with running(View(FULL, VIEW.jobs)) as url:
        page, _ = opened(browser, url, width)
        page.locator("[data-job]").first.click()
        page.emulate_media(media="print")
        assert page.locator("[data-job]:visible").all_inner_texts() == ["team/train", "team/other"]
        assert page.locator("label:visible, select:visible, #logs:visible, #close:visible").count() == 0
        assert page.locator("#why").is_visible()
        page.context.close()


def test_what_does_not_answer_is_not_known(browser: Browser) -> None:
    silent = {**SUMMARY["clusters"][0], "reachable": False, "message": "no answer", "pending": None}
    with running(View({**FULL, "clusters": [silent]}, None)) as url:
        page = browser.new_page()
        page.goto(url)
        page.locator("#count", has_text="not known").wait_for()
        assert page.locator("#state").inner_text().endswith("jobs: not known; what is on m is not known")
        assert "no answer" in page.locator("#clusters").inner_text()
        page.close()


def test_a_job_is_found_and_explained_by_keyboard(browser: Browser) -> None:
    with running(View(FULL, [job("train", says="It asks for 4."), job("other")]), "Free 2 GPUs: admitted") as url:
        page, _ = opened(browser, url)
        page.locator("#search").focus()
        page.keyboard.type("train")
        page.locator("#count", has_text=re.compile("^Jobs: 1$")).wait_for()
        for _ in range(3):
            page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        page.locator("#why", has_text="Free 2 GPUs").wait_for()
        assert page.locator("#says").inner_text() == "It asks for 4."
        assert page.evaluate("document.activeElement.id") == "job-title"
        page.context.close()


def test_what_kueue_says_is_folded_below_our_sentence_and_stays_open(browser: Browser) -> None:
    waits = job("train", reason="WaitingForQuota", message="flavor multikueue", why="It asks for 8.", next="Wait.")
    with running(View(FULL, [waits])) as url:
        page, _ = opened(browser, url)
        cell = page.locator("[data-of='why it waits']")
        assert "It asks for 8. Wait." in cell.inner_text()
        assert "multikueue" not in cell.inner_text()
        cell.locator("summary").click()
        page.evaluate("jobs()")
        page.locator("[data-of='why it waits'] details[open]", has_text="flavor multikueue").wait_for()
        page.context.close()


def test_a_job_that_never_runs_is_marked(browser: Browser) -> None:
    with running(View(FULL, [job("train", "Admitted", wrong=True, why="It never runs.")])) as url:
        page, _ = opened(browser, url)
        assert page.locator("#jobs .bad").all_inner_texts() == ["Admitted", "It never runs."]
        page.context.close()


def test_a_team_is_chosen_by_keyboard(browser: Browser) -> None:
    with running(View(FULL, [job("train"), job("other", team="speech")])) as url:
        page, _ = opened(browser, url)
        page.locator("#team").select_option("speech")
        page.locator("#count", has_text=re.compile("^Jobs: 1$")).wait_for()
        assert page.locator("[data-job]").all_inner_texts() == ["team/other"]
        page.context.close()


@pytest.mark.parametrize("width", [1280, 400])
def test_another_quota_is_tried_by_keyboard(browser: Browser, width: int) -> None:
    queue = {**QUEUE, "name": HOSTILE[:60]}
    with running(View({**FULL, "queues": [QUEUE, queue]}, VIEW.jobs), HOSTILE) as url:
        page, output = opened(browser, url, width)
        page.locator("#quota").focus()
        page.keyboard.press("ArrowDown")
        page.keyboard.press("Tab")
        page.keyboard.press("ArrowDown")
        page.keyboard.press("Tab")
        page.keyboard.type("12")
        page.keyboard.press("Enter")
        page.locator("#answer", has_text="img src").wait_for()
        asked, _, answer = page.locator("#answer").inner_text().partition("} ")
        quota = {"cluster": "w", "queue": HOSTILE[:60], "flavor": "l4", "resource": "nvidia.com/gpu"}
        assert json.loads(asked + "}") == {**quota, "limit": "borrowingLimit", "amount": "12"}
        assert answer.startswith("<img src=x")
        assert page.evaluate("document.activeElement.id") == "amount"
        assert page.locator("#quota option:checked").inner_text().startswith("<img src=x")
        assert (page.title(), output, page.locator("img").count()) == ("lab", [], 0)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        page.context.close()


def test_what_a_hostile_team_writes_is_text(browser: Browser) -> None:
    texts = dict.fromkeys(("reason", "message", "says", "why", "next", "place", "start", "team"), HOSTILE)
    rows = [job(HOSTILE[:60], **texts)]
    with running(View(FULL, rows), HOSTILE) as url:
        page, output = opened(browser, url, 400)
        page.locator("[data-job]").click()
        page.locator("#why", has_text="img src").wait_for()
        page.locator("#logs").click()
        page.locator("#log", has_text="log: <img src").wait_for()
        assert page.title() == "lab"
        assert page.locator("img, main script, iframe").count() == 0
        assert output == []
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        page.context.close()


def test_15000_jobs_are_there_within_a_second(browser: Browser) -> None:
    rows = [
        job(f"train-{index}", reason="WaitingForQuota", message="couldn't assign flavors") for index in range(15_000)
    ]
    with running(View(FULL, rows)) as url:
        page, _ = opened(browser, url)
        before = time.process_time()
        page.reload()
        page.wait_for_selector("[data-job]")
        output = page.evaluate("performance.now()")
        assert page.locator("#count").inner_text() == "The first 100 of 15000 jobs"
        # Of a machine that does nothing else: the server's own time is what does not depend on others.
        assert time.process_time() - before < 1.0, output
        page.context.close()
