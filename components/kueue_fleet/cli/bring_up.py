"""A rehearsal from its check to its end: the engines, `pulumi up` and the jobs, shown while they happen."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from kueue_admission.cli import console
from kueue_fleet.cli.first_rehearsal import show_what_is_known
from kueue_fleet.cli.fleet_files import load_fleet
from kueue_fleet.cli.given_fleets import GivenFleet, check_same, given_fleet
from kueue_fleet.cli.progress import Say, line, step
from kueue_fleet.cli.rehearsed_jobs import Jobs, read_jobs, run_jobs
from kueue_fleet.fleet_file import check_fleet
from kueue_fleet.google.resource_types import CLUSTER, STACK
from kueue_rehearsal.pulumi_events import Operation

if TYPE_CHECKING:
    from kueue_fleet.fleet_file import FleetSpec
    from kueue_fleet.program.handed_out import DeclaredFleet
    from kueue_rehearsal.session import Session

_LONG_SECONDS = 60.0
_MOST_WAITS = 3


def rehearse_stack(session: Session, jobs: Jobs, keep: bool, report: Path | None, max_run_seconds: int | None) -> None:
    """Bring the session's stack up, run the jobs, and take it down unless it is kept.

    Raises CommandError: the stack cannot be rehearsed, Pulumi cannot run here, or the jobs are wrong.
    """
    from kueue_rehearsal.fleet_engines import fleet_engines

    began = time.monotonic()
    source_fleet, fleet = checked(session)
    documents = read_jobs(fleet, jobs.file, max_run_seconds) if jobs.none is None else []
    warn(session, fleet)
    if seconds := session.expected_build_seconds(fleet_engines(fleet)):
        show_what_is_known(session, source_fleet, fleet, jobs, seconds)
    with session.exclusive(), ExitStack() as running:
        start(session, fleet, running, keep=keep)
        bring_up(session, fleet, source_fleet)
        run_jobs(session, fleet, jobs, documents, began, report)
        for pod in session.refused_pods.ask():
            line("Not run", str(pod))
        usage = session.usage()
        line("Memory", f"{usage.control_planes_mib} MiB in {_planes(len(fleet.clusters))} and their Kueue")
        stays = keep or session.kept
        if not stays:
            with step("Taken down"):
                running.close()
        line("Whole run", f"{time.monotonic() - began:.0f} s")
    _say_what_next(session, fleet, stays)


def checked(session: Session) -> tuple[GivenFleet, FleetSpec]:
    """The fleet of the session's stack, which can be rehearsed here.

    Raises CommandError: it cannot.
    """
    from kueue_rehearsal.fleet_engines import check_runs_here

    source_fleet = given_fleet(session.stack_file)
    fleet = load_fleet(source_fleet, as_published=session.as_published)
    if source_fleet.declared is not None:
        session.declared = source_fleet.data()
    if problems := check_runs_here(fleet):
        raise console.CommandError(f"{session.stack_file} cannot be rehearsed:", problems=problems)
    if missing_parts := session.missing_parts():
        raise console.CommandError("Pulumi cannot run here:", problems=missing_parts)
    _ = session.settings  # Raises where they are wrong.
    return source_fleet, fleet


def warn(session: Session, fleet: FleetSpec) -> None:
    """Print what is doubtful in the fleet, or otherwise in a rehearsal."""
    from kueue_rehearsal.fleet_engines import runs_otherwise

    for problem in (*(problem.as_published() for problem in check_fleet(fleet)), *runs_otherwise(fleet)):
        console.warning(f"{session.stack_file}: {problem.coded}")


def start(session: Session, fleet: FleetSpec, running: ExitStack, *, keep: bool) -> None:
    """Find or build the engines, and start the supervisor, or go on with that of a rehearsal that was kept; its end
    is that of `running`."""
    from kueue_rehearsal.fleet_engines import fleet_engines

    with step("Engines") as say:
        say(session.prepare_engines(say.stage, fleet_engines(fleet)))
    if session.kept:
        line("Kept", f"a rehearsal of {session.stack} is running; this run updates it in place")
    with step("Supervisor") as say:
        running.enter_context(session.running(keep=keep, fleet=fleet))
        say("started")


def _planes(number: int) -> str:
    return console.count(number, "control plane")


def bring_up(session: Session, fleet: FleetSpec, fleet_input: GivenFleet) -> None:
    """Run the first `pulumi up` of the session's stack, whose supervisor runs."""
    for part in session.stand_ins():
        line("Stand-in", f"{part.executable} for {part.replaces}")
    if len(fleet.new_clusters) < len(fleet.clusters) or any(node_pool.existing for node_pool in fleet.node_pools):
        with step("Existing") as say:
            say(f"{', '.join(session.make_existing_clusters(fleet))}: created for the rehearsal, as if they existed")
    update(session, fleet, fleet_input)


