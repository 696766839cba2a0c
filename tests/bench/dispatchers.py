"""The fleet's dispatcher beside Kueue's two, on real Kueue: `python -m tests.bench.dispatchers` prints the figures.

One lab: a manager and four workers, simulated nodes. First 300 jobs that do not end, with the fleet's dispatcher: where
each of them is, and where the core's own simulation puts it. Then 120 jobs with arrivals and run times from a seed,
once for each dispatcher.
"""

from __future__ import annotations

import json
import math
import random
import sys
import tempfile
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from controller_lab import JOBS, MANAGER, ControllerLab, controller_lab, fleet_data, install_kueue, job, queue_data
from kueue_admission.simulate.delays import Delays
from kueue_admission.simulate.documents import Document
from kueue_fleet.fleet_file import parse_fleet
from kueue_fleet.fleet_simulation.fleet import prepare_fleet
from kueue_fleet.jobs.problems import STEP_LABEL
from kueue_fleet.jobs.workload_file import WorkloadFile
from kueue_rehearsal.jobs.witness import Witness
from one_cluster import KUEUE, Json, OneCluster, condition, wait_until

SEED: Final = 20261121
COUNT: Final = 300
COMPARED: Final = 120
"""Jobs for each dispatcher: three runs of as many take a quarter of an hour."""
PRICES: Final = {"europe-west4": 2.0, "us-east4": 1.0, "us-central1": 1.2, "asia-southeast1": 1.6}
"""Of one GPU in the region of each worker. Four, since Kueue's Incremental begins with three."""
REGIONS: Final = {f"worker-{region}": region for region in PRICES}
WIDE_GPUS: Final = 110
"""Of each worker, in the queue where the jobs that are bound to one region are too many for it."""
BUSY_GPUS: Final = 12
DISPATCHERS: Final = ("External", "AllAtOnce", "Incremental")
PATIENCE: Final = 900.0
UNCHANGED_SECONDS: Final = 15.0


def data(dispatcher: str) -> Json:
    """A fleet with a wide queue, where nothing waits, and one where jobs wait for each other."""
    result = fleet_data(
        REGIONS,
        prices={region: {"l4": price} for region, price in PRICES.items()},
        dispatch={"widenAfter": "60s", "giveUpAfter": "1h"},
    )
    queues = [queue_data("wide", "l4", WIDE_GPUS), queue_data("busy", "l4", BUSY_GPUS), *result["clusterQueues"]]
    result["clusterQueues"] = queues
    result["localQueues"] = [{"namespace": "team", "name": q["name"], "clusterQueue": q["name"]} for q in queues]
    if dispatcher != "External":
        result["multiKueue"] = {"credentials": result["multiKueue"]["credentials"], "dispatcher": dispatcher}
        result["admissionChecks"] = [check for check in result["admissionChecks"] if check["name"] != "fleet"]
        gated = next(queue for queue in queues if queue["name"] == "gated")
        del gated["admissionChecksStrategy"]
        del result["controller"]
    return result


def jobs(queue: str, count: int, draw: random.Random, seconds: tuple[int, int]) -> list[Json]:
    """A third bound to the first region, a sixth to each other one, a sixth free."""
    result = []
    first, *others = PRICES
    for index in range(count):
        region = draw.choice([first, first, *others, None])
        gpus = draw.choice([1, 1, 2])
        result.append(job(f"{queue}-{index:03}", gpus, region, queue, seconds=draw.randint(*seconds)))
    return result


