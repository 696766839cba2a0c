"""How much CPU each reader of Workloads takes: admission, the controller, the status of a fleet, and a rehearsal."""

from __future__ import annotations

import gc
import json
import sys
import time
import tracemalloc
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from kueue_admission.read.kueue_objects import parse_objects
from kueue_admission.read.printed import Printed, PrintedWorkload
from kueue_admission.read.workloads import Context
from kueue_fleet.controller.records import PodSets, read_record
from kueue_fleet.status import ClusterObjects, fleet_status
from kueue_rehearsal.jobs.views import admitted_placements, view_jobs
from tests.bench.dumps import objects

NOW: Final = datetime(2026, 11, 20, 23, tzinfo=UTC)
QUEUES: Final = 30
Readers = Mapping[str, Callable[[], object]]


def readers(manifests: Sequence[dict[str, Any]], workloads: Sequence[dict[str, Any]]) -> Readers:
    """Each reader of the Workloads of one cluster, four in five of which hold quota."""
    listed = {"clusterqueues": [m for m in manifests if m["kind"] == "ClusterQueue"], "workloads": workloads}
    owners = [{**w["metadata"]["ownerReferences"][0], "namespace": w["metadata"]["namespace"]} for w in workloads]
    created = "2026-11-20T08:00:00Z"
    submitted = [Printed.of({"kind": "Job", "metadata": {"creationTimestamp": created, **one}}) for one in owners]

    def controller() -> object:
        context, pod_sets = Context(), PodSets()
        return [read_record(item, context, pod_sets) for item in workloads]

    def rehearsal() -> object:
        there = {"home": [PrintedWorkload.of(entry) for entry in workloads]}
        return view_jobs(submitted, "home", there, admitted_placements(there, "home"), NOW)

    return {
        "admission": lambda: parse_objects(manifests),
        "controller": controller,
        "status": lambda: fleet_status("bench", {"home": ClusterObjects("standalone", listed)}, None, NOW),
        "rehearsal": rehearsal,
    }


def measure(count: int) -> dict[str, dict[str, float]]:
    """CPU seconds, the least of three, and MiB of what is kept, of each reader."""
    manifests = list(objects(count // 5, count - count // 5, QUEUES))
    workloads = [item for item in manifests if item["kind"] == "Workload"]
    gc.freeze()
    result = {}
    for name, read in readers(manifests, workloads).items():
        times = []
        for _ in range(3):
            gc.collect()
            began = time.process_time()
            read()
            times.append(time.process_time() - began)
        tracemalloc.start()
        kept = read()
        result[name] = {"cpuSeconds": min(times), "keptMiB": tracemalloc.get_traced_memory()[0] / 2**20}
        tracemalloc.stop()
        del kept
    return result


if __name__ == "__main__":
    print(json.dumps(measure(int(sys.argv[1]))))
