"""`make bench`: every figure the project claims, measured here and now, each beside a peer from the same run.

`python -m tests.bench [PART...]` measures only some parts: fleets, command, explain, decisions, workloads, simulation,
jobs, replay, plan, harness, rehearsal, newcomer, controller, dispatchers, page; and, only when they are named, engines
(everything from empty caches) and suite (`make test`). The figures of a part replace its former ones in
docs/figures.json, and in the pages.
"""

from __future__ import annotations

import json
import os
import re
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from rich.console import Console
from rich.table import Table

from compiled_wheel import installed_wheel
from kueue_admission.api.multi_kueue import MOST_CLUSTERS
from kueue_fleet.fleet_file import parse_fleet_text
from kueue_fleet.fleet_file.check.clusters import MAX_WORKERS
from kueue_fleet.objects import render_fleet
from kueue_rehearsal.paths import RehearsalError
from tests.bench.engines import measure_engines
from tests.bench.harness import DRAWN, HarnessRun, recorded, run_harness
from tests.bench.large_fleet import large_fleet
from tests.bench.newcomer import measure_newcomer
from tests.bench.page_figures import FIGURES, store
from tests.bench.plan import COMPANIES
from tests.bench.rehearsal import measure_by_hand, measure_rehearsal
from tests.bench.simulation import HARNESS_MEANS, measure

ROOT = Path(__file__).parents[2]
REPEATS = 3


class Figure(NamedTuple):
    """One row: what was measured, what it should be at most, and a peer's figure in the same unit."""

    what: str
    value: float
    unit: str
    limit: float | None = None
    peer: str = ""
    peer_value: float = 0.0
    shown: str = ""
    """Its name in pages, where one shows it."""


def run_module(module: str, arguments: list[str], *, compiled: bool = False) -> Any:
    """What a module of the benchmark prints, in a new process; what it says of its progress is passed on.

    `compiled`: with kueue-admission as its compiled wheel installs it.
    """
    places = [*([installed_wheel()] if compiled else []), ROOT, ROOT / "components", ROOT / "tests/support"]
    environment = {**os.environ, "PYTHONPATH": ":".join(map(str, places))}
    command = [sys.executable, "-m", module, *arguments]
    result = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(result.stdout)


def best_of(arguments: list[str]) -> dict[str, float]:
    """The run of `bench.graph` with the least CPU, of some, each in a new process."""
    runs: list[dict[str, float]] = [run_module("tests.bench.graph", arguments) for _ in range(REPEATS)]
    return min(runs, key=lambda run: float(run["cpuSeconds"]))


def fleets() -> Iterator[Figure]:
    """Registering a fleet with a mock engine, and checking and rendering it."""
    for workers, limit in ((MOST_CLUSTERS, 3.0), (MAX_WORKERS, 10.0)):
        graph = best_of(["fleet", str(workers)])
        resources = int(graph["resources"])
        bare = best_of(["bare", str(resources)])
        what = f"import and register {resources} resources, 1 + {workers} clusters"
        yield Figure(f"{what}: CPU", graph["cpuSeconds"], "s", limit, "bare SDK", bare["cpuSeconds"])
        yield Figure(f"{what}: wall", graph["wallSeconds"], "s", None, "bare SDK", bare["wallSeconds"])
        text = yaml.safe_dump(large_fleet(workers))
        began = time.process_time()
        render_fleet(parse_fleet_text(text, source="bench"))
        whole = time.process_time() - began
        began = time.process_time()
        yaml.load(text, yaml.CSafeLoader)
        parser = time.process_time() - began
        yield Figure(f"read, check, render 1 + {workers} clusters: CPU", whole, "s", None, "YAML parser alone", parser)


