"""Says on each job that waits why it does, in a condition of its Workload; a new reason is an event of its job too.

Nothing is decided by it, and it holds no decision up: changes are noted at once and looked at in small portions. At
most five objects a second are written, those first that say nothing yet. What waits no longer loses its condition.
"""

from __future__ import annotations

import asyncio
import logging
from bisect import bisect_left, insort
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Final

from kueue_admission.decide.model import Workload
from kueue_fleet.controller import patches
from kueue_fleet.controller.configured_quota import ConfiguredQuota
from kueue_fleet.controller.fleet import Fleet
from kueue_fleet.controller.records import Record
from kueue_fleet.controller.waiting_text import WaitingMessage, about_waiting, asked_most
from kueue_fleet.dispatch import Residency
from kueue_fleet.dispatch.waiting import Estimate, Pace
from kueue_fleet.kube.answers import ApiError

TICK_SECONDS: Final = 0.2
"""Between two writes."""
YOUNG_SECONDS: Final = 10.0
"""A job that waits for less says nothing: most pass in that time."""
REFRESH_SECONDS: Final = 300.0
"""After which numbers that have changed are written again."""
_TAKEN, _LOOKED_AT, _LEFT = 200, 10, 10
"""How many changes, waiting jobs and conditions that are to go are looked at in a tick."""
_SUMS_SECONDS: Final = 5.0

log = logging.getLogger(__name__)
Place = tuple[tuple[int, int, float, str], str, float]
"""Order in the queue, those that have quota first (0); key; what it asks for."""


@dataclass(slots=True)
class _Line:
    """Who waits in a ClusterQueue, in order, and what they ask for together up to each; as it was a moment ago."""

    waiting: list[Place] = field(default_factory=list)
    sums: list[float] = field(default_factory=list)
    summed_at: float = 0.0

    @property
    def with_quota(self) -> int:
        """How many of them have quota."""
        return bisect_left(self.waiting, 1, key=lambda place: place[0][0])

    def ahead(self, place: Place, now: float) -> tuple[int, float]:
        """How many are ahead, those with quota too, and what they ask for."""
        if now - self.summed_at > _SUMS_SECONDS or not self.sums:
            self.sums, self.summed_at = list(accumulate(one[2] for one in self.waiting)), now
        index = bisect_left(self.waiting, place)
        # Those that came or left since are in the next sums.
        return index, self.sums[min(index, len(self.sums)) - 1] if index else 0.0


