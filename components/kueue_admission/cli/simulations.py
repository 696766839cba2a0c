"""How commands simulate: what their options mean, the input made ready, the runs, and what is shown of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from kueue_admission.cli import console, simulate_ends, simulate_goals, simulate_report, simulate_tables
from kueue_admission.cli.dumps import tell_notes
from kueue_admission.cli.input_files import Output, read_objects, well_formed
from kueue_admission.cli.options import check_seconds
from kueue_admission.cli.simulate_watch import watched
from kueue_admission.read.goals import Goal
from kueue_admission.simulate.delays import Delays, parse_delays
from kueue_admission.simulate.errors import SimulationError
from kueue_admission.simulate.goals import judge_result
from kueue_admission.simulate.prepared import Prepared
from kueue_admission.simulate.what_if import Change, apply_to_documents, comparison, parse_change

if TYPE_CHECKING:
    from kueue_admission.kernel.problem import Problem
    from kueue_admission.releases import Release
    from kueue_admission.simulate.result import Result

Prepare = Callable[[Sequence[Change]], Prepared]
"""Makes the simulation with these changes. Its input was read once. Raises SimulationError, CommandError or SpecError
with every problem."""


@dataclass(frozen=True, slots=True)
class RunOptions:
    """What a run goes by."""

    delays: Delays
    until: float | None = None
    seed: int = 0


@dataclass(frozen=True, slots=True)
class Options:
    """What the command line says of a simulation."""

    run: RunOptions
    changes: Sequence[Change]
    goals: Sequence[Goal]
    report: Path | None
    output: Output


def read_options(
    delay: Sequence[str],
    until: float | None,
    seed: int,
    what_if: Sequence[str],
    max_wait: Sequence[str],
    report: Path | None,
    output: Output,
) -> Options:
    """What the options mean.

    Raises:
        CommandError: with every mistake.
    """
    check_seconds("--until", until)
    try:
        delays = parse_delays(list(delay), Delays())
        changes = [parse_change(text) for text in what_if]
    except SimulationError as mistyped:
        raise console.mistyped(str(mistyped.problems[0]), mistyped.problems[1:]) from None
    goals = [simulate_goals.parse_goal(text) for text in max_wait]
    if report is not None:
        simulate_report.check_report_file(report)
    return Options(RunOptions(delays, until, seed), changes, goals, report, output)


def of_objects(path: Path, run: RunOptions, *, fair_sharing: bool, kueue: Release | None) -> Prepare:
    """The Kubernetes objects in a file or a folder, with the release that decides; None: that of the objects."""
    from kueue_admission.simulate.raw import prepare_objects, read_raw

    left_out: list[Problem] = []
    documents = read_objects(path, left_out=left_out)

    def prepare(changes: Sequence[Change]) -> Prepared:
        raw = read_raw(
            apply_to_documents(documents, changes),
            left_out=left_out,
            fair_sharing=fair_sharing,
            kueue=kueue,
            changed=bool(changes),
        )
        if not changes:
            tell_notes(raw.notes)
        return prepare_objects(raw, run.delays, until=run.until, seed=run.seed)

    return prepare


def changed_source(source: str, changes: Sequence[Change]) -> str:
    """What messages call a file of which fields were changed."""
    return f"{source} with --what-if" if changes else source


def simulate(source: Path, prepare_source: Callable[[], Prepare], options: Options, jobs: str = "") -> None:
    """Simulate what `prepare_source` makes of SOURCE, with and without the changes; `jobs` names job files.

    Raises:
        CommandError: the input is wrong; or a goal is missed, exit code 3.
        Exit: the user ended it; or jobs are left out, exit code 1.
    """
    with well_formed():
        prepare = prepare_source()
        simulations = [prepare([]), *([prepare(options.changes)] if options.changes else [])]
    simulate_goals.check_queues(options.goals, simulations[-1].queues)
    results = _run(simulations, options.run.until)
    verdicts = [
        judge_result([*simulation.goals, *options.goals], result)
        for simulation, result in zip(simulations, results, strict=False)
    ]
    results = [replace(result, goals=tuple(goals)) for result, goals in zip(results, verdicts, strict=True)]
    if options.report is not None:
        sections = list(zip(["Before", "After"] if len(results) > 1 else [""], results, strict=True))
        about = simulate_report.about_run(simulations[0].fleet, source, jobs, options.run.seed)
        about["What if"] = ", ".join(change.text for change in options.changes) if len(results) > 1 else ""
        simulate_report.write_report(options.report, f"Simulation of {source.name}", about, sections)
    if options.output is Output.json:
        console.json_document(_document(options.changes, results))
    elif len(results) == 1:
        simulate_tables.show(results[0])
    else:
        simulate_tables.show_difference(*results)
    simulate_ends.tell(results)
    simulate_goals.enforce(verdicts[-1], quiet=options.output is Output.json)
    if simulations[0].left_out:
        raise typer.Exit(1)


def _run(simulations: Sequence[Prepared], until: float | None) -> list[Result]:
    """The results, up to the one that the user interrupted."""
    results = []
    with watched(until) as watcher:
        for simulation in simulations:
            results.append(simulation.run(watcher))
            if watcher.interrupted:
                break
    return results


def _document(changes: Sequence[Change], results: Sequence[Result]) -> dict[str, Any]:
    return results[0].as_json() if len(results) == 1 else comparison(changes, *results)
