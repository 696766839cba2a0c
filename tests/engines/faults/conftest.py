"""The fleet of the faults, their rounds, and the table of `make faults`."""

from __future__ import annotations

import os
import random
import statistics
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from controller_faults import QUIET, FaultProxy, Gate, Replicas
from controller_lab import controller_lab, fleet_data, python_path, route, wait_until_connected
from faulty_fleet import REGIONS, Fleet
from held_jobs import Held
from kueue_rehearsal.jobs.witness import Witnesses
from mixed_releases import Mix
from one_cluster import Json

MANY = "KUEUE_FLEET_FAULT_ROUNDS" in os.environ
"""It is `make faults`."""
ROUNDS = int(os.environ.get("KUEUE_FLEET_FAULT_ROUNDS", "1"))
"""Of each fault, in each process of `make faults`."""
GPUS = 2 if MANY else 1
"""On each worker. With half of them, and half of the jobs, a round takes a sixth less CPU."""
RELEASE = os.environ.get("KUEUE_FLEET_FAULT_RELEASE", "")
"""Of Kueue, in all clusters, or such as 0.19.2-with-0.17.1, the manager's first; empty: the one that fleets get."""
_HERE = "engines/faults/"


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Each round of a fault is a test."""
    metafunc.parametrize("fault_round", range(1, ROUNDS + 1), ids="round {}".format)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All faults once, then all again: a run that is ended early has done as many rounds of each."""
    here = [item for item in items if _HERE in item.nodeid]
    ordered = iter(sorted(here, key=lambda item: item.callspec.params["fault_round"]))  # type: ignore[attr-defined]
    items[:] = [next(ordered) if _HERE in item.nodeid else item for item in items]


@pytest.fixture(scope="package")
def seed() -> int:
    """Each process of `make faults` has its own."""
    process = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    return int(os.environ.get("KUEUE_FLEET_FAULT_SEED", "20261122")) + (1000 * process if MANY else 0)


@pytest.fixture(scope="package")
def fleet(tmp_path_factory: pytest.TempPathFactory, seed: int) -> Iterator[Fleet]:
    dispatch = {"widenAfter": "20s", "giveUpAfter": "24h", "retryAfter": "2s"}
    data = fleet_data(REGIONS, gpus=GPUS, dispatch=dispatch, watchdog={"stuckAfter": "15s"})
    # The manager lets more jobs in than the workers have room for: these wait on the workers.
    data["multiKueue"] |= {"headroomPercent": 400, "workerLostTimeout": "40s"}
    data["controller"]["history"] = {"volumeClaim": "history", "every": "2s"}
    if RELEASE:
        Mix.named(RELEASE).give_to(data)
    with controller_lab(tmp_path_factory.mktemp("lab"), data) as lab:
        proxies = {
            name: FaultProxy(cluster, seed + index) for index, (name, cluster) in enumerate(lab.clusters.items())
        }
        gates = {name: Gate(cluster.server) for name, cluster in lab.workers.items()}
        for name, gate in gates.items():
            route(lab, name, gate.url)
        forks = Replicas(python_path())

        def objects_of(name: str, *place: str) -> list[Json]:
            return lab.clusters[name].items(f"/apis/{'/'.join(place)}")

        held = Held(lab.fleet, objects_of)
        result = Fleet(
            lab, proxies, gates, Witnesses(lab.workers), forks, random.Random(seed), held, len(REGIONS) * GPUS
        )
        threads = [
            threading.Thread(target=result.keep_running),
            threading.Thread(target=result.held.follow, args=[result.over]),
        ]
        for thread in threads:
            thread.start()
        try:
            result.leader()
            wait_until_connected(lab)
            yield result
            result.settle()
            result.recorded()
            assert bugs(result) == []
        finally:
            result.over.set()
            for thread in threads:
                thread.join()
            forks.close()
            result.witnesses.close()
            for proxy in proxies.values():
                proxy.close()
            for gate in gates.values():
                gate.close()


def bugs(fleet: Fleet) -> list[Json]:
    """Decisions at which a replica failed."""
    lines = [line for replica in fleet.replicas.values() for line in replica.lines()]
    assert lines
    return [line for line in lines if line["message"] == "no decision"]


@pytest.fixture(autouse=True)
def a_round(
    fleet: Fleet, seed: int, fault_round: int, record_property: Callable[[str, object], None]
) -> Iterator[None]:
    """One replica leads and Kueue is connected when it begins, and no fault is left when it ends."""
    print(f"seed {seed}")
    record_property("seed", seed)
    fleet.fault_round, fleet.recovered_after = fault_round, lambda seconds: record_property("recovered", seconds)
    fleet.leader()
    fleet.connect()
    yield
    for proxy in fleet.proxies.values():
        proxy.noise, proxy.unreachable, proxy.held, proxy.on_patch = QUIET, False, (), None
    for gate in fleet.gates.values():
        gate.open()
    fleet.clear_up()


def pytest_report_teststatus(report: pytest.TestReport | pytest.CollectReport) -> tuple[str, str, str] | None:
    """With -v, what came of a round."""
    output: dict[str, Any] = dict(getattr(report, "user_properties", ()))
    if report.when != "call" or "seed" not in output or not report.passed:
        return None
    return (
        "passed",
        ".",
        f"{time.strftime('%H:%M:%S')} seed {output['seed']}, recovered after {output['recovered']:4.1f} s",
    )


@dataclass
class Tally:
    """A fault in all processes."""

    rounds: int = 0
    recovered: list[float] = field(default_factory=list)
    seconds: float = 0.0

    def row(self, name: str) -> str:
        """A row of the table that docs/measurements.md sums up."""
        middle, worst = (f"{of(self.recovered):.1f}" if self.recovered else "-" for of in (statistics.median, max))
        return f"| {name} | {self.rounds} | {len(self.recovered)} | {self.seconds:.0f} | {middle} | {worst} |"


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """A row for each fault, if there were several rounds."""
    tallies: defaultdict[str, Tally] = defaultdict(Tally)
    for report in terminalreporter.getreports("passed") + terminalreporter.getreports("failed"):
        if report.when == "call" and _HERE in report.nodeid:
            name, _, parameters = report.nodeid.rpartition("::test_")[2].partition("[")
            variant = parameters.rstrip("]").partition("-")[2]
            tally = tallies[", ".join(filter(None, (name.replace("_", " "), variant)))]
            tally.seconds += report.duration
            tally.rounds += 1
            tally.recovered += [value for key, value in report.user_properties if key == "recovered" and report.passed]
    if max((tally.rounds for tally in tallies.values()), default=1) == 1:
        return
    terminalreporter.section("faults")
    terminalreporter.write_line("| fault | rounds | passed | seconds | median recovery | longest, seconds |")
    terminalreporter.write_line("|---|---|---|---|---|---|")
    for name, tally in sorted(tallies.items()):
        terminalreporter.write_line(tally.row(name))
