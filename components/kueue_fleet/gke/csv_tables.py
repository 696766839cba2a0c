"""The CSV tables of this package."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

from kueue_admission.kernel import tables

_Row = TypeVar("_Row")


def read_table(name: str) -> Sequence[dict[str, str]]:
    """The rows of `NAME.csv`, each by column.

    Raises:
        FileNotFoundError: there is no such table.
    """
    return tables.read_table(__package__, f"{name}.csv")


def row_of(machine_type: str, rows: Mapping[str, _Row]) -> _Row | None:
    """The row for a machine type, from rows by the beginning of types' names: the longest that fits, or None."""
    longest = max((begin for begin in rows if machine_type.startswith(begin)), key=len, default=None)
    return None if longest is None else rows[longest]
