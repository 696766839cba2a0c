"""Opens and closes the pools of calendar reservations by their dates, where the file does not say `active` itself.

Google Cloud takes a pool of a reservation only once that has begun, and has none after it: who changes the pool is
whoever runs `pulumi up` then. Why: docs/decisions.md (15).
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, TypeVar

from kueue_fleet.fleet_file.model.capacity import Calendar
from kueue_fleet.fleet_file.model.fleet import FleetSpec
from kueue_fleet.fleet_file.model.node_pools import NodePoolEntry

C = TypeVar("C")
"""A capacity, or none."""


def fleet_at(fleet: FleetSpec, now: datetime) -> FleetSpec:
    """The fleet as it is at `now`; itself where no date decides."""
    return _fleet_with(fleet, lambda calendar: calendar.start <= now < calendar.end)


def fleet_opened(fleet: FleetSpec) -> FleetSpec:
    """The fleet with all pools open that ever are by their dates; itself where no date decides."""
    return _fleet_with(fleet, lambda _: True)


def fleet_undated(fleet: FleetSpec) -> FleetSpec:
    """The fleet without what dates have decided, for whoever decides it again later."""
    return _fleet_with(fleet, lambda _: None)


def fleet_having(fleet: FleetSpec, **fields: Any) -> FleetSpec:
    """The fleet with other values of these fields."""
    # What a fleet has looked up is not copied: it may depend on them.
    field_values = {name: getattr(fleet, name) for name in FleetSpec.model_fields}
    return FleetSpec.model_construct(fleet.model_fields_set, **{**field_values, **fields})


def _fleet_with(fleet: FleetSpec, is_open: Callable[[Calendar], bool | None]) -> FleetSpec:
    pools = tuple(_pool_with(pool, is_open) for pool in fleet.node_pools)
    return fleet if pools == fleet.node_pools else fleet_having(fleet, node_pools=pools)


def _pool_with(pool: NodePoolEntry, is_open: Callable[[Calendar], bool | None]) -> NodePoolEntry:
    own = _capacity(pool.capacity, is_open)
    others = {
        name: other.model_copy(update={"capacity": _capacity(other.capacity, is_open)})
        for name, other in pool.per_cluster.items()
    }
    if own == pool.capacity and others == pool.per_cluster:
        return pool
    return pool.model_copy(update={"capacity": own, "per_cluster": others})


def _capacity(capacity: C, is_open: Callable[[Calendar], bool | None]) -> C | Calendar:
    if isinstance(capacity, Calendar) and (capacity.active is None or "active" not in capacity.model_fields_set):
        # Not as a field that is set: the dates still decide, and another time may open or close it.
        capacity_fields = {**capacity.__dict__, "active": is_open(capacity)}
        return Calendar.model_construct(capacity.model_fields_set - {"active"}, **capacity_fields)
    return capacity
