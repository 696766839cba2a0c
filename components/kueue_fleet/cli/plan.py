"""`plan`: the cheapest fleet, among those that a file may become, whose goals a recorded history meets."""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from difflib import unified_diff
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from kueue_admission.cli import console, options, simulate_goals, simulate_report
from kueue_admission.cli.input_files import Output, OutputOption, well_formed
from kueue_admission.cli.interrupts import interruptible
from kueue_admission.cli.tables import Column, Table
from kueue_admission.read.goals import WEEK, Standing
from kueue_fleet.cli.fleet_files import PricesFile, load_fleet, load_prices
from kueue_fleet.cli.given_fleets import GivenFleet, given_fleet
from kueue_fleet.cli.replay import (
    FromOption,
    GrowthOption,
    QueueOption,
    ToOption,
    check_queues,
    check_teams,
    duration,
    read_growth,
    read_past,
    read_queues,
    times_of,
)
from kueue_fleet.cli.spec_commands import FleetFile
from kueue_fleet.cli.stores import StoreOption

if TYPE_CHECKING:
    from kueue_admission.kernel.yaml_text import YamlDocument
    from kueue_fleet.fleet_file import FleetSpec
    from kueue_fleet.fleet_file.knobs import Knob
    from kueue_fleet.planning.plan import Question
    from kueue_fleet.planning.planner import Answer, Candidate, Goal, Reason
    from kueue_fleet.planning.replay import Window

SCHEMA_VERSION: Final = 1
"""Of the JSON document; larger where a reader of the former would misread it."""
_LISTED: Final = 3
"""Reasons of `check` that are shown."""


def plan(
    file: FleetFile,
    store: StoreOption,
    may_change: Annotated[
        list[str] | None,
        typer.Option(
            "--may-change",
            metavar="PATH=LOW..HIGH[/STEP]",
            help="A whole number of FILE that may be changed, and its limits, in place of FILE's plan.mayChange. "
            "Several paths with commas between change together, one with *N as N times the number; a text such as "
            "a machineType is one of PATH=TEXT,TEXT; repeatable.",
        ),
    ] = None,
    begin: FromOption = None,
    end: ToOption = None,
    hold_out: Annotated[
        int,
        typer.Option("--hold-out", min=0, metavar="WEEKS", help="The last weeks, by which only the answer is judged."),
    ] = 1,
    budget: Annotated[
        float | None,
        typer.Option("--budget", min=1, metavar="USD", help="A month, at most.", show_default="plan.budget of FILE"),
    ] = None,
    growth: GrowthOption = None,
    queue: QueueOption = None,
    seeds: Annotated[int, typer.Option("--seeds", min=1, max=100, help="Simulations of each fleet.")] = 3,
    seed: options.Seed = 0,
    most: Annotated[int, typer.Option("--fleets", min=1, max=100_000, help="Fleets that are tried at most.")] = 300,
    processes: Annotated[
        int | None, typer.Option("--processes", min=1, max=256, help="That simulate.", show_default="CPUs")
    ] = None,
    study: Annotated[
        Path | None, typer.Option("--study", help="Keep what is simulated in this file, and go on from it.")
    ] = None,
    prices: PricesFile = None,
    report: options.Report = None,
    output: OutputOption = Output.text,
) -> None:
    """Search the cheapest fleet that meets the goals of FILE with recorded jobs.

    Every fleet that is tried is checked, and replayed with the same numbers drawn. The answer is a change of FILE, with
    why each part of it is there, how the goals fare in weeks that the search did not see, and what the history cannot
    say. Exits 3 if it misses a goal, there too. It needs the extra `history`.

    \b
    Examples:
      kueue-fleet plan fleet.yaml --store history
      kueue-fleet plan fleet.yaml --store history \\
          --may-change \\
          'reservations[l4].count,nodePools[l4].nodeCount=1..8' \\
          --budget 20000 --growth 1.2 --study plan.jsonl
    """
    if report is not None:
        simulate_report.check_report_file(report)
    grown, queues, table = read_growth(growth or []), read_queues(queue or []), load_prices(prices)
    source_fleet = given_fleet(file)
    fleet = load_fleet(
        source_fleet
    )  # What is wrong with it is said first; calendars are looked at when the window begins.
    check_teams("--growth", grown.teams, fleet)
    document, text = _fleet_document(source_fleet)
    from kueue_fleet.fleet_file.goals import goals_of
    from kueue_fleet.planning.plan import Question

    knobs = _knobs(fleet, may_change or [], document, source_fleet.source)
    if budget is None and fleet.plan is not None:
        budget = fleet.plan.budget
    if not goals_of(fleet):
        raise console.CommandError(f"{source_fleet.source}: has no goals; set goals of a ClusterQueue or a team")
    past, window = read_past(store, begin, end)
    check_queues(queues, past)
    window, held_out = held_out_of(window, hold_out)
    at = datetime.fromtimestamp(window.begin, UTC)
    # The limits are those of the command, so a file's own refuse no fleet that is tried.
    data = {key: value for key, value in document.data.items() if key != "plan"}
    question = Question(data, at, past, window, knobs, table, queues, grown, seed)
    answer = _answer(question, range(seed, seed + seeds), processes, study, most, budget, held_out)
    if report is not None:
        _write_report(report, question, answer, fleet.name, source_fleet.source, store)
    edited_text, source = _edited(question, answer.best, document, text), source_fleet.source
    difference = "".join(unified_diff(text.splitlines(True), edited_text.splitlines(True), source, source))
    if output is Output.json:
        console.json_document(_document(question, answer, held_out, difference))
    else:
        _show(question, answer, held_out, seeds, difference)
    missed_goals = [f"{goal.path}: {goal.why}" for goal in answer.best.missed]
    missed_goals += [
        f"{goal.path}, in the weeks held out: {goal.why}" for goal in answer.held_out if goal.standing == "missed"
    ]
    if missed_goals:
        raise console.CommandError("goals are missed:", simulate_goals.MISSED, missed_goals)
    if not answer.is_good:
        nothing_text = f"no fleet that meets the goals costs at most {budget:,.0f} USD a month"
        raise console.CommandError(f"--budget: {nothing_text}; the best one is shown", simulate_goals.MISSED)


