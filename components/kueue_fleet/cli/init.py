"""`init`: a first fleet file that works, and jobs to try it with."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from kueue_admission.cli import console
from kueue_admission.cli.input_files import is_there, write_text
from kueue_admission.kernel.problem import errors_of
from kueue_admission.kernel.suggest import instead
from kueue_fleet.fleet_file.starter import (
    ANSWERS,
    OUTSIDE_GKE,
    STARTER_PROGRAM,
    Starter,
    starter_jobs,
    starter_problems,
    starter_project,
    starter_text,
)
from kueue_fleet.gke.machines import gpus
from kueue_fleet.gke.zones import regions_with

_QUESTIONS = {
    "name": "Name of the fleet",
    "project": "Google Cloud project id",
    "regions": "Regions with GPUs, most preferred first",
    "accelerator": "Kind of GPU",
    "gpus": "GPUs in each region",
    "teams": "Teams",
}
_OPTIONS = {
    "name": "NAME",
    "project": "--project",
    "regions": "--region",
    "accelerator": "--accelerator",
    "gpus": "--gpus",
    "teams": "--team",
}
_DEFAULTS = Starter("gpu-fleet", "", ("us-central1",), "nvidia-l4", 8, ("team-a", "team-b"), date.min)


def init(
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="Name of the fleet and of its stack; asked for if left out.")
    ] = None,
    project: Annotated[str | None, typer.Option("--project", help="Google Cloud project id.")] = None,
    region: Annotated[
        list[str] | None,
        typer.Option(
            "--region",
            help="A region with GPUs. One: a single cluster. More: a manager in the first, a worker in each.",
        ),
    ] = None,
    accelerator: Annotated[
        str | None,
        typer.Option(
            "--accelerator",
            metavar="KIND",
            help=f"Kind of GPU: {', '.join(sorted(gpus()))}.",
            show_default="nvidia-l4",
        ),
    ] = None,
    gpus: Annotated[int | None, typer.Option("--gpus", min=1, help="GPUs in each region.", show_default="8")] = None,
    team: Annotated[
        list[str] | None,
        typer.Option("--team", help="A team; repeat it, or write commas.", show_default="team-a, team-b"),
    ] = None,
    kubernetes: Annotated[
        str | None,
        typer.Option(
            "--kubernetes",
            metavar="CONTEXT",
            help="Context of one cluster of any Kubernetes, instead of new ones of GKE: no project, no Google Cloud.",
        ),
    ] = None,
    directory: Annotated[Path, typer.Option("--directory", "-C", help="Where the stack files are.")] = Path("stacks"),
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Ask nothing: take defaults for what is left out.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace the files.")] = False,
) -> None:
    """Write DIRECTORY/Pulumi.NAME.yaml: a fleet with Autopilot clusters, DWS, one queue and your teams, and check it.

    Also write jobs to try it with, to examples/NAME/jobs.yaml of the Pulumi project: `rehearse` submits them.
    Without a Pulumi.yaml, also write a project around it: Pulumi.yaml and __main__.py.
    On a terminal it asks for what is not given, and asks again after a wrong answer.

    \b
    Examples:
      kueue-fleet init
      kueue-fleet init dev --project my-project --region us-central1 --yes
      kueue-fleet init lab --kubernetes kind-kind --yes
      kueue-fleet init prod --project my-project --region europe-west4 \\
          --region us-east4 --gpus 32 --team vision --team language --yes
    """
    answers: dict[str, Any] = {
        "name": name,
        "project": project,
        "regions": _names(region),
        "accelerator": accelerator,
        "gpus": gpus,
        "teams": _names(team),
    }
    answers = {answer: value for answer, value in answers.items() if value}
    if kubernetes is not None:
        if not kubernetes:
            raise console.mistyped("--kubernetes: is empty; give a context of your kubeconfig")
        answers["context"] = kubernetes
        if others := [answer for answer in answers if answer in ANSWERS and answer not in OUTSIDE_GKE]:
            option = _OPTIONS[others[0]]
            raise console.mistyped(
                f"{option}: is of GKE, and --kubernetes says that the cluster is not; give one of both"
            )
    starter = replace(_DEFAULTS, today=date.today(), **answers)  # noqa: DTZ011  (the day where the user is)
    _refuse(starter, [answer for answer in answers if answer in ANSWERS])
    for answer in starter.answers:
        if answer not in answers and not yes and console.on_a_terminal():
            starter = _ask(answer, starter, lambda made: None if force else _refusal(made, directory))
    # An answer that is right by itself may be wrong beside the others, and the project may be missing.
    _refuse(starter, starter.answers)
    if not force and (refusal := _refusal(starter, directory)):
        raise console.CommandError(refusal)
    _write(starter, directory, force=force)


def _names(values: list[str] | None) -> tuple[str, ...]:
    """The names that an option gives, which may be repeated, or hold several with commas between."""
    return tuple(dict.fromkeys(name.strip() for value in values or () for name in value.split(",")))


def _wrong(answer: str, starter: Starter) -> list[str]:
    """What is wrong with an answer."""
    if answer == "project" and not starter.project:
        return ["is missing; give your Google Cloud project id"]
    if answer == "project" and starter.project.isdigit():
        return [f"{starter.project} is a project's number; give its id"]
    value = getattr(starter, answer)
    for text in value if isinstance(value, tuple) else (str(value),):
        if not text.isprintable():
            return [f"{text!r} has characters that do not print; write letters, digits and hyphens"]
    if answer == "accelerator" and starter.accelerator not in gpus():
        fix = instead(starter.accelerator, sorted(gpus()), "kinds of GPU")
        return [f"{starter.accelerator} is not a known kind of GPU; {fix}"]
    errors = errors_of(starter_problems(starter).get(answer, ()))
    return list(dict.fromkeys(f"{problem.wrong}; {problem.fix}" for problem in errors))


def _refusal(starter: Starter, directory: Path) -> str | None:
    """What to say where the fleet's file is there already."""
    file = _file(starter, directory)
    return f"{file}: already exists; give another name, or --force to replace it" if is_there(file) else None


