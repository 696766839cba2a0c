"""`rehearse drill`: a fault on the rehearsal's control planes while jobs run, and what became of them."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, redirect_stdout
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import typer

from kueue_admission.cli import console, simulate_goals
from kueue_fleet.cli.bring_up import bring_up, checked, start, warn
from kueue_fleet.cli.progress import line, step
from kueue_fleet.cli.rehearsed_jobs import JOBS_TIMEOUT_SECONDS, find_jobs, read_jobs
from kueue_fleet.cli.watched_jobs import LOOK_SECONDS, Row, observed, run_before, show_rows

if TYPE_CHECKING:
    from kueue_admission.read.goals import Judged
    from kueue_fleet.cli.watched_jobs import Seen
    from kueue_fleet.fleet_file import FleetSpec
    from kueue_rehearsal.drills import Fault, Scene
    from kueue_rehearsal.session import Session

LASTS_SECONDS: Final = 60
"""How long a fault lasts where no option says."""
_RETRY_SECONDS: Final = (5.0, 320.0)
"""How long Kueue waits before it tries a lost worker again: the first time, and at most; each time twice as long.

Source: kueue@v0.19.2 pkg/controller/admissionchecks/multikueue/multikueuecluster.go (retryAfter).
"""
_KUEUE: Final = ("kueue.x-k8s.io", "v1beta2")


class Drill(NamedTuple):
    """What was typed."""

    fault: str
    lasts: int | None = None
    worker: str | None = None
    jobs: Path | None = None
    max_run_seconds: int | None = None
    as_json: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a drill showed; times in seconds."""

    fault: str
    worker: str
    """The one that was lost; empty: none was."""
    lasted: float
    """From the fault until it was repaired."""
    well_after: float | None
    """From the fault until all was well; None: it was not in time."""
    wait_before: float
    """The longest wait of the same jobs while nothing happened."""
    rows: Sequence[Row]
    gone: Sequence[str]
    """Jobs that the fault itself took away."""
    twice: Sequence[str]
    """Jobs that were on workers twice at one time."""
    judged: Sequence[Judged]
    refusals: int
    """How often a job was refused, and submitted again."""
    not_known: str = ""
    """Why evictions and goals are not known; empty: they are."""

    @property
    def problems(self) -> list[str]:
        """What is not well at the end, goals aside."""
        wrong_rows = [f"{row.name}: is {row.state}, not finished" for row in self.rows if not row.is_finished]
        if self.well_after is None:
            patience = well_within(self.fault, self.lasted)
            wrong_rows.insert(0, f"not all was well {patience:.0f} s after the fault was repaired")
        return wrong_rows

    def to_dict(self) -> dict[str, Any]:
        """The document of `--output json`."""
        return {
            "schemaVersion": 1,
            "fault": self.fault,
            "worker": self.worker or None,
            "lastedSeconds": round(self.lasted, 1),
            "wellAfterSeconds": None if self.well_after is None else round(self.well_after, 1),
            "longestWaitBeforeSeconds": round(self.wait_before, 1),
            "jobs": [row.to_dict() for row in self.rows],
            "gone": list(self.gone),
            "twiceAtOneTime": list(self.twice),
            "refusals": self.refusals,
            "goals": [verdict.to_dict() for verdict in self.judged],
            "notKnown": self.not_known or None,
            "problems": self.problems,
        }


def well_within(fault: str, lasted: float) -> float:
    """How long after its repair a fault may show: Kueue waits about as long as a worker was lost until it tries again,
    and learns only then what ended there."""
    first, most = _RETRY_SECONDS
    return JOBS_TIMEOUT_SECONDS + (min(lasted + first, most) if fault == "worker-lost" else 0)


def check_drill(fleet: FleetSpec, drill: Drill, source: Path) -> Fault:
    """The fault. Raises CommandError: there is none of that name, the fleet cannot have it, or options contradict."""
    from kueue_admission.kernel import suggest
    from kueue_rehearsal.drills import FAULTS

    fault = FAULTS.get(drill.fault)
    if fault is None:
        raise console.mistyped(
            f"--fault {drill.fault}: is not a fault; {suggest.instead(drill.fault, FAULTS, 'faults')}"
        )
    if missing_part := fault.missing(fleet):
        able = ", ".join(fault.name for fault in FAULTS.values() if not fault.missing(fleet))
        raise console.CommandError(f"--fault {fault.name}: {source} has no {missing_part}; its faults are {able}")
    if drill.lasts is not None and not fault.lasts:
        raise console.mistyped(f"--lasts {drill.lasts}: {fault.name} is over at once; leave it out")
    if drill.worker is not None:
        if fault.name != "worker-lost":
            raise console.mistyped(f"--worker {drill.worker}: goes with --fault worker-lost; leave it out")
        workers = fleet.worker_names
        if drill.worker not in workers:
            fix = suggest.instead(drill.worker, workers, "workers")
            raise console.mistyped(f"--worker {drill.worker}: is not a worker of {source}; {fix}")
    return fault