def _fleet_document(source_fleet: GivenFleet) -> tuple[YamlDocument, str]:
    """The fleet's part of the file, and the text. Raises CommandError for a program."""
    from kueue_admission.kernel.yaml_text import load_document
    from kueue_fleet.fleet_file.parse import fleet_part

    if source_fleet.declared is not None:
        raise console.CommandError(
            f"{source_fleet.source}: is a program; give the fleet as a file, which plan can change"
        )
    return fleet_part(load_document(source_fleet.text, source_fleet.source)), source_fleet.text


def _knobs(fleet: FleetSpec, may_change: Sequence[str], document: YamlDocument, source: str) -> list[Knob]:
    """What may change: as the options say, else as the file does. Raises CommandError."""
    from kueue_admission.kernel.form_rules import FaultError
    from kueue_admission.simulate.errors import SimulationError
    from kueue_fleet.fleet_file.knobs import knob_of
    from kueue_fleet.planning.plan import parse_knob

    try:
        knobs = [parse_knob(path, document.data) for path in may_change]
    except SimulationError as wrong:
        raise console.mistyped(str(wrong.problems[0]), wrong.problems[1:]) from None
    for number, entry in enumerate(fleet.plan.may_change if fleet.plan is not None and not may_change else ()):
        try:
            knobs.append(knob_of(entry, document.data))
        except FaultError as wrong:
            wrong_text = f"{wrong.fault.wrong}; {wrong.fault.fix}"
            raise console.CommandError(f"{source}: plan.mayChange[{number}]: {wrong_text}") from None
    if not knobs:
        raise console.CommandError(f"{source}: says nothing may change; write plan.mayChange, or give --may-change")
    places = [place.path for knob in knobs for place in knob.places]
    spans = [document.span_of(path) for path in places]
    for path, span in zip(places, spans, strict=True):
        if span is None or spans.count(span) > 1:
            wrong_text = (
                "is given twice, or comes from a YAML anchor; name it once, and write its value where it is used"
            )
            raise console.CommandError(f"{source}: {path}: {wrong_text}")
    return knobs


