"""What a rehearsal's jobs did, for a reader: a table that also fits 80 columns, and the reasons of those that wait."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.live import Live
from rich.table import Table
from rich.text import Text

from kueue_fleet.cli import console
from kueue_fleet.cli.progress import line

if TYPE_CHECKING:
    from kueue_fleet.rehearsal.job_views import JobView

_UNLIMITED_COLUMNS = 10_000


def jobs_table(views: Sequence[JobView], team_of: Mapping[str, str]) -> Table:
    """A row for each job; where the terminal is too narrow, long names are folded and no column disappears."""
    table = Table(box=None, padding=(0, 1, 0, 0), pad_edge=False, header_style="bold")
    for heading in ("job", "team", "cluster", "flavor"):
        table.add_column(heading, overflow="fold", min_width=len(heading))
    table.add_column("wait", justify="right", no_wrap=True)
    table.add_column("state", no_wrap=True)
    for view in views:
        table.add_row(
            view.name,
            team_of.get(view.namespace, view.namespace),
            view.cluster or "-",
            ", ".join(view.flavors) or "-",
            f"{view.waited_seconds:.0f} s",
            str(view.state),
        )
    return table


def print_jobs(views: Sequence[JobView], team_of: Mapping[str, str]) -> None:
    """The table, as wide as the terminal, or as it needs where there is none."""
    width = None if console.interactive() else _UNLIMITED_COLUMNS
    console.out.print(jobs_table(views, team_of), width=width, crop=False)


def group_reasons(view: JobView) -> list[str]:
    """`cluster, cluster: Reason: message` for each distinct reason that the job waits for."""
    clusters: dict[str, list[str]] = {}
    for reason in view.reasons:
        cluster, _, words = reason.partition(": ")
        clusters.setdefault(words, []).append(cluster)
    return [f"{', '.join(names)}: {words}" for words, names in clusters.items()]


def print_open_ends(views: Sequence[JobView]) -> None:
    """Why jobs wait, and which have not come to an end, one paragraph each."""
    for view in views:
        for reason in group_reasons(view):
            _print_paragraph(f"{view.name} waits: {reason}")
        if not view.settled and not view.reasons:
            _print_paragraph(f"{view.name}: {view.state} in {view.cluster or 'no cluster yet'}, not finished")


def _print_paragraph(text: str) -> None:
    if not console.interactive():
        console.out.print(text, markup=False, soft_wrap=True)
        return
    first, *rest = Text(text).wrap(console.out, console.out.width - 2)
    console.out.print(first)
    for more in rest:
        console.out.print(Text("  ") + more)


@contextmanager
def job_display(team_of: Mapping[str, str]) -> Iterator[Callable[[Sequence[JobView]], None]]:
    """A table that changes in place on a terminal; elsewhere one line for each step of each job."""
    if console.interactive():
        with Live(console=console.out, refresh_per_second=4, transient=True) as live:
            yield lambda views: live.update(jobs_table(views, team_of))
        return
    shown: dict[str, str] = {}

    def print_changes(views: Sequence[JobView]) -> None:
        for view in views:
            words = f"{view.state} {view.cluster}".strip()
            if shown.get(view.name) != words:
                shown[view.name] = words
                line("", f"{view.waited_seconds:4.0f} s  {view.name}  {words}")

    yield print_changes