def rehearse_drill(session: Session, drill: Drill) -> None:
    """Bring the session's stack up, or go on with what was kept, and have one fault while its jobs run.

    Raises:
        CommandError: it cannot be rehearsed, the fleet cannot have the fault, or a goal is missed.
        Exit: a job did not finish, or not all was well in time.
    """
    with redirect_stdout(sys.stderr if drill.as_json else sys.stdout):
        outcome = _carried_out(session, drill)
    if drill.as_json:
        console.json_document(outcome.to_dict())
    else:
        show_outcome(outcome)
    conclude(outcome, quiet=drill.as_json)


def conclude(outcome: Outcome, *, quiet: bool) -> None:
    """Raise what the exit code says: CommandError where a goal is missed, Exit where a job is not finished."""
    if outcome.problems:
        if not quiet:
            for verdict in outcome.judged:
                console.line(simulate_goals.line(verdict))
        raise typer.Exit(1)
    simulate_goals.enforce(outcome.judged, quiet=quiet)


def _carried_out(session: Session, drill: Drill) -> Outcome:
    source_fleet, fleet = checked(session)
    fault = check_drill(fleet, drill, session.stack_file)
    jobs = find_jobs(session, drill.jobs, none=False)
    if drill.jobs is None and not jobs.file.is_file():
        raise console.mistyped(f"drill: there is no {jobs.file}; give --jobs FILE, as jobs have to run meanwhile")
    documents = read_jobs(fleet, jobs.file, drill.max_run_seconds)
    warn(session, fleet)
    with session.exclusive(), ExitStack() as running:
        start(session, fleet, running, keep=False)
        bring_up(session, fleet, source_fleet)
        outcome = _drilled(session, fleet, fault, drill, documents)
        if not session.kept:
            with step("Taken down"):
                running.close()
    return outcome


def _drilled(
    session: Session, fleet: FleetSpec, fault: Fault, drill: Drill, documents: Sequence[Mapping[str, Any]]
) -> Outcome:
    submissions: list[Mapping[str, Any]] = []
    try:
        return _observed(session, fleet, fault, drill, documents, submissions)
    finally:
        if session.kept:
            _clean_up(session, fleet, submissions)


def _observed(
    session: Session,
    fleet: FleetSpec,
    fault: Fault,
    drill: Drill,
    documents: Sequence[Mapping[str, Any]],
    submissions: list[Mapping[str, Any]],
) -> Outcome:
    """What becomes of the jobs; `submissions` gets those that were."""
    from kueue_fleet.fleet_simulation.fleet_run import worker_lost_seconds
    from kueue_rehearsal.drills import Scene
    from kueue_rehearsal.jobs.kinds import JOB_KINDS

    mark = f"{int(time.time()) & 0xFFFFF:05x}"
    job_documents = [_named(document, f"{mark}-{number}") for number, document in enumerate(documents, 1)]
    submissions += [document for document in job_documents if document["kind"] in JOB_KINDS]
    before = run_before(session, fleet, job_documents, "drill")
    clients = session.clients(fleet)
    with observed(session, fleet, before.jobs, asks_again=False) as observation:
        try:
            running = console.count(observation.wait_until_one_runs(), "job")
            worker = drill.worker or _busiest(observation, fleet) if fault.name == "worker-lost" else ""
            scene = Scene(session, fleet, clients, worker)
            line("Fault", f"{fault.name}, with {running} running: {fault.does.format(worker=worker)}")
            if worker and _seconds(fault, drill) < (patience := worker_lost_seconds(fleet)):
                line("", f"Kueue moves its jobs after {patience:.0f} s: multiKueue.workerLostTimeout")
            began = time.monotonic()
            gone = _run_fault(fault, scene, observation, drill)
            repair_time = time.monotonic()
            observation.stream.close()
            jobs = [job for job in observation.stream.submitted if not gone or clients.has(fleet.home, job)]
            well_by = repair_time + well_within(fault.name, repair_time - began)
            well_at = _wait_until_well(scene, observation, jobs, repair_time, well_by)
            with step("Jobs") as say:
                # What does not run after so long does not end either.
                seconds = JOBS_TIMEOUT_SECONDS if well_at is not None else 0.0
                views = list(session.follow_jobs(fleet, jobs, seconds))[-1]
                say(f"{len(views)} submitted meanwhile, each followed to its end")
            time.sleep(2 * LOOK_SECONDS)  # The last look is at what has ended.
        finally:
            observation.stream.close()
            submissions += observation.stream.submitted
    there = {(job["metadata"]["namespace"], job["metadata"]["name"]) for job in jobs}
    lost = [job["metadata"]["name"] for job in observation.stream.submitted if _key(job) not in there]
    verdict, not_known = _judged(session, fleet, observation, there)
    return Outcome(
        fault.name,
        worker,
        repair_time - began,
        None if well_at is None else well_at - began,
        before.longest_wait,
        [Row.of(view, observation, fleet) for view in views],
        lost,
        # What etcd forgot is still seen where it was, until the watches are there again.
        () if fault.forgets else observation.witnesses.overlaps(),
        verdict,
        len(observation.stream.refusals),
        not_known,
    )


