"""Reading fleet files for the commands: from a path or standard input to a checked `FleetSpec`."""

from __future__ import annotations

import sys
from datetime import date
from pathlib import Path

from kueue_fleet.cli.console import CommandError
from kueue_fleet.spec import FleetSpec, Problem, SpecError, check_dates, check_fleet, parse_fleet_text


def read_text(file: Path) -> str:
    """The text of FILE, or of standard input for `-`.

    Raises:
        CommandError: there is no such file, it cannot be read, or it is not UTF-8 text.
    """
    if str(file) == "-":
        return sys.stdin.read()
    try:
        return file.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise CommandError(f"{file}: no such file; give a Pulumi.<env>.yaml or a fleet YAML") from None
    except IsADirectoryError:
        raise CommandError(f"{file}: is a directory; give a Pulumi.<env>.yaml or a fleet YAML in it") from None
    except UnicodeDecodeError as wrong:
        raise CommandError(f"{file}: is not UTF-8 text (byte {wrong.start}); save it as UTF-8") from None
    except OSError as wrong:
        raise CommandError(f"{file}: cannot be read: {wrong.strerror}; check its permissions") from None


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
        raise CommandError("\n".join([f"{file} does not describe a fleet:", *(f"  {problem}" for problem in problems)]))
    return fleet
