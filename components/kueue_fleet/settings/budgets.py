"""Budgets of teams, and the weeks and months that they are for."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Literal

from kueue_admission.kernel.base import AtLeastOne, RuledModel
from kueue_admission.kernel.form_rules import NEEDED
from kueue_admission.kernel.problem import Problem

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


class TeamBudget(RuledModel):
    """The most that a team plans to use. It warns, and with `enforce` it holds jobs back."""

    gpu_hours: AtLeastOne | None = None
    """GPUs that pods request, times the hours that jobs hold them; a share counts as one, chips of TPUs do not."""
    usd: AtLeastOne | None = None
    """Cost of these GPUs, and chips of TPUs, with their machines, by the prices of `kueue-fleet cost`."""
    per: Literal["week", "month"] = "month"
    """Weeks begin on Monday, months on the first, at 00:00 UTC; default month."""
    enforce: Literal["wait", "interruptibleOnly"] | None = None
    """What new jobs with GPUs or TPUs may use once it is used up, until the next week or month: nothing, or only Spot
    and flex-start. Default: no limit.
    """

    def own_problems(self) -> Iterator[Problem]:
        """It says an amount."""
        if self.gpu_hours is None and self.usd is None:
            yield NEEDED.at("", "has no amount", "set gpuHours, usd or both")
