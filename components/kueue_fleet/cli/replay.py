"""`replay`: a recorded history through the fleet as its file is now, against what happened, and with changes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from kueue_admission.cli import console, options, simulate_goals
from kueue_admission.cli.input_files import Output, OutputOption, well_formed
from kueue_admission.cli.tables import Column, Table
from kueue_admission.kernel.syntax import number
from kueue_fleet.cli.fleet_files import load_fleet
from kueue_fleet.cli.given_fleets import given_fleet
from kueue_fleet.cli.spec_commands import FleetFile
from kueue_fleet.cli.stores import LOOK_BACK, StoreOption, opened_store

if TYPE_CHECKING:
    from kueue_admission.history.jobs import Past
    from kueue_admission.simulate.clock import Watch
    from kueue_fleet.fleet_file import FleetSpec
    from kueue_fleet.planning.replay import Growth, Replay, Replayed, Window
    from kueue_fleet.planning.replay_fit import Fit, Spread, Waits

SCHEMA_VERSION: Final = 1
"""Of the JSON document; larger where a reader of the former would misread it."""
_DAY: Final = 86_400.0
FromOption = Annotated[
    datetime | None, typer.Option("--from", help="Jobs that arrived from then on, UTC.", show_default="all")
]
"""When the time begins that is replayed."""
ToOption = Annotated[
    datetime | None, typer.Option("--to", help="Up to then, UTC; of a day its beginning.", show_default="all")
]
"""When it ends."""
GrowthOption = Annotated[
    list[str] | None,
    typer.Option(
        "--growth", metavar="FACTOR", help="So many times as many jobs; TEAM=FACTOR for one team; repeatable."
    ),
]
"""How many more jobs come."""
QueueOption = Annotated[
    list[str] | None,
    typer.Option(
        "--queue",
        metavar="OLD=NAMESPACE/QUEUE",
        help="Jobs of this queue of the history, such as a partition of Slurm, go to that LocalQueue; repeatable.",
    ),
]
"""Where jobs go of queues that the fleet does not have."""


def replay(
    file: FleetFile,
    store: StoreOption,
    begin: FromOption = None,
    end: ToOption = None,
    what_if: options.WhatIf = (),  # type: ignore[assignment]
    growth: GrowthOption = None,
    queue: QueueOption = None,
    seeds: Annotated[int, typer.Option("--seeds", min=1, max=1000, help="Number of simulations.")] = 3,
    output: OutputOption = Output.text,
) -> None:
    """Replay recorded jobs through the fleet of FILE: first against what happened, then with changes.

    Jobs arrive and run as they did. Run times of jobs that had not ended, waits for DWS, and losses of nodes are drawn
    from what the history has of jobs like them, in the same region, in each simulation with another seed. Numbers are
    those of the middle simulation, with the least and the most where they differ. Exits 3 if a goal of the file is
    missed, with the changes where there are any. It needs the extra `history`.

    \b
    Examples:
      kueue-fleet replay fleet.yaml --store history
      kueue-fleet replay fleet.yaml --store history \\
          --from 2026-11-01 --to 2026-12-01 --growth 1.2 \\
          --growth vision=1.5
      kueue-fleet replay fleet.yaml --store history \\
          --what-if 'clusterQueues[dws].queueingStrategy=StrictFIFO'
      kueue-fleet replay fleet.yaml --store history \\
          --queue gpu=vision/gpu -o json
    """
    from kueue_admission.simulate.errors import SimulationError
    from kueue_admission.simulate.what_if import parse_change
    from kueue_fleet.cli.progress import counting
    from kueue_fleet.cli.simulate_input import changed_fleet
    from kueue_fleet.planning.replay import Replay

    try:
        changes = [parse_change(text) for text in what_if]
    except SimulationError as wrong:
        raise console.mistyped(str(wrong.problems[0]), wrong.problems[1:]) from None
    grown, queues = read_growth(growth or []), read_queues(queue or [])
    source_fleet = given_fleet(file)
    load_fleet(source_fleet)  # What is wrong with it is said first; calendars are looked at when the window begins.
    past, window = read_past(store, begin, end)
    at = datetime.fromtimestamp(window.begin, UTC)
    fleet = load_fleet(source_fleet, at=at)
    check_teams("--growth", grown.teams, fleet)
    check_queues(queues, past)
    with counting("replaying") as say, well_formed():
        before = Replay(fleet, past, window, queues)
        after = Replay(changed_fleet(source_fleet, changes, at), past, window, queues) if changes else before
        runs = [
            before.run(seed, begun=_with_progress(say, f"simulation {seed + 1} of {seeds}")) for seed in range(seeds)
        ]
        changed_runs = (
            [
                after.run(seed, grown, _with_progress(say, f"simulation {seed + 1} of {seeds}, changed"))
                for seed in range(seeds)
            ]
            if changes or growth
            else []
        )
    if not runs[0]:
        left_out = [f"{count} jobs {why}" for why, count in before.left_out.items()]
        raise console.CommandError(
            f"{store}: has no job that can be replayed; give another --from, --to", problems=left_out
        )
    change_texts = [*what_if, *(f"growth {text}" for text in growth or [])]
    _show(before, runs, after, changed_runs, change_texts, output)


def _with_progress(say: Callable[[str], None], what: str) -> Callable[[list[Replayed]], Watch]:
    """Tells of a simulation how far it is."""

    def begun(jobs: list[Replayed]) -> Watch:
        last = -_DAY

        def watch(now: float) -> bool:
            nonlocal last
            if now >= last + _DAY:
                last = now
                say(f"{what}: day {now / _DAY:.0f}, {len(jobs)} jobs")
            return True

        return watch

    return begun


def read_past(store: str, begin: datetime | None, end: datetime | None) -> tuple[Past, Window]:
    """The history of the window, and of what was there when it began. Raises CommandError."""
    from kueue_admission.history.jobs import OF_JOBS, past_of
    from kueue_admission.history.schema import Kind
    from kueue_fleet.planning.replay import Window

    first = begin.replace(tzinfo=UTC).timestamp() if begin is not None else None
    last = end.replace(tzinfo=UTC).timestamp() if end is not None else math.inf
    with opened_store(store) as opened:
        past = past_of(opened.read(0.0 if first is None else max(0.0, first - LOOK_BACK), OF_JOBS))
        if not past.jobs and opened.read(kinds=(Kind.COUNTED,)):
            fix = "record the fleet itself, or jobs as a dump or a CSV"
            raise console.CommandError(f"{store}: has Kueue's metrics alone, which tell of no job; {fix}")
    # Of the time before its first event a history knows nothing, as of that after its last.
    window = Window(past.begin if first is None else max(first, past.begin), min(past.end, last))
    if window.begin >= window.end:
        within = "" if begin is None and end is None else " between --from and --to"
        raise console.CommandError(
            f"{store}: has no events{within}, or only of one moment; record more, or other times"
        )
    return past, window


def read_growth(texts: Sequence[str]) -> Growth:
    """What --growth says. Raises CommandError."""
    from kueue_fleet.planning.replay import Growth

    factor, teams = 1.0, dict[str, float]()
    for text in texts:
        team, _, factor_text = text.rpartition("=")
        growth = number(factor_text)
        if growth is None or not 0 <= growth <= 100:
            raise console.mistyped(f"--growth {text}: is not a factor; write 1.2, or TEAM=1.2, at most 100")
        if team:
            teams[team] = growth
        else:
            factor = growth
    return Growth(factor, teams)


def check_teams(option: str, team_names: Iterable[str], fleet: FleetSpec) -> None:
    """Raise CommandError for a team in an option that the fleet does not have."""
    from kueue_admission.kernel.suggest import instead

    teams = sorted(team.name for team in fleet.teams)
    for team in team_names:
        if team not in teams:
            raise console.mistyped(f"{option} {team}: there is no such team; {instead(team, teams, 'teams')}")


def times_of(window: Window) -> str:
    """Begin and end of a time, for people."""
    begin, end = (datetime.fromtimestamp(at, UTC) for at in (window.begin, window.end))
    return f"{begin:%Y-%m-%d %H:%M} to {end:%Y-%m-%d %H:%M} UTC"


def read_queues(texts: Sequence[str]) -> dict[str, str]:
    """What --queue says. Raises CommandError."""
    return dict(map(_renamed, texts))


def check_queues(queues: Iterable[str], past: Past) -> None:
    """Warn of a queue in --queue that the history does not have."""
    from kueue_admission.kernel.suggest import instead

    arrivals = [job.arrival for job in past.jobs]
    names = sorted({name for arrival in arrivals for name in (arrival.queue, f"{arrival.namespace}/{arrival.queue}")})
    for queue in queues:
        if queue not in names:
            console.warning(f"--queue {queue}: no job of this time is of it; {instead(queue, names, 'queues')}")


def _renamed(text: str) -> tuple[str, str]:
    old, _, new = text.partition("=")
    if not old or new.count("/") != 1:
        raise console.mistyped(f"--queue {text}: is not OLD=NAMESPACE/QUEUE; write it as gpu=vision/gpu")
    return old, new


def _show(
    before: Replay,
    runs: Sequence[Sequence[Replayed]],
    after: Replay,
    changed_runs: Sequence[Sequence[Replayed]],
    changes: Sequence[str],
    output: Output,
) -> None:
    from kueue_fleet.planning.replay_fit import fit_of, goals_in, waits_of

    fit = fit_of(before, runs)
    # Of the fit a job that growth added is not part; of what a change does it is.
    then = waits_of(after, changed_runs) if changed_runs else {}
    goal_verdicts = goals_in(after, changed_runs or runs)
    if output is Output.json:
        goals = [verdict.to_dict() for verdict in goal_verdicts]
        console.json_document({**_document(before, fit, then, changes, len(runs)), "goals": goals})
        simulate_goals.enforce(goal_verdicts, quiet=True)
        return
    window = before.window
    days = (window.end - window.begin) / _DAY
    console.line(f"{times_of(window)}, {days:.1f} days, {console.count(len(runs), 'simulation')}")
    console.line()
    if fit.close is None:
        console.paragraph("How well the replay fits is not known: the history does not say how long any job waited.")
    else:
        _show_waits("recorded", fit.recorded, "replayed", fit.replayed, fit.off)
        console.line()
        console.paragraph(f"{fit.close:.0%} of the jobs waited as long as recorded, within 10 % or a minute.")
    if fit.not_explained:
        console.line("Not explained:")
    for text in fit.not_explained:
        console.paragraph(f"- {text}")
    if changed_runs:
        console.line()
        console.paragraph(f"With {', '.join(changes)}:")
        _show_waits("replayed", fit.replayed, "then", then)
    simulate_goals.enforce(goal_verdicts, quiet=False)


def _show_waits(
    name: str,
    waits: Mapping[str, Waits],
    other_name: str,
    others: Mapping[str, Waits],
    off: Callable[[str, str], float | None] | None = None,
) -> None:
    table = Table(
        Column("waits in"),
        Column("", leave_out=0),
        Column("jobs", right=True, leave_out=3),
        Column("admitted", right=True, leave_out=2),
        Column("p50", right=True),
        Column("p90", right=True),
    )
    for queue in dict.fromkeys((*waits, *others)):
        for label, side in ((name, waits), (other_name, others)):
            if (row_of_side := side.get(queue)) is not None:
                quantiles = [_span(spread) for spread in row_of_side.quantiles.values()]
                table.add(queue, label, _number(row_of_side.jobs), _number(row_of_side.admitted), *quantiles)
        if off is not None:
            differences = [off(queue, share) for share in ("p50", "p90")]
            table.add(
                queue,
                "off by",
                "",
                "",
                *("-" if difference is None else f"{difference:+.0%}" for difference in differences),
            )
    console.show(table)


def _number(spread: Spread) -> str:
    return f"{spread.middle:.0f}" + ("" if spread.least == spread.most else f" ({spread.least:.0f}-{spread.most:.0f})")


def _span(spread: Spread) -> str:
    middle, least, most = map(duration, spread)
    return middle if least == most else f"{middle} ({least}-{most})"


def duration(seconds: float) -> str:
    """How long it is, as tables have it."""
    if math.isinf(seconds):
        return "waits"
    for size, unit in ((_DAY, "d"), (3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.0f} s"


def _document(
    before: Replay, fit: Fit, then: Mapping[str, Waits], changes: Sequence[str], seeds: int
) -> dict[str, Any]:
    queues = []
    for name in dict.fromkeys((*fit.recorded, *then)):
        of_queue: dict[str, Any] = {"clusterQueue": name}
        for key, side in (("recorded", fit.recorded), ("replayed", fit.replayed), ("then", then)):
            of_queue[key] = side[name].as_json() if name in side else None
        of_queue["off"] = {share: fit.off(name, share) for share in ("p50", "p90")} if name in fit.recorded else None
        queues.append(of_queue)
    return {
        "schemaVersion": SCHEMA_VERSION,
        "begin": datetime.fromtimestamp(before.window.begin, UTC).isoformat(),
        "end": datetime.fromtimestamp(before.window.end, UTC).isoformat(),
        "simulations": seeds,
        "close": fit.close,
        "notExplained": list(fit.not_explained),
        "changes": list(changes),
        "queues": queues,
    }
