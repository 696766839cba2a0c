"""What is configured for Kueue on one cluster, kept up to date, and the quota that follows from it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from typing import Final

from kueue_admission.decide.errors import AdmissionError
from kueue_admission.decide.model import Configuration, Objects, Workload
from kueue_admission.read.configured_objects import parse_configured
from kueue_admission.read.printed import Printed
from kueue_fleet.dispatch import WorkerQuota
from kueue_fleet.kube.answers import Json
from kueue_fleet.kube.api import NAMESPACES, Api
from kueue_fleet.kube.watching import Watch, are_followed

KUEUE: Final = "/apis/kueue.x-k8s.io/v1beta2"
"""Path of Kueue's API."""
CONFIGURED: Final = ("clusterqueues", "cohorts", "resourceflavors", "admissionchecks", "localqueues")
"""Kinds of Kueue that decide what fits, all of them read only."""
GRACE_SECONDS: Final = 2.0
"""For how long a broken watch may be on its way back: every write names the version that it was decided at."""
_SETTLE_SECONDS: Final = 0.1

log = logging.getLogger(__name__)


class ConfiguredQuota:
    """The quota of a cluster. `on_change` gets None when what is configured there has changed."""

    def __init__(self, name: str, configuration: Configuration, on_change: Callable[[str | None], None]) -> None:
        self.name = name
        self.configuration = configuration
        self.quota: WorkerQuota | None = None
        self.watches: list[Watch] = []
        self._problem = "its queues were not read yet"
        self._on_change = on_change
        self._manifests: dict[tuple[str, str], Json] = {}
        self._objects: Objects | None = None
        self._workloads: dict[str, Workload | None] = {}
        self._expected: dict[str, Workload] = {}
        self._settling: asyncio.Task[None] | None = None

    def watch(self, api: Api) -> list[Watch]:
        """The watches that keep this up to date, to be run."""
        paths = {**{f"{KUEUE}/{kind}": kind for kind in CONFIGURED}, NAMESPACES: "namespaces"}
        self.watches = [
            Watch(
                api, path, partial(self.take_configured, kind), on_connection=self._take_connection, grace=GRACE_SECONDS
            )
            for path, kind in paths.items()
        ]
        return self.watches

    def _take_connection(self) -> None:
        """A watch begins or breaks."""
        self._read_soon()

    @property
    def followed(self) -> bool:
        """Whether everything of it is known as it is now."""
        return are_followed(self.watches)

    def take_configured(self, kind: str, key: str, item: Json | None) -> None:
        """A queue, flavor, cohort, check or namespace is new, changed or gone."""
        slim = None if item is None else _slim(item)
        if slim == self._manifests.get((kind, key)):
            return
        if slim is None:
            self._manifests.pop((kind, key), None)
        else:
            self._manifests[kind, key] = slim
        self._read_soon()

    def keep(self, key: str, workload: Workload | None) -> None:
        """A Workload has quota, in this state, or has none (None)."""
        if workload is None:
            self._workloads.pop(key, None)
        else:
            self._workloads[key] = workload
        self._count(key, workload)

    def _count(self, key: str, workload: Workload | None) -> None:
        """Count the quota that a Workload has, or none of one that is gone or cannot be read."""
        if self.quota is None:
            return
        try:
            if workload is not None:
                self.quota.put(workload)
            else:
                self.quota.drop(key)
        except Exception as error:
            self._leave_out(error)

    def _read_soon(self) -> None:
        if self._settling is None or self._settling.done():
            self._settling = asyncio.get_running_loop().create_task(self._settle())

    async def _settle(self) -> None:
        """Read the configuration once a burst of changes is over; not before all of it is there.

        Of a part of it, every queue that is not known yet would be missing, and what waits in it would be taken back.
        """
        await asyncio.sleep(_SETTLE_SECONDS)
        if all(watch.synced.is_set() for watch in self.watches):
            self.read_configuration()

    def read_configuration(self) -> None:
        """Take over what is configured now."""
        try:
            has_changed = self._read_configuration()
        except Exception as error:
            self._leave_out(error)
            has_changed = True
        if has_changed:
            self._on_change(None)

    def _read_configuration(self) -> bool:
        """Whether something is different."""
        objects = parse_configured(self._manifests.values(), self.configuration)
        if objects == self._objects and self.quota is not None:
            return False
        self._objects = objects
        if self.quota is None:
            quota = WorkerQuota(objects)
            for workload in self._workloads.values():
                if workload is not None:
                    quota.put(workload)
            for workload in self._expected.values():
                quota.expect(workload)
            self.quota = quota
        else:
            self.quota.load(objects)
        return True

    def _leave_out(self, error: Exception) -> None:
        """Nothing is decided about this cluster until what is configured there can be used."""
        text = str(error) if isinstance(error, AdmissionError) else f"{type(error).__name__}: {error}"
        self.quota, self._objects, self._problem = None, None, text[:500]
        log.warning("quota cannot be read", extra={"fields": {"cluster": self.name, "error": self._problem}})


def _slim(item: Json) -> Json:
    """The object without what changes all the time and decides nothing."""
    kept = ("name", "namespace", "labels", "deletionTimestamp")
    metadata = {name: item["metadata"][name] for name in kept if name in item["metadata"]}
    slim = {"kind": item["kind"], "apiVersion": item["apiVersion"], "metadata": metadata, "spec": item.get("spec", {})}
    if item["kind"] == "AdmissionCheck":
        conditions = Printed.of(item).conditions.items()
        slim["status"] = {
            "conditions": [{"type": kind, "status": condition.get("status")} for kind, condition in conditions]
        }
    return slim
