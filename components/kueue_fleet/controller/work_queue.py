"""Keys to look at, each once however often it was added, and never by two at a time.

Keys that changed take turns with those whose time has come, or whose clusters changed: thousands that wait hold no new
job up.
"""

from __future__ import annotations

import asyncio
import heapq
from collections import OrderedDict
from collections.abc import Callable

_FIRST_RETRY = 0.05
_LAST_RETRY = 30.0


class WorkQueue:
    """A queue of keys. `clock` gives seconds and never goes back; delays are measured on it."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._changed: OrderedDict[str, None] = OrderedDict()
        self._timed: OrderedDict[str, None] = OrderedDict()
        self._timed_is_next = False
        self._active: set[str] = set()
        self._again: set[str] = set()
        self._due: dict[str, float] = {}
        self._heap: list[tuple[float, str]] = []
        self._failures: dict[str, int] = {}
        self._wake = asyncio.Event()

    def __len__(self) -> int:
        return len(self._changed) + len(self._timed)

    def add(self, key: str) -> None:
        """Look at the key as soon as possible."""
        if key in self._active:
            self._again.add(key)
        elif key not in self._changed:
            self._timed.pop(key, None)
            self._changed[key] = None
            self._wake.set()

    def add_behind(self, key: str) -> None:
        """Look at the key in turn with those that changed themselves."""
        if key in self._active:
            self._again.add(key)
        elif key not in self._changed:
            self._timed[key] = None
            self._wake.set()

    def add_after(self, key: str, seconds: float) -> None:
        """Look at the key in so many seconds, or earlier if it was asked for earlier."""
        when = self._clock() + seconds
        if seconds <= 0:
            self.add(key)
        elif key not in self._due or when < self._due[key]:
            self._due[key] = when
            heapq.heappush(self._heap, (when, key))
            self._wake.set()

    def retry(self, key: str) -> None:
        """Look at the key again after a failure: each time later, up to half a minute."""
        failures = self._failures[key] = self._failures.get(key, 0) + 1
        self.add_after(key, min(_LAST_RETRY, _FIRST_RETRY * 2.0 ** min(failures, 20)))

    def succeeded(self, key: str) -> None:
        """Forget earlier failures."""
        self._failures.pop(key, None)

    async def take(self) -> str:
        """The next key; `done` must follow."""
        # Many keys need no request: without a turn for other tasks, a long queue would keep the Lease from renewal.
        await asyncio.sleep(0)
        while True:
            self._move_due()
            if self._changed or self._timed:
                lane = self._timed if self._timed and (self._timed_is_next or not self._changed) else self._changed
                self._timed_is_next = lane is self._changed
                key, _ = lane.popitem(last=False)
                self._active.add(key)
                return key
            self._wake.clear()
            delay = self._heap[0][0] - self._clock() if self._heap else None
            try:
                # Not wait_for, which can swallow a cancellation (Python 3.11).
                async with asyncio.timeout(delay):
                    await self._wake.wait()
            except TimeoutError:
                continue

    def done(self, key: str) -> None:
        """The key was looked at."""
        self._active.discard(key)
        if key in self._again:
            self._again.discard(key)
            self.add(key)

    def _move_due(self) -> None:
        now = self._clock()
        while self._heap and self._heap[0][0] <= now:
            when, key = heapq.heappop(self._heap)
            if self._due.get(key) == when:
                del self._due[key]
                self.add_behind(key)
