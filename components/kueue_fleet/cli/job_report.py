"""What a rehearsal's jobs did, for a reader: a table, and the reasons of those that wait."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from kueue_admission.cli import console
from kueue_admission.cli.tables import Column, Table
from kueue_admission.kernel.known_messages import with_code
from kueue_fleet.cli.progress import line

_TELL_AFTER_SECONDS: Final = 10.0
_TELL_AGAIN_SECONDS: Final = 30.0
_NAMED: Final = 5

if TYPE_CHECKING:
    from kueue_rehearsal.jobs.views import JobView


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
    for cluster, reasons in view.reasons:
        clusters.setdefault(reasons, []).append(cluster)
    return [f"{', '.join(names)}: {reason}" for reason, names in clusters.items()]


def print_open_ends(views: Sequence[JobView]) -> None:
    """Why jobs wait, and which have not ended, one paragraph each."""
    for view in views:
        for reason in group_reasons(view):
            console.paragraph(with_code(f"{view.name} waits: {reason}", reason))
        if not view.settled and not view.reasons:
            console.paragraph(f"{view.name}: {view.state} in {view.cluster or 'no cluster yet'}, not finished")


class JobLog:
    """What happens to jobs while they are followed: a line for each step of each, with the seconds since `began`."""

    def __init__(self, began: float, most_seconds: float, now: Callable[[], float]) -> None:
        self._began, self._now = began, now
        self._deadline = now() + most_seconds
        self._steps: dict[str, str] = {}
        self._tell_at = now() + _TELL_AFTER_SECONDS

    def __call__(self, views: Sequence[JobView]) -> None:
        """Print what is new; where nothing is for a while, what is waited for."""
        now = self._now()
        for view in views:
            step = f"{view.state} {view.cluster}".strip()
            if self._steps.get(view.name) != step:
                self._steps[view.name] = step
                self._tell_at = now + _TELL_AFTER_SECONDS
                self._line(f"{view.name}  {step}")
        if now >= self._tell_at and (waiting := waits(views, self._deadline - now)):
            self._tell_at = now + _TELL_AGAIN_SECONDS
            for text in waiting:
                self._line(text)

    def _line(self, text: str) -> None:
        line("", f"{self._now() - self._began:4.0f} s  {text}")


def waits(views: Sequence[JobView], left_seconds: float) -> list[str]:
    """What is waited for, how long at most, and why; nothing if all jobs are settled."""
    waiting = [view for view in views if not view.settled]
    if not waiting:
        return []
    lines = [f"waiting for {console.count(len(waiting), 'job')}, {max(left_seconds, 0.0):.0f} s at most:"]
    for view in waiting[:_NAMED]:
        lines += [f"  {view.name}: {reason}" for reason in group_reasons(view) or [f"{view.state}, not finished"]]
    return [*lines, *([f"  and {len(waiting) - _NAMED} more"] if len(waiting) > _NAMED else [])]


@contextmanager
def job_display(
    team_of: Mapping[str, str], began: float, most_seconds: float
) -> Iterator[Callable[[Sequence[JobView]], None]]:
    """A table that changes in place on a terminal, and a `JobLog` elsewhere; times are those of `time.monotonic`."""
    if not console.interactive():
        yield JobLog(began, most_seconds, time.monotonic)
        return
    deadline = time.monotonic() + most_seconds
    with console.in_place(stays=False) as show:

        def show_all(views: Sequence[JobView]) -> None:
            waiting = waits(views, deadline - time.monotonic())
            show(jobs_table(views, team_of), *(console.rich_text([text]) for text in waiting[:1]))

        yield show_all
