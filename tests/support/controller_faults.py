"""Faults for the controller in tests/engines: what stands between it, or Kueue, and an API server, and who watches.

`FaultProxy` is a stand-in for a bad network and a busy API server: it passes requests of the controller on to the real
one, and answers some of them itself, as its seed says. `Gate` is a relay that cuts Kueue off from a worker. `Replicas`
are controllers with a short Lease and little patience with silent watches; SIGUSR1 puts their clock an hour ahead,
SIGUSR2 an hour back.
"""

from __future__ import annotations

import asyncio
import gc
import importlib
import json
import os
import random
import signal
import ssl
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

import aiohttp
import psutil
from aiohttp import web

from kueue_fleet.controller.election import Terms
from one_cluster import Json, OneCluster

QUIET: Mapping[str, float] = {}
NOISE: Mapping[str, float] = {"conflict": 0.2, "too old": 0.15, "unauthorized": 0.1, "cut": 0.3, "broken": 0.05}
"""How often each kind of request is spoiled."""
STORM: Mapping[str, float] = {"throttled": 0.6}
LEASE = Terms(lease=4, renew=3, retry=1)
"""Of the replicas: shorter than the jobs run."""
SILENCE_SECONDS = 15.0
_REASONS = {401: "Unauthorized", 409: "Conflict", 410: "Expired", 429: "TooManyRequests", 500: "InternalError"}
_PASSED_ON = ("Authorization", "Content-Type", "Accept")


class FaultProxy:
    """A server on this machine before the API server of one cluster, until it is closed.

    `noise`: how often requests are spoiled. `unreachable`: connections are closed without an answer. `held`: watches of
    paths that end so are not passed on, and not ended either, until that is over. `on_patch`: asked at each write of a
    Workload's status, once; it says whether the write still gets through. `cluster`: whose API server it is.
    """

    def __init__(self, cluster: OneCluster, seed: int) -> None:
        self.noise: Mapping[str, float] = QUIET
        self.unreachable = False
        self.on_patch: Callable[[], bool] | None = None
        self.held: tuple[str, ...] = ()
        self.counts: Counter[str] = Counter()
        self.url = ""
        self.cluster = cluster
        self._random = random.Random(seed)
        self._open: dict[int, web.Request] = {}
        self._closed = threading.Event()
        ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve(ready)), daemon=True)
        self._thread.start()
        assert ready.wait(20)

    def close(self) -> None:
        """End the server."""
        self._closed.set()
        self._thread.join()

    async def _serve(self, ready: threading.Event) -> None:
        context = ssl.create_default_context(cafile=str(self.cluster.ca_file))
        connector = aiohttp.TCPConnector(ssl=context, limit=0)
        async with aiohttp.ClientSession(connector=connector, skip_auto_headers=["Accept-Encoding"]) as self._session:
            application = web.Application(client_max_size=2**26)
            application.router.add_route("*", "/{path:.*}", self._handle)
            # Watches that are passed on end when they are cancelled: nothing is worth waiting for.
            runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1)
            await runner.setup()
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            self.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
            ready.set()
            while not self._closed.is_set():
                if self.unreachable:
                    for request in list(self._open.values()):
                        _hang_up(request)
                await asyncio.sleep(0.05)
            for request in list(self._open.values()):
                _hang_up(request)
            await runner.cleanup()
        # Connections with TLS close a moment after their session: docs.aiohttp.org, "Graceful Shutdown".
        await asyncio.sleep(0.25)

    def _spoiled(self, kind: str) -> bool:
        hit = self._random.random() < self.noise.get(kind, 0.0)
        self.counts[kind] += hit
        return hit

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        self._open[id(request)] = request
        try:
            if self.unreachable:
                return _hang_up(request)
            if self._spoiled("throttled"):
                return _refusal(429)
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
        url = f"{self.cluster.server}{request.path_qs}"
        timeout = aiohttp.ClientTimeout(total=None)
        async with self._session.request(request.method, url, headers=headers, data=body, timeout=timeout) as answer:
            kind = answer.headers.get("Content-Type", "application/json")
            if "watch" not in request.query:
                return web.Response(status=answer.status, body=await answer.read(), headers={"Content-Type": kind})
            result = web.StreamResponse(status=answer.status, headers={"Content-Type": kind})
            await result.prepare(request)
            async for chunk in answer.content.iter_any():
                while request.path.endswith(self.held or "\0"):
                    await asyncio.sleep(0.05)
                if self._spoiled("cut"):
                    # In the middle of an event.
                    await result.write(chunk[: len(chunk) // 2])
                    return _hang_up(request)
                if self._spoiled("too old"):
                    status = {"kind": "Status", "code": 410, "reason": "Expired", "message": "fault proxy: too old"}
                    await result.write(json.dumps({"type": "ERROR", "object": status}).encode() + b"\n")
                    return result
                await result.write(chunk)
            return result


def _refusal(status: int) -> web.Response:
    body = {"kind": "Status", "code": status, "reason": _REASONS[status], "message": "fault proxy: spoiled"}
    return web.json_response(body, status=status, headers={"Retry-After": "1"} if status == 429 else {})


def _hang_up(request: web.Request) -> web.Response:
    if request.transport is not None:
        request.transport.abort()
    return web.Response(status=500)


class Gate:
    """A TCP relay before an API server, for Kueue; while it is shut, connections are ended at once."""

    def __init__(self, server: str) -> None:
        self.server = server
        self._shut = False
        self._writers: set[asyncio.StreamWriter] = set()
        ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve(ready)), daemon=True)
        self._thread.start()
        assert ready.wait(20)

    async def _serve(self, ready: threading.Event) -> None:
        self._loop = asyncio.get_running_loop()
        server = await asyncio.start_server(self._relay, "127.0.0.1", 0)
        self.url = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        self._ended = asyncio.Event()
        ready.set()
        await self._ended.wait()
        server.close()
        self._shut = True
        while relays := asyncio.all_tasks() - {asyncio.current_task()}:
            self._cut()
            await asyncio.wait(relays, timeout=0.1)
        await asyncio.sleep(0)  # The last transports are closed.

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        target = urlsplit(self.server)
        try:
            if self._shut:
                raise ConnectionRefusedError
            up_reader, up_writer = await asyncio.open_connection(target.hostname, target.port)
        except OSError:
            writer.transport.abort()
            return
        mine = {writer, up_writer}
        self._writers |= mine
        try:
            await asyncio.gather(_pump(reader, up_writer), _pump(up_reader, writer))
            # What is still to be sent holds a connection open, until it is cut.
            await asyncio.gather(writer.wait_closed(), up_writer.wait_closed(), return_exceptions=True)
        finally:
            self._writers -= mine

    def shut(self) -> None:
        """Cut what is connected, and let nothing through."""
        self._shut = True
        self._loop.call_soon_threadsafe(self._cut)

    def _cut(self) -> None:
        for writer in list(self._writers):
            writer.transport.abort()

    def open(self) -> None:
        """Let everything through again."""
        self._shut = False

    def close(self) -> None:
        """End the relay."""
        self._loop.call_soon_threadsafe(self._ended.set)
        self._thread.join()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    except OSError:
        pass
    finally:
        writer.close()


