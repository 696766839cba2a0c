"""`submit`: makes a job as its queue needs it, says what is to be said of it, submits it, and follows it to its end."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from kueue_admission.cli import console, options
from kueue_admission.cli.input_files import well_formed
from kueue_admission.kernel.form_rules import FaultError
from kueue_admission.kernel.manifest import inside
from kueue_admission.kernel.names import KUEUE_API, QUEUE_LABEL
from kueue_admission.kernel.yaml_text import dump_yaml
from kueue_admission.simulate.documents import Document
from kueue_fleet.cli.contexts import Kubeconfig, namespace_of
from kueue_fleet.cli.fleet_files import load_fleet

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from kueue_admission.read.printed_pods import PrintedPod
    from kueue_fleet.cli.live_jobs import Clusters, LiveJob
    from kueue_fleet.cli.when import JobFile
    from kueue_fleet.fleet_file import FleetSpec
    from kueue_fleet.jobs.new_job import JobRequest

POLL_SECONDS: Final = 2.0
"""How often a job is looked at that is followed."""
_POLLS: Final = 5
"""After so many without a Workload that is said: Kueue makes it in a moment."""
_FROM_OPTIONS: Final = "the options"
_OF_THE_JOB: Final = "image name template nodes gpus cpu memory priority run_limit tasks env mount command"
"""Parameters that describe the job, which a file does itself."""
_SHOWN: Final = 40
"""Characters of a wrong text that a message repeats."""


def submit(
    context: typer.Context,
    command: Annotated[
        list[str] | None,
        typer.Argument(metavar="[-- CMD]", help="Program and arguments, behind `--`; default: those of the image."),
    ] = None,
    fleet: Annotated[
        Path | None,
        typer.Option("--fleet", envvar="KUEUE_FLEET_FILE", help="A Pulumi.<env>.yaml, a bare fleet YAML or a program."),
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option("--file", "-f", help="Submit this job instead, as kubectl takes it; `-` reads stdin."),
    ] = None,
    queue: Annotated[
        str | None,
        typer.Option("--queue", "-q", help="LocalQueue: NAME, of the context's namespace first, or NAMESPACE/NAME."),
    ] = None,
    image: Annotated[str | None, typer.Option("--image", help="Container image.")] = None,
    name: Annotated[
        str | None, typer.Option("--name", help="Name of the job.", show_default="the program's, with the time")
    ] = None,
    template: Annotated[
        str | None,
        typer.Option("--template", metavar="[TEAM/]NAME", help="A team's template, for what is not given."),
    ] = None,
    nodes: Annotated[
        int | None,
        typer.Option("--nodes", "-N", min=1, help="Pods that run together and find each other.", show_default="1"),
    ] = None,
    gpus: Annotated[int | None, typer.Option("--gpus", "-g", min=0, help="GPUs of each pod.", show_default="0")] = None,
    cpu: Annotated[
        str | None, typer.Option("--cpu", help="CPUs of each pod.", show_default="what goes with its GPUs")
    ] = None,
    memory: Annotated[
        str | None,
        typer.Option("--memory", help="Memory of each pod, as 64Gi.", show_default="what goes with its GPUs"),
    ] = None,
    priority: Annotated[
        str | None,
        typer.Option("--priority", "-p", metavar="CLASS", help="WorkloadPriorityClass.", show_default="none"),
    ] = None,
    run_limit: Annotated[
        str | None,
        typer.Option(
            "--time", "-t", help="Longest run time, as 4h or 90m; DWS keeps machines as long.", show_default="none"
        ),
    ] = None,
    tasks: Annotated[
        int | None, typer.Option("--array", min=1, help="Run it so many times, JOB_COMPLETION_INDEX counts from 0.")
    ] = None,
    env: Annotated[
        list[str] | None,
        typer.Option("--env", "-e", metavar="NAME=VALUE", help="A variable of its environment; repeatable."),
    ] = None,
    mount: Annotated[
        list[str] | None,
        typer.Option("--mount", metavar="CLAIM:/PATH", help="A claim, or a bucket as gs://BUCKET:/PATH; repeatable."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the checked manifest and submit nothing.")] = False,
    estimate: Annotated[bool, typer.Option("--estimate/--no-estimate", help="Say first when it would start.")] = True,
    wait: Annotated[bool, typer.Option("--wait", "-w", help="Wait for its end, and exit with its code.")] = False,
    logs: Annotated[
        bool, typer.Option("--logs", "-l", help="Print its logs too; needs kubectl. Implies --wait.")
    ] = False,
    kubeconfig: Kubeconfig = None,
) -> None:
    """Make the Job or JobSet that a queue needs, check it as `check --jobs` does, and submit it.

    Several nodes become a JobSet, whose pods find the first at $MASTER_ADDR. CPUs and memory that are not given are
    what goes with the GPUs in the queue's quotas and machines. It is submitted where the fleet takes jobs, through the
    context of that cluster's name. Nothing is submitted if something is wrong.

    With --wait the exit code is that of the job: 0, or that of the first pod that failed, and 1 if that is not known.

    \b
    Examples:
      export KUEUE_FLEET_FILE=stacks/Pulumi.prod.yaml
      kueue-fleet submit -q gpu --gpus 8 --nodes 2 --time 4h \\
          --image pytorch/pytorch:2.9.1-cuda12.8-cudnn9-runtime \\
          -- sh -c 'torchrun --nnodes=$NNODES --nproc-per-node=8 \\
          --node-rank=$JOB_COMPLETION_INDEX --master-addr=$MASTER_ADDR t.py'
      kueue-fleet submit --fleet examples/jobs/fleet.yaml -q training \\
          --gpus 2 --image busybox --dry-run -- sleep 60
      kueue-fleet submit -f job.yaml --wait --logs
    """
    from kueue_fleet.cli.jobs import find_kubectl
    from kueue_fleet.cli.live_jobs import Clusters
    from kueue_fleet.cli.when import JobFile

    if dry_run:
        options.refuse_idle(context, "wait logs kubeconfig", "with --dry-run")
    if fleet is None:
        raise console.mistyped("--fleet: is missing; name the fleet file, or set KUEUE_FLEET_FILE")
    spec = load_fleet(fleet)
    origin: object = file or (f"template {template} with {_FROM_OPTIONS}" if template else _FROM_OPTIONS)
    if file is not None:
        options.refuse_idle(context, _OF_THE_JOB, f"beside the job in {file}, which says that itself")
        job_file = _from_file(file, queue, namespace_of(kubeconfig, spec))
    else:
        from kueue_fleet.jobs.new_job import job_for

        mounts = (_split("--mount", value, ":/", "CLAIM:/PATH") for value in mount or ())
        new_job = _job_request(
            spec,
            template,
            name=name or _usual_name(command or ([template.rpartition("/")[2]] if template else None)),
            queue=queue,
            image=image,
            command=tuple(command or ()),
            nodes=nodes,
            gpus=gpus,
            cpu=cpu,
            memory=memory,
            priority=priority,
            seconds=None if run_limit is None else _seconds(run_limit),
            tasks=tasks,
            env=dict(_split("--env", value, "=", "NAME=VALUE") for value in env or ()),
            mounts={path: source for source, path in mounts},
        )
        with well_formed(origin):
            job = Document("", job_for(spec, new_job, namespace_of(kubeconfig, spec)))
        job_file = JobFile(job, job)
    _check(spec, [job_file.written, *job_file.used], origin)
    if dry_run:
        console.text(dump_yaml(dict(job_file.written.data)) + "\n")
        return
    kubectl = find_kubectl("submit --logs") if logs else ""
    clusters = Clusters("submit", kubeconfig, spec)
    if estimate:
        _say_when(spec, clusters, job_file.job)
        _say_budget(spec, clusters, job_file.job)
    job_object = create_job(clusters, spec.home, job_file.written.data)
    label = f"{job_object['kind']} {job_object['metadata']['namespace']}/{job_object['metadata']['name']}"
    console.line(
        f"{label} is submitted to {spec.home}, LocalQueue {inside(job_object['metadata'], 'labels').get(QUEUE_LABEL)}"
    )
    if wait or logs:
        raise typer.Exit(_follow(clusters, spec.home, job_object, kubectl))


def _job_request(spec: FleetSpec, template: str | None, **given: Any) -> JobRequest:
    """The options, and a template for the rest. Raises CommandError."""
    from kueue_fleet.jobs.new_job import JobRequest, from_template

    if template is None:
        options = [f"--{option}" for option in ("queue", "image") if not given[option]]
        if options:
            raise console.mistyped(
                f"{' and '.join(options)}: missing; give {'them' if len(options) > 1 else 'it'}, or a job with -f FILE"
            )
        return JobRequest(**{name: value for name, value in given.items() if value is not None})
    with well_formed(_FROM_OPTIONS):
        return from_template(spec, template, **given)


def _usual_name(command: Sequence[str] | None) -> str:
    program = Path(
        next((word for word in command or () if word.endswith((".py", ".sh"))), (command or ["job"])[0])
    ).stem
    letters = "".join(
        character if character.isascii() and character.isalnum() else "-" for character in program.lower()
    ).strip("-")
    return f"{letters[:30].strip('-') or 'job'}-{datetime.now(UTC):%m%d-%H%M%S}"  # noqa: TID251 - the edge has the clock


def _seconds(text: str) -> int:
    from kueue_admission.kernel.duration import Duration

    try:
        seconds = int(Duration(text).seconds)
    except FaultError as wrong:
        raise console.mistyped(f"--time {text}: {wrong}") from None
    if seconds < 1:
        raise console.mistyped(f"--time {text}: is less than a second; write 1s or more")
    return seconds


def _split(option: str, text: str, at: str, form: str) -> tuple[str, str]:
    """Both parts; a separator's slash belongs to the second."""
    first, separator, second = text.rpartition(at) if at == ":/" else text.partition(at)
    if not separator or not first:
        raise console.mistyped(f"{option} {text[:_SHOWN]!r}: has another form; write {form}")
    return first, f"{at[1:]}{second}"


