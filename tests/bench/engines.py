"""From nothing to the first job: a clone, empty caches, the engines built from source, a rehearsal of the DWS stack."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
_CACHES = {
    "GOPATH": "go",
    "GOMODCACHE": "go/pkg/mod",
    "GOCACHE": "go-build",
    "KUEUE_FLEET_CACHE_DIR": "kueue-fleet",
    "KUEUE_FLEET_STATE_DIR": "state",
    "PIP_CACHE_DIR": "pip",
    "UV_CACHE_DIR": "uv",
    "XDG_CACHE_HOME": "cache",
}
"""Variables that name the places where something is kept for the next time, by a folder that is empty here."""
_FIRST_JOB = re.compile(r"^First job +admitted (\d+) s", re.MULTILINE)


def measure_engines() -> Iterator[tuple[str, str, float, str]]:
    """Name for pages, what was measured, seconds of wall time or GiB, and the unit.

    Raises CalledProcessError if a command fails.
    """
    # A short path: a rehearsal has sockets below it.
    folder = Path(tempfile.mkdtemp(prefix="kf", dir="/tmp"))
    try:
        environ = os.environ | {name: str(folder / place) for name, place in _CACHES.items()}
        environ.pop("VIRTUAL_ENV", None)
        clone = folder / "clone"
        total = time.monotonic()
        subprocess.run(["git", "clone", "--quiet", ROOT, clone], check=True)
        _run(clone, environ, "make", ".venv/.ready")
        python = str(clone / ".venv" / "bin" / "python")
        began = time.monotonic()
        rehearsal_engines = "from kueue_rehearsal.engines import REHEARSAL_ENGINES as names; print(*names)"
        names = _run(clone, environ, python, "-c", rehearsal_engines).split()
        _run(clone, environ, python, "-m", "kueue_rehearsal.engines", *names)
        yield "engines", "engines of a rehearsal, from empty caches", time.monotonic() - began, "s"
        output = _run(clone, environ, "make", "rehearse")
        yield "first-run", "`make rehearse`, from a clone and empty caches", time.monotonic() - total, "s"
        sizes = (place.lstat().st_size for place in folder.rglob("*") if clone not in place.parents)
        yield "engines-disk", "disk of these engines and their sources", sum(sizes) / 1024**3, "GiB"
        first = _FIRST_JOB.search(output)
        if first is None:
            raise RuntimeError(f"the rehearsal says nothing of its first job:\n{output}")
        yield "first-job", "first job admitted, with engines", float(first[1]), "s"
        for key, target, what in (
            ("operator-engines", "operators", "engines of the three operators, after these"),
            ("release-engines", "release-engines", "two other releases of Kueue, after these"),
        ):
            began = time.monotonic()
            _run(clone, environ, "make", target)
            yield key, what, time.monotonic() - began, "s"
    finally:
        for place in folder.rglob("*"):
            if place.is_dir() and not place.is_symlink():
                place.chmod(0o755)  # Go's module cache is read-only
        shutil.rmtree(folder)


def _run(clone: Path, environ: dict[str, str], *command: str) -> str:
    """What a command prints; what it says of its progress is passed on."""
    result = subprocess.run(command, cwd=clone, env=environ, stdout=subprocess.PIPE, text=True, check=False)
    if result.returncode:
        print(result.stdout, file=sys.stderr)
        result.check_returncode()
    return result.stdout
