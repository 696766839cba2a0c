"""`make test`: every test, and once more, alone, those on real control planes that failed.

A test on control planes that looks at what another process writes a moment later fails on some runs only. One that
passes the second time does not fail the run; the last lines name it and the log of the first time, since it is to be
mended all the same. A test that needs no engine has no second try, and more failures than a race explains have none;
all tests of a file whose set-up fails are one failure.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Collection, Sequence
from pathlib import Path

import pytest

ENGINES = "tests/engines/"
MOST = 5
"""Failures that are tried again. Where there are more, it is the code."""
LOGS = Path("build") / "failed-once"
"""Where the logs of tests that fail the first time are kept, until the next run."""


class Failures:
    """A plugin of pytest that keeps what failed, with what pytest says about it."""

    def __init__(self) -> None:
        self.logs: dict[str, str] = {}
        self.causes: set[str] = set()
        """A test, or the file whose set-up failed, which its tests share."""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Set-up, call and tear-down of a test each have a report."""
        if report.failed:
            sections = (f"--- {name} ---\n{content}" for name, content in report.sections)
            self.causes.add(report.nodeid.partition("::")[0] if report.when == "setup" else report.nodeid)
            self.logs[report.nodeid] = "\n".join((self.logs.get(report.nodeid, ""), report.longreprtext, *sections))


def run(arguments: Sequence[str]) -> int:
    """Runs pytest with these arguments, then what is worth a second try. The exit code is pytest's."""
    failures = Failures()
    ended = int(pytest.main([*arguments], plugins=[failures]))
    kept = _keep(failures.logs)
    if ended != pytest.ExitCode.TESTS_FAILED or not worth_a_second_try(failures.causes):
        return ended
    print(f"\nOnce more, alone: {' '.join(kept)}", flush=True)
    # In a process of its own: nothing that the first run left in this one decides.
    ended = subprocess.run([sys.executable, "-m", "pytest", *kept], check=False).returncode
    for test, log in kept.items():
        print(f"{'failed twice' if ended else 'passed the second time'}: {test}; the first time: {log}")
    return ended


def worth_a_second_try(causes: Collection[str]) -> bool:
    """Whether all that failed is on control planes, and little enough."""
    return 0 < len(causes) <= MOST and all(cause.startswith(ENGINES) for cause in causes)


def _keep(logs: dict[str, str]) -> dict[str, Path]:
    LOGS.mkdir(parents=True, exist_ok=True)
    for old in LOGS.glob("*.log"):
        old.unlink()
    kept = {}
    for test, log in logs.items():
        kept[test] = LOGS / (re.sub(r"[^\w.-]+", "_", test.removeprefix(ENGINES))[-150:] + ".log")
        kept[test].write_text(log)
    return kept


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
