"""A fleet under load for tests/engines/faults: jobs that outnumber the GPUs, faults, and what must never happen."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from controller_faults import FaultProxy, Gate, Replicas
from controller_lab import (
    JOBS,
    ControllerLab,
    ControllerProcess,
    disconnected,
    job,
    route,
    wait_until_connected,
)
from held_jobs import HELD_SECONDS, Held
from kueue_admission.history.events import Place, workload_events
from kueue_admission.history.schema import Event, Kind
from kueue_admission.history.store import Store, StoreError
from kueue_admission.read.printed import PrintedWorkload
from kueue_rehearsal.jobs.witness import Witnesses
from one_cluster import KUEUE, PATIENCE_SECONDS, Json, Refused, condition, wait_until

EU, US = "worker-eu", "worker-us"
REGIONS = {EU: "europe-west4", US: "us-east4"}
RUN_SECONDS = 5
"""How long a job runs: longer than the Lease lasts."""
RECOVERY_SECONDS = 90.0
SETTLE_SECONDS = 180.0
"""Within which jobs end, apart from their number: Kueue waits longer each time before it connects to a worker."""
RESTART_SECONDS = 5.0
"""After how long a replica that ended is started again; longer than the Lease, so that the other one takes over."""
LEASE_PATH = "/apis/coordination.k8s.io/v1/namespaces/kueue-fleet-system/leases/kueue-fleet-controller"


@dataclass
class Fleet:
    """A fleet with a proxy before each API server, two replicas behind them, and witnesses that miss nothing.

    A replica that has ended, killed or because it lost the Lease, is started again, as a kubelet would.
    """

    lab: ControllerLab
    proxies: dict[str, FaultProxy]
    gates: dict[str, Gate]
    witnesses: Witnesses
    forks: Replicas
    draw: random.Random
    held: Held
    load: int
    """Jobs of a round before the fault: as many as GPUs, and with the last one of the round before more."""
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
    """To the section controller, from the next start of a replica on."""
    held_down: set[str] = field(default_factory=set)
    """Replicas that are not started again for now."""
    rounds: int = 0
    fault_round: int = 1
    """Of the round of one fault."""
    recovered_after: Callable[[float], None] = lambda seconds: None
    """Called with the seconds that each round took to recover."""
    over: threading.Event = field(default_factory=threading.Event)

    def keep_running(self) -> None:
        """Start both replicas, and again whenever one has ended, until it is over."""
        ended: dict[str, float] = {}
        while not self.over.wait(0.2):
            for identity in ("one", "two"):
                result = self.replicas.get(identity)
                if identity in self.held_down or (result is not None and result.runs):
                    continue
                since = ended.setdefault(identity, time.monotonic())
                if result is None or time.monotonic() - since >= RESTART_SECONDS:
                    del ended[identity]
                    servers = {name: proxy.url for name, proxy in self.proxies.items()}
                    self.replicas[identity] = self.lab.start_faulty(self.forks, identity, servers, **self.changes)

    def leader(self) -> str:
        """The replica that holds the Lease; waits for one that runs."""

        def look() -> str | None:
            result = self.lab.manager.find(LEASE_PATH)
            name = str(result["spec"].get("holderIdentity") or "") if result else ""
            return name if name in self.replicas and self.replicas[name].runs else None

        return wait_until(look)

    def connect(self) -> None:
        """Kueue is connected to every worker, and does not wait for minutes first, as it does after several faults."""
        for name in disconnected(self.lab):
            route(self.lab, name, self.gates[name].url)
        wait_until_connected(self.lab)

    def other(self, identity: str) -> str:
        return "two" if identity == "one" else "one"

    def submit(
        self,
        name: str,
        namespace: str = "team",
        place: str | None = "draw",
        seconds: int = RUN_SECONDS,
        **spec: Any,
    ) -> None:
        """A job that runs for so many seconds, with these fields of its spec."""
        place = self.draw.choice([*REGIONS, None]) if place == "draw" else place
        self.bound[name] = place
        body = job(name, regions=REGIONS[place] if place and namespace == "team" else None, seconds=seconds)
        body["metadata"]["namespace"] = namespace
        # A pod that is deleted counts as one that failed.
        body["spec"]["backoffLimit"] = 3
        # Kueue may forget it while it starts; see docs/found-in-kueue.md.
        body["spec"] |= {"managedBy": "kueue.x-k8s.io/multikueue", **spec}
        self.lab.submit(body)

    def survive(
        self,
        fault: Callable[[], None],
        after: Callable[[], None] = lambda: None,
        *,
        restarts: bool = False,
        forgets: bool = False,
    ) -> None:
        """Some jobs, the fault, one more job, what ends the fault; waits until that job is nominated.

        `restarts`: Kueue evicts jobs in this fault. `forgets`: jobs that are there before the fault go with it.
        """
        self.rounds += 1
        names = [f"r{self.rounds}-{index}" for index in range(self.load)]
        probe = f"r{self.rounds}-probe"
        if restarts:
            # Whatever runs during the fault may be evicted, whichever round it is from.
            self.restarted |= {*self.bound, *names, probe}
        for name in names:
            self.submit(name)
        lost_before = self.leases_lost()
        fault()
        if forgets:
            self.forgotten |= set(names)
        began = time.monotonic()
        self.submit(probe)
        seen: list[float] = []
        watching = threading.Thread(target=lambda: seen.extend(at - began for at in self._nominated(probe)))
        watching.start()
        after()
        watching.join()
        self.never()
        late = f"{probe} was not nominated within {RECOVERY_SECONDS:.0f} s"
        assert seen, f"{late}; replicas lost the Lease {self.leases_lost() - lost_before} times: {self.describe(probe)}"
        self.recovered_after(seen[0])

    def leases_lost(self) -> int:
        """How often replicas have lost the Lease: a machine that is too busy loses the short one every few seconds."""
        return sum(len(item.lines("lease lost")) for item in self.replicas.values())

    def _nominated(self, name: str) -> list[float]:
        """When a job was nominated; empty: not in time."""
        end, path = time.monotonic() + RECOVERY_SECONDS, ""
        while time.monotonic() < end:
            with suppress(OSError, Refused):
                result = self.lab.manager.find(path) if path else self.lab.workload(name)
                path = f"{KUEUE}/namespaces/team/workloads/{result['metadata']['name']}" if result else ""
                status = (result or {}).get("status") or {}
                if status.get("nominatedClusterNames") or status.get("clusterName"):
                    return [time.monotonic()]
            time.sleep(0.2)
        return []

    def wait_until_drained(self, worker: str) -> None:
        """No copy is left on that worker. A busy machine takes minutes."""
        copies: list[str] = []

        def drained() -> bool:
            copies[:] = [item["metadata"]["name"] for item in self.lab.workers[worker].items(f"{KUEUE}/workloads")]
            return not copies

        try:
            wait_until(drained, seconds=3 * PATIENCE_SECONDS)
        except AssertionError as failed:
            left = [name for name in self.bound if any(copy.startswith(f"job-{name}-") for copy in copies)]
            told = [self.describe(name) for name in left]
            raise AssertionError(f"{failed}; copies are left: {copies}: {told}") from None

    def describe(self, name: str) -> Json:
        """Where a job stands, on every cluster, and what the manager's Kueue said of it last."""
        result = self.lab.workload(name) or {"metadata": {"name": "none"}}
        path = f"{KUEUE}/namespaces/team/workloads/{result['metadata']['name']}"
        workloads = {where: cluster.find(path) for where, cluster in self.lab.clusters.items()}
        told: Json = {where: item.get("status") for where, item in workloads.items() if item}
        jobs = {where: cluster.find(f"{JOBS}/{name}") for where, cluster in self.lab.clusters.items()}
        for where, item in jobs.items():
            if item:
                told[f"job on {where}"] = {"suspend": item["spec"].get("suspend"), **item.get("status", {})}
        logs = (self.lab.supervisor.paths.root / "clusters/manager").glob("*/pods/kueue-system_*/manager.log")
        lines = [line for log in logs for line in log.read_text(errors="replace").splitlines() if f"{name}-" in line]
        return {**told, "Kueue on the manager": [line[:400] for line in lines[-8:]]}

    def never(self) -> None:
        """What must not have happened at any moment."""
        assert self.witnesses.overlaps() == [], "a job was on workers twice at one time"
        assert self.held.unnamed == {}, f"held for {HELD_SECONDS:.0f} s, and status calls it not stuck"
        runs, places = self.witnesses.runs(), self.witnesses.places()
        for name, place in list(self.bound.items()):
            assert runs[name] <= 1 or name in self.restarted | self.forgotten, f"{name} ran {runs[name]} times"
            if place is not None:
                assert places.get(name, set()) <= {place}, f"{name} was outside its regions"

    def clear_up(self) -> None:
        """Delete the jobs that are done with: everything takes longer with all jobs of all rounds.

        Those whose history is not written stay: what comes and goes while no replica looks is lost, as is said of it.
        """
        there, unwritten = self.witnesses.there(), self.unwritten()
        for item in self.lab.manager.items("/apis/batch/v1/jobs"):
            name, namespace = item["metadata"]["name"], item["metadata"]["namespace"]
            if condition(item, "Complete") == "True" and name not in there and name not in unwritten:
                self.lab.manager.delete(f"/apis/batch/v1/namespaces/{namespace}/jobs/{name}")
                self.ended.add(name)

    def history(self) -> list[Event]:
        """What the replicas have written so far, as whoever reads it has it."""
        try:
            return Store(str(self.lab.history)).read()
        except (OSError, StoreError) as error:
            # There is none yet, or the files of a day have just become one.
            raise AssertionError(str(error)) from None

    def unwritten(self) -> dict[str, list[str]]:
        """What the manager's Workloads say has happened and the history lacks: keys of events by job."""
        written = {event.key for event in wait_until(self.history)}
        result: dict[str, list[str]] = {}
        for item in self.lab.manager.items(f"{KUEUE}/workloads"):
            for event in workload_events(PrintedWorkload.of(item), Place()):
                if event.key not in written:
                    result.setdefault(event.job.removeprefix("Job/"), []).append(event.key)
        return result

    def recorded(self) -> None:
        """The history has all that the Workloads say, and each job once, whichever replica wrote it.

        A job has another Workload where somebody deleted the first; what etcd forgot may have been written before.
        """

        def is_written() -> bool:
            assert self.unwritten() == {}, "not written"
            own = [event for event in self.history() if not event.copy]
            arrived = Counter(event.uid for event in own if event.kind is Kind.ARRIVED)
            over = Counter(event.uid for event in own if event.kind in (Kind.ENDED, Kind.DELETED))
            ended = Counter(event.job.removeprefix("Job/") for event in own if event.kind is Kind.ENDED)
            expected = self.bound.keys() - self.forgotten
            assert {name: ended[name] for name in expected | ended.keys() if ended[name] != 1} == {}, "ended"
            wrong = {uid: (arrived[uid], over[uid]) for uid in arrived | over if not arrived[uid] == over[uid] == 1}
            assert wrong == {}, [(event.job, event.kind, wrong[event.uid]) for event in own if event.uid in wrong]
            return True

        wait_until(is_written, pause=0.5)

    def settle(self) -> None:
        """Every job has ended, ran, and left nothing behind."""

        def ended() -> bool:
            jobs = {item["metadata"]["name"]: item for item in self.lab.manager.items("/apis/batch/v1/jobs")}
            expected = [name for name in self.bound if name not in self.forgotten | self.ended]
            missing = [name for name in expected if name not in jobs]
            assert missing == [], "lost"
            waiting[:] = [name for name in expected if condition(jobs[name], "Complete") != "True"]
            assert waiting == [], f"{len(waiting)} not ended"
            waiting[:] = [name for name in expected if jobs[name]["spec"].get("suspend")]
            assert waiting == [], f"{len(waiting)} ended, and still suspended"
            return True

        waiting: list[str] = []
        try:
            wait_until(ended, SETTLE_SECONDS + len(self.bound.keys() - self.ended) * 5.0, pause=0.5)
        except AssertionError as failed:
            described = f", such as {waiting[0]}: {self.describe(waiting[0])}" if waiting else ""
            raise AssertionError(f"{failed}{described}") from None
        runs = self.witnesses.runs()
        for name in self.bound:
            assert runs[name] >= 1 or name in self.forgotten, f"{name} has ended and never ran"
        self.never()
        clusters = self.lab.clusters.values()
        wait_until(lambda: not [use for cluster in clusters for use in quota_in_use(cluster)], pause=0.5)


def quota_in_use(cluster: Any) -> list[Json]:
    queues = cluster.items(f"{KUEUE}/clusterqueues")
    flavors = [flavor for queue in queues for flavor in queue.get("status", {}).get("flavorsReservation", [])]
    used = [resource for flavor in flavors for resource in flavor["resources"]]
    return [resource for resource in used if resource["total"] not in ("0", 0)]
