"""One object, read field by field."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import datetime

import pytest

from kueue_admission.kernel.problem import Problem
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


def test_a_duration_is_in_seconds_and_a_weight_is_a_number() -> None:
    problems: list[Problem] = []
    fields = Fields({"a": "1m30s", "b": 5, "c": "5 minutes", "w": {"cpu": 2, "x": "2", "y": True}}, "", problems)
    assert [fields.length(name, 7.0) for name in ("a", "b", "c", "d")] == [90.0, 7.0, 7.0, 7.0]
    assert fields.numbers("w") == {"cpu": 2.0}
    assert [str(problem) for problem in problems] == [
        "b: is the number 5, not a duration; write it as 30m",
        'c: "5 minutes" is not a valid duration; write numbers with units, such as 90s, 30m or 1h30m',
        "w.x: is the text '2', not a number; write a number without quotes",
        "w.y: is true, not a number; write a number without quotes",
    ]