class WaitingReasons:
    """`note` gets the key of each Workload that something happened to; `tell_job` writes an event of a job, `residency`
    says where it may run."""

    def __init__(
        self,
        fleet: Fleet,
        quota: ConfiguredQuota,
        tell_job: Callable[[Record, str, str, bool], None],
        residency: Callable[[Record], Residency],
    ) -> None:
        self._fleet = fleet
        self._residency = residency
        self._quota = quota
        self._tell_job = tell_job
        self._pace = Pace()
        self._changed: OrderedDict[str, None] = OrderedDict()
        self._left: OrderedDict[str, None] = OrderedDict()
        self._new: OrderedDict[str, None] = OrderedDict()
        self._round: OrderedDict[str, None] = OrderedDict()
        self._lines: dict[str, _Line] = {}
        self._places: dict[str, tuple[str, Place]] = {}
        self._messages: dict[str, tuple[str, WaitingMessage, float]] = {}
        self._paced: dict[str, str] = {}
        self._ticks = 0

    def note(self, key: str) -> None:
        """A Workload is new, changed or gone."""
        self._changed[key] = None

    def note_all(self) -> None:
        """Queues, flavors or quotas are others now."""
        self._changed.update(dict.fromkeys(self._fleet.manager.records))

    async def run(self) -> None:
        """Write until cancelled."""
        while True:
            await asyncio.sleep(TICK_SECONDS)
            if self._fleet.manager.followed and self._quota.followed and self._quota.quota is not None:
                await self.tick()

    async def tick(self) -> None:
        """Look at a portion of what has changed, and write what is due: one object, or those that must go."""
        for _ in range(min(_TAKEN, len(self._changed))):
            self._take(self._changed.popitem(last=False)[0])
        for _ in range(min(_LEFT, len(self._left))):
            await self._write(self._left.popitem(last=False)[0], None)
        self._ticks += 1
        if self._ticks % 2 == 0:
            # The other tick is for the event of the job, which is one write more.
            return
        now = self._fleet.clock()
        for key in self._candidates():
            record = self._fleet.manager.records.get(key)
            if record is None or not _waits(record):
                continue
            reason_text = self._about(record, now)
            if self._is_due(record, reason_text, now):
                await self._write(key, reason_text)
                return

    def _candidates(self) -> Iterator[str]:
        """Jobs that say nothing yet, and at each fifth time the others in turn."""
        first, second = (self._round, self._new) if self._ticks % 5 == 0 else (self._new, self._round)
        for keys in (first, second):
            for _ in range(min(_LOOKED_AT, len(keys))):
                key = keys.popitem(last=False)[0]
                if key in self._places:
                    keys[key] = None
                    yield key

    def _take(self, key: str) -> None:
        self._leave(key)
        record, quota = self._fleet.manager.records.get(key), self._quota
        is_counted = record is not None and record.status.admission is not None and not record.finished
        quota.keep(key, record.workload if record is not None and is_counted and not record.unreadable else None)
        if record is None:
            for known_reasons in (self._messages, self._paced, self._new, self._round, self._left):
                known_reasons.pop(key, None)
            return
        if not _waits(record):
            self._note_pace(record)
            self._messages.pop(key, None)
            if record.waiting:
                self._left[key] = None
            return
        assert quota.quota is not None
        self._left.pop(key, None)
        queue, order = quota.quota.place(record.workload)
        place = ((int(record.reserved_at is None), *order), key, _size(record.workload))
        insort(self._lines.setdefault(queue, _Line()).waiting, place)
        self._places[key] = queue, place
        if key not in self._messages:
            self._new.setdefault(key)

    def _leave(self, key: str) -> None:
        queue, place = self._places.pop(key, ("", None))
        if place is not None:
            waiting = self._lines[queue].waiting
            del waiting[bisect_left(waiting, place)]
            if not waiting:
                del self._lines[queue]

    def _note_pace(self, record: Record) -> None:
        at, reservation_time = record.admitted_at, record.reserved_at
        if at is None or reservation_time is None or self._paced.get(record.key) == record.uid:
            return
        self._paced[record.key] = record.uid
        is_queued = reservation_time - max(record.workload.created, record.evicted_at or 0.0) >= YOUNG_SECONDS
        self._pace.admitted(
            record.cluster_queue, at, max(0.0, at - reservation_time), _size(record.workload), queued=is_queued
        )

    def _about(self, record: Record, now: float) -> WaitingMessage:
        queue, place = self._places[record.key]
        line, quota = self._lines[queue], self._quota.quota
        assert quota is not None
        ahead, work = line.ahead(place, now)
        start: Estimate | None = None
        if record.reserved_at is not None:
            start = self._pace.rest(queue, now - record.reserved_at, now)
        else:
            start = self._pace.start(queue, ahead, work, place[2], now)
        admitted_ahead = line.with_quota
        number = ahead + 1 - admitted_ahead, len(line.waiting) - admitted_ahead
        return about_waiting(self._fleet, record, quota, self._allowed(record), number, start, now)

    def _allowed(self, record: Record) -> list[str]:
        """The workers that it may run on; none where it is not known what its namespace allows."""
        if not self._fleet.manager.knows_namespace(record.namespace):
            return []
        residency = self._residency(record)
        return [name for name, worker in self._fleet.workers.items() if residency.forbids(worker.region) is None]

    def _is_due(self, record: Record, message: WaitingMessage, now: float) -> bool:
        uid, before, at = self._messages.get(record.key, ("", None, 0.0))
        if before is None or uid != record.uid:
            return now - message.since >= YOUNG_SECONDS
        if (message.reason, message.lasting) != (before.reason, before.lasting):
            return now - at >= YOUNG_SECONDS
        return message.passing != before.passing and (now - at >= REFRESH_SECONDS or now >= before.until)

    async def _write(self, key: str, message: WaitingMessage | None) -> None:
        """Write why a Workload waits, or that it waits no longer; what fails is tried again when its turn comes."""
        record = self._fleet.manager.records.get(key)
        if record is None:
            return
        now, before = self._fleet.clock(), record.waiting
        body = patches.waiting_body(
            record, *((message.reason, message.text, message.since) if message is not None else ())
        )
        try:
            await self._fleet.write_status(record, body, patches.WAITING_MANAGER)
        except ApiError as error:
            if error.is_conflict or error.is_not_found:
                self.note(key)
                return
            log.warning("not said", extra={"fields": {"workload": key, "error": str(error)[:500]}})
        if message is None:
            return
        self._messages[key] = record.uid, message, now
        self._new.pop(key, None)
        self._round[key] = None
        if message.reason != before:
            self._tell_job(record, message.reason, message.text, False)


def _waits(record: Record) -> bool:
    return not (record.finished or record.admitted_at is not None or record.deleted_at is not None) and (
        record.workload.active or bool(record.over_budget)
    )


def _size(workload: Workload) -> float:
    return float(asked_most(workload)[1] or 1)
