"""Windows of admission checks that follow from calendar pools.

A check without windows gets them where every flavor that its queues use leads to pools of DWS Calendar only: outside of
those times nothing could run there. A queue that has other nodes too has no windows but those that are written down.
"""

from __future__ import annotations

from collections.abc import Iterator

from kueue_fleet.fleet_file.model.capacity import Calendar
from kueue_fleet.fleet_file.model.fleet import FleetSpec
from kueue_fleet.settings.dispatch import FleetCheck
from kueue_fleet.settings.windows import CalendarWindow


def fleet_checks(fleet: FleetSpec) -> tuple[FleetCheck, ...]:
    """The checks of the fleet's controller as it is to answer them; none without a controller."""
    section = fleet.controller
    if section is None:
        return ()
    return tuple(
        check if check.windows else check.model_copy(update={"windows": derived_windows(fleet, check)})
        for check in section.checks
    )


def derived_windows(fleet: FleetSpec, check: FleetCheck) -> tuple[CalendarWindow, ...]:
    """The times of the calendar pools behind the queues that have the check, named like their reservations."""
    windows: dict[str, CalendarWindow] = {}
    for capacity in _capacities(fleet, check):
        if not isinstance(capacity, Calendar):
            return ()
        windows[capacity.reservation] = CalendarWindow(
            name=capacity.reservation, start=capacity.start, duration=capacity.duration
        )
    return tuple(sorted(windows.values(), key=lambda window: (window.start, window.name)))


def _capacities(fleet: FleetSpec, check: FleetCheck) -> Iterator[object]:
    """Where the nodes of each flavor come from, on each cluster; None where there is no pool of the file."""
    for queue in fleet.cluster_queues:
        for name in dict.fromkeys(queue.flavor_names) if check.name in queue.check_names else ():
            entry = fleet.flavor(name)
            for cluster in fleet.worker_names or fleet.job_clusters:
                if entry is not None and name in fleet.flavors_on(cluster):
                    pools = fleet.flavor_nodes(entry, cluster)
                    yield from (pool.capacity for pool in pools)
                    if not pools:
                        yield None
