"""`rehearse`: a stack brought up by a real `pulumi up` on real control planes here, shown while it happens."""

from __future__ import annotations

import errno
import re
import time
from collections.abc import Callable, Collection
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kueue_admission.cli import console
from kueue_admission.cli.interrupts import Interrupted, interruptible
from kueue_admission.cli.simulate_report import check_report_file
from kueue_fleet.cli.first_rehearsal import show_what_is_known
from kueue_fleet.cli.fleet_files import AsPublished, load_fleet
from kueue_fleet.cli.progress import Say, line, spinner, step
from kueue_fleet.cli.rehearsed_jobs import Jobs, find_jobs, read_jobs, run_jobs
from kueue_fleet.fleet_file import check_fleet
from kueue_rehearsal.pulumi_events import STACK_TYPE, Operation

if TYPE_CHECKING:
    # The rehearsal brings a Kubernetes client and a web server along; the other commands start without them.
    from kueue_fleet.fleet_file import FleetSpec
    from kueue_rehearsal.session import Session

_STACK_FILE = re.compile(r"(?:.*/)?Pulumi\.(.+)\.yaml")
DEFAULT_STACK = "dws-multikueue"
"""The stack that is rehearsed where none is named."""
_CLUSTER_TYPE = "gcp:container/cluster:Cluster"
_LONG_SECONDS = 60.0
_MOST_WAITS = 3


def rehearse(
    file: Annotated[
        str | None,
        typer.Argument(
            metavar="FILE",
            help="The stack's file, Pulumi.<stack>.yaml, or its name: the same as --stack. Or a file of a fleet alone, "
            "which the project's program takes in the place of a stack.",
        ),
    ] = None,
    stack: Annotated[
        str | None,
        typer.Option(
            "--stack", "-s", help="The stack: Pulumi.<stack>.yaml of the project.", show_default=DEFAULT_STACK
        ),
    ] = None,
    project: Annotated[
        Path | None,
        typer.Option("--project", help="The folder with Pulumi.yaml.", show_default="that of FILE, or this folder"),
    ] = None,
    jobs: Annotated[
        Path | None,
        typer.Option(
            "--jobs",
            help="Jobs of any kind that the fleet has an operator for, with the ConfigMaps, Secrets, Services and "
            "TrainingRuntimes that they use.",
            show_default="examples/<stack>/jobs.yaml, which is submitted once to a kept rehearsal",
        ),
    ] = None,
    max_run_seconds: Annotated[
        int | None,
        typer.Option(
            "--max-run-seconds",
            min=1,
            help="End the pods of these jobs after so many seconds, if they would run longer.",
            show_default="what kueue-fleet.dev/run-seconds says",
        ),
    ] = None,
    no_jobs: Annotated[bool, typer.Option("--no-jobs", help="Submit no jobs, and wait for none.")] = False,
    keep: Annotated[
        bool, typer.Option("--keep", help="Leave the clusters running, with a kubeconfig for kubectl.")
    ] = False,
    down: Annotated[bool, typer.Option("--down", help="End the stack's rehearsal and remove all of it.")] = False,
    reclaim_spot: Annotated[
        str | None,
        typer.Option(
            "--reclaim-spot",
            metavar="CLUSTER[/POOL][=COUNT]",
            help="Reclaim Spot nodes of the kept rehearsal, as Google may; COUNT defaults to 1.",
        ),
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option("--html", metavar="FILE", help="Write a report of the jobs, which opens without a network."),
    ] = None,
    as_published: AsPublished = False,
) -> None:
    """Bring a stack up on real control planes on this machine, submit jobs, and show what happens to them.

    The spec is checked first. etcd, kube-apiserver, Kueue and the Pulumi CLI are real (found, or built once into the
    cache); Google Cloud, the nodes and their GPUs are simulated. With --keep, run it again after changing the stack
    file: it updates the running clusters in place.

    Jobs are submitted all or none, and followed until they have ended or provably cannot run, for 300 s at most. A kept
    rehearsal gets those of the default file once; later runs follow what has not ended, and --jobs submits more.

    The stack file says, under kueue-fleet:rehearsal, how much capacity DWS has, how long nodes take and how often Spot
    nodes are taken back; see docs/rehearse.md.

    Exits 1 if the stack or the machine prevents it. It then removes what it started, and its logs stay.
    Ctrl-C removes it too. A rehearsal that was kept earlier continues in both cases.

    \b
    Examples:
      kueue-fleet rehearse
      kueue-fleet rehearse stacks/Pulumi.dws-multikueue.yaml --keep
      kueue-fleet rehearse --stack batch-platform --html report.html
      kueue-fleet rehearse examples/kinds-of-jobs/fleet.yaml \\
          --jobs examples/kinds-of-jobs/rayjob.yaml
      kueue-fleet rehearse --as-published \\
          examples/batch-platform/with-defects.yaml \\
          --jobs examples/batch-platform/jobs.yaml
      kueue-fleet rehearse --stack batch-platform \\
          --reclaim-spot batch-dev/l4-spot=2
      kueue-fleet rehearse --stack dws-multikueue --down
    """
    from kueue_rehearsal.paths import RehearsalError
    from kueue_rehearsal.session import Session

    chosen = [flag for flag, given in (("--keep", keep), ("--down", down), ("--reclaim-spot", reclaim_spot)) if given]
    _check_options(file, stack, jobs, chosen, no_jobs=no_jobs, report=report)
    named = next(given for given in (file, stack, DEFAULT_STACK) if given is not None)
    stack, stack_file = _parse_stack(named)
    session: Session | None = None
    try:
        with interruptible():
            if down:
                _take_down(stack)
                return
            if reclaim_spot is not None:
                _reclaim(Session.for_stack(stack, Path()), reclaim_spot)
                return
            session = Session.for_stack(stack, _project_folder(project, stack_file))
            session.as_published = as_published
            if stack_file is not None and _STACK_FILE.fullmatch(named) is None:
                session.fleet_file = stack_file
            if stack_file is not None and not _is_same(session.stack_file, stack_file):
                raise console.CommandError(
                    f"{stack_file}: is not the file of stack {stack}, which is {session.stack_file}; give that one"
                )
            found = find_jobs(session, jobs, none=no_jobs)
            if report is not None and found.none is not None and not found.followed:
                raise console.CommandError(f"--html {report}: a report needs jobs, and {found.none}")
            _rehearse(session, found, keep, report, max_run_seconds)
    except Interrupted as interrupted:
        untouched = "run it again to remove the rest" if down else "nothing was started"
        aftermath = (session and session.aftermath) or untouched
        raise console.CommandError(f"interrupted; {aftermath}", interrupted.exit_code) from None
    except RehearsalError as failure:
        raise _failure(str(failure), session) from failure
    except OSError as failure:
        raise _failure(_explain(failure), session) from failure


