"""A month replayed: `python -m tests.bench.replay JOBS` prints CPU seconds of recording it, and of the command."""

from __future__ import annotations

import io
import json
import resource
import sys
import time
from contextlib import redirect_stdout
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from kueue_admission.history.store import Store
from kueue_fleet.cli import app
from kueue_fleet.fleet_file import parse_fleet_text
from printed_history import busy_month, recorded
from tests.bench.large_fleet import STACK


def measure(jobs: int) -> dict[str, Any]:
    """CPU seconds of writing the events and of one replay, and what the store takes of a job."""
    fleet = parse_fleet_text(STACK.read_text(), source=str(STACK))
    began = time.process_time()
    printed = busy_month(fleet, jobs)
    simulated = time.process_time() - began
    with TemporaryDirectory() as folder:
        store = Store(folder, create=True)
        began = time.process_time()
        events = store.add(recorded(fleet, printed, store))
        written = time.process_time()
        size = sum(each.stat().st_size for each in Path(folder).rglob("*.parquet"))
        arguments = ["replay", str(STACK), "--store", folder, "--seeds", "1", "-o", "json"]
        with redirect_stdout(io.StringIO()):
            app(arguments, standalone_mode=False)
        ended = time.process_time()
    return {
        "jobs": jobs,
        "events": events,
        "bytesOfJob": size / jobs,
        "simulateSeconds": simulated,
        "recordSeconds": written - began,
        "replaySeconds": ended - written,
        "peakMiB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


if __name__ == "__main__":
    print(json.dumps(measure(int(sys.argv[1]))))
