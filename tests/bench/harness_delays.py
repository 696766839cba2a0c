"""The delays of one run of Kueue's performance harness, as the simulation is to be given them.

From the lines of the log of its Kueue, and the run times of the classes: what this machine took then, so that the
simulation is compared with that and not with another machine.

Of each delay the mean over every ten seconds, differences below 0 with the others: a few long calls are most of what is
waited for, and while the harness creates its Workloads the machine is slower than later. What the simulation computes
itself is taken off: the wait for one's turn, which the token bucket gives for the same calls, and the wait for a worker
of the harness's runner, which the ends of runs before give.

`creation`: how often a Workload was created while all were. `cycle`: from "Obtained heads" until the cycle puts the
first workload back or is done, in cycles that preempt nobody. `write`: from the turn of a call that says why a workload
waits until the scheduler goes on. `start`: from the turn of a reservation, "assumed in the cache", until Kueue hears
that the Workload is admitted. `release`: from there plus the run time, or when a worker is free, until Kueue hears that
it is finished. `stop`: from when Kueue hears of an eviction until it hears that the quota is free.
"""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Mapping
from typing import Final

from kueue_admission.simulate.delays import Delays, Writer
from kueue_admission.simulate.distributions import Changing, exponential
from tests.bench.generator import HARNESS_DELAYS, Creation
from tests.bench.harness_log import Call, HarnessLog, class_of

WINDOW_SECONDS: Final = 10.0

_Spans = list[tuple[float, float]]
"""When something began, and when it was over."""


def measure_delays(log: HarnessLog, run_seconds: Mapping[str, float]) -> tuple[Delays, Creation]:
    """The delays of the run that wrote this log; `run_seconds` by class."""
    began, last = min(log.created.values()), max(log.created.values())
    turns = _turns(log)
    writes = [(turns[call], call.goes_on) for call in log.explanations if call in turns and call.goes_on is not None]
    starts = [(turns[call], call.heard) for call in log.reservations if call.heard is not None]
    delays = Delays(
        HARNESS_DELAYS.decision,
        HARNESS_DELAYS.burst,
        cycle=_means(log.cycles, began),
        write=_means(writes, began),
        start=_means(starts, began),
        release=_means(_releases(log, run_seconds), began),
        workers=HARNESS_DELAYS.workers,
        stop=_means(log.stopped, began),
    )
    return delays, Creation((last - began) / max(1, len(log.created) - 1), 0)


def _turns(log: HarnessLog) -> dict[Call, float]:
    """When the token bucket lets each call through that was made."""
    calls = [call for call in log.reservations + log.explanations + log.evictions if call.heard is not None]
    writer = Writer(HARNESS_DELAYS.decision, HARNESS_DELAYS.burst)
    return {call: writer.write(call.made) for call in sorted(calls, key=lambda call: call.made)}


def _releases(log: HarnessLog, run_seconds: Mapping[str, float]) -> _Spans:
    """From when a worker could turn to the end of a run until Kueue heard of it."""
    ends = sorted(
        (finished, log.admitted[workload] + run_seconds[class_of(workload)])
        for workload, finished in log.finished.items()
        if workload in log.admitted
    )
    result: _Spans = []
    for number, (finished, due) in enumerate(ends):
        before = number - HARNESS_DELAYS.workers
        result.append((due if before < 0 else max(due, ends[before][0]), finished))
    return result


def _means(spans: _Spans, began: float) -> Changing:
    """The mean of each window; one without any has that of the window before it, or of the first that has one."""
    windows: defaultdict[int, list[float]] = defaultdict(list)
    for since, until in spans:
        windows[max(0, int((since - began) // WINDOW_SECONDS))].append(until - since)
    mean = statistics.fmean(windows[min(windows)]) if windows else 0.0
    means = []
    for number in range(max(windows, default=0) + 1):
        mean = statistics.fmean(windows[number]) if number in windows else mean
        means.append(exponential(round(max(0.0, mean), 4)))
    return Changing(WINDOW_SECONDS, tuple(means))
