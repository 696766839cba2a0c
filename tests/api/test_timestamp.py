"""Points in time."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pytest
from pydantic import TypeAdapter, ValidationError

from kueue_admission.kernel.timestamp import Timestamp, timestamp_text

READ = TypeAdapter(Timestamp)
NOON = datetime(2026, 12, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("2026-12-01T12:00:00Z", NOON),
        ("2026-12-01T13:00:00+01:00", NOON),
        ("2026-12-01 12:00:00 +0000 UTC", NOON),
        ("2026-12-01", datetime(2026, 12, 1, tzinfo=UTC)),
        (date(2026, 12, 1), datetime(2026, 12, 1, tzinfo=UTC)),
        (datetime(2026, 12, 1, 12), NOON),  # noqa: DTZ001  (as YAML parsers that know times give it)
    ],
)
def test_read(written: object, meant: datetime) -> None:
    assert READ.validate_python(written) == meant


@pytest.mark.parametrize(
    "written",
    [
        *("soon", "2026-12-01T12:00:00", "2026-13-01", 20261201, True, None, ""),
        *("9999-12-31", "0001-01-01T00:00:00+10:00", date(9999, 12, 31), datetime(9999, 12, 31, tzinfo=UTC)),
    ],
)
def test_refused(written: object) -> None:
    with pytest.raises(ValidationError):
        READ.validate_python(written)


def test_text() -> None:
    assert timestamp_text(NOON) == "2026-12-01T12:00:00Z"
    assert READ.dump_python(NOON, mode="json") == "2026-12-01T12:00:00Z"
