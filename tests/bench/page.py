"""The live pages with 15,000 Workloads that wait: `python -m tests.bench.page WORKLOADS` prints seconds."""

from __future__ import annotations

import json
import os
import sys
import time
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from subprocess import PIPE, Popen
from tempfile import TemporaryDirectory
from typing import Any
from urllib.request import urlopen

import pytest

from kueue_fleet.cli.fleet_files import load_fleet
from kueue_fleet.fleet_file.model.fleet_page import FleetPage
from kueue_fleet.objects.fleet_page import PageConfiguration
from kueue_fleet.page.team_page import team_rows
from tests.cli.live_fleet import serve

STACK = Path(__file__).parents[2] / "stacks" / "Pulumi.dws-multikueue.yaml"
API = "/apis/kueue.x-k8s.io/v1beta2"
WORKLOADS = f"{API}/workloads"
REPEATS, CHANGES = 3, 8
MANAGED: dict[str, dict[str, dict[str, str]]] = {
    f"f:field{number}": {"f:type": {}, "f:lastTransitionTime": {}} for number in range(30)
}


def workload(number: int) -> dict[str, Any]:
    """One that waits, and says why."""
    at, why = "2026-11-27T03:40:00Z", "couldn't assign flavors to pod set main: insufficient unused quota"
    says = "It asks for 4 nvidia.com/gpu; 2 is free in flavor l4, 2 is missing.\nNext: Wait.\nStart: not known"
    refused = {"status": "False", "type": "QuotaReserved", "reason": "WaitingForQuota", "message": why}
    waiting = {"status": "True", "type": "kueue-fleet.dev/Waiting", "reason": "WaitingForQuota", "message": says}
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": f"train-{number}", "uid": "u", "controller": True}
    written = [{"manager": name, "operation": "Update", "fieldsV1": MANAGED} for name in ("kueue", "kueue-admission")]
    metadata = {"name": f"job-train-{number}", "namespace": "team-vision", "creationTimestamp": at, "uid": str(number)}
    resources = {"requests": {"nvidia.com/gpu": "4", "cpu": "8", "memory": "64Gi"}}
    template = {"spec": {"containers": [{"name": "main", "image": "train:1", "resources": resources}]}}
    return {
        "metadata": {**metadata, "ownerReferences": [owner], "managedFields": written},
        "spec": {"queueName": "dws", "podSets": [{"name": "main", "count": 2, "template": template}]},
        "status": {"conditions": [{**item, "lastTransitionTime": at} for item in (refused, waiting)]},
    }


def opened(url: str) -> float:
    """Seconds until all is there that a browser asks for first."""
    began = time.monotonic()
    for name in ("", "page.css", "jobs.js", "ui.js", "live/jobs"):
        urlopen(url + name).read()
    jobs_shown(url)
    return time.monotonic() - began


def jobs_shown(url: str) -> int:
    """How many jobs the page has; 0: not known yet."""
    with urlopen(f"{url}live/events") as events:
        result: int | None = json.loads(events.readline().removeprefix(b"data: "))["jobs"]
        return result or 0


def wait_for(url: str, jobs: int) -> None:
    """Until the page has so many."""
    while jobs_shown(url) < jobs:
        time.sleep(0.02)


def cpu_of(process: int) -> float:
    """Seconds of CPU that it has used."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure(count: int) -> dict[str, float]:
    """Seconds of `status --page` in a process, on API servers with COUNT Workloads; of CPU, or as the name says."""
    fleet = load_fleet(STACK)
    command = [sys.executable, "-c", "from kueue_fleet.cli import main; main()", "status", "--page"]
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch, ExitStack() as stack:
        served = stack.enter_context(serve(fleet.cluster_names, patch, Path(folder) / "kubeconfig"))
        for tables in served.tables.values():
            tables.update({f"{API}/{kind}": [] for kind in ("clusterqueues", "workloads", "multikueueclusters")})
            tables["/api/v1/nodes"] = []
        served.tables[fleet.home][WORKLOADS] = workloads = [workload(number) for number in range(count)]
        began = time.monotonic()
        page = stack.enter_context(Popen([*command, str(STACK)], stdout=PIPE, text=True))
        stack.callback(page.terminate)
        assert page.stdout is not None
        url = page.stdout.readline().split()[1]
        wait_for(url, count)
        result = {"ready_wall": time.monotonic() - began, "open_wall": min(opened(url) for _ in range(REPEATS))}
        delays = []
        for number in range(count, count + CHANGES):
            changed = time.monotonic()
            served.change(fleet.home, WORKLOADS, "ADDED", workload(number))
            wait_for(url, number + 1)
            delays.append(time.monotonic() - changed)
        began, before = time.monotonic(), cpu_of(page.pid)
        time.sleep(20)
        result["idle_share"] = (cpu_of(page.pid) - before) / (time.monotonic() - began)
    now, began = datetime(2026, 11, 27, tzinfo=UTC), time.process_time()
    team_rows(PageConfiguration(fleet="lab", cluster="manager", page=FleetPage()), workloads, now)
    return {**result, "delay_wall": median(delays), "longest_wall": max(delays), "team": time.process_time() - began}


if __name__ == "__main__":
    print(json.dumps(measure(int(sys.argv[1]))))
