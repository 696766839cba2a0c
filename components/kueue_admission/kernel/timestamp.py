"""Timestamps, as Google Cloud writes them."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Annotated, Final

from pydantic import BeforeValidator, PlainSerializer
from pydantic_core import PydanticCustomError

from kueue_admission.kernel.form_rules import BAD_AMOUNT, OUT_OF_RANGE, Fault
from kueue_admission.kernel.given import Given

_HELP = 'write UTC such as "2026-12-01T00:00:00Z"'
_YEARS: Final = range(1970, 2200)
"""Years to which any Duration can be added."""


def _timestamp(value: object) -> object:
    if isinstance(value, date) and value.year not in _YEARS:
        raise _out_of_range(value)
    if isinstance(value, datetime):
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day, tzinfo=UTC)
    # Pulumi's reader knows times, and hands them over in Go's spelling.
    text = value.replace(" +0000 UTC", "Z") if isinstance(value, str) else ""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        moment = None
    if moment is None:
        raise Fault("is not a valid time", _HELP, BAD_AMOUNT).error()
    if moment.tzinfo is None and len(text) > 10:
        raise Fault("does not say its time zone", _HELP, BAD_AMOUNT).error()
    if moment.year not in _YEARS:
        raise _out_of_range(moment)
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def _out_of_range(value: date) -> PydanticCustomError:
    return Fault(f"is in the year {value.year}", f"write a year from {_YEARS[0]} to {_YEARS[-1]}", OUT_OF_RANGE).error()


def timestamp_text(value: datetime) -> str:
    """The timestamp as Google's APIs take it: UTC, to the second."""
    return value.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


Timestamp = Annotated[datetime, BeforeValidator(_timestamp), PlainSerializer(timestamp_text, return_type=str)]
"""A timestamp, in UTC."""
TimestampField = Given[Timestamp, datetime | date | str]
"""A field that holds a timestamp, and takes one, a day or ISO 8601 text."""
OptionalTimestampField = Given[Timestamp | None, datetime | date | str | None]
"""The same, or None."""
