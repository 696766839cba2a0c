"""Evictions on the manager that Kueue does not finish: the job's status is told that no pod is left.

Decided by `admission.dispatch.rescue`. Written is the status of the job and nothing else: Kueue then gives the quota
back by itself. Jobs and JobSets; of another kind nobody here knows where its pods are counted.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Final

from kueue_fleet.admission.dispatch import watch_eviction
from kueue_fleet.admission.dispatch.rescue import STUCK_EVICTION
from kueue_fleet.controller.manager import ManagerState
from kueue_fleet.controller.metrics import Metrics
from kueue_fleet.controller.records import Record
from kueue_fleet.controller.workers import WorkerState
from kueue_fleet.kube.client import Api, Json

RESCUE_MANAGER: Final = "kueue-fleet-rescue"
"""Field manager of what is taken back and corrected."""
_KINDS: Final = {"Job": ("batch/v1", "jobs"), "JobSet": ("jobset.x-k8s.io/v1alpha2", "jobsets")}
_NO_JOBS: Final = {"ready": 0, "succeeded": 0, "failed": 0, "active": 0, "suspended": 0}

log = logging.getLogger(__name__)


class Rescue:
    """Finishes evictions. `patience`: seconds that Kueue has for one."""

    def __init__(
        self,
        manager: ManagerState,
        workers: Mapping[str, WorkerState],
        api: Api,
        metrics: Metrics,
        tell: Callable[[Record, str, str, bool], None],
        patience: float,
    ) -> None:
        self._manager = manager
        self._workers = workers
        self._api = api
        self._metrics = metrics
        self._tell = tell
        self._patience = patience
        self._again: dict[str, float] = {}

    async def look_at(self, record: Record, now: float) -> float | None:
        """Finish the eviction of a Workload if that is overdue; when to look again. Raises ApiError."""
        if now < self._again.get(record.key, 0.0):
            # Each change of the Workload is a reason to look, and none to say the same again.
            return self._again[record.key]
        check = self._manager.dispatch_check(record)
        if not record.leaves or record.evicted_at is None or check is None or record.owner.kind not in _KINDS:
            return None
        copies = {name: self._copy(name, record.key) for name in self._manager.clusters_of(check)}
        found = watch_eviction(record.evicted_at, copies, self._patience, now)
        if found.give_up:
            path, body = status_of_job(record)
            await self._api.apply(path, body, RESCUE_MANAGER)
            self._metrics.rescued.labels(STUCK_EVICTION).inc()
            log.warning("rescue", extra={"fields": {"workload": record.key, "why": found.message}})
            self._tell(record, STUCK_EVICTION, found.message, True)
            self._again[record.key] = found.look_again or now
        return found.look_again

    def forget(self, key: str) -> None:
        """The eviction of a Workload is over."""
        self._again.pop(key, None)

    def _copy(self, name: str, key: str) -> bool | None:
        worker = self._workers.get(name)
        return worker.has_copy(key) if worker is not None and worker.followed else None


def status_of_job(record: Record) -> tuple[str, Json]:
    """Where the status of a Workload's job is, and one without pods; refused if the job is another one by now."""
    version, plural = _KINDS[record.owner.kind]
    status: Json = {"active": 0, "ready": 0, "terminating": 0}
    if record.owner.kind == "JobSet":
        # Kueue names pod sets like the replicated jobs that they are.
        status = {"replicatedJobsStatus": [{"name": one.name, **_NO_JOBS} for one in record.workload.pod_sets]}
    metadata = {"name": record.owner.name, "namespace": record.namespace, "uid": record.owner.uid}
    body = {"apiVersion": version, "kind": record.owner.kind, "metadata": metadata, "status": status}
    return f"/apis/{version}/namespaces/{record.namespace}/{plural}/{record.owner.name}/status", body
