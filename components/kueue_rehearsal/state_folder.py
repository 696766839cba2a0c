"""The state folder of one rehearsal as commands share it: who may change it, whether it is kept, what is removed.

The right to change them, held by one command at a time; the mark of a kept rehearsal; and the end of a supervisor whose
command is gone.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

import psutil

from kueue_rehearsal.paths import STATE_DIR_VARIABLE, RehearsalError, RehearsalPaths
from kueue_rehearsal.processes.ends import kill, still_running

_KILLED_SECONDS = 10.0


@contextmanager
def exclusive(paths: RehearsalPaths, stack: str) -> Iterator[None]:
    """Hold the right to change the rehearsal of STACK; the kernel takes it back from a command that dies.

    A folder in which nothing but the lock is left at the end is removed.

    Raises:
        RehearsalError: another command has it, or the folder cannot be made.
    """
    with _locked(paths, stack):
        try:
            yield
        finally:
            if [file.name for file in paths.root.iterdir()] == [paths.command_lock.name]:
                paths.command_lock.unlink()
                # Another command may already be waiting to begin here, with a lock file of its own.
                with suppress(OSError):
                    paths.root.rmdir()


def _locked(paths: RehearsalPaths, stack: str) -> IO[str]:
    while True:
        try:
            paths.root.mkdir(parents=True, exist_ok=True, mode=0o700)
            lock = paths.command_lock.open("w")
        except OSError as wrong:
            raise RehearsalError(
                f"{paths.root}: cannot be written ({wrong.strerror}); set {STATE_DIR_VARIABLE} to a folder of yours"
            ) from None
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # The command before this one may have removed the folder since: then this lock holds nothing.
            if os.fstat(lock.fileno()).st_ino == paths.command_lock.stat().st_ino:
                return lock
        except BlockingIOError:
            lock.close()
            raise RehearsalError(f"another command is using the rehearsal of {stack}; wait for it to end") from None
        except FileNotFoundError:
            pass
        lock.close()


def is_kept(paths: RehearsalPaths) -> bool:
    """Whether a command has left the rehearsal running, or would have, had the machine not been switched off since."""
    return _kept_mark(paths).exists()


def mark_kept(paths: RehearsalPaths) -> None:
    """From now on, commands resume this rehearsal instead of replacing it."""
    _kept_mark(paths).touch()


def _kept_mark(paths: RehearsalPaths) -> Path:
    return paths.root / "kept"


def supervisor(paths: RehearsalPaths) -> psutil.Process | None:
    """The running supervisor of the rehearsal, even if it no longer answers; None if there is none."""
    try:
        with paths.lock.open() as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return psutil.Process(int(lock.read()))
    except (FileNotFoundError, psutil.NoSuchProcess):
        pass
    return None


def wait_for_end(process: psutil.Process, patience_seconds: float) -> None:
    """Wait for a supervisor that has been told to end; its children end with it, also when it must be killed.

    Raises:
        RehearsalError: they do not end though they were killed, as while they wait for a disk that does not answer.
    """
    if still_running([process], patience_seconds):
        whole = [process]
        with suppress(psutil.NoSuchProcess):
            whole += process.children(recursive=True)
        if processes_left := kill(whole, _KILLED_SECONDS):
            numbers = ", ".join(str(process.pid) for process in processes_left)
            raise RehearsalError(f"processes that were killed do not end: {numbers}; run this again once they have")


def logs(paths: RehearsalPaths) -> list[Path]:
    """What explains a failure: the logs of every process, and Pulumi's events."""
    return [file for pattern in ("*.log", "*.events.json") for file in paths.root.rglob(pattern)]


def remove_state(paths: RehearsalPaths, but: Sequence[Path] = ()) -> None:
    """Remove all of a rehearsal but the command's lock and the files of BUT. None of its processes may still run."""
    stays = {*but, paths.command_lock}
    remove_below(paths.root, stays.__contains__)


def remove_below(folder: Path, stays: Callable[[Path], bool]) -> None:
    """Remove the files below FOLDER that do not stay, and the folders that are empty then."""
    for place in sorted(folder.rglob("*"), reverse=True):
        if place.is_dir() and not place.is_symlink():
            if not any(place.iterdir()):
                place.rmdir()
        elif not stays(place):
            place.unlink(missing_ok=True)
