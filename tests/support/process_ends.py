"""Whether a process has ended, or ends soon, by its number."""

from __future__ import annotations

import time

import psutil

from kueue_rehearsal.processes.ends import runs


def gone(pid: int) -> bool:
    """Whether there is no such process, or only its zombie."""
    try:
        return not runs(psutil.Process(pid))
    except psutil.NoSuchProcess:
        return True


def ends(pid: int, seconds: float = 10.0) -> bool:
    """Whether the process ends within so many seconds: one that has removed its files may still be about to."""
    deadline = time.monotonic() + seconds
    while not gone(pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    return gone(pid)
