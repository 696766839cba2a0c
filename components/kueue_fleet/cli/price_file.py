"""`--prices`: a table of the user's own prices over that of the library."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kueue_fleet.cli import console
from kueue_fleet.cli.input_files import read_text
from kueue_fleet.gke.prices import COLUMNS, Prices, list_prices, parse_prices

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
    own, problems = parse_prices(read_text(file, "a CSV file of prices"), str(file))
    if problems:
        raise console.wrong_input(file, problems)
    return list_prices().under(own)
