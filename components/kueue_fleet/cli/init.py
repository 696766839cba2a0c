"""`init`: a first fleet file that works."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path
from typing import Annotated

import typer

from kueue_fleet.cli import console
from kueue_fleet.cli.input_files import write_text
from kueue_fleet.spec import SpecError, check_fleet, parse_fleet_text
from kueue_fleet.spec.starter import Starter, starter_text

_ROTATE_AFTER = timedelta(days=90)


def register(app: typer.Typer) -> None:
    """Add the command of this module to APP."""
    app.command(short_help="Write a first fleet file that works.")(init)


def init(
    name: Annotated[
        str | None, typer.Argument(help="Name of the fleet and of its stack; asked for if left out.")
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
        str | None, typer.Option("--accelerator", help="Kind of GPU, such as nvidia-l4.", show_default="nvidia-l4")
    ] = None,
    gpus: Annotated[int | None, typer.Option("--gpus", min=1, help="GPUs in each region.", show_default="8")] = None,
    team: Annotated[
        list[str] | None,
        typer.Option("--team", help="A team; repeat it, or write commas.", show_default="team-a, team-b"),
    ] = None,
    directory: Annotated[Path, typer.Option("--directory", "-C", help="Where the stack files are.")] = Path("stacks"),
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Ask nothing: take defaults for what is left out.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace the file.")] = False,
) -> None:
    """Write DIRECTORY/Pulumi.NAME.yaml: a fleet with Autopilot clusters, DWS, one queue and your teams, and check it.

    Asks for what is not given, on a terminal.

    \b
    Examples:
      kueue-fleet init
      kueue-fleet init dev --project my-project --region us-central1 --yes
      kueue-fleet init prod --project my-project --region europe-west4 \\
          --region us-east4 --gpus 32 --team vision --team language --yes
    """
    asks = console.interactive() and not yes
    name = name or _ask("Name of the fleet", "gpu-fleet", asks=asks)
    file = directory / f"Pulumi.{name}.yaml"
    if file.exists() and not force:
        raise console.CommandError(f"{file}: is there already; give another name, or --force to replace it")
    project = project or _ask("Google Cloud project id", "", asks=asks)
    if not project:
        raise console.CommandError("--project: is missing; give your Google Cloud project id", exit_code=2)
    if project.isdigit():
        raise console.CommandError(f"--project {project}: is a project's number; give its id", exit_code=2)
    regions = _list(region) or _words(_ask("Regions with GPUs, most preferred first", "us-central1", asks=asks))
    starter = Starter(
        name=name,
        project=project,
        regions=regions,
        accelerator=accelerator or _ask("Kind of GPU", "nvidia-l4", asks=asks),
        gpus=gpus or _number(_ask("GPUs in each region", "8", asks=asks)),
        teams=_list(team) or _words(_ask("Teams", "team-a, team-b", asks=asks)),
        rotate_by=date.today() + _ROTATE_AFTER,  # noqa: DTZ011  (the day where the user is)
    )
    text = starter_text(starter)
    try:
        problems = check_fleet(parse_fleet_text(text, str(file)))
    except SpecError as refused:
        raise console.CommandError(
            "this would not be a fleet; nothing was written:", problems=refused.problems
        ) from None
    write_text(file, text)
    for problem in problems:
        console.warning(f"{file}: {problem}")
    console.line(f"{file}: written, and valid. Next:")
    for command in (f"kueue-fleet render {file}", f"kueue-fleet rehearse --stack {name}", f"pulumi up --stack {name}"):
        console.line(f"  {command}")


def _ask(question: str, default: str, *, asks: bool) -> str:
    if not asks:
        return default
    return str(typer.prompt(question, default=default or None)).strip()


def _list(values: list[str] | None) -> tuple[str, ...]:
    """The names that an option gives, which may be repeated, or hold several with commas between."""
    return tuple(dict.fromkeys(name.strip() for value in values or () for name in value.split(",")))


def _words(answer: str) -> tuple[str, ...]:
    """The names in an answer, with commas or blanks between."""
    return tuple(dict.fromkeys(answer.replace(",", " ").split()))


def _number(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise console.CommandError(f"GPUs in each region: {text!r} is not a whole number above 0", exit_code=2)
    return int(text)
