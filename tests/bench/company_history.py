"""Nine weeks of a made-up company, as `kueue-fleet record` would have written them.

`python -m tests.bench.company_history lab STORE` writes those of one.

Jobs are drawn, and run on the fleet of the company's file in a simulation, in which DWS takes its time and Spot nodes
are lost. What `plan` may know of that is what is in the store. The same seed gives the same history.
"""

from __future__ import annotations

import json
import math
import random
import sys
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from kueue_admission.history.schema import Event, Kind
from kueue_admission.history.store import Store
from kueue_admission.simulate.clock import drive
from kueue_admission.simulate.delays import Delays
from kueue_admission.simulate.records import Phase, Record, Run
from kueue_fleet.fleet_file import FleetSpec, parse_fleet_text
from kueue_fleet.fleet_simulation.fleet import fleet_run
from kueue_fleet.jobs.workload_file import WorkloadFile

EXAMPLES = Path(__file__).parents[2] / "examples" / "companies"
BEGIN = datetime(2026, 9, 7, tzinfo=UTC).timestamp()
"""A Monday."""
WEEKS = 9
HOUR, DAY = 3600.0, 86_400.0
Job = dict[str, Any]


def job(queue: str, number: int, at: float, gpus: int, seconds: float, *, most: int = 8) -> Job:
    """A job whose pods have at most so many GPUs."""
    team, _, local = queue.partition("/")
    pods = max(1, gpus // most)
    requests = {"nvidia.com/gpu": gpus // pods}
    run = max(300, round(seconds))
    about = {"name": f"{team}-{local}-{number}", "namespace": team, "queue": local}
    return {**about, "start": round(at), "runSeconds": run, "pods": pods, "requests": requests}


def by_day(draw: random.Random, each_day: float, opens: float, closes: float) -> Iterator[float]:
    """Times on working days, so many on average, and a fifth as many at weekends."""
    for day in range(7 * WEEKS):
        mean = each_day if day % 7 < 5 else each_day / 5
        at = opens * HOUR
        while (at := at + draw.expovariate(mean / ((closes - opens) * HOUR))) < closes * HOUR:
            yield day * DAY + at


def hours(draw: random.Random, median: float, spread: float = 0.8) -> float:
    """Seconds; the median is in hours."""
    return draw.lognormvariate(math.log(median), spread) * HOUR


def lab(draw: random.Random) -> Iterator[Job]:
    """Experiments of up to a node, and twice a week somebody submits the large trainings of a paper."""
    for number, at in enumerate(by_day(draw, 9, 9, 20)):
        yield job("explorers/gpu", number, at, draw.choice([1, 1, 2, 4, 4, 8]), hours(draw, 1.5))
    number = 0
    for week in range(WEEKS):
        for day in draw.sample(range(6), 2):
            begin = (7 * week + day) * DAY + draw.uniform(10, 18) * HOUR
            for _ in range(draw.randint(3, 7)):
                at, gpus = begin + draw.uniform(0, 5) * HOUR, draw.choice([8, 16, 16, 32])
                yield job("trainers/gpu", number, at, gpus, hours(draw, 8, 0.5))
                number += 1


def saas(draw: random.Random) -> Iterator[Job]:
    """Replicas come from seven to ten and go in the evening; batch jobs come at one, and twice as many on Sundays."""
    number = batch = 0
    for day in range(7 * WEEKS):
        for _ in range(draw.randint(9, 13) if day % 7 < 5 else draw.randint(4, 6)):
            at = day * DAY + draw.triangular(7, 10, 7.5) * HOUR
            yield job("product/gpu", number, at, draw.choice([1, 1, 2]), day * DAY + draw.uniform(18, 22) * HOUR - at)
            number += 1
        for _ in range(draw.randint(6, 11) * (2 if day % 7 == 6 else 1)):
            at = day * DAY + HOUR + draw.uniform(0, 900)
            yield job("data/gpu", batch, at, draw.choice([1, 2, 2, 4]), hours(draw, 1.2, 0.6), most=4)
            batch += 1


def regions(draw: random.Random) -> Iterator[Job]:
    """Three teams with days of their own; speech trains through the night."""
    for number, at in enumerate(by_day(draw, 8, 14, 24)):  # in UTC
        yield job("vision/gpu", number, at, draw.choice([1, 2, 4, 8, 8]), hours(draw, 2))
    for number, at in enumerate(by_day(draw, 6, 7, 23)):
        queue = f"language/{draw.choice(['us', 'us', 'eu'])}"
        yield job(queue, number, at, draw.choice([4, 8, 16]), hours(draw, 3))
    for number, at in enumerate(by_day(draw, 5, 15, 20)):
        yield job("speech/gpu", number, at, draw.choice([2, 4, 8, 8]), hours(draw, 6, 0.5))


COMPANIES: Mapping[str, Callable[[random.Random], Iterator[Job]]] = {"lab": lab, "saas": saas, "regions": regions}
TRUTH: Mapping[str, Job] = {
    "lab": {"waits": [{"check": "dws", "seconds": f"exponential({2.5 * HOUR})"}]},
    "saas": {"reclaims": [{"flavor": "l4-spot", "perHour": 0.06, "back": "exponential(900)"}]},
}
"""What happens to the company beside its jobs."""


def fleet_of(company: str) -> FleetSpec:
    """The fleet of a company."""
    file = EXAMPLES / f"{company}.yaml"
    return parse_fleet_text(file.read_text(), str(file))


def write(company: str, folder: str, seed: int = 1) -> int:
    """Write the history of a company into a store; how many events it has."""
    fleet = fleet_of(company)
    jobs = list(COMPANIES[company](random.Random(f"{company}:{seed}")))
    file = WorkloadFile.model_validate({"jobs": jobs, **TRUTH.get(company, {})})
    run = fleet_run(fleet, file, Delays(), seed=seed)
    drive(run.agenda, list(run.clusters.values()), 0.0, None)
    asked = {f"{item['namespace']}/{item['name']}": item for item in jobs}
    store = Store(folder, create=True)
    with store.writing():
        return store.add(e for key, entry in run.jobs.items() for e in events(fleet, entry.record, asked[key]))


def events(fleet: FleetSpec, record: Record, asked: Job) -> Iterator[Event]:
    """What a recorder has of a job: of its Workload where it was submitted, and of its copies on workers."""
    requests = {name: float(amount * asked["pods"]) for name, amount in asked["requests"].items()}
    container = {"resources": {"requests": {name: str(amount) for name, amount in asked["requests"].items()}}}
    pods = {"name": "main", "count": asked["pods"], "template": {"spec": {"containers": [container]}}}
    own = partial(_event, fleet, record, asked, fleet.home)
    submitted = {"priority": record.priority, "requests": requests, "pod_sets": json.dumps([pods])}
    yield own(Kind.ARRIVED, record.arrived_at, **submitted)
    before = record.arrived_at
    for number, run in enumerate(record.runs):
        where = run.cluster or fleet.home
        worker = where if where != fleet.home else ""
        yield from _run(record, run, own, before, worker)
        if worker:
            copy = partial(_event, fleet, record, asked, worker, number)
            yield copy(Kind.ARRIVED, before, **submitted)
            yield from _run(record, run, copy, before, worker)
        before = run.ended_at or before
    for count, eviction in enumerate(record.evictions, 1):
        yield own(Kind.EVICTED, eviction.time, reason=eviction.reason, count=count)
    if record.finished_at is not None:
        yield own(Kind.ENDED, record.finished_at, reason="Succeeded")


def _run(record: Record, run: Run, event: Callable[..., Event], since: float, worker: str) -> Iterator[Event]:
    given = {"cluster_queue": record.cluster_queue, "flavors": run.flavors}
    checked = [at for at, phase in record.phases if phase is Phase.CHECKS and since <= at <= run.admitted_at]
    yield event(Kind.RESERVED, checked[-1] if checked else run.admitted_at, **given)
    if checked and not worker:
        for at, state in ((checked[-1], "Pending"), (run.admitted_at, "Ready")):
            yield event(Kind.CHECK, at, check="dws", reason=state, **given)
    yield event(Kind.ADMITTED, run.admitted_at, worker=worker, **given)
    until = math.inf if run.ended_at is None else run.ended_at
    for at, phase in record.phases:
        if run.admitted_at <= at <= until and phase in (Phase.RUNNING, Phase.RECLAIMED):
            yield event(Kind.STARTED if phase is Phase.RUNNING else Kind.INTERRUPTED, at, **given)


def _event(
    fleet: FleetSpec, record: Record, asked: Job, cluster: str, copy: int | Kind, *more: Any, **about: Any
) -> Event:
    """An event there; a number comes first for a copy on a worker."""
    is_copy = not isinstance(copy, Kind)
    kind, time = more if is_copy else (copy, *more)
    uid = f"{cluster}/{record.key}/{copy}" if is_copy else record.key
    what = f"{about['check']}/{about['reason']}/" if kind is Kind.CHECK else ""
    return Event(
        kind=kind,
        time=round(BEGIN + time),
        key=f"{uid}/{kind}/{what}{BEGIN + time:.0f}",
        cluster=cluster,
        region=fleet.cluster(cluster).region,
        namespace=record.namespace,
        workload=f"job-{record.name}",
        uid=uid,
        job=f"Job/{record.name}",
        team=fleet.team_of[record.namespace],
        copy=is_copy,
        queue=asked["queue"],
        **about,
    )


if __name__ == "__main__":
    if len(sys.argv) not in (3, 4) or sys.argv[1] not in COMPANIES:
        sys.exit(f"usage: python -m tests.bench.company_history {'|'.join(COMPANIES)} STORE [SEED]")
    written = write(sys.argv[1], sys.argv[2], *map(int, sys.argv[3:]))
    print(f"{written} new events written to {sys.argv[2]}")
