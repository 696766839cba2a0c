"""Reads the CSV tables of this package. Lines that begin with `#` say what a table holds, where from, and when read."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from pkgutil import get_data
from typing import TypeVar

_Row = TypeVar("_Row")


def read_table(name: str) -> Sequence[dict[str, str]]:
    """The rows of `NAME.csv`, each by column.

    Raises:
        FileNotFoundError: there is no such table.
    """
    content = get_data(__package__, f"{name}.csv") or b""
    return list(csv.DictReader(line for line in content.decode().splitlines() if not line.startswith("#")))


def row_of(machine_type: str, rows: Mapping[str, _Row]) -> _Row | None:
    """The row for a machine type, from rows by the beginning of types' names: the longest that fits, or None."""
    longest = max((begin for begin in rows if machine_type.startswith(begin)), key=len, default=None)
    return None if longest is None else rows[longest]
