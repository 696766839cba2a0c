"""What users learn: structured log lines, and Kubernetes events, which must never hold up a decision."""

from __future__ import annotations

import asyncio
import itertools
import json
import logging
import sys
from collections.abc import Callable
from typing import Any

from kueue_fleet.controller import patches
from kueue_fleet.controller.records import Record
from kueue_fleet.dispatch.fleet_checks import format_time
from kueue_fleet.kube.answers import ApiError, Json
from kueue_fleet.kube.api import Api

MOST_WAITING = 10000
"""Events that wait to be written; more are dropped, and counted in the log."""

IDLE_SECONDS = 0.02
"""Between two events."""
BUSY_SECONDS = 0.1
"""Between two events while there is more important work."""

log = logging.getLogger(__name__)


class JsonFormatter(logging.Formatter):
    """One JSON object a line: time, level, message, and the fields of the record's `fields`."""

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        line: dict[str, Any] = {
            "time": format_time(record.created),
            "level": record.levelname,
            "message": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, default=str)


def log_to_stdout() -> None:
    """Write every log line of the process to stdout."""
    handler = logging.StreamHandler(sys.stdout)
    handler.setFormatter(JsonFormatter())
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)


class Events:
    """Kubernetes events about workloads, written one after the other in the background.

    While `busy` says that decisions are waiting, only a few a second.
    """

    def __init__(self, api: Api, clock: Callable[[], float], busy: Callable[[], bool]) -> None:
        self._busy = busy
        self._api = api
        self._clock = clock
        self._waiting: asyncio.Queue[tuple[str, Json]] = asyncio.Queue(MOST_WAITING)
        self._unique = itertools.count()

    def tell(self, record: Record, reason: str, message: str, warning: bool, of_job: bool = False) -> None:
        """Have an event written, about a Workload or (`of_job`) its job."""
        unique = next(self._unique)
        body = patches.event_body(record, reason, message, self._clock(), unique, warning=warning, of_job=of_job)
        try:
            self._waiting.put_nowait((patches.event_path(record), body))
        except asyncio.QueueFull:
            log.warning("event dropped", extra={"fields": {"workload": record.key, "reason": reason}})

    async def run(self) -> None:
        """Write until cancelled."""
        while True:
            path, body = await self._waiting.get()
            try:
                await self._api.create(path, body)
            except ApiError as error:
                log.warning("event not written", extra={"fields": {"path": path, "error": str(error)}})
            await asyncio.sleep(BUSY_SECONDS if self._busy() else IDLE_SECONDS)
