from __future__ import annotations

import asyncio
import gc
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import pytest
import yaml
from tests.controller.build import Fixture, workload

from kueue_fleet.controller.main import ConfigurationError, Controller, Settings, collect_rarely, read_configuration
from kueue_fleet.controller.manager import ManagerState
from kueue_fleet.controller.reconcile import Reconciler
from kueue_fleet.controller.work_queue import WorkQueue
from kueue_fleet.kube.answers import ApiError

OFTEN = (100, 10, 10)
"""Thresholds of Python's garbage collector; its own begin with 700."""


def settings(folder: Path) -> Settings:
    file = folder / "config.yaml"
    file.write_text(yaml.safe_dump(Fixture().configuration.wire()))
    return Settings(file, folder, None, "127.0.0.1", 0)


class Poisoned:
    """Decides about everything but one key."""

    def __init__(self) -> None:
        self.decided: list[str] = []
        self.failed = 0

    async def reconcile(self, key: str) -> float | None:
        if key == "poison":
            self.failed += 1
            raise RuntimeError("a bug")
        if key == "refused" and "refused" not in self.decided:
            self.decided.append(key)
            raise ApiError(409, "Conflict", "somebody was faster")
        self.decided.append(key)
        return None


async def test_what_cannot_be_decided_keeps_nobody_else_from_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    controller, queue, reconciler = Controller(settings(tmp_path)), WorkQueue(time.time), Poisoned()
    for key in ("poison", "refused", "fine"):
        queue.add(key)
    task = asyncio.create_task(controller._reconcile(queue, cast("Reconciler", reconciler)))
    async with asyncio.timeout(10):
        while reconciler.failed < 2 or reconciler.decided.count("refused") < 2:
            await asyncio.sleep(0.01)
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    assert "fine" in reconciler.decided
    assert "a bug" in caplog.text
    assert b'kueue_fleet_failures_total{status="bug"}' in controller.metrics.text()
    assert b'kueue_fleet_failures_total{status="409"} 1.0' in controller.metrics.text()


@pytest.mark.parametrize("content", ["", "[", "fleet: 1", "{fleet: lab, namespace: x}"])
def test_a_configuration_that_cannot_be_read(tmp_path: Path, content: str) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(content)
    with pytest.raises(ConfigurationError, match="deploy the controller with its component, which writes it"):
        read_configuration(file)


def test_each_workers_configuration_has_the_defaults_of_the_release_there(tmp_path: Path) -> None:
    old = {"kueueRelease": "0.18"}
    known = Fixture().configuration.wire()
    file = tmp_path / "config.yaml"
    file.write_text(yaml.safe_dump({**known, "workers": [{**known["workers"][0], **old}, known["workers"][1]]}))
    controller = Controller(Settings(file, tmp_path, None, "127.0.0.1", 0))
    workers = [
        controller._worker(entry, WorkQueue(time.time), cast("ManagerState", None), {})
        for entry in controller._configuration.workers
    ]
    waits = [worker.configuration.wait_for_pods_ready is not None for worker in workers]
    assert waits == [False, True]


async def test_health_readiness_and_metrics(tmp_path: Path) -> None:
    controller = Controller(settings(tmp_path))
    request: Any = None
    assert (await controller._health(request)).status == 200
    assert (await controller._ready(request)).text == "standing by"
    assert b"kueue_fleet_leader 0.0" in cast("bytes", (await controller._metrics(request)).body)
    controller._leading, controller._alive_at = True, time.monotonic() - 61
    assert (await controller._health(request)).status == 503


async def test_a_new_workload_does_not_wait_for_all_others_when_a_worker_is_lost(tmp_path: Path) -> None:
    controller, queue, manager = Controller(settings(tmp_path)), WorkQueue(time.monotonic), Fixture().manager
    for number in range(100):
        manager.take_workload(f"ns/{number}", workload(str(number)))
    controller._add(queue, manager, None)
    controller._add(queue, manager, "ns/new")
    assert "ns/new" in [await queue.take(), await queue.take()]
    assert len(queue) == 99


def test_no_collection_looks_at_all_workloads_while_they_become_more() -> None:
    """With 20,000 of them, nominations waited for a second."""
    full: list[int] = []

    def note(phase: str, about: dict[str, int]) -> None:
        if phase == "start" and about["generation"] == 2:
            full.append(len(fixture.manager.records))

    fixture, before = Fixture(), gc.get_threshold()
    try:
        gc.set_threshold(*OFTEN)
        collect_rarely()
        # Python waits until a quarter of what the last one saw is new.
        gc.freeze()
        gc.collect()
        gc.callbacks.append(note)
        for number in range(5000):
            fixture.manager.take_workload(f"ns/{number}", workload(str(number)))
    finally:
        gc.callbacks.remove(note)
        gc.set_threshold(*before)
        gc.unfreeze()
    assert full == []
