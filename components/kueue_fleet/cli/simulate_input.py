"""What `simulate fleet` reads, made ready to run: a fleet file and its jobs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kueue_admission.cli import console
from kueue_admission.cli.input_files import read_objects, read_text
from kueue_admission.cli.simulations import Prepare, RunOptions, changed_source
from kueue_admission.kernel import Problem, SpecError, errors_of
from kueue_admission.kernel.form_rules import OBJECT
from kueue_admission.simulate.errors import SimulationError
from kueue_admission.simulate.models import TextPlace, as_model, read_data
from kueue_admission.simulate.prepared import Prepared
from kueue_admission.simulate.what_if import Change, apply_changes
from kueue_fleet.cli.fleet_files import load_fleet, today
from kueue_fleet.cli.given_fleets import GivenFleet, given_fleet
from kueue_fleet.fleet_file import FleetSpec, read_fleet
from kueue_fleet.fleet_file.calendar_pools import fleet_at
from kueue_fleet.fleet_file.model.calendar_windows import fleet_checks
from kueue_fleet.fleet_file.quota_windows import quota_windows
from kueue_fleet.gke.prices import Prices

if TYPE_CHECKING:
    from kueue_admission.simulate.documents import Document
    from kueue_fleet.jobs.workload_file import WorkloadFile

JOB_FIELDS: Final = ("jobs", "waits", "reclaims", "outages", "stockOuts", "steps", "snapshots", "begin")
"""What --what-if changes in the workload file; everything else is the fleet's."""


def of_stack(
    stack: Path | GivenFleet,
    workload: Path | None,
    manifests: Path | None,
    run: RunOptions,
    *,
    prices: Prices,
    as_published: bool = False,
    begin: datetime | None = None,
) -> Prepare:
    """The fleet of a file with the jobs of a workload file, and those given as Kubernetes objects.

    `begin`: what time second 0 is, instead of that of the workload file. Without either it is now, where quotas or
    checks have windows and there is no workload file.

    Raises:
        SimulationError: the workload file is none.
    """
    from kueue_fleet.fleet_simulation.fleet import prepare_fleet
    from kueue_fleet.jobs.problems import Sources
    from kueue_fleet.jobs.workload_file import WorkloadFile

    fleet_file = stack if isinstance(stack, GivenFleet) else given_fleet(stack)
    fleet = load_fleet(fleet_file, as_published=as_published)
    text = "" if workload is None else read_text(workload, "a workload file")
    source = TextPlace(console.source_name(workload) if workload is not None else "", text)
    jobs = {} if workload is None else read_data(text, source)
    if isinstance(jobs, dict) and {"config", "clusters"} & set(jobs):
        fix = "--workload takes the jobs, STACK the fleet"
        raise SimulationError([OBJECT.at("", "is a fleet, not a workload file", fix, source=source)])
    left_out: list[Problem] = []
    documents = [] if manifests is None else read_objects(manifests, left_out=left_out)
    documents = readable(fleet, documents, left_out, alone=not jobs)
    if (
        begin is None
        and workload is None
        and (quota_windows(fleet) or any(fleet_check.windows for fleet_check in fleet_checks(fleet)))
    ):
        begin = today().astimezone(UTC).replace(microsecond=0)
        console.warning(f"second 0 is now, {begin.isoformat()}, as there are windows; --begin says another time")

    def prepare(changes: Sequence[Change]) -> Prepared:
        of_jobs = [change for change in changes if change.root in JOB_FIELDS]
        of_fleet = [change for change in changes if change not in of_jobs]
        sources = Sources(changed_source(fleet_file.source, of_fleet), changed_source(source, of_jobs))
        file = as_model(apply_changes(jobs, of_jobs), sources.jobs, WorkloadFile)
        if begin is not None:
            file = _beginning_at(file, begin)
        other = fleet if file.begin is None else load_fleet(fleet_file, as_published=as_published, at=file.begin)
        if of_fleet:
            other = changed_fleet(fleet_file, of_fleet, file.begin, as_published=as_published)
        preparation = prepare_fleet(
            other,
            file,
            run.delays,
            until=run.until,
            seed=run.seed,
            manifests=documents,
            sources=sources,
            prices=prices,
        )
        for problem in preparation.warnings if not changes else ():
            console.warning(str(problem))
        return replace(preparation, left_out=left_out)

    return prepare


def read_workload(path: Path) -> tuple[WorkloadFile, TextPlace]:
    """The workload file of a command, and where its parts are. Raises CommandError, SimulationError."""
    from kueue_fleet.jobs.workload_file import read_workload_file

    place = TextPlace(console.source_name(path), read_text(path, "a workload file"))
    return read_workload_file(place.text, place), place


def readable(fleet: FleetSpec, documents: list[Document], left_out: list[Problem], *, alone: bool) -> list[Document]:
    """The jobs that can be submitted; what is wrong with the others is added to `left_out`, and said.

    Raises SimulationError with every problem where no job is left, and there are no others (`alone`).
    """
    from kueue_fleet.fleet_simulation.job_findings import readable_jobs

    if not documents:
        return documents
    of_fleet, findings = readable_jobs(fleet, documents)
    left_out += findings.problems
    if not of_fleet and alone:
        raise SimulationError(left_out)
    for warning in findings.warnings:
        console.warning(warning.coded)
    for problem in left_out:
        console.warning(f"left out: {problem.coded}")
    if left_out:
        console.warning("what is left out takes nothing from others here: a start of theirs may be too early")
    return of_fleet


def changed_fleet(
    given: GivenFleet, changes: Sequence[Change], at: datetime | None, *, as_published: bool = False
) -> FleetSpec:
    """The fleet with the changes, as it is now or then. Raises SimulationError where one leads nowhere, or is wrong."""
    try:
        fleet = read_fleet(apply_changes(given.data(), changes), as_published=as_published).whole()
    except SpecError as refused:
        source = changed_source(given.source, changes)
        raise SimulationError(problem.behind(source) for problem in errors_of(refused.problems)) from None
    return fleet_at(fleet, at or today())


def _beginning_at(file: WorkloadFile, begin: datetime) -> WorkloadFile:
    try:
        return file.model_copy(update={"begin": begin})
    except SpecError as refused:
        raise console.mistyped(f"--begin: {refused.problems[0].wrong}; {refused.problems[0].fix}") from None
