"""`rehearse`: a stack brought up by a real `pulumi up` on real control planes here, shown while it happens."""

from __future__ import annotations

import errno
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from kueue_admission.cli import console
from kueue_admission.cli.application import Command
from kueue_admission.cli.input_files import Output, OutputOption
from kueue_admission.cli.interrupts import Interrupted, interruptible
from kueue_admission.cli.simulate_report import check_report_file
from kueue_fleet.cli.bring_up import rehearse_stack
from kueue_fleet.cli.fleet_files import AsPublished
from kueue_fleet.cli.given_fleets import as_program_error
from kueue_fleet.cli.progress import spinner
from kueue_fleet.cli.rehearsed_drill import Drill, rehearse_drill
from kueue_fleet.cli.rehearsed_jobs import find_jobs

if TYPE_CHECKING:
    # The rehearsal brings a Kubernetes client and a web server along; the other commands start without them.
    from kueue_rehearsal.session import Session

_STACK_FILE = re.compile(r"(?:.*/)?Pulumi\.(.+)\.yaml")
DEFAULT_STACK = "dws-multikueue"
"""The stack that is rehearsed where none is named."""


app = typer.Typer(
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    help="""Bring a stack up on real control planes on this machine, with a real `pulumi up`, and run jobs on it.

    etcd, kube-apiserver, Kueue and the Pulumi CLI are real (found, or built once into the cache); Google Cloud, the
    nodes and their GPUs are simulated. The stack file says, under kueue-fleet:rehearsal, how much capacity DWS has, how
    long nodes take and how often Spot nodes are taken back; see docs/rehearse.md.

    \b
    Examples:
      kueue-fleet rehearse run --stack dws-multikueue
      kueue-fleet rehearse up examples/plain-cluster/fleet.yaml
    """,
)
"""The subcommands."""

_File = Annotated[
    str | None,
    typer.Argument(
        metavar="STACK|FILE",
        help="The stack, or its file Pulumi.<stack>.yaml: the same as --stack. Or the folder of a program with one "
        "stack. Or a file of a fleet alone, which the project's program takes in the place of a stack.",
    ),
]
_Stack = Annotated[
    str | None,
    typer.Option("--stack", "-s", help="The stack: Pulumi.<stack>.yaml of the project.", show_default=DEFAULT_STACK),
]
ProjectFolder = Annotated[
    Path | None,
    typer.Option("--project", help="The folder with Pulumi.yaml.", show_default="that of FILE, or this folder"),
]
"""The option of commands that run a Pulumi program."""
_Jobs = Annotated[
    Path | None,
    typer.Option(
        "--jobs",
        help="Jobs of any kind that the fleet has an operator for, with the ConfigMaps, Secrets, Services and "
        "TrainingRuntimes that they use.",
        show_default="examples/<stack>/jobs.yaml, which is submitted once to a kept rehearsal",
    ),
]
_MaxRunSeconds = Annotated[
    int | None,
    typer.Option(
        "--max-run-seconds",
        min=1,
        help="End the pods of these jobs after so many seconds, if they would run longer.",
        show_default="what kueue-fleet.dev/run-seconds says",
    ),
]
_NoJobs = Annotated[bool, typer.Option("--no-jobs", help="Submit no jobs, and wait for none.")]
_Html = Annotated[
    Path | None,
    typer.Option("--html", metavar="FILE", help="Write a report of the jobs, which opens without a network."),
]


