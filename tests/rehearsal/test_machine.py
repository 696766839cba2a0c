"""What is looked at before a rehearsal starts anything."""

from __future__ import annotations

import os
import re
import resource
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from kueue_rehearsal.machine import check_machine
from kueue_rehearsal.paths import RehearsalError, RehearsalPaths
from small_fleets import WORKER, fleet

MANY_REPLICAS = fleet(WORKER, kueue={"replicas": 100}, jobSet={"enabled": True})
LITTLE = (
    r"^fs\.inotify\.max_user_instances: a rehearsal of 2 clusters needs 418 inotify instances, you can have "
    r"[0-4] more; run `sudo sysctl fs\.inotify\.max_user_instances=\d+`, or end other programs that watch files$"
)


@pytest.fixture
def few_descriptors() -> Iterator[None]:
    """An inotify instance is refused in the same way to a process that has no file descriptor left."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with open(os.devnull) as free:
        resource.setrlimit(resource.RLIMIT_NOFILE, (free.fileno() + 4, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_machine_with_room(tmp_path: Path) -> None:
    before = os.listdir("/proc/self/fd")
    check_machine(RehearsalPaths(tmp_path), fleet())
    assert len(os.listdir("/proc/self/fd")) == len(before)


@pytest.mark.usefixtures("few_descriptors")
def test_too_few_inotify_instances(tmp_path: Path) -> None:
    with pytest.raises(RehearsalError, match=LITTLE):
        check_machine(RehearsalPaths(tmp_path), MANY_REPLICAS)


@pytest.mark.usefixtures("few_descriptors")
def test_everything_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    full = shutil.disk_usage(tmp_path)._replace(free=0)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: full)
    with pytest.raises(RehearsalError) as refused:
        check_machine(RehearsalPaths(tmp_path), MANY_REPLICAS)
    disk, inotify = str(refused.value).splitlines()
    assert disk.startswith(f"{tmp_path}: a rehearsal of 2 clusters needs about 400 MiB of disk, 0 MiB are free; ")
    assert re.match(LITTLE, inotify)
