"""Whether processes that something else has started have ended.

A process that has ended stays as a zombie until its parent asks for its exit code. The parent of an orphan is the first
process of the machine or container. Where that is not an init, the zombie stays, and psutil waits indefinitely.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from contextlib import suppress

import psutil

_POLL_SECONDS = 0.02


def runs(process: psutil.Process) -> bool:
    """Whether it has not ended; a zombie has."""
    with suppress(psutil.NoSuchProcess):
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    return False


def still_running(processes: Iterable[psutil.Process], seconds: float) -> list[psutil.Process]:
    """Those of the processes that have not ended after so many seconds; returns as soon as there are none."""
    deadline = time.monotonic() + seconds
    while (processes_left := [process for process in processes if runs(process)]) and time.monotonic() < deadline:
        time.sleep(_POLL_SECONDS)
        processes = processes_left
    return processes_left


def kill(processes: Iterable[psutil.Process], seconds: float) -> list[psutil.Process]:
    """Kill the processes; those that have not ended after so many seconds."""
    killed_processes = list(processes)
    for process in killed_processes:
        with suppress(psutil.NoSuchProcess):
            process.kill()
    return still_running(killed_processes, seconds)
