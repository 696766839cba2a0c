"""The fleet as decisions about one job see it, and as what they decide is written to it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from kueue_fleet.controller import patches
from kueue_fleet.controller.manager import ManagerState
from kueue_fleet.controller.metrics import Metrics
from kueue_fleet.controller.records import Record
from kueue_fleet.controller.workers import WorkerState
from kueue_fleet.dispatch import Copy, Residency, WorkerView
from kueue_fleet.kube.answers import Json
from kueue_fleet.kube.api import Api

Tell = Callable[[Record, str, str, bool], None]
"""Called with what a user should learn: the workload, a reason, a message, and whether it is a warning."""


@dataclass(frozen=True, slots=True)
class Fleet:
    """The manager and its workers."""

    manager: ManagerState
    workers: Mapping[str, WorkerState]
    api: Api
    """That of the manager."""
    apis: Mapping[str, Api]
    """Those of the workers."""
    metrics: Metrics
    tell: Tell
    clock: Callable[[], float]
    """Seconds of the epoch."""

    async def write_status(self, record: Record, body: Json, field_manager: str) -> None:
        """Write to the status of a Workload, and know what the manager made of it. Raises ApiError."""
        answer = await self.api.apply(patches.status_path(record.key), body, field_manager)
        self.manager.take_answer(record, answer)

    def copy(self, record: Record) -> Copy | None:
        """The copy of a Workload on the worker that it runs on, as it was seen last; None if there is none."""
        worker = self.workers.get(record.cluster_name or record.assigned)
        return None if worker is None else worker.copy(record.key)

    def involved_workers(self, record: Record, residency: Residency) -> dict[str, WorkerView]:
        """What is known of the workers that the job is offered to, may run on, or has a copy on."""
        offer_names = {*record.nominated, record.assigned, record.cluster_name}
        involved_by_name = {
            n: one for n, one in self.workers.items() if n in offer_names or one.copy(record.key) is not None
        }
        return self.worker_views(record, residency, involved_by_name)

    def worker_views(
        self, record: Record, residency: Residency, workers: Mapping[str, WorkerState]
    ) -> dict[str, WorkerView]:
        """What is known of these workers, and of those that are gone.

        A worker that the controller follows is not gone, whatever an operator says.
        """
        gone = self.manager.gone
        return {
            name: WorkerView(
                known=worker.followed,
                connected=self.manager.connection(name)[0],
                gone=name in gone and not worker.followed,
                allowed=residency.forbids(worker.region) is None,
                copy=worker.copy(record.key),
            )
            for name, worker in workers.items()
        } | {name: WorkerView(known=False, connected=False, gone=True) for name in gone.difference(workers)}
