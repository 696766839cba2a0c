"""Supervisors that are forked from one process that has imported everything, which is most of what starting one costs.

Each is a process of its own, with the standard streams, the folder and the environment that it is given, and what it
promises is the same. Not for tests of how Python starts: the supervisor of `asked` and those that a process of its own
starts are real ones.
"""

from __future__ import annotations

import atexit
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import IO, Any

import kueue_fleet

_SERVER = """
import contextlib, gc, os, socket, sys, traceback
from kueue_fleet.rehearsal.processes import supervisor

supervisor.load_services(supervisor.DEFAULT_SERVICES)
gc.freeze()

def work(said, streams):
    os.setsid()
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    os.closerange(3, 256)
    folder, count, *rest = said.split(b"\\0")
    os.chdir(folder)
    os.environ.clear()
    os.environb.update(each.split(b"=", 1) for each in rest[int(count):])
    code = 1
    try:
        code = supervisor.main([os.fsdecode(each) for each in rest[:int(count)]])
    except SystemExit as end:
        code = end.code
    except BaseException:
        traceback.print_exc()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)

def answer(call):
    said, streams, _, _ = socket.recv_fds(call, 1 << 20, 3)
    while more := call.recv(1 << 20):
        said += more
    if not (pid := os.fork()):
        work(said, streams)
    os.closerange(min(streams), max(streams) + 1)
    with contextlib.suppress(OSError):
        call.sendall(b"%8d" % pid)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    with contextlib.suppress(OSError):
        call.sendall(b"%8d" % code)
    os._exit(0)

server = socket.socket(socket.AF_UNIX)
server.bind(sys.argv[1])
server.listen(16)
print(flush=True)
while True:
    call, _ = server.accept()
    if not os.fork():
        answer(call)
    call.close()
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
"""


@cache
def _server() -> str:
    """The socket of the process that forks; it is there until these tests end."""
    folder = Path(tempfile.mkdtemp(prefix="supervisors-"))
    address = str(folder / "socket")
    roots = (str(Path(kueue_fleet.__path__[0]).parent), str(Path(__file__).parents[2]))
    server = subprocess.Popen(
        [sys.executable, "-c", _SERVER, address], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(roots)},
    )  # fmt: skip
    atexit.register(shutil.rmtree, folder)
    atexit.register(server.wait)
    atexit.register(server.kill)
    assert server.stdout is not None
    assert server.stdout.readline(), "the server of supervisors does not start"
    return address


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
        assert (python, module) == (sys.executable, "kueue_fleet.rehearsal.processes.supervisor")
        assert stdin == subprocess.PIPE
        assert start_new_session
        read, write = os.pipe()
        self.stdin = os.fdopen(write, "wb")
        self.returncode: int | None = None
        self._server = socket.socket(socket.AF_UNIX)
        self._server.connect(_server())
        said = [str(cwd), str(len(arguments)), *arguments, *(f"{name}={value}" for name, value in env.items())]
        content = "\0".join(said).encode(errors="surrogateescape")
        sent = socket.send_fds(self._server, [content], [read, stdout.fileno(), stderr.fileno()])
        self._server.sendall(content[sent:])
        self._server.shutdown(socket.SHUT_WR)
        os.close(read)
        self.pid = int(self._server.recv(8))

    def wait(self, timeout: float | None = None) -> int:
        """Its exit code. Raises subprocess.TimeoutExpired."""
        if self.returncode is None:
            self._server.settimeout(timeout)
            try:
                self.returncode = int(self._server.recv(8))
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
        if self.poll() is None:
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
