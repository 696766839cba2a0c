"""What teams use in a week or month, and what that costs, against their budgets.

The status of a live fleet, and the simulation, say who held how many GPUs of which flavor, from when to when. Where it
is not known which flavor a job had, its cost lies between two amounts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final, Literal

from kueue_fleet.fleet_file.cost import accelerator_hour
from kueue_fleet.fleet_file.model.fleet import FleetSpec
from kueue_fleet.fleet_file.model.teams import TeamBudget
from kueue_fleet.gke.labels import GPU_RESOURCE
from kueue_fleet.gke.prices import Prices

NEAR_PERCENT: Final = 80
"""Share of a budget from which on it is near."""
Period = Literal["week", "month"]
"""What a budget is for."""


@dataclass(frozen=True, slots=True)
class Held:
    """GPUs, or chips of TPUs, that a job held."""

    team: str
    resource: str
    count: int
    places: frozenset[tuple[str, str]]
    """Cluster and flavor, of one of which they were."""
    begin: float
    """In seconds, as `end`."""
    end: float


@dataclass(slots=True)
class Spending:
    """What a team used."""

    gpu_hours: float = 0.0
    usd_least: float = 0.0
    usd_most: float = 0.0
    """As `usd_least` where each job's flavor is known."""
    unknown: dict[str, None] = field(default_factory=dict)
    """What is not in the sums of USD."""


@dataclass(frozen=True, slots=True)
class BudgetUse:
    """How far one amount of a budget is used up."""

    team: str
    of: Literal["GPU hours", "USD"]
    used: float
    limit: int
    per: Period

    @property
    def percent(self) -> int:
        """How much of it, rounded down."""
        return int(100 * self.used / self.limit)

    @property
    def is_near(self) -> bool:
        """Whether it is nearly used up, or exceeded."""
        return self.percent >= NEAR_PERCENT

    def __str__(self) -> str:
        most = "up to " if self.of == "USD" else ""
        return f"{self.team}: {most}{self.used:,.0f} of {self.limit:,} {self.of} per {self.per}, {self.percent} %"


def spending(
    fleet: FleetSpec, held: Iterable[Held], prices: Prices, begin: float, end: float
) -> Mapping[str, Spending]:
    """What each team of the fleet used from `begin` to `end`."""
    costs: dict[tuple[str, str], float | str] = {}
    found = {team.name: Spending() for team in fleet.teams}
    for each in held:
        hours = each.count * max(0.0, min(each.end, end) - max(each.begin, begin)) / 3600
        if not hours:
            continue
        team = found[each.team]
        team.gpu_hours += hours if each.resource == GPU_RESOURCE else 0.0
        amounts = []
        for place in sorted(each.places):
            if place not in costs:
                costs[place] = accelerator_hour(fleet, *place, prices)
            amount = costs[place]
            if isinstance(amount, str):
                team.unknown[amount] = None
            else:
                amounts.append(amount * hours)
        team.usd_least += min(amounts, default=0.0)
        team.usd_most += max(amounts, default=0.0)
    return found


def budget_use(team: str, budget: TeamBudget, used: Spending) -> Sequence[BudgetUse]:
    """How far the amounts of a budget are used up; of a cost that lies between two amounts, the larger one counts."""
    hours = budget.gpu_hours and BudgetUse(team, "GPU hours", used.gpu_hours, budget.gpu_hours, budget.per)
    usd = budget.usd and BudgetUse(team, "USD", used.usd_most, budget.usd, budget.per)
    return [each for each in (hours, usd) if each]


def period_start(now: datetime, per: Period) -> datetime:
    """When the week or month of `now` began, in the time zone of `now`."""
    day = now.replace(hour=0, minute=0, second=0, microsecond=0)
    return day.replace(day=1) if per == "month" else day - timedelta(days=day.weekday())