def _from_file(file: Path, queue: str | None, usual: str) -> JobFile:
    """The only job in FILE, in the queue if its manifest names none, in the usual namespace if neither does.

    Raises CommandError for a group of pods. Says what else of the file is not submitted.
    """
    from kueue_admission.kernel.job_rules import JOB
    from kueue_admission.read.manifests import is_job, label_of
    from kueue_fleet.cli.when import read_job

    with well_formed(file):
        job_file = read_job(file)
    if any(is_job(other.data) for other in job_file.used):
        raise console.CommandError(f"{file}: holds a group of pods; submit them with kubectl create -f {file}")
    for where, data in (*job_file.used, *job_file.beside):
        console.warning(JOB.at(label_of(data), "is not submitted", "create it yourself", "warning").behind(where).coded)
    space, _, name = (queue or "").rpartition("/")

    def placed(job: Document) -> Document:
        metadata = inside(job.data, "metadata")
        labels = {"labels": {QUEUE_LABEL: name, **inside(metadata, "labels")}} if queue is not None else {}
        namespace = {"namespace": space or usual} if space or usual else {}
        return Document(job.where, {**job.data, "metadata": {**namespace, **metadata, **labels}})

    return job_file._replace(job=placed(job_file.job), written=placed(job_file.written))


def _check(fleet: FleetSpec, documents: Sequence[Document], source: object) -> None:
    from kueue_fleet.fleet_simulation.job_findings import check_manifests

    with well_formed(source):
        problems = check_manifests(fleet, documents)
    for warning in problems.warnings:
        console.warning(warning.coded)
    if problems.problems:
        raise console.wrong_input(source, [problem.coded for problem in problems.problems])


