"""How fast one API server is asked: our own limit, and one pause for all requests after the server asks for one."""

from __future__ import annotations

import random
import time
from asyncio import sleep
from collections.abc import Callable
from typing import Final

RATE: Final = 300.0
"""Requests a second, as Kueue's own default (kueue@v0.19.2 apis/config/v1beta2/defaults.go, clientConnection)."""
BURST: Final = 500.0
"""Requests at once after a quiet time."""
LONGEST_PAUSE_SECONDS: Final = 60.0
"""A server that asks for more is asked again after that, in case it meant something else."""


class Throttle:
    """A token bucket with a pause. `clock` gives seconds and never goes back."""

    def __init__(self, rate: float = RATE, burst: float = BURST, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate = rate
        self._burst = burst
        self._clock = clock
        self._tokens = burst
        self._filled_at = clock()
        self._paused_until = float("-inf")

    def pause(self, seconds: float) -> None:
        """No request begins for so long; of two pauses the one that ends later counts."""
        self._paused_until = max(self._paused_until, self._clock() + min(max(seconds, 0.0), LONGEST_PAUSE_SECONDS))

    async def wait(self) -> None:
        """Wait until a request may begin."""
        while (delay := self._delay()) > 0:
            await sleep(delay)

    def _delay(self) -> float:
        """Seconds to wait; 0: a request was counted, and begins now."""
        now = self._clock()
        if now < self._paused_until:
            # Those that were held up do not all come at the same moment.
            return self._paused_until - now + random.uniform(0.0, 0.5)  # noqa: S311
        self._tokens = min(self._burst, self._tokens + (now - self._filled_at) * self._rate)
        self._filled_at = now
        if self._tokens >= 1.0:
            self._tokens -= 1.0
            return 0.0
        # Not less than a clock can tell apart, or the wait would not end.
        return max((1.0 - self._tokens) / self._rate, 0.001)
