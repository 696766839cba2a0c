"""The seconds and the CPU of each test file in a parallel run: a table, the last one for comparison, and a limit."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

KEPT = Path("build") / "test-times.json"
"""The last times of each file, those of other runs included."""
SHOWN = 30
MOST_CPU = 20.0
"""Seconds of CPU that a file may take without a reason here."""
LARGE = {
    "tests/engines/": "starts real control planes",
    "tests/test_type_checkers.py": "two type checkers read the whole library",
}
"""By the beginning of the paths of files that take more: the reason."""
SLOWER, SLOWER_SECONDS = 1.5, 5.0
"""A file is slower if its CPU is so many times that of the last run, and so many seconds more: other work on the
machine changes the CPU of the same tests by a third."""


class Times(NamedTuple):
    """Of all tests of a file, in seconds; CPU includes that of processes which the tests waited for."""

    seconds: float
    cpu: float


def times_by_file(reports: Iterable[object]) -> dict[str, Times]:
    """From the reports of tests, which have their CPU as a property; the longest first."""
    result: dict[str, Times] = {}
    for report in reports:
        if isinstance(report, pytest.TestReport):
            file = report.nodeid.partition("::")[0]
            before = result.get(file, Times(0, 0))
            cpu = sum(float(str(value)) for key, value in report.user_properties if key == "cpu")
            result[file] = Times(before.seconds + report.duration, before.cpu + cpu)
    return dict(sorted(result.items(), key=lambda item: -item[1].seconds))


def table(times: Mapping[str, Times]) -> str:
    """The files that took longest."""
    rows = [f"| `{file.removeprefix('tests/')}` | {one.seconds:.0f} | {one.cpu:.0f} |" for file, one in times.items()]
    return "\n".join(("| file | seconds | CPU, seconds |", "|---|---|---|", *rows[:SHOWN]))


def slower(times: Mapping[str, Times], last: Mapping[str, Times]) -> list[str]:
    """A line for each file that took clearly more CPU than in the last run."""
    return [
        f"{file}: {one.cpu:.0f} s of CPU, {last[file].cpu:.0f} s in the last run"
        for file, one in times.items()
        if file in last and one.cpu > max(last[file].cpu * SLOWER, last[file].cpu + SLOWER_SECONDS)
    ]


def too_large(times: Mapping[str, Times]) -> list[str]:
    """A line for each file that takes more CPU than is usual, without a reason."""
    return [
        f"{file}: {one.cpu:.0f} s of CPU, more than {MOST_CPU:.0f}; "
        f"make it faster, or write the reason into LARGE of {__name__}"
        for file, one in times.items()
        if one.cpu > MOST_CPU and not file.startswith(tuple(LARGE))
    ]


def last_times(path: Path) -> dict[str, Times]:
    """What is kept there; nothing before the first run."""
    return {file: Times(*one) for file, one in json.loads(path.read_text()).items()} if path.exists() else {}


def keep(path: Path, times: Mapping[str, Times]) -> None:
    """With the last times of files that are still there and did not run."""
    others = {file: one for file, one in last_times(path).items() if Path(file).exists()}
    path.parent.mkdir(exist_ok=True)
    lines = [
        f"{json.dumps(file)}: [{one.seconds:.2f}, {one.cpu:.2f}]" for file, one in sorted({**others, **times}.items())
    ]
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n")