def _say_when(fleet: FleetSpec, clusters: Clusters, job: Document) -> None:
    """What `when` says, as far as its user may know."""
    from kueue_admission.kernel.names import KUEUE_API
    from kueue_admission.simulate.errors import SimulationError
    from kueue_fleet.cli.when import print_forecast
    from kueue_fleet.fleet_simulation.forecast import forecast
    from kueue_fleet.jobs.workload_file import WorkloadFile
    from kueue_fleet.kube.answers import ApiError

    now = time.time()
    try:
        workloads = clusters.listed(fleet.home, f"/apis/{KUEUE_API}/workloads")
        estimate = forecast(fleet, WorkloadFile(), workloads, job, None, range(20), now)
    except (ApiError, SimulationError) as failed:
        first = str(failed.problems[0] if isinstance(failed, SimulationError) else failed)
        if isinstance(failed, ApiError) and failed.status == 403:
            # Members of teams have no such right, and their own Workloads alone would tell too early a start.
            metadata = inside(job.data, "metadata")
            name = f"{metadata.get('namespace') or 'default'}/{metadata.get('name')}"
            first = (
                "that takes the right to list Workloads of all namespaces, which members of teams do not have; "
                f"kueue-fleet describe {name} says why it waits"
            )
        console.paragraph(f"When it starts is not known: {first}")
    else:
        print_forecast(fleet, job.data["metadata"]["name"], estimate, now)


