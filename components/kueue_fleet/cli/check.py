"""`check`: every problem of fleet files at once, for people, programs, GitHub's annotations and code scanners."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kueue_admission.cli import console
from kueue_admission.cli.code_scanning import annotation, sarif_log
from kueue_admission.cli.input_files import UnreadableError, read_objects, well_formed
from kueue_admission.kernel import Problem, errors_of
from kueue_admission.kernel.manifest import inside
from kueue_fleet.cli.fleet_files import AsPublished, read_fleet
from kueue_fleet.fleet_file import FleetSpec, Reading
from kueue_fleet.objects import render_fleet

if TYPE_CHECKING:
    from kueue_admission.simulate.documents import Document


class CheckOutput(StrEnum):
    """How problems are printed."""

    text = "text"
    json = "json"
    github = "github"
    sarif = "sarif"


def check(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE", help="Pulumi.<env>.yaml or bare fleet YAML files, or programs; `-` reads stdin."
        ),
    ],
    output: Annotated[
        CheckOutput,
        typer.Option(
            "--output",
            "-o",
            help="`json` and `sarif` print one document, `github` annotations of a GitHub workflow.",
        ),
    ] = CheckOutput.text,
    strict: Annotated[bool, typer.Option("--strict", help="Fail on warnings too.")] = False,
    as_published: AsPublished = False,
    jobs: Annotated[
        Path | None,
        typer.Option(
            "--jobs",
            help="Jobs of any kind that Kueue manages, as kubectl takes them: check that each fleet can run them, each "
            "alone.",
        ),
    ] = None,
    kubeconfig: Annotated[
        Path | None,
        typer.Option(
            "--kubeconfig",
            help="Ask the API server too where each fleet takes jobs, by a dry run, through the context of that "
            "cluster's name; needs --jobs.",
        ),
    ] = None,
) -> None:
    """Check fleet files against every rule that needs no cluster, and report every problem at once.

    Each problem is printed as `file:line: path.to.field: what is wrong; what to do`. Exits 1 if a file has an error.
    It ends with the code of its rule, such as KF502; `kueue-fleet explain KF502` says more.

    Of jobs it says what Kueue, GKE and the fleet refuse, and misspelt fields. With --kubeconfig the API server says the
    rest.

    \b
    Examples:
      kueue-fleet check stacks/Pulumi.*.yaml
      kueue-fleet check .
      kueue-fleet check examples/platform-repo
      kueue-fleet check --strict --output json stacks/Pulumi.prod.yaml
      kueue-fleet check --output github stacks/Pulumi.*.yaml
      kueue-fleet check --output sarif stacks/Pulumi.*.yaml > fleet.sarif
      kueue-fleet check examples/jobs/fleet.yaml --jobs examples/jobs/dws.yaml
      kueue-fleet check stacks/Pulumi.prod.yaml --jobs job.yaml \\
          --kubeconfig ~/.kube/config
      kueue-fleet check --as-published \\
          examples/batch-platform/with-defects.yaml
    """
    if kubeconfig is not None and jobs is None:
        raise console.mistyped("--kubeconfig: is for jobs; give them with --jobs")
    results = {console.source_name(file): _read(file, as_published=as_published) for file in files}
    if jobs is not None:
        results = _with_jobs(results, jobs, kubeconfig)
    problems = [problem for reading in results.values() for problem in reading.problems]
    if output is CheckOutput.json:
        documents = [_as_json(source, reading) for source, reading in results.items()]
        console.json_document({"files": documents})
    elif output is CheckOutput.sarif:
        console.json_document(sarif_log(problems))
    else:
        for source, reading in results.items():
            _print_problems(reading.problems, annotate=output is CheckOutput.github)
            if reading.fleet is not None and not errors_of(reading.problems):
                _print_valid(source, reading.fleet)
    if errors_of(problems) or (strict and problems):
        raise typer.Exit(1)


def _read(file: Path, *, as_published: bool) -> Reading:
    try:
        return read_fleet(file, as_published=as_published)
    except UnreadableError as failure:
        # One file that cannot be read hides no problem of the others.
        console.printed_by_others(failure.problems)
        return Reading(None, (failure.problem,))


def _with_jobs(results: Mapping[str, Reading], jobs: Path, kubeconfig: Path | None) -> dict[str, Reading]:
    """The same, with what is wrong with the jobs for each fleet that is right itself."""
    from kueue_fleet.fleet_simulation.job_findings import check_manifests

    left_out: list[Problem] = []
    with well_formed(jobs):
        manifests = read_objects(jobs, left_out=left_out)
    readings = {}
    for source, reading in results.items():
        problems = reading.problems
        if reading.fleet is not None and not errors_of(problems):
            of_jobs = check_manifests(reading.fleet, manifests)
            problems = (*problems, *left_out, *of_jobs.problems, *of_jobs.warnings)
            if kubeconfig is not None:
                problems = (*problems, *_refused_by_server(reading.fleet, manifests, kubeconfig))
        readings[source] = Reading(reading.fleet, problems)
    return readings


def _refused_by_server(fleet: FleetSpec, manifests: Sequence[Document], kubeconfig: Path) -> Iterator[Problem]:
    """What the API server says of jobs that it would refuse. Raises CommandError if it cannot be asked."""
    from kueue_admission.kernel.job_rules import JOB
    from kueue_admission.read.manifests import is_job, label_of
    from kueue_fleet.cli.live_jobs import Clusters, collection_of
    from kueue_fleet.kube.answers import ApiError

    clusters = Clusters("check", kubeconfig, fleet)
    for where, data in manifests:
        if not is_job(data):
            continue
        space = inside(data, "metadata").get("namespace") or "default"
        path = collection_of(str(data.get("apiVersion")), data["kind"], space)
        try:
            clusters.create(fleet.home, path, dict(data), dry_run=True)
        except ApiError as failed:
            if failed.status in (0, 401):
                raise console.CommandError(f"{fleet.home}: cannot be asked of {label_of(data)}: {failed}") from None
            # The form of an object is judged before its name is looked for.
            if failed.reason != "AlreadyExists":
                yield JOB.at(label_of(data), f"{fleet.home} refuses it: {failed}", "correct it").behind(where)


def _as_json(source: str, reading: Reading) -> dict[str, object]:
    problems = [
        {"severity": one.severity, "line": one.line, "path": one.path, "wrong": one.wrong, "fix": one.fix}
        | {"code": one.rule.code}
        for one in reading.problems
    ]
    return {"file": source, "valid": not errors_of(reading.problems), "problems": problems}


def _print_problems(problems: Sequence[Problem], *, annotate: bool) -> None:
    for problem in problems:
        if annotate:
            console.line(annotation(problem))
        else:
            (console.error if problem.severity == "error" else console.warning)(problem.coded)


def _print_valid(source: str, fleet: FleetSpec) -> None:
    manifests = render_fleet(fleet)
    objects = sum(len(of_cluster) for of_cluster in manifests.values())
    console.line(
        f"{source}: fleet {fleet.name} is valid: {console.count(len(manifests), 'cluster')}, "
        f"{console.count(len(fleet.cluster_queues), 'ClusterQueue')}, "
        f"{console.count(objects, 'Kubernetes object')}"
    )
