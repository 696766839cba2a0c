"""Reading fleet files for the commands: from a path or standard input to a checked `FleetSpec`."""

from __future__ import annotations

from datetime import date
from pathlib import Path

from kueue_fleet.cli.console import CommandError
from kueue_fleet.cli.input_files import read_text
from kueue_fleet.spec import FleetSpec, Problem, SpecError, check_dates, check_fleet, parse_fleet_text


def read_fleet(file: Path) -> tuple[FleetSpec | None, list[Problem]]:
    """The fleet in FILE with every problem found in it; no fleet where one of them is an error."""
    try:
        fleet = parse_fleet_text(read_text(file), source=str(file))
    except SpecError as refused:
        return None, list(refused.problems)
    return fleet, [*check_fleet(fleet), *check_dates(fleet, date.today())]  # noqa: DTZ011  (the day where the user is)


def load_fleet(file: Path) -> FleetSpec:
    """The fleet in FILE.

    Raises:
        CommandError: with every problem on a line of its own, where one of them is an error.
    """
    fleet, problems = read_fleet(file)
    if fleet is None:
        raise CommandError(f"{file} does not describe a fleet:", problems=problems)
    return fleet
