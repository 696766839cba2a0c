"""`plan` beside a grid of fleets that are all tried: `python -m tests.bench.plan [COMPANY ...]` prints what both found.

For each example company: USD a month of the cheapest fleet that meets the goals, CPU seconds, and whether the answer
meets the goals in the week that was held out.
"""

from __future__ import annotations

import itertools
import json
import math
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from typer.testing import CliRunner

from kueue_admission.kernel.yaml_text import load_document
from kueue_fleet.cli import app
from kueue_fleet.cli.plan import held_out_of
from kueue_fleet.cli.plan_runs import simulations
from kueue_fleet.cli.replay import read_past
from kueue_fleet.fleet_file import parse_fleet_text
from kueue_fleet.fleet_file.knobs import knob_of
from kueue_fleet.gke.prices import HOURS_PER_MONTH, list_prices
from kueue_fleet.planning.plan import Question, Terms, missed_by
from kueue_fleet.planning.planner import Planner
from kueue_fleet.planning.replay import Window
from kueue_fleet.planning.search import Point
from tests.bench.company_history import write

EXAMPLES: Final = Path(__file__).parents[2] / "examples"
COMPANIES: Final = ("lab", "saas", "regions")
GRID: Final = 500
"""Fleets of the grid that `check` accepts, at least."""


def question_of(file: Path, folder: str, end: datetime | None = None, weeks: int = 0) -> tuple[Question, Window | None]:
    """What the limits of a file ask of the history in a folder, and the weeks that are held out."""
    text = file.read_text()
    data, fleet = load_document(text, str(file)).data, parse_fleet_text(text, str(file))
    past, whole = read_past(folder, None, end)
    window, held_out = held_out_of(whole, weeks)
    knobs = [knob_of(item, data) for item in fleet.plan.may_change] if fleet.plan is not None else []
    at = datetime.fromtimestamp(window.begin, UTC)
    data = {key: value for key, value in data.items() if key != "plan"}
    return Question(data, at, past, window, knobs, list_prices()), held_out


def company(name: str, folder: str) -> tuple[Question, Window | None]:
    """An example company, whose history is written into the folder."""
    write(name, folder)
    return question_of(EXAMPLES / "companies" / f"{name}.yaml", folder, weeks=1)


def record_example(folder: str) -> str:
    """Record the history of the company of docs/plan.md in the folder."""
    example = EXAMPLES / "plan"
    CliRunner().invoke(
        app, ["record", str(example / "fleet.yaml"), "--store", folder, "--from", str(example / "jobs.csv")]
    )
    return folder


def grid(question: Question, least: float) -> dict[Point, float]:
    """Fleets that `check` accepts, with what is paid anyway: levels evenly apart, so many of each number that there are
    at least so many fleets; all there are, if there are fewer."""
    terms = Terms(question)
    for item in range(1, 1 + max(len(knob.levels) for knob in question.knobs)):
        axes = []
        for knob in question.knobs:
            last, count = len(knob.levels) - 1, min(item, len(knob.levels))
            axes.append(sorted({round(number * last / max(1, count - 1)) for number in range(count)}))
        accepted = {point: paid for point in itertools.product(*axes) if (paid := terms.floor(point)) is not None}
        if len(accepted) >= least:
            break
    return accepted


def compare(question: Question, seeds: range, least: float = GRID, held_out: Window | None = None) -> dict[str, Any]:
    """Both, by the same simulations. What the grid's fleets cost `check` is not counted."""
    fleets, best = grid(question, least), math.inf
    began = time.process_time()
    with simulations(question, seeds, 1, None) as runs:
        answer = Planner(question, runs, 10_000, math.inf, lambda text: None).answer(held_out)
    planned = time.process_time()
    with simulations(question, seeds, 1, None) as runs:
        for point, paid in fleets.items():
            result = runs(point, whole=True)
            if not missed_by(result):
                best = min(best, paid + HOURS_PER_MONTH * sum(item.used for item in result) / len(result))
    return {
        "cost": answer.best.cost,
        "bruteCost": best,
        "fleets": len(answer.search.evaluated),
        "bruteFleets": len(fleets),
        "seconds": planned - began,
        "bruteSeconds": time.process_time() - planned,
        "today": answer.today.cost,
        "levels": [knob.levels[level] for knob, level in zip(question.knobs, answer.best.point, strict=True)],
        "heldOut": [goal.standing for goal in answer.held_out],
    }


if __name__ == "__main__":
    for each in sys.argv[1:] or COMPANIES:
        with TemporaryDirectory() as store:
            asked, later = company(each, store)
            print(json.dumps({"company": each, **compare(asked, range(1), GRID, later)}), flush=True)
