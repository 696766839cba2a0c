"""`diff`: what is different between two fleet files, and what it does to a load."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kueue_admission.cli import console, options
from kueue_admission.cli.input_files import Output, OutputOption, well_formed
from kueue_fleet.cli.fleet_files import PricesFile, load_fleet, load_prices
from kueue_fleet.diff import Difference, compare_fleets
from kueue_fleet.diff.quotas import compare_costs
from kueue_fleet.fleet_file import FleetSpec
from kueue_fleet.fleet_file.in_words import listed

if TYPE_CHECKING:
    from kueue_admission.simulate.result import Result

_HEADINGS = {
    "consequences": "What it does to what runs",
    "cost": "What it costs",
    "clusters": "Clusters",
    "capacity": "Node pools",
    "quota": "Quotas",
    "settings": "Settings",
}


def diff(
    context: typer.Context,
    old: Annotated[
        Path,
        typer.Argument(metavar="OLD", help="A Pulumi.<env>.yaml, a bare fleet YAML or a program; `-` reads stdin."),
    ],
    new: Annotated[Path, typer.Argument(metavar="NEW", help="The changed file or program.")],
    workload: Annotated[
        Path | None,
        typer.Option(
            "--workload", "-w", help="Simulate this workload file on both, and show which jobs fare differently."
        ),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="Seed of the numbers that --workload draws.")] = 0,
    until: Annotated[
        float | None,
        typer.Option("--until", min=0, help="Stop at this second.", show_default="when nothing more happens"),
    ] = None,
    output: OutputOption = Output.text,
    prices: PricesFile = None,
    exit_code: Annotated[bool, typer.Option("--exit-code", help="Exit 1 if there is a difference.")] = False,
) -> None:
    """Show what a change of a fleet file does to what runs, what it costs, what each team gains or loses, and more.

    Quotas are compared as they end up on each cluster. Both files are checked first.

    \b
    Examples:
      git show main:stacks/Pulumi.prod.yaml \\
          | kueue-fleet diff - stacks/Pulumi.prod.yaml
      kueue-fleet diff stacks/Pulumi.staging.yaml stacks/Pulumi.prod.yaml
      kueue-fleet diff main-checkout .
      kueue-fleet diff old.yaml new.yaml --workload jobs.yaml
    """
    if workload is None:
        options.refuse_idle(context, "seed until", "without --workload")
    options.check_seconds("--until", until)
    fleets = load_fleet(old), load_fleet(new)
    found = compare_fleets(*fleets)
    found += compare_costs(*fleets, load_prices(prices))
    results = _simulate((old, new), fleets, workload, seed, until) if workload is not None else None
    if output is Output.json:
        console.json_document(_document(found, results))
    else:
        _print(found)
        if results is not None:
            from kueue_admission.cli import simulate_tables

            console.line()
            simulate_tables.show_difference(*results)
    if results is not None:
        from kueue_admission.cli import simulate_ends

        simulate_ends.tell(results)
    if found and exit_code:
        raise typer.Exit(1)


def _print(changes: list[Difference]) -> None:
    """One row for what is alike, as on several clusters."""
    if not changes:
        console.line("no difference")
    for area, heading in _HEADINGS.items():
        paths: dict[str, list[str]] = {}
        for difference in changes:
            if difference.area == area:
                paths.setdefault(difference.text, []).append(difference.path)
        if paths:
            console.line(console.Styled(heading, "bold"))
        for text, where in paths.items():
            console.line(f"  {listed(where)}: {text}" if any(where) else f"  {text}")


def _document(changes: list[Difference], results: tuple[Result, Result] | None) -> dict[str, Any]:
    document: dict[str, Any] = {
        "schemaVersion": 1,
        "differences": [
            {"area": difference.area, "path": difference.path, "text": difference.text} for difference in changes
        ],
    }
    if results is not None:
        from kueue_admission.simulate.what_if import differences

        document["workloads"] = differences(*results)
    return document


def _simulate(
    names: tuple[Path, Path], fleets: tuple[FleetSpec, FleetSpec], workload: Path, seed: int, until: float | None
) -> tuple[Result, Result]:
    from kueue_admission.simulate.delays import Delays
    from kueue_fleet.cli.simulate_input import read_workload
    from kueue_fleet.fleet_simulation.fleet import prepare_fleet
    from kueue_fleet.jobs.problems import Sources

    with well_formed(workload):
        file, place = read_workload(workload)
        before, after = (
            prepare_fleet(
                fleet,
                file,
                Delays(),
                until=until,
                seed=seed,
                sources=Sources(console.source_name(name), place),
            )
            for name, fleet in zip(names, fleets, strict=True)
        )
    return before.run(), after.run()
