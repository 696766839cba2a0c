"""The first minutes of a newcomer who has wheels: install them, write a fleet, rehearse it.

`make engine-wheels wheels` makes the folder of wheels. What is not in it, pip fetches from its index as always.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
WHEELS = ROOT / "build" / "wheels"
_FIRST_JOB = re.compile(r"^First job +admitted (\d+) s", re.MULTILINE)


def measure_newcomer() -> dict[str, float]:
    """Seconds by phase. Raises CalledProcessError where a command fails."""
    subprocess.run(["make", "--silent", "engine-wheels", "wheels"], cwd=ROOT, check=True, stdout=sys.stderr)
    # A short path: a rehearsal has sockets below it.
    with tempfile.TemporaryDirectory(prefix="kf", dir="/tmp") as name:
        folder = Path(name)
        subprocess.run([sys.executable, "-m", "venv", folder / "venv"], check=True)
        binaries = folder / "venv" / "bin"
        environ = {
            "HOME": name,
            "PATH": f"{binaries}:/usr/bin:/bin",
            "KUEUE_FLEET_CACHE_DIR": f"{name}/cache",
            "KUEUE_FLEET_STATE_DIR": f"{name}/state",
            **{key: value for key, value in os.environ.items() if key.startswith(("PIP_", "SSL_", "HTTP", "LANG"))},
        }
        if go := shutil.which("go", path=environ["PATH"]):
            raise RuntimeError(f"{go}: a newcomer has no Go; take it away to measure this")

        def run(*command: str | Path) -> str:
            done = subprocess.run(command, cwd=folder, env=environ, check=True, stdout=subprocess.PIPE, text=True)
            return done.stdout

        began = time.monotonic()
        wanted = ["kueue-fleet[rehearsal]", "kueue-fleet-offline"]
        run(binaries / "pip", "install", "--quiet", "--find-links", WHEELS, *wanted)
        installed = time.monotonic()
        # The program of a fleet is the repository's own: a Pulumi.yaml, and a __main__.py of a few lines.
        shutil.copy(ROOT / "Pulumi.yaml", folder)
        (folder / "stacks").mkdir()
        shutil.copy(ROOT / "stacks" / "__main__.py", folder / "stacks")
        kueue_fleet = binaries / "kueue-fleet"
        run(kueue_fleet, "init", "first", "--project", "my-project", "--region", "us-central1", "--yes")
        before = time.monotonic()
        said = run(kueue_fleet, "rehearse", "--stack", "first")
        ended = time.monotonic()
        first = _FIRST_JOB.search(said)
        if first is None or (folder / "cache" / "engines").exists():
            raise RuntimeError(f"no job was admitted, or an engine was built:\n{said}")
        return {
            "install": installed - began,
            "first job": before - installed + float(first[1]),
            "end": ended - installed,
        }
