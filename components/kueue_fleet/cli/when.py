"""`when`: the place of a job in its queue, and when it would start, from many simulations of what the fleet has now."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple

import typer

from kueue_admission.cli import console, options
from kueue_admission.cli.input_files import Output, OutputOption, read_objects, well_formed
from kueue_admission.kernel.known_messages import with_code
from kueue_admission.kernel.manifest import inside, is_object
from kueue_admission.read.printed import PrintedWorkload, WorkloadState
from kueue_admission.read.readable import notes_of_problems
from kueue_fleet.cli.contexts import Kubeconfig
from kueue_fleet.cli.live_jobs import Clusters, parse_job
from kueue_fleet.cli.spec_commands import FleetFile
from kueue_fleet.status.job import JobName, jobs_called, owner_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kueue_admission.kernel.problem import Problem
    from kueue_admission.simulate.distributions import Distribution
    from kueue_admission.simulate.documents import Document
    from kueue_fleet.fleet_file import FleetSpec
    from kueue_fleet.fleet_simulation.forecast import Forecast

SCHEMA_VERSION: Final = 1
"""Of the JSON document; larger where a reader of the former would misread it."""
_SHARES: Final = {"p10": 0.1, "median": 0.5, "p90": 0.9}


def when(
    context: typer.Context,
    file: FleetFile,
    job: Annotated[
        str | None, typer.Option("--job", help="NAME, NAMESPACE/NAME or kind/NAME of a job that waits.")
    ] = None,
    manifest: Annotated[
        Path | None,
        typer.Option("--file", "-f", help="A job that is not submitted yet, as kubectl takes it; `-` reads stdin."),
    ] = None,
    objects: Annotated[
        Path | None,
        typer.Option(
            "--objects",
            help="A dump of the manager's Workloads: a YAML or JSON file, a folder of such files, or `-`.",
            show_default="the live cluster",
        ),
    ] = None,
    workload: Annotated[
        Path | None, typer.Option("--workload", "-w", help="A workload file: run times of jobs, and waits for DWS.")
    ] = None,
    run_time: Annotated[
        str | None,
        typer.Option(
            "--run-time",
            metavar="SECONDS",
            help="Run time of jobs without any other: a number, exponential(mean) or uniform(least, most).",
            show_default=False,
        ),
    ] = None,
    seeds: Annotated[int, typer.Option("--seeds", min=1, max=1000, help="Number of simulations.")] = 20,
    at: Annotated[
        datetime | None, typer.Option("--at", help="When the objects were printed, in UTC.", show_default="now")
    ] = None,
    kubeconfig: Kubeconfig = None,
    output: OutputOption = Output.text,
) -> None:
    """Estimate when a job starts: its place in the queue, and the middle and the 10th and 90th percentile of its start.

    It simulates the fleet of FILE from its present state, once for each seed. The run time of a job is that of its
    annotation `kueue-fleet.dev/run-seconds`, else of the workload file, else of finished jobs of its LocalQueue, else
    --run-time. The live state needs the right to list all Workloads on the manager, and a context of its name.

    \b
    Examples:
      kueue-fleet when stacks/Pulumi.prod.yaml --job vision/train-1
      kueue-fleet when . --job vision/train-1
      kueue-fleet when stacks/Pulumi.prod.yaml -f job.yaml \\
          --run-time 'exponential(3600)' -w waits.yaml
      kueue-fleet when fleet.yaml --job train-1 --objects dump/ -o json
    """
    if (job is None) == (manifest is None):
        raise console.mistyped(
            "the job is missing, or given twice; give one of: --job NAME that waits, -f FILE that is not submitted"
        )
    if objects is not None:
        options.refuse_idle(context, "kubeconfig", "with --objects")
    from kueue_fleet.cli.fleet_files import load_fleet
    from kueue_fleet.cli.simulate_input import read_workload
    from kueue_fleet.fleet_simulation.forecast import forecast
    from kueue_fleet.jobs.problems import warn_of_others
    from kueue_fleet.jobs.workload_file import WorkloadFile

    usual, name = _distribution(run_time), parse_job(job, None) if job is not None else None
    fleet = load_fleet(file)
    now = time.time() if at is None else at.replace(tzinfo=UTC).timestamp()
    with well_formed():
        times = WorkloadFile()
        if workload is not None:
            times, _ = read_workload(workload)
        job_file = read_job(manifest) if manifest is not None else None
        for warning in warn_of_others(job_file.beside if job_file is not None else ()):
            console.warning(warning.coded)
        source, workloads = _dumped(objects) if objects is not None else _live(fleet, kubeconfig)
        target = job_file.job if job_file is not None else _waiting(name, source, workloads) if name is not None else ""
        names = {
            workload.key: f"{workload.namespace}/{owner_of(workload)[1]}"
            for workload in map(PrintedWorkload.of, workloads)
        }
        estimate = forecast(fleet, times, workloads, target, usual, range(seeds), now)
    if output is Output.json:
        console.json_document(
            _as_json(names.get(estimate.workload, estimate.workload), estimate, _never(fleet, estimate))
        )
    else:
        print_forecast(fleet, names.get(estimate.workload, estimate.workload), estimate, now)


def _distribution(text: str | None) -> Distribution | None:
    from kueue_admission.kernel.form_rules import FaultError
    from kueue_admission.simulate.distributions import read_distribution

    try:
        return None if text is None else read_distribution(text)
    except FaultError as wrong:
        raise console.mistyped(f"--run-time {text!r}: {wrong}") from None


class JobFile(NamedTuple):
    """A file with one job."""

    job: Document
    """With a name, and what belongs to it: its runtime, or the other pods of its group."""
    written: Document
    """As it is written."""
    used: Sequence[Document] = ()
    """What else is read, as it is written."""
    beside: Sequence[Document] = ()
    """What is not."""


def read_job(file: Path) -> JobFile:
    """The only job in a file. Raises CommandError for more or none, SimulationError for one without a name."""
    from kueue_admission.simulate.raw import name_documents
    from kueue_fleet.jobs.check.compute_domains import claims_apart
    from kueue_fleet.jobs.problems import jobs_apart

    documents = read_objects(file)
    jobs, beside = jobs_apart(claims_apart(name_documents(documents))[0])
    if len(jobs) != 1:
        raise console.CommandError(f"{file}: holds {console.count(len(jobs), 'object')}; give one job")
    places = {id(document.where) for document in beside}
    written = next(document for document in documents if document.where is jobs[0].where)
    used = [each for each in documents if each is not written and id(each.where) not in places]
    return JobFile(jobs[0], written, used, beside)


def _dumped(objects: Path) -> tuple[str, list[dict[str, Any]]]:
    """What messages call the dump, and its Workloads; one that is not well-formed is left out."""
    from kueue_admission.kernel.form_rules import OBJECT
    from kueue_admission.simulate.raw import name_documents

    left_out: list[Problem] = []
    documents = read_objects(objects, may_be_empty=True, left_out=left_out)
    workloads = name_documents((each for each in documents if each.data["kind"] == "Workload"), left_out)
    well_formed_workloads = []
    for workload in workloads:
        owners = inside(workload.data, "metadata").get("ownerReferences") or []
        if isinstance(owners, list) and all(is_object(owner) and "name" in owner for owner in owners):
            well_formed_workloads.append(dict(workload.data))
        else:
            problem = OBJECT.at("metadata.ownerReferences", "is not a list of owners", "print the Workload again")
            left_out.append(problem.behind(workload.where))
    for note in notes_of_problems(left_out):
        console.warning(note)
    return console.source_name(objects), well_formed_workloads


def _live(fleet: FleetSpec, kubeconfig: Path | None) -> tuple[str, list[dict[str, Any]]]:
    from kueue_admission.kernel.names import KUEUE_API

    home = fleet.home
    return home, Clusters("when", kubeconfig, fleet).read(home, f"/apis/{KUEUE_API}/workloads", "its Workloads")


def _waiting(job_name: JobName, source: str, workloads: Sequence[dict[str, Any]]) -> str:
    """`namespace/name` of the Workload of a job that waits. Raises CommandError if there is none."""
    from kueue_admission.kernel.suggest import instead

    there = [
        workload for workload in map(PrintedWorkload.of, workloads) if job_name.namespace in ("", workload.namespace)
    ]
    jobs = jobs_called(job_name, there)
    if not jobs:
        known_owners = [owner_of(workload)[1] for workload in there]
        fix = (
            instead(job_name.name, known_owners, "jobs") if known_owners else "give -f FILE if it is not submitted yet"
        )
        raise console.CommandError(f"{source}: there is no job {job_name.name}; {fix}")
    names = {(workload.namespace, *owner_of(workload)) for workload in jobs}
    if len(names) > 1:
        choices = ", ".join(sorted(f"{space}/{name} ({kind})" for space, kind, name in names))
        raise console.mistyped(f"--job {job_name.name}: may be {choices}; name one")
    for state in ("Finished", "Admitted"):
        if jobs[0].is_true(state):
            raise console.CommandError(f"--job {job_name.name}: is {state}; kueue-fleet describe says where")
    if not jobs[0].is_active:
        raise console.CommandError(
            f"--job {job_name.name}: is deactivated and never starts; set active in its Workload"
        )
    return jobs[0].key


def _never(fleet: FleetSpec, estimate: Forecast) -> str:
    """Why it cannot start, whatever other jobs do; empty where it may."""
    from kueue_admission.decide.model import Snapshot
    from kueue_admission.decide.reasons import LASTING
    from kueue_admission.explain import fits_no_worker
    from kueue_fleet.jobs.check.nodes import no_nodes_for
    from kueue_fleet.jobs.most_on_workers import more_than_workers_have

    queue = fleet.queue(estimate.cluster_queue)
    for pod_set in estimate.job.pod_sets if queue is not None else ():
        if queue is not None and pod_set.count and (fault := no_nodes_for(fleet, queue, pod_set)):
            return f"pod set {pod_set.name} {fault.wrong}; {fault.fix}"
    workers = [Snapshot(manifest, ()) for name, manifest in estimate.objects.items() if name != fleet.home]
    if estimate.not_started < len(estimate.starts):
        return ""
    if estimate.reason == WorkloadState.ADMITTED:
        return estimate.message
    if estimate.reason in LASTING:
        return _why(fleet, estimate)
    if fits_no_worker(estimate.job, workers):
        numbers = more_than_workers_have(fleet, estimate.cluster_queue, estimate.job.requests)
        return f"no worker cluster can ever hold it: {numbers or 'it asks for more than its queue can have on one'}"
    return ""


def _why(fleet: FleetSpec, estimate: Forecast) -> str:
    """Kueue's reason, and why in our words where quota is missing for good: the manager's flavors are nobody's."""
    from kueue_admission.decide.reasons import LASTING
    from kueue_fleet.dispatch import Fit, WorkerQuota

    alone = WorkerQuota(estimate.objects[fleet.home]).explain(estimate.job, estimate.job.created)
    if not isinstance(alone, Fit) and alone.reason == estimate.reason and estimate.reason in LASTING:
        return f"{estimate.reason}: {alone.headline}"
    return f"{estimate.reason}: {estimate.message}" if estimate.message else estimate.reason


