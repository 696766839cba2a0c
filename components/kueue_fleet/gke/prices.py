"""List prices of machines, GPUs and disks, from `prices.csv` or from a table of the same form that a user has.

A price that is in no table is not known: it is None, never 0.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pkgutil import get_data
from typing import Final, Literal

from kueue_fleet.gke.machines import LOCAL_SSD_GB, MachineType

HOURS_PER_MONTH: Final = 730
"""As Google computes a month."""
CLUSTER: Final = "cluster"
"""What the fee of a cluster is called in the table."""
LOCAL_SSD: Final = "local-ssd"
"""What local SSDs are called in the table."""
COLUMNS: Final = ("of", "regions", "onDemand", "spot", "flexStart")
"""The columns of a table."""
_PRICE: Final = re.compile(r"[0-9]{1,6}(\.[0-9]*)?|\.[0-9]+")
"""USD an hour, below a million."""

Model = Literal["onDemand", "spot", "flexStart"]
"""How a machine is paid."""


@dataclass(frozen=True, slots=True)
class Missing:
    """A price that is not in the table."""

    of: str
    """What it would be the price of, as in the table."""
    region: str
    model: Model | None = None

    def __str__(self) -> str:
        return f"{self.of} in {self.region}{f', {self.model}' if self.model else ''}"


@dataclass(frozen=True)
class Prices:
    """A table of prices, in USD."""

    date: str
    """Of when they are, or whose."""
    rows: Mapping[tuple[str, str], Mapping[str, float]]
    """By what they are of and the region, "" for every region: by how it is paid."""

    def under(self, other: Prices) -> Prices:
        """These prices, replaced by those of `other` where it has some."""
        return Prices(f"{self.date}, and {other.date}", {**self.rows, **other.rows})

    @property
    def at_most(self) -> Prices:
        """The same with what it costs on demand where the price of Spot or Flex Start is not known: it is not more."""
        rows = {
            of: {**dict.fromkeys(("spot", "flexStart"), row["onDemand"]), **row} if "onDemand" in row else row
            for of, row in self.rows.items()
        }
        return replace(self, rows=rows)

    def price(self, of: str, region: str, model: Model) -> float | Missing:
        """The price of one unit. A row whose name ends with `-` is for all that begin so; the longest name counts."""
        beginnings = [of[: end + 1] for end in range(len(of)) if of[end] == "-"]
        for name in (of, *reversed(beginnings)):
            row = self.rows.get((name, region), self.rows.get((name, "")))
            if row is not None:
                return row.get(model, Missing(of, region, model))
        return Missing(of, region, model)

    def of_machine(self, name: str, machine: MachineType | None, region: str, model: Model) -> list[float | Missing]:
        """The prices for an hour that those of a machine consist of: vCPUs with memory, GPUs, its local SSDs.

        A machine with TPUs is paid by the chip alone.
        """
        if machine is None:
            return [Missing(name, region, model)]
        parts: list[tuple[float, float | Missing]] = []
        if not machine.chips:
            parts.append((machine.cpus, self.price(name, region, model)))
        if machine.accelerator is not None:
            parts.append((machine.accelerators, self.price(machine.accelerator, region, model)))
        prices = [price if isinstance(price, Missing) else price * count for count, price in parts]
        return [*prices, *self.of_local_ssds(machine.local_ssds, region, model, machine.ssd_gib)]

    def of_local_ssds(
        self, count: int, region: str, model: Model, gigabytes: int = LOCAL_SSD_GB
    ) -> list[float | Missing]:
        """The price of so many local SSDs for an hour."""
        return self.of_disk(LOCAL_SSD, count * gigabytes, region, model) if count else []

    def of_disk(self, kind: str, gigabytes: int, region: str, model: Model = "onDemand") -> list[float | Missing]:
        """The price of a disk for an hour."""
        price = self.price(kind, region, model)
        return [price if isinstance(price, Missing) else price * gigabytes / HOURS_PER_MONTH]


@cache
def list_prices() -> Prices:
    """The table that comes with the library."""
    prices, _ = parse_prices((get_data(__package__, "prices.csv") or b"").decode(), "the library's table")
    return prices


def parse_prices(text: str, name: str) -> tuple[Prices, Sequence[str]]:
    """The table in TEXT, and what is wrong with it; each problem names its line.

    A comment `# Prices of DATE` gives its date; without one it has that of its `name`.
    """
    date_match = re.search(r"^# Prices of (\S.*?)\s*$", text, re.MULTILINE)
    lines = [(number, line) for number, line in enumerate(text.splitlines(), 1) if line.strip() and line[0] != "#"]
    rows: dict[tuple[str, str], dict[str, float]] = {}
    problems = []
    header = lines[0][1].strip() if lines else ""
    if header.split(",") != list(COLUMNS):
        problems.append(f"line {lines[0][0] if lines else 1}: the header is not `{','.join(COLUMNS)}`; write that line")
        lines = lines[:1]
    for number, line in lines[1:]:
        of, regions, *numbers = [cell.strip() for cell in next(csv.reader([line]))] + [""] * 2
        prices = {}
        for model, cell in zip(COLUMNS[2:], numbers, strict=False):
            price = _number(cell) if cell else None
            if price is None and cell:
                problems.append(
                    f"line {number}: {model}: {cell} is not a price; write a number such as 0.56, or nothing"
                )
            elif price is not None:
                prices[model] = price
        if not of or len(numbers) > len(COLUMNS):
            problems.append(f"line {number}: is not of the form `{','.join(COLUMNS)}`; write as many columns")
        for region in regions.split() or [""]:
            if (of, region) in rows:
                where = region or "every region"
                problems.append(f"line {number}: {of} in {where} is there twice; remove one of the lines")
            rows[of, region] = prices
    return Prices(date_match[1] if date_match else name, rows), problems


def _number(cell: str) -> float | None:
    return float(cell) if _PRICE.fullmatch(cell) else None
