"""Quotas that are others in windows of time: `controller.quotaWindows`, and `during` of quotas.

The file's quotas hold outside of the windows; they are what `render`, `diff` and `pulumi up` see. The fleet's
controller writes what holds now, and simulations go by the same function.
"""

from __future__ import annotations

from collections.abc import Set
from datetime import datetime, timedelta

from kueue_fleet.fleet_file.calendar_pools import fleet_having
from kueue_fleet.fleet_file.model.fleet import FleetSpec
from kueue_fleet.settings.quotas import groups_in
from kueue_fleet.settings.windows import CalendarWindow, names_open

_PERIOD = timedelta(days=8)
"""Longer than from one opening of a weekly window to the next, also where clocks change between them."""


def quota_windows(fleet: FleetSpec) -> tuple[CalendarWindow, ...]:
    """The windows in which a quota of the fleet is another one."""
    section = fleet.controller
    window_names = {name for queue in fleet.cluster_queues for name in queue.windows}
    return (
        ()
        if section is None
        else tuple(quota_window for quota_window in section.quota_windows if quota_window.name in window_names)
    )


def open_windows(fleet: FleetSpec, now: datetime) -> frozenset[str]:
    """Those that are open at `now`."""
    return names_open(quota_windows(fleet), now)


def next_border(fleet: FleetSpec, now: datetime) -> datetime | None:
    """When after `now` the next window opens or closes; None: none does any more."""
    borders = [
        border
        for window in quota_windows(fleet)
        for times in window.opens(now, max(now, window.start) + _PERIOD)
        for border in times
    ]
    return min((border for border in borders if border > now), default=None)


def fleet_in(fleet: FleetSpec, windows: Set[str]) -> FleetSpec:
    """The fleet with the quotas that hold while these windows are open; itself where none changes any."""
    if not any(windows & set(queue.windows) for queue in fleet.cluster_queues):
        return fleet
    queues = tuple(
        queue.model_copy(update={"resource_groups": groups_in(queue.resource_groups, windows)})
        for queue in fleet.cluster_queues
    )
    return fleet_having(fleet, cluster_queues=queues)
