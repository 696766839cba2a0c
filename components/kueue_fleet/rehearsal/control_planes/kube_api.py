"""A small asynchronous Kubernetes client: plain JSON over one keep-alive connection pool.

`KubeApi` for single requests, and `Watched`, a local copy of one resource that list and watch keep up to date. Four
clusters are served by one supervisor process, so no generated client with its thousands of model classes is loaded;
objects are dictionaries as the API server writes them.
"""

from __future__ import annotations

import asyncio
import json
import logging
import random
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any, Self

import aiohttp

from kueue_fleet.kube.answers import APPLY_PATCH, MERGE_PATCH, ApiError, Json, object_key, refusal, watch_events

_REQUEST_SECONDS = 60.0
_WATCH_SECONDS = 300
_LIST_PAGE = 200
_RETRY_FIRST_SECONDS = 0.2
_RETRY_LAST_SECONDS = 5.0

log = logging.getLogger(__name__)


class KubeApi:
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

        Raises ApiError for a refusal, aiohttp.ClientError or TimeoutError when the server cannot be reached.
        """
        data = None if body is None else json.dumps(body).encode()
        headers = {} if data is None else {"Content-Type": content_type}
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
        try:
            return await self.get(path)
        except ApiError as error:
            if error.is_not_found:
                return None
            raise

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
        try:
            await self.request("DELETE", path, body=body)
        except ApiError as error:
            if error.is_not_found or (uid is not None and error.is_conflict):
                return False
            raise
        return True

    async def watch(self, path: str, params: Mapping[str, str]) -> AsyncIterator[tuple[str, Json]]:
        """The events after `params["resourceVersion"]`, until the server ends the watch.

        Raises ApiError (410 when the version is too old), aiohttp.ClientError when the connection drops.
        """
        query = {
            **params,
            "watch": "1",
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(_WATCH_SECONDS + random.randrange(_WATCH_SECONDS)),  # noqa: S311
        }
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=10, sock_read=2 * _WATCH_SECONDS + 30)
        async with self._client().get(self.server + path, params=query, timeout=timeout) as response:
            if response.status >= 400:
                raise refusal(response.status, await response.read())
            async for event in watch_events(response.content.iter_any()):
                yield event


class Watched:
    """A local copy of the objects of one collection, kept current by list and watch.

    `objects` maps `namespace/name` (or `name`) to what `project` keeps of each object. `on_change(key, old, new)` is
    called on the event loop for each difference, also for those found by a new list after a dropped watch or HTTP
    410.
    """

    def __init__(
        self,
        api: KubeApi,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        project: Callable[[Json], Json] | None = None,
        on_change: Callable[[str, Json | None, Json | None], None] | None = None,
        page: int = _LIST_PAGE,
    ) -> None:
        self.objects: dict[str, Json] = {}
        self.synced = asyncio.Event()
        self._api = api
        self._path = path
        self._params = dict(params or {})
        self._project = project or without_managed_fields
        self._on_change = on_change
        self._page = page

    async def run(self) -> None:
        """Lists and watches until cancelled. A resource that does not exist yet is asked for again."""
        delay = _RETRY_FIRST_SECONDS
        version: str | None = None
        while True:
            try:
                if version is None:
                    version = await self._list()
                    self.synced.set()
                delay = _RETRY_FIRST_SECONDS
                async for kind, item in self._api.watch(self._path, {**self._params, "resourceVersion": version}):
                    version = item["metadata"]["resourceVersion"]
                    if kind != "BOOKMARK":
                        self._put(object_key(item), None if kind == "DELETED" else self._project(item))
            except ApiError as error:
                version = None
                if not (error.asks_for_list or error.is_not_found):
                    log.warning("%s%s: %s", self._api.server, self._path, error)
                if error.asks_for_list:
                    continue
            except (aiohttp.ClientError, TimeoutError, OSError) as error:
                # The server may come back with an earlier state of etcd, of which a watch from here would hear nothing.
                version = None
                log.info("%s%s: watch dropped: %s", self._api.server, self._path, error)
            await asyncio.sleep(delay)
            delay = min(delay * 2, _RETRY_LAST_SECONDS)

    async def _list(self) -> str:
        seen: set[str] = set()
        query = {**self._params, "limit": str(self._page)}
        while True:
            page = await self._api.get(self._path, query)
            for item in page.get("items") or []:
                key = object_key(item)
                seen.add(key)
                self._put(key, self._project(item))
            token = page["metadata"].get("continue")
            if not token:
                break
            query["continue"] = token
        for key in [key for key in self.objects if key not in seen]:
            self._put(key, None)
        version: str = page["metadata"]["resourceVersion"]
        return version

    def _put(self, key: str, new: Json | None) -> None:
        old = self.objects.get(key)
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
