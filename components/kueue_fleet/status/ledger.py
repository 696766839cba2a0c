"""What teams used in each week or month, by the history, and how far that used up their budgets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from kueue_admission.history.jobs import Past
from kueue_fleet.fleet_file import FleetSpec
from kueue_fleet.fleet_file.model.per_cluster import cluster_queue_of
from kueue_fleet.fleet_file.spending import BudgetUse, Held, Spending, budget_use, spending
from kueue_fleet.gke.labels import ACCELERATOR_RESOURCES
from kueue_fleet.gke.prices import Prices
from kueue_fleet.settings.budgets import Period, period_of
from kueue_fleet.status.history import possible_places


@dataclass(frozen=True, slots=True)
class Entry:
    """A team in a week or month; `budget`: its amounts, where the file has one for such a time."""

    begin: str
    """Its first day, in UTC."""
    team: str
    used: Spending
    budget: Sequence[BudgetUse]


def ledger(fleet: FleetSpec, past: Past, prices: Prices, per: Period) -> Iterator[Entry]:
    """Each team that used something, in the order of time. Teams that are not in the file any more are left out."""
    usage = list(_gpu_use(fleet, past))
    if not usage:
        return
    begin, end = period_of(min(entry.begin for entry in usage), per)
    while begin < past.end:
        for team, used in spending(fleet, usage, prices, begin, end).items():
            entry = next(team_entry for team_entry in fleet.teams if team_entry.name == team)
            budget = entry.budget if entry.budget is not None and entry.budget.per == per else None
            if used.gpu_hours or used.usd_most or used.unpriced:
                day = datetime.fromtimestamp(begin, UTC).date().isoformat()
                yield Entry(day, team, used, budget_use(team, budget, used) if budget is not None else ())
        begin, end = period_of(end, per)


def without_times(fleet: FleetSpec, past: Past) -> int:
    """Jobs with GPUs or TPUs of which only how long they ran is known, not when, so that they are in no week."""
    known_jobs = [
        job for job in past.jobs if not job.runs and job.run_seconds and job.arrival.namespace in fleet.team_of
    ]
    return sum(bool(ACCELERATOR_RESOURCES & (job.arrival.requests or {}).keys()) for job in known_jobs)


def _gpu_use(fleet: FleetSpec, past: Past) -> Iterator[Held]:
    teams, queues = {team.name for team in fleet.teams}, cluster_queue_of(fleet)
    for job in past.jobs:
        arrival = job.arrival
        team = arrival.team or fleet.team_of.get(arrival.namespace, "")
        queue = arrival.cluster_queue or queues.get(f"{arrival.namespace}/{arrival.queue}", "")
        counts = {
            name: round(count) for name, count in (arrival.requests or {}).items() if name in ACCELERATOR_RESOURCES
        }
        for run in job.runs if team in teams else ():
            for resource, count in counts.items():
                possible = possible_places(fleet, run.cluster, queue, resource)
                known_places = frozenset(place for place in possible if place[1] in run.flavors)
                end = past.end if run.ended is None else run.ended
                yield Held(team, resource, count, known_places or possible, run.admitted, end)
