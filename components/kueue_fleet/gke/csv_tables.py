"""Reads the CSV tables of this package. Lines that begin with `#` say what a table holds, where from, and when read."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pkgutil import get_data


def read_table(name: str) -> Sequence[dict[str, str]]:
    """The rows of `NAME.csv`, each by column.

    Raises:
        FileNotFoundError: there is no such table.
    """
    content = get_data(__package__, f"{name}.csv") or b""
    return list(csv.DictReader(line for line in content.decode().splitlines() if not line.startswith("#")))
