"""`describe`, `logs`, `exec` and `cancel`: one job of a live fleet, by the name that it was submitted with."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from kueue_admission.cli import console
from kueue_admission.cli.input_files import Output, OutputOption
from kueue_fleet.cli.contexts import Kubeconfig

if TYPE_CHECKING:
    from rich.console import RenderableType

    from kueue_admission.read.printed_pods import PrintedPod
    from kueue_fleet.cli.live_jobs import LiveJob
    from kueue_fleet.status.job import JobStatus

JobArgument = Annotated[str, typer.Argument(metavar="JOB", help="NAME, NAMESPACE/NAME or kind/NAME of the job.")]
"""A job by the name that it was submitted with."""
Context = Annotated[
    str | None,
    typer.Option(
        "--context",
        help="Context of the cluster that it was submitted to: the manager.",
        show_default="the kubeconfig's current context",
    ),
]
"""The option with that cluster."""
Namespace = Annotated[
    str | None,
    typer.Option("--namespace", "-n", help="Namespace of the job.", show_default="the context's, or default"),
]
"""The option with its namespace."""
_Pod = Annotated[
    str | None, typer.Option("--pod", help="Name of a pod, or its number in `describe`.", show_default=False)
]
_Container = Annotated[
    str | None, typer.Option("--container", "-c", help="Container of the pod.", show_default="as kubectl chooses")
]


def describe(
    job: JobArgument,
    context: Context = None,
    namespace: Namespace = None,
    kubeconfig: Kubeconfig = None,
    fair_sharing: Annotated[bool, typer.Option("--fair-sharing", help="Kueue's global fair sharing is on.")] = False,
    output: OutputOption = Output.text,
) -> None:
    """Show one job: its state, the cluster that runs it and its pods there; while it waits, why.

    It uses the rights of the kubeconfig's user. Users who may list queues and nodes get what `explain` says; others
    get Kueue's own message. What the fleet's controller says of the job is repeated. A worker's context has the
    worker's name. Exits 1 if something could not be read.

    \b
    Examples:
      kueue-fleet describe train-1 --context manager-europe-west4 -n vision
      kueue-fleet describe vision/train-1 --kubeconfig kubeconfig
      kueue-fleet describe jobset/train-1 -o json | jq .cluster
    """
    from kueue_fleet.cli.live_jobs import find_job

    live_job = find_job("describe", job, context, namespace, kubeconfig)
    status = live_job.status()
    explained, refusal = [], ""
    if status.waits:
        from kueue_fleet.kube.answers import ApiError

        try:
            explained = live_job.explanations(fair_sharing=fair_sharing)
        except (ApiError, console.CommandError) as failed:
            refusal = str(failed)
    if output is Output.json:
        from kueue_admission.explain import render_json

        explanations = render_json(explained)["explanations"] if explained else []
        console.json_document(
            {
                **status.as_json(),
                "explanations": explanations,
                "notExplained": refusal or None,
                "problems": live_job.problems,
            }
        )
    else:
        now = datetime.now(UTC)  # noqa: TID251 - the edge has the clock
        console.show(*_described(status, now, with_reasons=not explained))
        if refusal:
            console.line()
            console.paragraph(f"Not explained further: {refusal}")
        if explained:
            from kueue_admission.explain import render_clusters

            console.text("\n" + render_clusters(explained))
        for problem in live_job.problems:
            console.warning(f"{problem}; what is there is not shown")
    if live_job.problems:
        raise typer.Exit(1)


def _described(status: JobStatus, now: datetime, *, with_reasons: bool) -> list[RenderableType]:
    from kueue_admission.cli.tables import Column, Table
    from kueue_admission.read.fields import seconds_of
    from kueue_fleet.cli.status_parts import span

    style = "yellow" if status.waits else "green"
    where = f" on {status.cluster}" if status.cluster else ""
    parts: list[RenderableType] = [
        console.rich_text([f"{_named(status)}: ", console.Styled(status.state, style), where]),
        console.rich_text([f"  submitted to {status.home}, LocalQueue {status.queue}"]),
    ]
    with suppress(ValueError):  # A time of another form than the API server's is not known.
        seconds = max(0.0, now.timestamp() - seconds_of(status.since))
        word = "waits" if status.state == "Pending" else f"{status.state} for"
        parts.append(console.rich_text([f"  {word} {span(seconds)}, since {status.since}"]))
    if status.nominated:
        parts.append(console.rich_text([f"  may go to {', '.join(status.nominated)}"]))
    parts += [console.rich_text([f"  {line}"]) for line in status.says.splitlines()]
    if with_reasons:
        kueue = "Kueue: " if status.says else ""
        for cluster, (reason, message) in status.reasons.items():
            at = f" on {cluster}" if status.waits else ""
            parts.append(console.rich_text([f"  {kueue}{reason}{at}: {message}"]))
    if status.pods:
        table = Table(
            Column("#", right=True),
            Column("pod"),
            Column("state"),
            Column("ready", leave_out=2),
            Column("restarts", right=True, leave_out=1),
            Column("node", leave_out=3),
        )
        for number, pod in enumerate(status.pods):
            ready = "yes" if pod.ready else "no"
            table.add(str(number), pod.name, pod.phase, ready, str(pod.restarts), pod.node or "-")
        parts += ["", table]
    events = {status.name: status.event} | {pod.name: pod.event for pod in status.pods}
    parts += [console.rich_text([f"  {name}: {event}"]) for name, event in events.items() if event]
    return parts


def _named(status: JobStatus) -> str:
    return f"{status.kind or 'Workload'} {status.namespace}/{status.name}"


def logs(
    job: JobArgument,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Continue printing until the job ends.")] = False,
    pod: _Pod = None,
    container: _Container = None,
    tail: Annotated[int | None, typer.Option("--tail", min=0, help="Lines of each pod.", show_default="all")] = None,
    context: Context = None,
    namespace: Namespace = None,
    kubeconfig: Kubeconfig = None,
) -> None:
    """Print the logs of a job's pods, from the cluster that runs it, by `kubectl logs`.

    Lines of several pods begin with the name of their pod. When a job ends, MultiKueue deletes its pods on the worker:
    then its logs are only in Cloud Logging.

    \b
    Examples:
      kueue-fleet logs vision/train-1 -f
      kueue-fleet logs train-1 -n vision --pod 0 --tail 100
      kueue-fleet logs jobset/train-1 --context manager-europe-west4
    """
    kubectl = find_kubectl("logs")
    live_job, pods = _pods("logs", job, context, namespace, kubeconfig, pod)
    options = [
        *(["--follow"] if follow else []),
        *([f"--tail={tail}"] if tail is not None else []),
        *([f"--container={container}"] if container else []),
    ]
    calls = [[*_target(kubectl, live_job), "logs", *options, pod.name] for pod in pods]
    if len(calls) == 1:
        _become(calls[0])
    raise typer.Exit(_printed([[*call, "--prefix"] for call in calls], side_by_side=follow))


def follow_logs(kubectl: str, live_job: LiveJob, pods: Sequence[PrintedPod]) -> None:
    """Print the logs of these pods until each has ended."""
    prefix = ["--prefix"] if len(pods) > 1 else []
    _printed([[*_target(kubectl, live_job), "logs", "--follow", *prefix, pod.name] for pod in pods], side_by_side=True)


def _printed(calls: Sequence[list[str]], *, side_by_side: bool) -> int:
    """The largest exit code. Those that are followed go on side by side; each gets Ctrl-C as this command does."""
    running = []
    codes = []
    for call in calls:
        running.append(subprocess.Popen(call))
        if not side_by_side:
            codes.append(running[-1].wait())
    return max(codes or [process.wait() for process in running])


def exec_(
    job: JobArgument,
    command: Annotated[list[str], typer.Argument(metavar="CMD", help="The command and its arguments, behind `--`.")],
    pod: _Pod = None,
    container: _Container = None,
    stdin: Annotated[
        bool, typer.Option("--stdin", "-i", help="Pass stdin on; on a terminal that is always so.")
    ] = False,
    context: Context = None,
    namespace: Namespace = None,
    kubeconfig: Kubeconfig = None,
) -> None:
    """Run a command in a pod of a job, on the cluster that runs it, by `kubectl exec`.

    Of several pods it takes the first, or the one that --pod names. Members of teams may not exec, unless they are
    granted that right on the workers.

    \b
    Examples:
      kueue-fleet exec vision/train-1 -- nvidia-smi
      kueue-fleet exec train-1 -n vision --pod 3 -- bash
    """
    kubectl = find_kubectl("exec")
    live_job, pods = _pods("exec", job, context, namespace, kubeconfig, pod)
    name = pods[0].name
    if len(pods) > 1:
        console.warning(f"{name} is one of {len(pods)} pods; --pod chooses another")
    terminal = console.on_a_terminal()
    options = [
        *(["--stdin"] if stdin or terminal else []),
        *(["--tty"] if terminal else []),
        *([f"--container={container}"] if container else []),
    ]
    _become([*_target(kubectl, live_job), "exec", *options, name, "--", *command])


def cancel(
    job: JobArgument,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    context: Context = None,
    namespace: Namespace = None,
    kubeconfig: Kubeconfig = None,
) -> None:
    """Delete a job on the cluster that it was submitted to; MultiKueue deletes what it has on workers.

    Asks first. A copy on a worker is refused, since the manager would make another one.

    \b
    Examples:
      kueue-fleet cancel vision/train-1
      kueue-fleet cancel jobset/train-1 -n vision --yes
    """
    from kueue_fleet.cli.live_jobs import find_job
    from kueue_fleet.kube.answers import ApiError
    from kueue_fleet.status.job import job_status

    live_job = find_job("cancel", job, context, namespace, kubeconfig)
    if live_job.is_copy:
        raise console.CommandError(
            f"{live_job.home}: {job} is a copy that MultiKueue made; give --context with the manager"
        )
    status = job_status(live_job.home, live_job.workload, {})
    where = f", on {status.cluster}" if status.cluster else ""
    job_name = _named(status)
    if not yes:
        try:
            sure = typer.confirm(f"Delete {job_name} ({status.state}{where}) on {live_job.home}?")
        except typer.Abort:
            console.line()  # The question is there without an end.
            raise console.mistyped("cancel: asks first, and there is no answer; give --yes") from None
        if not sure:
            console.line("nothing is deleted")
            raise typer.Exit(1)
    try:
        live_job.delete()
    except ApiError as failed:
        fix = "ask for the rights of a member of the team" if failed.status == 403 else "look with describe"
        raise console.CommandError(f"{live_job.home}: {job_name} is not deleted: {failed}; {fix}") from None
    console.line(f"{job_name} is deleted on {live_job.home}")


def find_kubectl(command: str) -> str:
    """The program. Raises CommandError if there is none on PATH."""
    program = shutil.which("kubectl")
    if program is None:
        raise console.CommandError(
            f"{command}: needs kubectl, which is not on PATH; install it (https://kubernetes.io/docs/tasks/tools), or "
            "see with `describe` which pods there are"
        )
    return program


def _target(kubectl: str, live_job: LiveJob) -> list[str]:
    kubeconfig = live_job.clusters.kubeconfig
    return [
        kubectl,
        *([f"--kubeconfig={kubeconfig}"] if kubeconfig else []),
        f"--context={live_job.where}",
        f"--namespace={live_job.namespace}",
    ]


def _pods(
    command: str, job: str, context: str | None, namespace: str | None, kubeconfig: Path | None, pod_name: str | None
) -> tuple[LiveJob, list[PrintedPod]]:
    """The job and its pods, or the one that is wanted. Raises CommandError if there are none."""
    from kueue_fleet.cli.live_jobs import find_job
    from kueue_fleet.kube.answers import ApiError
    from kueue_fleet.status.job import job_status

    live_job = find_job(command, job, context, namespace, kubeconfig)
    status = job_status(live_job.home, live_job.workload, {})
    job_name = _named(status)
    if status.waits:
        (cluster, (reason, message)) = next(iter(status.reasons.items()))
        raise console.CommandError(
            f"{job_name} has no pods yet: it waits, {reason} on {cluster}: {message}; kueue-fleet describe says more"
        )
    try:
        pods = live_job.pods()
    except ApiError as failed:
        raise console.CommandError(
            f"{live_job.where}: the pods of {job_name} cannot be read: {failed}; check that you may read them there"
        ) from None
    if not pods and status.state == "Finished":
        raise console.CommandError(
            f"{job_name} has finished, and its pods on {live_job.where} are deleted; look for its logs in Cloud Logging"
        )
    if not pods:
        raise console.CommandError(f"{job_name} has no pods on {live_job.where} yet; try again, or look with describe")
    return live_job, pods if pod_name is None else [_choose_pod(pods, pod_name)]


def _choose_pod(pods: Sequence[PrintedPod], pod_name: str) -> PrintedPod:
    names = [pod.name for pod in pods]
    if pod_name in names:
        return pods[names.index(pod_name)]
    if pod_name.isascii() and pod_name.isdigit() and len(pod_name) < 6 and int(pod_name) < len(pods):
        return pods[int(pod_name)]
    raise console.mistyped(
        f"--pod {pod_name}: there is no such pod; use 0 to {len(pods) - 1}, or a name such as {names[0]}"
    )


def _become(call: list[str]) -> NoReturn:
    """Go on as another program, with its output, signals and exit code."""
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        os.execv(call[0], call)  # noqa: S606 - the rest is kubectl's
    except OSError as failed:
        raise console.CommandError(f"{call[0]}: cannot be run: {failed.strerror}; install kubectl again") from None
