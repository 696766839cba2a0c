"""`plan` beside all fleets tried: `python -m tests.bench.plan` prints what both found, and their CPU seconds."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from typer.testing import CliRunner

from kueue_admission.forms.yaml_text import load_document
from kueue_fleet.cli import app
from kueue_fleet.cli.plan_runs import simulations
from kueue_fleet.cli.replay import read_past
from kueue_fleet.gke.prices import list_prices
from kueue_fleet.simulation.plan import Question, Terms, missed_by, parse_knob
from kueue_fleet.simulation.planner import Planner

EXAMPLE: Final = Path(__file__).parents[2] / "examples" / "plan"
RESERVED: Final = "resourceGroups[0].flavors[l4-reserved].resources[nvidia.com/gpu].nominalQuota"
ON_DEMAND: Final = "resourceGroups[0].flavors[l4-ondemand].resources[nvidia.com/gpu].nominalQuota"
MAY_CHANGE: Final = (
    "reservations[l4].count,nodePools[l4-reserved].nodeCount=1..8",
    f"clusterQueues[vision].{RESERVED}=0..16/2",
    f"clusterQueues[research].{RESERVED}=0..16/2",
    "nodePools[l4-ondemand].autoscaling.totalMaxNodeCount,"
    f"clusterQueues[vision].{ON_DEMAND},clusterQueues[research].{ON_DEMAND}=0..4",
)
"""What docs/plan.md lets it change."""


def question_of(folder: str, end: datetime | None = None, may_change: Sequence[str] = MAY_CHANGE) -> Question:
    """The example with its history up to then, which is recorded in the folder."""
    file = EXAMPLE / "fleet.yaml"
    CliRunner().invoke(app, ["record", str(file), "--store", folder, "--from", str(EXAMPLE / "jobs.csv")])
    text = file.read_text()
    document = load_document(text, str(file))
    past, window = read_past(folder, None, end)
    at = datetime.fromtimestamp(window.begin, UTC)
    knobs = [parse_knob(each, document, text) for each in may_change]
    return Question(document.data, at, past, window, knobs, list_prices())


def compare(question: Question, seeds: range) -> dict[str, Any]:
    """Both, by the same simulations."""
    began = time.process_time()
    with simulations(question, seeds, 1, None) as runs:
        answer = Planner(question, runs, 10_000, float("inf"), lambda text: None).answer(None)
    planned = time.process_time()
    terms, best, tried = Terms(question), float("inf"), 0
    with simulations(question, seeds, 1, None) as runs:
        for point in itertools.product(*(range(len(knob.levels)) for knob in question.knobs)):
            paid = terms.floor(point)
            if paid is None:
                continue
            tried += 1
            found = runs(point, whole=True)
            if not missed_by(found):
                best = min(best, paid + 730 * sum(each.used for each in found) / len(found))
    return {
        "cost": answer.best.cost,
        "bruteCost": best,
        "fleets": len(answer.search.evaluated),
        "bruteFleets": tried,
        "seconds": planned - began,
        "bruteSeconds": time.process_time() - planned,
        "today": answer.today.cost,
    }


if __name__ == "__main__":
    with TemporaryDirectory() as store:
        print(json.dumps(compare(question_of(store), range(3))))
