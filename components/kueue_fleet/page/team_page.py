"""Serves the page for teams: the jobs of each viewer's namespaces, why they wait, and what happened to one.

It writes nothing, and keeps nothing from one viewer's request for another's.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from aiohttp import web

from kueue_admission.kernel.names import KUEUE_API
from kueue_admission.read.printed import PrintedWorkload
from kueue_fleet.kube.answers import ApiError, Json
from kueue_fleet.objects.fleet_page import PageConfiguration
from kueue_fleet.page.answers import HEADERS, file_answer, jobs_answer, refusal
from kueue_fleet.page.api_server import ApiServer
from kueue_fleet.page.viewers import RefusedError, SignIn, TokenSignIn, Viewer
from kueue_fleet.status import ClusterObjects, fleet_status
from kueue_fleet.status.job import timeline
from kueue_fleet.status.jobs import job_rows

_FILES: Final = {"": "team.html", "page.css": "page.css", "jobs.js": "jobs.js", "team.js": "team.js"}
_REFUSED_SECONDS: Final = 60.0
"""For how long a namespace that a viewer may not read is not asked for again."""
_MOST_REMEMBERED: Final = 1000

log = logging.getLogger(__name__)
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
"""What answers a request."""


class TeamPage:
    """The page of a fleet; viewers see of its namespaces those that they may read."""

    def __init__(self, settings: PageConfiguration, api: ApiServer, sign_in: SignIn) -> None:
        self._settings, self._namespaces = settings, settings.namespaces
        self._api, self._sign_in = api, sign_in
        self._by_token = isinstance(sign_in, TokenSignIn)
        self._refused: dict[tuple[str, str], float] = {}
        """Viewer and namespace, and until when."""

    def application(self) -> web.Application:
        """The web application."""
        web_application = web.Application(middlewares=[self._guarded])
        web_application.router.add_get("/healthz", self._health)
        web_application.router.add_get("/live/jobs", self._jobs)
        web_application.router.add_get("/live/job", self._job)
        web_application.router.add_get("/{name:[a-z.]*}", self._file)
        return web_application

    @web.middleware
    async def _guarded(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            answer = await handler(request)
        except RefusedError as refused:
            signs = {"WWW-Authenticate": "Bearer"} if refused.status == 401 and self._by_token else {}
            return refusal(refused.status, str(refused), **signs)
        except web.HTTPException as refused:
            return refusal(refused.status, refused.reason)
        except ApiError as failed:
            log.warning("not read: %s", failed.reason or failed.message)
            signs = {"WWW-Authenticate": "Bearer"} if failed.status == 401 and self._by_token else {}
            return refusal(failed.status if failed.status in (401, 403, 429) else 502, _words(failed), **signs)
        answer.headers.update(HEADERS)
        return answer

    async def _health(self, request: web.Request) -> web.Response:
        del request
        return web.Response(text="ok")

    async def _file(self, request: web.Request) -> web.Response:
        """Without a token these are for everybody, and have nothing of the fleet in them; behind IAP for viewers."""
        if not self._by_token:
            await self._sign_in.viewer(request)
        name = request.match_info["name"]
        if name not in _FILES:
            raise web.HTTPNotFound
        return file_answer(_FILES[name])

    async def _jobs(self, request: web.Request) -> web.Response:
        viewer = await self._sign_in.viewer(request)
        workloads = await self._readable(viewer)
        now = datetime.now(UTC)  # noqa: TID251 - the edge has the clock
        rows = await asyncio.to_thread(team_rows, self._settings, workloads, now)
        answer = jobs_answer(rows, request.query)
        answer.headers["X-Fleet"] = self._settings.fleet
        return answer

    async def _job(self, request: web.Request) -> web.Response:
        viewer, name = await self._sign_in.viewer(request), request.query.get("name", "")
        namespace = request.query.get("namespace", "")
        if namespace not in self._namespaces:
            raise web.HTTPNotFound
        workloads_there = await self._api.listed(_path(namespace), viewer)
        mine = [workload for workload in map(PrintedWorkload.of, workloads_there) if workload.job_name == name]
        if not mine:
            raise web.HTTPNotFound
        return web.json_response({"text": "\n".join(timeline(max(mine, key=lambda each: each.created or 0.0)))})

    async def _readable(self, viewer: Viewer) -> list[Json]:
        """The Workloads that the viewer may list. Raises ApiError if there is no namespace of which they may."""
        now = time.monotonic()
        self._refused = {key: until for key, until in self._refused.items() if until > now}
        namespaces_asked = [namespace for namespace in self._namespaces if (viewer.key, namespace) not in self._refused]
        # A token that the cluster does not take costs one request.
        answers = [await self._namespace(viewer, namespace) for namespace in namespaces_asked[:1]]
        answers += await asyncio.gather(*(self._namespace(viewer, namespace) for namespace in namespaces_asked[1:]))
        namespaces_there = [answer for answer in answers if answer is not None]
        if not namespaces_there:
            raise ApiError(403, "Forbidden", "you may read Workloads in no namespace of this fleet")
        return [workload for workloads_there in namespaces_there for workload in workloads_there]

    async def _namespace(self, viewer: Viewer, namespace: str) -> list[Json] | None:
        try:
            return await self._api.listed(_path(namespace), viewer)
        except ApiError as refused:
            if refused.status != 403:
                raise
            if len(self._refused) < _MOST_REMEMBERED:
                self._refused[viewer.key, namespace] = time.monotonic() + _REFUSED_SECONDS
            return None


def team_rows(
    settings: PageConfiguration, workloads: Sequence[Json], now: datetime
) -> Sequence[Mapping[str, Any]] | None:
    """The jobs of these Workloads that have not ended, those first that wait longest."""
    home = settings.cluster
    clusters = {home: ClusterObjects(settings.role, {"workloads": workloads})}
    return job_rows(home, clusters, fleet_status(settings.fleet, clusters, None, now).pending, settings.teams, now)


def _path(namespace: str) -> str:
    return f"/apis/{KUEUE_API}/namespaces/{namespace}/workloads"


def _words(failure: ApiError) -> str:
    """The words of the answer; what an API server says of a refusal names nothing that was not asked for."""
    if failure.status == 401:
        return "the cluster does not take this token"
    if failure.status == 429:
        return "too many viewers sign in at once; try again"
    return (
        failure.message if failure.status in (0, 403) else f"the API server answers {failure.status} {failure.reason}"
    )
