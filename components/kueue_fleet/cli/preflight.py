"""`preflight`: whether a fleet fits into its Google Cloud project, before anything costs."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from kueue_admission.cli import console, options
from kueue_admission.cli.code_scanning import annotation
from kueue_admission.forms import Problem
from kueue_fleet.cli.fleet_files import load_fleet
from kueue_fleet.cli.spec_commands import FleetFile
from kueue_fleet.fleet_file.rules.commands import PROJECT, PROJECT_IN_USE, UNREAD

if TYPE_CHECKING:
    from kueue_admission.cli.tables import Table
    from kueue_fleet.preflight.findings import Finding

_STYLES: Final = {"fits": "green", "ask": "red", "check": "yellow", "unknown": "red"}


class PreflightOutput(StrEnum):
    """How findings are printed."""

    text = "text"
    json = "json"
    github = "github"


def preflight(
    context: typer.Context,
    file: FleetFile,
    output: Annotated[
        PreflightOutput,
        typer.Option(
            "--output", "-o", help="`json` prints one document; `github` prints annotations of a GitHub workflow."
        ),
    ] = PreflightOutput.text,
    page: Annotated[
        bool,
        typer.Option("--page", help="Print what the fleet needs, with its costs, as Markdown; ask Google nothing."),
    ] = False,
) -> None:
    """Say whether a fleet fits into its Google Cloud projects: APIs, quotas, machines, reservations, addresses, roles.

    It reads with your own credentials, those of `gcloud auth application-default login`, and changes nothing. It
    compares quotas with the size that the fleet can grow to. Exits 1 if something does not fit, or could not be read,
    and lists everything at once.

    \b
    Examples:
      kueue-fleet preflight stacks/Pulumi.prod.yaml
      kueue-fleet preflight .
      kueue-fleet preflight stacks/Pulumi.prod.yaml -o json > findings.json
      kueue-fleet preflight --output github stacks/Pulumi.prod.yaml
      kueue-fleet preflight --page stacks/Pulumi.prod.yaml > prerequisites.md
    """
    if page:
        options.refuse_idle(context, "output", "with --page")
    fleet = load_fleet(file)
    if page:
        from kueue_fleet.gke.prices import list_prices
        from kueue_fleet.preflight.page import prerequisites_page

        console.text(prerequisites_page(fleet, list_prices()))
        return
    from kueue_fleet.preflight.findings import findings
    from kueue_fleet.preflight.google_cloud import CannotAskError, connect, read_facts
    from kueue_fleet.preflight.needs import needs_of

    found: list[Finding] = []
    for needs in needs_of(fleet):
        try:
            facts = read_facts(needs, connect(needs.project))
        except CannotAskError as wrong:
            raise console.CommandError(f"{needs.project}: {wrong}") from None
        found += findings(needs, facts)
    if output is PreflightOutput.json:
        console.json_document(_document(fleet.project, found))
    elif output is PreflightOutput.github:
        for problem in _problems(found, console.source_name(file)):
            console.line(annotation(problem))
    else:
        console.show(_table(found))
        console.line()
        for project in dict.fromkeys(each.project for each in found):
            console.line(_verdict(project, [each for each in found if each.project == project]))
    if any(each.fails for each in found):
        raise typer.Exit(1)


def _table(found: list[Finding]) -> Table:
    from kueue_admission.cli.tables import Column, Table

    several = len({each.project for each in found}) > 1
    table = Table(
        *([Column("project")] if several else []),
        Column("what"),
        Column("needs", leave_out=1),
        Column("has", leave_out=2),
        Column("result"),
        Column("what to do", sentences=True),
    )
    for each in found:
        todo = f"{each.wrong}; {each.fix}" if each.wrong else ""
        cells = (each.what, each.needs, each.has, console.Styled(each.verdict, _STYLES[each.verdict]), todo)
        table.add(*([each.project] if several else []), *cells)
    return table


def _verdict(project: str, found: list[Finding]) -> str:
    asks = sum(each.verdict == "ask" for each in found)
    unknown = sum(each.verdict == "unknown" for each in found)
    if not asks and not unknown:
        return f"the fleet fits into project {project}"
    told = [f"{asks} to ask for" if asks else "", f"{unknown} not known" if unknown else ""]
    return f"the fleet does not fit into project {project} as it is: {', '.join(filter(None, told))}"


_RULES: Final = {"ask": PROJECT, "check": PROJECT_IN_USE, "unknown": UNREAD}


def _problems(found: list[Finding], source: str) -> list[Problem]:
    return [
        _RULES[each.verdict].at(each.what, each.wrong, each.fix, source=source)
        for each in found
        if each.verdict != "fits"
    ]


def _document(project: str, found: list[Finding]) -> dict[str, Any]:
    return {
        "schemaVersion": 1,
        "project": project,
        "fits": not any(each.fails for each in found),
        "findings": [
            {
                "project": each.project,
                "part": each.part,
                "what": each.what,
                "needs": each.needs,
                "has": each.has,
                "result": each.verdict,
                "wrong": each.wrong or None,
                "fix": each.fix or None,
            }
            for each in found
        ],
    }
