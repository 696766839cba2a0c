"""How far a simulation has come, on a terminal; Ctrl-C ends it, and what is known by then is shown."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Final

from kueue_admission.cli import console

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

_QUIET_SECONDS: Final = 0.5
_REDRAW_SECONDS: Final = 0.1


class Watcher:
    """A `simulate.clock.Watch`: says whether the simulation may go on, and draws on stderr how far it is."""

    def __init__(self, until: float | None) -> None:
        self.interrupted = False
        """Whether the user pressed Ctrl-C."""
        self._until = until
        self._draw_at = time.monotonic() + _QUIET_SECONDS if console.interactive(sys.stderr) else float("inf")
        self._drawn: tuple[Progress, TaskID] | None = None

    def __call__(self, now: float) -> bool:
        """Show the second of virtual time; whether to go on."""
        if time.monotonic() >= self._draw_at:
            self._draw(now)
            self._draw_at = time.monotonic() + _REDRAW_SECONDS
        return not self.interrupted

    def interrupt(self, number: int, frame: FrameType | None) -> None:
        """Let the simulation end.

        Raises:
            KeyboardInterrupt: it is the second time, and the command is to end.
        """
        if self.interrupted:
            raise KeyboardInterrupt
        self.interrupted = True

    def clear(self) -> None:
        """Take away what was drawn."""
        if self._drawn is not None:
            self._drawn[0].stop()

    def _draw(self, now: float) -> None:
        if self._drawn is None:
            self._drawn = self._begin()
        progress, task = self._drawn
        of = "" if self._until is None else f" of {self._until:,.0f}"
        progress.update(
            task, completed=now, description=f"second {now:,.0f}{of}, Ctrl-C shows what is known", refresh=True
        )

    def _begin(self) -> tuple[Progress, TaskID]:
        # It takes a tenth of the time in which a short simulation is over.
        from rich.progress import BarColumn, Progress, TextColumn

        columns = [TextColumn("simulating"), *([] if self._until is None else [BarColumn()])]
        progress = Progress(
            *columns,
            TextColumn("{task.description}", markup=False),
            console=console.rich_console(sys.stderr),
            transient=True,
            auto_refresh=False,
        )
        progress.start()
        return progress, progress.add_task("", total=self._until)


@contextmanager
def watched(until: float | None) -> Iterator[Watcher]:
    """Watch simulations that end at the second UNTIL; None: when nothing more happens."""
    watcher = Watcher(until)
    before = signal.getsignal(signal.SIGINT)
    is_heeded = before is not signal.SIG_IGN
    if is_heeded:
        signal.signal(signal.SIGINT, watcher.interrupt)
    try:
        yield watcher
    finally:
        watcher.clear()
        if is_heeded:
            signal.signal(signal.SIGINT, before)
