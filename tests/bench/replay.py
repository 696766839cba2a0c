"""A month replayed: `python -m tests.bench.replay JOBS` prints CPU seconds of recording it, and of the command."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from kueue_admission.history.store import Store
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
        size = sum(item.stat().st_size for item in Path(folder).rglob("*.parquet"))
        replayed = _command("replay", str(STACK), "--store", folder, "--seeds", "1", "-o", "json")
    return {
        "jobs": jobs,
        "events": events,
        "bytesOfJob": size / jobs,
        "simulateSeconds": simulated,
        "recordSeconds": written - began,
        "replaySeconds": replayed.ru_utime + replayed.ru_stime,
        "peakMiB": replayed.ru_maxrss / 1024,
    }


def _command(*arguments: str) -> resource.struct_rusage:
    """What a command of kueue-fleet takes, as users run it: with Python's cache of compiled modules."""
    script = "from kueue_fleet.cli import main; main()"
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": ""}
    subprocess.run([sys.executable, "-c", script, *arguments], env=environment, stdout=subprocess.PIPE, check=True)
    return resource.getrusage(resource.RUSAGE_CHILDREN)


if __name__ == "__main__":
    print(json.dumps(measure(int(sys.argv[1]))))
