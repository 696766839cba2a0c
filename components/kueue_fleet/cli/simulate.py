"""`simulate`: what Kueue would do with a set of jobs over time, without a cluster."""

from __future__ import annotations

import inspect
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from kueue_admission.cli import console, options
from kueue_admission.cli import simulate as of_one_cluster
from kueue_admission.cli.application import Command
from kueue_admission.cli.input_files import Output, OutputOption
from kueue_fleet.cli.fleet_files import AsPublished, PricesFile, load_prices

app = typer.Typer(
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    no_args_is_help=True,
    help=of_one_cluster.ABOUT.replace("when each job", "when and where each job")
    + """

\b
Examples:
  kueue-fleet simulate fleet fleet.yaml --jobs jobs.yaml
  kueue-fleet simulate objects dump/""",
)
"""The subcommands, one for each kind of input."""


@app.command(cls=Command)
def fleet(
    stack: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="A Pulumi.<env>.yaml, a bare fleet YAML or a program: manager and workers."
        ),
    ],
    workload: Annotated[
        Path | None, typer.Option("--workload", "-w", help="The jobs that are submitted to the fleet.")
    ] = None,
    jobs: Annotated[
        Path | None,
        typer.Option(
            "--jobs",
            help="Jobs as kubectl takes them, submitted to the fleet at second 0, or by `steps` of the workload file.",
        ),
    ] = None,
    seed: options.Seed = 0,
    until: options.Until = None,
    delay: options.Delays = (),  # type: ignore[assignment]
    what_if: options.WhatIf = (),  # type: ignore[assignment]
    max_wait: options.MaxWait = (),  # type: ignore[assignment]
    begin: Annotated[
        datetime | None,
        typer.Option(
            "--begin",
            help="What time second 0 is, in UTC, for windows and the axes of the report.",
            show_default="`begin` of the workload file; without that file now, if there are windows",
        ),
    ] = None,
    as_published: AsPublished = False,
    prices: PricesFile = None,
    report: options.Report = None,
    output: OutputOption = Output.text,
) -> None:
    """Simulate the manager and all workers of a fleet together.

    Jobs come from the workload file (see examples/*/workload.yaml), checks become Ready after the waits it declares,
    and what MultiKueue dispatches runs on the first worker that admits it. A job runs as many seconds as its annotation
    `kueue-fleet.dev/run-seconds` says, or indefinitely without it. An evicted workload starts over.

    \b
    Examples:
      kueue-fleet simulate fleet stacks/Pulumi.dws-multikueue.yaml \\
          -w examples/dws-multikueue/workload.yaml --seed 7
      kueue-fleet simulate fleet . -w jobs.yaml
      kueue-fleet simulate fleet fleet.yaml -w jobs.yaml --html report.html
      kueue-fleet simulate fleet fleet.yaml -w jobs.yaml \\
          --what-if 'clusterQueues[dws].preemption.withinClusterQueue=Never'
      kueue-fleet simulate fleet fleet.yaml -w day.yaml --max-wait gpu=1800
      kueue-fleet simulate fleet fleet.yaml --jobs jobs/
      kueue-fleet simulate fleet fleet.yaml --jobs jobs/ \\
          --begin 2026-12-01T18:00:00 --html report.html
      kueue-fleet simulate fleet --as-published \\
          examples/batch-platform/with-defects.yaml \\
          --jobs examples/batch-platform/jobs.yaml
    """
    if workload is None and jobs is None:
        raise console.mistyped("simulate fleet: the jobs are missing; give --workload FILE or --jobs PATH")
    from kueue_admission.cli import simulations
    from kueue_fleet.cli.simulate_input import of_stack

    table, at = load_prices(prices), begin.replace(tzinfo=UTC) if begin is not None else None
    read = simulations.read_options(delay, until, seed, what_if, max_wait, report, output)
    simulations.simulate(
        stack,
        lambda: of_stack(stack, workload, jobs, read.run, prices=table, as_published=as_published, begin=at),
        read,
        ", ".join(str(path) for path in (workload, jobs) if path is not None),
    )


_OBJECTS_HELP = inspect.cleandoc(of_one_cluster.objects.__doc__ or "").replace("kueue-admission", "kueue-fleet")
app.command(cls=Command, help=_OBJECTS_HELP)(of_one_cluster.objects)