@app.command(cls=Command)
def run(
    file: _File = None,
    stack: _Stack = None,
    project: ProjectFolder = None,
    jobs: _Jobs = None,
    max_run_seconds: _MaxRunSeconds = None,
    no_jobs: _NoJobs = False,
    report: _Html = None,
    as_published: AsPublished = False,
) -> None:
    """Bring the stack up, run its jobs, and take it down.

    The spec is checked first. Jobs are submitted all or none, and followed until they have ended or provably cannot
    run, for 300 s at most. What `up` left running is updated, and stays.

    Exits 1 if the stack or the machine prevents it. It then removes what it started, and its logs stay.
    Ctrl-C removes it too. A rehearsal that was kept earlier continues in both cases.

    \b
    Examples:
      kueue-fleet rehearse run
      kueue-fleet rehearse run .
      kueue-fleet rehearse run stacks/Pulumi.batch-platform.yaml \\
          --html report.html
      kueue-fleet rehearse run examples/kinds-of-jobs/fleet.yaml \\
          --jobs examples/kinds-of-jobs/rayjob.yaml
      kueue-fleet rehearse run --as-published \\
          examples/batch-platform/with-defects.yaml \\
          --jobs examples/batch-platform/jobs.yaml
    """
    _rehearse(_named(file, stack), project, _JobOptions(jobs, max_run_seconds, no_jobs, report), as_published)


@app.command(cls=Command)
def up(
    file: _File = None,
    stack: _Stack = None,
    project: ProjectFolder = None,
    jobs: _Jobs = None,
    max_run_seconds: _MaxRunSeconds = None,
    no_jobs: _NoJobs = False,
    report: _Html = None,
    as_published: AsPublished = False,
) -> None:
    """Bring the stack up, run its jobs, and leave it running.

    It says where the kubeconfig for kubectl is. Run it again after changing the stack file: it updates the running
    clusters in place. They get the jobs of the default file once; later runs follow what has not ended, and --jobs
    submits more. For the rest it is as `run`.

    \b
    Examples:
      kueue-fleet rehearse up --stack dws-multikueue
      kueue-fleet rehearse up --stack dws-multikueue \\
          --jobs examples/dws-multikueue/jobs.yaml
    """
    options = _JobOptions(jobs, max_run_seconds, no_jobs, report)
    _rehearse(_named(file, stack), project, options, as_published, keep=True)


@app.command(cls=Command)
def down(file: _File = None, stack: _Stack = None) -> None:
    """Take down what `up` left running, and remove all of it.

    \b
    Examples:
      kueue-fleet rehearse down --stack dws-multikueue
    """
    stack_name, _ = parse_stack(_named(file, stack))
    with plain_failures("run it again to remove the rest"):
        _take_down(stack_name)


@app.command(cls=Command)
def reclaim_spot(
    nodes: Annotated[
        str, typer.Argument(metavar="CLUSTER[/POOL][=COUNT]", help="Whose Spot nodes, and how many; by default 1.")
    ],
    file: _File = None,
    stack: _Stack = None,
) -> None:
    """Reclaim Spot nodes of what `up` left running.

    \b
    Examples:
      kueue-fleet rehearse reclaim-spot batch-dev/l4-spot=2 \\
          --stack batch-platform
    """
    stack_name, _ = parse_stack(_named(file, stack))
    with plain_failures():
        _reclaim(stack_name, nodes)


