"""A fleet simulated: `python -m tests.bench.simulated_fleet WORKERS JOBS` prints CPU seconds and peak memory.

The jobs are spread over the fleet's queues, each of which has twenty workers.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from collections import Counter
from typing import Any

from kueue_admission.simulate.delays import Delays
from kueue_fleet.fleet_file import parse_fleet
from kueue_fleet.fleet_simulation.fleet import prepare_fleet
from kueue_fleet.jobs.workload_file import WorkloadFile
from tests.bench.large_fleet import fleet_jobs, large_fleet


def measure(workers: int, jobs: int) -> dict[str, Any]:
    """CPU seconds of preparing and running, and the peak memory of this process in MiB."""
    fleet = parse_fleet(large_fleet(workers))
    file = WorkloadFile.model_validate(fleet_jobs(len(fleet.cluster_queues), jobs))
    began = time.process_time()
    prepared = prepare_fleet(fleet, file, Delays())
    ready = time.process_time()
    result = prepared.run()
    ended = time.process_time()
    states = Counter(record.state.value for record in result.records)
    if states != {"Finished": len(result.records)}:
        raise RuntimeError(f"not all jobs finished: {states}")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {
        "workers": workers,
        "jobs": len(result.records),
        "prepareSeconds": ready - began,
        "runSeconds": ended - ready,
        "peakMiB": peak,
    }


if __name__ == "__main__":
    print(json.dumps(measure(int(sys.argv[1]), int(sys.argv[2]))))
