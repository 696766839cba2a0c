"""Timestamps, as Google Cloud writes them."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Annotated

from pydantic import BeforeValidator, PlainSerializer
from pydantic_core import PydanticCustomError

_HELP = 'write UTC such as "2026-12-01T00:00:00Z"'


def _timestamp(value: object) -> object:
    if isinstance(value, datetime):
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day, tzinfo=UTC)
    # Pulumi's reader knows times, and hands them over in Go's spelling.
    text = value.replace(" +0000 UTC", "Z") if isinstance(value, str) else ""
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        found = None
    if found is None:
        raise PydanticCustomError("syntax", "{reason}", {"reason": f"is not a valid time; {_HELP}"})
    if found.tzinfo is None and len(text) > 10:
        raise PydanticCustomError("syntax", "{reason}", {"reason": f"does not say its time zone; {_HELP}"})
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)


def timestamp_text(value: datetime) -> str:
    """The timestamp as Google's APIs take it: UTC, to the second."""
    return value.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


Timestamp = Annotated[datetime, BeforeValidator(_timestamp), PlainSerializer(timestamp_text, return_type=str)]
"""A timestamp, in UTC."""