@app.command(cls=Command, short_help="Cause a fault while jobs run, and report what came of it.")
def drill(
    file: _File = None,
    fault: Annotated[
        str,
        typer.Option(
            "--fault",
            metavar="FAULT",
            help="What breaks: one of the faults above.",
            show_default=False,
        ),
    ] = "",
    stack: _Stack = None,
    project: ProjectFolder = None,
    jobs: _Jobs = None,
    max_run_seconds: _MaxRunSeconds = None,
    lasts: Annotated[
        int | None,
        typer.Option(
            "--lasts", min=1, max=3600, metavar="SECONDS", help="How long the fault lasts.", show_default="60"
        ),
    ] = None,
    worker: Annotated[
        str | None,
        typer.Option("--worker", help="The worker that is lost.", show_default="that on which most of the jobs run"),
    ] = None,
    output: OutputOption = Output.text,
) -> None:
    """Cause a fault on real control planes while the fleet's jobs run, and report what waited, moved and ran again.

    The stack is brought up as by `run`, or what `up` left running is used. Its jobs run once. Those that end are
    submitted again, one every 5 s, until the fault is repaired, and followed for 300 s at most; for up to 320 s more
    after a lost worker, which Kueue tries again no sooner. If the rehearsal stays, these jobs are deleted.

    Exits 3 if a goal of the fleet is missed, and 1 if a job did not finish, or the fleet did not recover in time.

    \b
    Faults:
      worker-lost      a worker's API server does not answer
      manager-lost     the manager's API server does not answer
      stock-out        DWS has nothing left
      spot-reclaim     every Spot node is taken back
      etcd-restored    every cluster goes back to a backup
      kueue-restarted  Kueue is killed on every cluster
      controller-gone  no replica of the fleet's controller runs

    \b
    Examples:
      kueue-fleet rehearse drill --fault kueue-restarted
      kueue-fleet rehearse drill stacks/Pulumi.dws-multikueue.yaml \\
          --fault worker-lost --lasts 90
      kueue-fleet rehearse drill fleet.yaml --fault stock-out \\
          --jobs jobs.yaml --output json
    """
    if not fault:
        raise console.mistyped("drill: needs a fault; give --fault FAULT, one of those that --help lists")
    with plain_failures() as opened:
        session = _open(_named(file, stack), project)
        opened.append(session)
        drill_plan = Drill(fault, lasts, worker, jobs, max_run_seconds, output is Output.json)
        rehearse_drill(session, drill_plan)


class _JobOptions(NamedTuple):
    """What was typed about jobs."""

    file: Path | None
    max_run_seconds: int | None
    none: bool
    report: Path | None

    def check(self) -> None:
        """Raise CommandError where they contradict each other, or no report can be written."""
        if self.file is not None and self.none:
            raise console.mistyped(f"--jobs {self.file} and --no-jobs: contradict each other; leave one of them out")
        if self.max_run_seconds is not None and self.none:
            raise console.mistyped("--max-run-seconds and --no-jobs: no job runs; leave one of them out")
        if self.report is not None:
            if self.none:
                raise console.mistyped("--html and --no-jobs: a report needs jobs; leave one of them out")
            check_report_file(self.report)


def _named(file: str | None, stack: str | None) -> str:
    """What names the stack."""
    if file is not None and stack is not None:
        raise console.mistyped(f"{file} and --stack {stack}: both name the stack; leave one of them out")
    return next(name_or_file for name_or_file in (file, stack, DEFAULT_STACK) if name_or_file is not None)


def _rehearse(
    stack_name: str, project: Path | None, jobs: _JobOptions, as_published: bool, *, keep: bool = False
) -> None:
    jobs.check()
    with plain_failures() as opened:
        session = _open(stack_name, project)
        opened.append(session)
        session.as_published = as_published
        jobs_there = find_jobs(session, jobs.file, none=jobs.none)
        if jobs.report is not None and jobs_there.none is not None and not jobs_there.followed:
            raise console.CommandError(f"--html {jobs.report}: a report needs jobs, and {jobs_there.none}")
        rehearse_stack(session, jobs_there, keep, jobs.report, jobs.max_run_seconds)


def _open(stack_name: str, project: Path | None) -> Session:
    """The session of the stack that is named."""
    from kueue_rehearsal.session import Session

    stack, file = parse_stack(stack_name)
    session = Session.for_stack(stack, project_folder(project, file))
    if file is not None and _STACK_FILE.fullmatch(str(file)) is None:
        session.fleet_file = file
    if file is not None and not (session.stack_file.is_file() and session.stack_file.samefile(file)):
        raise console.CommandError(
            f"{file}: is not the file of stack {stack}, which is {session.stack_file}; give that one"
        )
    return session


