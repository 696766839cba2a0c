"""The page of `status --page`: who gets an answer, with which headers, and what is in it."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import aiohttp
import pytest

from kueue_fleet.cli.ui_server import PageServer, View
from kueue_fleet.page.answers import MOST_JOBS

SUMMARY: dict[str, Any] = {
    "fleet": "lab", "at": "2026-11-27T10:00:00+00:00", "stuck": [], "requests": [], "flavors": [], "queues": [],
    "teams": [], "budgets": [], "goals": [], "hours": [],
    "clusters": [{"name": "m", "role": "manager", "reachable": True, "message": "", "connected": None,
    "pending": 1, "reserved": 0, "admitted": None}],
}  # fmt: skip


def job(name: str, state: str = "Pending", **more: Any) -> dict[str, Any]:
    result = {
        "namespace": "team",
        "name": name,
        "queue": "gpu",
        "state": state,
        "cluster": "m",
        "reason": "",
        "message": "",
        "team": "ml",
        "gpus": 4,
        **dict.fromkeys(("place", "start", "why", "next"), ""),
        "wrong": False,
    }
    return {**result, "since": "2026-11-27T09:00:00+00:00", "seconds": 3600.0, "says": "", **more}


VIEW = View(SUMMARY, [job("train"), job("other", "Admitted")])


@asynccontextmanager
async def served(view: Any = VIEW, **server: Any) -> AsyncIterator[tuple[str, PageServer]]:
    explain = server.get("explain", lambda space, name: f"{space}/{name}: why")
    first, look = (VIEW, view) if callable(view) else (view, lambda: view)
    result = PageServer(first, look, {"job": explain}, lambda asked: f"{asked['amount']}: no job fares differently")
    address: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    task = asyncio.create_task(result.run(0, server.get("every", 60.0), address.set_result))
    try:
        yield await asyncio.wait_for(address, 20), result
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def get(url: str, **headers: str) -> tuple[int, str, Any]:
    async with aiohttp.ClientSession() as session, session.get(url, headers=headers, allow_redirects=False) as answer:
        return answer.status, await answer.text(), answer.headers


async def event(url: str) -> dict[str, Any]:
    """The first one."""
    async with aiohttp.ClientSession() as session, session.get(f"{url}live/events") as answer:
        line = await asyncio.wait_for(answer.content.readline(), 20)
        result: dict[str, Any] = json.loads(line.removeprefix(b"data: "))
        return result


async def test_it_listens_on_this_machine_alone_and_under_a_secret() -> None:
    async with served() as (url, _):
        assert url.startswith("http://127.0.0.1:")
        assert len(url.split("/")[3]) >= 32
        host = "/".join(url.split("/")[:3])
        for path in ("", "/", "/index.html", "/live/jobs", "/x/live/jobs"):
            assert (await get(f"{host}{path}"))[0] == 404


async def test_a_page_of_the_internet_that_resolves_to_this_machine_gets_nothing() -> None:
    async with served() as (url, _):
        status, text, _ = await get(url, Host="evil.example:80")
        assert (status, text) == (403, "forbidden")


@pytest.mark.parametrize(
    "path", ["", "ui.js", "jobs.js", "page.css", "live/jobs", "live/job?namespace=team&name=train", "nothing"]
)
async def test_nothing_of_others_is_loaded_and_nothing_is_kept(path: str) -> None:
    async with served() as (url, _):
        _, text, headers = await get(f"{url}{path}")
        assert "default-src 'none'" in headers["Content-Security-Policy"]
        assert "unsafe" not in headers["Content-Security-Policy"]
        assert (headers["Cache-Control"], headers["X-Content-Type-Options"]) == ("no-store", "nosniff")
        assert headers["Referrer-Policy"] == "no-referrer"
        assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
        assert not [name for name in headers if name.lower().startswith("access-control")]
        assert "://" not in text


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"])
async def test_nothing_can_be_changed(method: str) -> None:
    async with served() as (url, _), aiohttp.ClientSession() as session:
        for path in ("", "live/jobs", "live/job", "live/what-if"):
            async with session.request(method, f"{url}{path}") as answer:
                assert answer.status == 405


@pytest.mark.parametrize("name", ["..%2f..%2fui_server.py", "ui_server.py", "%2e%2e/ui_server.py", "page", "team.html"])
async def test_no_other_file_is_served(name: str) -> None:
    async with served() as (url, _):
        assert (await get(f"{url}{name}"))[0] == 404


async def test_the_summary_comes_as_an_event() -> None:
    async with served() as (url, _):
        result = await event(url)
        assert (result["fleet"], result["jobs"], result["problem"]) == ("lab", 2, "")


async def test_a_tab_that_is_closed_is_no_error(caplog: pytest.LogCaptureFixture) -> None:
    async with served(every=0.05) as (url, server):
        await event(url)
        began = server._text
        async with asyncio.timeout(20):
            while server._text is began:
                await asyncio.sleep(0.05)
        await asyncio.sleep(0.3)
    assert caplog.text == ""


async def test_what_was_read_stays_and_the_page_says_that_it_is_not_read_again() -> None:
    def look() -> View:
        raise OSError("no route to the manager")

    async with served(look, every=0.05) as (url, _):
        async with asyncio.timeout(20):
            while (result := await event(url))["problem"] == "":
                await asyncio.sleep(0.05)
        assert (result["fleet"], result["problem"]) == ("lab", "no route to the manager")


async def test_jobs_that_could_not_be_read_are_not_none() -> None:
    async with served(View(SUMMARY, None)) as (url, _):
        assert (await event(url))["jobs"] is None
        assert json.loads((await get(f"{url}live/jobs"))[1]) == {"count": None, "jobs": [], "teams": []}


async def test_jobs_are_found_by_name_and_state() -> None:
    async with served() as (url, _):
        await event(url)
        result = json.loads((await get(f"{url}live/jobs?q=TRAI"))[1])
        assert (result["count"], [item["name"] for item in result["jobs"]]) == (1, ["train"])
        result = json.loads((await get(f"{url}live/jobs?state=Admitted"))[1])
        assert [entry["name"] for entry in result["jobs"]] == ["other"]


async def test_jobs_are_found_by_team() -> None:
    async with served(View(SUMMARY, [job("train"), job("other", team="speech")])) as (url, _):
        await event(url)
        result = json.loads((await get(f"{url}live/jobs?team=speech"))[1])
        assert ([item["name"] for item in result["jobs"]], result["teams"]) == (["other"], ["ml", "speech"])


async def test_of_many_jobs_the_first_are_sent_and_the_rest_counted() -> None:
    async with served(View(SUMMARY, [job(f"j-{index}") for index in range(15_000)])) as (url, _):
        await event(url)
        text = (await get(f"{url}live/jobs"))[1]
        result = json.loads(text)
        assert (result["count"], len(result["jobs"])) == (15_000, MOST_JOBS)
        assert len(text) < 100_000


async def test_why_a_job_waits_is_asked_for_when_somebody_looks() -> None:
    async with served() as (url, _):
        await event(url)
        assert json.loads((await get(f"{url}live/job?namespace=team&name=train"))[1]) == {"text": "team/train: why"}
        assert (await get(f"{url}live/job?namespace=team&name=gone"))[0] == 404
        assert (await get(f"{url}live/secrets?namespace=team&name=train"))[0] == 404


async def test_another_quota_is_tried_when_somebody_asks() -> None:
    async with served() as (url, _):
        text = (await get(f"{url}live/what-if?amount=5"))[1]
        assert json.loads(text) == {"text": "5: no job fares differently"}


@contextmanager
def running(view: View, why: str = "why") -> Iterator[str]:
    """The server in a thread of its own, for a browser; its address."""
    loop, ready, address = asyncio.new_event_loop(), threading.Event(), []
    details = {"job": lambda space, name: why, "logs": lambda space, name: f"log: {why}"}
    result = PageServer(view, lambda: view, details, lambda asked: f"{json.dumps(dict(asked))} {why}")

    def tell(url: str) -> None:
        address.append(url)
        ready.set()

    def work() -> None:
        asyncio.set_event_loop(loop)
        tasks.append(loop.create_task(result.run(0, 1.0, tell)))
        loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))

    tasks: list[Any] = []
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    assert ready.wait(20)
    try:
        yield address[0]
    finally:
        loop.call_soon_threadsafe(tasks[0].cancel)
        thread.join(20)
        loop.close()
