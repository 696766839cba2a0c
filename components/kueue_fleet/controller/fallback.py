"""Jobs that wait for nodes which do not come, on this cluster or on workers: they move on to other flavors.

Decided by `dispatch.fallback`. Written are the flavors that the Workload may have, and then the state of the
fleet's own check, by which Kueue takes the quota back. A job of workers loses all of its copies then, and its next
copies may have the flavors that are written on the manager. A leader that ends between the two is followed by one that
decides the same.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator, Mapping
from typing import Final

from kueue_admission.decide.model import CheckState, WorkloadStatus
from kueue_admission.kernel.names import FALLBACK_CHECK
from kueue_fleet.controller import patches
from kueue_fleet.controller.fleet import Fleet
from kueue_fleet.controller.records import Record
from kueue_fleet.dispatch import (
    REQUEUE_SECONDS,
    CheckDecision,
    FallbackDecision,
    decide_fallback,
    waits_on_workers_since,
)
from kueue_fleet.settings.configuration import QueueFallback

FLAVOR_GIVEN_UP: Final = "FlavorGivenUp"
"""Reason of the event about a job that moves on to another flavor."""

NOTHING: Final = "Waits for no nodes"
"""What its check says of a job that waits for no flavor with a patience."""

log = logging.getLogger(__name__)


class Fallback:
    """Decides and writes.

    `queues` are those with rules; `timeout` are the seconds after which the watchdog takes a job back from a worker.
    """

    def __init__(self, queues: Mapping[str, QueueFallback], fleet: Fleet, timeout: float) -> None:
        self._rules = queues
        self._entrances = {entrance: name for name, queue in queues.items() for entrance in queue.local_queues}
        self._fleet = fleet
        self._timeout = timeout

    async def reconcile(self, key: str) -> float:
        """Answer for a Workload, and take it back if its patience is over; when to look again. Raises ApiError."""
        record = await self._with_flavors_of_the_manager(self._fleet.manager.records.get(key))
        check = record.checks.get(FALLBACK_CHECK) if record is not None else None
        if record is None or not record.holds_quota or check is None or record.unreadable:
            return math.inf
        if check.state not in (CheckState.PENDING, CheckState.READY):
            return math.inf
        decision = self._decide(record)
        if decision is None:
            stale = record.admitted_at is None and check.message != NOTHING
            if check.state == CheckState.PENDING or stale:
                await self._answer(record, CheckDecision(CheckState.READY, NOTHING))
            return math.inf
        if not decision.give_up:
            if (check.state, check.message) != (CheckState.READY, decision.message):
                await self._answer(record, CheckDecision(CheckState.READY, decision.message))
            return decision.due
        if record.workload.allowed_flavors != decision.allowed:
            record = await self.allow(record, decision.allowed)
        await self._answer(record, CheckDecision(CheckState.RETRY, decision.message))
        self._fleet.tell(record, FLAVOR_GIVEN_UP, decision.message, True)
        return math.inf

    async def _with_flavors_of_the_manager(self, record: Record | None) -> Record | None:
        """A job that gave up flavors may have whatever flavor its queue has on the manager now, if that has changed."""
        if (
            record is None
            or record.workload.allowed_flavors is None
            or record.finished
            or record.deleted_at is not None
        ):
            return record
        queue = record.cluster_queue or self._entrances.get(record.workload.local_queue, "")
        allowed_flavors = record.workload.allowed_flavors
        rules = self._rules.get(queue)
        manager_flavors = rules.manager_flavors if rules is not None else ()
        missing_flavors = [name for name in manager_flavors if name not in allowed_flavors]
        return await self.allow(record, (*allowed_flavors, *missing_flavors)) if missing_flavors else record

    async def allow(self, record: Record, flavors: tuple[str, ...]) -> Record:
        """Write the flavors that it may have; the record with them."""
        body = patches.allowed_flavors_body(record, flavors)
        answer = await self._fleet.api.apply(patches.workload_path(record.key), body, patches.FALLBACK_MANAGER)
        self._fleet.manager.take_answer(record, answer)
        return self._fleet.manager.records.get(record.key, record)

    def _decide(self, record: Record) -> FallbackDecision | None:
        """None for a job whose pods have all been running, and for one that waits for no flavor with a patience."""
        rules = self._rules.get(record.cluster_queue)
        if rules is None:
            return None
        waits: dict[str, float] = {}
        for status, since in self._node_waits(record):
            has_started = status.pods_ready or status.waits_for_recovery or status.pods_ready_since is None
            if status.admission is None or (record.admitted_at is not None and has_started):
                continue
            for flavor in (name for pod_set in status.admission.pod_sets for _, name in pod_set.flavors):
                waits[flavor] = min(since, waits.get(flavor, math.inf))
        return decide_fallback(rules, waits, record.workload.allowed_flavors, self._fleet.clock())

    def _node_waits(self, record: Record) -> Iterator[tuple[WorkloadStatus, float]]:
        """Where it has quota on flavors, and since when it waits for nodes there."""
        reservation_time = record.reserved_at or 0.0
        if self._fleet.manager.dispatch_check(record) is None:
            yield record.workload.status, reservation_time if record.admitted_at is None else record.admitted_at
            return
        given_up = record.given_up.values()
        for name, worker in self._fleet.workers.items():
            copy, workload = worker.copy(record.key), worker.workload(record.key)
            if not worker.followed or copy is None or copy.reserved_at is None or workload is None:
                continue
            if record.admitted_at is None and not record.assigned:
                since = waits_on_workers_since(reservation_time, copy.reserved_at, given_up, self._timeout)
                yield workload.status, since
            elif record.admitted_at is not None and name == record.cluster_name:
                yield workload.status, record.admitted_at

    async def _answer(self, record: Record, decision: CheckDecision) -> None:
        requeue = REQUEUE_SECONDS if decision.state is CheckState.RETRY else None
        body = patches.check_body(record, {FALLBACK_CHECK: (decision, requeue)}, self._fleet.clock())
        await self._fleet.write_status(record, body, patches.FALLBACK_MANAGER)
        self._fleet.metrics.checks.labels(FALLBACK_CHECK, decision.state.value).inc()
        fields = {"workload": record.key, "state": decision.state.value, "why": decision.message}
        log.info("fallback", extra={"fields": fields})