def _as_json(job: str, estimate: Forecast, never: str) -> dict[str, Any]:
    return {
        "schemaVersion": SCHEMA_VERSION,
        "job": job,
        "workload": estimate.workload,
        "clusterQueue": estimate.cluster_queue,
        "place": estimate.place,
        "pending": estimate.pending,
        "seconds": {name: estimate.quantile(share) for name, share in _SHARES.items()},
        "simulations": len(estimate.starts),
        "notStarted": estimate.not_started,
        "neverStarts": never or None,
        "notKnown": estimate.not_known or None,
        "reason": estimate.reason,
        "message": estimate.message,
        "restsOn": list(estimate.rests_on),
    }


def print_forecast(fleet: FleetSpec, job: str, estimate: Forecast, now: float) -> None:
    """Print when the job starts, and what that rests on."""
    from kueue_fleet.cli.status_parts import span

    never = _never(fleet, estimate)
    where = (
        f"number {estimate.place} of {estimate.pending} pending"
        if estimate.place
        else "has quota, and waits for its checks"
    )
    console.line(f"{job}: {where} in ClusterQueue {estimate.cluster_queue}")
    low, middle, high = (estimate.quantile(_SHARES[name]) for name in ("p10", "median", "p90"))
    count = console.count(len(estimate.starts), "simulation")
    if never:
        console.paragraph(
            with_code(
                f"Never starts as the fleet and the job are now: {never}",
                f"{estimate.reason}: {estimate.message}",
            )
        )
    elif estimate.not_known:
        console.paragraph(f"Whether it starts is not known: {estimate.not_known}")
    elif middle is None:
        why = _why(fleet, estimate)
        text = f"Does not start within 30 days in {estimate.not_started} of {count}: {why}"
        console.paragraph(with_code(text, f"{estimate.reason}: {estimate.message}"))
    else:
        clock = datetime.fromtimestamp(now + middle, UTC).strftime("%Y-%m-%d %H:%M UTC")
        latest = span(high) if high is not None else "never"
        console.line(f"Starts in {span(middle)}, at {clock}")
        console.line(f"10th to 90th percentile of {count}: {span(low or 0.0)} to {latest}")
        if estimate.not_started:
            console.line(f"Does not start within 30 days in {estimate.not_started} of them")
    console.line("Rests on:")
    for rest in estimate.rests_on:
        console.paragraph(f"- {rest}")