@dataclass
class Followed:
    """What was seen of the Workloads of one cluster, and when."""

    first: dict[str, float] = field(default_factory=dict)
    held: dict[str, tuple[str, int, float]] = field(default_factory=dict)
    """By uid: name, GPUs, since when."""
    spans: list[tuple[str, int, float, float]] = field(default_factory=list)
    finished: set[str] = field(default_factory=set)
    """Jobs that ran to their end here, by the name of the job."""

    def __call__(self, item: Json, gone: bool) -> None:
        now, uid, name = time.monotonic(), item["metadata"]["uid"], item["metadata"]["name"]
        self.first.setdefault(uid, now)
        if condition(item, "Finished") == "True":
            self.finished.add(name.removeprefix("job-").rpartition("-")[0])
        holds = not gone and condition(item, "QuotaReserved") == "True" and condition(item, "Finished") != "True"
        if holds and uid not in self.held:
            template = item["spec"]["podSets"][0]["template"]["spec"]["containers"][0]
            self.held[uid] = (name, int(template["resources"]["requests"]["nvidia.com/gpu"]), now)
        elif not holds and uid in self.held:
            self.spans.append((*self.held.pop(uid), now))


def twice(spans: Iterable[tuple[str, int, float, float]]) -> tuple[int, float]:
    """Jobs that held quota on several workers at once, and for how many GPU seconds more than on one of them."""
    by_name: dict[str, list[tuple[float, float, int]]] = {}
    for name, gpus, begin, end in spans:
        by_name.setdefault(name, []).append((begin, end, gpus))
    count, total = 0, 0.0
    for held in by_name.values():
        seconds, until = 0.0, -math.inf
        for begin, end, _ in sorted(held):
            seconds += max(0.0, min(end, until) - begin)
            until = max(until, end)
        count += seconds > 0
        total += seconds * held[0][2]
    return count, total


def agreement(lab: ControllerLab) -> dict[str, Any]:
    """Jobs that do not end: those that are elsewhere than the simulation says, of how many.

    Jobs bound to a region that is full wait there, in both.
    """
    given = jobs("wide", COUNT, random.Random(SEED), (100000, 100000))
    # While 300 jobs come at once, Kueue takes more than a minute to admit some: no second cluster is asked meanwhile.
    patient = {"dispatch": {"widenAfter": "1h", "giveUpAfter": "2h"}}
    lab.start_controller("agreement", **patient)
    for body in given:
        lab.submit(body)
    results = wait_until(Settled(lab), PATIENCE)
    real = {_job(item): item["status"].get("clusterName") for item in results}
    names = {item["metadata"]["name"]: _job(item) for item in results}
    # Creation times have whole seconds, and Kueue takes those of one second in the order of their random uids: the
    # simulation is given the order in which they got their quota.
    order: dict[str, None] = {}
    for line in lab.replicas[-1].lines("dispatch"):
        order.setdefault(names[line["workload"].partition("/")[2]])
    bodies = {body["metadata"]["name"]: body for body in given}
    documents, steps = [], {}
    for index, name in enumerate(order):
        body = bodies[name]
        body["metadata"]["labels"][STEP_LABEL] = name
        documents.append(Document(name, body))
        steps[name] = float(index)
    fleet = lab.fleet.wire()
    fleet["controller"] |= patient
    file = WorkloadFile(steps=steps)
    result = prepare_fleet(
        parse_fleet(fleet), file, Delays(), seed=SEED, manifests=documents, until=float(COUNT + 60)
    ).run()
    expected = {one["name"]: one["cluster"] for one in result.as_json()["workloads"] if one["admittedAt"] is not None}
    lab.replicas[-1].stop()
    lab.clear()
    elsewhere = sorted(name for name in bodies if expected.get(name) != real.get(name))
    places = {where: list(real.values()).count(where) for where in (*REGIONS, None)}
    return {"jobs": len(real), "elsewhere": elsewhere, "in": {where or "waiting": n for where, n in places.items()}}


def _job(workload: Json) -> str:
    return str(workload["metadata"]["ownerReferences"][0]["name"])


