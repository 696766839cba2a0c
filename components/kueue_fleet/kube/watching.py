"""A list that is kept up to date: list, watch, and list again when the watch can no longer follow."""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Callable

from kueue_fleet.kube.client import Api, ApiError, Json

PAGE = 250
"""Objects of one page of a list."""
_FIRST_DELAY = 0.2
_LAST_DELAY = 10.0
_SHORT_WATCH = 1.0
"""Seconds. A watch that ends sooner, and told nothing, is taken for a failure."""

log = logging.getLogger(__name__)

Listener = Callable[[str, Json | None], None]
"""Told of every object that is new or changed, by its key, and with None of one that is gone."""


class Watch:
    """One list of one API server.

    `synced` is set once the first list was told; `connected` is False from the moment that a watch breaks until another
    one has begun. A kind that the server does not have (`optional`) is an empty list, looked for again now and then.
    """

    def __init__(
        self,
        api: Api,
        path: str,
        listener: Listener,
        *,
        optional: bool = False,
        on_connection: Callable[[], None] | None = None,
    ) -> None:
        self.path = path
        self.synced = asyncio.Event()
        self.connected = False
        self.lists = 0
        self._api = api
        self._listener = listener
        self._optional = optional
        self._on_connection = on_connection
        self._keys: set[str] = set()

    async def run(self) -> None:
        """Follow until cancelled."""
        delay, version = _FIRST_DELAY, ""
        while True:
            began, listing, told, followed = math.inf, not version, False, True
            try:
                if listing:
                    version = await self._list()
                    listing = False
                    self.synced.set()
                    self._set(connected=True)
                began = time.monotonic()
                async for kind, item in self._api.watch(self.path, version, self._opened):
                    told, version = True, item["metadata"]["resourceVersion"]
                    if kind != "BOOKMARK":
                        self._tell(item, gone=kind == "DELETED")
            except ApiError as error:
                if error.status:
                    version = ""
                followed = error.is_gone and not listing
                if error.is_not_found and self._optional:
                    self.synced.set()
                    self._set(connected=True)
                    delay = _LAST_DELAY
                elif not followed:
                    self._set(connected=False)
                    log.warning("watch interrupted", extra={"fields": {"path": self.path, "error": str(error)}})
            if told or time.monotonic() - began > _SHORT_WATCH:
                delay = _FIRST_DELAY
                if followed:
                    continue
            # A server that ends every watch at once, or calls every list too old, is not asked without a pause either.
            await asyncio.sleep(delay)
            delay = min(2 * delay, _LAST_DELAY)

    def _opened(self) -> None:
        self._set(connected=True)

    def _set(self, *, connected: bool) -> None:
        if connected != self.connected:
            self.connected = connected
            if self._on_connection is not None:
                self._on_connection()

    async def _list(self) -> str:
        self.lists += 1
        seen: set[str] = set()
        params = {"limit": str(PAGE)}
        while True:
            page = await self._api.get(self.path, params)
            kind, version = page.get("kind", "").removesuffix("List"), page.get("apiVersion", "")
            for item in page.get("items") or ():
                # Items of a list do not say what they are.
                item.setdefault("kind", kind)
                item.setdefault("apiVersion", version)
                seen.add(object_key(item))
                self._tell(item, gone=False)
            more = page["metadata"].get("continue")
            if not more:
                break
            params["continue"] = more
        for key in self._keys - seen:
            self._listen(key, None)
        self._keys = seen
        found: str = page["metadata"]["resourceVersion"]
        return found

    def _tell(self, item: Json, *, gone: bool) -> None:
        key = object_key(item)
        if gone:
            self._keys.discard(key)
        else:
            self._keys.add(key)
        self._listen(key, None if gone else item)

    def _listen(self, key: str, item: Json | None) -> None:
        try:
            self._listener(key, item)
        except Exception:
            # One object that nobody understands must not end the following of all others.
            log.exception("object not understood", extra={"fields": {"path": self.path, "key": key}})


def object_key(item: Json) -> str:
    """`namespace/name` of an object, `name` of one without a namespace."""
    metadata = item["metadata"]
    namespace = metadata.get("namespace")
    return f"{namespace}/{metadata['name']}" if namespace else str(metadata["name"])
