"""`simulate`: what Kueue would do with a set of jobs over time, without a cluster."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kueue_admission.cli import console, simulate_tables
from kueue_admission.cli.input_files import Output, OutputOption, well_formed
from kueue_fleet.cli import simulate_report
from kueue_fleet.cli.fleet_files import AsPublished, PricesFile, load_prices

if TYPE_CHECKING:
    # --help is there without the admission core.
    from kueue_admission.simulate.prepared import Prepared
    from kueue_admission.simulate.result import Result
    from kueue_admission.simulate.what_if import Change
    from kueue_fleet.cli.simulate_input import Options
    from kueue_fleet.gke.prices import Prices


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
            help="Jobs as kubectl takes them, submitted to the stack at second 0, or by `steps` of the workload file.",
        ),
    ] = None,
    objects: Annotated[
        Path | None,
        typer.Option(
            "--objects",
            help="A YAML or JSON file of Kubernetes objects, or a folder of such files: Kueue's objects, and jobs "
            "or Workloads.",
        ),
    ] = None,
    kueue_generator: Annotated[
        Path | None, typer.Option("--kueue-generator", help="A generator.yaml of Kueue's performance harness.")
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="Seed of all numbers that are drawn.")] = 0,
    until: Annotated[
        float | None, typer.Option("--until", help="Stop at this second.", show_default="when nothing more happens")
    ] = None,
    fair_sharing: Annotated[
        bool, typer.Option("--fair-sharing", help="Kueue's global fair sharing is on, whatever its Configuration says.")
    ] = False,
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
    as_published: AsPublished = False,
    prices: PricesFile = None,
    report: Annotated[
        Path | None,
        typer.Option("--html", metavar="FILE", help="Also write a report with plots, which opens without a network."),
    ] = None,
    output: OutputOption = Output.text,
) -> None:
    """Show when and where each job would be admitted, by Kueue's own rules on a virtual clock.

    A job arrives at its metadata.creationTimestamp, the earliest of the input being second 0, and runs as many seconds
    as its annotation `kueue-fleet.dev/run-seconds` says; without it, without end. Workloads of a live cluster are where
    their status says, from the last time in it on. An evicted workload starts over. Admission checks of raw objects
    stay Pending, since nothing answers them.

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
      kueue-fleet simulate --as-published \\
          examples/batch-platform/with-defects.yaml \\
          --jobs examples/batch-platform/jobs.yaml
      kubectl get -A -o yaml \\
          resourceflavors,cohorts,clusterqueues,localqueues,workloads,jobs \\
          | kueue-fleet simulate --objects -
      kueue-fleet simulate --objects dump/ --until 3600 --fair-sharing -o json
      kueue-fleet simulate --kueue-generator generator.yaml
    """
    of_stack = workload is not None or jobs is not None
    if [stack, objects, kueue_generator].count(None) != 2 or (stack is not None) != of_stack:
        raise console.mistyped(
            "what to simulate is missing, or given twice; "
            "give one of: STACK with --workload FILE or --jobs PATH, --objects PATH, --kueue-generator FILE"
        )
    if as_published and stack is None:
        raise console.mistyped("--as-published: is for fleets; give STACK, or leave it out")
    if fair_sharing and stack is not None:
        raise console.mistyped("--fair-sharing: a stack says so itself, in kueue.configuration")
    from kueue_admission.cli import simulate_budgets, simulate_ends
    from kueue_admission.simulate.distributions import MOST_SECONDS

    if until is not None and not 0 <= until <= MOST_SECONDS:
        raise console.mistyped(f"--until {until:g}: is not a number of seconds; write 0 to {MOST_SECONDS:,}")
    options, changes = _parse(
        delay,
        what_if,
        until,
        seed,
        fair_sharing=fair_sharing,
        prices=load_prices(prices),
        of_harness=bool(kueue_generator),
        as_published=as_published,
    )
    budgets = [simulate_budgets.parse_budget(text) for text in max_wait]
    if report is not None:
        simulate_report.check_report_file(report)
    with well_formed():
        prepared = _prepare(stack, workload, jobs, objects, kueue_generator, options, changes)
    simulate_budgets.check_queues(budgets, prepared[-1].queues)
    results = _run(prepared, until)
    if report is not None:
        source = next(path for path in (stack, objects, kueue_generator) if path is not None)
        sections = list(zip(["Before", "After"] if len(results) > 1 else [""], results, strict=True))
        files = ", ".join(str(path) for path in (workload, jobs) if path is not None)
        about = simulate_report.about_run(prepared[0].fleet, source, files, seed)
        about["What if"] = ", ".join(change.text for change in changes) if len(results) > 1 else ""
        simulate_report.write_report(report, f"Simulation of {source.name}", about, sections)
    if output is Output.json:
        console.json_document(_document(changes, results))
    elif len(results) == 1:
        simulate_tables.show(results[0])
    else:
        simulate_tables.show_difference(*results)
    simulate_ends.tell(results)
    simulate_budgets.enforce(budgets, results[-1], quiet=output is Output.json)


def _parse(
    delay: Sequence[str],
    what_if: Sequence[str],
    until: float | None,
    seed: int,
    *,
    fair_sharing: bool,
    prices: Prices,
    of_harness: bool,
    as_published: bool,
) -> tuple[Options, list[Change]]:
    """What the options mean. Raises CommandError with every mistake."""
    from kueue_admission.simulate.delays import Delays, parse_delays
    from kueue_admission.simulate.errors import SimulationError
    from kueue_admission.simulate.what_if import parse_change
    from kueue_fleet.cli.simulate_input import Options

    given = Delays()
    if of_harness:
        from kueue_admission.simulate.generator import HARNESS_DELAYS as given  # noqa: N811
    try:
        delays = parse_delays(list(delay), given)
        return Options(delays, until, seed, fair_sharing, prices, as_published), [
            parse_change(text) for text in what_if
        ]
    except SimulationError as mistyped:
        raise console.mistyped(mistyped.problems[0], mistyped.problems[1:]) from None


def _prepare(
    stack: Path | None,
    workload: Path | None,
    jobs: Path | None,
    objects: Path | None,
    kueue_generator: Path | None,
    options: Options,
    changes: Sequence[Change],
) -> list[Prepared]:
    """The simulation, and with changes the changed one too. Raises SimulationError before anything runs."""
    from kueue_fleet.cli import simulate_input

    if stack is not None:
        prepare = simulate_input.of_stack(stack, workload, jobs, options)
    elif kueue_generator is not None:
        prepare = simulate_input.of_generator(kueue_generator, options)
    else:
        assert objects is not None
        prepare = simulate_input.of_objects(objects, options)
    return [prepare([]), *([prepare(changes)] if changes else [])]


def _run(prepared: Sequence[Prepared], until: float | None) -> list[Result]:
    """The results, up to the one that the user interrupted."""
    from kueue_admission.cli.simulate_watch import watched

    results = []
    with watched(until) as watcher:
        for simulation in prepared:
            results.append(simulation.run(watcher))
            if watcher.interrupted:
                break
    return results


def _document(changes: Sequence[Change], results: Sequence[Result]) -> dict[str, Any]:
    from kueue_admission.simulate.what_if import comparison

    return results[0].as_json() if len(results) == 1 else comparison(changes, *results)
