"""How far simulated jobs use up the budgets of their teams."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Final

from kueue_admission.simulate.records import Record
from kueue_fleet.dispatch.budgets import BudgetDecision, Exemption, Ledger, TeamRun, decide_budget
from kueue_fleet.fleet_file import FleetSpec
from kueue_fleet.fleet_file.spending import BudgetUse, Held, budget_use, spending
from kueue_fleet.gke.labels import ACCELERATOR_RESOURCES, GPU_RESOURCE
from kueue_fleet.gke.prices import Prices
from kueue_fleet.jobs.fleet_job import FleetJob
from kueue_fleet.settings.budgets import Period
from kueue_fleet.settings.configuration import EnforcedBudgets

_SECONDS: Final = {"week": 7 * 86400.0, "month": 30 * 86400.0}


@dataclass(frozen=True, slots=True)
class SimulatedBudget(BudgetUse):
    """An amount of a budget in the week, or 30 days, that uses most of it."""

    begin: float = 0.0
    """Second in which that time begins; the first one begins at second 0."""

    def to_dict(self) -> dict[str, object]:
        """Its fields, as in the result."""
        return asdict(self)

    def __str__(self) -> str:
        return f"{BudgetUse.__str__(self)}, from second {self.begin:.0f} on"


def simulated_budgets(
    fleet: FleetSpec, prices: Prices, records: Sequence[Record], end: float
) -> Iterator[SimulatedBudget]:
    """Each amount of each budget, where it is used up most; `end` is when the simulation is over."""
    budgeted_teams = [team for team in fleet.teams if team.budget is not None]
    usage = list(_gpu_use(fleet, records, end)) if budgeted_teams else []
    for team in budgeted_teams:
        assert team.budget is not None
        length = _SECONDS[team.budget.per]
        own = [use for use in usage if use.team == team.name]
        begins = sorted(
            {begin * length for use in own for begin in range(_nth(use.begin, length), _nth(use.end, length) + 1)}
        )
        budgets: dict[str, SimulatedBudget] = {}
        for begin in begins or [0.0]:
            used = spending(fleet, own, prices, begin, begin + length)[team.name]
            for use in budget_use(team.name, team.budget, used):
                if use.of not in budgets or _amount(use) > _amount(budgets[use.of]):
                    budgets[use.of] = SimulatedBudget(**asdict(use), begin=begin)
        yield from budgets.values()


def _amount(use: BudgetUse) -> tuple[float, float]:
    """The amount that is known, then the hours without a price."""
    return use.used, sum(use.unpriced.values())


def _nth(time: float, length: float) -> int:
    return int(time // length)


def _gpu_use(fleet: FleetSpec, records: Sequence[Record], end: float) -> Iterator[Held]:
    for record in records:
        team = fleet.team_of.get(record.namespace)
        for run in record.runs if team is not None else ():
            for (flavor, resource), count in run.usage.items():
                if resource in ACCELERATOR_RESOURCES and count:
                    places = frozenset({(run.cluster or fleet.home, flavor)})
                    yield Held(team or "", resource, count, places, run.admitted_at, run.ended_at or end)


class HeldBack:
    """Which jobs of a simulated fleet their teams' budgets hold back, as the fleet's controller does.

    Weeks, and months of 30 days, begin at second 0. No job has labels by which somebody allows it to go over a budget.
    """

    def __init__(self, rules: EnforcedBudgets) -> None:
        self._rules = rules
        self._ledger = Ledger(rules.teams, _period_of)
        self._running: dict[str, FleetJob] = {}

    def admitted(self, job: FleetJob) -> None:
        """A job begins to use GPUs, or TPU chips."""
        if job.record.namespace in self._rules.namespaces:
            self._running[job.record.key] = job

    def decide(self, job: FleetJob, now: float) -> BudgetDecision:
        """Whether a job passes."""
        team = self._rules.namespaces.get(job.record.namespace)
        devices = any(name in ACCELERATOR_RESOURCES for name, _ in job.workload.requests)
        over = None
        if team is not None and devices:
            self._ledger.count((run for job_runs in self._running.values() for run in self._runs(job_runs)), now)
            self._running = {key: value for key, value in self._running.items() if value.record.finished_at is None}
            over = self._ledger.over(team, now)
        rest_of_budget = self._rules.left_to(team, job.record.cluster_queue)
        return decide_budget(over, Exemption(), rest_of_budget, job.workload.allowed_flavors, now)

    def _runs(self, job: FleetJob) -> Iterator[TeamRun]:
        for run in job.record.runs:
            prices = self._rules.usd.get(run.cluster or self._rules.cluster, {})
            counts = {key: count for key, count in run.usage.items() if key[1] in ACCELERATOR_RESOURCES}
            gpus = sum(count for (_, resource), count in counts.items() if resource == GPU_RESOURCE)
            usd = sum(count * prices.get(flavor, 0.0) for (flavor, _), count in counts.items())
            team = self._rules.namespaces[job.record.namespace]
            yield TeamRun(team, gpus, usd, run.admitted_at, run.ended_at)


def _period_of(now: float, per: Period) -> tuple[float, float]:
    begin = _nth(now, _SECONDS[per]) * _SECONDS[per]
    return begin, begin + _SECONDS[per]
