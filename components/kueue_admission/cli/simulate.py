"""`simulate`: what Kueue would do with a set of jobs over time, without a cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kueue_admission.cli import options
from kueue_admission.cli.application import Command
from kueue_admission.cli.input_files import Output, OutputOption

ABOUT = """Show when each job would be admitted, by Kueue's own rules on a virtual clock.

The same seed gives the same result."""
"""What the help of `simulate` begins with."""
app = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False, no_args_is_help=True, help=ABOUT)
"""The subcommands, one for each kind of input."""


@app.callback()
def _subcommands() -> None:
    """So that one subcommand is named too."""


@app.command(cls=Command)
def objects(
    path: Annotated[
        Path,
        typer.Argument(
            metavar="OBJECTS",
            help="A YAML or JSON file of Kubernetes objects, a folder of such files, or `-`: Kueue's objects, and jobs "
            "or Workloads.",
        ),
    ],
    fair_sharing: options.FairSharing = False,
    kueue: options.Kueue = None,
    seed: options.Seed = 0,
    until: options.Until = None,
    delay: options.Delays = (),  # type: ignore[assignment]
    what_if: options.WhatIf = (),  # type: ignore[assignment]
    max_wait: options.MaxWait = (),  # type: ignore[assignment]
    report: options.Report = None,
    output: OutputOption = Output.text,
) -> None:
    """Simulate the objects of one cluster.

    A job arrives at its metadata.creationTimestamp, the earliest of the input being second 0, and runs as many seconds
    as its annotation `kueue-fleet.dev/run-seconds` says, or indefinitely without it. Workloads of a live cluster are
    where their status says, from the last time in it on. An evicted workload starts over. Admission checks stay
    Pending, since nothing answers them.

    \b
    Examples:
      kubectl get -A -o yaml \\
          resourceflavors,cohorts,clusterqueues,localqueues,workloads,jobs \\
          | kueue-admission simulate objects -
      kueue-admission simulate objects dump/ --until 3600 -o json
      kueue-admission simulate objects dump/ \\
          --what-if 'ClusterQueue[gpu].spec.preemption.withinClusterQueue=Never'
      kueue-admission simulate objects dump/ --max-wait gpu=1800
      kueue-admission simulate objects dump/ --kueue 0.18.3
    """
    from kueue_admission.cli import simulations

    read = simulations.read_options(delay, until, seed, what_if, max_wait, report, output)
    decides = options.read_kueue(kueue)
    simulations.simulate(
        path, lambda: simulations.of_objects(path, read.run, fair_sharing=fair_sharing, kueue=decides), read
    )
