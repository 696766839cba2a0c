"""What a rehearsal's jobs did, for a reader: a table, and the reasons of those that wait."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from kueue_fleet.cli import console
from kueue_fleet.cli.progress import line
from kueue_fleet.cli.tables import Column, Table

if TYPE_CHECKING:
    from kueue_fleet.rehearsal.job_views import JobView


def jobs_table(views: Sequence[JobView], team_of: Mapping[str, str]) -> Table:
    """A row for each job."""
    table = Table(
        Column("job"),
        Column("team", leave_out=2),
        Column("cluster"),
        Column("flavor", leave_out=3),
        Column("wait", right=True, leave_out=1),
        Column("state"),
    )
    for view in views:
        table.add(
            view.name,
            team_of.get(view.namespace, view.namespace),
            view.cluster or "-",
            ", ".join(view.flavors) or "-",
            f"{view.waited_seconds:.0f} s",
            str(view.state),
        )
    return table


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
            console.paragraph(f"{view.name} waits: {reason}")
        if not view.settled and not view.reasons:
            console.paragraph(f"{view.name}: {view.state} in {view.cluster or 'no cluster yet'}, not finished")


@contextmanager
def job_display(team_of: Mapping[str, str]) -> Iterator[Callable[[Sequence[JobView]], None]]:
    """A table that changes in place on a terminal; elsewhere one line for each step of each job."""
    if console.interactive():
        from rich.live import Live

        with Live(console=console.rich_console(), refresh_per_second=4, transient=True) as live:
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
