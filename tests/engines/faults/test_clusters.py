"""Faults under load on the real Kueue: no job is lost, stranded, run twice, or anywhere outside its regions.

There are always more jobs than GPUs, so that copies wait on the workers during every fault, and jobs run longer than
the Lease lasts. A round is: some jobs, the fault, some more, the end of the fault, and it is over when a job that came
after the fault is nominated; the next round begins while the jobs of this one still run. What must never happen is
looked for after every round, and at the end every job has ended, and all quota is given back.

Every test says its seed and the time to recover: from the fault to the first nomination of a job that came after it.
`make faults ROUNDS=20 SEED=7` does each as often as you like.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import pytest

from controller_faults import LEASE, NOISE, QUIET, STORM, FaultProxy, Gate, Witnesses
from controller_lab import (
    JOBS,
    MANAGER,
    ControllerLab,
    ControllerProcess,
    apply_object,
    controller_lab,
    fleet_data,
    install_kueue,
    job,
    route,
    wait_until_connected,
)
from one_cluster import KUEUE, Json, Refused, condition, wait_until

EU, US = "worker-eu", "worker-us"
REGIONS = {EU: "europe-west4", US: "us-east4"}
SEED = int(os.environ.get("KUEUE_FLEET_FAULT_SEED", "20261122"))
ROUNDS = int(os.environ.get("KUEUE_FLEET_FAULT_ROUNDS", "1"))
LOAD = 6
"""Jobs of a round; half of them are there before the fault."""
GPUS = 2
"""On each worker."""
RUN_SECONDS = 6
"""How long a job runs: longer than the Lease lasts."""
RECOVERY_SECONDS = 90.0
SETTLE_SECONDS = 180.0
"""Within which jobs end, apart from their number: Kueue waits longer each time before it connects to a worker."""
RESTART_SECONDS = 6.0
"""After how long a replica that ended is started again; longer than the Lease, so that the other one takes over."""
LEASE_PATH = "/apis/coordination.k8s.io/v1/namespaces/kueue-fleet-system/leases/kueue-fleet-controller"
CONFIG_PATH = f"{KUEUE}/multikueueconfigs/multikueue"
MERGE = "application/merge-patch+json"
Record = Callable[[str, object], None]


@dataclass
class Fleet:
    """A fleet with a proxy before each API server, two replicas behind them, and witnesses that miss nothing.

    A replica that has ended, killed or because it lost the Lease, is started again, as a kubelet would.
    """

    lab: ControllerLab
    proxies: dict[str, FaultProxy]
    gates: dict[str, Gate]
    witnesses: Witnesses
    draw: random.Random
    bound: dict[str, str | None] = field(default_factory=dict)
    """Every job, and the only worker that it may be on; None: any."""
    restarted: set[str] = field(default_factory=set)
    """Jobs that may run again after they have ended, since Kueue evicts them in that fault."""
    forgotten: set[str] = field(default_factory=set)
    """Jobs that went with what a fault destroys."""
    ended: set[str] = field(default_factory=set)
    """Jobs that have ended, left nothing on a worker, and are deleted."""
    replicas: dict[str, ControllerProcess] = field(default_factory=dict)
    changes: dict[str, Any] = field(default_factory=dict)
    """To the section admissionController, from the next start of a replica on."""
    held_down: set[str] = field(default_factory=set)
    """Replicas that are not started again for now."""
    rounds: int = 0
    over: threading.Event = field(default_factory=threading.Event)

    def keep_running(self) -> None:
        """Start both replicas, and again whenever one has ended, until it is over."""
        ended: dict[str, float] = {}
        while not self.over.wait(0.2):
            for identity in ("one", "two"):
                found = self.replicas.get(identity)
                if identity in self.held_down or (found is not None and found.process.poll() is None):
                    continue
                since = ended.setdefault(identity, time.monotonic())
                if found is None or time.monotonic() - since >= RESTART_SECONDS:
                    del ended[identity]
                    servers = {name: proxy.url for name, proxy in self.proxies.items()}
                    self.replicas[identity] = self.lab.start_faulty(identity, servers, **self.changes)

    def leader(self) -> str:
        """The replica that holds the Lease; waits for one that runs."""

        def look() -> str | None:
            found = self.lab.manager.find(LEASE_PATH)
            name = str(found["spec"].get("holderIdentity") or "") if found else ""
            return name if name in self.replicas and self.replicas[name].process.poll() is None else None

        return wait_until(look)

    def other(self, identity: str) -> str:
        return "two" if identity == "one" else "one"

    def submit(self, name: str, namespace: str = "team", place: str | None = "draw") -> None:
        place = self.draw.choice([*REGIONS, None]) if place == "draw" else place
        self.bound[name] = place
        body = job(name, regions=REGIONS[place] if place and namespace == "team" else None, seconds=RUN_SECONDS)
        body["metadata"]["namespace"] = namespace
        # Kueue may forget it while it starts; see docs/found-in-kueue.md.
        body["spec"]["managedBy"] = "kueue.x-k8s.io/multikueue"
        self.lab.submit(body)

    def survive(
        self,
        fault: Callable[[], None],
        after: Callable[[], None] = lambda: None,
        *,
        restarts: bool = False,
        forgets: bool = False,
    ) -> float:
        """Half of the load, the fault, the other half, what ends the fault; seconds until it was recovered from.

        `restarts`: Kueue evicts jobs in this fault. `forgets`: the first half of the load goes with it.
        """
        self.rounds += 1
        names = [f"r{self.rounds}-{index}" for index in range(LOAD)]
        if restarts:
            # Whatever runs during the fault may be evicted, whichever round it is from.
            self.restarted |= {*self.bound, *names}
        for name in names[: LOAD // 2]:
            self.submit(name)
        fault()
        if forgets:
            self.forgotten |= set(names[: LOAD // 2])
        began = time.monotonic()
        probe = f"r{self.rounds}-probe"
        self.submit(probe)
        seen: list[float] = []
        watching = threading.Thread(target=lambda: seen.extend(at - began for at in self._nominated(probe)))
        watching.start()
        for name in names[LOAD // 2 :]:
            self.submit(name)
        if restarts:
            self.restarted.add(probe)
        after()
        watching.join()
        self.never()
        assert seen, f"{probe} was not nominated within {RECOVERY_SECONDS:.0f} s: {self.describe(probe)}"
        return seen[0]

    def _nominated(self, name: str) -> list[float]:
        """When a job was nominated; empty: not in time."""
        end = time.monotonic() + RECOVERY_SECONDS
        while time.monotonic() < end:
            with suppress(OSError, Refused):
                status = (self.lab.workload(name) or {}).get("status") or {}
                if status.get("nominatedClusterNames") or status.get("clusterName"):
                    return [time.monotonic()]
            time.sleep(0.2)
        return []

    def describe(self, name: str) -> Json:
        """Where a job stands, on every cluster."""
        found = self.lab.workload(name) or {"metadata": {"name": "none"}}
        path = f"{KUEUE}/namespaces/team/workloads/{found['metadata']['name']}"
        workloads = {where: cluster.find(path) for where, cluster in self.lab.clusters.items()}
        told: Json = {where: item.get("status") for where, item in workloads.items() if item}
        jobs = {where: cluster.find(f"{JOBS}/{name}") for where, cluster in self.lab.clusters.items()}
        return {**told, **{f"job on {where}": item.get("status") for where, item in jobs.items() if item}}

    def never(self) -> None:
        """What must not have happened at any moment."""
        assert self.witnesses.overlaps() == [], "a job was on workers twice at one time"
        runs, places = self.witnesses.runs(), self.witnesses.places()
        for name, place in list(self.bound.items()):
            assert runs[name] <= 1 or name in self.restarted | self.forgotten, f"{name} ran {runs[name]} times"
            if place is not None:
                assert places.get(name, set()) <= {place}, f"{name} was outside its regions"

    def clear_up(self) -> None:
        """Delete the jobs that are done with: everything takes longer with all jobs of all rounds."""
        there = self.witnesses.there()
        for item in self.lab.manager.items("/apis/batch/v1/jobs"):
            name, namespace = item["metadata"]["name"], item["metadata"]["namespace"]
            if condition(item, "Complete") == "True" and name not in there:
                self.lab.manager.delete(f"/apis/batch/v1/namespaces/{namespace}/jobs/{name}")
                self.ended.add(name)

    def settle(self) -> None:
        """Every job has ended, ran, and left nothing behind."""

        def ended() -> bool:
            jobs = {item["metadata"]["name"]: item for item in self.lab.manager.items("/apis/batch/v1/jobs")}
            expected = [name for name in self.bound if name not in self.forgotten | self.ended]
            missing = [name for name in expected if name not in jobs]
            assert missing == [], "lost"
            waiting = [name for name in expected if condition(jobs[name], "Complete") != "True"]
            assert waiting == [], f"{len(waiting)} not ended, such as {waiting[0]}: {self.describe(waiting[0])}"
            return True

        wait_until(ended, SETTLE_SECONDS + len(self.bound.keys() - self.ended) * 5.0)
        runs = self.witnesses.runs()
        for name in self.bound:
            assert runs[name] >= 1 or name in self.forgotten, f"{name} has ended and never ran"
        self.never()
        wait_until(lambda: not [use for cluster in self.lab.clusters.values() for use in quota_in_use(cluster)])


def quota_in_use(cluster: Any) -> list[Json]:
    queues = cluster.items(f"{KUEUE}/clusterqueues")
    flavors = [flavor for queue in queues for flavor in queue.get("status", {}).get("flavorsReservation", [])]
    used = [resource for flavor in flavors for resource in flavor["resources"]]
    return [resource for resource in used if resource["total"] not in ("0", 0)]


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    data = fleet_data(REGIONS, gpus=GPUS, dispatch={"widenAfter": "20s", "giveUpAfter": "24h", "retryAfter": "2s"})
    # The manager lets more jobs in than the workers have room for: these wait on the workers.
    data["multiKueue"] |= {"headroomPercent": 400, "workerLostTimeout": "40s"}
    with controller_lab(tmp_path_factory.mktemp("lab"), data) as lab:
        proxies = {
            name: FaultProxy(cluster, SEED + index) for index, (name, cluster) in enumerate(lab.clusters.items())
        }
        gates = {name: Gate(cluster.server) for name, cluster in lab.workers.items()}
        for name, gate in gates.items():
            route(lab, name, gate.url)
        made = Fleet(lab, proxies, gates, Witnesses(lab.workers), random.Random(SEED))
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
def said(request: pytest.FixtureRequest, fleet: Fleet) -> Iterator[None]:
    """The seed is in what a failed test printed, and one replica leads when a test begins."""
    print(f"{request.node.name}: seed {SEED}")
    fleet.leader()
    yield
    for proxy in fleet.proxies.values():
        proxy.noise, proxy.unreachable, proxy.held, proxy.on_patch = QUIET, False, (), None
    for gate in fleet.gates.values():
        gate.open()
    fleet.clear_up()


def tell(record: Record, seconds: list[float]) -> None:
    text = ", ".join(f"{one:.1f}" for one in seconds)
    print(f"recovered after {text} s")
    record("recovered_seconds", text)


def test_the_leader_is_killed_between_decision_and_write(fleet: Fleet, record_property: Record) -> None:
    def kill(*, written: bool) -> None:
        killed = threading.Event()

        def at_the_write() -> bool:
            fleet.replicas[fleet.leader()].kill()
            killed.set()
            return written

        fleet.proxies[fleet.draw.choice([MANAGER, EU, US])].on_patch = at_the_write
        fleet.submit(f"trigger-{fleet.rounds}")
        for name in (EU, US):
            fleet.submit(f"trigger-{fleet.rounds}-{name}", place=name)
        assert killed.wait(RECOVERY_SECONDS)

    seconds = []
    for index in range(ROUNDS):
        # Lost, written, lost, ...
        seconds.append(fleet.survive(lambda written=index % 2 == 1: kill(written=written)))  # type: ignore[misc]
    tell(record_property, seconds)


def test_both_replicas_are_killed(fleet: Fleet, record_property: Record) -> None:
    def kill() -> None:
        for replica in fleet.replicas.values():
            replica.kill()

    tell(record_property, [fleet.survive(kill) for _ in range(ROUNDS)])


def test_the_leader_is_stopped_for_longer_than_its_lease_and_goes_on(fleet: Fleet, record_property: Record) -> None:
    stopped: list[ControllerProcess] = []

    def stop() -> None:
        replica = fleet.replicas[fleet.leader()]
        replica.process.send_signal(signal.SIGSTOP)
        stopped.append(replica)
        first = fleet.lab.manager.get(LEASE_PATH)["spec"]["holderIdentity"]
        wait_until(lambda: fleet.lab.manager.get(LEASE_PATH)["spec"]["holderIdentity"] != first)

    def go_on() -> None:
        time.sleep(LEASE.lease)
        stopped.pop().process.send_signal(signal.SIGCONT)

    tell(record_property, [fleet.survive(stop, go_on) for _ in range(ROUNDS)])


def test_the_lease_is_deleted(fleet: Fleet, record_property: Record) -> None:
    tell(record_property, [fleet.survive(lambda: fleet.lab.manager.delete(LEASE_PATH)) for _ in range(ROUNDS)])


@pytest.mark.parametrize("number", [signal.SIGUSR1, signal.SIGUSR2], ids=["ahead", "back"])
def test_the_clock_of_the_leader_jumps_an_hour(fleet: Fleet, number: int, record_property: Record) -> None:
    """It leads on with that clock, and then the other one, whose clock is right, goes on with what it wrote."""
    jumped: list[ControllerProcess] = []

    def jump() -> None:
        jumped.append(fleet.replicas[fleet.leader()])
        jumped[-1].process.send_signal(number)

    tell(record_property, [fleet.survive(jump, lambda: jumped.pop().kill()) for _ in range(ROUNDS)])


def test_the_controller_is_upgraded(fleet: Fleet, record_property: Record) -> None:
    """One replica after the other ends and comes again with another configuration."""

    def upgrade() -> None:
        fleet.changes = {"prices": {"europe-west4": {"l4": fleet.draw.uniform(1, 2)}, "us-east4": {"l4": 1.5}}}
        standby = fleet.other(fleet.leader())
        for identity in (standby, fleet.other(standby)):
            before = fleet.replicas[identity]
            before.stop()
            wait_until(lambda identity=identity, before=before: fleet.replicas[identity] is not before)  # type: ignore[misc]

    tell(record_property, [fleet.survive(upgrade) for _ in range(ROUNDS)])


def test_the_managers_kueue_is_restarted_with_another_configuration(fleet: Fleet, record_property: Record) -> None:
    def restart() -> None:
        install_kueue(fleet.lab, MANAGER, gcInterval=f"{fleet.draw.randrange(20, 60)}s")
        wait_until_connected(fleet.lab)

    tell(record_property, [fleet.survive(restart) for _ in range(ROUNDS)])


def test_the_managers_api_server_is_killed(fleet: Fleet, record_property: Record) -> None:
    def restart() -> None:
        fleet.lab.kill_api_server(MANAGER)
        fleet.lab.mend_api_server(MANAGER)

    tell(record_property, [fleet.survive(restart) for _ in range(ROUNDS)])


def test_a_workers_api_server_is_killed(fleet: Fleet, record_property: Record) -> None:
    def cut() -> None:
        fleet.lab.kill_api_server(US)

    tell(record_property, [fleet.survive(cut, lambda: fleet.lab.mend_api_server(US)) for _ in range(ROUNDS)])


@pytest.mark.parametrize("cut_off", ["Kueue", "the controller", "Kueue and the controller"])
def test_a_worker_that_goes_on_is_cut_off(fleet: Fleet, cut_off: str, record_property: Record) -> None:
    """What runs there ends meanwhile, so that a copy that waits there gets its quota."""

    def cut() -> None:
        if "Kueue" in cut_off:
            fleet.gates[US].shut()
        if "controller" in cut_off:
            fleet.proxies[US].unreachable = True

    def join() -> None:
        time.sleep(fleet.draw.uniform(RUN_SECONDS, 2 * RUN_SECONDS))
        fleet.gates[US].open()
        fleet.proxies[US].unreachable = False

    tell(record_property, [fleet.survive(cut, join) for _ in range(ROUNDS)])


def test_a_workers_watches_fall_silent(fleet: Fleet, record_property: Record) -> None:
    def silence() -> None:
        fleet.proxies[US].held = ("",)

    def again() -> None:
        time.sleep(RUN_SECONDS)
        fleet.proxies[US].held = ()

    tell(record_property, [fleet.survive(silence, again) for _ in range(ROUNDS)])


def test_conflicts_dropped_watches_old_versions_and_refused_tokens(fleet: Fleet, record_property: Record) -> None:
    def noise() -> None:
        for proxy in fleet.proxies.values():
            proxy.noise = NOISE

    seconds = [fleet.survive(noise) for _ in range(ROUNDS)]
    tell(record_property, seconds)
    total = sum((proxy.counts for proxy in fleet.proxies.values()), start=type(fleet.proxies[EU].counts)())
    print(dict(total))
    assert {kind for kind in NOISE if total[kind]} == set(NOISE)


def test_a_storm_of_429s(fleet: Fleet, record_property: Record) -> None:
    def storm() -> None:
        for proxy in fleet.proxies.values():
            proxy.noise = STORM

    def calm() -> None:
        time.sleep(5.0)
        for proxy in fleet.proxies.values():
            proxy.noise = QUIET

    tell(record_property, [fleet.survive(storm, calm) for _ in range(ROUNDS)])


def test_a_token_expires_and_another_one_comes(fleet: Fleet, record_property: Record) -> None:
    def expire() -> None:
        for proxy in fleet.proxies.values():
            proxy.noise = {"unauthorized": 1.0}

    def renew() -> None:
        time.sleep(1.0)
        for proxy in fleet.proxies.values():
            proxy.noise = QUIET

    tell(record_property, [fleet.survive(expire, renew) for _ in range(ROUNDS)])


def test_the_manager_is_another_cluster_for_a_moment(fleet: Fleet, record_property: Record) -> None:
    """Its name leads to another cluster, as when it was replaced, and then to the first one again."""
    real = fleet.proxies[MANAGER].cluster

    def replace() -> None:
        fleet.proxies[MANAGER].cluster = fleet.lab.clusters[EU]
        fleet.proxies[MANAGER].unreachable = True
        time.sleep(0.2)
        fleet.proxies[MANAGER].unreachable = False
        time.sleep(2.0)

        fleet.proxies[MANAGER].cluster = real

    tell(record_property, [fleet.survive(replace) for _ in range(ROUNDS)])


def test_a_namespace_is_seen_later_than_its_workloads(fleet: Fleet, record_property: Record) -> None:
    def hold() -> None:
        fleet.proxies[MANAGER].held = ("/api/v1/namespaces",)
        name = f"late-{fleet.rounds}"
        label = {"kueue-fleet.dev/regions": REGIONS[EU]}
        for cluster in fleet.lab.clusters.values():
            metadata: Json = {"name": name, "labels": label if cluster is fleet.lab.manager else {}}
            apply_object(cluster, {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
            queue = {"name": "gpu", "namespace": name}
            local = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "LocalQueue", "metadata": queue}
            apply_object(cluster, {**local, "spec": {"clusterQueue": "gpu"}})
        for index in range(2):
            fleet.submit(f"{name}-{index}", namespace=name, place=EU)

    def release() -> None:
        time.sleep(2.0)
        fleet.proxies[MANAGER].held = ()

    tell(record_property, [fleet.survive(hold, release) for _ in range(ROUNDS)])


JUNK = ["", "\u0663; drop", "{" * 300, "europe-west4_", "0x10", "-1", "NaN", "\n", "a" * 5000, "\u202e"]


def test_garbage_in_annotations_labels_and_conditions(fleet: Fleet, record_property: Record) -> None:
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
            fleet.lab.manager.request("PATCH", path, {"metadata": {"annotations": junk}}, MERGE)
            condition_of_ours = {
                "type": draw.choice(["kueue-fleet.dev/GivenUp", "kueue-fleet.dev/Other"]),
                "status": draw.choice(["True", "False", "Unknown"]),
                "reason": "Junk",
                "message": draw.choice(JUNK) + "\nworker-us: 0.9 (price x): \x00",
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


def test_a_worker_is_drained_before_it_leaves_the_queue(fleet: Fleet, record_property: Record) -> None:
    """As docs/tasks/drain-a-worker.md has it: no job runs again."""
    queue = f"{KUEUE}/clusterqueues/gpu"

    def set_policy(policy: str) -> None:
        fleet.lab.workers[US].request("PATCH", queue, {"spec": {"stopPolicy": policy}}, MERGE)

    def drain() -> None:
        # What is bound to that region waits for it.
        set_policy("Hold")
        wait_until(lambda: not fleet.lab.workers[US].items(f"{KUEUE}/workloads"))
        fleet.lab.manager.request("PATCH", CONFIG_PATH, {"spec": {"clusters": [EU]}}, MERGE)

    def come_back() -> None:
        set_policy("None")
        fleet.lab.manager.request("PATCH", CONFIG_PATH, {"spec": {"clusters": [EU, US]}}, MERGE)

    tell(record_property, [fleet.survive(drain, come_back) for _ in range(ROUNDS)])


def test_a_worker_leaves_the_queue_while_jobs_run_there_and_comes_back(fleet: Fleet, record_property: Record) -> None:
    """Kueue evicts them on the manager, and leaves them running; they start again only once they have ended there."""

    def leave() -> None:
        wait_until(lambda: [item for item in fleet.lab.workers[US].items(JOBS) if item.get("status", {}).get("active")])
        fleet.lab.manager.request("PATCH", CONFIG_PATH, {"spec": {"clusters": [EU]}}, MERGE)

    def come_back() -> None:
        time.sleep(RUN_SECONDS / 2)
        fleet.lab.manager.request("PATCH", CONFIG_PATH, {"spec": {"clusters": [EU, US]}}, MERGE)

    def round_of_jobs() -> float:
        return fleet.survive(leave, come_back, restarts=True)

    tell(record_property, [round_of_jobs() for _ in range(ROUNDS)])


def test_a_worker_is_destroyed_and_replaced_under_its_name(fleet: Fleet, record_property: Record) -> None:
    """An operator says that it is gone; Kueue finds another worker later, and the controller too."""

    def say_gone(*workers: str) -> None:
        annotations = {"kueue-fleet.dev/gone-workers": ",".join(workers)}
        path = "/api/v1/namespaces/kueue-fleet-system"
        fleet.lab.manager.request("PATCH", path, {"metadata": {"annotations": annotations}}, MERGE)

    def replace() -> None:
        fleet.gates[US].shut()
        fleet.lab.supervisor.client.delete_cluster(US)
        fleet.witnesses.lost(US)
        say_gone(US)
        fleet.lab.replace_worker(US)
        fleet.gates[US].server = fleet.lab.clusters[US].server
        fleet.gates[US].open()
        say_gone()

    tell(record_property, [fleet.survive(replace, restarts=True) for _ in range(ROUNDS)])


def test_etcd_is_restored_from_a_backup(fleet: Fleet, record_property: Record) -> None:
    """Every cluster goes back to an earlier state, with lower resource versions; the controller is not restarted.

    Kueue and Kubernetes' own controllers are: their watches, from versions that are to come, stay silent until these
    versions are reached. Source: https://kubernetes.io/docs/tasks/administer-cluster/configure-upgrade-etcd/.
    """
    supervisor, paths = fleet.lab.supervisor.client, fleet.lab.supervisor.paths

    def with_etcd_stopped(what: Callable[[], object]) -> None:
        for name in fleet.lab.clusters:
            supervisor.kill(name, "kube-apiserver")
        supervisor.kill(None, "etcd")
        time.sleep(1.0)
        what()
        for name in fleet.lab.clusters:
            fleet.lab.mend_api_server(name)

    backup = paths.root / "etcd-backup"

    def restore() -> None:
        shutil.rmtree(paths.etcd / "data")
        shutil.copytree(backup, paths.etcd / "data")

    def restart_what_watches() -> None:
        watching = [each for each in supervisor.processes() if each["cluster"] and each["name"] != "kube-apiserver"]
        assert {each["cluster"] for each in watching} == set(fleet.lab.clusters)
        for each in watching:
            with suppress(ProcessLookupError):  # It may have ended with the API server.
                os.kill(each["pid"], signal.SIGKILL)

    def restored() -> None:
        with_etcd_stopped(restore)
        restart_what_watches()

    seconds = []
    for _ in range(ROUNDS):
        fleet.settle()
        shutil.rmtree(backup, ignore_errors=True)
        with_etcd_stopped(lambda: shutil.copytree(paths.etcd / "data", backup))
        before = set(fleet.bound)
        fleet.survive(lambda: None)
        fleet.settle()
        fleet.forgotten |= set(fleet.bound) - before
        seconds.append(fleet.survive(restored, restarts=True, forgets=True))
    tell(record_property, seconds)
