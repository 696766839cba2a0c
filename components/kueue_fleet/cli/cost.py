"""`cost`: what a fleet costs whether it is used or not, and what its nodes cost while they are there."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kueue_admission.cli import console
from kueue_admission.cli.input_files import Output, OutputOption
from kueue_fleet.cli.fleet_files import PricesFile, load_fleet, load_prices
from kueue_fleet.cli.spec_commands import FleetFile
from kueue_fleet.cli.stores import opened_store
from kueue_fleet.fleet_file.cost import Cost
from kueue_fleet.gke.prices import HOURS_PER_MONTH
from kueue_fleet.google.cost import cost_of

if TYPE_CHECKING:
    from kueue_admission.cli.tables import Table
    from kueue_fleet.fleet_file import FleetSpec
    from kueue_fleet.gke.prices import Prices
    from kueue_fleet.settings.budgets import Period


class Per(StrEnum):
    """How long the times are that are summed up."""

    week = "week"
    month = "month"


def cost(
    file: FleetFile,
    prices: PricesFile = None,
    store: Annotated[
        str | None,
        typer.Option("--store", metavar="DIR", help="Instead: what teams used, by the history that `record` wrote."),
    ] = None,
    per: Annotated[
        Per | None, typer.Option("--per", help="With --store: the period of each row.", show_default="month")
    ] = None,
    output: OutputOption = Output.text,
) -> None:
    """Show what a fleet costs: what you pay whether it is used or not, and what nodes cost while they exist.

    In USD, without discounts. Unknown prices are listed, and not in the sums. Traffic, NAT, logs, metrics and disks of
    jobs are not counted. `diff` shows what a change costs.

    With --store it says in place of that what the jobs of each team used in each week or month, in GPU hours and USD,
    and how far that used up budgets. It needs the extra `history`.

    \b
    Examples:
      kueue-fleet cost stacks/Pulumi.prod.yaml
      kueue-fleet cost .
      kueue-fleet cost stacks/Pulumi.prod.yaml --prices our-prices.csv -o json
      kueue-fleet cost fleet.yaml --store history --per week
    """
    if per is not None and store is None:
        raise console.mistyped("--per: is for what teams used; give --store too")
    fleet = load_fleet(file)
    if store is not None:
        _show_use(fleet, store, load_prices(prices), (per or Per.month).value, output)
        return
    costs = cost_of(fleet, load_prices(prices))
    if output is Output.json:
        console.json_document(_document(costs))
        return
    console.line(f"USD, prices of {costs.prices}; a month has {HOURS_PER_MONTH} hours")
    console.show("", _lines(costs), "", _sums(costs))
    if costs.unknown:
        console.line()
        console.line(console.Styled("Not in the sums", "bold"))
        for part in costs.unknown:
            console.line(f"  {part}")


def _show_use(fleet: FleetSpec, store: str, prices: Prices, per: Period, output: Output) -> None:
    from kueue_admission.cli.tables import Column, Table
    from kueue_admission.history.jobs import OF_JOBS, past_of
    from kueue_fleet.fleet_file.spending import without_price
    from kueue_fleet.status.ledger import ledger, without_times

    with opened_store(store) as opened:
        past = past_of(opened.read(kinds=OF_JOBS))
    entries = list(ledger(fleet, past, prices, per))
    if left_out := without_times(fleet, past):
        not_known = f"it is not known when {console.count(left_out, 'job')} ran, which no {per} has"
        console.warning(f"{store}: {not_known}; record from a source that says when jobs started")
    if output is Output.json:
        rows = [
            {
                "begin": entry.begin,
                "team": entry.team,
                "gpuHours": round(entry.used.gpu_hours, 3),
                "usdLeast": round(entry.used.usd_least, 2),
                "usdMost": round(entry.used.usd_most, 2),
                "unpricedHours": entry.used.unpriced_hours,
                "budget": [{"of": use.of, "limit": use.limit, "percent": use.percent} for use in entry.budget],
            }
            for entry in entries
        ]
        console.json_document({"schemaVersion": 1, "currency": "USD", "prices": prices.date, "per": per, "used": rows})
        return
    table = Table(
        Column(f"{per} of"),
        Column("team"),
        Column("GPU hours", right=True),
        Column("USD", right=True),
        Column("budget"),
    )
    for entry in entries:
        least, most = f"{entry.used.usd_least:,.2f}", f"{entry.used.usd_most:,.2f}"
        usd = most if least == most else f"{least} to {most}"
        if entry.used.unpriced:
            usd += f" + {without_price(entry.used.unpriced_hours)}"
        budget = ", ".join(f"{use.percent} % of {use.limit:,} {use.of}" for use in entry.budget)
        table.add(entry.begin, entry.team, f"{entry.used.gpu_hours:,.1f}", usd, budget or "-")
    console.line(f"USD, prices of {prices.date}")
    console.show(table)


def _lines(costs: Cost) -> Table:
    from kueue_admission.cli.tables import Column, Table

    shares = [Column("a share, an hour", right=True)] if any(line.share is not None for line in costs.lines) else []
    table = Table(
        Column("cluster"),
        Column("pool or reservation"),
        Column("class", leave_out=2),
        Column("nodes", right=True),
        Column("machine", leave_out=1),
        Column("one an hour", right=True, leave_out=3),
        *shares,
        Column("always, an hour", right=True),
        Column("in use, an hour", right=True),
    )
    for line in costs.lines:
        nodes = "" if line.kind == "cluster" else str(line.most)
        if line.least != line.most:
            nodes = f"{line.least} to {line.most}"
        sums = (line.always if line.least else None, line.in_use if line.most > line.least else None)
        amounts = (line.each, *([line.share] if shares else []), *sums)
        columns = [_usd(amount, line.missing) if amount is not None else "-" for amount in amounts]
        table.add(line.cluster or "-", line.name or "(control plane)", line.kind, nodes, line.what, *columns)
    return table


def _sums(costs: Cost) -> Table:
    from kueue_admission.cli.tables import Column, Table

    table = Table(
        Column("sum of"),
        Column("always, an hour", right=True, leave_out=2),
        Column("always, a month", right=True),
        Column("in use, an hour", right=True, leave_out=1),
        Column("in use, a month", right=True),
    )
    sums = {
        **costs.by(lambda line: line.part_of),
        **{f"class {name}": value for name, value in costs.by(lambda line: line.kind).items()},
        "all": (costs.always, costs.in_use),
    }
    for name, (always, in_use) in sums.items():
        amounts = [_usd(hours * usd) for usd in (always, in_use) for hours in (1, HOURS_PER_MONTH)]
        style = "bold" if name == "all" else ""
        table.add(*(console.Styled(text, style) for text in (name, *amounts)))
    return table


def _usd(amount: float, missing_prices: Sequence[str] = ()) -> str:
    return f"{amount:,.2f}{' + ?' if missing_prices else ''}"


def _document(costs: Cost) -> dict[str, Any]:
    def sums(always: float, in_use: float) -> dict[str, dict[str, float]]:
        return {
            name: {"hour": round(usd, 4), "month": round(usd * HOURS_PER_MONTH, 2)}
            for name, usd in (("always", always), ("inUse", in_use))
        }

    return {
        "schemaVersion": 1,
        "currency": "USD",
        "prices": costs.prices,
        "lines": [
            {
                "cluster": line.cluster or None,
                "name": line.name or None,
                "class": line.kind,
                "machineType": line.what or None,
                "nodes": {"least": line.least, "most": line.most},
                "each": round(line.each, 4),
                "share": None if line.share is None else round(line.share, 4),
                "missingPrices": list(line.missing),
                **sums(line.always, line.in_use),
            }
            for line in costs.lines
        ],
        "byCluster": {name: sums(*value) for name, value in costs.by(lambda line: line.part_of).items()},
        "byClass": {name: sums(*value) for name, value in costs.by(lambda line: line.kind).items()},
        "total": sums(costs.always, costs.in_use),
        "notInSums": list(costs.unknown),
    }