def _key(job: Mapping[str, Any]) -> tuple[str, str]:
    return job["metadata"]["namespace"], job["metadata"]["name"]


def _named(document: Mapping[str, Any], mark: str) -> dict[str, Any]:
    """A job by a name of this drill alone, so that a kept rehearsal takes it; what jobs use keeps its name."""
    from kueue_rehearsal.jobs.kinds import JOB_KINDS, job_name

    if document["kind"] not in JOB_KINDS:
        return dict(document)
    metadata = {key: value for key, value in document["metadata"].items() if key != "generateName"}
    name = f"{job_name(document).rstrip('-')}-{mark}"
    return {**document, "metadata": {"namespace": "default", **metadata, "name": name}}


def _busiest(seen: Seen, fleet: FleetSpec) -> str:
    """The worker on which most of the jobs run."""
    running = Counter(record.cluster for record in seen.records() if record.is_running and record.cluster)
    return max(fleet.worker_names, key=lambda name: running[name])


def _seconds(fault: Fault, drill: Drill) -> int:
    """How long the fault lasts."""
    if not fault.lasts:
        return 0
    return LASTS_SECONDS if drill.lasts is None else drill.lasts


def _run_fault(fault: Fault, scene: Scene, seen: Seen, drill: Drill) -> bool:
    """Have the fault for as long as it lasts, or until a job is taken again; whether jobs are gone with it."""
    from kueue_rehearsal.faults import wait_for

    seconds = _seconds(fault, drill)
    with step("Repaired") as say:
        say.now("making it")
        with fault.made(scene):
            began = time.monotonic()
            while (rest := seconds - (time.monotonic() - began)) > 0:
                say.now(f"it lasts for {rest:.0f} s more; {console.count(len(seen.stream.submitted), 'job')} submitted")
                time.sleep(min(rest, LOOK_SECONDS))
            say.now("repairing it")
        if not fault.lasts:
            before = len(seen.stream.submitted)
            wait_for(lambda: len(seen.stream.submitted) > before, "no job was taken")
        say(f"after {seconds} s" if seconds else "at once, and a job was taken")
    return fault.forgets


def _wait_until_well(
    scene: Scene, seen: Seen, jobs: Sequence[Mapping[str, Any]], repair_time: float, well_by: float
) -> float | None:
    """When every cluster answered again, and each of JOBS ran or was over; None: not in time."""
    expected_keys = {_key(job) for job in jobs}
    with step("All well") as say:
        while time.monotonic() < well_by and not seen.not_known:
            waiting = waiting_jobs(seen, scene.fleet.home, expected_keys, repair_time)
            if waiting is None:
                say.now("waiting until every cluster answers")
            elif waiting:
                say.now(f"waiting for {console.count(len(waiting), 'job')}, such as {min(waiting)[1]}")
            elif _connected(scene):
                say("")
                return time.monotonic()
            time.sleep(LOOK_SECONDS)
        say(f"not in {well_by - repair_time:.0f} s")
    return None


