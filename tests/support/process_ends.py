"""Whether a process has ended, by its number."""

from __future__ import annotations

import psutil

from kueue_rehearsal.processes.ends import runs


def gone(pid: int) -> bool:
    """Whether there is no such process, or only its zombie."""
    try:
        return not runs(psutil.Process(pid))
    except psutil.NoSuchProcess:
        return True
