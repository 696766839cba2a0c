"""Time per decision by the length of the queue: `python -m tests.bench.decisions` prints one row for each length.

One ClusterQueue that is always full: each round a workload finishes, a cycle decides about the head of the queue, and
another workload arrives, so that the queue keeps its length. Workloads have 8 priorities and 64 sizes, and half of the
heads do not fit, so that parking and its undoing are in the figure.
"""

from __future__ import annotations

import gc
import json
import math
import random
import sys
import time
from collections import deque
from typing import Any, Final

from kueue_admission.decide.decisions import QuotaReserved
from kueue_admission.decide.engine import Engine
from kueue_admission.decide.events import CycleStarted, Finished, Submitted
from kueue_admission.decide.model import (
    ClusterQueue,
    FlavorQuotas,
    LocalQueue,
    Objects,
    ResourceFlavor,
    ResourceGroup,
    ResourceQuota,
    Workload,
)
from kueue_admission.decide.pods import PodSet

LENGTHS: Final = (1_000, 4_000, 16_000, 64_000)
ROUNDS: Final = 20
RUNNING: Final = 50


def objects() -> Objects:
    """One queue with room for some fifty workloads."""
    quota = (("cpu", ResourceQuota(RUNNING * 32_000)),)
    group = ResourceGroup(("cpu",), (FlavorQuotas("default", quota),))
    return Objects(
        cluster_queues=(ClusterQueue("cq", groups=(group,)),),
        local_queues=(LocalQueue("ns", "lq", "cq"),),
        flavors=(ResourceFlavor("default"),),
    )


def measure(length: int) -> dict[str, float]:
    """Microseconds for each decision with so many pending workloads, and how many decisions were timed."""
    draw = random.Random(length)
    engine = Engine(objects())
    number, now = 0, 0.0

    def submit() -> None:
        nonlocal number
        requests = (("cpu", 1000 * draw.randint(1, 64)),)
        pods = PodSet(requests=requests, node_requests=requests)
        name = f"w{number:08}"
        workload = Workload("ns", name, name, "lq", (pods,), created=now, priority=draw.randint(0, 7))
        engine.handle(Submitted(now, workload))
        number += 1

    for _ in range(length):
        submit()
    running: deque[str] = deque()
    decided, spent = 0, 0.0
    gc.disable()
    for index in range(-2, ROUNDS):
        now += 1.0
        began = time.process_time()
        if running:
            engine.handle(Finished(now, running.popleft()))
        admitted = 0
        while engine.wants_cycle:
            decisions = engine.handle(CycleStarted(now))
            kept = [decision.key for decision in decisions if isinstance(decision, QuotaReserved)]
            running.extend(kept)
            admitted += len(kept)
            if index >= 0:
                decided += 1
        if index >= 0:
            spent += time.process_time() - began
        for _ in range(admitted):
            submit()
    gc.enable()
    return {"pending": length, "microseconds": spent / decided * 1e6, "decisions": decided}


def rows() -> list[dict[str, Any]]:
    """All lengths; `log` is how much longer than the first a decision would take if it grew as the logarithm."""
    measured = [min((measure(length) for _ in range(2)), key=lambda row: row["microseconds"]) for length in LENGTHS]
    first = measured[0]
    return [
        {
            **row,
            "ratio": row["microseconds"] / first["microseconds"],
            "log": math.log(row["pending"]) / math.log(first["pending"]),
        }
        for row in measured
    ]


if __name__ == "__main__":
    print(json.dumps(rows()))
    sys.exit(0)
