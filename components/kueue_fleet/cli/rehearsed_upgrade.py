"""`upgrade --rehearse`: Kueue is upgraded on real control planes here, cluster by cluster, while jobs run."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

import typer
import yaml

from kueue_admission.cli import console
from kueue_admission.cli.tables import Column, Table
from kueue_admission.forms import SpecError, errors_of
from kueue_fleet.cli.bring_up import bring_up, update
from kueue_fleet.cli.given_fleets import GivenFleet, given_fleet
from kueue_fleet.cli.progress import line, step
from kueue_fleet.cli.rehearse import parse_stack, plain_failures, project_folder
from kueue_fleet.cli.rehearsed_jobs import JOBS_TIMEOUT_SECONDS, read_jobs
from kueue_fleet.diff.upgrade import LOOK_AGAIN, Move, fleet_after, upgrade_moves
from kueue_fleet.fleet_file import FleetSpec, parse_fleet
from kueue_fleet.fleet_file.parse import PULUMI_KEY, as_stack

if TYPE_CHECKING:
    from kueue_admission.simulate.records import Record
    from kueue_fleet.simulation.recorded import Recorder
    from kueue_rehearsal.jobs.clients import ClusterClients
    from kueue_rehearsal.jobs.stream import JobStream
    from kueue_rehearsal.jobs.views import JobView
    from kueue_rehearsal.jobs.witness import Witnesses
    from kueue_rehearsal.session import Session

JOB_SECONDS: Final = 5.0
"""Between two jobs that are submitted while Kueue is upgraded."""
_LOOK_SECONDS: Final = 0.5
_LEFT_SECONDS: Final = 30.0
"""How long a job has quota and no nominated cluster before Kueue is made to look at it, and look again."""
_WORKLOADS: Final = ("kueue.x-k8s.io", "v1beta2", "workloads")
_SHOWN: Final = 10
"""Jobs of which there is a row: those that waited longest."""


@dataclass(frozen=True, slots=True)
class _Plan:
    """The files of the fleet: as it is, and after each move."""

    data: Sequence[Mapping[str, Any]]
    fleets: Sequence[FleetSpec]
    moves: Sequence[Move]

    @classmethod
    def of(cls, given: GivenFleet, fleet: FleetSpec, to: str) -> _Plan:
        moves = upgrade_moves(fleet, to)
        data = [fleet_after(given.data(), to, moves[:number]) for number in range(len(moves) + 1)]
        return cls(data, [fleet, *map(parse_fleet, data[1:])], moves)


def rehearse_upgrade(
    file: Path, given: GivenFleet, fleet: FleetSpec, to: str, jobs: Sequence[Path], project: Path | None = None
) -> None:
    """Bring the fleet up as its file says, run its jobs, upgrade Kueue move by move while they are submitted again and
    again, and say what became of them. `project`: the folder with Pulumi.yaml; by default the nearest above the file.

    Raises:
        CommandError: it cannot be rehearsed.
        Exit: a job did not end, or ran twice.
    """
    if given.declared is not None:
        raise console.mistyped(f"{file}: is a program, whose release cannot be changed; give the file of a fleet")
    from kueue_rehearsal.fleet_engines import check_runs_here, fleet_engines, other_versions
    from kueue_rehearsal.session import Session

    try:
        plan = _Plan.of(given, fleet, to)
    except SpecError as refused:
        # The file as it is, and at the end, is right; in between, releases meet that do not go together.
        raise console.wrong_input(f"{file}, between two steps", errors_of(refused.problems)) from None
    if not plan.moves:
        raise console.mistyped(f"--rehearse: every cluster has {to}, so there is nothing to rehearse")
    if problems := list(dict.fromkeys(each for made in plan.fleets for each in check_runs_here(made))):
        raise console.CommandError(f"{file} cannot be rehearsed:", problems=problems)
    for problem in dict.fromkeys(each for made in plan.fleets for each in other_versions(made)):
        console.warning(f"{file}: {problem.coded}")
    with plain_failures() as opened, TemporaryDirectory() as folder:
        stack, stack_file = parse_stack(str(file))
        session = Session.for_stack(f"{stack}-upgrade", project_folder(project, stack_file or file))
        opened.append(session)
        session.fleet_file = Path(folder) / file.name
        settings = as_stack(yaml.safe_load(file.read_text(encoding="utf-8")))
        _write(session, settings, plan.data[0])
        documents = [document for each in _job_files(session, stack, jobs) for document in read_jobs(fleet, each)]
        if missing := session.missing_parts():
            raise console.CommandError("Pulumi cannot run here:", problems=missing)
        engines = list(dict.fromkeys(name for made in plan.fleets for name in fleet_engines(made)))
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
    again = _run_before(session, before, documents)
    began: list[int] = []
    with _observed(session, before, again) as seen:
        for number, (move, after) in enumerate(zip(plan.moves, plan.fleets[1:], strict=True), 1):
            running = console.count(seen.wait_until_one_runs(), "job")
            began.append(len(seen.stream.submitted))
            _write(session, settings, plan.data[number])
            line(f"Step {number}", f"{move.cluster}, to {_releases(after)}, with {running} running")
            update(session, after, given_fleet(session.fleet_file))
        seen.stream.close()
        views = list(session.follow_jobs(plan.fleets[-1], seen.stream.submitted, JOBS_TIMEOUT_SECONDS))[-1]
    rows = [_Row.of(view, seen, before) for view in views]
    _show_steps(plan.moves, began, rows)
    return _report(rows, seen)


def _releases(fleet: FleetSpec) -> str:
    return ", ".join(f"{name} Kueue {fleet.kueue_on(name).version}" for name in fleet.cluster_names)


def _run_before(session: Session, fleet: FleetSpec, documents: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The jobs that end well on the release that the file names: only these can say something about the upgrade."""
    from kueue_rehearsal.jobs.kinds import JOB_KINDS
    from kueue_rehearsal.jobs.views import JobState

    jobs = [document for document in documents if document["kind"] in JOB_KINDS]
    views = list(session.run_jobs(fleet, documents, JOBS_TIMEOUT_SECONDS))[-1]
    well = [job for job, view in zip(jobs, views, strict=True) if view.state is JobState.FINISHED]
    longest = max((view.waited_seconds for view in views if view.state is JobState.FINISHED), default=0.0)
    line("Jobs before", f"{len(well)} of {len(jobs)} finished; the longest wait was {longest:.0f} s")
    if not well:
        raise console.CommandError(
            "no job ends before the upgrade, so nothing can be said of it; give others by --jobs"
        )
    return well


