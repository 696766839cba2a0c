"""`top`, the old name of `status --usage`: who uses the GPUs of a live fleet, and what each team used this week."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import typer

from kueue_admission.cli import console
from kueue_admission.cli.input_files import Output, OutputOption
from kueue_admission.cli.tables import Column, Table
from kueue_fleet.cli.contexts import Kubeconfig, check_readable
from kueue_fleet.cli.fleet_files import PricesFile, load_fleet, load_prices
from kueue_fleet.cli.live_fleet import Every, FleetReader, Watch, patience, show_live, watch_interval
from kueue_fleet.cli.past_goals import check_store, judged_goals
from kueue_fleet.cli.spec_commands import FleetFile
from kueue_fleet.cli.status_parts import budget_line, goal_line, span, teams_table
from kueue_fleet.cli.stores import HistoryOption
from kueue_fleet.fleet_file import FleetSpec, kueue_configuration
from kueue_fleet.fleet_file.goals import goals_of
from kueue_fleet.fleet_file.spending import without_price
from kueue_fleet.gke.labels import TPU_RESOURCE
from kueue_fleet.gke.prices import Prices

if TYPE_CHECKING:
    from rich.console import RenderableType

    from kueue_fleet.status import TeamWeek, Top


def top(
    context: typer.Context,
    file: FleetFile,
    kubeconfig: Kubeconfig = None,
    watch: Watch = False,
    every: Every = 5.0,
    prices: PricesFile = None,
    store: HistoryOption = None,
    output: OutputOption = Output.text,
) -> None:
    """Show who uses the GPUs now: by queue and cluster, by flavor with its ready nodes, by team.

    Then each team's week since Monday 00:00 UTC: GPU hours, their cost, waits, and its budget. The week
    counts the Workloads that are still on the manager, not deleted ones. With --store also whether the last seven
    days met the fleet's goals. Reads only. Exits 1 if a cluster could not be read.

    \b
    Examples:
      kueue-fleet top . --watch
    """
    interval = watch_interval(context, watch, every, output)
    fleet, table = load_fleet(file), load_prices(prices)
    check_readable(kubeconfig)
    check_store(store)
    if store is not None and not goals_of(fleet):
        console.warning(f"--store: {fleet.name} has no goals to judge")
    reader = FleetReader("status", fleet, kubeconfig, patience(interval), nodes=True, again=watch)
    show_live(lambda: _look(fleet, reader, table, store), _rendered, output, interval)


def _look(fleet: FleetSpec, reader: FleetReader, prices: Prices, store: str | None) -> Top:
    from kueue_fleet.status import (
        Top,
        budgets,
        finished_since,
        flavor_tops,
        held_by_teams,
        queue_tops,
        team_use,
        team_weeks,
    )

    clusters = reader.look()
    now = datetime.now(UTC)  # noqa: TID251 - the edge has the clock
    used = held_by_teams(fleet, clusters, now)
    finished_jobs, since = finished_since(fleet, clusters)
    policies = kueue_configuration(fleet, fleet.home).get("objectRetentionPolicies") or {}
    return Top(
        fleet=fleet.name,
        unreachable={name: cluster.unreachable for name, cluster in clusters.items() if cluster.unreachable},
        queues=tuple(queue_tops(fleet, clusters)),
        flavors=tuple(flavor_tops(fleet, clusters)),
        teams=tuple(team_use(fleet, clusters)),
        weeks=tuple(team_weeks(fleet, clusters, used, prices, now)),
        budgets=tuple(budgets(fleet, used, prices, now)),
        prices=prices.date,
        finished=finished_jobs,
        finished_since=since,
        kept=(policies.get("workloads") or {}).get("afterFinished"),
        goals=tuple(judged_goals(fleet, store, now)),
    )


def _rendered(usage: Top) -> list[RenderableType]:
    parts: list[RenderableType] = [_queues(usage), "", _flavors(usage)]
    if usage.teams:
        parts += ["", teams_table(usage.teams)]
        if usage.finished is not None:
            parts += ["", _weeks(usage)]
            unpriced_weeks = [week for week in usage.weeks if week.unpriced]
            parts += [f"{week.team}: {_usd(week)} USD + {without_price(week.unpriced)}" for week in unpriced_weeks]
            missing_currencies = dict.fromkeys(currency for week in unpriced_weeks for currency in week.not_in_usd)
            parts += [f"not in USD: {currency}" for currency in missing_currencies]
            parts += ["", _history(usage, usage.finished), *map(budget_line, usage.budgets)]
    if usage.goals:
        parts += ["", *map(goal_line, usage.goals)]
    for cluster, why in usage.unreachable.items():
        parts.append(console.rich_text([console.Styled(f"{cluster}: could not be read: {why}", "red")]))
    return parts


def _queues(usage: Top) -> Table:
    table = Table(
        Column("queue"),
        Column("cluster"),
        Column("of", leave_out=4),
        Column("quota", right=True),
        Column("used", right=True),
        Column("borrowed", right=True, leave_out=2),
        Column("free", right=True, leave_out=1),
        Column("pending", right=True, leave_out=3),
    )
    for queue in usage.queues:
        amounts = (queue.quota, queue.used, queue.borrowed, queue.free, queue.pending)
        table.add(queue.queue, queue.cluster, _unit(queue.resource), *map(str, amounts))
    return table


def _flavors(usage: Top) -> Table:
    table = Table(
        Column("flavor"),
        Column("cluster"),
        Column("capacity", leave_out=2),
        Column("of", leave_out=3),
        Column("ready nodes", right=True),
        Column("on them", right=True, leave_out=1),
        Column("used", right=True),
    )
    for flavor in usage.flavors:
        nodes = "?" if flavor.nodes is None else str(flavor.nodes)
        if None not in (flavor.nodes, flavor.most_nodes):
            nodes = f"{flavor.nodes} of {flavor.most_nodes}"
        there = "?" if flavor.on_nodes is None else str(flavor.on_nodes)
        capacity = ", ".join(flavor.capacity) or "-"
        table.add(flavor.flavor, flavor.cluster, capacity, _unit(flavor.resource), nodes, there, str(flavor.used))
    return table


def _weeks(usage: Top) -> Table:
    table = Table(
        Column("team, this week"),
        Column("GPU hours", right=True),
        Column("USD", right=True),
        Column("jobs started", right=True, leave_out=3),
        Column("mean wait", right=True, leave_out=1),
        Column("longest wait", right=True, leave_out=2),
        Column("waits now", right=True, leave_out=4),
    )
    for week in usage.weeks:
        waits = [week.mean_wait_seconds, week.longest_wait_seconds, week.waiting_seconds or None]
        wait_texts = ["-" if seconds is None else span(seconds) for seconds in waits]
        whole = "" if week.whole_gpu_hours == week.gpu_hours else f" ({week.whole_gpu_hours:,.1f} of whole GPUs)"
        table.add(week.team, f"{week.gpu_hours:,.1f}{whole}", _usd(week), str(week.started), *wait_texts)
    return table


def _usd(week: TeamWeek) -> str:
    if week.unpriced:
        return f"at least {week.usd_least:,.2f}"
    return " to ".join(dict.fromkeys(f"{amount:,.2f}" for amount in (week.usd_least, week.usd_most)))


def _history(usage: Top, finished_count: int) -> str:
    retention = (
        f"Kueue deletes them {usage.kept} after their end" if usage.kept else "Kueue keeps them as long as their jobs"
    )
    rests = f"{console.count(finished_count, 'finished Workload')} that the API server still has"
    since = f", the first of {usage.finished_since}" if usage.finished_since else ""
    return f"This week rests on {rests}{since}, and those that run; {retention}. Prices of {usage.prices}."


def _unit(resource: str) -> str:
    return "TPU chips" if resource == TPU_RESOURCE else "GPUs"
