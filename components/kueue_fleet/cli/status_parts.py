"""What the forms of `status` have in common: the reading of a fleet, and lines of teams, goals and budgets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from kueue_admission.cli import console, simulate_goals
from kueue_admission.cli.console import Styled
from kueue_admission.cli.tables import Column, Table
from kueue_fleet.cli.past_goals import judged_goals
from kueue_fleet.fleet_file import FleetSpec
from kueue_fleet.gke.prices import Prices

if TYPE_CHECKING:
    from rich.console import RenderableType

    from kueue_admission.read.goals import Judged
    from kueue_fleet.fleet_file.spending import BudgetUse
    from kueue_fleet.status import ClusterObjects, FleetStatus, TeamUse


def status_of(
    fleet: FleetSpec, by_name: Mapping[str, ClusterObjects], prices: Prices, store: str | None, now: datetime
) -> FleetStatus:
    """The status of a fleet whose clusters were read."""
    from kueue_fleet.fleet_file.worker_tokens import token_credentials
    from kueue_fleet.settings.dispatch import Watchdog
    from kueue_fleet.status import budgets, calendar_status, fleet_status, held_by_teams, team_use
    from kueue_fleet.status.stuck import stuck_workloads

    credentials = token_credentials(fleet)
    controller = fleet.controller
    watchdog = Watchdog() if controller is None else controller.watchdog
    rotate_by = credentials.rotate_by if credentials is not None and controller is None else None
    return fleet_status(
        fleet.name,
        by_name,
        rotate_by,
        now,
        list(calendar_status(fleet, now)),
        list(team_use(fleet, by_name)),
        list(budgets(fleet, held_by_teams(fleet, by_name, now), prices, now)),
        stuck_workloads(by_name, watchdog, now),
        judged_goals(fleet, store, now),
    )


def teams_table(teams: Sequence[TeamUse]) -> Table:
    """What each team has."""
    table = Table(
        Column("team"),
        Column("jobs", right=True, leave_out=2),
        Column("GPUs", right=True),
        Column("borrowed", right=True, leave_out=1),
        Column("jobs that wait", right=True, leave_out=3),
        Column("GPUs they ask for", right=True),
    )
    for team in teams:
        numbers = (team.jobs, team.gpus, team.borrowed, team.waiting_jobs, team.waiting_gpus)
        table.add(team.team, *map(number_or_dash, numbers))
    return table


def number_or_dash(number: int | None) -> str:
    """A number for a table; a dash where it is not known."""
    return "-" if number is None else str(number)


def goal_line(verdict: Judged) -> RenderableType:
    """A goal and how it is with it, in colour where it is not met."""
    return console.rich_text([simulate_goals.line(verdict)])


def budget_line(budget_use: BudgetUse) -> RenderableType:
    """How far a budget is used up, in colour where it is near or exceeded."""
    return console.rich_text(
        [
            Styled(
                f"budget: {budget_use}", "red" if budget_use.percent >= 100 else "yellow" if budget_use.is_near else ""
            )
        ]
    )


def span(seconds: float) -> str:
    """A time as people say it."""
    for size, unit in ((86_400, "d"), (3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"
