"""How many jobs wait for what does not come by itself, for the metric that people are alerted by."""

from __future__ import annotations

from collections import Counter
from typing import Final

from kueue_fleet.controller.fleet import Fleet
from kueue_fleet.controller.records import Record
from kueue_fleet.dispatch import WatchdogSettings
from kueue_fleet.dispatch.rescue import LOST_END, LOST_JOB, STUCK_EVICTION
from kueue_fleet.dispatch.watchdog import RETRIES_USED, STUCK_CHECK, watch_checks

REASONS: Final = (STUCK_EVICTION, STUCK_CHECK, RETRIES_USED, LOST_JOB, LOST_END)
"""Those that are counted."""


def count_stuck(fleet: Fleet, settings: WatchdogSettings, now: float) -> Counter[str]:
    """By reason: what the controller is to undo, as long as it is not undone, and what it may not undo any more."""
    return Counter(why for record in fleet.manager.records.values() if (why := _why(record, fleet, settings, now)))


def _why(record: Record, fleet: Fleet, settings: WatchdogSettings, now: float) -> str:
    if record.leaves:
        return STUCK_EVICTION if now >= (record.left_at or 0.0) + settings.stuck_after else ""
    if record.lost_at is not None:
        return LOST_JOB if record.deleted_at is None and now >= record.lost_at + settings.stuck_after else ""
    if record.holds_quota:
        copy = fleet.copy(record)
        if copy is not None and copy.end is not None and now >= copy.end.at + settings.stuck_after:
            return LOST_END
        return RETRIES_USED if record.retries_used and record.admitted_at is None else ""
    return STUCK_CHECK if overdue_checks(record, settings, now)[0] else ""


def overdue_checks(record: Record, settings: WatchdogSettings, now: float) -> tuple[tuple[str, ...], float]:
    """See `watch_checks`; of a Workload that may get quota."""
    waits = record.reserved_at is None and not record.finished and record.deleted_at is None and record.workload.active
    status = record.workload.status
    return watch_checks(status.checks if waits else (), status.requeue_at, settings.stuck_after, now)
