"""One object, read field by field."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import datetime

import pytest

from kueue_admission.read.fields import Fields


@pytest.fixture
def _tokyo(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as there:
        there.setenv("TZ", "Asia/Tokyo")
        time.tzset()
        yield
    time.tzset()


@pytest.mark.usefixtures("_tokyo")
@pytest.mark.parametrize(
    "given",
    ["2026-01-31T12:00:00Z", "2026-01-31T12:00:00", "2026-01-31T21:00:00+09:00", datetime(2026, 1, 31, 12)],  # noqa: DTZ001
)
def test_a_time_without_a_zone_is_utc_on_every_machine(given: object) -> None:
    assert Fields({"at": given}, "", []).seconds("at") == 1_769_860_800.0
