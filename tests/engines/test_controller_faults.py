"""Faults under load, each several times: no job is lost, stranded, run twice, or anywhere outside its regions.

Every test says its seed and the time to recover: from the fault to the first nomination of a job that came after it.
`make faults ROUNDS=10 SEED=7` does each as often as you like.
"""

from __future__ import annotations

import os
import random
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pytest

from controller_faults import NOISE, QUIET, FaultProxy, Witnesses
from controller_lab import JOBS, MANAGER, ControllerLab, ControllerProcess, controller_lab, fleet_data, job
from one_cluster import KUEUE, Json, condition, wait_until

EU, US = "worker-eu", "worker-us"
REGIONS = {EU: "europe-west4", US: "us-east4"}
SEED = int(os.environ.get("KUEUE_FLEET_FAULT_SEED", "20261121"))
ROUNDS = int(os.environ.get("KUEUE_FLEET_FAULT_ROUNDS", "2"))
LOAD = 16
"""Jobs of a round; half of them are there before the fault."""
RECOVERY_SECONDS = 90.0
RESTART_SECONDS = 12.0
"""After how long a replica that ended is started again; longer than the Lease, so that the other one takes over."""


@dataclass
class Fleet:
    """A fleet with a proxy before each API server, two replicas behind them, and witnesses that miss nothing.

    A replica that has ended, killed or because it lost the Lease, is started again, as a kubelet would.
    """

    lab: ControllerLab
    proxies: dict[str, FaultProxy]
    witnesses: Witnesses
    draw: random.Random
    bound: dict[str, str | None] = field(default_factory=dict)
    replicas: dict[str, ControllerProcess] = field(default_factory=dict)
    offsets: dict[str, float] = field(default_factory=lambda: {"one": 0.0, "two": 0.0})
    """Seconds by which the clock of each replica is off, from its next start on."""
    held_down: set[str] = field(default_factory=set)
    """Replicas that are not started again for now."""
    rounds: int = 0
    over: threading.Event = field(default_factory=threading.Event)

    def keep_running(self) -> None:
        """Start both replicas, and again whenever one has ended, until it is over."""
        ended: dict[str, float] = {}
        while not self.over.wait(0.2):
            for identity, offset in self.offsets.items():
                found = self.replicas.get(identity)
                if identity in self.held_down or (found is not None and found.process.poll() is None):
                    continue
                since = ended.setdefault(identity, time.monotonic())
                if found is None or time.monotonic() - since >= RESTART_SECONDS:
                    del ended[identity]
                    servers = {name: proxy.url for name, proxy in self.proxies.items()}
                    self.replicas[identity] = self.lab.start_faulty(identity, servers, offset)

    def leader(self) -> str:
        """The replica that holds the Lease; waits for one that runs."""

        def look() -> str | None:
            path = "/apis/coordination.k8s.io/v1/namespaces/kueue-fleet-system/leases/kueue-fleet-controller"
            found = self.lab.manager.find(path)
            name = str(found["spec"].get("holderIdentity") or "") if found else ""
            return name if name in self.replicas and self.replicas[name].process.poll() is None else None

        return wait_until(look)

    def submit(self, names: list[str]) -> None:
        for name in names:
            place = self.draw.choice([*REGIONS, None])
            self.bound[name] = place
            self.lab.submit(job(name, regions=REGIONS[place] if place else None, seconds=1))

    def survive(self, fault: Callable[[], None], after: Callable[[], None] = lambda: None) -> float:
        """Half of the load, the fault, the other half, what ends the fault; seconds until it was recovered from."""
        self.rounds += 1
        names = [f"r{self.rounds}-{index}" for index in range(LOAD)]
        self.submit(names[: LOAD // 2])
        fault()
        began = time.monotonic()
        probe = f"r{self.rounds}-probe"
        self.submit([probe])
        seen: list[float] = []
        watching = threading.Thread(target=lambda: seen.append(self._nominated(probe) - began))
        watching.start()
        self.submit(names[LOAD // 2 :])
        after()
        self.audit([*names, probe])
        watching.join()
        return seen[0]

    def _nominated(self, name: str) -> float:
        def look() -> bool:
            status = (self.lab.workload(name) or {}).get("status") or {}
            return bool(status.get("nominatedClusterNames") or status.get("clusterName"))

        wait_until(look, RECOVERY_SECONDS)
        return time.monotonic()

    def describe(self, name: str) -> Json:
        """Where a job stands, on every cluster."""
        found = self.lab.workload(name) or {"metadata": {"name": "none"}}
        path = f"{KUEUE}/namespaces/team/workloads/{found['metadata']['name']}"
        workloads = {where: cluster.find(path) for where, cluster in self.lab.clusters.items()}
        told: Json = {where: item.get("status") for where, item in workloads.items() if item}
        jobs = {where: cluster.find(f"{JOBS}/{name}") for where, cluster in self.lab.clusters.items()}
        return {**told, **{f"job on {where}": item.get("status") for where, item in jobs.items() if item}}

    def audit(self, names: list[str]) -> None:
        """Every job ends, ran once, and was never outside its regions."""

        def ended() -> bool:
            jobs = {item["metadata"]["name"]: item for item in self.lab.manager.items(JOBS)}
            missing = [name for name in names if name not in jobs]
            assert missing == [], "lost"
            waiting = [name for name in names if condition(jobs[name], "Complete") != "True"]
            assert waiting == [], f"not ended: {self.describe(waiting[0])}"
            return True

        wait_until(ended, 2 * RECOVERY_SECONDS)
        workloads: dict[str, Json] = {
            item["metadata"]["ownerReferences"][0]["name"]: item
            for item in self.lab.manager.items(f"{KUEUE}/workloads")
        }
        for name in names:
            assert self.witnesses.runs(name) == 1, f"{name} did not run once"
            places = self.witnesses.places(workloads[name]["metadata"]["name"])
            assert places <= {self.bound[name] or EU, self.bound[name] or US}, f"{name} was outside its regions"
            assert places, name


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    data = fleet_data(REGIONS, gpus=32, dispatch={"widenAfter": "20s", "giveUpAfter": "300s", "retryAfter": "2s"})
    with controller_lab(tmp_path_factory.mktemp("lab"), data) as lab:
        proxies = {
            name: FaultProxy(cluster, SEED + index) for index, (name, cluster) in enumerate(lab.clusters.items())
        }
        made = Fleet(lab, proxies, Witnesses(lab.workers), random.Random(SEED))
        kubelet = threading.Thread(target=made.keep_running)
        kubelet.start()
        try:
            made.leader()
            yield made
        finally:
            made.over.set()
            kubelet.join()


@pytest.fixture(autouse=True)
def said(request: pytest.FixtureRequest, fleet: Fleet) -> Iterator[None]:
    """The seed is in what a failed test printed, and one replica leads when a test begins."""
    print(f"{request.node.name}: seed {SEED}")
    fleet.leader()
    yield
    for proxy in fleet.proxies.values():
        proxy.noise, proxy.unreachable, proxy.on_patch = QUIET, False, None


def tell(record: Callable[[str, object], None], seconds: list[float]) -> None:
    text = ", ".join(f"{one:.1f}" for one in seconds)
    print(f"recovered after {text} s")
    record("recovered_seconds", text)


def test_the_leader_is_killed_between_decision_and_write(
    fleet: Fleet, record_property: Callable[[str, object], None]
) -> None:
    def kill(*, written: bool) -> None:
        killed = threading.Event()

        def at_the_write() -> bool:
            fleet.replicas[fleet.leader()].kill()
            killed.set()
            return written

        fleet.proxies[MANAGER].on_patch = at_the_write
        fleet.submit([f"trigger-{fleet.rounds}"])
        assert killed.wait(RECOVERY_SECONDS)

    seconds = []
    for index in range(ROUNDS + 1):
        # Lost, written, lost, ...
        seconds.append(fleet.survive(lambda written=index % 2 == 1: kill(written=written)))  # type: ignore[misc]
    tell(record_property, seconds)


def test_both_replicas_are_killed(fleet: Fleet, record_property: Callable[[str, object], None]) -> None:
    def kill() -> None:
        for replica in fleet.replicas.values():
            replica.kill()

    tell(record_property, [fleet.survive(kill) for _ in range(ROUNDS)])


def test_the_managers_api_server_is_killed(fleet: Fleet, record_property: Callable[[str, object], None]) -> None:
    def restart() -> None:
        fleet.lab.kill_api_server(MANAGER)
        fleet.lab.mend_api_server(MANAGER)

    tell(record_property, [fleet.survive(restart) for _ in range(ROUNDS)])


def test_a_worker_is_unreachable_and_back(fleet: Fleet, record_property: Callable[[str, object], None]) -> None:
    def cut() -> None:
        fleet.proxies[US].unreachable = True
        fleet.lab.kill_api_server(US)

    def back() -> None:
        fleet.lab.mend_api_server(US)
        fleet.proxies[US].unreachable = False

    tell(record_property, [fleet.survive(cut, back) for _ in range(ROUNDS)])


def test_conflicts_dropped_watches_old_versions_and_refused_tokens(
    fleet: Fleet, record_property: Callable[[str, object], None]
) -> None:
    def noise() -> None:
        for proxy in fleet.proxies.values():
            proxy.noise = NOISE

    seconds = [fleet.survive(noise) for _ in range(ROUNDS)]
    tell(record_property, seconds)
    total = sum((proxy.counts for proxy in fleet.proxies.values()), start=type(fleet.proxies[EU].counts)())
    print(dict(total))
    assert {kind for kind in NOISE if total[kind]} == set(NOISE)


def test_a_token_expires_and_another_one_comes(fleet: Fleet, record_property: Callable[[str, object], None]) -> None:
    def expire() -> None:
        for proxy in fleet.proxies.values():
            proxy.noise = {"unauthorized": 1.0}

    def renew() -> None:
        time.sleep(1.0)
        for proxy in fleet.proxies.values():
            proxy.noise = QUIET

    tell(record_property, [fleet.survive(expire, renew) for _ in range(ROUNDS)])


@pytest.mark.parametrize("offset", [3600.0, -3600.0], ids=["ahead", "behind"])
def test_the_clock_of_a_replica_is_off(
    fleet: Fleet, offset: float, record_property: Callable[[str, object], None]
) -> None:
    """It leads with that clock, and then the other one, whose clock is right, goes on with what it wrote."""
    first, second = "", ""

    def hand_over() -> None:
        nonlocal first, second
        first = fleet.leader()
        second = "two" if first == "one" else "one"
        before = fleet.replicas[second]
        fleet.offsets[second] = offset
        before.kill()
        wait_until(lambda: fleet.replicas[second] is not before)
        fleet.held_down.add(first)
        fleet.replicas[first].kill()
        wait_until(lambda: fleet.leader() == second)
        fleet.held_down.clear()

    def hand_back() -> None:
        fleet.offsets[second] = 0.0
        fleet.replicas[second].kill()

    tell(record_property, [fleet.survive(hand_over, hand_back) for _ in range(ROUNDS // 2)])


JUNK = ["", "\u0663; drop", "{" * 300, "europe-west4_", "0x10", "-1", "NaN", "\n", "a" * 5000, "\u202e"]


def test_garbage_in_annotations_labels_and_conditions(
    fleet: Fleet, record_property: Callable[[str, object], None]
) -> None:
    def litter() -> None:
        for item in fleet.lab.manager.items(f"{KUEUE}/workloads"):
            name, draw = item["metadata"]["name"], fleet.draw
            if f"-r{fleet.rounds}-" not in name:
                continue
            junk = {
                "kueue-fleet.dev/regionz": draw.choice(JUNK),
                "provreq.kueue.x-k8s.io/maxRunDurationSeconds": draw.choice(JUNK),
            }
            path = f"{KUEUE}/namespaces/team/workloads/{name}"
            body = {"metadata": {"annotations": junk}}
            fleet.lab.manager.request("PATCH", path, body, "application/merge-patch+json")
            message = draw.choice(JUNK) + "\nworker-us: 0.9 (price x): \x00"
            condition_of_ours = {
                "type": draw.choice(["kueue-fleet.dev/GivenUp", "kueue-fleet.dev/Other"]),
                "status": draw.choice(["True", "False", "Unknown"]),
                "reason": "Junk",
                "message": message,
                "lastTransitionTime": draw.choice(["1970-01-01T00:00:00Z", "2999-01-01T00:00:00Z"]),
            }
            status = {
                "apiVersion": "kueue.x-k8s.io/v1beta2",
                "kind": "Workload",
                "metadata": {"name": name, "namespace": "team"},
                "status": {"conditions": [condition_of_ours]},
            }
            query = "?fieldManager=junk&force=true"
            fleet.lab.manager.request("PATCH", f"{path}/status{query}", status, "application/apply-patch+yaml")

    tell(record_property, [fleet.survive(litter) for _ in range(ROUNDS)])


def test_no_replica_ever_failed_at_a_decision(fleet: Fleet) -> None:
    lines = [line for replica in fleet.lab.replicas for line in replica.lines()]
    assert lines
    assert [line for line in lines if line["message"] == "no decision"] == []
