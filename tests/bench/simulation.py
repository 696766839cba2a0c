"""Kueue's own performance sets, simulated: `python -m tests.bench.simulation NAME` prints seconds and peak memory."""

from __future__ import annotations

import json
import random
import resource
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Sequence
from typing import Any, Final

from kueue_admission.simulate.agenda import Agenda
from kueue_admission.simulate.delays import Delays
from kueue_admission.simulate.result import Result
from tests.bench.generator import HARNESS_DELAYS, Creation, prepare_generated, read_generator

# Cohorts, queues in each; per class: workloads in a queue, interval, run time, priority, CPUs.
# Source: kueue@v0.19.2 test/performance/scheduler/configs/{baseline,large-scale}/generator.yaml.
SETS: Final[dict[str, tuple[int, int, dict[str, tuple[int, int, int, int, int]]]]] = {
    "baseline": (
        5,
        6,
        {"small": (350, 100, 200, 50, 1), "medium": (100, 500, 500, 100, 5), "large": (50, 1200, 1000, 200, 20)},
    ),
    "large-scale": (
        10,
        100,
        {"small": (35, 60, 150, 50, 1), "medium": (11, 300, 350, 100, 5), "large": (4, 700, 700, 200, 20)},
    ),
}
# Mean milliseconds to admission that Kueue's continuous integration measures (rangespec.yaml beside the above).
HARNESS_MEANS: Final = {
    "baseline": {"large": 16_501, "medium": 76_768, "small": 215_468},
    "large-scale": {"large": 105_604, "medium": 256_413, "small": 700_379},
}


def generator_text(name: str) -> str:
    """The set as a generator file."""
    cohorts, queues, classes = SETS[name]
    sets = [
        {
            "count": count,
            "creationIntervalMs": interval,
            "workloads": [{"className": label, "runtimeMs": run, "priority": priority, "request": cpus}],
        }
        for label, (count, interval, run, priority, cpus) in classes.items()
    ]
    queue = {
        "className": "cq",
        "count": queues,
        "nominalQuota": 20,
        "borrowingLimit": 100,
        "reclaimWithinCohort": "Any",
        "withinClusterQueue": "LowerPriority",
        "workloadsSets": sets,
    }
    return json.dumps({"cohorts": [{"className": "cohort", "count": cohorts, "queuesSets": [queue]}]})


def measure(
    name: str, delays: Delays = HARNESS_DELAYS, creation: Creation | None = None, *, seeds: int = 1
) -> dict[str, Any]:
    """Seconds of wall and CPU, peak MiB of this process, and seconds to admission by class, over so many seeds."""
    began, busy = time.perf_counter(), time.process_time()
    result = prepare_generated(read_generator(generator_text(name), name, creation=creation), delays).run()
    seconds, cpu = time.perf_counter() - began, time.process_time() - busy
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    waits: defaultdict[str, list[float]] = defaultdict(list)
    _add_waits(waits, result)
    for seed in range(1, seeds):
        generated = read_generator(generator_text(name), name, creation=creation)
        _add_waits(waits, prepare_generated(generated, delays, seed=seed).run())
    means = {label: statistics.fmean(seconds) for label, seconds in sorted(waits.items())}
    return {
        "wallSeconds": seconds,
        "cpuSeconds": cpu,
        "peakMiB": peak,
        "means": means,
        "quantiles": {label: quantiles(seconds) for label, seconds in sorted(waits.items())},
        "workloads": len(result.records),
        "agendaSeconds": bare_agenda(len(result.records)),
    }


def quantiles(seconds: Sequence[float]) -> tuple[float, float]:
    """Median and 90th percentile."""
    tenths = statistics.quantiles(seconds, n=10, method="inclusive")
    return tenths[4], tenths[8]


def _add_waits(waits: defaultdict[str, list[float]], result: Result) -> None:
    """As the harness's recorder counts (runner/recorder): to the last admission of each."""
    for record in result.records:
        assert record.finished_at is not None
        assert record.admitted_at is not None
        waits[record.label].append(record.admitted_at - record.arrived_at)


def bare_agenda(workloads: int) -> float:
    """CPU seconds of planning an arrival, an admission and an end for each workload, and letting them happen."""
    agenda = Agenda()
    draw = random.Random(0)
    began = time.process_time()
    for _ in range(workloads):
        at = draw.random()
        agenda.plan(at, lambda now: agenda.plan(now + 1.0, lambda later: agenda.plan(later + 1.0, lambda _: None)))
    agenda.happen(4.0)
    return time.process_time() - began


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1])))