def waiting_jobs(
    seen: Seen, home: str, expected_keys: set[tuple[str, str]], since: float
) -> set[tuple[str, str]] | None:
    """Those of the jobs that neither run nor are over; None: not every cluster has answered since then."""
    from kueue_admission.read.printed import PrintedWorkload

    records = {(record.namespace, record.name): record for record in seen.records()}
    with seen.lock:
        waiting, listing = seen.listed
    if waiting < since:
        return None
    well = set()
    for workload in map(PrintedWorkload.of, listing[home]):
        for owner in workload.owners:
            record = records.get(key := (workload.namespace, owner.name))
            runs = workload.is_true("Admitted") and record is not None and record.is_running
            if runs or workload.is_true("Finished"):
                well.add(key)
    return expected_keys - well


def _connected(scene: Scene) -> bool:
    """Whether the manager's Kueue is connected to every worker."""
    from kueue_admission.read.printed import Printed

    if scene.fleet.manager is None:
        return True
    clusters = scene.clients.list(scene.fleet.home, *_KUEUE, "multikueueclusters")
    return all(Printed.of(cluster).is_true("Active") for cluster in clusters)


def _judged(session: Session, fleet: FleetSpec, seen: Seen, there: set[tuple[str, str]]) -> tuple[list[Judged], str]:
    """How the jobs compare with the fleet's goals, and why that is not known."""
    from kueue_admission.decide.errors import NotModelledError, ObjectError
    from kueue_admission.simulate.goals import judge_result
    from kueue_fleet.fleet_file.goals import goals_of

    goals = goals_of(fleet)
    if seen.not_known or not goals:
        return [], seen.not_known
    try:
        with seen.lock:
            result = seen.recorder.result(fleet, session.list_quotas(fleet), time.time(), 0)
    except (NotModelledError, ObjectError) as error:
        return [], str(error)
    own = tuple(record for record in result.records if (record.namespace, record.name) in there)
    return judge_result(goals, replace(result, records=own)), ""


def show_outcome(outcome: Outcome) -> None:
    """Print what a drill showed."""
    rows = outcome.rows
    show_rows(rows)
    console.line()
    eviction_count, move_count = (sum(bool(row.evictions) for row in rows), sum(len(row.places) > 1 for row in rows))
    again, longest_wait = sum(row.runs > 1 for row in rows), max((row.waited for row in rows), default=0.0)
    if outcome.worker:
        line("Lost", outcome.worker)
    line(
        "Meanwhile",
        f"{console.count(len(rows), 'job')}: {eviction_count} evicted, {move_count} moved, {again} ran again",
    )
    if restart_count := sum(row.restarted for row in rows):
        hit = sum(bool(row.restarted) for row in rows)
        line(
            "", f"{console.count(restart_count, 'pod')} of {console.count(hit, 'job')} started again in place of others"
        )
    line("Longest wait", f"{longest_wait:.0f} s; {outcome.wait_before:.0f} s while nothing happened")
    well = "not in time" if outcome.well_after is None else f"{outcome.well_after:.0f} s after the fault"
    line("All well", f"{well}, which lasted {outcome.lasted:.0f} s")
    if outcome.refusals:
        line("Refused", f"a job, {outcome.refusals} times; it was submitted again until it was taken")
    if outcome.gone:
        line("Gone", f"{console.count(len(outcome.gone), 'job')}, submitted after the backup: {_some(outcome.gone)}")
    if outcome.twice:
        line("Twice", f"at one time: {_some(outcome.twice)}")
    if outcome.not_known:
        line("Not known", f"evictions and goals: {outcome.not_known}")
    line("Audit", "; ".join(outcome.problems) or "every job finished")


def _some(names: Sequence[str]) -> str:
    names_text = ", ".join(names[:3])
    return f"{names_text} and {len(names) - 3} more" if len(names) > 3 else names_text


def _clean_up(session: Session, fleet: FleetSpec, jobs: Sequence[Mapping[str, Any]]) -> None:
    """Delete the jobs of the drill from a rehearsal that stays."""
    from kueue_rehearsal.paths import RehearsalError

    clients = session.clients(fleet)
    try:
        for job in jobs:
            clients.delete(fleet.home, job)
    except RehearsalError as failure:
        console.warning(f"the drill's jobs are still there: {failure}")
