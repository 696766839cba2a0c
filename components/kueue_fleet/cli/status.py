"""`status`: a live fleet at a glance, read through the contexts of a kubeconfig."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from kueue_admission.cli import console, options
from kueue_admission.cli.console import Styled
from kueue_admission.cli.input_files import Output, OutputOption
from kueue_admission.cli.tables import Column, Table
from kueue_fleet.cli.contexts import Kubeconfig, check_readable
from kueue_fleet.cli.fleet_files import PricesFile, load_fleet, load_prices
from kueue_fleet.cli.live_fleet import Every, FleetReader, Watch, patience, show_live, watch_interval
from kueue_fleet.cli.past_goals import check_store
from kueue_fleet.cli.spec_commands import FleetFile
from kueue_fleet.cli.status_parts import budget_line, goal_line, number_or_dash, span, status_of, teams_table
from kueue_fleet.cli.stores import HistoryOption
from kueue_fleet.fleet_file import FleetSpec
from kueue_fleet.fleet_file.goals import goals_of
from kueue_fleet.gke.prices import Prices

if TYPE_CHECKING:
    from rich.console import RenderableType

    from kueue_fleet.status import CalendarStatus, FleetStatus

_SHOWN = 20
_REMIND_DAYS = 14


def status(
    context: typer.Context,
    file: FleetFile,
    kubeconfig: Kubeconfig = None,
    watch: Watch = False,
    every: Every = 5.0,
    prices: PricesFile = None,
    store: HistoryOption = None,
    output: OutputOption = Output.text,
    usage: Annotated[
        bool,
        typer.Option("--usage", help="Who uses the GPUs now, by queue, flavor and team, and what each team used."),
    ] = False,
    page: Annotated[
        bool, typer.Option("--page", help="Serve it as a page on 127.0.0.1, by default updated each second.")
    ] = False,
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="Port of --page; 0: a free one.")] = 0,
) -> None:
    """Show a live fleet: clusters, queues with use against quota, what is stuck, what waits and why, DWS requests.

    With --store also whether the last seven days met the fleet's goals. Reads only. Exits 1 if a cluster could not
    be read.

    --usage shows who uses the GPUs instead, with ready nodes, and each team's week since Monday 00:00 UTC: GPU hours,
    their cost, waits, budget. The week counts the Workloads that are still on the manager. --page has both, and each
    job, why it waits, what would change it and its logs, under an address with a secret in it; it needs the extra
    `controller`.

    \b
    Examples:
      pulumi stack output kubeconfig --show-secrets > kubeconfig
      kueue-fleet status stacks/Pulumi.prod.yaml --kubeconfig kubeconfig
      kueue-fleet status . --kubeconfig kubeconfig
      kueue-fleet status stacks/Pulumi.prod.yaml --watch
      kueue-fleet status stacks/Pulumi.prod.yaml -o json | jq .pending
      kueue-fleet status stacks/Pulumi.prod.yaml --usage
      kueue-fleet status . --page --store gs://my-bucket/history
    """
    if page:
        from kueue_fleet.cli.ui import EVERY, serve_page

        options.refuse_idle(context, "usage watch output", "with --page")
        serve_page(file, kubeconfig, every if options.is_typed(context, "every") else EVERY, port, prices, store)
        return
    options.refuse_idle(context, "port", "without --page")
    if usage:
        from kueue_fleet.cli.top import top

        top(context, file, kubeconfig, watch, every, prices, store, output)
        return
    interval = watch_interval(context, watch, every, output)
    fleet, table = load_fleet(file), load_prices(prices)
    check_readable(kubeconfig)
    check_store(store)
    if store is not None and not goals_of(fleet):
        console.warning(f"--store: {fleet.name} has no goals to judge")
    reader = FleetReader("status", fleet, kubeconfig, patience(interval), again=watch)
    show_live(lambda: _look(fleet, reader, table, store), _rendered, output, interval)


def _look(fleet: FleetSpec, reader: FleetReader, prices: Prices, store: str | None) -> FleetStatus:
    clusters = reader.look()
    now = datetime.now(UTC)  # noqa: TID251 - the edge has the clock
    return status_of(fleet, clusters, prices, store, now)


def _rendered(fleet_status: FleetStatus) -> list[RenderableType]:
    parts: list[RenderableType] = [_clusters(fleet_status), "", _queues(fleet_status)]
    if fleet_status.teams:
        parts += ["", teams_table(fleet_status.teams)]
    if fleet_status.budgets:
        parts += ["", *map(budget_line, fleet_status.budgets)]
    if fleet_status.goals:
        parts += ["", *map(goal_line, fleet_status.goals)]
    for rows, table in (
        (fleet_status.stuck, _stuck),
        (fleet_status.pending, _pending),
        (fleet_status.requests, _requests),
    ):
        if rows:
            parts += ["", table(fleet_status), *_more(len(rows))]
    if fleet_status.lost:
        parts += ["", *(console.rich_text([Styled(f"lost: {loss}", "yellow")]) for loss in fleet_status.lost)]
    if fleet_status.calendars:
        parts += ["", *map(_calendar, fleet_status.calendars)]
    if fleet_status.rotate_by is not None and fleet_status.days_left is not None:
        parts += ["", _credentials(fleet_status.rotate_by.isoformat(), fleet_status.days_left)]
    return parts


def _clusters(fleet_status: FleetStatus) -> Table:
    table = Table(
        Column("cluster"),
        Column("role", leave_out=1),
        Column("pending", right=True, leave_out=3),
        Column("reserved", right=True, leave_out=4),
        Column("admitted", right=True, leave_out=2),
        Column("state", sentences=True),
    )
    for cluster in fleet_status.clusters:
        state = Styled("ready", "green")
        if not cluster.reachable or cluster.connected is False:
            state = Styled(cluster.message or "not connected", "red")
        elif cluster.connected:
            state = Styled("connected", "green")
        counts = map(number_or_dash, (cluster.pending, cluster.reserved, cluster.admitted))
        table.add(cluster.name, cluster.role, *counts, state)
    return table


def _queues(fleet_status: FleetStatus) -> Table:
    inactive = [Column("state", sentences=True)] if not all(queue.active for queue in fleet_status.queues) else []
    table = Table(
        Column("queue"),
        Column("cluster"),
        Column("flavor", leave_out=1),
        Column("resource"),
        Column("used / quota", right=True),
        *inactive,
    )
    for queue in fleet_status.queues:
        state = [Styled("" if queue.active else f"inactive: {queue.reason}", "red")] if inactive else []
        rows = [use for use in queue.use if use.used != "0" or use.resource.endswith("/gpu")] or list(queue.use[:1])
        if not rows:
            table.add(queue.name, queue.cluster, "-", "-", "-", *state)
        for use in rows:
            borrowed_text = f" (+{use.borrowed})" if use.borrowed != "0" else ""
            amount = f"{use.used}{borrowed_text} / {use.nominal}"
            table.add(queue.name, queue.cluster, use.flavor, use.resource, amount, *state)
    return table


def _pending(fleet_status: FleetStatus) -> Table:
    table = Table(
        Column("pending"), Column("queue", leave_out=1), Column("waits", right=True), Column("reason", sentences=True)
    )
    for workload in fleet_status.pending[:_SHOWN]:
        where = f" on {workload.cluster}" if workload.cluster else ""
        if workload.keeps:
            where = f" on every worker it was offered to; it keeps {workload.keeps} on the manager until it is deleted"
        name = f"{workload.namespace}/{workload.name}"
        table.add(name, workload.queue, span(workload.waiting_seconds), [Styled(workload.reason, "yellow"), where])
    return table


def _stuck(fleet_status: FleetStatus) -> Table:
    table = Table(
        Column("stuck"), Column("cluster", leave_out=1), Column("for", right=True), Column("why", sentences=True)
    )
    for stuck in fleet_status.stuck[:_SHOWN]:
        why: list[str | Styled] = [Styled(stuck.why, "red"), f": {stuck.message}"]
        table.add(f"{stuck.namespace}/{stuck.name}", stuck.cluster, span(stuck.seconds), why)
    return table


def _requests(fleet_status: FleetStatus) -> Table:
    table = Table(
        Column("DWS request"),
        Column("cluster", leave_out=1),
        Column("age", right=True),
        Column("state", sentences=True),
    )
    for request in fleet_status.requests[:_SHOWN]:
        state = f"{request.state}: {request.message}" if request.message else request.state
        table.add(f"{request.namespace}/{request.name}", request.cluster, span(request.age_seconds), state)
    return table


def _more(rows: int) -> list[RenderableType]:
    return [f"and {rows - _SHOWN} more; --output json has all"] if rows > _SHOWN else []


def _calendar(period: CalendarStatus) -> RenderableType:
    what, when = ("ends", period.ends) if period.is_open else ("begins", period.starts)
    time_left = "today" if period.days_left == 0 else f"in {console.count(period.days_left, 'day')}"
    text = f"calendar: {period.reservation}, node pool {period.pool} on {period.cluster}, {what} {when}, {time_left}"
    return console.rich_text([Styled(text, "yellow" if period.is_open and period.days_left <= _REMIND_DAYS else "")])


def _credentials(day: str, days: int) -> RenderableType:
    if days < 0:
        text = f"credentials: were to be replaced by {day}; change multiKueue.credentials.rotation"
        return console.rich_text([Styled(text, "red")])
    style = "yellow" if days <= _REMIND_DAYS else ""
    text = f"credentials: to be replaced by {day}, in {console.count(days, 'day')}"
    return console.rich_text([Styled(text, style)])
