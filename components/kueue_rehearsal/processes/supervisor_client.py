"""How other processes talk to the supervisor, and how one is started.

Synchronous, on the standard library only: the stand-in provider and the command line use it.
"""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote

import kueue_fleet
from kueue_rehearsal.paths import RehearsalError, RehearsalPaths, check_socket_path
from kueue_rehearsal.processes.child_process import log_tail

SOCKET_VARIABLE = "KUEUE_FLEET_SUPERVISOR"
"""Environment variable with the path of the supervisor's socket."""
_QUICK_SECONDS = 15.0
# Longer than the supervisor itself waits for an API server on a loaded machine.
_CLUSTER_SECONDS = 300.0
_START_SECONDS = 90.0
_STOP_SECONDS = 40.0
ERROR_PREFIX = "cannot continue: "
"""Begins the last line of the log when the supervisor ends because of a RehearsalError."""


class SupervisorError(RehearsalError):
    """The supervisor has refused or failed; the text is its own sentence."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status
        """The HTTP status: 400 wrong request, 404 no such cluster, 409 another cluster of that name, 500 failed."""


class SupervisorGoneError(RehearsalError):
    """The supervisor does not answer on its socket."""


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: Path, timeout: float) -> None:
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.settimeout(self.timeout)
        try:
            connection.connect(str(self._path))
        except BaseException:
            connection.close()
            raise
        self.sock = connection


@dataclass(frozen=True, slots=True)
class SupervisorClient:
    """One request after the other, each on its own connection. Every method raises SupervisorError and
    SupervisorGoneError."""

    socket: Path

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] = os.environ) -> SupervisorClient:
        """The supervisor whose socket KUEUE_FLEET_SUPERVISOR names.

        Raises RehearsalError when the variable is not set.
        """
        path = environ.get(SOCKET_VARIABLE)
        if not path:
            raise RehearsalError(
                f"{SOCKET_VARIABLE} is not set: this program works in a rehearsal only; run `kueue-fleet rehearse up`"
            )
        return cls(Path(path))

    def put_cluster(self, name: str, *, project: str, location: str, autopilot: bool) -> dict[str, Any]:
        """The cluster, once it is ready: name, endpoint, caCertificate, dnsEndpoint, version, selfLink, and so on."""
        body = {"project": project, "location": location, "autopilot": autopilot}
        return self._request("PUT", _cluster(name), body, _CLUSTER_SECONDS)

    def get_cluster(self, name: str) -> dict[str, Any]:
        """The same, with state, message, processes and services."""
        return self._request("GET", _cluster(name))

    def clusters(self) -> list[dict[str, Any]]:
        """All clusters, as `get_cluster` has them."""
        return list(self._request("GET", "/clusters")["clusters"])

    def delete_cluster(self, name: str) -> None:
        """Stops the cluster and removes all of it."""
        self._request("DELETE", _cluster(name), timeout=_CLUSTER_SECONDS)

    def put_node_pool(self, cluster: str, pool: str, body: Mapping[str, object]) -> dict[str, Any]:
        """Makes or changes a node pool."""
        return self._request("PUT", f"{_cluster(cluster)}/nodePools/{quote(pool, safe='')}", body, _CLUSTER_SECONDS)

    def put_inputs(self, cluster: str, body: Mapping[str, object]) -> None:
        """Tells the cluster what it is asked to be, with `nodeLocations` and `clusterAutoscaling`."""
        self._request("PUT", f"{_cluster(cluster)}/inputs", body)

    def inputs(self, cluster: str) -> dict[str, Any]:
        """What it was last asked to be, `cluster`, and its pools, `nodePools`, by name."""
        return self._request("GET", f"{_cluster(cluster)}/inputs")

    def put_reservation(self, zone: str, name: str, body: Mapping[str, object]) -> None:
        """Makes a reservation known, with the inputs of its resource."""
        self._request("PUT", _reservation(zone, name), body)

    def delete_reservation(self, zone: str, name: str) -> None:
        """Forgets a reservation."""
        self._request("DELETE", _reservation(zone, name))

    def reclaim_spot(self, cluster: str, count: int = 1, pool: str | None = None) -> list[str]:
        """Takes up to `count` Spot nodes away, of one pool if it is given; returns their names."""
        body: dict[str, object] = {"count": count, **({} if pool is None else {"pool": pool})}
        return list(self._request("POST", f"{_cluster(cluster)}/reclaims", body)["nodes"])

    def delete_node_pool(self, cluster: str, pool: str) -> None:
        """Removes a node pool and its nodes."""
        self._request("DELETE", f"{_cluster(cluster)}/nodePools/{quote(pool, safe='')}", timeout=_CLUSTER_SECONDS)

    def processes(self) -> list[dict[str, Any]]:
        """Every living process, the supervisor first: name, cluster (None: shared), pid, rssBytes, cpuSeconds."""
        return list(self._request("GET", "/processes")["processes"])

    def refused_pods(self) -> list[dict[str, Any]]:
        """The pods that cannot run here, all clusters': see `refused_pods.RefusedPod`."""
        return list(self._request("GET", "/refusedPods")["pods"])

    def late_pods(self) -> list[str]:
        """The pods of all clusters' own nodes that are not ready, each with why, in words."""
        return list(self._request("GET", "/latePods")["pods"])

    def kill(self, cluster: str | None, process: str, signal_name: str = "SIGKILL") -> int:
        """Signals a process as a fault would, of the rehearsal itself when `cluster` is None; returns its pid."""
        owner = "" if cluster is None else _cluster(cluster)
        path = f"{owner}/processes/{quote(process, safe='')}/kill"
        return int(self._request("POST", path, {"signal": signal_name})["pid"])

    def health(self) -> dict[str, Any]:
        """`status` is ok or failed, with `message` and `failedClusters`; `pid` is the supervisor's."""
        return self._request("GET", "/healthz")

    def keep(self) -> None:
        """From now on the rehearsal does not end with the process that started it."""
        self._request("POST", "/keep")

    def shutdown(self, *, keep_logs: bool = False) -> None:
        """Asks for the end of everything, and for the removal of its state; returns at once."""
        self._request("POST", "/shutdown", {"keepLogs": keep_logs})

    def _request(
        self, method: str, path: str, body: Mapping[str, object] | None = None, timeout: float = _QUICK_SECONDS
    ) -> dict[str, Any]:
        connection = _UnixConnection(self.socket, timeout)
        try:
            content = None if body is None else json.dumps(body)
            connection.request(method, path, content, {"Content-Type": "application/json"} if content else {})
            response = connection.getresponse()
            text = response.read()
        except TimeoutError as error:
            raise SupervisorGoneError(
                f"{self.socket}: the rehearsal's supervisor has not answered {method} {path} in {timeout:.0f} s; "
                f"see {self.socket.with_name('supervisor.log')}"
            ) from error
        except (OSError, http.client.HTTPException) as error:
            raise SupervisorGoneError(
                f"{self.socket}: the rehearsal's supervisor is not running ({error}); run `kueue-fleet rehearse up`"
            ) from error
        finally:
            connection.close()
        answer = _json_object(text)
        if response.status >= 400:
            raise SupervisorError(str(answer.get("error", text.decode(errors="replace"))), response.status)
        return answer


