"""Reading fleet files for the commands: from a path or standard input to a checked `FleetSpec`."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

from kueue_fleet.cli.console import CommandError, first_of
from kueue_fleet.cli.input_files import read_text, source_name
from kueue_fleet.fleet_file import FleetSpec, Reading, read_fleet_text
from kueue_fleet.kueue_api.known_messages import with_code

AsPublished = Annotated[
    bool,
    typer.Option(
        "--as-published",
        help="Only warn of what is wrong with the batch platform as it is published: more quota than its nodes "
        "hold, and service accounts without a project.",
    ),
]
"""The option of commands with which those defects can be tried."""


def read_fleet(file: Path, *, as_published: bool = False, text: str | None = None) -> Reading:
    """The fleet in FILE as it is now, with every problem found in it; no fleet where one of them is an error.

    `text` is that of FILE where it was read before.

    Raises:
        CommandError: FILE cannot be read.
    """
    now = datetime.now().astimezone()  # noqa: TID251  (the day where the user is)
    if text is None:
        text = read_text(file)
    return read_fleet_text(text, source_name(file), now, as_published=as_published)


def load_fleet(file: Path, *, as_published: bool = False, text: str | None = None) -> FleetSpec:
    """The fleet in FILE, or in its `text` that was read before.

    Raises:
        CommandError: with each problem on a line of its own, where one of them is an error; `check` prints all.
    """
    reading = read_fleet(file, as_published=as_published, text=text)
    if reading.fleet is None:
        raise CommandError(
            f"{source_name(file)} does not describe a fleet:",
            problems=first_of([with_code(str(each)) for each in reading.problems]),
        )
    return reading.fleet
