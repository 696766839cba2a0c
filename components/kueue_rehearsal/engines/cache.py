"""The folder of built engines: entries appear whole or not at all, and a damaged one does not count.

An entry is a folder `<name>-<key>` with a manifest of its files. It is filled in a temporary folder beside it and
renamed; one builder at a time holds the name's lock (flock, released by the kernel when its holder dies).
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

MANIFEST = "manifest.json"
"""File of a cached engine that says what it was built from; written last."""
_LOCK_POLL_SECONDS = 0.2


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file() and path != folder / MANIFEST)


def _write_manifest(folder: Path) -> None:
    entries = {}
    for path in _files(folder):
        stat = path.stat()
        entries[str(path.relative_to(folder))] = [stat.st_size, stat.st_mtime_ns, _sha256(path)]
    (folder / MANIFEST).write_text(json.dumps({"files": entries}, indent=1))


def is_whole(folder: Path) -> bool:
    """Whether every file of the entry is there and unchanged.

    A file whose size and modification time are as recorded is taken to be unchanged; any other is read. Without a
    recorded time, as in a wheel, whose installer has compared the content, the size is enough.
    """
    try:
        recorded_files = json.loads((folder / MANIFEST).read_text())["files"]
        if not recorded_files:
            return False
        for name, (size, mtime_ns, digest) in recorded_files.items():
            stat = (folder / name).stat()
            if stat.st_size != size:
                return False
            if mtime_ns is not None and stat.st_mtime_ns != mtime_ns and _sha256(folder / name) != digest:
                return False
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return False
    return True


@dataclass(frozen=True, slots=True)
class EngineCache:
    """The cache folder; it need not exist yet."""

    root: Path

    def folder(self, name: str, key: str) -> Path:
        """Where an entry is, if it is there."""
        return self.root / f"{name}-{key}"

    def entry(self, name: str, key: str) -> Path | None:
        """The folder of a whole entry, else None."""
        folder = self.folder(name, key)
        return folder if is_whole(folder) else None

    def log(self, name: str) -> Path:
        """Where the build of `name` writes what it says."""
        return self.root / f"{name}.log"

    @contextmanager
    def locked(self, name: str, waiting: Callable[[], None]) -> Iterator[None]:
        """Holds the lock of `name`; calls `waiting` again and again while another builder has it."""
        self.root.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self.root / f".{name}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            while True:
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    waiting()
                    time.sleep(_LOCK_POLL_SECONDS)
            yield
        finally:
            os.close(descriptor)

    @contextmanager
    def building(self, name: str) -> Iterator[Path]:
        """An empty folder beside the entries, for this block. The caller holds the lock of `name`.

        Whatever an interrupted builder left behind is removed first.
        """
        self.root.mkdir(parents=True, exist_ok=True)
        for stale in self.root.glob(f".building-{name}.*"):
            shutil.rmtree(stale)
        folder = Path(tempfile.mkdtemp(prefix=f".building-{name}.", dir=self.root))
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def store(self, name: str, key: str, fill: Callable[[Path], None]) -> Path:
        """Makes the entry by letting `fill` write into an empty folder. The caller holds a lock that others wait for.

        When `fill` raises, nothing is left.
        """
        folder = self.folder(name, key)
        with self.building(name) as building:
            (building / "entry").mkdir()
            fill(building / "entry")
            _write_manifest(building / "entry")
            if folder.exists():
                shutil.rmtree(folder)
            (building / "entry").rename(folder)
        return folder
