"""The workers of the fleet as the decisions about one job need them."""

from __future__ import annotations

from collections.abc import Mapping

from kueue_fleet.controller.manager import ManagerState
from kueue_fleet.controller.records import Record
from kueue_fleet.controller.workers import WorkerState
from kueue_fleet.dispatch import Residency, WorkerView


def involved_workers(
    record: Record, residency: Residency, manager: ManagerState, workers: Mapping[str, WorkerState]
) -> dict[str, WorkerView]:
    """What is known of the workers that the job is offered to, may run on, or has a copy on."""
    offered = {*record.nominated, record.assigned, record.cluster_name}
    involved = {name: one for name, one in workers.items() if name in offered or one.copy(record.key) is not None}
    return worker_views(record, residency, manager, involved)


def worker_views(
    record: Record, residency: Residency, manager: ManagerState, workers: Mapping[str, WorkerState]
) -> dict[str, WorkerView]:
    """What is known of these workers, and of those that are gone.

    A worker that the controller follows is not gone, whatever an operator says.
    """
    return {
        name: WorkerView(
            known=worker.followed,
            connected=manager.connection(name)[0],
            gone=name in manager.gone and not worker.followed,
            allowed=residency.forbids(worker.region) is None,
            copy=worker.copy(record.key),
        )
        for name, worker in workers.items()
    } | {name: WorkerView(known=False, connected=False, gone=True) for name in manager.gone.difference(workers)}
