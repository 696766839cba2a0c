"""Quotas that are others in windows of time: their names, and one amount at any time.

Kueue's ResourceQuota has one amount, and no time. Source: kueue@v0.19.2 apis/kueue/v1beta2/clusterqueue_types.go.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from kueue_admission.kernel.form_rules import EXCLUDED, UNKNOWN_NAME
from kueue_admission.kernel.problem import Problem, where_read
from kueue_admission.kernel.suggest import instead
from kueue_fleet.fleet_file.check.scope import Scope, entry_check, fleet_check
from kueue_fleet.fleet_file.model.entries import ClusterQueueEntry, CohortEntry
from kueue_fleet.fleet_file.quota_windows import quota_windows
from kueue_fleet.fleet_file.rules.teams import QUOTA_WINDOW
from kueue_fleet.settings.quotas import FleetResourceQuota
from kueue_fleet.settings.windows import CalendarWindow, together

_SECTION = "controller.quotaWindows"


@fleet_check
def check_quota_windows(scope: Scope) -> Iterator[Problem]:
    """Windows that there are, used by ClusterQueues alone, of which no two of one quota are open at the same time."""
    section = scope.fleet.controller
    names = [window.name for window in section.quota_windows] if section is not None else []
    sound = [quota_window for quota_window in quota_windows(scope.fleet) if not any(quota_window.own_problems())]
    states = together(sound)
    for queue in scope.entries("clusterQueues"):
        yield from _quotas(scope, queue, names, states)
    yield from _unused(scope, names)


@fleet_check
def _clocks(scope: Scope) -> Iterator[Problem]:
    """Windows whose start is by another clock than the one by which they open on days of the week."""
    for path, window, written in _windows(scope):
        offset = _offset(written)
        if not window.days or offset is None or any(window.own_problems()):
            continue
        opens = window.start.astimezone(ZoneInfo(window.time_zone))
        if offset != opens.utcoffset():
            other = f"write the time there, with {opens.isoformat()[-6:]}"
            yield QUOTA_WINDOW.at(
                f"{path}.start",
                f"{written} is {opens:%H:%M} on {opens:%A} by the clock of {window.time_zone}, by which it opens",
                "name the place in timeZone, such as Europe/Berlin" if window.time_zone == "UTC" else other,
                severity="warning",
            )


def _windows(scope: Scope) -> Iterator[tuple[str, CalendarWindow, str]]:
    """Each window of the controller, its path, and its start as the file has it."""
    section = scope.fleet.controller
    data = scope.data if isinstance(scope.data, Mapping) else {}
    written = data.get("controller", data.get("admissionController"))
    if section is None or not isinstance(written, Mapping):
        return
    places = [("controller", section.quota_windows, written.get("quotaWindows"))]
    rows = zip(section.checks, written.get("checks") or (), strict=False)
    places += [(f"controller.checks[{check.name}]", check.windows, row.get("windows")) for check, row in rows]
    for path, windows, items in places:
        name = "quotaWindows" if path == "controller" else "windows"
        for window, item in zip(windows, items or (), strict=False):
            yield f"{path}.{name}[{window.name}]", window, str(item["start"])


def _offset(written: str) -> timedelta | None:
    """The offset from UTC that a time is written with; None: it cannot be read."""
    with suppress(ValueError):
        return datetime.fromisoformat(written).utcoffset() or timedelta()
    return None


@where_read
def _quotas(
    scope: Scope, queue: ClusterQueueEntry, names: Sequence[str], states: Mapping[frozenset[str], datetime]
) -> Iterator[Problem]:
    for at, quota in _placed(scope, queue):
        for name, base in _named(quota):
            if name not in names:
                wrong = f"there is no window {name} in {_SECTION}"
                yield UNKNOWN_NAME.at(f"{at}{base}.during[{name}]", wrong, instead(name, names, "windows"))
            elif quota.in_window(name) == quota:
                yield QUOTA_WINDOW.at(
                    f"{at}{base}.during[{name}]",
                    "has the amounts that hold without it",
                    "write others, or remove it",
                    severity="warning",
                )
        for both, moment in states.items():
            windows = [name for name in quota.windows if name in both]
            if len(windows) > 1:
                both_open = f"{windows[0]} and {windows[1]} are both open at {moment:%Y-%m-%dT%H:%MZ}"
                wrong = f"{both_open}, so it has two amounts"
                fix = f"let one of them end where the other begins, in {_SECTION}"
                yield QUOTA_WINDOW.at(f"{at}.during[{windows[1]}]", wrong, fix)
                break


@entry_check("cohorts")
def _cohort(scope: Scope, cohort: CohortEntry) -> Iterator[Problem]:
    for at, quota in _placed(scope, cohort):
        for name, base in _named(quota):
            fix = "give the quota to a ClusterQueue of the cohort, and during there"
            wrong = "set, but the controller writes quotas of ClusterQueues alone"
            yield EXCLUDED.at(f"{at}{base}.during[{name}]", wrong, fix)


@where_read
def _unused(scope: Scope, names: Collection[str]) -> Iterator[Problem]:
    window_names = {name for queue in scope.fleet.cluster_queues for name in queue.windows}
    for name in names:
        if name not in window_names:
            yield QUOTA_WINDOW.at(
                f"{_SECTION}[{name}]",
                "no quota is another one in it",
                "name it in during of a quota, or remove it",
                severity="warning",
            )


def _placed(scope: Scope, entry: ClusterQueueEntry | CohortEntry) -> Iterator[tuple[str, FleetResourceQuota]]:
    for g, group in enumerate(entry.resource_groups):
        for flavor in group.flavors:
            for quota in flavor.resources:
                yield f"{scope.path(entry)}.resourceGroups[{g}].flavors[{flavor.name}].resources[{quota.name}]", quota


def _named(quota: FleetResourceQuota) -> Iterator[tuple[str, str]]:
    """Each window that it names, and where: of all clusters, or of one."""
    yield from ((name, "") for name in quota.during)
    for cluster, other in quota.per_cluster.items():
        yield from ((name, f".perCluster[{cluster}]") for name in other.during)
