"""Reads of the manager's API server with the rights of a viewer."""

from __future__ import annotations

import asyncio
import time
from typing import Final

import aiohttp

from kueue_fleet.kube.access import Access, Kubeconfigs, read_access
from kueue_fleet.kube.answers import ApiError, Json, read_object, refusal
from kueue_fleet.kube.kubeconfig import AccessError
from kueue_fleet.kube.lists import list_of
from kueue_fleet.page.viewers import Viewer

_TIMEOUT: Final = aiohttp.ClientTimeout(total=10, connect=5)
_AT_ONCE: Final = 20
"""Requests that are under way at once, of all viewers."""
_UNKNOWN_AT_ONCE: Final = 2
"""Requests at once of all viewers whose token the API server has not taken yet."""
_UNKNOWN_WAITING: Final = 200
"""Requests of such viewers that wait; further ones are refused."""
_TAKEN_SECONDS: Final = 600.0
"""For how long a token that was taken counts as known."""
_REFUSED_SECONDS: Final = 10.0
"""For how long the API server is not asked again about a token that it did not take."""
_MOST_TOKENS: Final = 1000


class ApiServer:
    """The API server of a kubeconfig, or the one of the pod. Close it at the end."""

    def __init__(self, kubeconfig: Kubeconfigs) -> None:
        self._kubeconfig = kubeconfig
        self._session: aiohttp.ClientSession | None = None
        self._place: tuple[object, ...] = ()
        self._turn = asyncio.Semaphore(_AT_ONCE)
        self._turn_of_unknown = asyncio.Semaphore(_UNKNOWN_AT_ONCE)
        self._waiting = 0
        self._taken = _Lately(_TAKEN_SECONDS)
        self._refused = _Lately(_REFUSED_SECONDS)

    async def close(self) -> None:
        """Close all connections."""
        if self._session is not None:
            await self._session.close()

    async def listed(self, path: str, viewer: Viewer) -> list[Json]:
        """The objects of a list, as the viewer may read it. Raises ApiError.

        Requests of viewers that are not known wait for each other, so that those with forged tokens delay no others.
        """
        if viewer.by_account or viewer.key in self._taken:
            return await self._listed(path, viewer)
        if viewer.key in self._refused:
            raise ApiError(401, "Unauthorized", "")
        if self._waiting >= _UNKNOWN_WAITING:
            raise ApiError(429, "TooManyRequests", "")
        self._waiting += 1
        try:
            async with self._turn_of_unknown:
                objects_there = await self._listed(path, viewer)
        except ApiError as failed:
            if failed.status == 401:
                self._refused.add(viewer.key)
            elif failed.status == 403:
                self._taken.add(viewer.key)
            raise
        finally:
            self._waiting -= 1
        self._taken.add(viewer.key)
        return objects_there

    async def _listed(self, path: str, viewer: Viewer) -> list[Json]:
        async with self._turn:
            try:
                access = _of_viewers(read_access(self._kubeconfig))
                session = await self._connected(access)
                headers = [*viewer.headers, ("Accept", "application/json")]
                if viewer.by_account:
                    headers.append(("Authorization", f"Bearer {access.token}"))
                url, name = f"{access.server}{path}", access.tls_server_name
                async with session.get(url, headers=headers, allow_redirects=False, server_hostname=name) as answer:
                    text = await answer.read()
            except (aiohttp.ClientError, TimeoutError, OSError, AccessError) as failed:
                raise ApiError(0, "", f"the API server does not answer: {type(failed).__name__}") from None
        if answer.status != 200:
            raise refusal(answer.status, text)
        return list_of(read_object(text))

    async def _connected(self, access: Access) -> aiohttp.ClientSession:
        """Connections to where the access says; none of a viewer's is kept for another but the bare connection."""
        if self._session is None or self._place != access.place:
            old, self._place = self._session, access.place
            connector = aiohttp.TCPConnector(ssl=access.tls())
            jar = aiohttp.DummyCookieJar()
            self._session = aiohttp.ClientSession(connector=connector, timeout=_TIMEOUT, cookie_jar=jar)
            if old is not None:
                await old.close()
        return self._session


class _Lately:
    """What was added in the last so many seconds; of very much only what was added first."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._until: dict[str, float] = {}

    def __contains__(self, key: str) -> bool:
        return self._until.get(key, 0.0) > time.monotonic()

    def add(self, key: str) -> None:
        now = time.monotonic()
        if len(self._until) >= _MOST_TOKENS:
            self._until = {name: until for name, until in self._until.items() if until > now}
        if len(self._until) < _MOST_TOKENS:
            self._until[key] = now + self._seconds


def _of_viewers(access: Access) -> Access:
    """The access, by which a viewer is not taken for another user. Raises AccessError."""
    # A certificate of the page would come before the token of a viewer.
    if access.certificate or access.headers or access.proxy:
        raise AccessError("the page reads with tokens, without proxy or impersonation; give it such a kubeconfig")
    return access
