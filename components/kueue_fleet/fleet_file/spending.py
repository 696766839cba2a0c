"""What teams use in a week or month, and what that costs, against their budgets.

The status of a live fleet, and the simulation, say who held how many GPUs of which flavor, from when to when. Where it
is not known which flavor a job had, its cost lies between two amounts. What has no price is not free: its hours stand
beside the amount, which is then the least that is known.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from kueue_fleet.fleet_file.cost import Unpriced, accelerator_hour
from kueue_fleet.fleet_file.model.flavor_nodes import shares_of
from kueue_fleet.fleet_file.model.fleet import FleetSpec
from kueue_fleet.gke.labels import GPU_RESOURCE
from kueue_fleet.gke.prices import Prices
from kueue_fleet.settings.budgets import Period, TeamBudget

NEAR_PERCENT: Final = 80
"""Share of a budget from which on it is near."""
_HELD: Final = {"wait": "; new jobs wait", "interruptibleOnly": "; new jobs may have interruptible flavors only"}


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
    """As pods request them: a share of a GPU counts as one."""
    whole_gpu_hours: float = 0.0
    """The same in whole GPUs; the most, where it is not known on which flavor a job was."""
    usd_least: float = 0.0
    usd_most: float = 0.0
    """As `usd_least` where each job's flavor is known."""
    unpriced: dict[tuple[str, Unpriced], float] = field(default_factory=dict)
    """Hours that are not in the sums of USD, by resource and by what has no price."""

    @property
    def unpriced_hours(self) -> Mapping[str, float]:
        """The same by what they are: `GPU hours of a3-highgpu-8g`."""
        hours_by_reason: dict[str, float] = {}
        for (resource, unpriced_amount), hours in self.unpriced.items():
            of = f"{'GPU' if resource == GPU_RESOURCE else 'TPU chip'} hours of {unpriced_amount.what}"
            hours_by_reason[of] = hours_by_reason.get(of, 0.0) + hours
        return hours_by_reason


@dataclass(frozen=True, slots=True)
class BudgetUse:
    """How far one amount of a budget is used up."""

    team: str
    of: Literal["GPU hours", "USD"]
    used: float
    limit: int
    per: Period
    whole_gpu_hours: float | None = None
    """As `used` in whole GPUs, where that differs."""
    unpriced: Mapping[str, float] = field(default_factory=dict)
    """Hours used besides whose price is not known, by what they are: `GPU hours of a3-highgpu-8g`."""
    enforce: str | None = None
    """As in the file."""

    @property
    def percent(self) -> int:
        """How much of it, rounded down; with hours that have no price, at least so much."""
        return int(100 * self.used / self.limit)

    @property
    def is_near(self) -> bool:
        """Whether it is nearly used up, or exceeded, or may be, since not all prices are known."""
        return self.percent >= NEAR_PERCENT or bool(self.unpriced)

    def __str__(self) -> str:
        held_text = _HELD[self.enforce] if self.enforce is not None and self.used >= self.limit else ""
        if self.unpriced:
            used_text = f"at least {self.used:,.0f} {self.of} + {without_price(self.unpriced)}"
            return f"{self.team}: {used_text}, of {self.limit:,} {self.of} per {self.per}{held_text}"
        most = "up to " if self.of == "USD" else ""
        whole = "" if self.whole_gpu_hours is None else f" ({self.whole_gpu_hours:,.0f} of whole GPUs)"
        amount = f"{most}{self.used:,.0f} of {self.limit:,} {self.of} per {self.per}"
        return f"{self.team}: {amount}, {self.percent} %{whole}{held_text}"


def spending(
    fleet: FleetSpec, holdings: Iterable[Held], prices: Prices, begin: float, end: float
) -> Mapping[str, Spending]:
    """What each team of the fleet used from `begin` to `end`."""
    costs: dict[tuple[str, str], float | Unpriced] = {}
    spendings = {team.name: Spending() for team in fleet.teams}
    for use in holdings:
        hours = use.count * max(0.0, min(use.end, end) - max(use.begin, begin)) / 3600
        if not hours:
            continue
        team = spendings[use.team]
        if use.resource == GPU_RESOURCE:
            team.gpu_hours += hours
            team.whole_gpu_hours += hours / min((_shares(fleet, *place) for place in use.places), default=1)
        for place in use.places - costs.keys():
            costs[place] = accelerator_hour(fleet, *place, prices)
        amounts = [costs[place] for place in sorted(use.places)]
        unpriced_amount = next((amount for amount in amounts if isinstance(amount, Unpriced)), None)
        if unpriced_amount is not None:
            key = use.resource, unpriced_amount
            team.unpriced[key] = team.unpriced.get(key, 0.0) + hours
            continue
        usd = [amount * hours for amount in amounts if not isinstance(amount, Unpriced)]
        team.usd_least += min(usd, default=0.0)
        team.usd_most += max(usd, default=0.0)
    return spendings


def _shares(fleet: FleetSpec, cluster: str, flavor: str) -> int:
    entry = fleet.flavor(flavor)
    return 1 if entry is None else shares_of(entry, fleet.flavor_nodes(entry, cluster))


def without_price(hours: Mapping[str, float]) -> str:
    """The hours of `Spending.unpriced_hours` in words."""
    return " + ".join(f"{count:,.0f} {of}" for of, count in hours.items()) + " without a price"


def budget_use(team: str, budget: TeamBudget, used_spending: Spending) -> Sequence[BudgetUse]:
    """How far the amounts of a budget are used up.

    Of a cost that lies between two amounts the larger one counts; with hours that have no price, the smaller one.
    """
    whole = None if used_spending.whole_gpu_hours == used_spending.gpu_hours else used_spending.whole_gpu_hours
    hours = budget.gpu_hours and BudgetUse(
        team, "GPU hours", used_spending.gpu_hours, budget.gpu_hours, budget.per, whole, enforce=budget.enforce
    )
    amount = used_spending.usd_least if used_spending.unpriced else used_spending.usd_most
    unpriced_hours = used_spending.unpriced_hours
    usd = budget.usd and BudgetUse(
        team, "USD", amount, budget.usd, budget.per, unpriced=unpriced_hours, enforce=budget.enforce
    )
    return [figure for figure in (hours, usd) if figure]
