from __future__ import annotations

import asyncio
import gc
import os
import resource
import signal
from collections import defaultdict
from collections.abc import AsyncIterator
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
import typer.main
from _pytest.runner import runtestprotocol
from hypothesis import HealthCheck, settings
from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

from drawn import examples
from file_times import KEPT, keep, last_times, slower, table, times_by_file, too_large
from inotify_limit import raise_limit
from leaping_clock import leaping_clock

_OF_THE_MACHINE = pytest.StashKey[str]()
_TOGETHER = (
    ("tests/engines/dws_stack",),
    ("tests/engines/shared_cluster",),
    ("tests/engines/shared_fleet",),
    ("tests/engines/faults",),
    ("tests/differential/",),
    (
        "tests/test_fleet.py",
        "tests/test_fleet_changes.py",
        "tests/test_fleet_in_google_cloud.py",
        "tests/test_stack_program.py",
        "tests/gcp/test_property_names.py",
        "tests/policies/test_environments.py",
        "tests/policies/test_readme.py",
    ),
)
"""Beginnings of the paths of files that share what one process makes once: a control plane, what fleets declare."""
_LONGEST = (
    "engines/faults/",
    "engines/test_rehearse_command.py",
    "engines/dws_stack/",
    "engines/shared_fleet/",
    "engines/shared_cluster/",
    "engines/test_prod.py",
    "engines/test_differential.py",
    "engines/test_existing.py",
    "engines/test_standins.py",
    "engines/test_controller_deployed.py",
    "engines/test_batch_platform.py",
    "engines/test_policies.py",
    "engines/test_controller_image.py",
    "engines/test_plugins.py",
    "engines/test_fleet_on_pulumi.py",
    "engines/",
    "differential/",
    "test_fleet.py",
    "rehearsal/processes/",
    "cli/test_streams.py",
    "browser/",
    "docs/test_pages.py",
    "diff/test_compare_consequences.py",
    "test_fleet_project.py",
    "simulation/test_harness_delays.py",
    "gcp/",
    "rehearsal/",
    "examples/",
    "cli/",
)
"""Beginnings of the paths of what takes longest, the longest first."""
_CPU = pytest.StashKey[float]()

# A busy machine is slow, which says nothing about the code. `make test` draws the same examples each time: what fails
# is the change, not the draw. `make properties` draws others, and a failure prints how to get it again.
settings.register_profile(
    "any machine",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    print_blob=True,
    derandomize="KUEUE_FLEET_EXAMPLES" not in os.environ,
    max_examples=examples(100),
)
settings.load_profile("any machine")


# typer builds all that commands are from their functions in each call; a process has one call, but for tests.
typer.main.get_command = cache(typer.main.get_command)
# API servers take a quarter less CPU when Go looks for garbage half as often, and a third more memory.
os.environ.setdefault("GOGC", "200")
# Pulumi's mocks use gRPC, whose fork handlers abort one child in some hundreds before it runs its program
# (grpc/grpc#43055). Read when gRPC is first used.
os.environ["GRPC_ENABLE_FORK_SUPPORT"] = "0"
# Modules, models and what tests made stay; Python need not look through them after every 700 new objects.
gc.set_threshold(50_000, 20, 50)


def pytest_configure(config: pytest.Config) -> None:
    """A shell starts background jobs with Ctrl-C ignored, and nohup hang-ups too, and children inherit that."""
    for number, usual in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, usual)
    without_engines = any(Path(item).name == "engines" for item in config.getoption("ignore") or ())
    config.stash[_OF_THE_MACHINE] = "" if without_engines or hasattr(config, "workerinput") else raise_limit()


def pytest_report_header(config: pytest.Config) -> str:
    """Before the tests, what they changed of this machine, or need of it."""
    return config.stash[_OF_THE_MACHINE]


