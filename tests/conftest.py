from __future__ import annotations

import signal
from enum import IntEnum
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

_ENGINES = "tests/engines/"
_BESIDE = {
    "test_controller_image.py", "test_differential.py", "test_dws.py", "test_fleet_on_pulumi.py", "test_metrics.py",
    "test_node_agent.py", "test_node_pools.py", "test_nodes.py", "test_platform_pipeline.py", "test_plugins.py",
    "test_policies.py", "test_prod.py", "test_standins.py",
}  # fmt: skip
"""These share nothing with the other engine tests, and what else runs on the machine does not change what they see."""

# A busy machine is slow, which says nothing about the code. A failure prints how to get it again.
settings.register_profile("any machine", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True)
settings.load_profile("any machine")


def pytest_configure() -> None:
    """A shell starts background jobs with Ctrl-C ignored, and nohup hang-ups too, and children inherit that."""
    for number, usual in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, usual)


class Group(IntEnum):
    """What a test needs; those that take longest come first."""

    ENGINES = 0
    BESIDE = 1
    PURE = 2


def _group(nodeid: str) -> Group:
    path = nodeid.partition("::")[0]
    if not path.startswith(_ENGINES):
        return Group.PURE
    return Group.BESIDE if path.removeprefix(_ENGINES) in _BESIDE else Group.ENGINES


class OneProcessAGroup(LoadScopeScheduling):  # type: ignore[misc]
    """Files go to whichever process is free, but all engine tests of one group to one: they share control planes."""

    def _split_scope(self, nodeid: str) -> str:
        group = _group(nodeid)
        return nodeid.partition("::")[0] if group is Group.PURE else group.name


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> OneProcessAGroup:
    """What `make test` runs in two processes."""
    return OneProcessAGroup(config, log)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """In parallel, what takes longest begins first."""
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: _group(item.nodeid))