def command() -> Iterator[Figure]:
    """How much CPU `--help` takes, and a `check`."""

    def seconds(script: str, *arguments: str) -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "components"), "PYTHONDONTWRITEBYTECODE": ""}
        subprocess.run([sys.executable, "-c", script, *arguments], env=environment, capture_output=True, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    own = "from kueue_fleet.cli import main; main()"
    stack = str(ROOT / "stacks" / "Pulumi.dws-multikueue.yaml")
    for arguments, limit, libraries in (
        (["--help"], 0.2, "typer"),
        (["check", stack], 0.4, "typer, pydantic.main, yaml"),
    ):
        taken = min(seconds(own, *arguments) for _ in range(9))
        bare = min(seconds(f"import {libraries}") for _ in range(9))
        name = "check" if arguments[0] == "check" else ""
        yield Figure(f"kueue-fleet {arguments[0]}: CPU", taken, "s", limit, "importing its libraries", bare, name)


def explain() -> Iterator[Figure]:
    """One `explain`, the whole command, on dumps of large clusters."""
    for row in run_module("tests.bench.dumps", []):
        holders = f", {row['holders']} hold quota" if row["holders"] else ""
        what = f"explain, {row['pending']} pending{holders}, {row['format']}"
        name = "" if holders else f"explain-{row['format']}"
        yield Figure(f"{what}: CPU", row["cpuSeconds"], "s", None, "parser alone", row["parserSeconds"], name)
        yield Figure(f"{what}: memory", row["peakMiB"], "MiB")


def decisions() -> Iterator[Figure]:
    """Time per decision by the length of the queue, beside what it would be if it grew as the logarithm."""
    rows = run_module("tests.bench.decisions", [])
    for row in rows:
        grown = rows[0]["microseconds"] * row["log"]
        what = f"one decision, {row['pending']} pending"
        yield Figure(what, row["microseconds"], "us", grown, "grown as the log", grown)


def workloads() -> Iterator[Figure]:
    """Reading Workloads, by what reads them, beside the same for a tenth of them."""
    few, many = (run_module("tests.bench.workloads", [str(count)]) for count in (10_000, 100_000))
    for name, row in many.items():
        item, peer = (1e6 * row["cpuSeconds"] / 100_000, 1e6 * few[name]["cpuSeconds"] / 10_000)
        yield Figure(f"{name}: one of 100000 Workloads read: CPU", item, "us", None, "of 10000", peer)
        yield Figure(f"{name}: what is kept of it", row["keptMiB"] * 2**20 / 100_000, "B")


def simulation() -> Iterator[Figure]:
    """Kueue's own sets, simulated with the delays of a machine with CPU to spare."""
    for name, limit in (("baseline", 10.0), ("large-scale", 90.0)):
        simulated = run_module("tests.bench.simulation", [name])
        what, page_name = f"simulate {simulated['workloads']} workloads: {name}", {"baseline": "simulate"}.get(name, "")
        yield Figure(what, simulated["wallSeconds"], "s", limit, shown=page_name)
        cpu, bare = simulated["cpuSeconds"], simulated["agendaSeconds"]
        yield Figure(f"simulate {name}: CPU", cpu, "s", None, "3 events of each in a bare heap", bare)
        fast = run_module("tests.bench.simulation", [name], compiled=True)
        assert fast["means"] == simulated["means"]
        yield Figure(f"simulate {name}, compiled: CPU", fast["cpuSeconds"], "s", None, "interpreted", cpu)
        yield Figure(f"simulate {name}: memory", simulated["peakMiB"], "MiB", 1024)
        for label, mean in simulated["means"].items():
            published = HARNESS_MEANS[name][label] / 1000
            yield Figure(f"{name}: mean wait of {label}", mean, "s", None, "Kueue's CI, published", published)


def jobs() -> Iterator[Figure]:
    """The simulation of a fleet's jobs, with the most workers of a queue beside the most of a fleet."""
    few, many = (run_module("tests.bench.simulated_fleet", [str(w), "20000"]) for w in (MOST_CLUSTERS, MAX_WORKERS))
    item, peer = (1000 * row["runSeconds"] / row["jobs"] for row in (many, few))
    what = f"simulate {many['jobs']} jobs on {MAX_WORKERS} workers"
    yield Figure(f"{what}: CPU of each", item, "ms", 1.2 * peer, f"on {MOST_CLUSTERS}", peer)
    yield Figure(f"{what}: memory", many["peakMiB"], "MiB", None, f"on {MOST_CLUSTERS}", few["peakMiB"])


def replay() -> Iterator[Figure]:
    """A month of the DWS fleet, where three workers race for each job: recorded, and replayed once."""
    row = run_module("tests.bench.replay", ["15000"])
    yield Figure("record a month of 15000 jobs: CPU", row["recordSeconds"], "s")
    yield Figure("store of a month: for each job", row["bytesOfJob"], "B")
    simulated = row["simulateSeconds"]
    seconds = row["replaySeconds"]
    yield Figure("replay a month of 15000 jobs: CPU", seconds, "s", 10.0, "simulating them", simulated)
    fast = run_module("tests.bench.replay", ["15000"], compiled=True)["replaySeconds"]
    yield Figure("replay a month of 15000 jobs, compiled: CPU", fast, "s", 10.0, "interpreted", seconds)
    yield Figure("replay a month of 15000 jobs: memory", row["peakMiB"], "MiB")


def plan() -> Iterator[Figure]:
    """The search for a fleet of each example company, beside a grid of fleets within the same limits tried."""
    for company in COMPANIES:
        row = run_module("tests.bench.plan", [company])
        name, peer = f"plan for {company}", f"all {row['bruteFleets']} fleets of a grid"
        yield Figure(f"{name}: USD a month", row["cost"], "USD", row["bruteCost"] + 0.01, peer, row["bruteCost"])
        yield Figure(f"{name}: CPU", row["seconds"], "s", row["bruteSeconds"] / 10, peer, row["bruteSeconds"])
        missed = row["heldOut"].count("missed")
        yield Figure(f"{name}: goals missed in the week held out", missed, f"of {len(row['heldOut'])}", 0)


def harness() -> Iterator[Figure]:
    """Kueue's harness on its baseline set, and the simulation of it with the delays that its log shows."""
    try:
        ran: HarnessRun = run_harness()
    except RehearsalError as refused:
        print(f"{refused}; its recorded figures are used", file=sys.stderr)
        ran = recorded()
    peer = f"harness, {ran.when}"
    simulated = measure("baseline", ran.delays, ran.creation, seeds=3)
    yield Figure("baseline: wall", simulated["wallSeconds"], "s", 10.0, peer, ran.wall_seconds)
    yield Figure("baseline: CPU", simulated["cpuSeconds"], "s", None, peer, ran.cpu_seconds)
    for label, mean in simulated["means"].items():
        what = f"baseline: mean wait of {label}, its delays"
        yield Figure(what, mean, "s", 1.2 * ran.means[label], peer, ran.means[label])
    for label, (median, tenth) in simulated["quantiles"].items():
        for name, seconds, of_harness in zip(("p50", "p90"), (median, tenth), ran.quantiles[label], strict=True):
            what = f"baseline: {name} of the wait of {label}, its delays"
            yield Figure(what, seconds, "s", 1.1 * of_harness, peer, of_harness)
    yield Figure("harness: one Workload created each", ran.creation.seconds, "s")
    yield Figure("harness: delay decision", ran.delays.decision, "s")
    yield Figure("harness: burst of decisions", ran.delays.burst, "")
    yield Figure("harness: workers that end runs", ran.delays.workers, "")
    for name in DRAWN:
        windows = [part.numbers[0] for part in getattr(ran.delays, name).parts]
        yield Figure(f"harness: delay {name}, median of its means", statistics.median(windows), "s")
        yield Figure(f"harness: delay {name}, largest of its means", max(windows), "s")
    yield Figure("harness: mean load of the machine", ran.load, "")


def rehearsal() -> Iterator[Figure]:
    """A rehearsal, beside the same charts and objects put there by hand."""
    seconds, memory = measure_rehearsal()
    by_hand = measure_by_hand()["by hand"]
    yield Figure("rehearsal: pulumi up of 4 clusters", seconds["pulumi up"], "s", None, "by hand", by_hand)
    yield Figure("rehearsal: command to first admitted job", seconds["first job admitted"], "s", 60)
    yield Figure("rehearsal: command to all jobs settled", seconds["all jobs settled"], "s", 180)
    yield Figure("rehearsal: second pulumi up", seconds["second pulumi up"], "s")
    yield Figure("rehearsal: pulumi destroy", seconds["pulumi destroy"], "s")
    planes = memory["control planes and Kueue"]
    yield Figure("memory: 4 control planes and Kueue", planes, "MiB", 3072, shown="rehearsal-memory")
    yield Figure("memory: every process of the rehearsal", memory["everything"], "MiB")


def newcomer() -> Iterator[Figure]:
    """The tutorial with wheels, without Go and with nothing built, from the clone to a new fleet that was rehearsed."""
    seconds = measure_newcomer()
    yield Figure("newcomer: clone and pip install of a folder of wheels", seconds["install"], "s")
    yield Figure("newcomer: installed to first admitted job", seconds["first job"], "s", 120)
    yield Figure("newcomer: the tutorial from the clone to the end of the first rehearsal", seconds["end"], "s", 600)


def controller() -> Iterator[Figure]:
    """The fleet's controller on real API servers, with the most workers of a queue, and of a fleet."""
    for workers in (MOST_CLUSTERS, MAX_WORKERS):
        yield from _controller(run_module("tests.bench.controller", [str(workers), "20000"]))


def _controller(row: dict[str, Any]) -> Iterator[Figure]:
    plain = 1000 / row["plain_apply_rate"]
    what = f"{row['workloads']} nominations at once, {row['workers']} workers: each"
    yield Figure(what, 1000 / row["nomination_rate"], "ms", plain / 0.7, "plain server-side apply", plain)
    yield Figure(f"quota reserved to nominated, {row['at_rate']:.0f} a second: median", row["p50_ms"], "ms")
    what = f"quota reserved to nominated, {row['at_rate']:.0f} a second: 99th percentile"
    yield Figure(what, row["p99_ms"], "ms", 250, "the reservation by the same watch", row["watch_p99_ms"])
    what = f"memory of the controller, {row['known']} Workloads, {row['workers']} workers"
    yield Figure(what, row["memory_of_known_mib"], "MiB", 200 if row["workers"] <= MOST_CLUSTERS else 500)
    yield Figure(f"one nomination, {row['workers']} workers: CPU of the controller", row["nomination_cpu_ms"], "ms")
    what = f"why {row['waiting']} Workloads wait"
    yield Figure(f"{what}: CPU of the controller", 100 * row["waiting_cpu_share"], "% of a core", 10)
    yield Figure(f"{what}: conditions and events written", row["waiting_writes"], "a second", 5.1)


def dispatchers() -> Iterator[Figure]:
    """The fleet's dispatcher beside Kueue's two on real Kueue, and beside its own simulation."""
    result = run_module("tests.bench.dispatchers", [])
    first = result["agreement"]
    yield Figure(f"of {first['jobs']} jobs elsewhere than the simulation says", len(first["elsewhere"]), "jobs", 0.001)
    ours = result["dispatchers"][0]
    for row in result["dispatchers"]:
        name = row["dispatcher"]
        yield Figure(
            f"{name}: submitted to running, median",
            row["median_seconds"],
            "s",
            None,
            "External",
            ours["median_seconds"],
        )
        yield Figure(f"{name}: submitted to running, 95th percentile", row["p95_seconds"], "s")
        yield Figure(f"{name}: copies thrown away", row["thrown_away"], "")
        yield Figure(f"{name}: jobs in the wrong region", row["wrong_region"], "")
        yield Figure(f"{name}: jobs that held quota twice", row["held_twice"], "")
        yield Figure(f"{name}: quota held twice", row["held_twice_gpu_seconds"], "GPU s")


def page() -> Iterator[Figure]:
    """The live pages with many Workloads that wait: one look at all clusters, and what a browser asks for."""
    count = 15_000
    result = run_module("tests.bench.page", [str(count)])
    what = f"{count} Workloads that wait"
    yield Figure(f"{what}: `status --page` has read them", result["ready_wall"], "s")
    yield Figure(f"{what}: the page opens", result["open_wall"], "s", 1.0)
    yield Figure(f"{what}: until a change shows, median", result["delay_wall"], "s", 2.0, shown="page-change")
    yield Figure(f"{what}: until a change shows, longest", result["longest_wall"], "s", 2.0)
    yield Figure(f"{what}: `status --page` while nothing changes", 100 * result["idle_share"], "% of a core")
    yield Figure(f"{what}, all of one team: its page, CPU", result["team"], "s", 2.0)


def engines() -> Iterator[Figure]:
    """From nothing: a clone, empty caches, the engines, the first rehearsal, the other engines."""
    limits = {"engines": 480.0, "first-run": 600.0, "first-job": 40.0}
    for name, what, value, unit in measure_engines():
        yield Figure(what, value, unit, limits.get(name), shown=name)


def suite() -> Iterator[Figure]:
    """`make test` as a developer runs it, with the engines there."""
    began = time.monotonic()
    result = subprocess.run(["make", "test"], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    yield Figure("`make test`", time.monotonic() - began, "s", 720.0, shown="suite")
    passed = re.findall(r"\b(\d+) passed", result.stdout)
    yield Figure("tests that it runs", float(passed[-1]), "tests", shown="suite-tests")


ONLY_NAMED = (engines, suite)
"""Parts that take long, and leave no other work beside them."""
PARTS: dict[str, Callable[[], Iterator[Figure]]] = {
    part.__name__: part
    for part in (
        fleets,
        command,
        explain,
        decisions,
        workloads,
        simulation,
        jobs,
        replay,
        plan,
        harness,
        rehearsal,
        newcomer,
        controller,
        dispatchers,
        page,
        *ONLY_NAMED,
    )
}


def main(wanted: list[str]) -> None:
    """Measure the parts, print them, and keep them beside what there is of the others."""
    unknown = [name for name in wanted if name not in PARTS]
    if unknown:
        sys.exit(f"bench: there is no part {', '.join(unknown)}; parts are {', '.join(PARTS)}")
    console = Console()
    table = Table("what", "measured", "limit", "peer", "ratio", box=None, header_style="bold")
    names = wanted or [name for name, part in PARTS.items() if part not in ONLY_NAMED]
    load = os.getloadavg()[0]
    for name in names:
        with console.status(name):
            figures = list(PARTS[name]())
        store(name, [figure._asdict() for figure in figures], load)
        for figure in figures:
            limit = f"{figure.limit:.4g} {figure.unit}" if figure.limit else ""
            peer = f"{figure.peer} {figure.peer_value:.2f} {figure.unit}" if figure.peer else ""
            ratio = f"{figure.value / figure.peer_value:.2f}" if figure.peer_value else ""
            table.add_row(figure.what, f"{figure.value:.2f} {figure.unit}", limit, peer, ratio)
    console.print(table)
    console.print(f"written to {FIGURES.relative_to(ROOT)}")


main(sys.argv[1:])
