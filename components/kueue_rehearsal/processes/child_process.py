"""Child processes that cannot outlive their owner.

Linux kills each child when the process that started it dies (PR_SET_PDEATHSIG), however that happens. Each child leads
its own process group, and whatever is left of the group is killed when the leader ends. Nothing is restarted here: that
is for `supervisor` to decide.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from kueue_rehearsal.paths import RehearsalError

_PR_SET_PDEATHSIG = 1  # linux/prctl.h
_PARENT_DIED_EXIT = 127
# What a child gets of our own environment: no proxies, no credentials, no KUBECONFIG of the user.
_INHERITED = ("PATH", "HOME", "TMPDIR", "LANG", "LC_ALL", "TZ", "GOGC")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessSpec:
    """One process as data."""

    name: str
    """Unique among the processes of its cluster; lower case words with hyphens, such as `kube-apiserver`."""
    argv: tuple[str, ...]
    """The program's absolute path, and its arguments."""
    log: Path
    """Where stdout and stderr are appended; created with mode 0600."""
    env: Mapping[str, str] = field(default_factory=dict)
    """Added to PATH, HOME, TMPDIR and the locale; nothing else is inherited."""
    workdir: Path | None = None
    """The current folder; default: the folder of the log."""
    stop_seconds: float = 5.0
    """How long the process may take to end after SIGTERM, before SIGKILL."""


@dataclass(frozen=True, slots=True)
class Usage:
    """What a process uses now."""

    rss_bytes: int
    cpu_seconds: float


class ChildProcess:
    """A started process. Made by `start_process` on a running event loop; it reaps itself."""

    def __init__(self, spec: ProcessSpec, popen: subprocess.Popen[bytes]) -> None:
        self.spec = spec
        self.started_at = time.time()
        """Seconds since the epoch."""
        self._popen = popen
        self._exited = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._pidfd: int | None = os.pidfd_open(popen.pid)
        self._listeners: list[Callable[[ChildProcess], None]] = []
        self.stopping = False
        """True once its owner has asked it to end: its end is then no fault."""
        self._loop.add_reader(self._pidfd, self._reap)

    def __repr__(self) -> str:
        return f"<ChildProcess {self.spec.name} pid={self.pid} returncode={self.returncode}>"

    @property
    def pid(self) -> int:
        """Its process id, which is its process group too."""
        return self._popen.pid

    @property
    def returncode(self) -> int | None:
        """None while it runs; negative when a signal ended it, as in `subprocess`."""
        return self._popen.returncode

    def on_exit(self, listener: Callable[[ChildProcess], None]) -> None:
        """Calls `listener` once, on the event loop, when the process has ended."""
        if self._exited.is_set():
            self._loop.call_soon(listener, self)
        else:
            self._listeners.append(listener)

    async def wait(self) -> int:
        """Waits for the end; returns the return code."""
        await self._exited.wait()
        code = self._popen.returncode
        assert code is not None
        return code

    def send_signal(self, number: signal.Signals) -> None:
        """Signals the process itself, not its group; does nothing when it has ended."""
        if self._pidfd is not None:
            signal.pidfd_send_signal(self._pidfd, number)

    async def stop(self) -> int:
        """SIGTERM, then SIGKILL for the whole group after `stop_seconds`; returns the return code."""
        self.stopping = True
        self.send_signal(signal.SIGTERM)
        try:
            async with asyncio.timeout(self.spec.stop_seconds):
                return await self.wait()
        except TimeoutError:
            self._kill_group()
            return await self.wait()

    def usage(self) -> Usage | None:
        """None when the process has ended."""
        try:
            process = psutil.Process(self.pid)
            with process.oneshot():
                times = process.cpu_times()
                return Usage(process.memory_info().rss, times.user + times.system)
        except psutil.NoSuchProcess:
            return None

    def _kill_group(self) -> None:
        try:
            os.killpg(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            return

    def _reap(self) -> None:
        # The leader is a zombie until poll(), so its group id cannot belong to anyone else yet.
        self._kill_group()
        if self._popen.poll() is None or self._pidfd is None:
            return
        self._loop.remove_reader(self._pidfd)
        os.close(self._pidfd)
        self._pidfd = None
        self._exited.set()
        for listener in self._listeners:
            listener(self)
        self._listeners.clear()


Spawn = Callable[[ProcessSpec], ChildProcess]
"""Starts a process that the supervisor owns: it is listed in `GET /processes` and stopped with its cluster. Raises
RehearsalError when the program cannot be started."""


def die_with_parent(death_signal: signal.Signals = signal.SIGKILL) -> Callable[[], None]:
    """A `preexec_fn` that ties the new process to the thread that starts it.

    Linux sends the signal when the starting *thread* ends: start processes from the main thread. A process that uses
    gRPC, as Pulumi's mocks do, needs GRPC_ENABLE_FORK_SUPPORT=0: gRPC's fork handlers abort some children
    (grpc/grpc#43055).
    """
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    parent = os.getpid()

    def tie() -> None:
        prctl(_PR_SET_PDEATHSIG, int(death_signal), 0, 0, 0)
        if os.getppid() != parent:
            os._exit(_PARENT_DIED_EXIT)

    return tie


def child_environment(extra: Mapping[str, str]) -> dict[str, str]:
    """The environment a child gets: the few inherited variables, then `extra`."""
    kept_variables = {name: os.environ[name] for name in _INHERITED if name in os.environ}
    return kept_variables | dict(extra)


def start_process(spec: ProcessSpec) -> ChildProcess:
    """Starts the process. Must be called on the event loop, in the main thread.

    Raises RehearsalError when the program cannot be started.
    """
    if sys.platform != "linux":
        raise RehearsalError(f"a rehearsal needs Linux, this is {sys.platform}; use a Linux machine, VM or container")
    spec.log.parent.mkdir(parents=True, exist_ok=True)
    log = os.open(spec.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    try:
        popen = subprocess.Popen(
            spec.argv,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=spec.workdir or spec.log.parent,
            env=child_environment(spec.env),
            start_new_session=True,
            preexec_fn=die_with_parent(),
        )
    except OSError as error:
        raise RehearsalError(
            f"{spec.name}: {spec.argv[0]} cannot be started ({error.strerror}); "
            "run `python -m kueue_rehearsal.engines` to build what is missing"
        ) from error
    finally:
        os.close(log)
    return ChildProcess(spec, popen)


def log_tail(path: Path, lines: int = 5) -> str:
    """The last lines of a log for an error message; empty when there is none."""
    try:
        with path.open("rb") as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(0, file.tell() - 8192))
            return "\n".join(file.read().decode(errors="replace").splitlines()[-lines:])
    except FileNotFoundError:
        return ""