@contextmanager
def no_worker_recorded(manager: OneCluster) -> Iterator[None]:
    """The manager's Kueue cannot write which worker has a job."""
    name, api = "no-worker-is-recorded", "/apis/admissionregistration.k8s.io/v1"
    rule = {
        "apiGroups": ["kueue.x-k8s.io"],
        "apiVersions": ["*"],
        "operations": ["UPDATE"],
        "resources": ["workloads/status"],
    }
    expression = "!has(object.status.clusterName) || has(oldObject.status.clusterName)"
    specs: dict[str, Json] = {
        "Policy": {"matchConstraints": {"resourceRules": [rule]}, "validations": [{"expression": expression}]},
        "PolicyBinding": {"policyName": name, "validationActions": ["Deny"]},
    }
    paths = [f"{api}/validatingadmissionpolicies", f"{api}/validatingadmissionpolicybindings"]
    for path, (kind, spec) in zip(paths, specs.items(), strict=True):
        item = {"kind": f"ValidatingAdmission{kind}", "metadata": {"name": name}, "spec": spec}
        manager.create(path, {"apiVersion": "admissionregistration.k8s.io/v1", **item})
    # API servers learn of a policy within a second or two.
    time.sleep(3.0)
    yield
    for path in paths:
        manager.delete(f"{path}/{name}")


class Clock:
    """The clock of a replica: right at first."""

    def __init__(self) -> None:
        self._real, self._offset = time.time, 0.0

    def __call__(self) -> float:
        return self._real() + self._offset

    def jump(self, number: int, frame: object) -> None:
        """SIGUSR1: an hour ahead; SIGUSR2: an hour back."""
        del frame
        self._offset += 3600.0 if number == signal.SIGUSR1 else -3600.0


class Replicas:
    """Starts replicas from a process that has imported everything, which takes most of a start."""

    def __init__(self, path: str) -> None:
        arguments = [sys.executable, "-m", "controller_faults"]
        environment = {**os.environ, "PYTHONPATH": path}
        self._process = subprocess.Popen(
            arguments, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        # A busy machine takes a minute to import it all, which is no failure of a replica.
        assert self._process.stdout is not None
        self._process.stdout.readline()

    def start(self, folder: Path, identity: str, log: Path) -> psutil.Process:
        """A replica with the configuration in `folder`."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{json.dumps([str(folder), identity, str(log)])}\n")
        self._process.stdin.flush()
        return psutil.Process(int(self._process.stdout.readline()))

    def close(self) -> None:
        """End it and all replicas."""
        self._process.communicate()


def serve() -> None:
    """Print a line when all is imported; fork a replica for each line of stdin, and print its process id; kill what is
    left of them at its end."""
    for name in ("kueue_fleet.controller.main", "pyarrow.parquet"):
        importlib.import_module(name)
    gc.freeze()
    signal.signal(signal.SIGCHLD, reap)
    print("ready", flush=True)
    for line in sys.stdin:
        if not (pid := os.fork()):
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            folder, identity, log = json.loads(line)
            out = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            for stream, target in ((os.open(os.devnull, os.O_RDONLY), 0), (out, 1), (out, 2)):
                os.dup2(stream, target)
            code = 1
            try:
                code = run_replica(Path(folder), identity)
            except BaseException:
                sys.excepthook(*sys.exc_info())
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(code)
        print(pid, flush=True)
    for child in psutil.Process().children():
        child.kill()


def reap(number: int, frame: object) -> None:
    """Wait for children that have ended."""
    del number, frame
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def run_replica(folder: Path, identity: str) -> int:
    """The controller, with a short Lease and a clock that can be set."""
    from kueue_fleet.controller.main import Settings, run
    from kueue_fleet.kube import client

    clock = Clock()
    time.time = clock
    for number in (signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(number, clock.jump)
    client.SILENCE_SECONDS = SILENCE_SECONDS  # type: ignore[misc]
    configuration, workers, kubeconfig = (folder / name for name in ("config.yaml", "workers", "manager"))
    return run(Settings(configuration, workers, kubeconfig, "127.0.0.1", 0, identity, LEASE))


if __name__ == "__main__":
    serve()
