"""Random fleets with the jobs that are submitted to them, for a simulation that has to end.

Everything that can start over is among them: preemption in all its kinds, with and without fair sharing, every
dispatcher, DWS that keeps jobs waiting, Spot nodes that are taken away, pools that are too small, jobs that no worker
can ever hold, workers that cannot be reached, and delays from none to long.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tests.simulation.fleets import GPU, dispatched_data, fleet_data, workload_file

from kueue_admission.simulate.delays import Delays, parse_delays
from kueue_fleet.fleet_file import FleetSpec, parse_fleet
from kueue_fleet.jobs.workload_file import WorkloadFile

Json = dict[str, Any]

STRATEGIES = (["LessThanOrEqualToFinalShare", "LessThanInitialShare"], ["LessThanOrEqualToFinalShare"],
              ["LessThanInitialShare"])  # fmt: skip
GPUS = (0, 1, 2, 4, 5)
"""What a queue may have of its own."""
SECONDS = 6 * 3600.0
"""No job arrives later than that, and no simulation is asked for longer."""


@dataclass(frozen=True)
class RandomFleet:
    """A fleet and what to simulate of it."""

    fleet: FleetSpec
    file: WorkloadFile
    delays: Delays
    until: float | None


def random_fleet(seed: int, index: int, large: Sequence[object] = ()) -> RandomFleet:
    """The fleet of this number; each time may also be one of the `large` ones."""
    rng = random.Random(f"{seed} {index}")
    data = _fleet(rng)
    return RandomFleet(
        parse_fleet(data),
        _jobs(rng, data, list(large)),
        parse_delays([text for text in _DELAYS if rng.random() < 0.3], Delays()),
        rng.choice([None, None, 3600.0, SECONDS]),
    )


_DELAYS = ("stop=exponential(5)", "stop=0.02", "cycle=0.01", "write=exponential(0.05)", "start=0.1", "decision=0.02",
           "burst=10", "release=uniform(0, 3)", "workers=2")  # fmt: skip


def _fleet(rng: random.Random) -> Json:
    dispatcher = rng.choice(["AllAtOnce", "Incremental", "External"])
    if dispatcher == "External":
        data = dispatched_data(
            widenAfter=rng.choice(["1m", "5m", "3.7s"]),
            giveUpAfter=rng.choice(["10m", "1h"]),
            retryAfter=rng.choice(["0s", "1m", "5m"]),
            step=rng.choice([1, 2]),
        )
    else:
        data = fleet_data()
    if dispatcher == "Incremental":
        data["multiKueue"] |= {"dispatcher": "Incremental", "incremental": {"stepSize": 1}}
    data["multiKueue"]["headroomPercent"] = rng.choice([100, 150])
    data["workloadPriorityClasses"] = [{"name": f"p{value}", "value": value} for value in (0, 10, 20)]
    data["nodePools"][0]["autoscaling"]["totalMaxNodeCount"] = 3 * max(GPUS)
    names = [f"q{number}" for number in range(rng.choice([1, 2, 3]))]
    data["cohorts"] = [{"name": "all"}]
    data["clusterQueues"] = [_queue(rng, name) for name in names]
    data["teams"] = [
        {"name": team, "localQueues": [{"name": name, "clusterQueue": name} for name in names], **bound}
        for team, bound in (("team-a", {}), ("team-eu", {"allowedRegions": ["europe-west4"]}))
    ]
    _add_checks(rng, data)
    configuration: Json = {}
    if rng.random() < 0.5:
        configuration["fairSharing"] = {"preemptionStrategies": rng.choice(STRATEGIES)}
    if rng.random() < 0.5:
        configuration["waitForPodsReady"] = _patience(rng)
    if configuration:
        data["kueue"] = {"configuration": configuration}
    return data


def _patience(rng: random.Random) -> Json:
    requeuing: Json = {"backoffBaseSeconds": rng.choice([0, 1, 60]), "timestamp": rng.choice(["Eviction", "Creation"])}
    if rng.random() < 0.5:
        requeuing["backoffLimitCount"] = rng.choice([1, 5])
    return {"timeout": rng.choice(["1m", "5m"]), "requeuingStrategy": requeuing}


def _queue(rng: random.Random, name: str) -> Json:
    quota: Json = {"name": GPU, "nominalQuota": rng.choice(GPUS)}
    if rng.random() < 0.3:
        quota["borrowingLimit"] = rng.choice([0, 2])
    resources = [quota, {"name": "cpu", "nominalQuota": 96}, {"name": "memory", "nominalQuota": "400Gi"}]
    reclaim = rng.choice(["Never", "LowerPriority", "Any"])
    preemption: Json = {
        "withinClusterQueue": rng.choice(["Never", "LowerPriority", "LowerOrNewerEqualPriority"]),
        "reclaimWithinCohort": reclaim,
    }
    if reclaim != "Never" and rng.random() < 0.3:
        preemption["borrowWithinCohort"] = {"policy": "LowerPriority", "maxPriorityThreshold": 10}
    group = {"coveredResources": [GPU, "cpu", "memory"], "flavors": [{"name": "l4-spot", "resources": resources}]}
    return {
        "name": name,
        "cohortName": "all",
        "namespaceSelector": {},
        "queueingStrategy": rng.choice(["BestEffortFIFO", "BestEffortFIFO", "StrictFIFO"]),
        "preemption": preemption,
        "fairSharing": {"weight": rng.choice(["1", "1", "2", "0.5"])},
        "resourceGroups": [group],
    }


def _add_checks(rng: random.Random, data: Json) -> None:
    checks: list[Json] = []
    if rng.random() < 0.4:
        checks.append(
            {"name": "dws", "provisioningRequest": {"provisioningClassName": "check-capacity.autoscaling.x-k8s.io"}}
        )
    if "controller" in data and rng.random() < 0.5:
        checks.append({"name": "ours", "controllerName": "kueue-fleet.dev/admission-check", "clusters": ["manager"]})
        data["controller"]["checks"] = [{"name": "ours", "regions": True}]
    if "controller" in data:
        data["controller"]["watchdog"] = {"provisioningTimeout": "10m", "retries": rng.choice([0, 2])}
    data["admissionChecks"] = checks
    for queue in data["clusterQueues"]:
        chosen = [{"name": check["name"]} for check in checks if rng.random() < 0.7]
        if chosen:
            queue["admissionChecksStrategy"] = {"admissionChecks": chosen}


def _jobs(rng: random.Random, data: Json, large: list[object]) -> WorkloadFile:
    queues = [queue["name"] for queue in data["clusterQueues"]]
    jobs = []
    for number in range(rng.randint(2, 8)):
        entry: Json = {
            "name": f"job{number}",
            "namespace": rng.choice(["team-a", "team-a", "team-eu"]),
            "queue": rng.choice(queues),
            "count": rng.choice([1, 1, 2, 5]),
            "interval": rng.choice([0, 60, "exponential(300)", *large]),
            "start": rng.choice([0, 0, "uniform(0, 3000)", 10 * number, *large]),
            "priorityClass": rng.choice(["p0", "p10", "p20"]),
            "pods": rng.choice([1, 1, 2, 4]),
            "requests": {GPU: rng.choice([0, 1, 1, 1, 9]), "cpu": rng.choice([1, 1, 1, 10, 40])},
        }
        if rng.random() < 0.8:
            entry["runSeconds"] = rng.choice([0, 60, "exponential(900)", 20_000, *large])
        jobs.append(entry)
    more: Json = {}
    if rng.random() < 0.7:
        more["waits"] = [{"seconds": rng.choice([0, 30, "exponential(600)", "exponential(20000)", *large])}]
    if rng.random() < 0.4:
        back = rng.choice([0, 600, *large])
        more["reclaims"] = [{"flavor": "l4-spot", "perHour": rng.choice([0.2, 3, 60]), "back": back}]
    if rng.random() < 0.3:
        more["outages"] = [{"cluster": data["clusters"][1]["name"], "at": rng.choice([5, 600]), "seconds": 1500}]
    if large and rng.random() < 0.3:
        more["stockOuts"] = [{"flavor": "l4-spot", "at": 600, "seconds": 1e9}]
    return workload_file(jobs, **more)
