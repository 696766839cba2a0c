"""`kueue_fleet.testing`: the tests of user_unit_tests.py, in a process of their own as a user's are.

Pulumi's `test` takes the event loop of the thread; the tests of this project have had others there.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

FILE = Path(__file__).with_name("user_unit_tests.py")


def test_unit_tests_of_users_pass() -> None:
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:xdist",
        "-p",
        "no:cacheprovider",
        "--noconftest",
        str(FILE),
    ]
    result = subprocess.run(command, cwd=FILE.parents[1], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    assert " passed" in result.stdout
