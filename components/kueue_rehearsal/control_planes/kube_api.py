"""A small asynchronous Kubernetes client: plain JSON over one keep-alive connection pool.

`ControlPlaneApi` for single requests, and `Watched`, a local copy of one resource that `kube.watching` keeps up to
date. Four clusters are served by one supervisor process, so no generated client with its thousands of model classes is
loaded; objects are dictionaries as the API server writes them.
"""

from __future__ import annotations

import json
import random
import ssl
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlencode

import aiohttp

from kueue_fleet.kube.answers import APPLY_PATCH, MERGE_PATCH, AcceptedRefusals, ApiError, Json, refusal, watch_events
from kueue_fleet.kube.api import Identity, Opened, ask_identity, nothing
from kueue_fleet.kube.watching import PAGE, Watch

_REQUEST_SECONDS = 60.0
_WATCH_SECONDS = 300


@contextmanager
def _as_api_error(what: str) -> Iterator[None]:
    try:
        yield
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        raise ApiError(0, "", f"{what} failed: {type(error).__name__}: {error}") from None


class ControlPlaneApi:
    """Requests to one API server as one user. Use as an asynchronous context manager, or call `close`."""

    def __init__(self, server: str, *, ca_file: Path, token: str, field_manager: str) -> None:
        self.server = server.rstrip("/")
        self.ca_file = ca_file
        self.field_manager = field_manager
        self._headers = {"Authorization": f"Bearer {token}", "Accept": "application/json"}
        self._tls = ssl.create_default_context(cafile=str(ca_file))
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Closes all connections; watches that still run end with an error."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    def _client(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(ssl=self._tls, limit=0, keepalive_timeout=30),
                headers=self._headers,
                timeout=aiohttp.ClientTimeout(total=_REQUEST_SECONDS),
                trust_env=False,
            )
        return self._session

    async def request(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        body: Any = None,
        content_type: str = "application/json",
    ) -> Json:
        """One request; returns the decoded object.

        Raises ApiError for a refusal, with status 0 when the server cannot be reached.
        """
        data = None if body is None else json.dumps(body).encode()
        headers = {} if data is None else {"Content-Type": content_type}
        with _as_api_error(f"{method} {path}"):
            async with self._client().request(
                method, self.server + path, params=params, data=data, headers=headers
            ) as response:
                text = await response.read()
                if response.status >= 400:
                    raise refusal(response.status, text)
                return json.loads(text) if text[:1] in (b"{", b"[") else {}

    async def get(self, path: str, params: Mapping[str, str] | None = None) -> Json:
        """The object or list at `path`; raises ApiError."""
        return await self.request("GET", path, params=params)

    async def find(self, path: str) -> Json | None:
        """The object at `path`, or None when there is none."""
        with AcceptedRefusals(HTTPStatus.NOT_FOUND):
            return await self.get(path)
        return None

    async def create(self, path: str, body: Json, params: Mapping[str, str] | None = None) -> Json:
        """Creates the object in the collection at `path`; raises ApiError (409 when it exists)."""
        return await self.request(
            "POST", path, params={"fieldManager": self.field_manager, **(params or {})}, body=body
        )

    async def patch(self, path: str, body: Any, content_type: str = MERGE_PATCH) -> Json:
        """Patches the object at `path`; raises ApiError."""
        return await self.request(
            "PATCH", path, params={"fieldManager": self.field_manager}, body=body, content_type=content_type
        )

    async def apply(self, path: str, body: Json) -> Json:
        """Server-side apply, taking over contested fields; raises ApiError."""
        return await self.request(
            "PATCH",
            path,
            params={"fieldManager": self.field_manager, "force": "true"},
            body=body,
            content_type=APPLY_PATCH,
        )

    async def delete(self, path: str, *, uid: str | None = None, grace_seconds: int | None = None) -> bool:
        """Deletes the object at `path`, only if it still has `uid`; False when it is not there any more."""
        body: Json = {"kind": "DeleteOptions", "apiVersion": "v1"}
        if uid is not None:
            body["preconditions"] = {"uid": uid}
        if grace_seconds is not None:
            body["gracePeriodSeconds"] = grace_seconds
        with AcceptedRefusals(HTTPStatus.NOT_FOUND, *(() if uid is None else (HTTPStatus.CONFLICT,))):
            await self.request("DELETE", path, body=body)
            return True
        return False

    async def identity(self) -> Identity:
        """See `kube.api`."""
        return await ask_identity(self)

    async def watch(self, path: str, version: str, opened: Opened = nothing) -> AsyncIterator[tuple[str, Json]]:
        """See `kube.api`."""
        query = {
            "resourceVersion": version,
            "watch": "1",
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(_WATCH_SECONDS + random.randrange(_WATCH_SECONDS)),  # noqa: S311
        }
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=10, sock_read=2 * _WATCH_SECONDS + 30)
        with _as_api_error(f"watch of {path}"):
            async with self._client().get(self.server + path, params=query, timeout=timeout) as response:
                if response.status >= 400:
                    raise refusal(response.status, await response.read())
                opened()
                async for event in watch_events(response.content.iter_any()):
                    yield event


class Watched:
    """A local copy of the objects of one collection, kept current by list and watch.

    `objects` maps `namespace/name` (or `name`) to what `project` keeps of each object. `on_change(key, old, new)` is
    called on the event loop for each difference. `params` are selectors. A resource that does not exist yet is asked
    for again.
    """

    def __init__(
        self,
        api: ControlPlaneApi,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        project: Callable[[Json], Json] | None = None,
        on_change: Callable[[str, Json | None, Json | None], None] | None = None,
        page: int = PAGE,
    ) -> None:
        self.objects: dict[str, Json] = {}
        self._project = project or without_managed_fields
        self._on_change = on_change
        self._watch = Watch(api, f"{path}?{urlencode(params)}" if params else path, self._put, page=page)
        self.synced = self._watch.synced
        self.run = self._watch.run

    def _put(self, key: str, item: Json | None) -> None:
        old, new = self.objects.get(key), None if item is None else self._project(item)
        if new is None:
            self.objects.pop(key, None)
        else:
            self.objects[key] = new
        if self._on_change is not None and old != new:
            self._on_change(key, old, new)


def without_managed_fields(item: Json) -> Json:
    """The object without `metadata.managedFields`, which is often half of it."""
    item["metadata"].pop("managedFields", None)
    return item
