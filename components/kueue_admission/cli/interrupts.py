"""Signals that end a command which has something to tidy up; any other ends where it is, see `main`."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_ENDING_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupted(BaseException):
    """A signal has asked the command to end."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.exit_code = 128 + number
        """As a shell reports it: 130 for Ctrl-C."""


@contextmanager
def interruptible() -> Iterator[None]:
    """SIGINT, SIGTERM and SIGHUP raise Interrupted in this block, once: what then tidies up is not disturbed again.

    One that is ignored, as SIGHUP is under nohup, stays so.
    """
    interrupted = False

    def interrupt(number: int, frame: FrameType | None) -> None:
        nonlocal interrupted
        if not interrupted:
            interrupted = True
            raise Interrupted(number)

    heeded_signals = [number for number in _ENDING_SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, interrupt) for number in heeded_signals}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
