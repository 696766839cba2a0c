"""What a change costs, by cluster and in all: differences of area `cost`, none where no amount changes."""

from __future__ import annotations

from collections.abc import Iterator

from kueue_fleet.fleet_file.cost import cost_of
from kueue_fleet.fleet_file.diff.difference import Difference
from kueue_fleet.fleet_file.model.fleet import FleetSpec
from kueue_fleet.gke.prices import HOURS_PER_MONTH, Prices


def compare_costs(old: FleetSpec, new: FleetSpec, prices: Prices) -> Iterator[Difference]:
    """What is paid by the hour on each cluster and for reservations, by the month in all, and what is not counted."""
    before, after = cost_of(old, prices), cost_of(new, prices)
    sides = [cost.by(lambda line: line.cluster) for cost in (before, after)]
    for name in dict.fromkeys((*sides[0], *sides[1])):
        text = _change([side.get(name, (0.0, 0.0)) for side in sides], "an hour")
        if text:
            yield Difference("cost", f"clusters[{name}]" if name else "reservations", text)
    totals = [(cost.always * HOURS_PER_MONTH, cost.in_use * HOURS_PER_MONTH) for cost in (before, after)]
    if text := _change(totals, "a month"):
        yield Difference("cost", "", f"in all {text}; prices of {prices.date}")
    for unknown in after.unknown:
        if unknown not in before.unknown:
            yield Difference("cost", "", f"not in these sums: {unknown}")


def _change(sides: list[tuple[float, float]], span: str) -> str:
    words = ("used or not", "more while all nodes are in use")
    changes = [
        f"{was:,.2f} -> {becomes:,.2f} USD {span} {what}"
        for was, becomes, what in zip(*sides, words, strict=True)
        if round(was, 2) != round(becomes, 2)
    ]
    return ", ".join(changes)