@pytest.fixture
async def no_waiting() -> AsyncIterator[None]:
    """For tests in which only this process does anything; see `leaping_clock`."""
    with leaping_clock():
        yield


class LongestFirst(LoadScopeScheduling):  # type: ignore[misc]
    """The tests of a file stay together; those of files that share something too."""

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        return next((group[0] for group in _TOGETHER if nodeid.startswith(group)), file)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """No test has an event loop that another one left, or that Python makes for the first: an Output needs its run."""
    asyncio.set_event_loop(None)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LongestFirst | None:
    """What `make test` runs in several processes: each takes the next file when it is done with one."""
    return LongestFirst(config, log) if config.getoption("dist") == "loadscope" else None


def pytest_collection_finish(session: pytest.Session) -> None:
    """Modules and tests stay to the end, when pytest looks for garbage five times: not through them."""
    gc.freeze()
    session.config.stash[_CPU] = _cpu_seconds()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """In parallel, what takes longest begins first, so that all processes end at the same time."""
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: _rank(item.nodeid))


def _rank(nodeid: str) -> int:
    result = (number for number, place in enumerate(_LONGEST) if nodeid.startswith(f"tests/{place}"))
    return next(result, len(_LONGEST))


def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """In parallel, one report of a test that passes, with the seconds and the CPU of all of it.

    CPU is what this process and all that it waited for took since the test before. Reports of set-up and tear-down
    say nothing more, nor that a test begins if that is not shown: what a process sends for each of 13,000 tests takes
    longer than most of them.
    """
    if not hasattr(item.config, "workerinput"):
        return None
    if item.config.option.verbose > 0:
        item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    reports = runtestprotocol(item, log=False, nextitem=nextitem)
    before, item.config.stash[_CPU] = item.config.stash[_CPU], _cpu_seconds()
    if all(report.passed for report in reports):
        reports = [_whole(reports)]
    reports[-1].user_properties.append(("cpu", item.config.stash[_CPU] - before))
    for report in reports:
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


def _whole(reports: list[pytest.TestReport]) -> pytest.TestReport:
    """The report of the call, with the seconds of all."""
    (call,) = (report for report in reports if report.when == "call")
    call.duration = sum(report.duration for report in reports)
    return call


def _cpu_seconds() -> float:
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(one.ru_utime + one.ru_stime for one in used)


def pytest_terminal_summary(terminalreporter: Any, exitstatus: int, config: pytest.Config) -> None:
    """Last, what did not run; in parallel, before it the files that took longest: seconds, and seconds of CPU."""
    _say_times(terminalreporter, config, exitstatus)
    left_out: defaultdict[tuple[str, str], int] = defaultdict(int)
    for report in terminalreporter.stats.get("skipped", ()):
        left_out[report.nodeid.partition("::")[0], report.longrepr[2].removeprefix("Skipped: ")] += 1
    if left_out:
        terminalreporter.section("not done")
    for (file, reason), count in left_out.items():
        terminalreporter.write_line(f"{file}: {count} tests did not run: {reason}")


def _say_times(terminalreporter: Any, config: pytest.Config, exitstatus: int) -> None:
    if not config.getoption("numprocesses", None):
        return
    times = times_by_file(chain.from_iterable(terminalreporter.stats.values()))
    # Processes of the tests have ended by now.
    sums = f"{sum(one.seconds for one in times.values()):.0f} s, {_cpu_seconds():.0f} s of CPU in all"
    terminalreporter.section(f"by file; {sums}")
    terminalreporter.write_line(table(times))
    kept = config.rootpath / KEPT
    for title, lines in (("slower", slower(times, last_times(kept))), ("TOO MUCH CPU", too_large(times))):
        if lines:
            terminalreporter.section(title, red=True, bold=True)
            terminalreporter.write_line("\n".join(lines))
    if exitstatus == pytest.ExitCode.OK and not config.option.keyword and not any("::" in item for item in config.args):
        keep(kept, times)