@dataclass
class _Seen:
    """What is known of the jobs that are submitted while Kueue is upgraded."""

    stream: JobStream
    witnesses: Witnesses
    recorder: Recorder
    not_known: str = ""
    """Why evictions and moves are not known after all."""
    left: dict[str, float] = field(default_factory=dict)
    """Jobs that Kueue did not dispatch, until their Workload was annotated, and when: docs/found-in-kueue.md, 14."""
    lock: threading.Lock = field(default_factory=threading.Lock)

    def records(self) -> list[Record]:
        names = {(job["metadata"]["namespace"], job["metadata"]["name"]) for job in self.stream.submitted}
        with self.lock:
            return [each for each in self.recorder.records if (each.namespace, each.name) in names]

    def wait_until_one_runs(self) -> int:
        """The number of jobs that run: a step is to begin with some."""
        deadline = time.monotonic() + JOBS_TIMEOUT_SECONDS
        while not (running := sum(each.is_running for each in self.records())):
            if self.not_known or time.monotonic() > deadline:
                raise console.CommandError(f"no job runs after {JOBS_TIMEOUT_SECONDS:.0f} s", problems=[self.not_known])
            time.sleep(_LOOK_SECONDS)
        return running


@contextmanager
def _observed(session: Session, fleet: FleetSpec, jobs: Sequence[Mapping[str, Any]]) -> Iterator[_Seen]:
    from kueue_fleet.simulation.recorded import Recorder
    from kueue_rehearsal.jobs.stream import JobStream
    from kueue_rehearsal.jobs.witness import Witnesses

    clients = session.clients(fleet)
    over = threading.Event()
    seen = _Seen(
        JobStream(session.clients(fleet), fleet.home, jobs, JOB_SECONDS),
        Witnesses({name: clients.server(name) for name in fleet.job_clusters}),
        Recorder(fleet.home),
    )
    watching = threading.Thread(target=_look, args=(seen, clients, fleet, over), daemon=True)
    watching.start()
    try:
        yield seen
    finally:
        seen.stream.close()
        over.set()
        watching.join()
        seen.witnesses.close()


def _look(seen: _Seen, clients: ClusterClients, fleet: FleetSpec, over: threading.Event) -> None:
    """Write down what becomes of jobs, twice a second; what cannot be asked while Kueue restarts is asked again."""
    from kueue_admission.decide.errors import NotModelledError
    from kueue_rehearsal.paths import RehearsalError

    while not over.wait(_LOOK_SECONDS):
        try:
            workloads = {name: clients.list(name, *_WORKLOADS) for name in fleet.cluster_names}
            pods = {name: clients.list(name, "", "v1", "pods") for name in fleet.cluster_names}
            with seen.lock:
                seen.recorder.see(workloads, pods)
            if fleet.manager is not None:
                _ask_again(seen, clients, fleet.home, workloads[fleet.home])
        except RehearsalError:
            continue
        except NotModelledError as unknown:
            seen.not_known = str(unknown)
            return


