"""The live pages with 15,000 Workloads that wait: `python -m tests.bench.page WORKLOADS` prints CPU in seconds."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from kueue_fleet.cli import live_fleet
from kueue_fleet.cli.fleet_files import load_fleet, load_prices
from kueue_fleet.cli.live_fleet import FleetReader
from kueue_fleet.cli.ui import History, look
from kueue_fleet.page.answers import jobs_answer
from kueue_fleet.page.team_page import team_rows
from kueue_fleet.status import ClusterObjects

STACK = Path(__file__).parents[2] / "stacks" / "Pulumi.dws-multikueue.yaml"
REPEATS = 3


def workload(number: int) -> dict[str, Any]:
    """One that waits, and says why."""
    at, why = "2026-11-27T03:40:00Z", "couldn't assign flavors to pod set main: insufficient unused quota"
    says = "It asks for 4 nvidia.com/gpu; 2 is free in flavor l4, 2 is missing.\nNext: Wait.\nStart: not known"
    refused = {"status": "False", "type": "QuotaReserved", "reason": "WaitingForQuota", "message": why}
    waiting = {"status": "True", "type": "kueue-fleet.dev/Waiting", "reason": "WaitingForQuota", "message": says}
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": f"train-{number}", "uid": "u", "controller": True}
    metadata = {"name": f"job-train-{number}", "namespace": "team-vision", "creationTimestamp": at, "uid": str(number)}
    resources = {"requests": {"nvidia.com/gpu": "4", "cpu": "8", "memory": "64Gi"}}
    template = {"spec": {"containers": [{"name": "main", "image": "train:1", "resources": resources}]}}
    return {
        "metadata": {**metadata, "ownerReferences": [owner]},
        "spec": {"queueName": "dws", "podSets": [{"name": "main", "count": 2, "template": template}]},
        "status": {"conditions": [{**each, "lastTransitionTime": at} for each in (refused, waiting)]},
    }


def best(work: Callable[[], object]) -> float:
    """CPU of the quickest of some."""
    times = []
    for _ in range(REPEATS):
        began = time.process_time()
        work()
        times.append(time.process_time() - began)
    return min(times)


def measure(count: int) -> dict[str, float]:
    """CPU by what is done, in seconds."""
    text, fleet = json.dumps([workload(number) for number in range(count)]), load_fleet(STACK)

    def read(command: str, cluster: str, role: str, *given: Any) -> ClusterObjects:
        del command, given
        return ClusterObjects(role, {"workloads": json.loads(text) if cluster == fleet.home else []})

    live_fleet._read = read
    reader, history, prices = FleetReader("ui", fleet, None, 60.0), History(fleet, None), load_prices(None)
    rows = look(fleet, reader, prices, history).jobs
    now, workloads = datetime(2026, 11, 27, tzinfo=UTC), json.loads(text)
    return {
        "parse": best(lambda: json.loads(text)),
        "look": best(lambda: look(fleet, reader, prices, history)),
        "search": best(lambda: jobs_answer(rows, {"q": "train-14", "state": "Pending"})),
        "team": best(lambda: team_rows("lab", "manager", workloads, now)),
    }


if __name__ == "__main__":
    print(json.dumps(measure(int(sys.argv[1]))))
