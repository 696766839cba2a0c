"""Reading fleet files for the commands: from a path or standard input to a checked `FleetSpec`."""

from __future__ import annotations

from datetime import date
from pathlib import Path

from kueue_fleet.cli.console import CommandError, first_of
from kueue_fleet.cli.input_files import read_text, source_name
from kueue_fleet.fleet_file import FleetSpec, Reading, read_fleet_text
from kueue_fleet.kueue_api.known_messages import with_code


def read_fleet(file: Path) -> Reading:
    """The fleet in FILE with every problem found in it; no fleet where one of them is an error.

    Raises:
        CommandError: FILE cannot be read.
    """
    return read_fleet_text(read_text(file), source_name(file), date.today())  # noqa: DTZ011  (the day where the user is)


def load_fleet(file: Path) -> FleetSpec:
    """The fleet in FILE.

    Raises:
        CommandError: with each problem on a line of its own, where one of them is an error; `check` prints all.
    """
    reading = read_fleet(file)
    if reading.fleet is None:
        raise CommandError(
            f"{source_name(file)} does not describe a fleet:",
            problems=first_of([with_code(str(each)) for each in reading.problems]),
        )
    return reading.fleet
