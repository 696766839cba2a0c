"""What Kueue never asks for again, asked for again: nodes of a request that stays accepted, and checks that stay Retry.

Decided by `dispatch.watchdog`, on the controller's own cluster. An overdue ProvisioningRequest is deleted, and Kueue
makes another one; the job keeps its quota. On workers the whole copy is taken back instead, by `reconcile`. How many
jobs wait for what does not come by itself is counted for the metric that people are alerted by.
"""

from __future__ import annotations

import logging
import math
from collections import Counter
from http import HTTPStatus
from typing import Final

from kueue_fleet.controller import patches
from kueue_fleet.controller.fleet import Fleet
from kueue_fleet.controller.records import Record
from kueue_fleet.dispatch import Provisioning, watch
from kueue_fleet.dispatch.rescue import LOST_END, LOST_JOB, STUCK_EVICTION
from kueue_fleet.dispatch.watchdog import (
    PROVISIONING_TIMEOUT,
    RETRIES_USED,
    STUCK_CHECK,
    add_given_up,
    oldest_accepted,
    watch_checks,
)
from kueue_fleet.kube.answers import AcceptedRefusals, Json
from kueue_fleet.settings.dispatch import Watchdog

REASONS: Final = (STUCK_EVICTION, STUCK_CHECK, RETRIES_USED, LOST_JOB, LOST_END)
"""Those that are counted."""
_RESET: Final = "Pending again: it was Retry when the Workload had no quota, where Kueue does not look at it again"

log = logging.getLogger(__name__)


class AskAgain:
    """Decides and writes. `cluster`: the controller's own, if its queues ask for nodes; else empty."""

    def __init__(self, cluster: str, settings: Watchdog, fleet: Fleet) -> None:
        self._cluster = cluster
        self._settings = settings
        self._fleet = fleet

    async def request(self, record: Record) -> float:
        """Ask again for the nodes of a Workload that waits with quota; when to look again. Raises ApiError.

        Counted first, then deleted: a leader that ends between the two is followed by one that goes on.
        """
        if not self._cluster:
            return math.inf
        now, requests = self._fleet.clock(), self._fleet.manager.requests.of(record.key, record.uid)
        overdue, counted_entry = oldest_accepted(requests), record.given_up.get(self._cluster)
        verdict = watch(self._cluster, requests, record.given_up, self._settings, now)
        if overdue is not None and counted_entry is not None and counted_entry.last >= math.floor(self._due(overdue)):
            await self._delete(record, overdue)
            return math.inf
        if verdict.give_up and overdue is not None:
            given_up = add_given_up(record.given_up, self._cluster, math.floor(now))
            body = patches.given_up_body(record, given_up, "", now)
            await self._say(record, body, PROVISIONING_TIMEOUT, verdict.message)
            self._fleet.metrics.given_up.labels(self._cluster).inc()
            await self._delete(record, overdue)
        elif verdict.message and not record.retries_used:
            body = patches.given_up_body(record, record.given_up, verdict.message, now)
            await self._say(record, body, RETRIES_USED, verdict.message)
        return math.inf if verdict.retry_at is None else verdict.retry_at

    def _due(self, request: Provisioning) -> float:
        return (request.accepted_at or 0.0) + self._settings.provisioning_timeout.seconds

    async def checks(self, record: Record) -> float:
        """Set checks back that keep a Workload without quota from getting any; when to look again. Raises ApiError."""
        now = self._fleet.clock()
        names, due = overdue_checks(record, self._settings, now)
        if not names:
            return due
        body = patches.reset_body(record, names, STUCK_CHECK, _RESET, now)
        await self._fleet.write_status(record, body, patches.RESET_MANAGER)
        self._fleet.metrics.rescued.labels(STUCK_CHECK).inc()
        self._tell(record, STUCK_CHECK, f"{', '.join(names)}: {_RESET}")
        return math.inf

    async def _delete(self, record: Record, request: Provisioning) -> None:
        """Delete it; the watch may tell later that it is gone."""
        path = f"/apis/autoscaling.x-k8s.io/v1/namespaces/{record.namespace}/provisioningrequests/{request.name}"
        with AcceptedRefusals(HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT):
            await self._fleet.api.delete(path, request.uid)

    async def _say(self, record: Record, body: Json, reason: str, message: str) -> None:
        await self._fleet.write_status(record, body, patches.ASK_AGAIN_MANAGER)
        self._tell(record, reason, message)

    def _tell(self, record: Record, reason: str, message: str) -> None:
        log.warning("watchdog", extra={"fields": {"workload": record.key, "reason": reason, "why": message}})
        self._fleet.tell(record, reason, message, True)


def count_stuck(fleet: Fleet, settings: Watchdog, now: float) -> Counter[str]:
    """By reason: what the controller is to undo, as long as it is not undone, and what it may not undo any more."""
    return Counter(why for record in fleet.manager.records.values() if (why := _why(record, fleet, settings, now)))


def _why(record: Record, fleet: Fleet, settings: Watchdog, now: float) -> str:
    if record.leaves:
        return STUCK_EVICTION if now >= (record.left_at or 0.0) + settings.stuck_after.seconds else ""
    if record.lost_at is not None:
        return LOST_JOB if record.deleted_at is None and now >= record.lost_at + settings.stuck_after.seconds else ""
    if record.holds_quota:
        copy = fleet.copy(record)
        if copy is not None and copy.end is not None and now >= copy.end.at + settings.stuck_after.seconds:
            return LOST_END
        return RETRIES_USED if record.retries_used and record.admitted_at is None else ""
    return STUCK_CHECK if overdue_checks(record, settings, now)[0] else ""


def overdue_checks(record: Record, settings: Watchdog, now: float) -> tuple[tuple[str, ...], float]:
    """See `watch_checks`; of a Workload that may get quota."""
    waits = record.reserved_at is None and not record.finished and record.deleted_at is None and record.workload.active
    status = record.workload.status
    return watch_checks(status.checks if waits else (), status.requeue_at, settings.stuck_after.seconds, now)
