"""Every run ends, within a number of steps that its input gives: random fleets, and random clusters with fair sharing.

Some tens of each in the suite; `make simulations` does a thousand, from a SEED of its own. The seed is in the output.
"""

from __future__ import annotations

import os
import random
from dataclasses import replace

import pytest
from tests.differential.generate import scenario
from tests.differential.replay import parse
from tests.differential.steps import submitted
from tests.simulation.random_fleets import random_fleet

from kueue_admission.decide.engine import Engine
from kueue_admission.simulate import clock
from kueue_admission.simulate.clock import EndReason
from kueue_admission.simulate.contention import TURNS
from kueue_admission.simulate.delays import Delays, parse_delays
from kueue_admission.simulate.distributions import MOST_SECONDS
from kueue_admission.simulate.records import Record, State
from kueue_admission.simulate.result import Result
from kueue_admission.simulate.runner import Arrival, prepare_cluster
from kueue_fleet.fleet_simulation.fleet import fleet_run

SEED = int(os.environ.get("KUEUE_FLEET_SIMULATIONS_SEED") or 20261122)
COUNT = int(os.environ.get("KUEUE_FLEET_SIMULATIONS") or 20)


def preemptions(records: tuple[Record, ...], preemptor: str, preempted: str) -> int:
    return sum(
        eviction.preemptor == preemptor
        for record in records
        if record.key == preempted
        for eviction in record.evictions
    )


def test_run_of_a_random_fleet_ends() -> None:
    print(f"SEED={SEED} FLEETS={COUNT}")
    for index in range(COUNT):
        name = f"fleet {index} of seed {SEED}"
        objects = random_fleet(SEED, index)
        run = fleet_run(objects.fleet, objects.file, objects.delays, seed=index)
        clusters = list(run.clusters.values())
        end = run.drive(0.0, objects.until)
        result = Result.of(run.settle(), end, clusters, until=objects.until)
        assert end.reason in (EndReason.NOTHING_MORE, EndReason.UNTIL, EndReason.REPEATS), name
        # No job of these fleets can start over more than about once a minute, and each is on at most three clusters.
        most = len(run.jobs) * len(clusters) * (100 + 4 * end.at / 60)
        steps = run.agenda.happened + sum(cluster.engine.cycles for cluster in clusters)
        assert steps <= most, f"{name}: {steps} steps up to second {end.at:.0f} with {len(run.jobs)} jobs"
        for pair in result.contended:
            assert pair.times >= TURNS, name
        if end.reason is EndReason.NOTHING_MORE:
            waiting = {record.key for record in result.records if record.state is not State.FINISHED}
            assert waiting <= {key for cluster in clusters for key in cluster.engine.workloads}, name


def test_run_of_a_random_fleet_with_times_without_bounds_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    print(f"SEED={SEED} FLEETS={COUNT}")
    monkeypatch.setattr(clock, "_MOST_REPEATS_BY_JOB", 100)
    for index in range(COUNT // 2):
        result = random_fleet(SEED, index, ["exponential(1e9)", MOST_SECONDS])
        run = fleet_run(result.fleet, result.file, result.delays, seed=index)
        clusters = list(run.clusters.values())
        end = run.drive(0.0, result.until)
        Result.of(run.settle(), end, clusters, until=result.until)
        steps = run.agenda.happened + sum(cluster.engine.cycles for cluster in clusters)
        # A job arrives, is admitted for the first time and finishes once each.
        most = 100_000 if result.until else (1000 + 100 * len(run.jobs)) * (3 * len(run.jobs) + 2)
        assert steps <= most, f"fleet {index} of seed {SEED}: {steps} steps up to second {end.at:.0f}"


@pytest.mark.parametrize("setting", ["fair", "fair-final", "fair-initial"])
def test_run_of_a_random_cluster_with_fair_sharing_ends(setting: str) -> None:
    print(f"SEED={SEED} FLEETS={COUNT}")
    for index in range(COUNT):
        name = f"cluster {index} of seed {SEED}, {setting}"
        rng = random.Random(name)
        case = scenario(SEED, index, setting)
        parsed = parse(case, submitted(case))
        arrivals = []
        for workload in parsed.workloads:
            at = rng.choice([0.0, float(rng.randint(0, 60)), rng.uniform(0, 1000)])
            seconds = rng.choice([None, 100.0, rng.uniform(0, 500)])
            arrivals.append(Arrival(replace(workload, created=at), workload.name, at, seconds))
        engines: dict[str, Engine] = {}
        delays = parse_delays(rng.choice([[], [], ["stop=0.02"], ["stop=exponential(3)", "cycle=0.01"]]), Delays())
        result = prepare_cluster(
            parsed.objects, arrivals, delays, until=rng.choice([None, 86_400.0]), engines=engines
        ).run()
        assert result.end.reason in (EndReason.NOTHING_MORE, EndReason.UNTIL), name
        assert engines[""].cycles <= 100 * len(arrivals), name
        for pair in result.contended:
            assert pair.times == preemptions(result.records, pair.preemptor, pair.preempted) >= TURNS, name
            assert pair.times <= 2 * TURNS + 2 * len(arrivals), name