class Settled:
    """The manager's Workloads, once each is admitted or waits where it was nominated, and for a while none changed.

    Of copies that are like one that does not fit Kueue says nothing in their status: it does not look at them.
    """

    def __init__(self, lab: ControllerLab) -> None:
        self._lab = lab
        self._last: tuple[set[str], float] = set(), 0.0

    def __call__(self) -> list[Json] | None:
        items = self._lab.manager.items(f"{KUEUE}/workloads")
        copies = {name: self._names(cluster) for name, cluster in self._lab.workers.items()}
        for item in items:
            nominated = (item.get("status") or {}).get("nominatedClusterNames") or []
            there = all(item["metadata"]["name"] in copies[name] for name in nominated)
            if condition(item, "Admitted") != "True" and not (nominated and there):
                return None
        admitted, now = {_job(item) for item in items if condition(item, "Admitted") == "True"}, time.monotonic()
        if admitted != self._last[0]:
            self._last = admitted, now
        return items if len(items) == COUNT and now - self._last[1] > UNCHANGED_SECONDS else None

    @staticmethod
    def _names(cluster: OneCluster) -> set[str]:
        return {item["metadata"]["name"] for item in cluster.items(f"{KUEUE}/workloads")}


def compare(lab: ControllerLab, dispatcher: str) -> dict[str, Any]:
    """The same arrivals for one dispatcher."""
    lab.fleet = parse_fleet(data(dispatcher))
    install_kueue(lab, MANAGER)
    external = dispatcher == "External"
    if external:
        lab.start_controller("compare")
    draw = random.Random(SEED)
    given = jobs("busy", COMPARED, draw, (2, 8))
    followed = {name: Followed() for name in lab.workers}
    for name, cluster in lab.workers.items():
        Witness(cluster, f"{KUEUE}/workloads", followed[name])
    running = _Running()
    Witness(lab.manager, f"{KUEUE}/workloads", running)
    submitted: dict[str, float] = {}
    began, due = time.monotonic(), 0.0
    for body in given:
        due += draw.expovariate(4.0)
        time.sleep(max(0.0, began + due - time.monotonic()))
        submitted[body["metadata"]["name"]] = time.monotonic()
        lab.submit(body)

    def all_ended() -> bool:
        return sum(condition(item, "Complete") == "True" for item in lab.manager.items(JOBS)) == COMPARED

    wait_until(all_ended, PATIENCE)
    took = time.monotonic() - began
    bound = {body["metadata"]["name"]: body["metadata"]["labels"].get("kueue-fleet.dev/regions") for body in given}
    ran = {name: worker for worker, one in followed.items() for name in one.finished}
    wrong = sum(1 for name, worker in ran.items() if bound[name] is not None and REGIONS[worker] != bound[name])
    lab.clear()
    time.sleep(1.0)
    waits = sorted(at - submitted[name] for name, at in running.seen.items())
    copies = sum(len(one.first) for one in followed.values())
    count, gpu_seconds = twice(span for one in followed.values() for span in one.spans)
    if external:
        lab.replicas[-1].stop()
    return {
        "dispatcher": dispatcher,
        "jobs": len(ran),
        "median_seconds": waits[len(waits) // 2],
        "p95_seconds": waits[int(0.95 * (len(waits) - 1))],
        "all_seconds": took,
        "copies": copies,
        "thrown_away": copies - COMPARED,
        "wrong_region": wrong,
        "held_twice": count,
        "held_twice_gpu_seconds": gpu_seconds,
    }


class _Running:
    """When each job was first seen to be admitted, or to have ended where that was not seen."""

    def __init__(self) -> None:
        self.seen: dict[str, float] = {}

    def __call__(self, item: Json, gone: bool) -> None:
        if not gone and "True" in (condition(item, "Admitted"), condition(item, "Finished")):
            self.seen.setdefault(_job(item), time.monotonic())


def run() -> dict[str, Any]:
    """Everything, in a folder that is gone afterwards."""
    with tempfile.TemporaryDirectory() as folder, controller_lab(Path(folder), data("External")) as lab:
        tell(f"{COUNT} jobs that do not end, beside the simulation")
        first, rows = agreement(lab), []
        tell(f"{first}")
        for name in DISPATCHERS:
            tell(f"{COMPARED} jobs, dispatcher {name}")
            rows.append(compare(lab, name))
            tell(f"{rows[-1]}")
        return {"agreement": first, "dispatchers": rows}


def tell(text: str) -> None:
    """On stderr, since stdout is for the figures."""
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    print(json.dumps(run()))
    sys.exit(0)
