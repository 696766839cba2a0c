"""A clock for tests that only wait: where nothing else is left to do, it is at once as late as they wait for."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from selectors import BaseSelector
from typing import Any
from unittest import mock


@contextmanager
def leaping_clock() -> Iterator[None]:
    """In a coroutine: `time` and the loop's own clock. Not for tests of processes, threads or sockets."""
    selector: BaseSelector = vars(asyncio.get_running_loop())["_selector"]
    select, ahead = selector.select, 0.0

    def leap(timeout: float | None = None) -> list[Any]:
        nonlocal ahead
        result = select(None if timeout is None else 0)
        if timeout and timeout > 0 and not result:
            ahead += timeout
        return result

    def ahead_of(clock: Callable[[], float]) -> Callable[[], float]:
        return lambda: clock() + ahead

    with (
        mock.patch.object(selector, "select", leap),
        mock.patch.object(time, "monotonic", ahead_of(time.monotonic)),
        mock.patch.object(time, "time", ahead_of(time.time)),
    ):
        yield
