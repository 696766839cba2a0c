"""How a long command shows what it does: each step in place while it runs, and as one line with its time when it ends.

Where the output is not a terminal, only the lines are printed.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Column

from kueue_admission.cli import console
from kueue_admission.kernel.printable import printable

_LABEL_WIDTH = 13
_TELL_SECONDS = 10.0


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
    with spinner(label) as show:
        say = Say(show)
        yield say
    line(label, f"{say.end} ({time.monotonic() - began:.0f} s)".lstrip())


@contextmanager
def counting(label: str) -> Iterator[Callable[[str], None]]:
    """Show on stderr, as stdout has the result, how far a calculation is; without a terminal a line now and then."""
    if console.interactive(sys.stderr):
        with spinner(label, sys.stderr) as show:
            yield show
        return
    last = time.monotonic()

    def tell(text: str) -> None:
        nonlocal last
        if time.monotonic() - last > _TELL_SECONDS:
            last = time.monotonic()
            sys.stderr.write(f"{text}\n")

    yield tell


@contextmanager
def spinner(label: str, stream: TextIO | None = None) -> Iterator[Callable[[str], None]]:
    """Show, on a terminal only, that something goes on and for how long, with the text that is given last."""
    columns = (
        SpinnerColumn("line"),
        TextColumn(f"{{task.fields[label]:<{_LABEL_WIDTH - 2}}}", markup=False),
        TextColumn("{task.description}", markup=False, table_column=Column(ratio=1, no_wrap=True, overflow="ellipsis")),
        TimeElapsedColumn(),
    )
    with Progress(
        *columns,
        console=console.rich_console(stream),
        transient=True,
        expand=True,
        disable=not console.interactive(stream),
    ) as progress:
        task = progress.add_task("", label=label, total=None)
        yield lambda text: progress.update(task, description=printable(text))


def line(label: str, text: str) -> None:
    """Print one line of the report."""
    console.line(f"{label:<{_LABEL_WIDTH}} {text}")
