"""`upgrade`: what another release of Kueue does to a fleet, without a cluster."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kueue_admission.cli import console, options
from kueue_admission.cli.code_scanning import sarif_log
from kueue_admission.cli.dumps import tell_notes
from kueue_admission.cli.input_files import read_objects, read_what_can_be, well_formed
from kueue_admission.kernel.problem import Problem, errors_of
from kueue_admission.read.manifests import QUEUED
from kueue_fleet.cli.fleet_files import load_fleet
from kueue_fleet.cli.given_fleets import given_fleet
from kueue_fleet.cli.rehearse import ProjectFolder
from kueue_fleet.cli.spec_commands import FleetFile
from kueue_fleet.diff.upgrade import Upgrade, object_problems, upgrade_of

if TYPE_CHECKING:
    from kueue_admission.simulate.documents import Document
    from kueue_fleet.cli.given_fleets import GivenFleet
    from kueue_fleet.fleet_simulation.other_release import Compared


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
        typer.Option(
            "--objects",
            help="Objects of a cluster, and their definitions, as kubectl prints them. Its Workloads and jobs are "
            "simulated with both releases.",
        ),
    ] = None,
    jobs: Annotated[
        list[Path] | None,
        typer.Option("--jobs", help="Jobs as kubectl takes them, submitted to the fleet with both releases."),
    ] = None,
    workload: Annotated[
        Path | None,
        typer.Option("--workload", "-w", help="A workload file: more jobs, and waits of admission checks."),
    ] = None,
    rehearse: Annotated[
        bool,
        typer.Option(
            "--rehearse", help="Upgrade the fleet on real control planes here, in this order, while its jobs run."
        ),
    ] = False,
    project: ProjectFolder = None,
    output: Annotated[
        UpgradeOutput, typer.Option("--output", "-o", help="`sarif` has only what breaks, and jobs.")
    ] = UpgradeOutput.text,
) -> None:
    """Show what another release of Kueue breaks in a fleet, what is different by default, which jobs it decides
    differently, and in which order to go.

    Nothing on a live cluster changes. Exits 1 if something breaks, or if jobs need a feature that is not modelled for
    one of the releases.

    --rehearse brings the fleet up as its file is, and upgrades Kueue in place, cluster by cluster. Meanwhile jobs of
    --jobs, by default of examples/<stack>/jobs.yaml, are submitted again and again. It exits 1 if one of them did not
    end, or ran twice.

    \b
    Examples:
      kueue-fleet upgrade stacks/Pulumi.prod.yaml --to 0.19.2
      kubectl get crd,clusterqueues.kueue.x-k8s.io -o yaml > dump.yaml
      kueue-fleet upgrade . --to 0.19.2
      kueue-fleet upgrade fleet.yaml --to 0.20.0 --objects dump.yaml
      kueue-fleet upgrade fleet.yaml --to 0.19.2 --jobs jobs/
      kueue-fleet upgrade fleet.yaml --to 0.19.2 --jobs jobs.yaml --rehearse
    """
    options.read_kueue(to, "--to")
    if rehearse and output is not UpgradeOutput.text:
        raise console.mistyped(f"--rehearse and --output {output}: contradict each other; leave one of them out")
    if project is not None and not rehearse:
        raise console.mistyped(
            "--project: is where --rehearse runs the fleet's program; add --rehearse, or leave it out"
        )
    source_fleet = given_fleet(file)
    fleet = load_fleet(source_fleet)
    from kueue_fleet.cli.simulate_input import readable

    with well_formed():
        dump = [] if objects is None else read_what_can_be(objects)
        left_out: list[Problem] = []
        job_documents = [document for job in jobs or () for document in read_objects(job, left_out=left_out)]
        job_documents = readable(fleet, job_documents, left_out, alone=workload is None)
        comparison = _compare(source_fleet, to, dump, job_documents, workload)
    advice = upgrade_of(fleet, to, [document.data for document in dump])
    of_objects = (object_problem.behind(one.where) for one in dump for object_problem in object_problems(one.data, to))
    advice = replace(advice, problems=[*source_fleet.placed(advice.problems), *of_objects])
    decided_problems = [
        problem if problem.source else replace(problem, source=source_fleet.source)
        for of in comparison.values()
        for problem in of.problems
    ]
    if output is UpgradeOutput.json:
        console.json_document(_document(advice, comparison))
    elif output is UpgradeOutput.sarif:
        console.json_document(sarif_log([*advice.problems, *decided_problems]))
    else:
        _print(advice, comparison)
    if errors_of([*advice.problems, *decided_problems, *left_out]):
        raise typer.Exit(1)
    if rehearse:
        from kueue_fleet.cli.rehearsed_upgrade import rehearse_upgrade

        console.line()
        rehearse_upgrade(file, source_fleet, fleet, to, jobs or (), project)


def _compare(
    fleet_input: GivenFleet, to: str, dump: list[Document], documents: list[Document], workload: Path | None
) -> dict[str, Compared]:
    """What both releases decide, by the option that gives the jobs."""
    if not (documents or workload or any(document.data["kind"] in QUEUED for document in dump)):
        return {}  # What simulates is not imported.
    from kueue_fleet.cli.simulate_input import read_workload
    from kueue_fleet.fleet_simulation.other_release import compare_dump, compare_jobs
    from kueue_fleet.jobs.workload_file import WorkloadFile

    comparisons, file = {}, WorkloadFile()
    if workload is not None:
        file, _ = read_workload(workload)
    fleet = load_fleet(fleet_input, at=file.begin)
    if documents or workload:
        comparisons["jobs"] = compare_jobs(fleet, to, file, documents)
    if any(document.data["kind"] in QUEUED for document in dump):
        comparisons["objects"] = compare_dump(fleet, to, dump)
    tell_notes(dict.fromkeys(note for comparison in comparisons.values() for note in comparison.notes))
    return comparisons


def _in_text(comparisons: Mapping[str, Compared]) -> Iterator[str]:
    if not comparisons:
        yield "not looked at; give --jobs, or Workloads in --objects"
    for option, comparison in comparisons.items():
        yield from _lines(comparison.problems)
        if comparison.jobs:
            yield f"{len(comparison.differences)} of {console.count(comparison.jobs, 'job')} of --{option}"


def _lines(problems: Iterable[Problem]) -> list[str]:
    return [f"{problem.severity}: {problem.coded}" for problem in problems]


def _print(upgrade_plan: Upgrade, comparisons: Mapping[str, Compared]) -> None:
    for cluster, version in upgrade_plan.before.items():
        console.line(f"{cluster}: Kueue {version} -> {upgrade_plan.to}")
    for heading, lines in {
        "What breaks": _lines(upgrade_plan.problems),
        "What is different by default": upgrade_plan.changes,
        "Which jobs are decided differently": list(_in_text(comparisons)),
        "What to do, in this order": [f"{number}. {step}" for number, step in enumerate(upgrade_plan.steps, 1)],
    }.items():
        console.line()
        console.line(heading)
        for line in lines or ["nothing that is known"]:
            console.line(f"  {line}")


def _document(upgrade_plan: Upgrade, comparisons: Mapping[str, Compared]) -> dict[str, Any]:
    return {
        "schemaVersion": 1,
        "before": dict(upgrade_plan.before),
        "to": upgrade_plan.to,
        "problems": _as_data(upgrade_plan.problems),
        "changes": list(upgrade_plan.changes),
        "decisions": {
            option: {"jobs": value.jobs, "differences": value.differences, "problems": _as_data(value.problems)}
            for option, value in comparisons.items()
        },
        "steps": list(upgrade_plan.steps),
    }


def _as_data(problems: Iterable[Problem]) -> list[dict[str, Any]]:
    return [
        {
            "severity": problem.severity,
            "path": problem.path,
            "wrong": problem.wrong,
            "fix": problem.fix,
            "code": problem.rule.code,
        }
        for problem in problems
    ]
