"""Asks the rehearsal's supervisor over its unix socket; a client for plugin processes, without asyncio."""

from __future__ import annotations

import http.client
import json
import os
import socket
import threading
from collections.abc import Callable
from queue import Queue
from typing import Any, Final
from urllib.parse import quote

from kueue_fleet.rehearsal.standins.plugin_server import PluginError

SOCKET_VARIABLE: Final = "KUEUE_FLEET_SUPERVISOR"
PROGRESS_SECONDS: Final = 2.0
CONTROL_PLANE_SECONDS: Final = 300.0


class LabError(PluginError):
    """The supervisor refused, or did not answer."""

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: str, timeout: float) -> None:
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        """Connects to the socket file."""
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


class Lab:
    """The supervisor of one rehearsal. `stop` makes every waiting request end."""

    def __init__(self, stop: threading.Event) -> None:
        self._stop = stop

    def cluster_path(self, name: str, pool: str | None = None) -> str:
        """The path of a cluster, or of one of its node pools."""
        path = f"/clusters/{quote(name, safe='')}"
        return path if pool is None else f"{path}/nodePools/{quote(pool, safe='')}"

    def request(
        self, method: str, path: str, body: Any = None, *, progress: Callable[[float], None] | None = None
    ) -> dict[str, Any]:
        """The supervisor's answer; `progress` is told the seconds waited so far, every two seconds.

        Raises LabError with the supervisor's own words, or saying that it does not answer.
        """
        results: Queue[dict[str, Any] | Exception] = Queue()

        def ask() -> None:
            try:
                results.put(_ask(method, path, body))
            except (LabError, OSError, http.client.HTTPException, ValueError) as error:
                results.put(error)

        worker = threading.Thread(target=ask, daemon=True)
        worker.start()
        waited = 0.0
        while worker.is_alive():
            worker.join(PROGRESS_SECONDS)
            if self._stop.is_set():
                raise LabError("cancelled while the supervisor was at work")
            waited += PROGRESS_SECONDS
            if progress and worker.is_alive():
                progress(waited)
        result = results.get()
        if isinstance(result, LabError):
            raise result
        if isinstance(result, Exception):
            raise LabError(
                f"the rehearsal's supervisor does not answer ({type(result).__name__}: {result}); "
                "run this through `kueue-fleet rehearse`"
            ) from result
        return result


def _ask(method: str, path: str, body: Any) -> dict[str, Any]:
    socket_path = os.environ.get(SOCKET_VARIABLE)
    if not socket_path:
        raise LabError(f"{SOCKET_VARIABLE} is not set; the stand-in of Google Cloud works inside of a rehearsal only")
    connection = _UnixConnection(socket_path, CONTROL_PLANE_SECONDS)
    try:
        headers = {"Content-Type": "application/json"}
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        response = connection.getresponse()
        data = response.read()
    finally:
        connection.close()
    answer = json.loads(data) if data else {}
    if response.status >= 400:
        words = answer.get("error") if isinstance(answer, dict) else None
        raise LabError(words or f"{method} {path}: HTTP {response.status}", response.status)
    return answer if isinstance(answer, dict) else {"items": answer}
