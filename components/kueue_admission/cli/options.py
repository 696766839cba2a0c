"""Options that several commands have, and what they mean."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kueue_admission.cli import console

if TYPE_CHECKING:
    # The commands start without the tables of the releases.
    from kueue_admission.releases import Release

Seed = Annotated[int, typer.Option("--seed", help="Seed of all numbers that are drawn.")]
"""The option of commands that draw numbers."""
Until = Annotated[
    float | None, typer.Option("--until", help="Stop at this second.", show_default="when nothing more happens")
]
"""When a simulation ends."""
FairSharing = Annotated[
    bool, typer.Option("--fair-sharing", help="Kueue's global fair sharing is on, whatever its Configuration says.")
]
"""The option of commands that take objects."""
Kueue = Annotated[
    str | None,
    typer.Option(
        "--kueue",
        metavar="VERSION",
        help="Decide as this release of Kueue does, whatever the objects say.",
        show_default="that of the objects",
    ),
]
"""The release that decides about objects."""
Delays = Annotated[
    list[str],
    typer.Option(
        "--delay",
        metavar="NAME=SECONDS",
        help="How long something takes that Kueue does not decide: decision, burst, cycle, write, start, release, "
        "workers, stop (docs/simulate.md). A number, exponential(mean) or uniform(least, most).",
        show_default="0",
    ),
]
"""How long something takes that Kueue does not decide."""
WhatIf = Annotated[
    list[str],
    typer.Option(
        "--what-if",
        metavar="PATH=VALUE",
        help="Run again with this changed, and show the difference. Paths are as in error messages: "
        "`clusterQueues[dws].stopPolicy`, `jobs[train].count`, or for objects `ClusterQueue[dws].spec.stopPolicy`.",
        show_default=False,
    ),
]
"""What is changed in a second run."""
MaxWait = Annotated[
    list[str],
    typer.Option(
        "--max-wait",
        metavar="QUEUE=SECONDS",
        help="End with exit code 3 when more than 5 % of the jobs of this ClusterQueue wait longer, from arrival "
        "to first admission; with --what-if, after the change.",
        show_default=False,
    ),
]
"""How long jobs of a queue may wait."""
Report = Annotated[
    Path | None,
    typer.Option("--html", metavar="FILE", help="Also write a report with plots, which opens without a network."),
]
"""Where a report goes."""
Workload = Annotated[
    str,
    typer.Argument(
        metavar="[WORKLOAD]",
        help="namespace/name, or the name, of a Workload or of its Job; or the code of a message, such as KF105. "
        "Without it: one line for each workload that waits.",
        show_default=False,
    ),
]
"""What is explained; empty: every workload that waits."""
Dumps = Annotated[
    list[str],
    typer.Option(
        "--objects",
        metavar="[CLUSTER=]PATH",
        help="A YAML or JSON file of Kubernetes objects, a folder of such files, or `-`. For MultiKueue once for "
        "each cluster, with its name: every cluster is explained.",
        show_default=False,
    ),
]
"""Clusters as they were printed."""
Second = Annotated[
    float | None,
    typer.Option("--second", min=0, help="Simulate up to this second, and explain the state then.", show_default=False),
]
"""The simulated moment that is explained."""
PrintedAt = Annotated[
    datetime | None,
    typer.Option(
        "--at", help="When the objects were printed, in UTC; decides which back-offs run.", show_default="now"
    ),
]
"""When a cluster's objects were printed."""
Short = Annotated[bool, typer.Option("--short", help="One line for each cluster.")]
"""How much an explanation says."""


def read_kueue(version: str | None, option: str = "--kueue") -> Release | None:
    """The release that an option names; None where it is not given. Raises CommandError."""
    if version is None:
        return None
    from kueue_admission.kernel import syntax
    from kueue_admission.releases import UnknownReleaseError, release

    fault = syntax.version(version)
    if fault is not None:
        raise console.mistyped(f"{option}: {version} {fault}")
    try:
        return release(version)
    except UnknownReleaseError as unknown:
        raise console.mistyped(f"{option}: {unknown}") from None


def typed_as(parameter: Any) -> str:
    """What a parameter of a command is called where it is typed: its longest option, or its name in the usage line."""
    if parameter.param_type_name == "option":
        return str(max(parameter.opts, key=len))
    return str(parameter.metavar or parameter.name).strip("[]- ")


def refuse_idle(context: typer.Context, names: str, where: str) -> None:
    """Raise CommandError where options or arguments were typed that do nothing here.

    Args:
        context: of the command.
        names: of its parameters, with blanks between; empty: all but its arguments.
        where: beside or without what they do nothing, such as "without --store".
    """
    idle = [
        typed_as(param)
        for param in context.command.params
        if (param.name in names.split() if names else param.param_type_name == "option")
        and is_typed(context, str(param.name))
    ]
    if idle:
        does, them = ("does", "it") if len(idle) == 1 else ("do", "them")
        raise console.mistyped(f"{', '.join(idle)}: {does} nothing {where}; leave {them} out")


def is_typed(context: typer.Context, name: str) -> bool:
    """Whether the parameter of this name was typed, and has not its default."""
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def check_seconds(option: str, value: float | None) -> None:
    """Raise CommandError where the value of an option is not a second of a simulation; None is not given."""
    from kueue_admission.simulate.distributions import MOST_SECONDS

    if value is not None and not 0 <= value <= MOST_SECONDS:
        raise console.mistyped(f"{option} {value:g}: is not a number of seconds; write 0 to {MOST_SECONDS:,}")