def _check_options(
    file: str | None, stack: str | None, jobs: Path | None, chosen: list[str], *, no_jobs: bool, report: Path | None
) -> None:
    """Raise CommandError for options that contradict each other; `chosen` are those of which one is given at most."""
    if jobs is not None and no_jobs:
        raise console.mistyped(f"--jobs {jobs} and --no-jobs: contradict each other; leave one of them out")
    if report is not None:
        other = "--no-jobs" if no_jobs else next((flag for flag in chosen if flag != "--keep"), None)
        if other is not None:
            raise console.mistyped(f"--html and {other}: a report needs jobs; leave one of them out")
        check_report_file(report)
    if len(chosen) > 1:
        raise console.mistyped(f"{' and '.join(chosen)}: leave all but one of them out")
    if file is not None and stack is not None:
        raise console.mistyped(f"{file} and --stack {stack}: both name the stack; leave one of them out")
    if file in ("down", "keep"):
        raise console.mistyped(f"{file}: is an option; write --{file}")


def _parse_stack(given: str) -> tuple[str, Path | None]:
    """The stack that is named, by its name or by a file; and the file, if it was that and has a folder.

    A file that is not a stack's own has a fleet alone, whose rehearsal is named after it.
    """
    if (of_file := _STACK_FILE.fullmatch(given)) is not None:
        return of_file[1], Path(given) if "/" in given or Path(given).is_file() else None
    if given.endswith((".yaml", ".yml", ".json")):
        return Path(given).stem, Path(given)
    return given, None


