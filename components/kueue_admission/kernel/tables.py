"""Reads the CSV tables of a package. Lines that begin with `#` say what a table holds, where from, and when read."""

from __future__ import annotations

import csv
from pkgutil import get_data
from typing import Any


def read_table(package: str, file: str) -> list[dict[str, Any]]:
    """The rows of a table, each a text by column.

    Raises:
        FileNotFoundError: there is no such table.
    """
    text = (get_data(package, file) or b"").decode()
    columns, *rows = csv.reader(line for line in text.splitlines() if not line.startswith("#"))
    return [dict(zip(columns, row, strict=True)) for row in rows]
