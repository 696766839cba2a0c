"""The page for teams in a real browser: signing in by keyboard, two widths, both themes, hostile names."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page
from tests.browser.test_ui import READABLE
from tests.page import test_team_page
from tests.page.test_team_page import served, workload


@contextmanager
def running(folder: Path) -> Iterator[str]:
    """The page before a cluster, in a thread of its own; its address."""
    loop, ready, address = asyncio.new_event_loop(), threading.Event(), list[str]()
    ended = asyncio.Event()

    async def work() -> None:
        async with served(folder) as (url, _):
            address.append(url)
            ready.set()
            await ended.wait()

    thread = threading.Thread(target=lambda: loop.run_until_complete(work()), daemon=True)
    thread.start()
    assert ready.wait(20)
    try:
        yield address[0]
    finally:
        loop.call_soon_threadsafe(ended.set)
        thread.join(20)
        loop.close()


def opened(browser: Browser, url: str, width: int = 1280, scheme: str = "light") -> tuple[Page, list[str]]:
    """The page as it asks for a token, and what the browser asks elsewhere or complains of but the refusal."""
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)  # type: ignore[arg-type]
    context.set_default_timeout(60_000)
    page, output = context.new_page(), list[str]()
    expected = ("favicon", "401")
    page.on("console", lambda m: None if any(item in m.text for item in expected) else output.append(m.text))
    page.on("pageerror", lambda error: output.append(str(error)))
    page.on("request", lambda asked: None if asked.url.startswith(url) else output.append(asked.url))
    page.goto(url)
    page.locator("#token").wait_for()
    return page, output


def sign_in(page: Page, token: str) -> None:
    page.locator("#token").focus()
    page.keyboard.type(token)
    page.keyboard.press("Enter")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 400])
def test_it_is_readable_before_and_after_signing_in(browser: Browser, width: int, scheme: str, tmp_path: Path) -> None:
    with running(tmp_path) as url:
        page, output = opened(browser, url, width, scheme)
        assert page.evaluate(READABLE) == []
        assert page.locator("#state").inner_text() == "Sign in to see your jobs."
        sign_in(page, "ada")
        page.locator("[data-job]").click()
        page.locator("#why", has_text="submitted to LocalQueue gpu").wait_for()
        assert page.locator("#says").inner_text().startswith("It asks for 2 GPUs.\nNext: Wait.")
        assert not page.locator("#kueue-says").is_visible()
        page.locator("#kueue summary").click()
        assert page.locator("#kueue-says").inner_text() == "WaitingForQuota: no room"
        assert page.evaluate(READABLE) == []
        assert page.title() == "lab"
        assert page.locator("img, main script, iframe").count() == 0
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert output == []
        page.context.close()


def test_a_job_that_comes_is_shown_by_itself(browser: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with running(tmp_path) as url:
        page, _ = opened(browser, url)
        sign_in(page, "ada")
        page.locator("[data-job]").wait_for()
        monkeypatch.setattr(test_team_page, "workload", lambda namespace, _: workload(namespace, "new"))
        page.locator("[data-job='vision/new']").wait_for()
        page.context.close()


def test_a_token_that_is_refused_is_asked_for_again(browser: Browser, tmp_path: Path) -> None:
    with running(tmp_path) as url:
        page, _ = opened(browser, url)
        sign_in(page, "forged")
        page.locator("#state", has_text="Not known: the cluster does not take this token").wait_for()
        assert page.locator("#token").is_visible()
        sign_in(page, "bob")
        page.locator("[data-job='speech/train-speech']").wait_for()
        assert not page.locator("#token").is_visible()
        page.context.close()


def test_a_token_is_in_this_tab_alone_and_gone_when_it_is_read_again(browser: Browser, tmp_path: Path) -> None:
    with running(tmp_path) as url:
        page, _ = opened(browser, url)
        sign_in(page, "ada")
        page.locator("[data-job]").wait_for()
        assert page.context.cookies() == []
        assert page.evaluate("localStorage.length + sessionStorage.length") == 0
        assert "ada" not in page.url + page.content()
        assert page.locator("#token").input_value() == ""
        page.reload()
        page.locator("#token").wait_for()
        assert page.locator("[data-job]").count() == 0
        page.context.close()
