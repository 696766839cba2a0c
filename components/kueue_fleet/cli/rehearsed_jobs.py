"""The jobs of a rehearsal: which are submitted, and what the command shows of them until they have ended."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kueue_fleet.cli import console
from kueue_fleet.cli.job_report import job_display, jobs_table, print_open_ends
from kueue_fleet.cli.progress import line

if TYPE_CHECKING:
    from kueue_fleet.fleet_file import FleetSpec
    from kueue_fleet.rehearsal.jobs.views import JobView
    from kueue_fleet.rehearsal.session import Session

JOBS_TIMEOUT_SECONDS: Final = 300.0
"""Longest that a rehearsal waits for the end of its jobs."""


class Jobs(NamedTuple):
    """The jobs of a run."""

    file: Path
    none: str | None = None
    """Why none are submitted; None: they are."""
    followed: bool = False
    """Whether those of earlier runs are followed instead."""


def find_jobs(session: Session, file: Path | None, *, none: bool) -> Jobs:
    """The jobs of a file, of none, or those that the project has for the stack."""
    if file is not None:
        return Jobs(file)
    file = session.project_dir / "examples" / session.stack / "jobs.yaml"
    if none:
        return Jobs(file, "--no-jobs")
    if not file.is_file():
        return Jobs(file, f"there is no {file}; name a file with --jobs")
    if session.kept and session.has_submitted(file):
        return Jobs(file, f"those of an earlier run are there; --jobs {file} submits them again", followed=True)
    return Jobs(file)


def run_jobs(session: Session, fleet: FleetSpec, jobs: Jobs, documents: Sequence[dict[str, Any]], began: float) -> None:
    """Submit DOCUMENTS, or follow what is there, and report; `began` is when the command did, by `time.monotonic`."""
    if documents:
        followed = session.run_jobs(fleet, documents, JOBS_TIMEOUT_SECONDS, jobs.file)
        _follow(session, fleet, followed, began, len(documents))
        return
    line("Jobs", f"none submitted: {jobs.none}")
    if jobs.followed and (unfinished := session.unfinished_jobs(fleet)):
        _follow(session, fleet, session.follow_jobs(fleet, unfinished, JOBS_TIMEOUT_SECONDS), began, 0)


def _follow(
    session: Session, fleet: FleetSpec, followed: Iterable[Sequence[JobView]], began: float, submitted: int
) -> None:
    started = time.monotonic()
    views: Sequence[JobView] = []
    with job_display(fleet.team_of, began, JOBS_TIMEOUT_SECONDS) as show:
        for views in followed:
            if session.first_admission_seconds is None and any(view.cluster for view in views):
                session.first_admission_seconds = time.monotonic() - began
            show(views)
    seconds = time.monotonic() - started
    if submitted:
        line("Jobs", f"{submitted} submitted to {fleet.home} ({seconds:.0f} s)")
    if not all(view.settled for view in views):
        line("", f"no longer waited for after {JOBS_TIMEOUT_SECONDS:.0f} s")
    console.line()
    console.show(jobs_table(views, fleet.team_of))
    print_open_ends(views)
    console.line()
    if submitted and session.first_admission_seconds is not None:
        line("First job", f"admitted {session.first_admission_seconds:.0f} s after the command")