def _project_folder(project: Path | None, stack_file: Path | None) -> Path:
    """The folder with Pulumi.yaml: the one given, else the nearest above the stack's file, else this one."""
    if stack_file is not None and not stack_file.is_file():
        raise console.CommandError(f"{stack_file}: no such file; give one, or the name of a stack of this project")
    if project is not None or stack_file is None:
        return (project or Path()).resolve()
    folders = stack_file.resolve().parents
    for folder in folders:
        if (folder / "Pulumi.yaml").is_file():
            return folder
    raise console.CommandError(
        f"{stack_file}: there is no Pulumi.yaml beside or above it; name its folder with --project"
    )


def _is_same(one: Path, other: Path) -> bool:
    return one.is_file() and one.samefile(other)


def _failure(words: str, session: Session | None) -> console.CommandError:
    """Its first line is the message; programs that failed have more to say."""
    message, *more = words.split("\n")
    aftermath = [session.aftermath] if session and session.aftermath else []
    return console.CommandError(message, problems=[*more, *aftermath])


def _explain(failure: OSError) -> str:
    place = failure.filename or "the state folder or the cache"
    advice = "see the logs"
    if failure.errno in (errno.ENOSPC, errno.EDQUOT):
        advice = "free some space, or set KUEUE_FLEET_STATE_DIR to a folder on another disk"
    elif failure.errno in (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR):
        advice = "set KUEUE_FLEET_STATE_DIR and KUEUE_FLEET_CACHE_DIR to folders that you can write"
    return f"{place}: {failure.strerror or failure}; {advice}"


def _take_down(stack: str) -> None:
    from kueue_rehearsal.session import rehearsals, take_down

    with spinner("Taking down") as show:
        show(f"the rehearsal of {stack}")
        removed = take_down(stack)
    if removed:
        console.line(f"The rehearsal of {stack} was removed: its processes, clusters and state.")
        return
    others = ", ".join(rehearsals())
    hint = f"there is one of {others}" if others else "nothing to do"
    console.line(f"There is no rehearsal of {stack}; {hint}.")


def _reclaim(session: Session, wanted: str) -> None:
    place, _, number = wanted.partition("=")
    cluster, _, pool = place.partition("/")
    if not cluster or (number and not re.fullmatch("0*[1-9][0-9]{0,4}", number)):
        example = "write CLUSTER, CLUSTER/POOL or CLUSTER/POOL=COUNT"
        raise console.mistyped(f"--reclaim-spot {wanted}: names no Spot nodes; {example}")
    if not session.kept:
        raise console.CommandError(
            f"--reclaim-spot {wanted}: no rehearsal of {session.stack} is running; start one with --keep"
        )
    names = session.client.reclaim_spot(cluster, int(number or 1), pool or None)
    if not names:
        console.line(f"There is no Spot node in {place}; nothing was reclaimed.")
    for name in names:
        console.line(f"{cluster}: {name} was reclaimed.")


def _rehearse(session: Session, jobs: Jobs, keep: bool, report: Path | None, max_run_seconds: int | None) -> None:
    from kueue_rehearsal.jobs.refused_pods import check_runs_here, other_versions

    began = time.monotonic()
    fleet = load_fleet(session.stack_file, as_published=session.as_published)
    if problems := check_runs_here(fleet):
        raise console.CommandError(f"{session.stack_file} cannot be rehearsed:", problems=problems)
    if missing := session.missing_parts():
        raise console.CommandError("Pulumi cannot run here:", problems=missing)
    _ = session.settings  # Raises where they are wrong.
    documents = read_jobs(fleet, jobs.file, max_run_seconds) if jobs.none is None else []
    for problem in (*(each.as_published() for each in check_fleet(fleet)), *other_versions(fleet)):
        console.warning(f"{session.stack_file}: {problem}")
    if seconds := session.expected_build_seconds(fleet.operators.installed):
        show_what_is_known(session, fleet, jobs, seconds)
    with session.exclusive(), ExitStack() as running:
        with step("Engines") as say:
            say(session.prepare_engines(say.stage, fleet.operators.installed))
        if session.kept:
            line("Kept", f"a rehearsal of {session.stack} is running; this run updates it in place")
        with step("Supervisor") as say:
            running.enter_context(session.running(keep=keep, fleet=fleet))
            say("started")
        _bring_up(session, fleet)
        run_jobs(session, fleet, jobs, documents, began, report)
        for pod in session.refused_pods.ask():
            line("Not run", str(pod))
        usage = session.usage()
        line("Memory", f"{usage.control_planes_mib} MiB in {_planes(len(fleet.clusters))} and their Kueue")
        stays = keep or session.kept
        if not stays:
            with step("Taken down") as say:
                running.close()
        line("Whole run", f"{time.monotonic() - began:.0f} s")
    _say_what_next(session, fleet, stays)