@contextmanager
def plain_failures(untouched_text: str = "nothing was started") -> Iterator[list[Session]]:
    """What ends the block early becomes one plain message: with what is left of the session that is put into the list,
    else `untouched_text` after a signal.

    Raises CommandError in the place of RehearsalError, OSError and an interruption.
    """
    from kueue_rehearsal.paths import RehearsalError

    sessions: list[Session] = []
    try:
        with interruptible():
            yield sessions
    except Interrupted as interrupted:
        raise console.CommandError(
            f"interrupted; {' '.join(_aftermath(sessions)) or untouched_text}", interrupted.exit_code
        ) from None
    except RehearsalError as failure:
        message, *more = str(failure).split("\n")  # Programs that failed have more to say.
        raise console.CommandError(message, problems=[*more, *_aftermath(sessions)]) from failure
    except OSError as failure:
        raise console.CommandError(_explain(failure), problems=_aftermath(sessions)) from failure


def _aftermath(sessions: list[Session]) -> list[str]:
    return [session.aftermath for session in sessions if session.aftermath]


def parse_stack(text: str) -> tuple[str, Path | None]:
    """The stack that is named, by its name or by a file; and the file, if it was that and has a folder.

    A file that is not a stack's own has a fleet alone, whose rehearsal is named after it. A folder with a program is
    that of its only stack.
    """
    if (of_file := _STACK_FILE.fullmatch(text)) is not None:
        return of_file[1], Path(text) if "/" in text or Path(text).is_file() else None
    if text.endswith((".yaml", ".yml", ".json")):
        return Path(text).stem, Path(text)
    folder = Path(text)
    if ("/" in text or text in (".", "..")) and folder.is_dir():
        return _only_stack(folder, text)
    return text, None


def _only_stack(folder: Path, text: str) -> tuple[str, Path]:
    """The stack of the program in FOLDER, and its file."""
    from kueue_fleet.program.project import Project, ProjectError

    try:
        project = Project.read(folder)
    except ProjectError as wrong:
        raise as_program_error(wrong) from None
    stacks = project.stacks
    if len(stacks) != 1:
        fix = "give the file of one" if stacks else "make one with `pulumi stack init`"
        raise console.CommandError(f"{text}: has {console.count(len(stacks), 'stack')}; {fix}")
    return stacks[0], project.stack_file(stacks[0]).absolute()


def project_folder(project: Path | None, stack_file: Path | None) -> Path:
    """The folder with Pulumi.yaml: the one given, else the nearest above the stack's file, else this one.

    Raises CommandError: there is no such file, or none above it.
    """
    if stack_file is not None and not stack_file.is_file():
        raise console.CommandError(f"{stack_file}: no such file; give one, or the name of a stack of this project")
    if project is not None or stack_file is None:
        return (project or Path()).resolve()
    for folder in stack_file.resolve().parents:
        if (folder / "Pulumi.yaml").is_file():
            return folder
    raise console.CommandError(
        f"{stack_file}: there is no Pulumi.yaml beside or above it; name its folder with --project"
    )


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
        removals = take_down(stack)
    if removals:
        console.line(f"The rehearsal of {stack} was removed: its processes, clusters and state.")
        return
    others = ", ".join(rehearsals())
    hint = f"there is one of {others}" if others else "nothing to do"
    console.line(f"There is no rehearsal of {stack}; {hint}.")


def _reclaim(stack: str, node_name: str) -> None:
    from kueue_rehearsal.session import Session

    place, _, number = node_name.partition("=")
    cluster, _, pool = place.partition("/")
    if not cluster or (number and not re.fullmatch("0*[1-9][0-9]{0,4}", number)):
        raise console.mistyped(f"{node_name}: names no Spot nodes; write CLUSTER, CLUSTER/POOL or CLUSTER/POOL=COUNT")
    session = Session.for_stack(stack, Path())
    if not session.kept:
        raise console.CommandError(
            f"{node_name}: no rehearsal of {stack} is running; run kueue-fleet rehearse up --stack {stack}"
        )
    names = session.client.reclaim_spot(cluster, int(number or 1), pool or None)
    if not names:
        console.line(f"There is no Spot node in {place}; nothing was reclaimed.")
    for name in names:
        console.line(f"{cluster}: {name} was reclaimed.")
