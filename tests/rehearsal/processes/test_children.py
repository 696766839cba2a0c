"""The processes of one owner: names, deaths, restarts."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from kueue_rehearsal.paths import RehearsalError
from kueue_rehearsal.processes import children as children_module
from kueue_rehearsal.processes.child_process import ChildProcess, ProcessSpec
from kueue_rehearsal.processes.children import Children, describe_end

DEADLINE_SECONDS = 20.0


def sleeper(folder: Path, name: str = "sleeper", script: str = "exec sleep 600") -> ProcessSpec:
    return ProcessSpec(name=name, argv=("/bin/sh", "-c", script), log=folder / f"{name}.log")


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(DEADLINE_SECONDS):
        while not condition():
            await asyncio.sleep(0.01)


@pytest.fixture
def _quick_restarts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(children_module, "RESTART_DELAYS_SECONDS", (0.01, 0.02, 0.03))


def test_how_a_process_ended() -> None:
    assert describe_end(3) == "ended with exit code 3"
    assert describe_end(-9) == "was killed by SIGKILL"
    assert describe_end(-200) == "was killed by signal 200"


async def test_a_name_is_used_by_one_living_process(tmp_path: Path) -> None:
    children = Children("worker")
    first = children.spawn(sleeper(tmp_path))
    with pytest.raises(RehearsalError, match=f"worker: sleeper runs already as process {first.pid}; stop it first"):
        children.spawn(sleeper(tmp_path))
    await children.stop_named("sleeper")
    second = children.spawn(sleeper(tmp_path))
    assert children.running("sleeper") is second
    await children.stop()


async def test_a_death_is_logged_told_and_shown(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    dead: list[ChildProcess] = []
    children = Children("worker", dead.append)
    child = children.spawn(sleeper(tmp_path, script="echo last words; exit 4"))
    await until(lambda: dead)
    assert dead == [child]
    assert "worker: sleeper ended with exit code 4; its log is" in caplog.text
    assert "last words" in caplog.text
    assert children.status()["sleeper"]["state"] == "ended with exit code 4"
    assert children.running("sleeper") is None
    assert children.alive() == []


async def test_a_stop_is_no_death(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    children = Children("worker", lambda child: pytest.fail("a stopped process was taken for a dead one"))
    children.spawn(sleeper(tmp_path), restart=True)
    await children.stop_named("sleeper")
    assert children.status()["sleeper"]["state"] == "stopped"
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


@pytest.mark.usefixtures("_quick_restarts")
async def test_a_process_that_may_is_started_again(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    children = Children("worker")
    first = children.spawn(sleeper(tmp_path), restart=True)
    assert children.signal("sleeper", signal.SIGKILL) == first.pid
    await until(lambda: children.running("sleeper") not in (None, first))
    assert "sleeper was killed by SIGKILL; it is started again in" in caplog.text
    assert children.status()["sleeper"]["restarts"] == 1
    await children.stop()


@pytest.mark.usefixtures("_quick_restarts")
async def test_a_crash_loop_goes_on_at_the_longest_pause(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    children = Children("worker")
    children.spawn(sleeper(tmp_path, script="echo run; exit 1"), restart=True)
    await until(lambda: len((tmp_path / "sleeper.log").read_text().split()) > 6)
    pauses = [record.args[3] for record in caplog.records if isinstance(record.args, tuple)]
    assert pauses[:6] == [0.01, 0.02, 0.03, 0.03, 0.03, 0.03]
    await children.stop()


@pytest.mark.usefixtures("_quick_restarts")
async def test_a_long_life_is_a_new_beginning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(children_module, "_FORGIVEN_AFTER_SECONDS", -1.0)
    children = Children("worker")
    children.spawn(sleeper(tmp_path, script="echo run; exit 1"), restart=True)
    await until(lambda: len((tmp_path / "sleeper.log").read_text().split()) > 6)
    pauses = {record.args[3] for record in caplog.records if isinstance(record.args, tuple)}
    assert pauses == {0.01}
    await children.stop()


async def test_a_pending_restart_is_shown_and_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(children_module, "RESTART_DELAYS_SECONDS", (0.3,))
    children = Children("worker")
    children.spawn(sleeper(tmp_path, script="exit 1"), restart=True)
    await until(lambda: "to be started again" in str(children.status()["sleeper"]["state"]))
    await children.stop()
    assert children.status()["sleeper"]["state"] == "ended with exit code 1"
    await asyncio.sleep(0.4)
    assert children.alive() == []


async def test_the_last_are_stopped_after_all_others(tmp_path: Path) -> None:
    order = tmp_path / "order"
    trap = f"trap '%s; echo %s >> {order}; exit 0' TERM; echo up; while :; do sleep 0.02; done"
    children = Children("worker")
    # The first ends only after the second, which is told to end meanwhile.
    after_two = f"until grep -qs two {order}; do sleep 0.02; done"
    for name, wait in (("api", ":"), ("one", after_two), ("two", ":")):
        children.spawn(sleeper(tmp_path, name, trap % (wait, name)))
    await until(lambda: all((tmp_path / f"{name}.log").read_text() for name in ("api", "one", "two")))
    await children.stop("api")
    assert order.read_text().split() == ["two", "one", "api"]


async def test_nothing_starts_after_the_stop(tmp_path: Path) -> None:
    children = Children("worker")
    await children.stop()
    with pytest.raises(RehearsalError, match="it is being stopped"):
        children.spawn(sleeper(tmp_path))


async def test_a_signal_to_a_process_that_does_not_run() -> None:
    with pytest.raises(LookupError):
        Children("worker").signal("nobody", signal.SIGKILL)


async def test_old_ends_are_forgotten(tmp_path: Path) -> None:
    children = Children("worker")
    for number in range(40):
        await children.spawn(sleeper(tmp_path, f"job-{number}", "exit 0")).wait()
    names = list(children.status())
    assert len(names) <= 33
    assert names[-1] == "job-39"
