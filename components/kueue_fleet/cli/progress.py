"""How a long command shows what it does: each step in place while it runs, and as one line with its time when it ends.

Where the output is no terminal, only the lines are printed.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Column

from kueue_fleet.cli import console

_LABEL_WIDTH = 13
_ENDING_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Say:
    """Tells how a step goes."""

    def __init__(self, show: Callable[[str], None]) -> None:
        self._show = show
        self._stage = ""
        self.end = ""

    def __call__(self, text: str) -> None:
        """TEXT is what remains of the step when it ends."""
        self.end = text

    def now(self, text: str) -> None:
        """Show TEXT until something else is to be shown; on a terminal only."""
        self._show(text)

    def stage(self, text: str) -> None:
        """Show TEXT; without a terminal, what is before its parenthesis, and each stage once."""
        self._show(text)
        stage = text.partition(" (")[0]
        if not console.interactive() and stage != self._stage:
            line("", stage)
        self._stage = stage

    def note(self, text: str) -> None:
        """Print a line that stays."""
        line("", text)


@contextmanager
def step(label: str) -> Iterator[Say]:
    """A step of the command: at its end, what it said last and its seconds are printed; nothing when it fails."""
    began = time.monotonic()
    columns = (
        SpinnerColumn("line"),
        TextColumn(f"{{task.fields[label]:<{_LABEL_WIDTH - 2}}}", markup=False),
        TextColumn("{task.description}", markup=False, table_column=Column(ratio=1, no_wrap=True, overflow="ellipsis")),
        TimeElapsedColumn(),
    )
    with Progress(
        *columns, console=console.out, transient=True, expand=True, disable=not console.interactive()
    ) as progress:
        task = progress.add_task("", label=label, total=None)
        say = Say(lambda text: progress.update(task, description=text))
        yield say
    line(label, f"{say.end} ({time.monotonic() - began:.0f} s)".lstrip())


def line(label: str, text: str) -> None:
    """Print one line of the report."""
    console.out.print(f"{label:<{_LABEL_WIDTH}} {text}", markup=False, soft_wrap=True)


class Interrupted(KeyboardInterrupt):
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

    heeded = [number for number in _ENDING_SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, interrupt) for number in heeded}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
