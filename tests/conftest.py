from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

_ENGINES = "tests/engines/"

# A busy machine is slow, which says nothing about the code. A failure prints how to get it again.
settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True)
settings.load_profile("any machine")


def pytest_configure() -> None:
    """A shell starts background jobs with Ctrl-C ignored, and nohup hang-ups too, and children inherit that."""
    for number, usual in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, usual)


class EnginesInOneProcess(LoadScopeScheduling):  # type: ignore[misc]
    """Files go to whichever process is free, but all tests on engines to one: they share control planes, and cores."""

    def _split_scope(self, nodeid: str) -> str:
        return _ENGINES if nodeid.startswith(_ENGINES) else nodeid.partition("::")[0]


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> EnginesInOneProcess:
    """What `make test` runs in two processes."""
    return EnginesInOneProcess(config, log)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """In parallel, what takes longest begins first."""
    if hasattr(config, "workerinput"):
        engines = Path(__file__).parent / "engines"
        items.sort(key=lambda item: engines not in item.path.parents)
