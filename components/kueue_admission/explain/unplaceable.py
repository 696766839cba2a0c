"""Jobs that get quota on the manager though no worker can ever hold them: MultiKueue leaves them that quota.

The fleet's own dispatcher gives it back; without it, all jobs behind such a job wait until it is deleted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from kueue_admission.decide.model import Objects, Snapshot, Workload, WorkloadStatus
from kueue_admission.decide.reasons import QuotaReservedReason
from kueue_admission.explain.diagnosis import diagnose, only_relevant
from kueue_admission.kernel.names import MULTIKUEUE_CONTROLLER


def is_dispatched(objects: Objects, workload: Workload) -> bool:
    """Whether the objects are those of a manager, whose MultiKueue dispatches the workload's queue to workers."""
    local = workload.local_queue
    target = next((queue.cluster_queue for queue in objects.local_queues if queue.key == local), None)
    controllers = {check.name: check.controller for check in objects.checks}
    return any(
        controllers.get(check.name) == MULTIKUEUE_CONTROLLER
        for queue in objects.cluster_queues
        if queue.name == target
        for check in queue.checks
    )


def fits_no_worker(workload: Workload, workers: Sequence[Snapshot]) -> bool:
    """Whether the workload asks each worker that has its LocalQueue for more than the queue there can ever have.

    False where no worker has the queue: what speaks against it is something else then.
    """
    local = workload.local_queue
    reachable_workers = [
        worker for worker in workers if any(queue.key == local for queue in worker.objects.local_queues)
    ]
    return bool(reachable_workers) and all(
        _reason_on(worker, workload) == QuotaReservedReason.EXCEEDS_MAX_QUOTA for worker in reachable_workers
    )


def _reason_on(worker: Snapshot, workload: Workload) -> str:
    others = tuple(other for other in worker.workloads if other.key != workload.key)
    there = replace(worker, workloads=(*others, replace(workload, status=WorkloadStatus())))
    return diagnose(only_relevant(there, workload.key, alone=True), workload.key).reason
