"""Reading fleet files, and tables of prices, for the commands: from a path or standard input to what is in them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

from kueue_admission.cli import console
from kueue_admission.cli.console import CommandError, first_of
from kueue_admission.cli.input_files import read_text
from kueue_admission.kernel import errors_of
from kueue_fleet.cli.given_fleets import GivenFleet, given_fleet
from kueue_fleet.fleet_file import FleetSpec, Reading
from kueue_fleet.gke.machines import accelerators, machine_names
from kueue_fleet.gke.prices import COLUMNS, Prices, list_prices, parse_prices
from kueue_fleet.gke.zones import region_names

AsPublished = Annotated[
    bool,
    typer.Option(
        "--as-published",
        help="Only warn of what is wrong with the batch platform as it is published: more quota than its nodes "
        "hold, and service accounts without a project.",
    ),
]
"""The option of commands with which those defects can be tried."""


def today() -> datetime:
    """This moment, where the user is."""
    return datetime.now().astimezone()  # noqa: TID251  (the day where the user is)


def read_fleet(file: Path, *, as_published: bool = False) -> Reading:
    """The fleet that FILE names as it is now, with every problem found; no fleet where one of them is an error.

    Raises:
        CommandError: FILE cannot be read, or the program that it names fails.
    """
    return given_fleet(file).reading(today(), as_published=as_published)


def load_fleet(file: Path | GivenFleet, *, as_published: bool = False, at: datetime | None = None) -> FleetSpec:
    """The fleet that FILE names as it is now, or then.

    Raises:
        CommandError: with each error on a line of its own; `check` prints the warnings too.
    """
    source_fleet = file if isinstance(file, GivenFleet) else given_fleet(file)
    reading = source_fleet.reading(at or today(), as_published=as_published)
    if reading.fleet is None:
        raise CommandError(
            f"{source_fleet.source} does not describe a fleet:",
            problems=first_of([error.coded for error in errors_of(reading.problems)]),
        )
    return reading.fleet


PricesFile = Annotated[
    Path | None,
    typer.Option(
        "--prices",
        metavar="FILE",
        help=f"Your own prices, as CSV with the columns {','.join(COLUMNS)}; they replace those of the library.",
    ),
]
"""The option of commands that count money."""


def load_prices(file: Path | None) -> Prices:
    """The library's prices, replaced by those in FILE.

    Raises:
        CommandError: FILE cannot be read, or is not a table of prices.
    """
    if file is None:
        return list_prices()
    own, problems = parse_prices(read_text(file, "a CSV file of prices"), console.source_name(file))
    if problems:
        raise console.wrong_input(file, problems)
    for warning in _misspelt(own):
        console.warning(f"{console.source_name(file)}: {warning}")
    return list_prices().under(own)


def _misspelt(own: Prices) -> Iterator[str]:
    """Lines that are the price of nothing, as their name or region is near another one."""
    from kueue_admission.kernel.suggest import nearest

    machines = machine_names()
    names = {of for of, _ in list_prices().rows} | {*machines, *accelerators()}
    for of in dict.fromkeys(of for of, _ in own.rows):
        is_known = of in names or (of.endswith("-") and any(machine.startswith(of) for machine in machines))
        if not is_known and (near := nearest(of, sorted(names), 0.8)):
            yield f"{of} is not known, and its price counts for nothing; did you mean {near}?"
    for region in sorted({region for _, region in own.rows} - {"", *region_names()}):
        if near := nearest(region, region_names(), 0.8):
            yield f"{region} is not a known region, and its prices count for nothing; did you mean {near}?"
