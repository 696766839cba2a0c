"""The wheel of kueue-admission with its compiled modules, made once for each state of the sources."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import zipfile
from importlib.metadata import version
from pathlib import Path

from kueue_rehearsal.paths import cache_dir

ROOT = Path(__file__).parents[2]
_PACKAGE = ROOT / "components" / "kueue_admission"
_HOOK = ROOT / "components" / "compiled_admission.py"
_KEPT = 3


def installed_wheel() -> Path:
    """A folder to import `kueue_admission` from, as its wheel installs it; a new one takes 100 s of CPU."""
    digest = hashlib.sha256(f"{sys.version} mypy {version('mypy')}".encode())
    for path in sorted([_HOOK, _PACKAGE / "pyproject.toml", *_PACKAGE.rglob("*.py")]):
        digest.update(f"{path.relative_to(ROOT)}\0".encode() + path.read_bytes())
    folder = cache_dir() / "compiled-admission"
    folder.mkdir(parents=True, exist_ok=True)
    result = folder / digest.hexdigest()[:16]
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not result.exists():
            _build(folder / "building", result)
            others = sorted((item for item in folder.iterdir() if item.is_dir()), key=lambda each: each.stat().st_mtime)
            for old in others[:-_KEPT]:
                shutil.rmtree(old)
    return result


def _build(folder: Path, found: Path) -> None:
    """What was left of a build that was interrupted goes."""
    shutil.rmtree(folder, ignore_errors=True)
    environ = {**os.environ, "HATCH_BUILD_HOOK_ENABLE_CUSTOM": "1"}
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder / "wheel")]
    result = subprocess.run(command, cwd=_PACKAGE, env=environ, capture_output=True, text=True, timeout=1200)
    if result.returncode:
        raise RuntimeError(f"the wheel was not made:\n{result.stdout[-3000:]}{result.stderr[-3000:]}")
    (wheel,) = (folder / "wheel").glob("*.whl")
    zipfile.ZipFile(wheel).extractall(folder / "site")
    (folder / "site").rename(found)


def pytest_collection_finish() -> None:
    """As a plugin, `-p compiled_wheel`: what is tested is what was compiled."""
    from kueue_admission.decide import model

    assert str(model.__file__).endswith(".so"), f"{model.__file__} is not compiled"
