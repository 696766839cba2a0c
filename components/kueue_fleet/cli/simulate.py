"""`simulate`: what Kueue would do with a set of jobs over time, without a cluster."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kueue_fleet.cli import console, simulate_budgets, simulate_report, simulate_tables
from kueue_fleet.cli.fleet_files import load_fleet
from kueue_fleet.cli.input_files import Output, read_objects, read_text
from kueue_fleet.spec import SpecError, parse_fleet
from kueue_fleet.spec.parse import fleet_data
from kueue_fleet.spec.yamltext import load_yaml

if TYPE_CHECKING:
    # The other commands start without the admission core.
    from kueue_fleet.simulation.delays import Delays
    from kueue_fleet.simulation.result import Result
    from kueue_fleet.simulation.what_if import Change

    Run = Callable[[Sequence[Change]], Result]

JOB_FIELDS = ("jobs", "waits", "reclaims", "outages", "steps", "begin")
"""What --what-if changes in the workload file; everything else is the stack's."""


def register(app: typer.Typer) -> None:
    """Add the commands of this module to APP."""
    app.command()(simulate)


def simulate(
    stack: Annotated[
        Path | None,
        typer.Argument(metavar="STACK", help="A Pulumi.<env>.yaml or a bare fleet YAML: manager and workers."),
    ] = None,
    workload: Annotated[
        Path | None, typer.Option("--workload", "-w", help="The jobs that are submitted to the stack.")
    ] = None,
    jobs: Annotated[
        Path | None,
        typer.Option(
            "--jobs",
            help="Jobs and JobSets as kubectl takes them, submitted to the stack at second 0, or by `steps` of the "
            "workload file.",
        ),
    ] = None,
    objects: Annotated[
        Path | None,
        typer.Option(
            "--objects",
            help="A YAML or JSON file of Kubernetes objects, or a folder of such files: Kueue's objects, and Jobs, "
            "JobSets or Workloads.",
        ),
    ] = None,
    kueue_generator: Annotated[
        Path | None,
        typer.Option("--kueue-generator", help="A generator.yaml of Kueue's performance harness."),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="Of all numbers that are drawn.")] = 0,
    until: Annotated[
        float | None,
        typer.Option("--until", help="Stop at this second.", show_default="when nothing more happens"),
    ] = None,
    fair_sharing: Annotated[bool, typer.Option("--fair-sharing", help="Kueue's global fair sharing is on.")] = False,
    delay: Annotated[
        list[str],
        typer.Option(
            "--delay",
            metavar="NAME=SECONDS",
            help="How long something takes that Kueue does not decide: decision, burst, cycle, write, start, release, "
            "workers, stop (docs/simulate.md). A number, exponential(mean) or uniform(least, most).",
            show_default="0; for a generator those of Kueue's harness",
        ),
    ] = (),  # type: ignore[assignment]
    what_if: Annotated[
        list[str],
        typer.Option(
            "--what-if",
            metavar="PATH=VALUE",
            help="Run again with this changed, and show the difference. Paths are as in error messages: "
            "`clusterQueues[dws].stopPolicy`, `jobs[train].count`, or for objects `ClusterQueue[dws].spec.stopPolicy`.",
            show_default=False,
        ),
    ] = (),  # type: ignore[assignment]
    max_wait: Annotated[
        list[str],
        typer.Option(
            "--max-wait",
            metavar="QUEUE=SECONDS",
            help="End with exit code 3 when more than 5 % of the jobs of this ClusterQueue wait longer, from arrival "
            "to first admission; with --what-if, after the change.",
            show_default=False,
        ),
    ] = (),  # type: ignore[assignment]
    report: Annotated[
        Path | None,
        typer.Option("--html", metavar="FILE", help="Also write a report with plots, which opens without a network."),
    ] = None,
    output: Annotated[
        Output, typer.Option("--output", "-o", help="`json` prints one document, schemaVersion 1.")
    ] = Output.text,
) -> None:
    """Show when and where each job would be admitted, by Kueue's own rules on a virtual clock.

    A workload arrives at its metadata.creationTimestamp, the earliest of the input being second 0, and runs as many
    seconds as its annotation `kueue-fleet.dev/run-seconds` says; without it, for ever. An evicted one starts over.
    Admission checks of raw objects stay Pending: nothing here answers them.

    With a stack, the manager and all workers are simulated together: jobs come from the workload file (see
    examples/*/workload.yaml), checks become Ready after the waits it declares, and what MultiKueue dispatches
    runs on the first worker that admits it. The same seed gives the same result.

    \b
    Examples:
      kueue-fleet simulate stacks/Pulumi.dws-multikueue.yaml \\
          -w examples/dws-multikueue/workload.yaml --seed 7
      kueue-fleet simulate fleet.yaml -w jobs.yaml --html report.html
      kueue-fleet simulate fleet.yaml -w jobs.yaml \\
          --what-if 'clusterQueues[dws].preemption.withinClusterQueue=Never'
      kueue-fleet simulate fleet.yaml -w day.yaml --max-wait gpu=1800
      kueue-fleet simulate fleet.yaml --jobs jobs/
      kubectl get -A -o yaml \\
          resourceflavors,cohorts,clusterqueues,localqueues,jobs \\
          | kueue-fleet simulate --objects -
      kueue-fleet simulate --objects dump/ --until 3600 --fair-sharing -o json
      kueue-fleet simulate --kueue-generator generator.yaml
    """
    from kueue_fleet.simulation.delays import Delays, parse_delays
    from kueue_fleet.simulation.errors import SimulationError
    from kueue_fleet.simulation.generator import HARNESS_DELAYS
    from kueue_fleet.simulation.what_if import comparison, parse_change

    of_stack = workload is not None or jobs is not None
    if [stack, objects, kueue_generator].count(None) != 2 or (stack is not None) != of_stack:
        raise console.CommandError(
            "give one of: STACK with --workload FILE or --jobs PATH, --objects PATH, --kueue-generator FILE",
            exit_code=2,
        )
    if until is not None and not 0 <= until < math.inf:
        raise console.CommandError(f"--until {until:g}: is no number of seconds; write 0 or more", exit_code=2)
    if fair_sharing and stack is not None:
        raise console.CommandError("--fair-sharing: a stack says so itself, in kueue.configuration", exit_code=2)
    try:
        delays = parse_delays(delay, Delays() if kueue_generator is None else HARNESS_DELAYS)
        changes = [parse_change(text) for text in what_if]
        budgets = simulate_budgets.parse(max_wait)
        if stack is not None:
            run = _of_stack(stack, workload, jobs, delays, until, seed)
        elif kueue_generator is not None:
            run = _of_generator(kueue_generator, delays, until, seed, fair_sharing=fair_sharing)
        else:
            assert objects is not None
            run = _of_objects(objects, delays, until, seed, fair_sharing=fair_sharing)
        if report is not None:
            simulate_report.check_report_file(report)
        result = run([])
        changed = run(changes) if changes else None
    except SimulationError as refused:
        raise console.wrong_input("the input", refused.problems) from None
    if report is not None:
        source = next(str(path) for path in (stack, objects, kueue_generator) if path is not None)
        results = [("", result)] if changed is None else [("Before", result), ("After", changed)]
        subtitle = f"Seed {seed}. " + ", ".join(change.text for change in changes)
        simulate_report.write_report(report, f"Simulation of {Path(source).name}", subtitle, results)
    if output is Output.json:
        document = result.as_json() if changed is None else comparison(changes, result, changed)
        console.json_document(document)
    elif changed is None:
        simulate_tables.show(result)
    else:
        simulate_tables.show_difference(result, changed)
    simulate_budgets.enforce(budgets, result if changed is None else changed, quiet=output is Output.json)