def update(session: Session, fleet: FleetSpec, fleet_input: GivenFleet) -> None:
    """Run `pulumi up`, and write the kubeconfig."""
    with step("pulumi up") as say:
        declarations = _pulumi_up(session, len(fleet.clusters), say)
    for declaration in declarations:
        if fleet_input.declared is None and (len(declarations) == 1 or declaration.name == fleet.name):
            check_same(session.stack_file, fleet_input.data(), declaration)
    session.write_kubeconfig(fleet)


class LongWaits:
    """Says what Pulumi has been waiting for, after a minute, and again whenever that time has doubled."""

    def __init__(self, note: Callable[[str], None], now: Callable[[], float] = time.time) -> None:
        self._note, self._now = note, now
        self._told: dict[tuple[str, str], float] = {}

    def __call__(self, under_way: Collection[Operation]) -> None:
        """Take what is under way."""
        now = self._now()
        due = [wait for wait in under_way if now - wait.since >= self._told.get((wait.type, wait.name), _LONG_SECONDS)]
        self._told |= {(wait.type, wait.name): 2 * (now - wait.since) for wait in due}
        for wait in due[:_MOST_WAITS]:
            kind, seconds = wait.type.rsplit(":", 1)[-1], now - wait.since
            status = f": {wait.status}" if wait.status else ""
            self._note(f"waiting for {kind} {wait.name}, {seconds:.0f} s so far ({wait.op}){status}")
        if len(due) > _MOST_WAITS:
            self._note(f"and for {len(due) - _MOST_WAITS} more")


def _pulumi_up(session: Session, clusters: int, say: Say) -> list[DeclaredFleet]:
    """Returns the fleets of the program."""
    say.now("opening its state")
    ready = finished_count = 0
    long_waits = LongWaits(say.note)

    def watch(under_way: Collection[Operation]) -> None:
        session.refused_pods(under_way)
        long_waits(under_way)

    project = session.pulumi()
    with project.up(watch) as run:
        try:
            for event in run:
                if event.type == STACK or event.failed:
                    continue
                finished_count += event.done
                kind = event.type.rsplit(":", 1)[-1]
                if event.done and event.op == "create" and event.type == CLUSTER:
                    ready += 1
                    say.note(f"{event.name.rpartition('/')[2]} is ready")
                if event.op != "same":
                    counts = f"{ready} of {_planes(clusters)}, " if ready else ""
                    say.now(f"{counts}{console.count(finished_count, 'resource')}; {event.op} {kind} {event.name}")
        except BaseException:
            say.now("stopping")
            raise
    say(run.result.summary)
    for warning in run.result.warnings:
        console.warning(warning)
    return project.fleets


def _say_what_next(session: Session, fleet: FleetSpec, stays: bool) -> None:
    if stays:
        line("Left running", f"export KUBECONFIG={session.paths.kubeconfig}")
        line("Look at", f"kubectl --context {fleet.home} get workloads --all-namespaces")
        line("Change it", f"edit {session.stack_file}, then run the same command again")
        line("End it", f"kueue-fleet rehearse down --stack {session.stack}")
    else:
        line("Next", f"kueue-fleet rehearse up --stack {session.stack}   leaves it running for kubectl")
        line("", f"kueue-fleet render {session.stack_file}   prints every object it applied")