def _ask_again(seen: _Seen, clients: ClusterClients, home: str, workloads: Sequence[Mapping[str, Any]]) -> None:
    """Make Kueue look at jobs that it left, by a change of their Workloads."""
    from kueue_admission.read.printed import PrintedWorkload

    for each in map(PrintedWorkload.of, workloads):
        since, now = each.since("QuotaReserved"), time.time()
        is_sent = each.cluster_name or each.status.data.get("nominatedClusterNames")
        is_over = each.is_true("Admitted") or each.is_true("Finished")
        if since is not None and now - seen.left.get(each.key, since) > _LEFT_SECONDS and not (is_sent or is_over):
            path = f"/apis/{'/'.join(_WORKLOADS[:2])}/namespaces/{each.namespace}/{_WORKLOADS[2]}/{each.name}"
            clients.annotate(home, path, {LOOK_AGAIN: f"{now:.0f}"})
            seen.left[each.key] = now


@dataclass(frozen=True, slots=True)
class _Row:
    """What became of a job."""

    name: str
    state: str
    waited: float
    """Seconds until its first pods might start; of a kind without Jobs, until it was admitted."""
    places: Sequence[str]
    evictions: Sequence[str]
    runs: int
    """How often it ran; 0: not known."""
    wrong: Sequence[str]

    @classmethod
    def of(cls, view: JobView, seen: _Seen, fleet: FleetSpec) -> _Row:
        from kueue_admission.read.printed import Printed, PrintedJob
        from kueue_rehearsal.jobs.views import JobState

        key = view.namespace, view.name
        runs = seen.witnesses.runs_of(*key)
        record = next((each for each in seen.records() if (each.namespace, each.name) == key), None)
        evictions = [eviction.reason for eviction in record.evictions] if record else []
        admitted = [run.cluster or fleet.home for run in record.runs] if record else []
        times = max(Counter(item["metadata"]["name"] for _, item in runs).values(), default=0)
        starts = [at for _, item in runs if (at := PrintedJob.of(item).status.seconds("startTime")) is not None]
        created = {Printed.of(job).key: Printed.of(job).created for job in seen.stream.submitted}.get("/".join(key))
        waited = view.waited_seconds if created is None or not starts else max(0.0, min(starts) - created)
        places = list(dict.fromkeys([cluster for cluster, _ in runs] or admitted))
        wrong = []
        if view.state is not JobState.FINISHED:
            wrong.append(f"{view.name}: is {view.state}, not finished")
        if times > 1 + len(evictions):
            wrong.append(f"{view.name}: was started {times} times")
        return cls(view.name, str(view.state), waited, places, evictions, times, wrong)


def _show_steps(moves: Sequence[Move], began: Sequence[int], rows: Sequence[_Row]) -> None:
    """What happened to the jobs that were submitted in each step."""
    table = Table(
        Column("step"), Column("jobs", right=True), Column("longest wait", right=True), Column("evicted", right=True)
    )
    for move, first, last in zip(moves, began, [*began[1:], len(rows)], strict=True):
        of_step = rows[first:last]
        longest = max((row.waited for row in of_step), default=0.0)
        evicted = sum(bool(row.evictions) for row in of_step)
        table.add(move.cluster, str(len(of_step)), f"{longest:.0f} s", str(evicted))
    console.line()
    console.show(table)


def _report(rows: Sequence[_Row], seen: _Seen) -> bool:
    """What became of the jobs, and whether that is well."""
    table = Table(
        Column("job"),
        Column("waited", right=True),
        Column("ran on"),
        Column("evicted", leave_out=1),
        Column("ran", right=True),
        Column("state"),
    )
    ordered = sorted(rows, key=lambda row: (not (row.wrong or row.evictions or len(row.places) > 1), -row.waited))
    for row in ordered[:_SHOWN]:
        ran = str(row.runs or "not known")
        places = ", then ".join(row.places) or "-"
        table.add(row.name, f"{row.waited:.0f} s", places, ", ".join(row.evictions) or "-", ran, row.state)
    console.line()
    console.show(table)
    if len(rows) > _SHOWN:
        console.line(f"and {len(rows) - _SHOWN} more, which waited no longer")
    console.line()
    evicted, moved = (sum(bool(row.evictions) for row in rows), sum(len(row.places) > 1 for row in rows))
    line("Jobs", f"{len(rows)} submitted while Kueue was upgraded; {evicted} evicted, {moved} moved to another cluster")
    if seen.not_known:
        line("", f"evictions are not known: {seen.not_known}")
    if seen.left:
        line("Left", f"{console.count(len(seen.left), 'job')} got quota while no worker was connected, and went on")
        line("", "when the Workload was annotated: docs/found-in-kueue.md, 14")
    line("Refused", f"{len(seen.stream.refusals)} times, and taken later" if seen.stream.refusals else "no job")
    for text in dict.fromkeys(seen.stream.refusals):
        console.paragraph(text)
    wrong = [text for row in rows for text in row.wrong]
    wrong += [f"ran twice at one time: {each}" for each in seen.witnesses.overlaps()]
    unknown = sum(not row.runs for row in rows)
    ran = f"how often {console.count(unknown, 'job')} ran is not known" if unknown else "each ran once"
    line("Audit", "; ".join(wrong) or f"every job finished, and {ran}")
    return not wrong
