"""How fast the controller is: `python tests/support/controller_load.py` measures it on two bare control planes.

One is the manager; the other stands for all of the workers, under as many names, with a queue for every twenty. There
is no Kueue: Workloads are made with quota already reserved, and what the controller writes is watched.

    nominations   Workloads that all wait when the controller starts: nominations per second, beside the same patches
                  written by nothing but server-side apply, with as many requests at a time
    memory        of the controller with all of them, and with more that it only knows
    latency       Workloads that come one after the other while the others wait: from quota reserved to nominated, as a
                  watcher sees it, and how late that watcher sees the reservation itself
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import psutil
import yaml

from bare_lab import BareCluster, bare_lab
from controller_lab import GPU, import_root
from kueue_admission.api.multi_kueue import MOST_CLUSTERS
from kueue_fleet.controller.main import CONCURRENT
from kueue_fleet.kube.answers import ApiError, Json
from kueue_fleet.kube.client import KubeApi
from kueue_fleet.settings.dispatch import ASSIGNMENT_CHECK, ASSIGNMENT_CONTROLLER
from kueue_rehearsal.engines import EngineCache, build_engines
from kueue_rehearsal.paths import engines_dir

KUEUE = "/apis/kueue.x-k8s.io/v1beta2"
API = "kueue.x-k8s.io/v1beta2"
MOST_SAID_PER_SECOND = 5
"""Events of jobs that wait; those of nominations come faster."""


@dataclass
class Measured:
    """Everything that was measured; rates per second, times in milliseconds, memory in MiB."""

    workers: int
    workloads: int
    plain_apply_rate: float
    nomination_rate: float
    share: float
    at_rate: float
    p50_ms: float
    p99_ms: float
    watch_p99_ms: float
    memory_mib: float
    known: int
    memory_of_known_mib: float
    nomination_cpu_ms: float
    """CPU of the controller for each nomination, from its start until all of them are there."""
    waiting: int
    """Workloads that wait while the last two are measured."""
    waiting_cpu_share: float
    """CPU of the controller for saying why they wait, as part of a core."""
    waiting_writes: float
    """Conditions and events that it writes for that, a second."""


def kubeconfig(folder: Path, name: str, cluster: BareCluster) -> Path:
    import base64

    file = folder / name
    authority = base64.b64encode(cluster.authority.encode()).decode()
    document = {
        "clusters": [{"name": "c", "cluster": {"server": cluster.server, "certificate-authority-data": authority}}],
        "users": [{"name": "u", "user": {"token": cluster.token}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "c",
    }
    file.write_text(yaml.safe_dump(document))
    return file


def install_crds(cluster: BareCluster) -> None:
    engines = build_engines(EngineCache(engines_dir()), names=("etcd", "kubernetes", "kueue"))
    for file in sorted(engines.asset("kueue-crds").glob("*.yaml")):
        for document in yaml.safe_load_all(file.read_text()):
            if document and document["kind"] == "CustomResourceDefinition":
                document["spec"].pop("conversion", None)
                cluster.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", document)


async def until(look: Any, seconds: float = 60.0) -> None:
    async with asyncio.timeout(seconds):
        while not await look():
            await asyncio.sleep(0.2)


async def make(api: KubeApi, path: str, kind: str, name: str, spec: Json, namespace: str | None = None) -> None:
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    await api.create(path, {"apiVersion": API, "kind": kind, "metadata": metadata, "spec": spec})


def queue_of(name: str, queues: int) -> str:
    """The queue of a Workload: the queues take turns."""
    return f"gpu-{int(name.rpartition('-')[2]) % queues}"


async def prepare(manager: KubeApi, worker: KubeApi, workers: list[str], gpus: int) -> None:
    """What Kueue and the fleet would have made, as far as the controller reads it."""
    groups = [workers[first : first + MOST_CLUSTERS] for first in range(0, len(workers), MOST_CLUSTERS)]

    async def served(api: KubeApi) -> bool:
        try:
            for kind in ("workloads", "clusterqueues", "localqueues", "multikueueconfigs", "cohorts"):
                await api.get(f"{KUEUE}/{kind}")
        except ApiError:
            return False
        return True

    for api in (manager, worker):
        await until(lambda api=api: served(api))
        await api.create("/api/v1/namespaces", {"metadata": {"name": "team"}})
    await manager.create("/api/v1/namespaces", {"metadata": {"name": "system"}})
    quotas = [{"name": GPU, "nominalQuota": str(gpus)}]
    flavors = [{"coveredResources": [GPU], "flavors": [{"name": "l4", "resources": quotas}]}]
    for api in (manager, worker):
        await make(api, f"{KUEUE}/resourceflavors", "ResourceFlavor", "l4", {})
    queue = {"namespaceSelector": {}, "resourceGroups": flavors}
    assigned = {**queue, "admissionChecksStrategy": {"admissionChecks": [{"name": ASSIGNMENT_CHECK}]}}
    ours = {"controllerName": ASSIGNMENT_CONTROLLER}
    await make(worker, f"{KUEUE}/admissionchecks", "AdmissionCheck", ASSIGNMENT_CHECK, ours)
    for number, group in enumerate(groups):
        name = f"gpu-{number}"
        await make(worker, f"{KUEUE}/clusterqueues", "ClusterQueue", name, assigned)
        await make(manager, f"{KUEUE}/clusterqueues", "ClusterQueue", name, queue)
        for api in (manager, worker):
            await make(api, f"{KUEUE}/namespaces/team/localqueues", "LocalQueue", name, {"clusterQueue": name}, "team")
        parameters = {"apiGroup": "kueue.x-k8s.io", "kind": "MultiKueueConfig", "name": name}
        check = {"controllerName": "kueue.x-k8s.io/multikueue", "parameters": parameters}
        await make(manager, f"{KUEUE}/admissionchecks", "AdmissionCheck", name, check)
        await make(manager, f"{KUEUE}/multikueueconfigs", "MultiKueueConfig", name, {"clusters": group})
    for name in workers:
        source = {"clusterSource": {"kubeConfig": {"location": name}}}
        await make(manager, f"{KUEUE}/multikueueclusters", "MultiKueueCluster", name, source)
        status = {"conditions": [condition("Active")]}
        body = {"apiVersion": API, "kind": "MultiKueueCluster", "metadata": {"name": name}, "status": status}
        await manager.apply(f"{KUEUE}/multikueueclusters/{name}/status", body, "lab")


def condition(kind: str) -> Json:
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    return {"type": kind, "status": "True", "reason": "Lab", "message": "", "lastTransitionTime": now}


async def submit(api: KubeApi, name: str, queues: int) -> None:
    """A Workload, and then its quota."""
    await create(api, name, queues)
    await reserve(api, name, queues)


async def create(api: KubeApi, name: str, queues: int) -> None:
    container = {"name": "main", "image": "i", "resources": {"requests": {GPU: "1"}}}
    pod_set = {"name": "main", "count": 1, "template": {"spec": {"containers": [container], "restartPolicy": "Never"}}}
    spec = {"queueName": queue_of(name, queues), "priority": 0, "podSets": [pod_set]}
    await make(api, f"{KUEUE}/namespaces/team/workloads", "Workload", name, spec, "team")


async def reserve(api: KubeApi, name: str, queues: int) -> None:
    queue = queue_of(name, queues)
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    assignment = {"name": "main", "count": 1, "flavors": {GPU: "multikueue"}, "resourceUsage": {GPU: "1"}}
    status = {
        "admission": {"clusterQueue": queue, "podSetAssignments": [assignment]},
        "conditions": [condition("QuotaReserved")],
        "admissionChecks": [{"name": queue, "state": "Pending", "message": "", "lastTransitionTime": now}],
    }
    await api.apply(f"{KUEUE}/namespaces/team/workloads/{name}/status", body_of(name, status), "kueue-admission")


def body_of(name: str, status: Json) -> Json:
    return {"apiVersion": API, "kind": "Workload", "metadata": {"name": name, "namespace": "team"}, "status": status}


async def side_by_side(items: list[str], work: Any) -> float:
    """Seconds for all of them, as many at a time as the controller does."""
    waiting = list(reversed(items))

    async def one() -> None:
        while waiting:
            await work(waiting.pop())

    began = time.monotonic()
    await asyncio.gather(*(one() for _ in range(CONCURRENT)))
    return time.monotonic() - began


class Nominations:
    """When each Workload was first seen to be nominated."""

    def __init__(self) -> None:
        self.seen: dict[str, float] = {}
        self.reserved: dict[str, float] = {}
        self.example: Json = {}

    async def follow(self, api: KubeApi, version: str) -> None:
        while True:
            try:
                async for kind, item in api.watch(f"{KUEUE}/workloads", version):
                    version = item["metadata"]["resourceVersion"]
                    if kind != "BOOKMARK":
                        self._see(item)
            except ApiError as error:
                print(f"the follower's watch: {error}", file=sys.stderr)
                if error.asks_for_list:
                    page = await api.get(f"{KUEUE}/workloads")
                    version = page["metadata"]["resourceVersion"]
                    for item in page["items"]:
                        self._see(item)

    def _see(self, item: Json) -> None:
        name, status = item["metadata"]["name"], item.get("status") or {}
        if "admission" in status:
            self.reserved.setdefault(name, time.monotonic())
        if status.get("nominatedClusterNames") and name not in self.seen:
            self.seen[name] = time.monotonic()
            self.example = status


def configuration(workers: list[str]) -> Json:
    """The configuration of a controller for what `prepare` makes."""
    return {
        "fleet": "load", "namespace": "system", "origin": "multikueue", "dispatches": True,
        "controller": {"image": "example.com/controller:1", "prices": {"us-east4": {"l4": 1.0}}},
        "teamRegions": {}, "kueue": {},
        "workers": [{"name": name, "region": "us-east4", "kueue": {}} for name in workers],
    }  # fmt: skip


async def measure(
    folder: Path, clusters: list[BareCluster], workers: int, workloads: int, more: int, known: int
) -> Measured:
    names = [f"w{index:02}" for index in range(workers)]
    (folder / "workers").mkdir()
    for name in names:
        kubeconfig(folder / "workers", name, clusters[1])
    manager = KubeApi(kubeconfig(folder, "manager", clusters[0]))
    worker = KubeApi(kubeconfig(folder, "worker", clusters[1]))
    await prepare(manager, worker, names, gpus=workloads)
    queues = -(-workers // MOST_CLUSTERS)
    (folder / "config.yaml").write_text(yaml.safe_dump(configuration(names)))
    flood = [f"flood-{index:05}" for index in range(workloads)]
    await side_by_side([*flood, *(f"plain-{name}" for name in flood)], lambda name: submit(manager, name, queues))
    result = Nominations()
    version = (await manager.get(f"{KUEUE}/workloads", {"limit": "1"}))["metadata"]["resourceVersion"]
    following = asyncio.create_task(result.follow(manager, version))
    # The other half is not ours to nominate: the plain writer has it.
    for name in flood:
        await manager.apply(
            f"{KUEUE}/namespaces/team/workloads/plain-{name}/status",
            body_of(f"plain-{name}", {"clusterName": names[0]}),
            "lab",
        )
    with (folder / "log").open("wb") as log:
        arguments = ["--config", folder / "config.yaml", "--workers", folder / "workers", "--listen", "127.0.0.1:0"]
        process = subprocess.Popen(
            [sys.executable, "-m", "kueue_fleet.controller", *map(str, arguments)],
            env={**os.environ, "KUBECONFIG": str(folder / "manager"), "PYTHONPATH": import_root()},
            stdout=log,
            stderr=log,
        )
    try:
        try:
            await until(_async(lambda: len(result.seen) >= workloads), 600)
        except TimeoutError:
            raise SystemExit(f"only {len(result.seen)} nominated; {(folder / 'log').read_text()[-3000:]}") from None
        spent = psutil.Process(process.pid).cpu_times()
        times = sorted(result.seen.values())
        rate = (len(times) - 1) / (times[-1] - times[0])
        conditions = [one for one in result.example["conditions"] if one["type"].startswith("kueue-fleet.dev/")]
        patch = {"conditions": conditions}

        async def plain(name: str) -> None:
            path = f"{KUEUE}/namespaces/team/workloads/plain-{name}/status"
            await manager.apply(path, body_of(f"plain-{name}", patch), "plain")

        plain_rate = workloads / await side_by_side(flood, plain)
        memory = psutil.Process(process.pid).memory_info().rss / 2**20
        rest = known - 2 * workloads - more
        if rest > 0:
            await side_by_side(
                [f"rest-{index:05}" for index in range(rest)], lambda name: create(manager, name, queues)
            )
            await asyncio.sleep(2.0)
        late, bare = await _latencies(manager, result, more, 20.0, queues)
        output = await _say(manager, process.pid)
        more_memory = psutil.Process(process.pid).memory_info().rss / 2**20
        waits = max(0, rest)
    finally:
        process.kill()
        process.wait()
        following.cancel()
        for api in (manager, worker):
            await api.close()
    ranked, bare = sorted(late), sorted(bare)
    return Measured(
        workers, workloads, plain_rate, rate, rate / plain_rate, 20.0,
        1000 * statistics.median(ranked), 1000 * ranked[int(0.99 * (len(ranked) - 1))],
        1000 * bare[int(0.99 * (len(bare) - 1))], memory,
        max(known, 2 * workloads + more), more_memory, 1000 * (spent.user + spent.system) / workloads,
        waits, *output,
    )  # fmt: skip


async def _after(seconds: float, look: Any) -> Any:
    await asyncio.sleep(seconds)
    return await look()


async def _say(api: KubeApi, pid: int, seconds: float = 60.0) -> tuple[float, float]:
    """CPU of the controller as part of a core, and what it writes a second, while nothing happens but that."""

    async def told() -> int:
        events = await api.get("/api/v1/namespaces/team/events", {"limit": "1"})
        return len(events["items"]) + int(events["metadata"].get("remainingItemCount", 0))

    # What is new is looked at first, and events of nominations are still written.
    await asyncio.sleep(30.0)
    last = await told()
    async with asyncio.timeout(300.0):
        while await _after(5.0, told) - last > 5 * MOST_SAID_PER_SECOND:
            last = await told()
    before, began, spent = await told(), time.monotonic(), psutil.Process(pid).cpu_times()
    await asyncio.sleep(seconds)
    now, passed = psutil.Process(pid).cpu_times(), time.monotonic() - began
    share = (now.user + now.system - spent.user - spent.system) / passed
    return share, 2 * (await told() - before) / passed


def _async(look: Any) -> Any:
    async def ask() -> Any:
        return look()

    return ask


async def _latencies(
    api: KubeApi, found: Nominations, count: int, rate: float, queues: int
) -> tuple[list[float], list[float]]:
    """From the moment that the reservation is written until the nomination is seen; and until it is itself seen."""
    began, reserved = time.monotonic(), {}
    for index in range(count):
        name = f"single-{index:04}"
        await submit(api, name, queues)
        reserved[name] = time.monotonic()
        await asyncio.sleep(max(0.0, began + (index + 1) / rate - time.monotonic()))
    try:
        await until(_async(lambda: all(name in found.seen for name in reserved)), 120)
    except TimeoutError:
        missing = [name for name in reserved if name not in found.seen]
        raise SystemExit(f"{len(missing)} not nominated, such as {missing[:3]}") from None
    nominated = [max(0.0, found.seen[name] - at) for name, at in reserved.items()]
    return nominated, [max(0.0, found.reserved[name] - at) for name, at in reserved.items()]


def run(workers: int = 20, workloads: int = 2000, more: int = 400, known: int = 10000) -> Measured:
    """Measure, in a folder that is gone afterwards."""
    with tempfile.TemporaryDirectory() as folder, bare_lab(Path(folder)) as lab:
        clusters = lab.clusters("manager", "workers")
        for cluster in clusters:
            install_crds(cluster)
        (Path(folder) / "controller").mkdir()
        return asyncio.run(measure(Path(folder) / "controller", clusters, workers, workloads, more, known))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workers", type=int, default=20)
    parser.add_argument("--workloads", type=int, default=2000)
    parser.add_argument("--more", type=int, default=400, help="Workloads that come at 20 a second")
    parser.add_argument("--known", type=int, default=10000, help="Workloads in all, for the memory")
    given = parser.parse_args()
    print(json.dumps(asdict(run(given.workers, given.workloads, given.more, given.known)), indent=1))
