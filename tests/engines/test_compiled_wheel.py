"""The compiled modules of kueue-admission's wheel decide, explain and simulate as its sources do."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from compiled_wheel import installed_wheel

ROOT = Path(__file__).parents[2]
TESTS = (
    "tests/decide",
    "tests/differential/test_corpus.py",
    "tests/differential/test_releases.py",
    "tests/differential/test_settled.py",
    "tests/differential/test_variants.py",
    "tests/explain/test_cases.py",
    "tests/simulation/test_fleet.py",
    "tests/simulation/test_generator.py",
    "tests/simulation/test_scale.py",
)
"""The corpora of all releases, and those that hold whole answers and simulations against what is expected."""


_HEADER = Path(sysconfig.get_path("include")) / "Python.h"


@pytest.mark.skipif(
    not _HEADER.exists() or shutil.which("cc") is None,
    reason=f"no C compiler, or no {_HEADER}: apt-get install gcc python3-dev",
)
def test_what_is_compiled_decides_as_kueue_does(tmp_path: Path) -> None:
    """Those that change private names of modules are left out: what is compiled does not look them up again."""
    places = [".", str(installed_wheel()), "components", "policies", "offline", "tests/support"]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "compiled_wheel", "-p", "no:cacheprovider", "-n", "0"]
    command += ["-o", f"pythonpath={' '.join(places)}", f"--basetemp={tmp_path}", *TESTS]
    environ = {**os.environ, "PYTHONPATH": str(ROOT / "tests" / "support")}
    for name in [name for name in environ if name.startswith("PYTEST_")]:
        del environ[name]
    done = subprocess.run(command, cwd=ROOT, env=environ, stdout=subprocess.PIPE, text=True, timeout=1200)
    assert done.returncode == pytest.ExitCode.OK, done.stdout[-5000:]
