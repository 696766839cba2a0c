"""A list that is kept up to date: list, watch, and list again when the watch can no longer follow."""

from __future__ import annotations

import asyncio
import logging
import math
import random
import time
from collections.abc import Callable, Iterable

from kueue_fleet.kube.answers import ApiError, Json, object_key, version_number
from kueue_fleet.kube.api import ListAndWatch

PAGE = 250
"""Objects of one page of a list."""
_FIRST_DELAY = 0.2
_LAST_DELAY = 5.0
_SHORT_WATCH = 1.0
"""Seconds. A watch that ends sooner, without an event, is taken for a failure."""

log = logging.getLogger(__name__)

Listener = Callable[[str, Json | None], None]
"""Called with every object that is new or changed, by its key, and with None for one that is gone."""
Listed = Callable[[int, bool], None]
"""Called with a new list before its objects: its resource version, and whether the server went back to an earlier
state, or is another server: then nothing that was known is newer than the list, whatever its version."""


class Watch:
    """One list of one API server. `identity` is the uid of the server's cluster; empty: it has not answered yet.

    `synced` is set after the first list. `connected` is True while a watch runs, and while one that the server
    ended in good order is begun again; it is False `grace` seconds after a watch broke, stayed silent or was refused.
    Before every watch the server is asked whether it is still the same cluster, and has not gone back to an earlier
    state: a watch from a version that is yet to come would report nothing. A kind that the server does not have
    (`optional`) is an empty list, looked for again now and then.
    """

    def __init__(
        self,
        api: ListAndWatch,
        path: str,
        listener: Listener,
        *,
        optional: bool = False,
        on_connection: Callable[[], None] | None = None,
        on_list: Listed | None = None,
        grace: float = 0.0,
        page: int = PAGE,
    ) -> None:
        self.path = path
        self.synced = asyncio.Event()
        self.connected = False
        self.lists = 0
        self.identity = ""
        self._api = api
        self._listeners = [listener]
        self._optional = optional
        self._on_connection = [] if on_connection is None else [on_connection]
        self._on_list = on_list
        self._grace = grace
        self._page = page
        self._losing: asyncio.TimerHandle | None = None
        self._keys: set[str] = set()
        self._version = ""
        self._identity = ""
        self._latest = 0
        self._told = False

    def tell_too(self, listener: Listener, on_connection: Callable[[], None]) -> None:
        """Tell another one the same, from the beginning: before this runs."""
        self._listeners.append(listener)
        self._on_connection.append(on_connection)

    async def run(self) -> None:
        """Follow until cancelled."""
        delay = _FIRST_DELAY
        while True:
            self._told, began, pause = False, math.inf, 0.0
            try:
                await self._prepare()
                began = time.monotonic()
                await self._follow()
                broken = False
            except ApiError as error:
                broken = self._take_error(error)
                pause = error.retry_after or 0.0
                if error.is_not_found and self._optional:
                    delay = _LAST_DELAY
            if self._told or time.monotonic() - began > _SHORT_WATCH:
                delay = _FIRST_DELAY
                if not broken:
                    continue
            # A server that ends every watch at once, or calls every list too old, is not asked without a pause either.
            await asyncio.sleep(max(pause, delay * random.uniform(0.5, 1.0)))  # noqa: S311
            delay = min(2 * delay, _LAST_DELAY)

    async def _prepare(self) -> None:
        """Know a version from which the server can be followed."""
        identity = await self._api.identity()
        self.identity = identity.uid
        reset = bool(self._latest) and identity.uid != self._identity
        # Of an API server that keeps kinds in several stores, this may ask for a list that was not needed.
        reset = reset or (bool(self._version) and version_number(identity.version) < version_number(self._version))
        if reset:
            log.warning("server went back or is another one", extra={"fields": {"path": self.path}})
            self._lose()
            self._version = ""
        if not self._version:
            self._version = await self._list(reset=reset)
            self._identity = identity.uid
            self.synced.set()

    async def _follow(self) -> None:
        async for kind, item in self._api.watch(self.path, self._version, self._opened):
            self._told, self._version = True, item["metadata"]["resourceVersion"]
            self._latest = version_number(self._version)
            if kind != "BOOKMARK":
                self._tell(item, gone=kind == "DELETED")

    def _take_error(self, error: ApiError) -> bool:
        """Whether the list is not known as it is any more."""
        if error.is_not_found and self._optional:
            self._version = ""
            self.synced.set()
            self._set(connected=True)
            return True
        was_following = bool(self._version)
        if error.asks_for_list:
            self._version = ""
            if was_following:
                return False
        if self.connected and self._losing is None and self._grace:
            self._losing = asyncio.get_running_loop().call_later(self._grace, self._lose)
        elif not self._grace:
            self._lose()
        log.warning("watch interrupted", extra={"fields": {"path": self.path, "error": str(error)}})
        return True

    def _opened(self) -> None:
        self._set(connected=True)

    def _lose(self) -> None:
        self._set(connected=False)

    def _set(self, *, connected: bool) -> None:
        if self._losing is not None:
            self._losing.cancel()
            self._losing = None
        if connected != self.connected:
            self.connected = connected
            for event in self._on_connection:
                event()

    async def _list(self, *, reset: bool) -> str:
        self.lists += 1
        seen_keys: set[str] = set()
        params = {"limit": str(self._page)}
        first = True
        while True:
            page = await self._api.get(self.path, params)
            kind, version = page.get("kind", "").removesuffix("List"), page.get("apiVersion", "")
            resource_version: str = page["metadata"]["resourceVersion"]
            if first:
                first = False
                number = version_number(resource_version)
                if self._on_list is not None:
                    self._on_list(number, reset or number < self._latest)
                self._latest = number
            for item in page.get("items") or ():
                # Items of a list do not say what they are.
                item.setdefault("kind", kind)
                item.setdefault("apiVersion", version)
                seen_keys.add(object_key(item))
                self._tell(item, gone=False)
            more = page["metadata"].get("continue")
            if not more:
                break
            params["continue"] = more
        for key in self._keys - seen_keys:
            self._listen(key, None)
        self._keys = seen_keys
        return resource_version

    def _tell(self, item: Json, *, gone: bool) -> None:
        key = object_key(item)
        if gone:
            self._keys.discard(key)
        else:
            self._keys.add(key)
        self._listen(key, None if gone else item)

    def _listen(self, key: str, item: Json | None) -> None:
        for listener in self._listeners:
            try:
                listener(key, item)
            except Exception:
                # One object that cannot be read must not end the following of all others.
                log.exception("object not understood", extra={"fields": {"path": self.path, "key": key}})


def are_followed(watches: Iterable[Watch]) -> bool:
    """Whether all of these lists are known as they are now."""
    return all(watch.synced.is_set() and watch.connected for watch in watches)
