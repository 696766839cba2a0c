"""Rules that depend on the day. The caller says which day it is, as the spec has no clock.

Source: https://cloud.google.com/compute/docs/instances/future-reservations-calendar-mode-overview, and for exclusions
https://cloud.google.com/kubernetes-engine/docs/concepts/maintenance-windows-and-exclusions. When tokens are rotated is
the fleet's own rule.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta
from typing import Final

from kueue_admission.kernel.problem import Problem
from kueue_fleet.fleet_file.model.capacity import Calendar
from kueue_fleet.fleet_file.model.fleet import FleetSpec
from kueue_fleet.fleet_file.rules.clusters import CALENDAR, ENDED
from kueue_fleet.fleet_file.rules.teams import QUOTA_WINDOW, ROTATION
from kueue_fleet.fleet_file.worker_tokens import ROTATE_WITHIN, token_credentials
from kueue_fleet.settings.windows import CalendarWindow

WARNING_DAYS: Final = 14
"""How many days before `rotateBy`, or before a calendar reservation ends, a warning begins."""
_FAR: Final = 366


def check_dates(fleet: FleetSpec, today: date) -> list[Problem]:
    """What is due on `today`: warnings only, as a date that passes must not stop an urgent change."""
    return [*_rotation(fleet, today), *_calendars(fleet, today), *_exclusions(fleet, today), *_windows(fleet, today)]


def _calendars(fleet: FleetSpec, today: date) -> Iterator[Problem]:
    """Pools of calendar reservations are opened when these begin, and removed when they end."""
    for pool in fleet.node_pools:
        for cluster in fleet.clusters_of(pool):
            capacity = pool.on(cluster).capacity
            if not isinstance(capacity, Calendar):
                continue
            base = f"nodePools[{pool.name}]"
            path = f"{base}.perCluster[{cluster}].capacity" if cluster in pool.per_cluster else f"{base}.capacity"
            start, end = capacity.start.date(), capacity.end.date()
            if end < today:
                yield ENDED.at(
                    f"{path}.duration",
                    f"reservation {capacity.reservation} ended on {end}, and its nodes with it",
                    "remove the pool and its flavor",
                )
            elif start <= today and capacity.active is False:
                yield CALENDAR.at(
                    f"{path}.active",
                    f"false, but reservation {capacity.reservation} began on {start}, so nodes that are paid for wait",
                    "remove it, and run pulumi up once the reservation is there",
                )
            elif capacity.active and today < start:
                yield CALENDAR.at(
                    f"{path}.active",
                    f"true, but reservation {capacity.reservation} begins on {start}",
                    "remove it, and run pulumi up once it has begun",
                )
            elif start <= today and (end - today).days <= WARNING_DAYS:
                yield CALENDAR.at(
                    f"{path}.duration",
                    f"reservation {capacity.reservation} ends on {end}, in {(end - today).days} days: Google removes "
                    "its nodes then, and the pods of jobs that still run fail",
                    "keep longer jobs out with an entry of controller.checks that has windows, or with "
                    "stopPolicy Hold on its queues",
                )
            if cluster not in pool.per_cluster:
                break
    reservation_names = {pool.capacity.reservation for pool in fleet.node_pools if isinstance(pool.capacity, Calendar)}
    for entry in fleet.future_reservations:
        if entry.planning_status == "DRAFT" and entry.start.date() <= today:
            yield CALENDAR.at(
                f"futureReservations[{entry.name}].start",
                f"{entry.start.date()} is not in the future, and nothing was asked of Google yet",
                "write a later start, or remove it",
            )
        elif entry.end.date() < today and entry.name not in reservation_names:
            yield ENDED.at(f"futureReservations[{entry.name}]", f"ended on {entry.end.date()}", "remove it")


def _windows(fleet: FleetSpec, today: date) -> Iterator[Problem]:
    """Windows that open once, and have."""
    section = fleet.controller
    for check in section.checks if section is not None else ():
        ends = [end for window in check.windows if (end := _last_end(window)) is not None]
        if ends and len(ends) == len(check.windows) and max(ends) < today:
            yield ENDED.at(
                f"controller.checks[{check.name}].windows",
                f"its last window ended on {max(ends)}, so that no job of a queue with this check starts any more",
                "write the next window, or the days on which it opens",
            )
    for window in section.quota_windows if section is not None else ():
        if (over := _last_end(window)) is not None and over < today:
            yield ENDED.at(
                f"controller.quotaWindows[{window.name}]",
                f"ended on {over}, and never opens again",
                "write the days on which it opens, or remove it",
            )
        if (window.start.date() - today).days > _FAR:
            yield QUOTA_WINDOW.at(
                f"controller.quotaWindows[{window.name}].start",
                f"{window.start.date()} is more than a year away, and it does not open before",
                "check the year",
                "warning",
            )


def _last_end(window: CalendarWindow) -> date | None:
    """The day on which it ends for good; None where it opens every week."""
    return None if window.days else (window.start + timedelta(seconds=window.duration.seconds)).date()


def _exclusions(fleet: FleetSpec, today: date) -> Iterator[Problem]:
    for cluster in fleet.clusters:
        for exclusion in cluster.maintenance.exclusions if cluster.maintenance is not None else ():
            if exclusion.end is not None and exclusion.end.date() < today:
                yield ENDED.at(
                    f"clusters[{cluster.name}].maintenance.exclusions[{exclusion.name}]",
                    f"ended on {exclusion.end.date()}",
                    "remove it",
                )


def _rotation(fleet: FleetSpec, today: date) -> Iterator[Problem]:
    credentials = token_credentials(fleet)
    if credentials is not None and credentials.rotate_by is not None:
        has_controller = fleet.controller is not None
        yield from check_rotation(
            "multiKueue.credentials.rotateBy", credentials.rotate_by, today, renewed=has_controller
        )


def check_rotation(path: str, rotate_by: date, today: date, *, renewed: bool = False) -> Iterator[Problem]:
    """What is due of a token, or too far away; `renewed`: the fleet's own controller does what is due."""
    days = (rotate_by - today).days
    if days > ROTATE_WITHIN.days:
        yield ROTATION.at(
            path,
            f"{rotate_by} is in {days} days, and the first token is valid until it is replaced",
            f"write a day within {ROTATE_WITHIN.days} days",
        )
    if days > WARNING_DAYS or renewed:
        return
    due = f"in {days} days" if days > 1 else "tomorrow" if days == 1 else "today"
    age = "was 1 day ago" if days == -1 else f"was {-days} days ago"
    yield ROTATION.at(
        path,
        f"{rotate_by} is {due}" if days >= 0 else f"{rotate_by} {age}",
        "run kueue-fleet rotate and write a later date; or write a new rotation serial as well, then apply",
    )