def held_out_of(window: Window, weeks: int) -> tuple[Window, Window | None]:
    """The time to search by, and the weeks at the end; a history of less than twice as many holds out none."""
    from kueue_fleet.planning.replay import Window

    border = window.end - weeks * WEEK
    if not weeks or border - window.begin < weeks * WEEK:
        return window, None
    return Window(window.begin, border), Window(border, window.end)


def _answer(
    question: Question,
    seeds: Sequence[int],
    processes: int | None,
    study: Path | None,
    most: int,
    budget: float | None,
    held_out: Window | None,
) -> Answer:
    from kueue_fleet.cli.plan_runs import simulations
    from kueue_fleet.cli.progress import counting
    from kueue_fleet.planning.planner import NoGoalKnownError, Planner

    limit = math.inf if budget is None else budget
    count = min(processes or len(os.sched_getaffinity(0)), len(seeds))
    with (
        interruptible(),
        counting("planning") as say,
        simulations(question, seeds, count, study) as runs,
        well_formed(),
    ):
        try:
            return Planner(question, runs, most, limit, say).answer(held_out)
        except NoGoalKnownError as nothing:
            wrong_text = (
                "by these jobs no goal can be judged, so that any fleet would do; give other times, --queue or --growth"
            )
            raise console.CommandError(wrong_text, problems=nothing.reasons) from None


def _edited(question: Question, best: Candidate, document: YamlDocument, text: str) -> str:
    """The file's text with the numbers of the answer, and everything else as it is."""
    spans = [(document.span_of(change.path), change.value) for change in question.changes(best.point)]
    for span, value in sorted(((span, value) for span, value in spans if span is not None), reverse=True):
        text = f"{text[: span[0]]}{value}{text[span[1] :]}"
    return text


def _write_report(report: Path, question: Question, answer: Answer, fleet: str, source: str, store: str) -> None:
    """The frontier, and what jobs would have met today and in the answer."""

    def changes(candidate: Candidate) -> str:
        levels = zip(question.knobs, candidate.point, strict=True)
        return "; ".join(_changed(knob, level) for knob, level in levels if level != knob.today)

    choices = [
        simulate_report.Choice(name, choice.cost, choice.wait, _goals(choice), changes(choice))
        for name, choice in _choices(answer)
    ]
    about = simulate_report.about_run(fleet, Path(source), f"{store}, {times_of(question.window)}", question.seed)
    fleets = {answer.today.point: "Today", answer.best.point: "Recommended"}
    results = [(name, question.result(point)) for point, name in fleets.items()]
    simulate_report.write_report(report, f"Plan of {Path(source).name}", about, results, choices)


def _changed(knob: Knob, level: int) -> str:
    place = knob.places[0]
    more = f" and {len(knob.places) - 1} more" if len(knob.places) > 1 else ""
    return f"{place.path}{more}: {place.today}{place.unit} to {place.text(knob.levels[level])}"


def _why(question: Question, answer: Answer, reason: Reason) -> str:
    """What would be without a change."""
    knob, without = question.knobs[reason.knob], reason.without
    change_text = _changed(knob, answer.best.point[reason.knob])
    if without is None:
        return f"{change_text}; without it, check refuses the fleet"
    more = f"{abs(without.cost - answer.best.cost):,.0f} USD a month"
    cost = f"it costs {more} more" if without.cost > answer.best.cost else f"it costs {more} less"
    worse = [
        f"{goal.path} is {goal.standing} ({goal.why})"
        for goal, now in zip(without.goals, answer.best.goals, strict=True)
        if goal.standing is not now.standing and goal.standing in (Standing.MISSED, Standing.AT_RISK)
    ]
    return f"{change_text}; without it, {', '.join([*worse, cost])}"


