"""`evidence`: where the jobs of teams ran in some time, by the history, against where their data may be."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Final

import typer

from kueue_admission.cli import console
from kueue_admission.cli.input_files import Output, OutputOption
from kueue_admission.cli.tables import Column, Table
from kueue_fleet.cli.fleet_files import load_fleet
from kueue_fleet.cli.replay import check_teams
from kueue_fleet.cli.spec_commands import FleetFile
from kueue_fleet.cli.stores import StoreOption, opened_store

if TYPE_CHECKING:
    from kueue_fleet.fleet_file import FleetSpec
    from kueue_fleet.fleet_file.model.teams import TeamEntry
    from kueue_fleet.status.residency import Evidence

SCHEMA_VERSION: Final = 1
"""Of the JSON document; larger where a reader of the former would misread it."""


def evidence(
    file: FleetFile,
    store: StoreOption,
    begin: Annotated[datetime, typer.Option("--from", help="The beginning of the time, UTC.")],
    end: Annotated[datetime, typer.Option("--to", help="Its end, UTC; of a day its beginning.")],
    team: Annotated[
        list[str] | None,
        typer.Option("--team", help="Of this team; repeatable.", show_default="teams with allowedRegions"),
    ] = None,
    output: OutputOption = Output.text,
) -> None:
    """Show where the jobs of teams ran, and whether that was outside of the regions that they may use.

    It judges by the file as it is now: give that of the time. What the history cannot say is named: times in which a
    cluster was not followed, events that were deleted, jobs of which the manager alone says where they ran. Exits 3 if
    a job ran where it may not. It needs the extra `history`.

    \b
    Examples:
      kueue-fleet evidence fleet.yaml --store history \\
          --from 2026-10-01 --to 2026-11-01
      kueue-fleet evidence fleet.yaml --store history \\
          --from 2026-10-01 --to 2026-11-01 --team language -o json
    """
    from kueue_fleet.status.residency import KINDS, Recorded, residency_evidence

    fleet = load_fleet(file)
    first, last = (time.replace(tzinfo=UTC).timestamp() for time in (begin, end))
    if first >= last:
        raise console.mistyped(f"--to {end:%Y-%m-%d}: is not after --from; give a later time")
    teams = _teams(fleet, team or [])
    with opened_store(store) as past:
        recorded_past = Recorded(past.read(kinds=KINDS), past.followed, past.pruned)
    evidence_rows = residency_evidence(fleet, recorded_past, [team.name for team in teams], first, last)
    if output is Output.json:
        console.json_document(
            {
                "schemaVersion": SCHEMA_VERSION,
                "fleet": fleet.name,
                "from": begin.isoformat(),
                "to": end.isoformat(),
                "teams": [{"team": team.name, "allowedRegions": list(fleet.allowed_regions(team))} for team in teams],
                "stays": [asdict(stay) for stay in evidence_rows.stays],
                "gaps": list(evidence_rows.gaps),
                "sha256": evidence_rows.digest,
            }
        )
    else:
        _show(fleet, evidence_rows, teams)
    if evidence_rows.outside:
        raise typer.Exit(3)


def _teams(fleet: FleetSpec, team_names: Sequence[str]) -> list[TeamEntry]:
    """Those that are named, or all that are bound to regions. Raises CommandError where there are none."""
    check_teams("--team", team_names, fleet)
    teams = [team for team in fleet.teams if (team.name in team_names if team_names else team.allowed_regions)]
    if not teams:
        raise console.CommandError("teams: none has allowedRegions, so each may run anywhere; name one with --team")
    return teams


def _show(fleet: FleetSpec, report: Evidence, teams: Sequence[TeamEntry]) -> None:
    table = Table(
        Column("team"),
        Column("may run in"),
        Column("ran in"),
        Column("jobs", right=True),
        Column("first admitted"),
        Column("last admitted"),
    )
    for team in teams:
        may = ", ".join(fleet.allowed_regions(team)) or "every region"
        of_team = [stay for stay in report.stays if stay.team == team.name]
        if not of_team:
            table.add(team.name, may, "-", "0", "-", "-")
        for region in sorted({stay.region for stay in of_team}):
            there = [stay for stay in of_team if stay.region == region]
            jobs, begins = len({run.uid for run in there}), [run.begin for run in there]
            table.add(team.name, may, region or "not known", str(jobs), min(begins), max(begins))
    console.show(table)
    console.line()
    if not report.outside:
        of = "whose region is known" if any(not stay.region for stay in report.stays) else "that the history has"
        console.paragraph(f"No job {of} ran where it may not.")
    for stay in report.outside:
        until = f"to {stay.end}" if stay.end else "on"
        console.paragraph(
            f"{stay.namespace}/{stay.workload} was on {stay.cluster}, in {stay.region}, from {stay.begin} {until}: "
            f"{stay.forbidden}"
        )
    if report.gaps:
        console.line("Not known:")
    for gap in report.gaps:
        console.paragraph(f"- {gap}")
    console.line(f"SHA-256 of {console.count(len(report.stays), 'stay')}: {report.digest}")
