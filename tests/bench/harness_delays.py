"""The delays of one run of Kueue's performance harness, from the log of its Kueue (`--withLogs --withLogsLevel=2`).

In: lines of minimalkueue.err.log, and the run times of the classes. Out: the delays that the simulation is to be given,
so that it is compared with what this machine measured, not with what another one would.

`creation`: how often a Workload was created while all were. `write`: between two "Workload re-queued" of one cycle, in
which the scheduler writes one status. `start`: from "assumed in the cache" until Kueue hears that the Workload is
admitted. Both less the wait for their turn, which the same token bucket gives for the same calls. `release`: from
there, less the run time, until Kueue hears that the Workload is finished.
"""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from kueue_fleet.simulation.delays import Delays
from kueue_fleet.simulation.distributions import Distribution, exponential
from kueue_fleet.simulation.generator import HARNESS_DELAYS, Creation
from kueue_fleet.simulation.writer import Writer

MESSAGES = {
    "Workload create event": "created",
    "Workload update event": "updated",
    "Workload assumed in the cache": "assumed",
    "Workload re-queued": "requeued",
}


def measure_delays(lines: Iterable[str], run_seconds: Mapping[str, float]) -> tuple[Delays, Creation]:
    """The delays of the run that wrote these lines; `run_seconds` by class, the first part of a Workload's name."""
    created: dict[str, float] = {}
    assumed: dict[str, float] = {}
    admitted: dict[str, float] = {}
    finished: dict[str, float] = {}
    writes: list[float] = []
    starts: list[float] = []
    writer = Writer(HARNESS_DELAYS.decision, HARNESS_DELAYS.burst)
    last: tuple[int, float] | None = None
    for time, what, data in _events(lines):
        key = f"{data['workload']['namespace']}/{data['workload']['name']}"
        if what == "requeued":
            cycle = int(data["schedulingCycle"])
            if last is not None and last[0] == cycle:
                writes.append(max(0.0, time - writer.write(last[1])))
            last = cycle, time
        elif what == "created":
            created.setdefault(key, time)
        elif what == "assumed":
            assumed[key] = writer.write(time)
        elif data["status"] == "admitted" and data.get("prevStatus") != "admitted":
            admitted[key] = time
            starts.append(max(0.0, time - assumed[key]))
        elif data["status"] == "finished":
            finished.setdefault(key, time)
    releases = [
        finished[key] - at - run_seconds[key.partition("/")[2].partition("-")[0]]
        for key, at in admitted.items()
        if key in finished
    ]
    delays = Delays(
        HARNESS_DELAYS.decision,
        HARNESS_DELAYS.burst,
        write=_typical(writes),
        start=_typical(starts),
        release=_mean(releases),
        stop=_mean(releases),
    )
    times = sorted(created.values())
    return delays, Creation((times[-1] - times[0]) / max(1, len(times) - 1), 0)


def _events(lines: Iterable[str]) -> Iterable[tuple[float, str, dict[str, Any]]]:
    for line in lines:
        parts = line.split("\t")
        what = MESSAGES.get(parts[4]) if len(parts) > 5 else None
        if what is not None:
            second, _, fraction = parts[0].rstrip("Z").partition(".")
            time = datetime.fromisoformat(f"{second}+00:00").timestamp() + float(f"0.{fraction or 0}")
            yield time, what, json.loads(parts[5])


def _mean(seconds: list[float]) -> Distribution:
    return exponential(round(statistics.fmean(seconds), 4) if seconds else 0.0)


def _typical(seconds: list[float]) -> Distribution:
    """With the median of these: what calls took that were sent when others had been held up says little of a call."""
    return exponential(round(statistics.median(seconds) / math.log(2), 4) if seconds else 0.0)