def _of_stack(
    stack: Path, workload: Path | None, manifests: Path | None, delays: Delays, until: float | None, seed: int
) -> Run:
    from kueue_fleet.simulation.errors import SimulationError
    from kueue_fleet.simulation.fleet import simulate_fleet
    from kueue_fleet.simulation.job_problems import Sources
    from kueue_fleet.simulation.models import as_model, read_data
    from kueue_fleet.simulation.what_if import apply_changes
    from kueue_fleet.simulation.workload_file import WorkloadFile

    fleet = load_fleet(stack)
    source = str(workload or "")
    text = read_text(stack)
    jobs = {} if workload is None else read_data(read_text(workload, "a workload file"), source)
    if isinstance(jobs, dict) and {"config", "clusters"} & set(jobs):
        raise SimulationError(
            [f"{source}: is a fleet, not a workload file; --workload takes the jobs, STACK the fleet"]
        )
    sources = Sources(str(stack), source)
    given = [] if manifests is None else read_objects(manifests)

    def run(changes: Sequence[Change]) -> Result:
        of_jobs = [change for change in changes if change.root in JOB_FIELDS]
        of_fleet = [change for change in changes if change not in of_jobs]
        file = as_model(apply_changes(jobs, of_jobs), source, WorkloadFile)
        if not of_fleet:
            return simulate_fleet(fleet, file, delays, until=until, seed=seed, manifests=given, sources=sources)
        data = fleet_data(load_yaml(text, str(stack)), str(stack))
        try:
            other = parse_fleet(apply_changes(data, of_fleet))
        except SpecError as refused:
            raise SimulationError(f"{stack} with --what-if: {problem}" for problem in refused.problems) from None
        return simulate_fleet(other, file, delays, until=until, seed=seed, manifests=given)

    return run


def _of_generator(path: Path, delays: Delays, until: float | None, seed: int, *, fair_sharing: bool) -> Run:
    from kueue_fleet.simulation.generator import generate, simulate_generated
    from kueue_fleet.simulation.models import read_data
    from kueue_fleet.simulation.what_if import apply_changes

    data = read_data(read_text(path, "a generator.yaml of Kueue's performance harness"), str(path))

    def run(changes: Sequence[Change]) -> Result:
        generated = generate(apply_changes(data, changes), str(path), fair_sharing=fair_sharing)
        return simulate_generated(generated, delays, until=until, seed=seed)

    return run


def _of_objects(path: Path, delays: Delays, until: float | None, seed: int, *, fair_sharing: bool) -> Run:
    from kueue_fleet.admission.model import DEFAULT_STRATEGIES, Configuration
    from kueue_fleet.simulation.objects_run import simulate_objects
    from kueue_fleet.simulation.raw import read_raw
    from kueue_fleet.simulation.what_if import apply_to_documents

    configuration = Configuration(fair_sharing=DEFAULT_STRATEGIES if fair_sharing else None)
    documents = read_objects(path)

    def run(changes: Sequence[Change]) -> Result:
        raw = read_raw(apply_to_documents(documents, changes), configuration)
        return simulate_objects(raw, delays, until=until, seed=seed)

    return run
