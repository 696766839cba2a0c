"""A manager and many workers: twenty for each queue, which is as many as one MultiKueueConfig names."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import yaml

from kueue_admission.api.multi_kueue import MOST_CLUSTERS
from kueue_fleet.gke.regions import REGION_RANGES

STACK = Path(__file__).parents[2] / "stacks" / "Pulumi.dws-multikueue.yaml"


def large_fleet(count: int = MOST_CLUSTERS) -> dict[str, Any]:
    """The DWS stack's fleet with `count` workers, one after another in every region, and a queue for each 20."""
    fleet: dict[str, Any] = yaml.safe_load(STACK.read_text())["config"]["kueue-fleet:fleet"]
    manager = fleet["clusters"][0]
    regions = [region for region in REGION_RANGES if region != manager["region"]]
    names = [f"worker-{regions[n % len(regions)]}{f'-{n // len(regions)}' * (n >= len(regions))}" for n in range(count)]
    workers = [{"name": name, "role": "worker", "region": regions[n % len(regions)]} for n, name in enumerate(names)]
    fleet["clusters"] = [manager, *workers]
    fleet["multiKueue"]["workers"] = names
    if count > MOST_CLUSTERS:
        queue = fleet["clusterQueues"][0]
        groups = [names[first : first + MOST_CLUSTERS] for first in range(0, count, MOST_CLUSTERS)]
        fleet["clusterQueues"] = [
            {**copy.deepcopy(queue), "name": f"dws-{n}", "clusters": group} for n, group in enumerate(groups)
        ]
        for team in fleet["teams"]:
            team["localQueues"] = [{"name": f"gpu-{n}", "clusterQueue": f"dws-{n}"} for n, _ in enumerate(groups)]
    return fleet


def fleet_jobs(queues: int, jobs: int) -> dict[str, Any]:
    """A workload file of jobs with one GPU for an hour each, spread over the queues; one a second arrives at each."""
    names = ["gpu"] if queues == 1 else [f"gpu-{number}" for number in range(queues)]
    entry = {"namespace": "team-vision", "interval": 1, "runSeconds": 3600, "requests": {"nvidia.com/gpu": 1}}
    return {"jobs": [{**entry, "name": name, "queue": name, "count": jobs // queues} for name in names]}
