"""The fleet of a file of faults, and the table of `make faults`."""

from __future__ import annotations

import os
import random
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from controller_faults import QUIET, FaultProxy, Gate, Witnesses
from controller_lab import controller_lab, fleet_data, route, wait_until_connected
from faulty_fleet import REGIONS, Fleet, Rounds
from one_cluster import Json

ROUNDS = int(os.environ.get("KUEUE_FLEET_FAULT_ROUNDS", "1"))
"""Of each fault, in each process of `make faults`."""
GPUS = 2
"""On each worker."""
_HERE = "engines/faults/"


@pytest.fixture(scope="session")
def seed() -> int:
    """Each process of `make faults` has its own."""
    process = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    many = "KUEUE_FLEET_FAULT_ROUNDS" in os.environ
    return int(os.environ.get("KUEUE_FLEET_FAULT_SEED", "20261122")) + (1000 * process if many else 0)


@pytest.fixture
def rounds(record_property: Callable[[str, object], None]) -> Rounds:
    """Runs rounds of a fault, and records after how many seconds each was recovered from."""
    record_property("rounds", ROUNDS)

    def run(one_round: Callable[[], float]) -> None:
        for _ in range(ROUNDS):
            seconds = one_round()
            print(f"recovered after {seconds:.1f} s")
            record_property("recovered", seconds)

    return run


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory, seed: int) -> Iterator[Fleet]:
    data = fleet_data(REGIONS, gpus=GPUS, dispatch={"widenAfter": "20s", "giveUpAfter": "24h", "retryAfter": "2s"})
    # The manager lets more jobs in than the workers have room for: these wait on the workers.
    data["multiKueue"] |= {"headroomPercent": 400, "workerLostTimeout": "40s"}
    with controller_lab(tmp_path_factory.mktemp("lab"), data) as lab:
        proxies = {
            name: FaultProxy(cluster, seed + index) for index, (name, cluster) in enumerate(lab.clusters.items())
        }
        gates = {name: Gate(cluster.server) for name, cluster in lab.workers.items()}
        for name, gate in gates.items():
            route(lab, name, gate.url)
        made = Fleet(lab, proxies, gates, Witnesses(lab.workers), random.Random(seed))
        kubelet = threading.Thread(target=made.keep_running)
        kubelet.start()
        try:
            made.leader()
            wait_until_connected(lab)
            yield made
            made.settle()
            assert bugs(made) == []
        finally:
            made.over.set()
            kubelet.join()
            made.witnesses.close()
            for proxy in proxies.values():
                proxy.close()
            for gate in gates.values():
                gate.close()


def bugs(fleet: Fleet) -> list[Json]:
    """Decisions at which a replica failed."""
    lines = [line for replica in fleet.lab.replicas for line in replica.lines()]
    assert lines
    return [line for line in lines if line["message"] == "no decision"]


@pytest.fixture(autouse=True)
def said(request: pytest.FixtureRequest, fleet: Fleet, seed: int) -> Iterator[None]:
    """The seed is in what a failed test printed, and one replica leads when a test begins."""
    print(f"{request.node.name}: seed {seed}")
    fleet.leader()
    yield
    for proxy in fleet.proxies.values():
        proxy.noise, proxy.unreachable, proxy.held, proxy.on_patch = QUIET, False, (), None
    for gate in fleet.gates.values():
        gate.open()
    fleet.clear_up()


@dataclass
class Tally:
    """A fault in all processes."""

    rounds: int = 0
    recovered: list[float] = field(default_factory=list)
    seconds: float = 0.0

    def row(self, name: str) -> str:
        """A row of the table in docs/controller.md."""
        worst = f"{max(self.recovered):.1f}" if self.recovered else "-"
        return f"| {name} | {self.rounds} | {len(self.recovered)} | {self.seconds:.0f} | {worst} |"


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """A row for each fault."""
    tallies: dict[str, Tally] = {}
    for report in terminalreporter.getreports("passed") + terminalreporter.getreports("failed"):
        if report.when != "call" or _HERE not in report.nodeid:
            continue
        name = report.nodeid.rpartition("::test_")[2].replace("_", " ")
        tally = tallies.setdefault(name, Tally())
        tally.seconds += report.duration
        tally.rounds += sum(value for key, value in report.user_properties if key == "rounds")
        tally.recovered += [value for key, value in report.user_properties if key == "recovered"]
    if not tallies:
        return
    terminalreporter.section("faults")
    for line in ("| fault | rounds | passed | seconds | worst recovery, seconds |", "|---|---|---|---|---|"):
        terminalreporter.write_line(line)
    for name, tally in tallies.items():
        terminalreporter.write_line(tally.row(name))