def _planes(number: int) -> str:
    return console.count(number, "control plane")


def _bring_up(session: Session, fleet: FleetSpec) -> None:
    for part in session.stand_ins():
        line("Stand-in", f"{part.executable} for {part.replaces}")
    if any(each.existing for each in fleet.clusters) or any(each.existing for each in fleet.node_pools):
        with step("Existing") as say:
            say(f"{', '.join(session.make_existing_clusters(fleet))}: created for the rehearsal, as if they existed")
    with step("pulumi up") as say:
        _pulumi_up(session, len(fleet.clusters), say)
    session.write_kubeconfig(fleet)


class LongWaits:
    """Says what Pulumi has been waiting for, after a minute, and again whenever that time has doubled."""

    def __init__(self, note: Callable[[str], None], now: Callable[[], float] = time.time) -> None:
        self._note, self._now = note, now
        self._told: dict[tuple[str, str], float] = {}

    def __call__(self, under_way: Collection[Operation]) -> None:
        """Take what is under way."""
        now = self._now()
        due = [each for each in under_way if now - each.since >= self._told.get((each.type, each.name), _LONG_SECONDS)]
        self._told |= {(each.type, each.name): 2 * (now - each.since) for each in due}
        for each in due[:_MOST_WAITS]:
            kind, seconds = each.type.rsplit(":", 1)[-1], now - each.since
            status = f": {each.status}" if each.status else ""
            self._note(f"waiting for {kind} {each.name}, {seconds:.0f} s so far ({each.op}){status}")
        if len(due) > _MOST_WAITS:
            self._note(f"and for {len(due) - _MOST_WAITS} more")


def _pulumi_up(session: Session, clusters: int, say: Say) -> None:
    say.now("opening its state")
    ready = finished = 0
    long_waits = LongWaits(say.note)

    def watch(under_way: Collection[Operation]) -> None:
        session.refused_pods(under_way)
        long_waits(under_way)

    with session.pulumi().up(watch) as run:
        try:
            for event in run:
                if event.type == STACK_TYPE or event.failed:
                    continue
                finished += event.done
                kind = event.type.rsplit(":", 1)[-1]
                if event.done and event.op == "create" and event.type == _CLUSTER_TYPE:
                    ready += 1
                    say.note(f"{event.name.rpartition('/')[2]} is ready")
                if event.op != "same":
                    counts = f"{ready} of {_planes(clusters)}, " if ready else ""
                    say.now(f"{counts}{console.count(finished, 'resource')}; {event.op} {kind} {event.name}")
        except BaseException:
            say.now("stopping")
            raise
    say(run.result.summary)
    for warning in run.result.warnings:
        console.warning(warning)


def _say_what_next(session: Session, fleet: FleetSpec, stays: bool) -> None:
    if stays:
        line("Left running", f"export KUBECONFIG={session.paths.kubeconfig}")
        line("Look at", f"kubectl --context {fleet.home} get workloads --all-namespaces")
        line("Change it", f"edit {session.stack_file}, then run the same command again")
        line("End it", f"kueue-fleet rehearse --stack {session.stack} --down")
    else:
        line("Next", f"kueue-fleet rehearse --stack {session.stack} --keep   leaves it running for kubectl")
        line("", f"kueue-fleet render {session.stack_file}   prints every object it applied")
