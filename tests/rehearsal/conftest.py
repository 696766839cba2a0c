"""A supervisor in a folder of its own, on stand-ins for the engines."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.rehearsal.fake_engines import FakeEngines
from tests.rehearsal.forked_supervisor import ForkingSubprocess

import kueue_fleet
from kueue_rehearsal.paths import RehearsalPaths
from kueue_rehearsal.processes import supervisor_client
from kueue_rehearsal.processes.supervisor_client import RunningSupervisor, start_supervisor


class SupervisorStarter:
    """Starts supervisors on one state folder, and ends those that a test has left."""

    def __init__(self, folder: Path) -> None:
        self.engines = FakeEngines(folder / "engines")
        self.paths = RehearsalPaths(folder / "lab")
        self.cache = folder / "cache"
        self._started: list[RunningSupervisor] = []

    @property
    def environ(self) -> dict[str, str]:
        roots = (str(Path(kueue_fleet.__path__[0]).parent), str(Path(__file__).parents[2]))
        return {
            **os.environ,
            "KUBEBUILDER_ASSETS": str(self.engines.folder),
            "KUEUE_FLEET_CACHE_DIR": str(self.cache),
            "PYTHONPATH": os.pathsep.join(roots),
        }

    def __call__(self, *, services: str = "none", keep: bool = False) -> RunningSupervisor:
        running = start_supervisor(self.paths, keep=keep, services=services, environ=self.environ)
        self._started.append(running)
        return running

    def end(self) -> None:
        for running in self._started:
            running.stop()


@pytest.fixture
def forked_supervisors(monkeypatch: pytest.MonkeyPatch) -> None:
    """What starts supervisors in this process forks them."""
    monkeypatch.setattr(supervisor_client, "subprocess", ForkingSubprocess())


@pytest.fixture
def supervisor_starter(tmp_path: Path, forked_supervisors: None) -> Iterator[SupervisorStarter]:
    starter = SupervisorStarter(tmp_path)
    yield starter
    starter.end()
