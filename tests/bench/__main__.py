"""`make bench`: every figure the project claims, measured here and now, each beside a peer from the same run."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import yaml
from rich.console import Console
from rich.table import Table

from bench.large_fleet import WORKERS, large_fleet
from bench.rehearsal import measure_by_hand, measure_rehearsal
from bench.simulation import HARNESS_MEANS
from kueue_fleet.spec import parse_fleet_text, render_fleet

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "bench.json"
REPEATS = 3


def run_module(module: str, arguments: list[str]) -> Any:
    """What a module of the benchmark prints, in a new process."""
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'components'}:{ROOT / 'tests'}"}
    command = [sys.executable, "-m", module, *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def best_of(arguments: list[str]) -> dict[str, float]:
    """The quickest of some runs of `bench.graph`, each in a new process."""
    runs: list[dict[str, float]] = [run_module("bench.graph", arguments) for _ in range(REPEATS)]
    return min(runs, key=lambda run: float(run["wallSeconds"]))


def measure_spec() -> tuple[float, float]:
    """Seconds to read, check and render the largest fleet from its text, and those of its YAML parser alone."""
    text = yaml.safe_dump(large_fleet())
    began = time.perf_counter()
    render_fleet(parse_fleet_text(text, source="bench"))
    whole = time.perf_counter() - began
    began = time.perf_counter()
    yaml.load(text, yaml.CSafeLoader)
    return whole, time.perf_counter() - began


def main() -> None:
    """Measure everything, print it, and write it to bench.json."""
    console = Console()
    table = Table("what", "measured", "limit", "peer", "ratio", box=None, header_style="bold")

    def row(what: str, value: float, unit: str, limit: float | None, peer: str = "", peer_value: float = 0.0) -> None:
        shown = f"{peer} {peer_value:.2f} {unit}" if peer else ""
        ratio = f"{value / peer_value:.2f}" if peer_value else ""
        table.add_row(what, f"{value:.2f} {unit}", f"{limit:g} {unit}" if limit else "", shown, ratio)
        figures.append(
            {"what": what, "value": value, "unit": unit, "limit": limit, "peer": peer, "peerValue": peer_value}
        )

    figures: list[dict[str, Any]] = []
    with console.status("fleets in memory"):
        graph = best_of(["fleet"])
        bare = best_of(["bare", str(int(graph["resources"]))])
        spec, parser = measure_spec()
    resources = int(graph["resources"])
    row(f"import and register {resources} resources, 1 + {WORKERS} clusters", graph["wallSeconds"], "s", 2.0,
        "bare SDK", bare["wallSeconds"])  # fmt: skip
    row(f"read, check, render 1 + {WORKERS} clusters", spec, "s", None, "YAML parser alone", parser)
    for name, limit in (("baseline", 10.0), ("large-scale", 90.0)):
        with console.status(f"simulation: {name}"):
            simulated = run_module("bench.simulation", [name])
        row(f"simulate {simulated['workloads']} workloads: {name}", simulated["wallSeconds"], "s", limit)
        row(f"memory: simulate {name}", simulated["peakMiB"], "MiB", 1024)
        for label, mean in simulated["means"].items():
            row(f"{name}: simulated mean wait of {label}", mean, "s", None, "Kueue's CI, as published",
                HARNESS_MEANS[name][label] / 1000)  # fmt: skip
    with console.status("a rehearsal"):
        seconds, memory = measure_rehearsal()
    with console.status("the same by hand"):
        by_hand = measure_by_hand()["by hand"]
    row("rehearsal: pulumi up of 4 clusters", seconds["pulumi up"], "s", None, "helm and apply by hand", by_hand)
    row("rehearsal: command to first admitted job", seconds["first job admitted"], "s", 60)
    row("rehearsal: command to all jobs settled", seconds["all jobs settled"], "s", 180)
    row("rehearsal: second pulumi up", seconds["second pulumi up"], "s", None)
    row("rehearsal: pulumi destroy", seconds["pulumi destroy"], "s", None)
    row("memory: 4 control planes and Kueue", memory["control planes and Kueue"], "MiB", 3072)
    row("memory: every process of the rehearsal", memory["everything"], "MiB", None)
    console.print(table)
    machine = {"cores": os.cpu_count(), "python": platform.python_version(), "load": os.getloadavg()[0]}
    RESULTS.write_text(json.dumps({"machine": machine, "figures": figures}, indent=2) + "\n")
    console.print(f"written to {RESULTS.relative_to(ROOT)}; {machine}")


main()