def _refuse(starter: Starter, answers: Iterable[str]) -> None:
    """Raises CommandError where one of these answers is wrong."""
    wrong = [f"{_OPTIONS[answer]}: {problem}" for answer in answers for problem in _wrong(answer, starter)]
    if wrong:
        raise console.mistyped("nothing is written:", wrong)


def _ask(answer: str, starter: Starter, refusal_of: Callable[[Starter], str | None]) -> Starter:
    """The starter with an answer that is right, which is asked for as often as it takes."""
    if answer == "accelerator":
        offered_kinds = [kind for kind in sorted(gpus()) if _is_offered(kind, starter.regions)]
        console.paragraph(f"Kinds of GPU in {', '.join(starter.regions)}: {', '.join(offered_kinds)}")
    default = getattr(starter, answer)
    default_text = ", ".join(default) if isinstance(default, tuple) else str(default)
    while True:
        try:
            text = typer.prompt(_QUESTIONS[answer], default=default_text or None)
        except typer.Abort:
            console.line()  # The question is there without an end.
            raise console.CommandError("the answers end before the last question; nothing is written") from None
        try:
            starter_there = replace(starter, **{answer: _PARSED.get(answer, str.strip)(text)})
            wrong = _wrong(answer, starter_there)
            if answer == "name" and not wrong and (there := refusal_of(starter_there)):
                wrong = [there]
        except ValueError as refused:
            wrong = [str(refused)]
        if not wrong:
            return starter_there
        for problem in wrong:
            console.error(problem)


def _is_offered(accelerator: str, regions: Iterable[str]) -> bool:
    known_regions = regions_with(accelerator)
    return known_regions is None or set(regions) <= set(known_regions)


def _words(answer: str) -> tuple[str, ...]:
    """The names in an answer, with commas or blanks between."""
    words = tuple(dict.fromkeys(answer.replace(",", " ").split()))
    if not words:
        raise ValueError("no name is given; write one or more, with blanks between")
    return words


def _number(text: str) -> int:
    if not (text.isascii() and text.strip().isdigit()) or int(text) < 1:
        raise ValueError(f"{text} is not a whole number above 0; write one")
    return int(text)


_PARSED: Final[Mapping[str, Callable[[str], Any]]] = {"regions": _words, "gpus": _number, "teams": _words}


def _file(starter: Starter, directory: Path) -> Path:
    return directory / f"Pulumi.{starter.name}.yaml"


def _project(directory: Path) -> Path | None:
    """The nearest folder with Pulumi.yaml: the one of the stack files, or one above."""
    folders = (directory, *directory.absolute().parents)
    return next((folder for folder in folders if is_there(folder / "Pulumi.yaml")), None)


def project_around(directory: Path, fleet: str) -> Path:
    """The folder of the Pulumi project that the stack files in `directory` belong to; without one, it is written.

    Raises:
        CommandError: it cannot be written.
    """
    if (project := _project(directory)) is not None:
        return project
    root = directory.parent if directory.name == "stacks" else directory
    stacks = directory.name if directory.name == "stacks" else "."
    for name, text in (("Pulumi.yaml", starter_project(fleet, stacks)), ("__main__.py", STARTER_PROGRAM)):
        if not is_there(root / name):
            write_text(root / name, text)
            console.line(f"{root / name}: written.")
    return root


def _jobs_file(starter: Starter, project: Path) -> Path:
    """Where `rehearse` looks for jobs: below the folder with Pulumi.yaml."""
    here = Path.cwd()
    jobs = project.absolute() / "examples" / starter.name / "jobs.yaml"
    return jobs.relative_to(here) if jobs.is_relative_to(here) else jobs


def _write(starter: Starter, directory: Path, *, force: bool) -> None:
    file = _file(starter, directory)
    write_text(file, starter_text(starter))
    for problems in starter_problems(starter).values():
        for problem in problems:
            console.warning(f"{file}: {problem.coded}")
    console.line(f"{file}: written, and valid.")
    project = project_around(directory, starter.name)
    jobs = _jobs_file(starter, project)
    if force or not jobs.exists():
        write_text(jobs, starter_jobs(starter))
        console.line(f"{jobs}: written: a job for each team.")
    console.line("Next:")
    console.line(f"  kueue-fleet simulate fleet {file} --jobs {jobs}")
    for command in ("kueue-fleet rehearse run --stack", "pulumi stack init", "pulumi up --stack"):
        console.line(f"  {command} {starter.name}")
