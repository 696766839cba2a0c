"""Quotas of a simulated fleet that are others in windows of time, as the fleet's controller writes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from kueue_admission.decide.model import ClusterQueue, Objects
from kueue_admission.read.kueue_objects import parse_objects
from kueue_admission.simulate.agenda import Agenda
from kueue_fleet.fleet_file import FleetSpec
from kueue_fleet.fleet_file.quota_windows import fleet_in, next_border, open_windows, quota_windows
from kueue_fleet.objects import render_cluster

_PATIENCE: Final = 8 * 86_400.0
"""Seconds after progress, beside twice the longest run, in which every weekly window opens: later ones do the same."""


class QuotaTimes:
    """The objects of each cluster at any time; `objects` have the quotas that the file gives outside of windows.

    Without `begin`, of which nothing follows about windows, the quotas stay those of the file.
    """

    def __init__(self, fleet: FleetSpec, objects: Mapping[str, Objects], begin: datetime | None) -> None:
        self._fleet, self._begin = fleet, begin
        self._known: dict[frozenset[str], Mapping[str, Objects]] = {frozenset(): objects}

    def at(self, now: float) -> Mapping[str, Objects]:
        """The objects at this second."""
        return (
            self._known[frozenset()] if self._begin is None else self.during(open_windows(self._fleet, self._at(now)))
        )

    def during(self, windows: frozenset[str]) -> Mapping[str, Objects]:
        """The objects while these windows are open, and no other."""
        if windows not in self._known:
            fleet = fleet_in(self._fleet, windows)
            self._known[windows] = {
                name: replace(objects, cluster_queues=_queues_on(fleet, name))
                for name, objects in self._known[frozenset()].items()
            }
        return self._known[windows]

    def plan(
        self, agenda: Agenda, change: Callable[[Mapping[str, Objects], float], None], waits: Callable[[], bool]
    ) -> None:
        """Let quotas change whenever a window opens or closes, as long as any job is not over."""
        self._plan_next(agenda, change, waits, 0.0)

    def _plan_next(
        self,
        agenda: Agenda,
        change: Callable[[Mapping[str, Objects], float], None],
        waits: Callable[[], bool],
        now: float,
    ) -> None:
        if self._begin is None or (border := next_border(self._fleet, self._at(now))) is None:
            return
        at = (border - self._begin).total_seconds()
        begun = max((window.start - self._begin).total_seconds() for window in quota_windows(self._fleet))
        if at > max(agenda.progress_at + 2 * agenda.longest, begun) + _PATIENCE:
            return

        def cross(then: float) -> None:
            if waits():
                change(self.at(then), then)
                self._plan_next(agenda, change, waits, then)

        agenda.plan(at, cross)

    def _at(self, second: float) -> datetime:
        assert self._begin is not None
        return self._begin + timedelta(seconds=second)


def _queues_on(fleet: FleetSpec, cluster: str) -> tuple[ClusterQueue, ...]:
    queues = [manifest for manifest in render_cluster(fleet, cluster) if manifest["kind"] == "ClusterQueue"]
    return parse_objects(queues).objects.cluster_queues
