"""The jobs of a rehearsal: which are submitted, what the command shows of them until they end, and the report."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kueue_admission.cli import console
from kueue_admission.cli.input_files import read_objects, well_formed
from kueue_admission.cli.simulate_report import about_run, write_report
from kueue_admission.kernel.names import RUN_SECONDS_ANNOTATION
from kueue_fleet.cli.job_report import job_display, jobs_table, print_open_ends
from kueue_fleet.cli.progress import line

if TYPE_CHECKING:
    from kueue_fleet.fleet_file import FleetSpec
    from kueue_rehearsal.jobs.views import JobView
    from kueue_rehearsal.session import Session

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
        return Jobs(file, f"an earlier run submitted them; --jobs {file} submits them again", followed=True)
    return Jobs(file)


def read_jobs(fleet: FleetSpec, file: Path, max_run_seconds: int | None = None) -> list[dict[str, Any]]:
    """The jobs in FILE, and what they use, for a rehearsal of the fleet; their pods run for `max_run_seconds` at most.

    Raises:
        CommandError: the file cannot be read, or something in it is wrong; every problem is in it.
    """
    from kueue_admission.kernel.job_rules import JOB
    from kueue_fleet.fleet_simulation.job_findings import check_manifests
    from kueue_fleet.jobs.problems import jobs_apart
    from kueue_rehearsal.jobs.kinds import JOB_KINDS, USED_KINDS

    with well_formed(file):
        documents = read_objects(file)
    kinds = ", ".join((*JOB_KINDS, *USED_KINDS))
    problems = check_manifests(fleet, documents, form_only=True).problems
    # Of what is wrong as a job, that is enough.
    problems += [
        JOB.at(data["kind"], "nothing runs it in a rehearsal", f"use {kinds}").behind(where)
        for where, data in (jobs_apart(documents)[1] if problems else documents)
        if data["kind"] not in JOB_KINDS | USED_KINDS
    ]
    if not problems and not any(data["kind"] in JOB_KINDS for _, data in documents):
        problems = [JOB.at("", "has no jobs", "add some, or give --no-jobs", source=str(file))]
    if problems:
        raise console.wrong_input(file, problems)
    return [_shortened(data, max_run_seconds) if max_run_seconds is not None else dict(data) for _, data in documents]


def _shortened(part: Any, seconds: int) -> Any:
    """A part of an object, whose pods do not run longer."""
    if isinstance(part, Mapping):
        return {key: _shortened(value, seconds) for key, value in part.items()} | {
            key: str(seconds)
            for key, value in part.items()
            if key == RUN_SECONDS_ANNOTATION and re.fullmatch("[0-9]+", str(value)) and float(value) > seconds
        }
    return [_shortened(item, seconds) for item in part] if isinstance(part, list) else part


class _Report:
    """A report of the jobs that are followed, in the file that `--html` names."""

    def __init__(self, file: Path, home: str) -> None:
        from kueue_fleet.fleet_simulation.recorded import Recorder

        self._file, self._recorder = file, Recorder(home)
        self._problems: list[str] = []

    def see(self, workloads: Mapping[str, Sequence[Any]], pods: Mapping[str, Sequence[Any]]) -> None:
        """What is there now. What cannot be read must not end the rehearsal, but its report."""
        from kueue_admission.decide.errors import NotModelledError

        try:
            if not self._problems:
                self._recorder.see(workloads, pods)
        except NotModelledError as error:
            self._problems.append(str(error))

    def write(self, session: Session, fleet: FleetSpec, jobs: Jobs, seed: int) -> None:
        """Write it. Raises CommandError where that cannot be done."""
        from kueue_admission.decide.errors import NotModelledError, ObjectError

        if not self._problems:
            try:
                result = self._recorder.result(fleet, session.list_quotas(fleet), time.time(), seed)
            except NotModelledError as error:
                self._problems.append(str(error))
            except ObjectError as error:
                self._problems += map(str, error.problems)
        if self._problems:
            raise console.CommandError(
                f"--html {self._file}: not written: the report does not know this", problems=self._problems
            )
        about = about_run(fleet.name, session.stack_file, str(jobs.file), seed)
        write_report(self._file, f"Rehearsal of {session.stack_file.name}", about, [("", result)])
        line("Report", str(self._file))


def run_jobs(
    session: Session,
    fleet: FleetSpec,
    jobs: Jobs,
    documents: Sequence[dict[str, Any]],
    began: float,
    report_file: Path | None,
) -> None:
    """Submit DOCUMENTS, or follow what is there, and report; `began` is when the command did, by `time.monotonic`."""
    report = None if report_file is None else _Report(report_file, fleet.home)
    watch = None if report is None else report.see
    outcome = None
    if documents:
        outcome = session.run_jobs(fleet, documents, JOBS_TIMEOUT_SECONDS, jobs.file, watch)
    else:
        line("Jobs", f"none submitted: {jobs.none}")
        if jobs.followed and (unfinished_jobs := session.unfinished_jobs(fleet)):
            outcome = session.follow_jobs(fleet, unfinished_jobs, JOBS_TIMEOUT_SECONDS, watch)
    if outcome is not None:
        _follow(session, fleet, outcome, began, submitted=bool(documents))
    if report is not None:
        report.write(session, fleet, jobs, session.settings.seed)


def _follow(
    session: Session, fleet: FleetSpec, job_views: Iterable[Sequence[JobView]], began: float, *, submitted: bool
) -> None:
    start_time = time.monotonic()
    views: Sequence[JobView] = []
    with job_display(fleet.team_of, began, JOBS_TIMEOUT_SECONDS) as show:
        for views in job_views:
            if session.first_admission_seconds is None and any(view.cluster for view in views):
                session.first_admission_seconds = time.monotonic() - began
            show(views)
    seconds = time.monotonic() - start_time
    if submitted:
        line("Jobs", f"{len(views)} submitted to {fleet.home} ({seconds:.0f} s)")
    if not all(view.settled for view in views):
        line("", f"stopped waiting after {JOBS_TIMEOUT_SECONDS:.0f} s; with --max-run-seconds 10 pods end sooner")
    console.line()
    console.show(jobs_table(views, fleet.team_of))
    print_open_ends(views)
    console.line()
    if submitted and session.first_admission_seconds is not None:
        line("First job", f"admitted {session.first_admission_seconds:.0f} s after the command")
