"""The process that owns all others of a rehearsal: `python -m kueue_rehearsal.processes.supervisor --state DIR`.

It answers HTTP on a Unix socket that only its owner may open. It ends, and with it everything it has started, on
`POST /shutdown`, SIGTERM or SIGINT, and when its standard input ends, which is how it notices that its parent has
died; `--keep`, or `POST /keep` later, makes it stay. Requests and answers are JSON, errors are `{"error": "…"}`.

GET /healthz                                   state of the rehearsal
GET /clusters, GET /clusters/{name}            description, state, processes and services
PUT /clusters/{name}                           {project, location, autopilot}: the cluster, once it is ready
DELETE /clusters/{name}                        stops it and removes all of it
PUT /clusters/{name}/inputs                    what the cluster is asked to be
GET /clusters/{name}/inputs                    {cluster, nodePools}: what it and its pools were last asked to be
PUT, DELETE /clusters/{name}/nodePools/{pool}  handed to the service that simulates nodes
POST /clusters/{name}/reclaims                 {count: 1, pool: null}: Spot nodes are taken back
PUT, DELETE /reservations/{zone}/{name}        machines that node pools may take
GET /processes                                 name, cluster, pid, rssBytes, cpuSeconds
POST /clusters/{name}/processes/{process}/kill {signal: "SIGKILL"}: a fault, for tests
POST /processes/{process}/kill                 the same for etcd
POST /keep                                     do not end with the parent
POST /shutdown                                 {keepLogs: false}: stops everything and removes its state
"""

from __future__ import annotations

import argparse
import asyncio
import fcntl
import importlib
import json
import logging
import os
import shutil
import signal
import socket
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import psutil
from aiohttp import web

from kueue_rehearsal.cloud.reservation_book import ReservationBook
from kueue_rehearsal.control_planes.certificates import current_time
from kueue_rehearsal.control_planes.cluster import ServiceFactory, WrongRequestError, parse_parameters
from kueue_rehearsal.control_planes.clusters import ConflictError, ControlPlanes, UnknownClusterError
from kueue_rehearsal.control_planes.control_plane import NodePoolHost
from kueue_rehearsal.engines import EngineCache, find_engines
from kueue_rehearsal.paths import RehearsalError, RehearsalPaths, check_socket_path, engines_dir
from kueue_rehearsal.processes.children import Children
from kueue_rehearsal.processes.supervisor_client import ERROR_PREFIX
from kueue_rehearsal.state_folder import remove_below

log = logging.getLogger(__name__)

DEFAULT_SERVICES = "kueue_rehearsal.control_planes.cluster_services:cluster_services"
"""Where the services of a cluster are made: module and function."""
NO_SERVICES = "none"
"""In its place: no services."""