def _say_budget(fleet: FleetSpec, clusters: Clusters, job: Document) -> None:
    """How far the budget of the team is used, as far as the Workloads that are still there tell."""
    from kueue_fleet.gke.prices import list_prices
    from kueue_fleet.kube.answers import ApiError
    from kueue_fleet.status import ClusterObjects, budgets, held_by_teams

    space = inside(job.data, "metadata").get("namespace") or "default"
    team = fleet.team_in(space)
    if team is None or team.budget is None:
        return
    now = datetime.now(UTC)  # noqa: TID251 - the edge has the clock
    try:
        workloads = [
            workload
            for namespace in team.namespace_names
            for workload in clusters.listed(fleet.home, f"/apis/{KUEUE_API}/namespaces/{namespace}/workloads")
        ]
    except ApiError as failed:
        console.paragraph(f"How far the budget is used is not known: {failed}")
        return
    team_use = held_by_teams(fleet, {fleet.home: ClusterObjects("", {"workloads": workloads})}, now)
    for budget in budgets(fleet, team_use, list_prices(), now):
        if budget.team == team.name:
            console.paragraph(f"Budget of {budget}")


def create_job(clusters: Clusters, home: str, job: Any) -> dict[str, Any]:
    """Submit a job. Raises CommandError."""
    from kueue_fleet.cli.live_jobs import collection_of
    from kueue_fleet.kube.answers import ApiError

    metadata = inside(job, "metadata")
    space = metadata.get("namespace") or "default"
    path = collection_of(job["apiVersion"], job["kind"], space)
    try:
        return {"kind": job["kind"], **clusters.create(home, path, dict(job))}
    except ApiError as failed:
        fix = {409: "give it another name", 403: "ask for the rights of a member of the team (docs/teams.md)"}
        raise console.CommandError(
            f"{home}: {job['kind']} {space}/{metadata.get('name')} is not submitted: {failed}; "
            f"{fix.get(failed.status, 'see what is wrong, then submit it again')}"
        ) from None


def _follow(clusters: Clusters, home: str, job_object: dict[str, Any], kubectl: str) -> int:
    """Say each change of its state until it has ended; its exit code. With `kubectl`, print its logs too."""
    from kueue_admission.read.printed import PrintedWorkload
    from kueue_fleet.cli.jobs import follow_logs
    from kueue_fleet.cli.live_jobs import LiveJob
    from kueue_fleet.kube.answers import ApiError
    from kueue_fleet.status.job import JobName, jobs_called

    metadata = job_object["metadata"]
    job_name = JobName(metadata["name"], job_object["kind"], metadata["namespace"])
    path = f"/apis/{KUEUE_API}/namespaces/{job_name.namespace}/workloads"
    last_line, begun, polls = "", False, 0
    codes: dict[str, int] = {}
    while True:
        try:
            jobs = jobs_called(job_name, [PrintedWorkload.of(manifest) for manifest in clusters.listed(home, path)])
            job = LiveJob(clusters, home, jobs[0]) if jobs else None
            pods = job.pods() if job else []
        except ApiError as failed:
            last_line = _say(last_line, f"not known: {failed}; trying again")
            time.sleep(POLL_SECONDS)
            continue
        if job is None and begun:
            raise console.CommandError(f"{home}: {job_name.kind} {job_name.namespace}/{job_name.name} was deleted")
        codes |= dict(_exit_codes(pods))
        if job is None:
            polls += 1
            last_line = _say(last_line, "Kueue has not made its Workload yet") if polls > _POLLS else last_line
        else:
            begun = True
            last_line = _say(last_line, _in_words(job))
            if job.workload.is_true("Finished"):
                well = job.workload.reason("Finished") == "Succeeded"
                return 0 if well else next((code for code in codes.values() if code > 0), 1)
            if kubectl and pods and not any(pod.phase == "Pending" for pod in pods):
                follow_logs(kubectl, job, pods)
                kubectl = ""
        time.sleep(POLL_SECONDS)


def _in_words(job: LiveJob) -> str:
    status = job.status()
    where = f" on {status.cluster}" if status.cluster else ""
    why = next((f", {reason}: {text}" for reason, text in status.reasons.values()), "") if status.waits else ""
    return f"{status.state}{where}{why}"


def _say(text: str, now: str) -> str:
    if now != text:
        console.paragraph(f"{datetime.now(UTC):%H:%M:%S} {now}")  # noqa: TID251 - the edge has the clock
    return now


def _exit_codes(pods: Sequence[PrintedPod]) -> Iterator[tuple[str, int]]:
    """Of each pod; -1: it has not ended."""
    for pod in pods:
        end_states = [
            container_status.child("state").child("terminated")
            for container_status in pod.status.children("containerStatuses")
        ]
        yield pod.name, max((container.integer("exitCode", -1) for container in end_states), default=-1)
