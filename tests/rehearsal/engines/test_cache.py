"""Cache entries appear whole or not at all, and one builder works at a time."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from kueue_rehearsal.engines.cache import MANIFEST, EngineCache

DEADLINE_SECONDS = 20.0


@pytest.fixture
def cache(tmp_path: Path) -> EngineCache:
    return EngineCache(tmp_path / "engines")


def fill(folder: Path) -> None:
    (folder / "program").write_bytes(b"program" * 1000)
    (folder / "charts").mkdir()
    (folder / "charts" / "values.yaml").write_text("a: 1\n")


def test_a_stored_entry_is_found_under_its_key_only(cache: EngineCache) -> None:
    folder = cache.store("etcd", "k1", fill)
    assert cache.entry("etcd", "k1") == folder
    assert cache.entry("etcd", "k2") is None
    assert cache.entry("other", "k1") is None
    assert (folder / "charts" / "values.yaml").read_text() == "a: 1\n"


def same_size(folder: Path) -> None:
    (folder / "program").write_bytes(b"progrAm" * 1000)


def older(folder: Path) -> None:
    same_size(folder)
    os.utime(folder / "program", (1, 1))


DAMAGES: list[Callable[[Path], object]] = [
    lambda folder: (folder / "program").unlink(),
    lambda folder: (folder / "program").write_bytes(b""),
    lambda folder: (folder / MANIFEST).unlink(),
    lambda folder: (folder / MANIFEST).write_text('{"files": '),
    lambda folder: (folder / MANIFEST).write_text("[]"),
    lambda folder: (folder / MANIFEST).write_text('{"files": {}}'),
    same_size,
    older,
]


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_entry_is_no_entry_and_can_be_made_again(
    cache: EngineCache, damage: Callable[[Path], object]
) -> None:
    folder = cache.store("etcd", "k", fill)
    time.sleep(0.01)  # so that a file written now has another modification time
    damage(folder)
    assert cache.entry("etcd", "k") is None
    cache.store("etcd", "k", fill)
    assert cache.entry("etcd", "k") == folder


def test_a_copied_entry_with_other_times_is_still_whole(cache: EngineCache) -> None:
    folder = cache.store("etcd", "k", fill)
    os.utime(folder / "program", (1, 1))
    assert cache.entry("etcd", "k") == folder


def test_a_failed_build_leaves_nothing(cache: EngineCache) -> None:
    def fail(folder: Path) -> None:
        fill(folder)
        raise OSError("No space left on device")

    with pytest.raises(OSError, match="No space left"):
        cache.store("etcd", "k", fail)
    assert cache.entry("etcd", "k") is None
    assert list(cache.root.iterdir()) == []


def test_a_failed_build_keeps_the_entry_that_was_there(cache: EngineCache) -> None:
    def fail(folder: Path) -> None:
        raise ValueError

    folder = cache.store("etcd", "k", fill)
    with pytest.raises(ValueError):
        cache.store("etcd", "k", fail)
    assert cache.entry("etcd", "k") == folder


def _build_and_hang(root: Path, started: str) -> None:
    cache = EngineCache(root)

    def hang(folder: Path) -> None:
        fill(folder)
        Path(started).touch()
        time.sleep(600)

    with cache.locked("etcd", waiting=lambda: None):
        cache.store("etcd", "k", hang)


def _start_builder(cache: EngineCache, started: Path) -> multiprocessing.process.BaseProcess:
    builder = multiprocessing.get_context("spawn").Process(target=_build_and_hang, args=(cache.root, str(started)))
    builder.start()
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not started.exists():
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return builder


def test_a_builder_that_is_killed_is_waited_for_and_cleaned_up_after(cache: EngineCache, tmp_path: Path) -> None:
    builder = _start_builder(cache, tmp_path / "started")
    assert cache.entry("etcd", "k") is None, "a half-built entry was taken for whole"
    waited: list[float] = []

    def waiting() -> None:
        waited.append(time.monotonic())
        assert builder.pid is not None
        os.kill(builder.pid, signal.SIGKILL)

    with cache.locked("etcd", waiting):
        cache.store("etcd", "k", fill)
    builder.join()
    assert waited, "two builders worked on one engine at the same time"
    assert [path.name for path in cache.root.iterdir() if path.is_dir()] == ["etcd-k"]


def test_different_engines_do_not_wait_for_each_other(cache: EngineCache, tmp_path: Path) -> None:
    builder = _start_builder(cache, tmp_path / "started")
    try:
        with cache.locked("kueue", waiting=lambda: pytest.fail("waited for another engine")):
            cache.store("kueue", "k", fill)
    finally:
        builder.kill()
        builder.join()


def test_the_manifest_names_every_file(cache: EngineCache) -> None:
    folder = cache.store("etcd", "k", fill)
    assert set(json.loads((folder / MANIFEST).read_text())["files"]) == {"program", "charts/values.yaml"}
