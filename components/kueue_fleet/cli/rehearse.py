"""`rehearse`: a stack brought up by a real `pulumi up` on real control planes here, shown while it happens."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.live import Live
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from kueue_fleet.cli import console
from kueue_fleet.cli.fleet_files import load_fleet

if TYPE_CHECKING:
    # The rehearsal brings a Kubernetes client and a web server along; the other commands start without them.
    from kueue_fleet.rehearsal.job_views import JobView
    from kueue_fleet.rehearsal.session import Session
    from kueue_fleet.spec import FleetSpec

DEFAULT_STACK = "dws-multikueue"
JOBS_TIMEOUT_SECONDS = 180.0


def register(app: typer.Typer) -> None:
    """Add the commands of this module to APP."""
    app.command()(rehearse)


def rehearse(
    stack: Annotated[
        str, typer.Option("--stack", "-s", help="The stack: Pulumi.<stack>.yaml of the project.")
    ] = DEFAULT_STACK,
    project: Annotated[
        Path, typer.Option("--project", help="The folder with Pulumi.yaml.", show_default="this folder")
    ] = Path(),
    jobs: Annotated[
        Path | None,
        typer.Option(
            "--jobs", help="A YAML file of Jobs and JobSets to submit.", show_default="examples/<stack>/jobs.yaml"
        ),
    ] = None,
    keep: Annotated[
        bool, typer.Option("--keep", help="Leave the clusters running, with a kubeconfig for kubectl.")
    ] = False,
    down: Annotated[bool, typer.Option("--down", help="End the stack's rehearsal and remove all of it.")] = False,
) -> None:
    """Bring a stack up on real control planes on this machine, submit jobs, and show what happens to them.

    The spec is checked first. etcd, kube-apiserver, Kueue and the Pulumi CLI are real (found, or built once into the
    cache); Google Cloud, the nodes and their GPUs are simulated. With --keep, run it again after changing the stack
    file: it updates the running clusters in place.

    Examples:

        kueue-fleet rehearse

        kueue-fleet rehearse --stack dws-multikueue --keep

        kueue-fleet rehearse --stack dws-multikueue --down
    """
    from kueue_fleet.rehearsal.paths import RehearsalError
    from kueue_fleet.rehearsal.session import Session

    try:
        if down:
            _take_down(stack)
            return
        began = time.monotonic()
        session = Session.for_stack(stack, project.resolve())
        fleet = load_fleet(session.stack_file)
        jobs_file = jobs or session.project_dir / "examples" / stack / "jobs.yaml"
        documents = session.read_jobs(jobs_file) if jobs or jobs_file.is_file() else []
        with session.exclusive(), session.running(keep=keep):
            _bring_up(session, fleet)
            views = _run_jobs(session, fleet, documents, began) if documents else []
            _close(session, fleet, views, keep, time.monotonic() - began)
    except RehearsalError as failure:
        raise console.CommandError(str(failure)) from failure


def _take_down(stack: str) -> None:
    from kueue_fleet.rehearsal.session import take_down

    if take_down(stack):
        console.out.print(f"The rehearsal of {stack} is gone: its processes, its clusters and its state.")
    else:
        console.out.print(f"There is no rehearsal of {stack}; nothing to do.")


def _bring_up(session: Session, fleet: FleetSpec) -> None:
    with _step("Engines") as say:
        say(session.prepare_engines(lambda text: say(text, final=False)))
    for part in session.stand_ins():
        _line("Stand-in", f"{part.executable} for {part.replaces}")
    with _step("pulumi up") as say:
        _pulumi_up(session, say)
    session.write_kubeconfig(fleet)


def _pulumi_up(session: Session, say: Say) -> None:
    run = session.pulumi().up()
    begun: set[str] = set()
    finished = 0
    try:
        for event in run:
            if not event.done:
                begun.add(event.name)
            elif event.type != "pulumi:pulumi:Stack":
                finished += 1
                if event.op != "same":
                    say(f"{finished} resources; {event.op} {event.type.rsplit(':', 1)[-1]} {event.name}", final=False)
    except BaseException:
        run.interrupt()
        raise
    changes = run.result.changes
    words = ", ".join(f"{number} {op}" for op, number in sorted(changes.items())) or "nothing to do"
    say("nothing changed" if run.result.unchanged and changes else words)


def _run_jobs(
    session: Session, fleet: FleetSpec, documents: Sequence[dict[str, object]], began: float
) -> list[JobView]:
    team_of = {namespace: team.name for team in fleet.teams for namespace in team.namespace_names}
    _line("Jobs", f"{len(documents)} submitted to {session.home(fleet)}")
    views: list[JobView] = []
    with _job_display(team_of) as show:
        for views in session.run_jobs(fleet, documents, JOBS_TIMEOUT_SECONDS):
            if session.first_admission_seconds is None and any(view.cluster for view in views):
                session.first_admission_seconds = time.monotonic() - began
            show(views)
    console.out.print(_jobs_table(views, team_of))
    return views


def _jobs_table(views: Sequence[JobView], team_of: dict[str, str]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("job", "team", "cluster", "flavor", "waited", "state"):
        table.add_column(heading, justify="right" if heading == "waited" else "left", no_wrap=heading != "flavor")
    for view in views:
        table.add_row(
            view.name,
            team_of.get(view.namespace, view.namespace),
            view.cluster or "-",
            ", ".join(view.flavors) or "-",
            f"{view.waited_seconds:.0f} s",
            str(view.state),
        )
    return table


def _close(session: Session, fleet: FleetSpec, views: Sequence[JobView], keep: bool, seconds: float) -> None:
    for view in views:
        for reason in view.reasons:
            console.out.print(f"{view.name} waits: {reason}", markup=False, soft_wrap=True)
    usage = session.usage()
    if session.first_admission_seconds is not None:
        _line("First job", f"admitted {session.first_admission_seconds:.0f} s after the command")
    _line("Memory", f"{usage.control_planes_mib} MiB in {len(fleet.clusters)} control planes and their Kueue")
    _line("Whole run", f"{seconds:.0f} s")
    if keep:
        _line("Left running", f"export KUBECONFIG={session.paths.kubeconfig}")
        _line("Look at", f"kubectl --context {session.home(fleet)} get workloads --all-namespaces")
        _line("Change it", f"edit {session.stack_file}, then run the same command again")
        _line("End it", f"kueue-fleet rehearse --stack {session.stack} --down")
    else:
        _line("Next", f"kueue-fleet rehearse --stack {session.stack} --keep   leaves it running for kubectl")
        _line("", f"kueue-fleet render {session.stack_file}   prints every object it applied")


class Say:
    """Says how a step goes: on a terminal in place, elsewhere only its end."""

    def __init__(self, update: Callable[[str], None]) -> None:
        self._update = update
        self.end = ""

    def __call__(self, text: str, *, final: bool = True) -> None:
        """Show TEXT now; with `final`, as what remains of the step."""
        if final:
            self.end = text
        self._update(text)


@contextmanager
def _step(label: str) -> Iterator[Say]:
    began = time.monotonic()
    columns = (
        SpinnerColumn(),
        TextColumn("{task.fields[label]:<12}"),
        TextColumn("{task.description}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=console.out, transient=True, disable=not console.out.is_terminal) as progress:
        task = progress.add_task("", label=label, total=None)
        say = Say(lambda text: progress.update(task, description=text))
        yield say
    _line(label, f"{say.end} ({time.monotonic() - began:.0f} s)")


def _line(label: str, text: str) -> None:
    console.out.print(f"{label:<13} {text}", markup=False, soft_wrap=True)


@contextmanager
def _job_display(team_of: dict[str, str]) -> Iterator[Callable[[Sequence[JobView]], None]]:
    """A table that changes in place on a terminal; elsewhere one line for each step of each job."""
    if console.out.is_terminal:
        with Live(console=console.out, refresh_per_second=4, transient=True) as live:
            yield lambda views: live.update(_jobs_table(views, team_of))
        return
    shown: dict[str, str] = {}

    def print_changes(views: Sequence[JobView]) -> None:
        for view in views:
            line = f"{view.state} {view.cluster}".strip()
            if shown.get(view.name) != line:
                shown[view.name] = line
                _line("", f"{view.waited_seconds:4.0f} s  {view.name}  {line}")

    yield print_changes
