from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

_ENGINES = "tests/engines/"
_ON_THE_SHARED_CLUSTER = frozenset(
    ("test_dws.py", "test_metrics.py", "test_node_agent.py", "test_node_pools.py", "test_nodes.py")
)
"""Files of tests on engines that take the session's cluster; the others bring up their own."""

# A busy machine is slow, which says nothing about the code. A failure prints how to get it again.
settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True)
settings.load_profile("any machine")


def pytest_configure() -> None:
    """A shell starts background jobs with Ctrl-C ignored, and nohup hang-ups too, and children inherit that."""
    for number, usual in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, usual)


class EnginesFirst(LoadScopeScheduling):  # type: ignore[misc]
    """Files go to whichever process is free; those that share a control plane go to one, one after the other."""

    def _split_scope(self, nodeid: str) -> str:
        path = nodeid.partition("::")[0]
        return _ENGINES if path.removeprefix(_ENGINES) in _ON_THE_SHARED_CLUSTER else path


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> EnginesFirst:
    """What `make test` runs in two processes."""
    return EnginesFirst(config, log)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """In parallel, what takes longest begins first."""
    for item in items:
        if "bare_cluster" in getattr(item, "fixturenames", ()) and item.path.name not in _ON_THE_SHARED_CLUSTER:
            raise pytest.UsageError(
                f"{item.nodeid} takes the session's cluster; add its file to _ON_THE_SHARED_CLUSTER"
            )
    if hasattr(config, "workerinput"):
        engines = Path(__file__).parent / "engines"
        items.sort(key=lambda item: engines not in item.path.parents)