def _cluster(name: str) -> str:
    return f"/clusters/{quote(name, safe='')}"


def _reservation(zone: str, name: str) -> str:
    return f"/reservations/{quote(zone, safe='')}/{quote(name, safe='')}"


def _json_object(text: bytes) -> dict[str, Any]:
    try:
        answer = json.loads(text)
    except ValueError:
        return {}
    return answer if isinstance(answer, dict) else {}


class RunningSupervisor:
    """A supervisor this process has started. It ends with this process, unless `SupervisorClient.keep` was called."""

    def __init__(self, paths: RehearsalPaths, process: subprocess.Popen[bytes]) -> None:
        self.paths = paths
        self.process = process
        self.client = SupervisorClient(paths.socket)

    def stop(self, *, keep_logs: bool = False) -> None:
        """Ends it and everything it owns, and removes its state; kills it when that takes longer than 40 s."""
        if self.process.poll() is None:
            try:
                self.client.shutdown(keep_logs=keep_logs)
            except RehearsalError:
                self.process.send_signal(signal.SIGTERM)
        self._close_stdin()
        try:
            self.process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def leave(self) -> None:
        """Leaves it running after this process has ended."""
        self.client.keep()
        self._close_stdin()

    def _close_stdin(self) -> None:
        if self.process.stdin is not None:
            self.process.stdin.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def start_supervisor(
    paths: RehearsalPaths, *, keep: bool = False, services: str | None = None, environ: Mapping[str, str] = os.environ
) -> RunningSupervisor:
    """Starts a supervisor on this state folder and waits until it answers.

    It leads its own session, so that Ctrl-C in the terminal reaches only who started it. What it says is in
    supervisor.log. `services`: see `python -m kueue_rehearsal.processes.supervisor --help`.
    Raises RehearsalError when it does not come up, or one runs here already.
    """
    check_socket_path(paths)
    paths.root.mkdir(parents=True, exist_ok=True, mode=0o700)
    argv = [sys.executable, "-m", "kueue_rehearsal.processes.supervisor", "--state", str(paths.root)]
    if keep:
        argv.append("--keep")
    if services is not None:
        argv += ["--services", services]
    import_root = str(Path(kueue_fleet.__path__[0]).parent)
    search = os.pathsep.join(filter(None, (import_root, environ.get("PYTHONPATH", ""))))
    with paths.supervisor_log.open("ab") as log:
        begin = log.tell()
        process = subprocess.Popen(
            argv,
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            cwd=paths.root,
            env={**environ, "PYTHONPATH": search},
            start_new_session=True,
        )
    running = RunningSupervisor(paths, process)
    try:
        _wait_until_answering(running, begin)
    except BaseException:
        process.terminate()
        running.stop(keep_logs=True)
        raise
    return running


def _wait_until_answering(running: RunningSupervisor, log_begin: int) -> None:
    deadline = time.monotonic() + _START_SECONDS
    log = running.paths.supervisor_log
    while time.monotonic() < deadline:
        if running.process.poll() is not None:
            raise RehearsalError(_reason_of_end(log, log_begin, running.process.returncode))
        # An older supervisor would answer too: only its own process counts.
        try:
            if running.client.health()["pid"] == running.process.pid:
                return
        except SupervisorGoneError:
            pass
        time.sleep(0.01)
    raise RehearsalError(f"the rehearsal's supervisor has not come up in {_START_SECONDS:.0f} s; see {log}")


def _reason_of_end(log: Path, begin: int, returncode: int) -> str:
    with log.open("rb") as file:
        file.seek(begin)
        lines = file.read().decode(errors="replace").splitlines()
    for line in reversed(lines):
        if line.startswith(ERROR_PREFIX):
            return line.removeprefix(ERROR_PREFIX)
    return f"the rehearsal's supervisor has ended with {returncode}: {log_tail(log, 1) or 'it said nothing'}; see {log}"
