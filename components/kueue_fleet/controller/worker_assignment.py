"""Assignments: written on the manager first, then granted on the worker's copy.

Decided by `dispatch.assignment`. Every write names the version that was seen. So a leader that was stopped in
the middle and continues later has no effect that another one has not decided too.
"""

from __future__ import annotations

import logging
from typing import Final

from kueue_fleet.controller import patches
from kueue_fleet.controller.configured_quota import KUEUE
from kueue_fleet.controller.fleet import Fleet
from kueue_fleet.controller.records import Record
from kueue_fleet.dispatch import AssignmentDecision, Copy, Residency, Step, decide_assignment
from kueue_fleet.settings.dispatch import ASSIGNMENT_CHECK

_LOCAL: Final = "Made on this cluster, which needs no assignment"

log = logging.getLogger(__name__)


class Assigner:
    """Decides and writes."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._written: dict[tuple[str, str], str] = {}

    async def reconcile(self, record: Record, residency: Residency) -> None:
        """Take the next steps of a job that waits for its admission. Raises ApiError."""
        decision = self._decide(record, residency)
        if decision.step is Step.ASSIGN:
            written_record = await self._write(record, decision.worker, decision.why)
            if written_record is None or written_record.assigned != decision.worker:
                return
            record, decision = written_record, self._decide(written_record, residency)
        if decision.step is Step.GRANT:
            await self._answer(decision.worker, record.key, "Assigned to this cluster", ready=True)
            self._fleet.metrics.assignments.labels(decision.worker).inc()
            log.info("assigned", extra={"fields": {"workload": record.key, "uid": record.uid, "to": decision.worker}})
        elif decision.step is Step.RELEASE:
            await self._release(record, decision)

    async def remember(self, record: Record) -> None:
        """Write down which worker Kueue has given an admitted job to, where that is not known. Raises ApiError."""
        if record.cluster_name and record.assigned != record.cluster_name:
            await self._write(record, record.cluster_name, "Kueue has admitted it there")

    async def let_in(self, worker: str, key: str) -> None:
        """Answer the check of a Workload that is not a copy. Raises ApiError."""
        local = self._fleet.workers[worker].local(key)
        if local is not None and local.waits_for_assignment:
            await self._answer(worker, key, _LOCAL, ready=True)

    async def activate(self, worker: str) -> None:
        """Tell a worker's Kueue that the assignment check is answered. Raises ApiError."""
        version = self._fleet.workers[worker].inactive_check
        if version is not None:
            body = patches.check_active_body(ASSIGNMENT_CHECK, version, known=True, now=self._fleet.clock())
            path = f"{KUEUE}/admissionchecks/{ASSIGNMENT_CHECK}/status"
            await self._fleet.apis[worker].apply(path, body, patches.ASSIGNMENT_MANAGER)

    def _decide(self, record: Record, residency: Residency) -> AssignmentDecision:
        views = self._fleet.involved_workers(record, residency)
        # Kueue gives a new slice of an elastic job to the cluster of the one before, without a nomination.
        nominated_workers = (record.cluster_name,) if record.cluster_name else record.nominated
        return decide_assignment(record.assigned, nominated_workers, views)

    async def _release(self, record: Record, decision: AssignmentDecision) -> None:
        state = self._fleet.workers.get(decision.worker)
        if state is not None and state.followed and state.copy(record.key) is not None:
            # Whatever was sent there before, and did not arrive yet, is refused from now on.
            await self._answer(decision.worker, record.key, f"Not assigned: {decision.why}", ready=False)
        await self._write(record, "", f"released from {decision.worker}, {decision.why}")
        fields = {"workload": record.key, "uid": record.uid, "from": decision.worker, "why": decision.why}
        log.warning("released", extra={"fields": fields})

    async def _write(self, record: Record, worker: str, why: str) -> Record | None:
        """The assignment on the manager; what is known of the Workload then."""
        body = patches.assignment_body(record, worker, why, self._fleet.clock())
        await self._fleet.write_status(record, body, patches.ASSIGNMENT_MANAGER)
        return self._fleet.manager.records.get(record.key)

    async def _answer(self, worker: str, key: str, why: str, *, ready: bool) -> None:
        """The check on a worker's Workload; not twice at one version, as the watch may be later than the answer."""
        state = self._fleet.workers[worker]
        copy: Copy | None = state.copy(key) or state.local(key)
        if copy is None or self._written.get((worker, key)) == copy.version:
            return
        body = patches.grant_body(key, copy, self._fleet.clock(), why=why, ready=ready)
        await self._fleet.apis[worker].apply(patches.status_path(key), body, patches.ASSIGNMENT_MANAGER)
        self._written[worker, key] = copy.version

    def forget(self, key: str) -> None:
        """Nothing more is to be answered for this Workload."""
        for worker in self._fleet.workers:
            self._written.pop((worker, key), None)
