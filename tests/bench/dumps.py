"""Dumps of large clusters, as kubectl prints them, and how long one `explain` on them takes."""

from __future__ import annotations

import json
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import yaml
import yaml12

KUEUE: Final = "kueue.x-k8s.io/v1beta2"
FLAVORS: Final = ("a3-reserved", "a3-spot")
FIRST: Final = datetime(2026, 11, 20, 8, tzinfo=UTC)
MOMENT: Final = "2026-11-20T23:00:00"
CASES: Final = (
    (10_000, 0, 30, "yaml"),
    (10_000, 0, 30, "json"),
    (10_000, 8_000, 30, "yaml"),
    (10_000, 8_000, 30, "json"),
)
"""Pending workloads, workloads that hold quota, ClusterQueues, all in one cohort, and the format of the dump."""


class _WithoutAnchors(yaml.CSafeDumper):
    """As kubectl prints: a value that is there twice is printed twice."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def objects(pending: int, holders: int, queues: int) -> Iterator[dict[str, Any]]:
    """Every object of the cluster; the last one waits in the last queue that has one."""
    for name in FLAVORS:
        yield {"apiVersion": KUEUE, "kind": "ResourceFlavor", "metadata": {"name": name}}
    gpus = max(holders, 2) // queues // len(FLAVORS)
    for queue in range(queues):
        amounts = (("cpu", 8 * gpus), ("nvidia.com/gpu", gpus))
        resources = [{"name": name, "nominalQuota": str(amount)} for name, amount in amounts]
        yield {
            "apiVersion": KUEUE,
            "kind": "ClusterQueue",
            "metadata": {"name": f"cq-{queue}"},
            "spec": {
                "cohortName": "all",
                "namespaceSelector": {},
                "preemption": {"reclaimWithinCohort": "Any", "withinClusterQueue": "LowerPriority"},
                "resourceGroups": [
                    {
                        "coveredResources": ["cpu", "nvidia.com/gpu"],
                        "flavors": [{"name": flavor, "resources": resources} for flavor in FLAVORS],
                    }
                ],
            },
        }
        metadata = {"name": "gpus", "namespace": f"team-{queue}"}
        yield {"apiVersion": KUEUE, "kind": "LocalQueue", "metadata": metadata, "spec": {"clusterQueue": f"cq-{queue}"}}
    for number in range(holders):
        yield _workload(number, number % queues, 100, _held(number, queues))
    for number in range(holders, holders + pending):
        yield _workload(number, number % queues, 50, _pending())


def _workload(number: int, queue: int, priority: int, status: dict[str, Any]) -> dict[str, Any]:
    uid = f"{number:08x}-aaaa-4000-8000-00000000beef"
    requests = {"cpu": "4", "nvidia.com/gpu": "1"}
    container = {"name": "main", "image": "registry.example/train:1", "resources": {"requests": requests}}
    owner = {"apiVersion": "batch/v1", "controller": True, "kind": "Job", "name": f"train-{number}", "uid": uid}
    return {
        "apiVersion": KUEUE,
        "kind": "Workload",
        "metadata": {
            "creationTimestamp": f"{FIRST + timedelta(seconds=number):%Y-%m-%dT%H:%M:%SZ}",
            "finalizers": ["kueue.x-k8s.io/resource-in-use"],
            "generation": 1,
            "labels": {"kueue.x-k8s.io/job-uid": uid},
            "name": f"job-train-{number}",
            "namespace": f"team-{queue}",
            "ownerReferences": [owner],
            "resourceVersion": str(1000 + number),
            "uid": uid,
        },
        "spec": {
            "active": True,
            "podSets": [
                {
                    "count": 1,
                    "name": "main",
                    "template": {"metadata": {}, "spec": {"containers": [container], "restartPolicy": "Never"}},
                }
            ],
            "priority": priority,
            "queueName": "gpus",
        },
        "status": status,
    }


def _held(number: int, queues: int) -> dict[str, Any]:
    flavor = FLAVORS[number // queues % len(FLAVORS)]
    flavors = {"cpu": flavor, "nvidia.com/gpu": flavor}
    usage = {"cpu": "4", "nvidia.com/gpu": "1"}
    given = {"count": 1, "flavors": flavors, "name": "main", "resourceUsage": usage}
    return {
        "admission": {"clusterQueue": f"cq-{number % queues}", "podSetAssignments": [given]},
        "conditions": [_condition(kind, "True", kind, "") for kind in ("QuotaReserved", "Admitted", "PodsReady")],
    }


def _pending() -> dict[str, Any]:
    message = (
        "couldn't assign flavors to pod set main: insufficient unused quota for nvidia.com/gpu in flavor a3-reserved, "
        "1 more needed, insufficient unused quota for nvidia.com/gpu in flavor a3-spot, 1 more needed"
    )
    return {"conditions": [_condition("QuotaReserved", "False", "Pending", message)]}


def _condition(kind: str, status: str, reason: str, message: str) -> dict[str, Any]:
    return {
        "lastTransitionTime": "2026-11-20T09:00:00Z",
        "message": message,
        "observedGeneration": 1,
        "reason": reason,
        "status": status,
        "type": kind,
    }


def measure() -> Iterator[dict[str, Any]]:
    """For each case: seconds of the whole command, wall and CPU, MiB, and CPU seconds of reading the dump alone."""
    with tempfile.TemporaryDirectory(prefix="kf-explain-") as folder:
        for pending, holders, queues, suffix in CASES:
            result = list(objects(pending, holders, queues))
            name = f"{result[-1]['metadata']['namespace']}/{result[-1]['metadata']['name']}"
            dump = Path(folder) / f"dump.{suffix}"
            listed = {"apiVersion": "v1", "items": result, "kind": "List", "metadata": {"resourceVersion": ""}}
            dump.write_text(json.dumps(listed) if suffix == "json" else yaml.dump(listed, Dumper=_WithoutAnchors))
            row = min((_explain(name, dump) for _ in range(2)), key=lambda each: each["cpuSeconds"])
            yield {"pending": pending, "holders": holders, "format": suffix, **row, "parserSeconds": _parse(dump)}


def _explain(name: str, dump: Path) -> dict[str, float]:
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    # The kernel's maximum for a child has what the parent had when it was forked; the process itself knows better.
    script = (
        "import atexit, pathlib, sys\n"
        "atexit.register(lambda: print(pathlib.Path('/proc/self/status').read_text(), file=sys.stderr))\n"
        "from kueue_fleet.cli import main\n"
        "main()"
    )
    result = subprocess.run(
        [sys.executable, "-c", script, "explain", name, "--objects", dump, "--at", MOMENT],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2] / "components")},
        capture_output=True,
        text=True,
        check=True,
    )
    [peak] = re.findall(r"^VmHWM:\s+(\d+) kB$", result.stderr, re.MULTILINE)
    wall, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    return {
        "wallSeconds": wall,
        "cpuSeconds": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
        "peakMiB": int(peak) / 1024,
    }


def _parse(dump: Path) -> float:
    """CPU seconds of the parser alone: json, or yaml12."""
    text = dump.read_text()
    began = time.process_time()
    if dump.suffix == ".json":
        json.loads(text)
    else:
        yaml12.parse_yaml(text)
    return time.process_time() - began


if __name__ == "__main__":
    print(json.dumps(list(measure())))
