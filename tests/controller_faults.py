"""Faults for the controller in tests/engines: a proxy before an API server that misbehaves, and a replica whose clock
is wrong.

`FaultProxy` is a stand-in for a bad network and a busy API server: it passes requests on to the real one, and answers
some of them itself, as its seed says. `python -m controller_faults --clock-offset SECONDS ...` is the controller with
a short Lease and a clock that is off; all other arguments are the controller's own.
"""

from __future__ import annotations

import asyncio
import json
import random
import ssl
import sys
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path

import aiohttp
from aiohttp import web

from one_cluster import KUEUE, Json, OneCluster

QUIET: Mapping[str, float] = {}
NOISE: Mapping[str, float] = {"conflict": 0.2, "too old": 0.15, "unauthorized": 0.1, "cut": 0.3, "broken": 0.05}
"""How often each kind of request is spoiled."""
_REASONS = {401: "Unauthorized", 409: "Conflict", 410: "Expired", 500: "InternalError"}
_PASSED_ON = ("Authorization", "Content-Type", "Accept")


class FaultProxy:
    """A server on this machine before the API server of one cluster; it runs until the process ends.

    `noise`: how often requests are spoiled. `unreachable`: connections are closed without an answer. `on_patch`: asked
    at each write of a Workload's status, once; it says whether the write still gets through.
    """

    def __init__(self, cluster: OneCluster, seed: int) -> None:
        self.noise: Mapping[str, float] = QUIET
        self.unreachable = False
        self.on_patch: Callable[[], bool] | None = None
        self.counts: Counter[str] = Counter()
        self.url = ""
        self._cluster = cluster
        self._random = random.Random(seed)
        self._open: dict[int, web.Request] = {}
        ready = threading.Event()
        threading.Thread(target=lambda: asyncio.run(self._serve(ready)), daemon=True).start()
        assert ready.wait(20)

    async def _serve(self, ready: threading.Event) -> None:
        context = ssl.create_default_context(cafile=str(self._cluster.ca_file))
        connector = aiohttp.TCPConnector(ssl=context, limit=0)
        async with aiohttp.ClientSession(connector=connector, skip_auto_headers=["Accept-Encoding"]) as self._session:
            application = web.Application(client_max_size=2**26)
            application.router.add_route("*", "/{path:.*}", self._handle)
            runner = web.AppRunner(application, access_log=None)
            await runner.setup()
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            self.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
            ready.set()
            while True:
                if self.unreachable:
                    for request in list(self._open.values()):
                        _hang_up(request)
                await asyncio.sleep(0.05)

    def _spoiled(self, kind: str) -> bool:
        hit = self._random.random() < self.noise.get(kind, 0.0)
        self.counts[kind] += hit
        return hit

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        self._open[id(request)] = request
        try:
            if self.unreachable:
                return _hang_up(request)
            if self._spoiled("unauthorized"):
                return _refusal(401)
            if self._spoiled("broken"):
                return _refusal(500)
            if request.method == "GET" and self._spoiled("too old"):
                return _refusal(410)
            if request.method in ("PATCH", "PUT") and self._spoiled("conflict"):
                return _refusal(409)
            return await self._pass_on(request)
        except aiohttp.ClientError:
            return _hang_up(request)
        finally:
            del self._open[id(request)]

    async def _pass_on(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        hook = self.on_patch
        if hook is not None and request.method == "PATCH" and "/workloads/" in request.path:
            self.on_patch = None
            if not await asyncio.to_thread(hook):
                return _hang_up(request)
        headers = {name: request.headers[name] for name in _PASSED_ON if name in request.headers}
        url = f"{self._cluster.server}{request.path_qs}"
        timeout = aiohttp.ClientTimeout(total=None)
        async with self._session.request(request.method, url, headers=headers, data=body, timeout=timeout) as answer:
            kind = answer.headers.get("Content-Type", "application/json")
            if "watch" not in request.query:
                return web.Response(status=answer.status, body=await answer.read(), headers={"Content-Type": kind})
            made = web.StreamResponse(status=answer.status, headers={"Content-Type": kind})
            await made.prepare(request)
            async for chunk in answer.content.iter_any():
                if self._spoiled("cut"):
                    # In the middle of an event.
                    await made.write(chunk[: len(chunk) // 2])
                    return _hang_up(request)
                if self._spoiled("too old"):
                    status = {"kind": "Status", "code": 410, "reason": "Expired", "message": "fault proxy: too old"}
                    await made.write(json.dumps({"type": "ERROR", "object": status}).encode() + b"\n")
                    return made
                await made.write(chunk)
            return made


def _refusal(status: int) -> web.Response:
    body = {"kind": "Status", "code": status, "reason": _REASONS[status], "message": "fault proxy: spoiled"}
    return web.json_response(body, status=status)


def _hang_up(request: web.Request) -> web.Response:
    if request.transport is not None:
        request.transport.abort()
    return web.Response(status=500)


class Witness:
    """What was ever seen in a list of a cluster, whatever happens to its API server meanwhile."""

    def __init__(
        self, cluster: OneCluster, path: str, listener: Callable[[Json, bool], None] = lambda item, gone: None
    ) -> None:
        self.seen: dict[str, Json] = {}
        """The last state of every object, by uid."""
        self._listener = listener
        self._cluster = cluster
        self._path = path
        self._context = ssl.create_default_context(cafile=str(cluster.ca_file))
        threading.Thread(target=self._follow, daemon=True).start()

    def _get(self, query: str) -> urllib.request.Request:
        headers = {"Authorization": f"Bearer {self._cluster.token}"}
        return urllib.request.Request(f"{self._cluster.server}{self._path}{query}", headers=headers)

    def _follow(self) -> None:
        version = ""
        while True:
            try:
                if not version:
                    with urllib.request.urlopen(self._get(""), context=self._context, timeout=30) as answer:
                        page = json.loads(answer.read())
                    version = page["metadata"]["resourceVersion"]
                    for item in page["items"]:
                        self._see(item, gone=False)
                watch = self._get(f"?watch=1&resourceVersion={version}&timeoutSeconds=600")
                with urllib.request.urlopen(watch, context=self._context, timeout=650) as stream:
                    for line in stream:
                        event = json.loads(line)
                        if event["type"] == "ERROR":
                            version = ""
                            break
                        version = event["object"]["metadata"]["resourceVersion"]
                        self._see(event["object"], gone=event["type"] == "DELETED")
            except (OSError, ValueError) as error:
                if isinstance(error, urllib.error.HTTPError) and error.code == 410:
                    version = ""
                time.sleep(0.1)

    def _see(self, item: Json, *, gone: bool) -> None:
        self.seen[item["metadata"]["uid"]] = item
        self._listener(item, gone)

    def names(self) -> Counter[str]:
        """How many objects of each name there ever were."""
        return Counter(item["metadata"]["name"] for item in list(self.seen.values()))


class Witnesses:
    """The copies and the jobs of every worker."""

    def __init__(self, workers: Mapping[str, OneCluster]) -> None:
        self.copies = {name: Witness(cluster, f"{KUEUE}/workloads") for name, cluster in workers.items()}
        self.jobs = {name: Witness(cluster, "/apis/batch/v1/jobs") for name, cluster in workers.items()}

    def places(self, workload: str) -> set[str]:
        """Workers that ever had a copy of a Workload."""
        return {name for name, witness in self.copies.items() if workload in witness.names()}

    def runs(self, job: str) -> int:
        """How many jobs of that name there ever were on workers: how often it ran."""
        return sum(witness.names()[job] for witness in self.jobs.values())


def main(arguments: list[str]) -> int:
    """The controller, with a clock that is off."""
    offset, real = float(arguments[arguments.index("--clock-offset") + 1]), time.time
    time.time = lambda: real() + offset
    from kueue_fleet.controller.election import Terms
    from kueue_fleet.controller.main import Settings, run

    given = dict(zip(arguments[::2], arguments[1::2], strict=True))
    workers, kubeconfig = Path(given["--workers"]), Path(given["--kubeconfig"])
    terms = Terms(lease=10, renew=5, retry=1)
    return run(Settings(Path(given["--config"]), workers, kubeconfig, "127.0.0.1", 0, given["--identity"], terms))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
