"""A history in a bucket of Cloud Storage, by whoever may only create and read objects below a path there."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.history.limited_bucket import PATH
from tests.history.test_store import life

from kueue_admission.history.store import NOTE_SECONDS, Store


class Bucket:
    """Where it is, and what was done to it."""

    def __init__(self, log: Path) -> None:
        self._log = log
        while "\n" not in log.read_text():
            pass
        self.where = f"gs://anonymous@b/{PATH}?endpoint_override=127.0.0.1:{self.lines[0]}&scheme=http"

    @property
    def lines(self) -> list[str]:
        return self._log.read_text().splitlines()

    def done(self, what: str) -> list[str]:
        return [line for line in self.lines if line.startswith(what)]


@pytest.fixture
def bucket(tmp_path: Path) -> Iterator[Bucket]:
    command = [sys.executable, "-m", "tests.history.limited_bucket"]
    with (
        (tmp_path / "log").open("w") as log,
        subprocess.Popen(command, stdout=log, stderr=subprocess.DEVNULL) as server,
    ):
        try:
            yield Bucket(tmp_path / "log")
        finally:
            server.kill()


def test_objects_are_created_once_and_nothing_else_is_asked_for(bucket: Bucket) -> None:
    store = Store(bucket.where, create=True, appends=True)
    for number in (0, 1, 2, 0):
        store.add(life(f"u{number}"))
    again = Store(bucket.where, create=True, appends=True)
    result = again.keys({"u0", "u1", "u99"}, 0.0)
    assert (sorted(result), again.open("manager")) == (["u0", "u1"], [])
    assert len(again.read()) == 3 * 4
    assert (bucket.done("refused"), len(bucket.done("created"))) == ([], 1 + 3)


def test_what_is_followed_is_noted_by_the_hour_and_at_the_end(bucket: Bucket) -> None:
    store = Store(bucket.where, create=True, appends=True)
    for minute in range(90):
        store.follow({"m": 60.0 * minute}, 60.0 * minute + 60)
    assert Store(bucket.where).followed == {"m": [(0.0, NOTE_SECONDS)]}
    store.follow({"m": 9000.0}, 9060.0)
    store.finish()
    assert Store(bucket.where).followed == {"m": [(0.0, 5400.0), (9000.0, 9060.0)]}
    assert (bucket.done("refused"), len(bucket.done("created"))) == ([], 1 + 3)
