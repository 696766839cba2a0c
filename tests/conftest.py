from __future__ import annotations

import signal
from collections import defaultdict
from itertools import chain
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

_ENGINES = "tests/engines/"
_LONGEST = (
    "engines/test_controller_faults.py",
    "engines/test_rehearse_command.py",
    "engines/test_rehearsal.py",
    "engines/test_controller.py",
    "engines/test_batch_platform.py",
    "engines/",
    "differential/test_corpus.py",
    "rehearsal/",
)
"""Beginnings of the paths of what takes longest, the longest first."""
_SHOWN = 20

# A busy machine is slow, which says nothing about the code. A failure prints how to get it again.
settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True)
settings.load_profile("any machine")


def pytest_configure() -> None:
    """A shell starts background jobs with Ctrl-C ignored, and nohup hang-ups too, and children inherit that."""
    for number, usual in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, usual)


class LongestFirst(LoadScopeScheduling):  # type: ignore[misc]
    """The tests of a file stay together; those of a folder below tests/engines too, as they share a control plane."""

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        folder = file.rpartition("/")[0]
        return folder if folder.startswith(_ENGINES) else file


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LongestFirst:
    """What `make test` runs in several processes: each takes the next file when it is done with one."""
    return LongestFirst(config, log)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """In parallel, what takes longest begins first, so that all processes end at the same time."""
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: _rank(item.nodeid))


def _rank(nodeid: str) -> int:
    found = (number for number, place in enumerate(_LONGEST) if nodeid.startswith(f"tests/{place}"))
    return next(found, len(_LONGEST))


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """In parallel, the seconds of the files that took longest."""
    if not config.getoption("numprocesses", None):
        return
    seconds: defaultdict[str, float] = defaultdict(float)
    for report in chain.from_iterable(terminalreporter.stats.values()):
        if isinstance(report, pytest.TestReport):
            seconds[report.nodeid.partition("::")[0]] += report.duration
    terminalreporter.section(f"seconds by file, {sum(seconds.values()):.0f} in all")
    for file, taken in sorted(seconds.items(), key=lambda item: -item[1])[:_SHOWN]:
        terminalreporter.write_line(f"{taken:6.0f} {file}")
