"""Requests to one API server, on the official client's transport.

Credentials are read again when the server refuses them, so that a token may be rotated at any time; they are never
logged.
"""

from __future__ import annotations

import asyncio
import random
import socket
import ssl
import time
from asyncio import sleep
from asyncio.sslproto import SSLProtocol
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Final, cast

import aiohttp
from kubernetes.aio.client import ApiClient, Configuration
from kubernetes.aio.client.rest import RESTClientObject
from multidict import CIMultiDict

from kueue_fleet.kube.access import FILE_SECONDS, Access, Kubeconfigs, get_access
from kueue_fleet.kube.answers import APPLY_PATCH, ApiError, Json, read_object, refusal, watch_events
from kueue_fleet.kube.api import Identity, Opened, RequestListener, ask_identity, ignore, nothing, permission
from kueue_fleet.kube.kubeconfig import AccessError

RATE: Final = 300.0
"""Requests a second, as Kueue's own default (kueue@v0.19.2 apis/config/v1beta2/defaults.go, clientConnection)."""
BURST: Final = 500.0
"""Requests at once after a quiet time."""
LONGEST_PAUSE_SECONDS: Final = 60.0
"""A server that asks for more is asked again after that, in case it meant something else."""
REQUEST_SECONDS: Final = 30.0
"""Longest that a request takes; of a watch, until its answer begins."""
WATCH_SECONDS: Final = 240
"""After which the API server ends a watch, and it begins again."""
SILENCE_SECONDS: Final = 150.0
"""A watch that is silent for so long is broken: the API server sends a bookmark each minute or so.

Source: kubernetes@v1.36.3 staging/src/k8s.io/apiserver/pkg/storage/cacher/cacher.go (bookmarkFrequency)."""
_PROBES: Final = {"TCP_KEEPIDLE": 20, "TCP_KEEPINTVL": 5, "TCP_KEEPCNT": 4}
"""Seconds of silence before a connection is probed, seconds between probes, and how many may stay without answer:
given up after 40 s."""
_TLS_RECORD: Final = 16 * 1024
"""Bytes of the largest record of TLS."""


def read_by_record() -> None:
    """Give each connection of this process with TLS a buffer of one record; asyncio gives it one of 256 KiB.

    That is for who keeps many connections open, nine for each worker. An answer of 4 MB takes 15 ms more of CPU.
    """
    SSLProtocol.max_size = _TLS_RECORD


