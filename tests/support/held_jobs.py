"""Jobs that hold quota while nothing of them runs, and whether `status` says so: nothing may hang unseen."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

from kueue_admission.api.resources import WORKLOADS
from kueue_admission.kernel.manifest import Manifest
from kueue_fleet.fleet_file import FleetSpec
from kueue_fleet.kube.answers import ApiError
from kueue_fleet.settings.dispatch import Watchdog
from kueue_fleet.status import ClusterObjects
from kueue_fleet.status.model import StuckWorkload
from kueue_fleet.status.stuck import stuck_workloads
from kueue_rehearsal.paths import RehearsalError
from one_cluster import Json, Refused

HELD_SECONDS = 120.0
"""How long a job may hold quota without a pod before `status` has to call it stuck."""
List = Callable[[str, str, str, str], list[Json]]
"""The objects of a cluster, by group, version and plural."""


class Held:
    """Jobs of batch/v1 that hold quota on the manager while no pod of theirs runs, but for those that wait."""

    def __init__(self, fleet: FleetSpec, objects_of: List) -> None:
        self.unnamed: dict[str, Manifest] = {}
        """Status of the Workloads of those that were held for too long while `status` called nothing of them stuck."""
        self._fleet = fleet
        self._list = objects_of
        self._since: dict[str, float] = {}
        controller = fleet.controller
        # Less than what is held for too long, where the file leaves the default.
        self._settings = Watchdog(stuck_after="15s")
        if controller is not None and "watchdog" in controller.model_fields_set:
            self._settings = controller.watchdog

    def follow(self, over: threading.Event) -> None:
        """Look again and again, until it is over."""
        while not over.wait(5.0):
            try:
                self._look()
            except (OSError, Refused, RehearsalError, ApiError, ValueError, KeyError):
                # A cluster is away, or is another one now: nothing is known of the time between.
                self._since = {}

    def stuck(self) -> list[StuckWorkload]:
        """What `status` calls stuck now."""
        return self._stuck(self._objects())

    def _objects(self) -> dict[str, ClusterObjects]:
        return {
            item.name: ClusterObjects(item.role, {"workloads": self._list(item.name, *WORKLOADS)})
            for item in self._fleet.clusters
        }

    def _stuck(self, clusters: dict[str, ClusterObjects]) -> list[StuckWorkload]:
        return stuck_workloads(clusters, self._settings, datetime.fromtimestamp(time.time(), UTC))

    def _look(self) -> None:
        running = {
            (item["metadata"]["namespace"], item["metadata"]["name"])
            for cluster in self._fleet.job_clusters
            for item in self._list(cluster, "batch", "v1", "jobs")
            if item.get("status", {}).get("active")
        }
        clusters = self._objects()
        named = {(one.namespace, one.name) for one in self._stuck(clusters)}
        held = {
            entry.key: entry
            for entry in clusters[self._fleet.home].workloads
            if entry.is_true("Admitted") and not entry.is_true("Finished")
            if any(owner.kind == "Job" for owner in entry.owners) and (entry.namespace, entry.job_name) not in running
        }
        self._since = {key: self._since.get(key, time.monotonic()) for key in held}
        self.unnamed |= {
            key: held[key].status.data
            for key, since in self._since.items()
            if time.monotonic() > since + HELD_SECONDS and (held[key].namespace, held[key].job_name) not in named
        }


@contextmanager
def followed(held: Held) -> Iterator[None]:
    """It is looked at until the end of the context, when nothing may have been held unseen."""
    over = threading.Event()
    thread = threading.Thread(target=held.follow, args=[over])
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
    assert held.unnamed == {}, f"held for {HELD_SECONDS:.0f} s, and status calls it not stuck"
