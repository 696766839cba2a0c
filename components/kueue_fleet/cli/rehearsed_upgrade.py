"""`upgrade --rehearse`: Kueue is upgraded on real control planes here, cluster by cluster, while jobs run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import typer
import yaml

from kueue_admission.cli import console
from kueue_admission.cli.tables import Column, Table
from kueue_admission.kernel import SpecError, errors_of
from kueue_fleet.cli.bring_up import bring_up, update
from kueue_fleet.cli.given_fleets import GivenFleet, given_fleet
from kueue_fleet.cli.progress import line, step
from kueue_fleet.cli.rehearse import parse_stack, plain_failures, project_folder
from kueue_fleet.cli.rehearsed_jobs import JOBS_TIMEOUT_SECONDS, read_jobs
from kueue_fleet.cli.watched_jobs import Row, observed, report, run_before
from kueue_fleet.diff.upgrade import Move, fleet_after, upgrade_moves
from kueue_fleet.fleet_file import FleetSpec, read_fleet
from kueue_fleet.fleet_file.parse import PULUMI_KEY, as_stack

if TYPE_CHECKING:
    from kueue_rehearsal.session import Session


@dataclass(frozen=True, slots=True)
class _Plan:
    """The files of the fleet: as it is, and after each move."""

    data: Sequence[Mapping[str, Any]]
    fleets: Sequence[FleetSpec]
    moves: Sequence[Move]

    @classmethod
    def of(cls, fleet_input: GivenFleet, fleet: FleetSpec, to: str) -> _Plan:
        moves = upgrade_moves(fleet, to)
        data = [fleet_after(fleet_input.data(), to, moves[:number]) for number in range(len(moves) + 1)]
        return cls(data, [fleet, *(read_fleet(after).whole() for after in data[1:])], moves)


def rehearse_upgrade(
    file: Path,
    fleet_input: GivenFleet,
    fleet: FleetSpec,
    to: str,
    jobs: Sequence[Path],
    project: Path | None = None,
) -> None:
    """Bring the fleet up as its file says, run its jobs, upgrade Kueue move by move while they are submitted again and
    again, and say what became of them. `project`: the folder with Pulumi.yaml; by default the nearest above the file.

    Raises:
        CommandError: it cannot be rehearsed.
        Exit: a job did not end, or ran twice.
    """
    if fleet_input.declared is not None:
        raise console.mistyped(f"{file}: is a program, whose release cannot be changed; give the file of a fleet")
    from kueue_rehearsal.fleet_engines import check_runs_here, fleet_engines, runs_otherwise
    from kueue_rehearsal.session import Session

    try:
        plan = _Plan.of(fleet_input, fleet, to)
    except SpecError as refused:
        # The file as it is, and at the end, is right; in between, releases meet that do not go together.
        raise console.wrong_input(f"{file}, between two steps", errors_of(refused.problems)) from None
    if not plan.moves:
        raise console.mistyped(f"--rehearse: every cluster has {to}, so there is nothing to rehearse")
    if problems := list(
        dict.fromkeys(problem for fleet_then in plan.fleets for problem in check_runs_here(fleet_then))
    ):
        raise console.CommandError(f"{file} cannot be rehearsed:", problems=problems)
    for problem in dict.fromkeys(note for fleet_then in plan.fleets for note in runs_otherwise(fleet_then)):
        console.warning(f"{file}: {problem.coded}")
    with plain_failures() as opened, TemporaryDirectory() as folder:
        stack, stack_file = parse_stack(str(file))
        session = Session.for_stack(f"{stack}-upgrade", project_folder(project, stack_file or file))
        opened.append(session)
        session.fleet_file = Path(folder) / file.name
        settings = as_stack(yaml.safe_load(file.read_text(encoding="utf-8")))
        _write(session, settings, plan.data[0])
        documents = [
            document for job_file in _job_files(session, stack, jobs) for document in read_jobs(fleet, job_file)
        ]
        if missing_parts := session.missing_parts():
            raise console.CommandError("Pulumi cannot run here:", problems=missing_parts)
        engines = list(dict.fromkeys(name for fleet_then in plan.fleets for name in fleet_engines(fleet_then)))
        with session.exclusive():
            with step("Engines") as say:
                say(session.prepare_engines(say.stage, engines))
            with session.running(keep=False, fleet=fleet):
                ended_well = _rehearse(session, settings, plan, documents)
    if not ended_well:
        raise typer.Exit(1)


def _job_files(session: Session, stack: str, jobs: Sequence[Path]) -> Sequence[Path]:
    default = session.project_dir / "examples" / stack / "jobs.yaml"
    if not jobs and not default.is_file():
        raise console.mistyped(f"--rehearse: there is no {default}; give --jobs FILE, as jobs have to run meanwhile")
    return jobs or [default]


def _write(session: Session, settings: Mapping[str, Any], data: Mapping[str, Any]) -> None:
    assert session.fleet_file is not None
    document = {**settings, "config": {**settings["config"], PULUMI_KEY: data}}
    session.fleet_file.write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")


def _rehearse(
    session: Session, settings: Mapping[str, Any], plan: _Plan, documents: Sequence[Mapping[str, Any]]
) -> bool:
    """Whether every job that was submitted meanwhile ended well, and ran once."""
    before = plan.fleets[0]
    assert session.fleet_file is not None
    bring_up(session, before, given_fleet(session.fleet_file))
    line("Before", _releases(before))
    again = run_before(session, before, documents, "upgrade").jobs
    began: list[int] = []
    with observed(session, before, again) as observation:
        for number, (move, after) in enumerate(zip(plan.moves, plan.fleets[1:], strict=True), 1):
            running = console.count(observation.wait_until_one_runs(), "job")
            began.append(len(observation.stream.submitted))
            _write(session, settings, plan.data[number])
            line(f"Step {number}", f"{move.cluster}, to {_releases(after)}, with {running} running")
            update(session, after, given_fleet(session.fleet_file))
        observation.stream.close()
        views = list(session.follow_jobs(plan.fleets[-1], observation.stream.submitted, JOBS_TIMEOUT_SECONDS))[-1]
    rows = [Row.of(view, observation, before) for view in views]
    _show_steps(plan.moves, began, rows)
    return report(rows, observation)


def _releases(fleet: FleetSpec) -> str:
    return ", ".join(f"{name} Kueue {fleet.kueue_on(name).version}" for name in fleet.cluster_names)


def _show_steps(moves: Sequence[Move], began: Sequence[int], rows: Sequence[Row]) -> None:
    """What happened to the jobs that were submitted in each step."""
    table = Table(
        Column("step"), Column("jobs", right=True), Column("longest wait", right=True), Column("evicted", right=True)
    )
    for move, first, last in zip(moves, began, [*began[1:], len(rows)], strict=True):
        of_step = rows[first:last]
        longest = max((row.waited for row in of_step), default=0.0)
        eviction_count = sum(bool(row.evictions) for row in of_step)
        table.add(move.cluster, str(len(of_step)), f"{longest:.0f} s", str(eviction_count))
    console.line()
    console.show(table)
