"""`preflight`: whether a fleet fits into its Google Cloud project and clusters outside GKE, before anything costs."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from kueue_admission.cli import console, options
from kueue_admission.cli.code_scanning import annotation
from kueue_admission.kernel import Problem
from kueue_admission.kernel.form_rules import Fault
from kueue_fleet.cli.contexts import check_readable
from kueue_fleet.cli.contexts import connect as connect_to
from kueue_fleet.cli.fleet_files import load_fleet
from kueue_fleet.cli.spec_commands import FleetFile
from kueue_fleet.fleet_file import FleetSpec
from kueue_fleet.fleet_file.rules.commands import CLUSTER_NOT_READY, PROJECT, PROJECT_IN_USE, UNREAD
from kueue_fleet.kube.kubeconfig import AccessError

if TYPE_CHECKING:
    from kueue_admission.cli.tables import Table
    from kueue_fleet.preflight.facts import Facts
    from kueue_fleet.preflight.findings import Finding
    from kueue_fleet.preflight.needs import Needs

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
    kubeconfig: Annotated[
        Path | None,
        typer.Option(
            "--kubeconfig",
            help="With the contexts of clusters outside GKE, by which Pulumi reaches them.",
            show_default="$KUBECONFIG or ~/.kube/config",
        ),
    ] = None,
    page: Annotated[
        bool,
        typer.Option("--page", help="Print what the fleet needs, with its costs, as Markdown; ask Google nothing."),
    ] = False,
) -> None:
    """Check whether a fleet fits into its Google Cloud projects: APIs, quotas, machines, reservations, ranges, roles.

    It reads with your own credentials, those of `gcloud auth application-default login`, and changes nothing. It
    compares quotas with the size that the fleet can grow to. Of clusters outside GKE it asks, by the contexts of your
    kubeconfig, whether they answer, serve the kinds that the fleet makes, have another Kueue, and grant you the rights.
    Exits 1 if something does not fit, or could not be read, and lists everything at once: where Google or a cluster
    cannot be asked, it says so, and asks the others.

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
        options.refuse_idle(context, "kubeconfig", "with --page")
    fleet = load_fleet(file)
    if page:
        from kueue_fleet.gke.prices import list_prices
        from kueue_fleet.preflight.page import prerequisites_page

        console.text(prerequisites_page(fleet, list_prices()))
        return
    of_clusters = list(_of_clusters(fleet, kubeconfig))
    all_findings = [*_of_projects(fleet), *of_clusters]
    if output is PreflightOutput.json:
        console.json_document(_document(fleet.project, all_findings))
    elif output is PreflightOutput.github:
        for problem in _problems(all_findings, console.source_name(file)):
            console.line(annotation(problem))
    else:
        console.show(_table(all_findings))
        console.line()
        for project in dict.fromkeys(finding.project for finding in all_findings):
            console.line(_verdict(project, [finding for finding in all_findings if finding.project == project]))
    for finding in all_findings:
        if finding.part == "project":
            console.error(f"{finding.project}: {finding.wrong}; {finding.fix}")
    if any(finding.fails for finding in all_findings):
        raise typer.Exit(1)


def _of_projects(fleet: FleetSpec) -> Iterator[Finding]:
    if not fleet.gke_clusters:
        return
    from kueue_fleet.preflight.findings import findings
    from kueue_fleet.preflight.needs import needs_of

    for needs in needs_of(fleet):
        yield from findings(needs, _facts(needs))


def _facts(needs: Needs) -> Facts:
    from kueue_fleet.preflight.facts import Facts

    try:
        from kueue_fleet.preflight.google_cloud import CannotAskError, connect, read_facts
    except ModuleNotFoundError as missing:
        wrong = f"is asked with {missing.name}, which is not installed"
        return Facts(not_asked=Fault(wrong, "run: pip install 'kueue-fleet[preflight]'", UNREAD))
    try:
        return read_facts(needs, connect(needs.project))
    except CannotAskError as wrong:
        return Facts(not_asked=wrong.fault)


def _of_clusters(fleet: FleetSpec, kubeconfig: Path | None) -> Iterator[Finding]:
    if not fleet.plain_clusters:
        return
    from kueue_fleet.preflight.live_clusters import read_cluster
    from kueue_fleet.preflight.plain_clusters import ClusterFacts, plain_cluster_findings, plain_cluster_needs

    unreadable: console.CommandError | None = None
    try:
        check_readable(kubeconfig)
    except console.CommandError as refused:
        if refused.exit_code == 2:
            raise  # The option itself is wrong.
        unreadable = refused
    for needs in plain_cluster_needs(fleet):
        try:
            if unreadable is not None:
                raise unreadable
            facts = read_cluster(needs, connect_to("preflight", needs.cluster, kubeconfig, fleet))
        except (console.CommandError, AccessError) as refused:
            facts = ClusterFacts(wrong=str(refused), fix=needs.fix)
        yield from plain_cluster_findings(needs, facts)


def _table(found: list[Finding]) -> Table:
    from kueue_admission.cli.tables import Column, Table

    several = len({finding.project for finding in found}) > 1
    table = Table(
        *([Column("project")] if several else []),
        Column("what"),
        Column("needs", leave_out=1),
        Column("has", leave_out=2),
        Column("result"),
        Column("what to do", sentences=True),
    )
    for finding in found:
        todo = f"{finding.wrong}; {finding.fix}" if finding.wrong else ""
        cells = (
            finding.what,
            finding.needs,
            finding.has,
            console.Styled(finding.verdict, _STYLES[finding.verdict]),
            todo,
        )
        table.add(*([finding.project] if several else []), *cells)
    return table


def _verdict(project: str, found: list[Finding]) -> str:
    asks = sum(finding.verdict == "ask" for finding in found)
    unknown = sum(finding.verdict == "unknown" for finding in found)
    where = f"project {project}" if project else "its clusters outside GKE"
    if not asks and not unknown:
        return f"the fleet fits into {where}"
    if not asks:
        return f"it is not known whether the fleet fits into {where}: {unknown} not known"
    counts = [f"{asks} to ask for", f"{unknown} not known" if unknown else ""]
    return f"the fleet does not fit into {where} as it is: {', '.join(filter(None, counts))}"


_RULES: Final = {"ask": PROJECT, "check": PROJECT_IN_USE, "unknown": UNREAD}


def _problems(found: list[Finding], source: str) -> list[Problem]:
    return [
        (_RULES[finding.verdict] if finding.project else CLUSTER_NOT_READY).at(
            finding.what, finding.wrong, finding.fix, source=source
        )
        for finding in found
        if finding.verdict != "fits"
    ]


def _document(project: str, found: list[Finding]) -> dict[str, Any]:
    return {
        "schemaVersion": 1,
        "project": project or None,
        "fits": not any(finding.fails for finding in found),
        "findings": [
            {
                "project": finding.project or None,
                "part": finding.part,
                "what": finding.what,
                "needs": finding.needs,
                "has": finding.has,
                "result": finding.verdict,
                "wrong": finding.wrong or None,
                "fix": finding.fix or None,
            }
            for finding in found
        ],
    }