class Throttle:
    """A token bucket with a pause. `clock` gives seconds and never goes back."""

    def __init__(self, rate: float = RATE, burst: float = BURST, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate = rate
        self._burst = burst
        self._clock = clock
        self._tokens = burst
        self._filled_at = clock()
        self._paused_until = float("-inf")

    def pause(self, seconds: float) -> None:
        """No request begins for so long; of two pauses the one that ends later counts."""
        self._paused_until = max(self._paused_until, self._clock() + min(max(seconds, 0.0), LONGEST_PAUSE_SECONDS))

    async def wait(self) -> None:
        """Wait until a request may begin."""
        while (delay := self._delay()) > 0:
            await sleep(delay)

    def _delay(self) -> float:
        """Seconds to wait; 0: a request was counted, and begins now."""
        now = self._clock()
        if now < self._paused_until:
            # Those that were held up do not all come at the same moment.
            return self._paused_until - now + random.uniform(0.0, 0.5)  # noqa: S311
        self._tokens = min(self._burst, self._tokens + (now - self._filled_at) * self._rate)
        self._filled_at = now
        if self._tokens >= 1.0:
            self._tokens -= 1.0
            return 0.0
        # Not less than a clock can tell apart, or the wait would not end.
        return max((1.0 - self._tokens) / self._rate, 0.001)


class _Connections(RESTClientObject):
    """The official client's connections, probed while they are quiet.

    A worker that is cut off silently would otherwise be followed, as it was, until the watch's time is over.
    """

    def __init__(self, configuration: Configuration, context: ssl.SSLContext) -> None:
        super().__init__(configuration)
        self.ssl_context = context

    def _create_connector(self) -> aiohttp.TCPConnector:
        return aiohttp.TCPConnector(limit=self.maxsize, ssl=self.ssl_context, socket_factory=_probed_socket)


def _probed_socket(address: aiohttp.AddrInfoType) -> socket.socket:
    family, kind, protocol, *_ = address
    probe = socket.socket(family, kind, protocol)
    probe.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in _PROBES.items():
        if hasattr(socket, option):
            probe.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
    return probe


class KubeApi:
    """One API server as one user; `on_request` is called with every request. Close it at the end.

    `context` is that of the kubeconfig, if it is not the current one.
    """

    def __init__(self, kubeconfig: Kubeconfigs, on_request: RequestListener = ignore, context: str = "") -> None:
        self._on_request = on_request
        self._kubeconfig = kubeconfig
        self._context = context
        self._access: Access | None = None
        self._client: ApiClient | None = None
        self._place: tuple[object, ...] = ()
        self._fresh_until = self._token_until = float("-inf")
        self._refreshing = asyncio.Lock()
        self._watches: set[aiohttp.ClientResponse] = set()
        self._throttle = Throttle()
        self._identity: Identity | None = None
        self._identified_at = float("-inf")
        self._identifying = asyncio.Lock()

    async def close(self) -> None:
        """Close all connections; watches that still run end with an error."""
        await self._replace_client(None)

    async def _replace_client(self, client: ApiClient | None) -> None:
        old, self._client = self._client, client
        watches, self._watches = self._watches, set()
        for response in watches:
            # Closing the client alone would leave its readers waiting indefinitely.
            response.close()
        if old is not None:
            await old.close()  # type: ignore[no-untyped-call]

    async def connect(self) -> tuple[ApiClient, Access]:
        """The official client, and the access of the next request, which is renewed in time. Raises AccessError."""
        access = await self._renewed()
        if self._client is None or self._place != access.place:
            configuration = Configuration(host=access.server)
            configuration.tls_server_name = access.tls_server_name
            configuration.proxy = access.proxy
            configuration.connection_pool_maxsize = 200
            configuration.client_session_kwargs = {"trust_env": False}
            context = access.tls()
            # The client makes two contexts that nobody uses, and would read all authorities of the system into each.
            configuration.ca_cert_data = next(iter(context.get_ca_certs(binary_form=True)), None)
            client = ApiClient(configuration)
            client.rest_client = _Connections(configuration, context)
            client.user_agent = "kueue-fleet-controller"
            self._place = access.place
            await self._replace_client(client)
            return client, access
        return self._client, access

    async def _renewed(self) -> Access:
        """The access, read again if it is not fresh any more; by one of many requests. Raises AccessError.

        Files that are just being replaced, or a plugin that fails once: what is known may still do.
        """
        async with self._refreshing:
            now = time.monotonic()
            if self._access is not None and now < self._fresh_until:
                return self._access
            self._fresh_until = now + FILE_SECONDS
            known_access = self._access if now < self._token_until else None
            try:
                access = await asyncio.to_thread(get_access, self._kubeconfig, known_access, self._context)
            except AccessError:
                if self._access is None:
                    raise
                return self._access
            if known_access is None or access.token != known_access.token:
                self._token_until = time.monotonic() + access.life(time.time())
            self._access = access
            return access

    def _drop_token(self, refused_token: str) -> None:
        """Forgets a token that the server has refused, unless another request has already."""
        if self._access is not None and self._access.token == refused_token:
            self._access = None

    async def get(self, path: str, params: Mapping[str, str] | None = None) -> Json:
        """See `Api.get`."""
        return await self._json("GET", path, params=params)

    async def create(self, path: str, body: Json) -> Json:
        """See `Api.create`."""
        return await self._json("POST", path, body=body)

    async def apply(self, path: str, body: Json, manager: str) -> Json:
        """See `Api.apply`."""
        return await self._json(
            "PATCH", path, params={"fieldManager": manager, "force": "true"}, body=body, kind=APPLY_PATCH
        )

    async def replace(self, path: str, body: Json) -> Json:
        """The whole object at `path`, if it has the resource version in `body`. Raises ApiError."""
        return await self._json("PUT", path, body=body)

    async def delete(self, path: str, uid: str = "") -> Json:
        """See `Api.delete`."""
        body: Json = {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Foreground"}
        if uid:
            body["preconditions"] = {"uid": uid}
        return await self._json("DELETE", path, body=body)

    async def identity(self) -> Identity:
        """See `Api.identity`. Watches share what is asked after they call: before, a server might seem to go back."""
        called_at = time.monotonic()
        async with self._identifying:
            if self._identity is None or self._identified_at < called_at:
                began_at = time.monotonic()
                self._identity = await ask_identity(self)
                self._identified_at = began_at
            return self._identity

    async def watch(self, path: str, version: str, opened: Opened = nothing) -> AsyncIterator[tuple[str, Json]]:
        """See `Api.watch`. Raises ApiError where the API server ends the watch with one."""
        params = {
            "watch": "1",
            "allowWatchBookmarks": "true",
            "resourceVersion": version,
            # Not all watches of all controllers at once.
            "timeoutSeconds": str(WATCH_SECONDS + random.randrange(WATCH_SECONDS)),  # noqa: S311
        }
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=10, sock_read=SILENCE_SECONDS)
        try:
            async with asyncio.timeout(REQUEST_SECONDS):
                response = await self._request("GET", path, params, None, "application/json", timeout)
        except TimeoutError:
            raise ApiError(0, "", f"watch of {path} got no answer within {REQUEST_SECONDS:g} s") from None
        self._watches.add(response)
        opened()
        try:
            async for event in watch_events(response.content.iter_any()):
                yield event
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            raise ApiError(0, "", f"watch of {path} dropped: {type(error).__name__}") from None
        finally:
            self._watches.discard(response)
            response.close()

    async def _json(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        body: Json | None = None,
        kind: str = "application/json",
    ) -> Json:
        timeout = aiohttp.ClientTimeout(total=REQUEST_SECONDS)
        response = await self._request(method, path, params or {}, body, kind, timeout)
        try:
            return read_object(await response.read())
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise ApiError(0, "", f"answer to {method} {path} lost: {type(error).__name__}") from None
        finally:
            response.release()

    async def _request(
        self,
        method: str,
        path: str,
        params: Mapping[str, str],
        body: Json | None,
        kind: str,
        timeout: aiohttp.ClientTimeout,
        *,
        again: bool = True,
    ) -> aiohttp.ClientResponse:
        await self._throttle.wait()
        try:
            client, access = await self.connect()
            _, url, headers, sent, _ = await client.param_serialize(
                method,
                path,
                query_params=list(params.items()),
                header_params={"Accept": "application/json", "Content-Type": kind},
                body=body,
            )
            # A user may be in several groups: a dictionary would send one.
            all_headers = CIMultiDict([*headers.items(), *access.all_headers])
            answer = await client.call_api(method, url, all_headers, sent, _request_timeout=timeout)
            response = cast("aiohttp.ClientResponse", answer.response)
            self._on_request(*permission(method, path, params), response.status)
            if response.status == 401 and again:
                response.release()
                self._drop_token(access.token)
                return await self._request(method, path, params, body, kind, timeout, again=False)
            if response.status >= 400:
                error = refusal(response.status, await response.read(), response.headers.get("Retry-After"))
                if response.status == 429:
                    self._throttle.pause(1.0 if error.retry_after is None else error.retry_after)
                raise error
            return response
        except (aiohttp.ClientError, TimeoutError, OSError, RuntimeError) as error:
            # aiohttp says RuntimeError where the client was replaced meanwhile. The server may have moved.
            self._fresh_until = float("-inf")
            self._on_request(*permission(method, path, params), 0)
            raise ApiError(0, "", f"{method} {path} failed: {type(error).__name__}") from None
        except AccessError as error:
            raise ApiError(0, "", str(error)) from None
