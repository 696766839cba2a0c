"""`rehearse`: a stack brought up by a real `pulumi up` on real control planes here, shown while it happens."""

from __future__ import annotations

import errno
import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kueue_admission.cli import console
from kueue_admission.cli.interrupts import Interrupted, interruptible
from kueue_admission.cli.simulate_report import check_report_file
from kueue_fleet.cli.bring_up import rehearse_stack
from kueue_fleet.cli.fleet_files import AsPublished
from kueue_fleet.cli.progress import spinner
from kueue_fleet.cli.rehearsed_jobs import find_jobs

if TYPE_CHECKING:
    # The rehearsal brings a Kubernetes client and a web server along; the other commands start without them.
    from kueue_rehearsal.session import Session

_STACK_FILE = re.compile(r"(?:.*/)?Pulumi\.(.+)\.yaml")
DEFAULT_STACK = "dws-multikueue"
"""The stack that is rehearsed where none is named."""


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
            rehearse_stack(session, found, keep, report, max_run_seconds)
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