_STATUS_OF_ERROR = (
    (WrongRequestError, 400),
    (UnknownClusterError, 404),
    (ConflictError, 409),
    (RehearsalError, 500),
)
_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class SupervisorLock:
    """The right to run a rehearsal in a state folder. The kernel gives it back when its holder dies."""

    def __init__(self, paths: RehearsalPaths) -> None:
        self._path = paths.lock
        self._descriptor: int | None = None

    def acquire(self) -> None:
        """Raises RehearsalError when another supervisor has it."""
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(descriptor, 20).decode(errors="replace").strip() or "unknown"
            os.close(descriptor)
            raise RehearsalError(
                f"{self._path.parent}: a rehearsal runs here already (process {holder}); "
                "run `rehearse down`, or rehearse another stack"
            ) from None
        os.ftruncate(descriptor, 0)
        os.write(descriptor, f"{os.getpid()}\n".encode())
        self._descriptor = descriptor

    def release(self) -> None:
        """Gives the right back. The file stays: removing it would let two supervisors hold two locks."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


class Supervisor:
    """The HTTP side of a rehearsal."""

    def __init__(self, control_planes: ControlPlanes, reservations: ReservationBook, *, keep: bool) -> None:
        self._control_planes = control_planes
        self._reservations = reservations
        self.keep = keep
        self.ended = asyncio.Event()
        self.remove_state = False
        """Whether a kept rehearsal is really over."""
        self.keep_logs = True

    def application(self) -> web.Application:
        """All routes."""
        application = web.Application(middlewares=[_errors_as_json], client_max_size=4 * 1024**2)
        cluster = "/clusters/{name}"
        application.add_routes(
            [
                web.get("/healthz", self._healthz),
                web.get("/clusters", self._list_clusters),
                web.get(cluster, self._get_cluster),
                web.put(cluster, self._put_cluster),
                web.delete(cluster, self._delete_cluster),
                web.put(f"{cluster}/inputs", self._put_inputs),
                web.get(f"{cluster}/inputs", self._get_inputs),
                web.put(f"{cluster}/nodePools/{{pool}}", self._put_node_pool),
                web.delete(f"{cluster}/nodePools/{{pool}}", self._delete_node_pool),
                web.post(f"{cluster}/reclaims", self._reclaim),
                web.put("/reservations/{zone}/{name}", self._put_reservation),
                web.delete("/reservations/{zone}/{name}", self._delete_reservation),
                web.post(f"{cluster}/processes/{{process}}/kill", self._kill_in_cluster),
                web.post("/processes/{process}/kill", self._kill_shared),
                web.get("/processes", self._processes),
                web.get("/refusedPods", self._refused_pods),
                web.get("/latePods", self._late_pods),
                web.post("/keep", self._keep),
                web.post("/shutdown", self._shutdown),
            ]
        )
        return application

    def end(self, reason: str) -> None:
        """Asks for an orderly end."""
        if not self.ended.is_set():
            log.info("ending: %s", reason)
            self.ended.set()

    async def _healthz(self, request: web.Request) -> web.Response:
        unwell = sorted(name for name, cluster in self._control_planes.clusters.items() if cluster.state == "failed")
        status = "failed" if self._control_planes.message or unwell else "ok"
        body = {"status": status, "message": self._control_planes.message, "failedClusters": unwell, "keep": self.keep}
        return web.json_response({**body, "pid": os.getpid(), "processes": self._control_planes.children.status()})

    async def _list_clusters(self, request: web.Request) -> web.Response:
        return web.json_response({"clusters": [cluster.status() for cluster in self._control_planes.clusters.values()]})

    async def _get_cluster(self, request: web.Request) -> web.Response:
        return web.json_response(self._control_planes.cluster(request.match_info["name"]).status())

    async def _put_cluster(self, request: web.Request) -> web.Response:
        parameters = parse_parameters(await _json_body(request))
        cluster = await self._control_planes.put_cluster(request.match_info["name"], parameters)
        return web.json_response(cluster.description())

    async def _delete_cluster(self, request: web.Request) -> web.Response:
        await self._control_planes.delete_cluster(request.match_info["name"])
        return web.json_response({})

    async def _put_inputs(self, request: web.Request) -> web.Response:
        host = self._control_planes.cluster(request.match_info["name"]).node_pools()
        if host is not None:
            await host.put_inputs(await _json_body(request))
        return web.json_response({})

    async def _get_inputs(self, request: web.Request) -> web.Response:
        return web.json_response(self._node_pools(request.match_info["name"]).inputs())

    async def _put_node_pool(self, request: web.Request) -> web.Response:
        host = self._node_pools(request.match_info["name"])
        body, known_reservations = await _json_body(request), self._reservations.reservations(time.time())
        return web.json_response(await host.put_node_pool(request.match_info["pool"], body, known_reservations))

    async def _delete_node_pool(self, request: web.Request) -> web.Response:
        await self._node_pools(request.match_info["name"]).delete_node_pool(request.match_info["pool"])
        return web.json_response({})

    async def _reclaim(self, request: web.Request) -> web.Response:
        body = await _json_body(request)
        count, pool = body.get("count", 1), body.get("pool")
        if not isinstance(count, int) or isinstance(count, bool) or count < 1:
            raise WrongRequestError(f"count: must be a whole number of at least 1, is {count!r}")
        if not isinstance(pool, str | None):
            raise WrongRequestError(f"pool: must be the name of a node pool, is {pool!r}")
        host = self._node_pools(request.match_info["name"])
        return web.json_response({"nodes": await host.reclaim_spot(pool, count)})

    async def _put_reservation(self, request: web.Request) -> web.Response:
        self._reservations.put(request.match_info["zone"], request.match_info["name"], await _json_body(request))
        return web.json_response({})

    async def _delete_reservation(self, request: web.Request) -> web.Response:
        self._reservations.remove(request.match_info["zone"], request.match_info["name"])
        return web.json_response({})

    def _node_pools(self, name: str) -> NodePoolHost:
        host = self._control_planes.cluster(name).node_pools()
        if host is None:
            raise WrongRequestError(f"cluster {name}: its nodes are not simulated here")
        return host

    async def _kill_in_cluster(self, request: web.Request) -> web.Response:
        return await _kill(request, self._control_planes.cluster(request.match_info["name"]).children)

    async def _kill_shared(self, request: web.Request) -> web.Response:
        return await _kill(request, self._control_planes.children)

    async def _processes(self, request: web.Request) -> web.Response:
        own = psutil.Process()
        times = own.cpu_times()
        rows: list[dict[str, object]] = [
            _process_row("supervisor", None, own.pid, own.memory_info().rss, times.user + times.system)
        ]
        owners: list[tuple[str | None, Children]] = [(None, self._control_planes.children)]
        owners += [(name, cluster.children) for name, cluster in self._control_planes.clusters.items()]
        for owner, children in owners:
            for child in children.alive():
                usage = child.usage()
                if usage is not None:
                    rows.append(_process_row(child.spec.name, owner, child.pid, usage.rss_bytes, usage.cpu_seconds))
        return web.json_response({"processes": rows})

    async def _refused_pods(self, request: web.Request) -> web.Response:
        clusters = [cluster for cluster in self._control_planes.clusters.values() if cluster.state == "running"]
        rows = await asyncio.gather(*(cluster.refused_pods() for cluster in clusters))
        return web.json_response({"pods": [row for pod_rows in rows for row in pod_rows]})

    async def _late_pods(self, request: web.Request) -> web.Response:
        pods = [pod for cluster in self._control_planes.clusters.values() for pod in cluster.late_pods()]
        return web.json_response({"pods": pods})

    async def _keep(self, request: web.Request) -> web.Response:
        self.keep = True
        log.info("kept: this rehearsal does not end with the process that started it")
        return web.json_response({})

    async def _shutdown(self, request: web.Request) -> web.Response:
        body = await _json_body(request)
        self.remove_state = True
        self.keep_logs = body.get("keepLogs") is True
        self.end("asked to shut down")
        return web.json_response({})


def _process_row(name: str, cluster: str | None, pid: int, rss_bytes: int, cpu_seconds: float) -> dict[str, object]:
    return {"name": name, "cluster": cluster, "pid": pid, "rssBytes": rss_bytes, "cpuSeconds": round(cpu_seconds, 2)}


async def _kill(request: web.Request, children: Children) -> web.Response:
    name, signal_data = request.match_info["process"], (await _json_body(request)).get("signal", "SIGKILL")
    number = signal.Signals.__members__.get(str(signal_data))
    if number is None:
        raise WrongRequestError(
            f"signal: {signal_data!r} is not a signal; use a name such as SIGKILL, SIGTERM or SIGSTOP"
        )
    try:
        pid = children.signal(name, number)
    except LookupError:
        running = ", ".join(child.spec.name for child in children.alive()) or "none"
        raise UnknownClusterError(f"process {name}: is not running; these are: {running}") from None
    return web.json_response({"pid": pid})


async def _json_body(request: web.Request) -> Mapping[str, object]:
    text = await request.text()
    try:
        body = json.loads(text) if text else {}
    except ValueError as error:
        raise WrongRequestError(f"the request's body is not JSON: {error}") from error
    if not isinstance(body, dict):
        raise WrongRequestError("the request's body must be a JSON object")
    return body


@web.middleware
async def _errors_as_json(request: web.Request, handler: _Handler) -> web.StreamResponse:
    try:
        return await handler(request)
    except web.HTTPException as error:
        return web.json_response({"error": f"{request.method} {request.path}: {error.reason}"}, status=error.status)
    except RehearsalError as error:
        status = next(status for kind, status in _STATUS_OF_ERROR if isinstance(error, kind))
        if status == 500:
            log.error("%s %s: %s", request.method, request.path, error)
        return web.json_response({"error": str(error)}, status=status)
    except Exception as error:
        log.exception("%s %s", request.method, request.path)
        return web.json_response({"error": f"{type(error).__name__}: {error}; see the supervisor's log"}, status=500)


@asynccontextmanager
async def _listening(supervisor: Supervisor, path: Path) -> AsyncIterator[None]:
    """Answers on the socket while the context is open. A socket left by a dead supervisor is replaced."""
    path.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o177)
    try:
        listener.bind(str(path))
    finally:
        os.umask(before)
    runner = web.AppRunner(supervisor.application(), access_log=None, handle_signals=False, shutdown_timeout=0.5)
    await runner.setup()
    await web.SockSite(runner, listener).start()
    try:
        yield
    finally:
        await runner.cleanup()
        path.unlink(missing_ok=True)


def _watch_parent(supervisor: Supervisor) -> None:
    """Ends the supervisor when its standard input ends, unless it is to be kept."""
    loop = asyncio.get_running_loop()

    def readable() -> None:
        if os.read(sys.stdin.fileno(), 4096):
            return
        loop.remove_reader(sys.stdin.fileno())
        if not supervisor.keep:
            supervisor.end("the process that started it has ended")

    try:
        loop.add_reader(sys.stdin.fileno(), readable)
    except PermissionError:
        raise RehearsalError(
            "standard input is a file, so the end of the parent cannot be noticed; give it a pipe, or use --keep"
        ) from None


async def supervise(paths: RehearsalPaths, services: ServiceFactory, *, keep: bool) -> None:
    """Runs the rehearsal of `paths` until it is ended, then stops and tidies up. The caller holds the lock.

    Raises RehearsalError when the rehearsal cannot be opened.
    """
    engines = find_engines(EngineCache(engines_dir()))
    for name in ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"):
        engines.binary(name)
    control_planes = ControlPlanes(paths, engines, services, current_time())
    supervisor = Supervisor(control_planes, ReservationBook(paths.reservations), keep=keep)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, supervisor.end, f"{number.name} received")
    if not keep:
        _watch_parent(supervisor)
    fresh, is_open = not paths.clusters_file.exists(), False
    try:
        await control_planes.open()
        is_open = True
        async with _listening(supervisor, paths.socket):
            log.info("ready on %s", paths.socket)
            await supervisor.ended.wait()
    finally:
        await control_planes.close()
        # A kept rehearsal that cannot be opened now, because a port is taken, can be once the port is free.
        if supervisor.remove_state or (not supervisor.keep and (is_open or fresh)):
            remove_state(paths, keep_logs=supervisor.keep_logs)


def remove_state(paths: RehearsalPaths, *, keep_logs: bool) -> None:
    """Removes all data of a stopped rehearsal: certificates, token, etcd, clusters, and logs unless `keep_logs`."""
    shutil.rmtree(paths.pki, ignore_errors=True)
    for file in (paths.clusters_file, paths.reservations, paths.simulation, paths.socket):
        file.unlink(missing_ok=True)
    for folder in (paths.etcd, paths.clusters):
        if keep_logs:
            remove_below(folder, lambda path: path.suffix == ".log")
        else:
            shutil.rmtree(folder, ignore_errors=True)


def load_services(name: str) -> ServiceFactory:
    """The function `module:name` that makes the services of a cluster; `none` makes none.

    Raises RehearsalError when there is no such function.
    """
    if name == NO_SERVICES:
        return lambda access: ()
    module, _, attribute = name.partition(":")
    try:
        factory: ServiceFactory = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise RehearsalError(f"--services {name}: {error}; give it as module:function") from error
    return factory


def main(arguments: list[str] | None = None) -> int:
    """Returns the exit code: 0 after an orderly end."""
    parser = argparse.ArgumentParser(prog="python -m kueue_rehearsal.processes.supervisor")
    parser.add_argument("--state", type=Path, required=True, help="the state folder of the rehearsal")
    parser.add_argument("--keep", action="store_true", help="do not end when standard input ends")
    parser.add_argument("--services", default=DEFAULT_SERVICES, help="module:function that makes a cluster's services")
    options = parser.parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s", stream=sys.stderr)
    paths = RehearsalPaths(options.state.absolute())
    lock = SupervisorLock(paths)
    try:
        check_socket_path(paths)
        lock.acquire()
        services = load_services(options.services)
        asyncio.run(supervise(paths, services, keep=options.keep))
    except RehearsalError as error:
        print(f"{ERROR_PREFIX}{error}", file=sys.stderr, flush=True)
        return 1
    finally:
        lock.release()
    return 0


if __name__ == "__main__":
    sys.exit(main())