def _document(question: Question, answer: Answer, held_out: Window | None, difference: str) -> dict[str, Any]:
    search = answer.search
    return {
        "schemaVersion": SCHEMA_VERSION,
        "begin": datetime.fromtimestamp(question.window.begin, UTC).isoformat(),
        "end": datetime.fromtimestamp(question.window.end, UTC).isoformat(),
        "heldOutUntil": None if held_out is None else datetime.fromtimestamp(held_out.end, UTC).isoformat(),
        "fleets": {
            "simulated": len(search.evaluated),
            "notCheaper": len(search.pruned),
            "refusedByCheck": len(search.refused),
            "limitReached": search.is_spent,
            "refusedFor": list(answer.refused_for),
        },
        "today": answer.today.as_json(question),
        "recommended": answer.best.as_json(question),
        "reasons": [
            {
                "change": question.knobs[reason.knob].text,
                "why": _why(question, answer, reason),
                "without": None if reason.without is None else reason.without.as_json(question),
            }
            for reason in answer.reasons
        ],
        "heldOut": None if held_out is None else [goal._asdict() for goal in answer.held_out],
        "frontier": [choice.as_json(question) for choice in answer.frontier],
        "notKnown": list(answer.not_known),
        "diff": difference,
    }


def _show(question: Question, answer: Answer, held_out: Window | None, seeds: int, difference: str) -> None:
    search = answer.search
    simulation_text = f"{console.count(len(search.evaluated), 'fleet')} simulated, {console.count(seeds, 'time')} each"
    console.paragraph(
        f"{times_of(question.window)}: {simulation_text}; "
        f"of the others {len(search.pruned)} could not be better, and {len(search.refused)} check refuses."
    )
    if search.is_spent:
        console.paragraph("The search ended at its limit; give more --fleets to search on.")
    console.show("", _table(question, answer))
    if answer.reasons:
        console.line("Changes:")
    for reason in answer.reasons:
        console.paragraph(f"- {_why(question, answer, reason)}")
    if not answer.reasons:
        console.line("No change of the file is better.")
        for problem in answer.refused_for[:_LISTED]:
            console.paragraph(f"- check refuses others: {problem}")
    _show_goals("goal", answer.best.goals)
    if held_out is None:
        console.paragraph("No weeks are held out: the history is too short, or --hold-out is 0.")
    else:
        _show_goals("held out", answer.held_out)
    if answer.not_known:
        console.line()
        console.line("Your history cannot answer:")
    for text in answer.not_known:
        console.paragraph(f"- {text}")
    if difference:
        console.line()
        console.text(difference)


def _show_goals(name: str, goals: Sequence[Goal]) -> None:
    console.line()
    for goal in goals:
        console.line(simulate_goals.styled(f"{name}, {goal.standing}: {goal.path}: {goal.why}", goal.standing))


def _goals(candidate: Candidate) -> str:
    counts = Counter(goal.standing for goal in candidate.goals if goal.standing is not Standing.MET)
    return ", ".join(f"{number} {standing}" for standing, number in counts.items()) or "met"


def _choices(answer: Answer) -> Iterator[tuple[str, Candidate]]:
    """What there is to choose from, each with its label."""
    frontier = [choice for choice in answer.frontier if choice != answer.today]
    for choice in (answer.today, *frontier, *([] if answer.best in (answer.today, *frontier) else [answer.best])):
        yield "recommended" if choice == answer.best else "today" if choice == answer.today else "", choice


def _table(question: Question, answer: Answer) -> Table:
    """Cost against waiting."""
    table = Table(
        Column("fleet"),
        Column("USD a month", right=True),
        Column("paid anyway", right=True, leave_out=1),
        Column("mean wait", right=True),
        Column("goals"),
        Column("levels", leave_out=2),
    )
    for name, choice in _choices(answer):
        levels = [str(knob.levels[level]) for knob, level in zip(question.knobs, choice.point, strict=True)]
        amounts = f"{choice.cost:,.0f}", f"{choice.paid:,.0f}", duration(choice.wait), _goals(choice)
        table.add(name, *amounts, ", ".join(levels))
    return table
