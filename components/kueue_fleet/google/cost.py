"""What a fleet costs, with all its parts in Google Cloud."""

from __future__ import annotations

from kueue_fleet.fleet_file.cost import Cost, fleet_lines, not_counted
from kueue_fleet.fleet_file.model.fleet import FleetSpec
from kueue_fleet.gke.prices import Prices
from kueue_fleet.google.parts import CLOUD_PARTS


def cost_of(fleet: FleetSpec, prices: Prices) -> Cost:
    """What `fleet` costs with `prices`."""
    lines = [*fleet_lines(fleet, prices), *(line for part in CLOUD_PARTS for line in part.costs(fleet, prices))]
    unknown = [f"the price of {machine}" for line in lines for machine in line.missing if line.most]
    return Cost(prices.date, tuple(lines), tuple(dict.fromkeys([*unknown, *not_counted(fleet)])))
