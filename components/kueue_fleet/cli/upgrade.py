"""`upgrade`: what another release of Kueue does to a fleet, without a cluster."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from kueue_admission.cli import console
from kueue_admission.cli.input_files import read_objects, well_formed
from kueue_admission.forms import syntax
from kueue_admission.releases import UnknownReleaseError, release
from kueue_fleet.cli.check import sarif_log
from kueue_fleet.cli.fleet_files import load_fleet
from kueue_fleet.cli.spec_commands import FleetFile
from kueue_fleet.diff.upgrade import Upgrade, upgrade_of


class UpgradeOutput(StrEnum):
    """How `upgrade` prints."""

    text = "text"
    json = "json"
    sarif = "sarif"


def upgrade(
    file: FleetFile,
    to: Annotated[str, typer.Option("--to", metavar="VERSION", help="The version of Kueue to go to, such as 0.19.2.")],
    objects: Annotated[
        Path | None,
        typer.Option("--objects", help="Objects of the clusters, and their definitions, as kubectl prints them."),
    ] = None,
    output: Annotated[
        UpgradeOutput, typer.Option("--output", "-o", help="`sarif` has only what breaks.")
    ] = UpgradeOutput.text,
) -> None:
    """Say what another release of Kueue breaks in a fleet, what is different by default, and in which order to go.

    Nothing on a cluster changes. Exits 1 if something breaks.

    \b
    Examples:
      kueue-fleet upgrade stacks/Pulumi.prod.yaml --to 0.19.2
      kubectl get crd,clusterqueues.kueue.x-k8s.io -o yaml > dump.yaml
      kueue-fleet upgrade fleet.yaml --to 0.20.0 --objects dump.yaml
    """
    fault = syntax.version(to)
    if fault is not None:
        raise console.mistyped(f"--to: {to} {fault}")
    try:
        release(to)
    except UnknownReleaseError as unknown:
        raise console.mistyped(f"--to: {unknown}") from None
    fleet = load_fleet(file)
    manifests: list[Mapping[str, Any]] = []
    if objects is not None:
        with well_formed(objects):
            manifests = [document.data for document in read_objects(objects)]
    found = upgrade_of(fleet, to, manifests)
    if output is UpgradeOutput.json:
        console.json_document(_document(found))
    elif output is UpgradeOutput.sarif:
        console.json_document(sarif_log(found.problems))
    else:
        _print(found)
    if any(problem.severity == "error" for problem in found.problems):
        raise typer.Exit(1)


def _print(found: Upgrade) -> None:
    for cluster, version in found.before.items():
        console.line(f"{cluster}: Kueue {version} -> {found.to}")
    for heading, lines in {
        "What breaks": [f"{each.severity}: {each.coded}" for each in found.problems],
        "What is different by default": found.changes,
        "What to do, in this order": [f"{number}. {step}" for number, step in enumerate(found.steps, 1)],
    }.items():
        console.line()
        console.line(heading)
        for line in lines or ["nothing that is known"]:
            console.line(f"  {line}")


def _document(found: Upgrade) -> dict[str, Any]:
    problems = [
        {"severity": each.severity, "path": each.path, "wrong": each.wrong, "fix": each.fix, "code": each.rule.code}
        for each in found.problems
    ]
    return {
        "schemaVersion": 1,
        "before": dict(found.before),
        "to": found.to,
        "problems": problems,
        "changes": list(found.changes),
        "steps": list(found.steps),
    }
