"""The same events give the same decisions, whatever order Python's sets and hashes take."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.decide.expand import ZERO, load_scenarios, manifests
from tests.decide.harness import configuration

from kueue_admission.decide.engine import Engine
from kueue_admission.decide.events import CycleStarted, Submitted, TimePassed
from kueue_admission.read.kueue_objects import parse_objects

ROOT = Path(__file__).parents[2]


def trace() -> str:
    """Every decision of some cycles of all scenarios, as text."""
    lines: list[str] = []
    for name in ("schedule", "schedule_fair", "schedule_topology"):
        for case in load_scenarios(name):
            parsed = parse_objects(manifests(case), configuration(case))
            engine = Engine(parsed.objects)
            for workload in parsed.workloads:
                engine.handle(Submitted(ZERO, workload))
            for second in range(3):
                lines += map(repr, engine.handle(CycleStarted(ZERO + second)))
                lines += map(repr, engine.handle(TimePassed(ZERO + second + 1)))
    return "\n".join(lines)


def test_two_hash_seeds_give_one_trace() -> None:
    program = "from tests.decide.test_replay import trace; print(trace())"
    path = os.pathsep.join((str(ROOT), str(ROOT / "components")))
    other = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONHASHSEED": "1", "PYTHONPATH": path},
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    assert other == f"{trace()}\n", "this process has a random seed"
    assert other.count("QuotaReserved") > 100
