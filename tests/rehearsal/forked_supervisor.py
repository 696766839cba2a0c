"""Supervisors that are forked by a `fork_server`.

What each promises is the same. The supervisor of `asked`, and those that a process of its own starts, are real ones.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import IO, Any

import kueue_fleet
from fork_server import ANSWER_BYTES, start_fork_server

_SUPERVISORS = """
import os, sys
sys.path[:0] = {roots!r}
from kueue_rehearsal.processes import supervisor

supervisor.load_services(supervisor.DEFAULT_SERVICES)

def run(arguments):
    os.setsid()
    os.closerange(3, 256)
    return supervisor.main(arguments)
"""


@cache
def _server() -> str:
    """The socket of the process that forks."""
    roots = [str(Path(kueue_fleet.__path__[0]).parent), str(Path(__file__).parents[2])]
    return str(start_fork_server(_SUPERVISORS.format(roots=roots)))


class ForkedSupervisor:
    """In the place of `subprocess.Popen`, as `start_supervisor` calls it."""

    def __init__(
        self,
        args: Sequence[str],
        *,
        stdin: int,
        stdout: IO[bytes],
        stderr: IO[bytes],
        cwd: Path,
        env: Mapping[str, str],
        start_new_session: bool,
    ) -> None:
        python, _, module, *arguments = args
        assert (python, module) == (sys.executable, "kueue_rehearsal.processes.supervisor")
        assert stdin == subprocess.PIPE
        assert start_new_session
        read, write = os.pipe()
        self.stdin = os.fdopen(write, "wb")
        self.returncode: int | None = None
        self._server = socket.socket(socket.AF_UNIX)
        self._server.connect(_server())
        output = [str(cwd), str(len(arguments)), *arguments, *(f"{name}={value}" for name, value in env.items())]
        content = "\0".join(output).encode(errors="surrogateescape")
        sent = socket.send_fds(self._server, [content], [read, stdout.fileno(), stderr.fileno()])
        self._server.sendall(content[sent:])
        self._server.shutdown(socket.SHUT_WR)
        os.close(read)
        self.pid = int(self._server.recv(ANSWER_BYTES))

    def wait(self, timeout: float | None = None) -> int:
        """Its exit code. Raises subprocess.TimeoutExpired."""
        if self.returncode is None:
            self._server.settimeout(timeout)
            try:
                self.returncode = int(self._server.recv(ANSWER_BYTES))
            except (TimeoutError, BlockingIOError) as error:
                raise subprocess.TimeoutExpired("supervisor", timeout or 0) from error
            self._server.close()
        return self.returncode

    def poll(self) -> int | None:
        """Its exit code, once it has ended."""
        try:
            return self.wait(0)
        except subprocess.TimeoutExpired:
            return None

    def send_signal(self, number: int) -> None:
        """Unless it has ended."""
        # The fork server reaps it a moment before it says so; a child of one's own would be a zombie until then.
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def __del__(self) -> None:
        self._server.close()


class ForkingSubprocess:
    """In the place of the module `subprocess` in `supervisor_client`."""

    Popen = ForkedSupervisor

    def __getattr__(self, name: str) -> Any:
        return getattr(subprocess, name)
