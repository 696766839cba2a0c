"""Single components on clusters that exist: the tests of the example, as whoever copies it runs them."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "examples" / "single-components"


def test_its_own_tests_pass() -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    result = subprocess.run(command, cwd=FOLDER, capture_output=True, text=True, check=False)
    assert re.search(r"\b6 passed", result.stdout, re.MULTILINE), result.stdout + result.stderr
