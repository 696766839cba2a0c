"""How machine types with GPUs or TPUs are offered: on demand, as Spot VMs, by DWS flex-start, by DWS Calendar.

The table is `consumption.csv`.

Source: https://cloud.google.com/kubernetes-engine/docs/concepts/consumption-option
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from kueue_fleet.gke.csv_tables import read_table, row_of


@cache
def _rows() -> Mapping[str, Mapping[str, str]]:
    return {row["machineTypes"]: row for row in read_table("consumption")}


def is_offered(machine: str, option: str) -> bool:
    """Whether the machine type is offered so, as far as known; `option` as in `capacity.type`."""
    row = row_of(machine, _rows())
    return row is None or row.get(option) != "no"


def zones_with(machine: str, option: str) -> tuple[str, ...] | None:
    """The zones where it is offered so; None where no difference between zones is known."""
    row = row_of(machine, _rows())
    cell = row.get(option) if row is not None else None
    return None if cell in (None, "", "yes", "no") else tuple(str(cell).split())


def options_of(machine: str) -> tuple[str, ...]:
    """How it is known to be offered, in the order of the table; reserved last, which every machine type is."""
    row = row_of(machine, _rows()) or {}
    options = (option for option in ("onDemand", "spot", "flexStart", "calendar") if row.get(option) not in ("", "no"))
    return (*options, "reserved")
