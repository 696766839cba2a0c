"""The weeks and months that budgets are for."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Literal

Period = Literal["week", "month"]
"""What a budget is for."""


def period_start(now: datetime, per: Period) -> datetime:
    """When the week or month of `now` began, in the time zone of `now`."""
    day = now.replace(hour=0, minute=0, second=0, microsecond=0)
    return day.replace(day=1) if per == "month" else day - timedelta(days=day.weekday())


def period_of(now: float, per: Period) -> tuple[float, float]:
    """When the week or month of `now` begins and ends in UTC; all in seconds of the epoch."""
    begin = period_start(datetime.fromtimestamp(now, UTC), per)
    after = begin + timedelta(days=7 if per == "week" else 31)
    return begin.timestamp(), period_start(after, per).timestamp()
