"""The first minutes of a newcomer who has wheels: the tutorial, from the clone to a fleet that was rehearsed.

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

from tests.docs.console import ROOT, steps

PAGE = ROOT / "docs" / "tutorial.md"
WHEELS = ROOT / "build" / "wheels"
_BLOCK = re.compile(r"^```(sh|console)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_FIRST_JOB = re.compile(r"^First job +admitted (\d+) s", re.MULTILINE)


def commands() -> list[str]:
    """What the tutorial has its reader type, to the end of the section with the first rehearsal, in its order."""
    first_sections = PAGE.read_text().partition("\n## 3.")[0]
    result: list[str] = []
    for language, block in _BLOCK.findall(first_sections):
        result += [step.command for step in steps(block)] if language == "console" else block.splitlines()
    return result


def measure_newcomer() -> dict[str, float]:
    """Seconds by phase. Raises CalledProcessError where a command fails."""
    subprocess.run(["make", "--silent", "engine-wheels", "wheels"], cwd=ROOT, check=True, stdout=sys.stderr)
    # A short path: a rehearsal has sockets below it.
    with tempfile.TemporaryDirectory(prefix="kf", dir="/tmp") as name:
        environ = {
            "HOME": name,
            "PATH": f"{Path(sys.base_prefix) / 'bin'}:/usr/bin:/bin",
            **{key: value for key, value in os.environ.items() if key.startswith(("PIP_", "SSL_", "HTTP", "LANG"))},
        }
        if go := shutil.which("go", path=environ["PATH"]):
            raise RuntimeError(f"{go}: a newcomer has no Go; take it away to measure this")
        typed = [line.replace("URL", str(ROOT)).replace("WHEELS", str(WHEELS)) for line in commands()]
        if shutil.which("kubectl", path=environ["PATH"]) is None:
            # Whoever knows Kubernetes has it; nothing that follows needs what it shows.
            typed = [line for line in typed if not line.startswith("kubectl ")]
        script = "".join(f'{line}\necho "== $EPOCHREALTIME"\n' for line in typed)
        began = time.time()
        result = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", script],
            cwd=name,
            env=environ,
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        output = re.split(r"^== (\d+\.\d+)\n", result.stdout, flags=re.MULTILINE)
        ends = dict(zip(typed, map(float, output[1::2]), strict=True))
        printed = dict(zip(typed, output[::2], strict=False))
        (install,) = (line for line in typed if line.startswith("pip install"))
        rehearse = next(line for line in typed if line.startswith("kueue-fleet rehearse"))
        before = [begin for line, begin in zip(typed[1:], ends.values(), strict=False) if line == rehearse]
        first = _FIRST_JOB.search(printed[rehearse])
        if first is None or (Path(name) / ".cache" / "kueue-fleet" / "engines").exists():
            raise RuntimeError(f"no job was admitted, or an engine was built:\n{printed[rehearse]}")
        return {
            "install": ends[install] - began,
            "first job": before[0] - ends[install] + float(first[1]),
            "end": max(ends.values()) - began,
        }
