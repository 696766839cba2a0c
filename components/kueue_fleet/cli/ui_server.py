"""Serves the page of `status --page` on 127.0.0.1: files, what it shows as server-sent events, jobs by search, why.

Nothing is written anywhere. Every answer needs the secret in the path, and the name of this machine in `Host`, so that
neither another user of the machine nor a page of the internet (DNS rebinding) gets one.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from aiohttp import web

from kueue_admission.cli import console
from kueue_fleet.page.answers import HEADERS, file_answer, jobs_answer, refusal

_FILES: Final = {"": "ui.html", "page.css": "page.css", "jobs.js": "jobs.js", "ui.js": "ui.js"}
_REST: Final = 0.2
"""Of the time of a look that took longer than the time between two: others use this machine too."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class View:
    """What the page shows: everything but the jobs, and these."""

    summary: Mapping[str, Any]
    jobs: Sequence[Mapping[str, Any]] | None
    """None: not known."""


class PageServer:
    """`first` is shown until `look` has read the clusters again; `details` say more of a job, by namespace and name:
    `job` why it waits, `logs` what its pods print. `what_if` says what another quota would change, by the fields of
    the page's form.

    All may take their time.
    """

    def __init__(
        self,
        first: View,
        look: Callable[[], View],
        details: Mapping[str, Callable[[str, str], str]],
        what_if: Callable[[Mapping[str, str]], str],
    ) -> None:
        self._look, self._details, self._what_if = look, details, what_if
        self._secret = secrets.token_urlsafe(24)
        self._view = first
        self._text = _text(first, "")
        self._changed = asyncio.Condition()
        self._hosts: frozenset[str] = frozenset()
        self._explaining = asyncio.Semaphore(1)

    async def run(self, port: int, every: float, ready: Callable[[str], None]) -> None:
        """Serve until cancelled; `ready` gets the address. Raises CommandError if it is taken."""

        @web.middleware
        async def guard(
            request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
        ) -> web.StreamResponse:
            return await self._guard(request, handler)

        application = web.Application(middlewares=[guard])
        base = f"/{self._secret}"
        application.router.add_get(f"{base}/", self._file)
        application.router.add_get(f"{base}/{{name}}", self._file)
        application.router.add_get(f"{base}/live/events", self._events)
        application.router.add_get(f"{base}/live/jobs", self._jobs)
        application.router.add_get(f"{base}/live/what-if", self._quota)
        application.router.add_get(f"{base}/live/{{what}}", self._detail)
        runner = web.AppRunner(application, access_log=None, shutdown_timeout=1.0)
        await runner.setup()
        try:
            site = web.TCPSite(runner, "127.0.0.1", port)
            try:
                await site.start()
            except OSError as failed:
                reason = os.strerror(failed.errno or 0)
                raise console.CommandError(f"--port {port}: {reason}; give another one") from None
            at = runner.addresses[0][1]
            self._hosts = frozenset({f"127.0.0.1:{at}", f"localhost:{at}"})
            ready(f"http://127.0.0.1:{at}{base}/")
            loop = asyncio.get_running_loop()
            while True:
                began = loop.time()
                await self._look_once()
                await asyncio.sleep(max(_REST * (loop.time() - began), began + every - loop.time()))
        finally:
            await runner.cleanup()

    async def _look_once(self) -> None:
        """Read the clusters; what is shown stays where that fails, and the page says so."""
        try:
            view, problem = await asyncio.to_thread(self._look), ""
        except Exception as error:
            log.debug("not read", exc_info=True)
            view, problem = self._view, str(error) or type(error).__name__
        async with self._changed:
            self._view, self._text = view, _text(view, problem)
            self._changed.notify_all()

    async def _guard(
        self, request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        if request.headers.get("Host", "") not in self._hosts:
            return refusal(403, "forbidden")
        try:
            answer = await handler(request)
        except web.HTTPException as refused:
            return refusal(refused.status, refused.reason)
        if not answer.prepared:
            answer.headers.update(HEADERS)
        return answer

    async def _file(self, request: web.Request) -> web.Response:
        name = request.match_info.get("name", "")
        if name not in _FILES:
            raise web.HTTPNotFound
        return file_answer(_FILES[name])

    async def _events(self, request: web.Request) -> web.StreamResponse:
        """The summary, now and after each look."""
        answer = web.StreamResponse(headers={**HEADERS, "Content-Type": "text/event-stream"})
        await answer.prepare(request)
        with suppress(ConnectionResetError):  # Somebody closed the tab.
            while True:
                text = self._text
                await answer.write(f"data: {text}\n\n".encode())
                async with self._changed:
                    while self._text is text:
                        await self._changed.wait()
        return answer

    async def _jobs(self, request: web.Request) -> web.Response:
        return jobs_answer(self._view.jobs, request.query)

    async def _detail(self, request: web.Request) -> web.Response:
        detail = self._details.get(request.match_info["what"])
        namespace, name = request.query.get("namespace", ""), request.query.get("name", "")
        if detail is None or not any(
            (row["namespace"], row["name"]) == (namespace, name) for row in self._view.jobs or ()
        ):
            raise web.HTTPNotFound
        return await self._text_answer(partial(detail, namespace, name))

    async def _quota(self, request: web.Request) -> web.Response:
        return await self._text_answer(partial(self._what_if, request.query))

    async def _text_answer(self, work: Callable[[], str]) -> web.Response:
        """What `work` finds; one at a time, as each may take the whole of a core."""
        async with self._explaining:
            return web.json_response({"text": await asyncio.to_thread(work)})


def _text(view: View, problem: str) -> str:
    return json.dumps({**view.summary, "problem": problem, "jobs": None if view.jobs is None else len(view.jobs)})
