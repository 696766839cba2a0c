"""A manager and workers on real control planes, with real Kueue and the fleet's controller, for tests/engines."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import psutil
import yaml

import kueue_fleet
from controller_faults import Replicas
from fork_server import start_fork_server, write_program
from kueue_admission.kernel.manifest import Manifest
from kueue_fleet.fleet_file import ClusterEntry, FleetSpec, kueue_helm_values, parse_fleet
from kueue_fleet.fleet_file.model.kueue_pods import kueue_priority_class
from kueue_fleet.fleet_file.model.rehearsal_section import DwsSection, NodesSection, RehearsalSection, StockRange
from kueue_fleet.objects import render_cluster
from kueue_fleet.objects.controller_values import controller_configuration
from kueue_rehearsal.control_planes.cluster_services import cluster_services
from kueue_rehearsal.control_planes.control_plane import ClusterAccess, ClusterService
from kueue_rehearsal.engines import KUEUE_ENGINES, EngineCache, Engines, find_engines
from kueue_rehearsal.faults import lose_api_server, repair_api_server
from kueue_rehearsal.kubeconfig import rehearsal_kubeconfig, write_kubeconfig
from kueue_rehearsal.paths import RehearsalPaths, engines_dir
from kueue_rehearsal.processes.supervisor_client import RunningSupervisor, start_supervisor
from one_cluster import KUEUE, PATIENCE_SECONDS, Json, OneCluster, Refused, condition, wait_until

MANAGER = "manager"
GPU = "nvidia.com/gpu"
JOBS = "/apis/batch/v1/namespaces/team/jobs"
_CONTROLLERS = """
import ctypes, signal, sys
from kueue_fleet.controller.__main__ import main

def run(arguments):
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)
    return main(arguments[1:])
"""


def services(access: ClusterAccess) -> tuple[ClusterService, ...]:
    """A simulated cloud that is fast, and where DWS has B200 in the United States only."""
    stock = {"us-east4/nvidia-b200": StockRange(low=64, high=64), "nvidia-b200": StockRange(low=0, high=0)}
    settings = RehearsalSection(
        nodes=NodesSection(provision_seconds=0.5, idle_seconds=5.0),
        dws=DwsSection(stock=stock, accept_seconds=0.2, least_wait_seconds=0.5, most_wait_seconds=1.0),
    )
    return cluster_services(access, lambda: settings, warden=False)


def queue_data(name: str, flavor: str, gpus: int, *checks: str) -> Json:
    """A queue of one flavor, with GPUs and plenty of CPU on each worker."""
    quotas = [{"name": GPU, "nominalQuota": gpus}, {"name": "cpu", "nominalQuota": 10000}]
    group = {"coveredResources": [GPU, "cpu"], "flavors": [{"name": flavor, "resources": quotas}]}
    result: Json = {"name": name, "namespaceSelector": {}, "resourceGroups": [group]}
    if checks:
        result["admissionChecksStrategy"] = {"admissionChecks": [{"name": check} for check in checks]}
    return result


def fleet_data(workers: Mapping[str, str], gpus: int = 8, **controller: Any) -> Json:
    """A fleet whose jobs are dispatched by its own controller; `workers` are regions by name.

    Its queues: `gpu`; `dws`, where DWS is asked for the nodes; `gated`, behind a check of the controller.
    """
    label = "cloud.google.com/gke-accelerator"
    provisioning = {"provisioningClassName": "queued-provisioning.gke.io", "managedResources": [GPU]}
    queues = [
        queue_data("gpu", "l4", gpus),
        queue_data("dws", "b200", 64, "dws"),
        queue_data("gated", "l4", gpus, "fleet"),
    ]
    return {
        "name": "lab",
        "project": "lab-project",
        "deletionProtection": False,
        "kueue": {"replicas": 1},
        "jobSet": {"enabled": False},
        "observability": {"managedPrometheus": False, "dashboard": False, "alerts": {"enabled": False}},
        "clusters": [
            {"name": MANAGER, "role": "manager", "region": "europe-west4"},
            *({"name": name, "role": "worker", "region": region} for name, region in workers.items()),
        ],
        "flavors": [
            {"name": "l4", "nodeLabels": {label: "nvidia-l4"}},
            {"name": "b200", "nodeLabels": {label: "nvidia-b200"}},
        ],
        "admissionChecks": [
            {"name": "dws", "provisioningRequest": provisioning},
            {"name": "fleet", "controllerName": "kueue-fleet.dev/admission-check", "clusters": [MANAGER]},
        ],
        "clusterQueues": queues,
        "localQueues": [{"namespace": "team", "name": q["name"], "clusterQueue": q["name"]} for q in queues],
        "multiKueue": {
            "dispatcher": "External",
            "external": {"name": "kueue-fleet.dev/dispatcher"},
            "credentials": {"type": "ServiceAccountToken", "rotation": "2026-11", "rotateBy": "2027-02-01"},
        },
        "controller": {
            "image": "example.com/controller:1",
            "checks": [{"name": "fleet", "runDuration": {}}],
            **controller,
        },
    }


def job(
    name: str,
    gpus: int = 1,
    regions: str | None = None,
    queue: str = "gpu",
    annotations: Mapping[str, str] | None = None,
    seconds: int = 5,
) -> Json:
    """A Job of one pod in the namespace `team` that runs for so many seconds."""
    bound = {} if regions is None else {"kueue-fleet.dev/regions": regions}
    resources = {"requests": {"cpu": "1", GPU: gpus}, "limits": {GPU: gpus}}
    container = {"name": "main", "image": "train:1", "resources": resources}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": name,
            "namespace": "team",
            "labels": {"kueue.x-k8s.io/queue-name": queue, **bound},
            "annotations": dict(annotations or {}),
        },
        "spec": {
            "suspend": True,
            "backoffLimit": 0,
            "template": {
                "metadata": {"annotations": {"kueue-fleet.dev/run-seconds": str(seconds)}},
                "spec": {"restartPolicy": "Never", "containers": [container]},
            },
        },
    }


@dataclass
class ControllerProcess:
    """A replica of the controller on this machine."""

    process: subprocess.Popen[bytes] | psutil.Process
    log: Path

    @property
    def runs(self) -> bool:
        process = self.process
        return process.poll() is None if isinstance(process, subprocess.Popen) else process.is_running()

    def kill(self) -> None:
        """End it as a crash would; it may have ended."""
        with suppress(psutil.NoSuchProcess):
            self.process.kill()
            self.process.wait()

    def stop(self) -> int | None:
        """Ask it to end; it may have ended."""
        with suppress(psutil.NoSuchProcess):
            self.process.terminate()
            return self.process.wait(20)
        return None

    def lines(self, message: str = "") -> list[Json]:
        """What it logged."""
        return [line for line in logged(self.log) if not message or line["message"] == message]


def logged(log: Path) -> list[Json]:
    """The JSON lines of a log whose program may be in the middle of a line."""
    whole = log.read_text().rpartition("\n")[0]
    return [json.loads(line) for line in whole.splitlines() if line.startswith("{")]


@dataclass
class ControllerLab:
    """The clusters of a fleet by name. Requests are made as administrator."""

    fleet: FleetSpec
    supervisor: RunningSupervisor
    clusters: dict[str, OneCluster]
    folder: Path
    replicas: list[ControllerProcess] = field(default_factory=list)

    @property
    def manager(self) -> OneCluster:
        return self.clusters[MANAGER]

    @property
    def workers(self) -> dict[str, OneCluster]:
        return {name: cluster for name, cluster in self.clusters.items() if name != MANAGER}

    @property
    def history(self) -> Path:
        """Where replicas with a history have what a pod has as a volume."""
        return self.folder / "history"

    def workload(self, job_name: str) -> Json | None:
        """The manager's Workload of a Job, which Kueue labels with the Job's uid."""
        result = self.manager.find(f"{JOBS}/{job_name}")
        if result is None:
            return None
        selector = f"labelSelector=kueue.x-k8s.io/job-uid%3D{result['metadata']['uid']}"
        return next(iter(self.manager.items(f"{KUEUE}/namespaces/team/workloads?{selector}")), None)

    def submit(self, body: Json) -> None:
        """Creates a Job; Kueue's webhooks may just be on their way."""

        def create() -> bool:
            try:
                self.manager.create(f"/apis/batch/v1/namespaces/{body['metadata']['namespace']}/jobs", body)
            except Refused as error:
                raise AssertionError(str(error)) from None
            return True

        wait_until(create)

    def placed(self, name: str, seconds: float = PATIENCE_SECONDS) -> str:
        """Waits until a Job is admitted; the worker."""

        def look() -> str | None:
            result = self.workload(name)
            return result["status"].get("clusterName") if result and condition(result, "Admitted") == "True" else None

        return wait_until(look, seconds)

    def start_controller(self, identity: str = "a", **changes: Any) -> ControllerProcess:
        """A replica with its own log; `changes` to the section controller."""
        folder = self._configure(identity, {}, changes)
        arguments = ["--config", folder / "config.yaml", "--workers", folder / "workers"]
        arguments += ["--listen", "127.0.0.1:0", "--identity", identity]
        with (folder / "log").open("ab") as out:
            process = subprocess.Popen(
                [_controller(), *map(str, arguments)],
                env={**os.environ, "KUBECONFIG": str(folder / "manager")},
                stdout=out,
                stderr=out,
            )
        return self._started(process, folder)

    def start_faulty(
        self, forks: Replicas, identity: str, servers: Mapping[str, str], **changes: Any
    ) -> ControllerProcess:
        """A replica that reaches the API servers by other addresses, and has a short Lease."""
        folder = self._configure(identity, servers, changes)
        return self._started(forks.start(folder, identity, folder / "log"), folder)

    def _started(self, process: subprocess.Popen[bytes] | psutil.Process, folder: Path) -> ControllerProcess:
        replica = ControllerProcess(process, folder / "log")
        self.replicas.append(replica)
        return replica

    def _configure(self, identity: str, servers: Mapping[str, str], changes: Mapping[str, Any]) -> Path:
        section = {**self.fleet.controller.wire(), **changes} if self.fleet.controller else changes
        fleet = parse_fleet({**self.fleet.wire(), "controller": section})
        folder = self.folder / f"controller-{identity}"
        folder.mkdir(exist_ok=True)
        configuration = controller_configuration(fleet).wire()
        if "history" in configuration:
            configuration["history"]["store"] = str(self.history)
        (folder / "config.yaml").write_text(yaml.safe_dump(configuration))
        (folder / "workers").mkdir(exist_ok=True)
        for name, cluster in self.workers.items():
            write_kubeconfig_for(folder / "workers" / name, cluster, servers.get(name, cluster.server))
        write_kubeconfig_for(folder / "manager", self.manager, servers.get(MANAGER, self.manager.server))
        return folder

    def set_gpus(self, name: str, gpus: int) -> None:
        """Another quota of the queue `gpu` on a cluster; that of the others stays."""
        path = f"{KUEUE}/clusterqueues/gpu"
        groups = self.clusters[name].get(path)["spec"]["resourceGroups"]
        groups[0]["flavors"][0]["resources"][0]["nominalQuota"] = gpus
        body = {"spec": {"resourceGroups": groups}}
        self.clusters[name].request("PATCH", path, body, "application/merge-patch+json")

    def kill_api_server(self, name: str) -> None:
        """End the API server of a cluster as a crash would."""
        lose_api_server(self.supervisor.client, name)

    def mend_api_server(self, name: str) -> None:
        """Start it again, at the same address."""
        repair_api_server(self.supervisor.client, name)

    def replace_worker(self, name: str) -> None:
        """Make another worker of the name of one that was destroyed, with Kueue and the same queues."""
        region, worker = self.fleet.cluster(name).region, self.clusters[name]
        result = self.supervisor.client.put_cluster(name, project="lab-project", location=region, autopilot=True)
        worker.moved(f"https://{result['endpoint']}")
        write_kubeconfig(worker.folder / "kubeconfig", rehearsal_kubeconfig([result], worker.token, name))
        _install(self, name)

    def replace_manager(self, **multi_kueue: Any) -> None:
        """Destroy the manager, and make another one, with Kueue and the same queues, that knows of no job.

        `multi_kueue`: changes to the section multiKueue.
        """
        region = self.fleet.cluster(MANAGER).region
        self.supervisor.client.delete_cluster(MANAGER)
        result = self.supervisor.client.put_cluster(MANAGER, project="lab-project", location=region, autopilot=True)
        self.manager.moved(f"https://{result['endpoint']}")
        write_kubeconfig(
            self.manager.folder / "kubeconfig", rehearsal_kubeconfig([result], self.manager.token, MANAGER)
        )
        install_kueue(self, MANAGER, **multi_kueue)
        _connect(self)

    def clear(self) -> None:
        """Remove every Job, and wait until nothing is left of them anywhere."""
        self.manager.request(
            "DELETE", JOBS, {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background"}
        )
        for cluster in self.clusters.values():
            wait_until(lambda cluster=cluster: not cluster.items(f"{KUEUE}/workloads"))  # type: ignore[misc]


@cache
def _controller() -> str:
    """A program whose every call is a controller, forked by a `fork_server`, that ends with it."""
    address = start_fork_server(_CONTROLLERS)
    return write_program(address.with_name("controller"), f"call({str(address)!r})")


def import_root() -> str:
    return str(Path(kueue_fleet.__path__[0]).parent)


def python_path() -> str:
    """For a controller in a process of its own."""
    return os.pathsep.join((import_root(), str(Path(__file__).parent)))


def write_kubeconfig_for(file: Path, cluster: OneCluster, server: str = "") -> None:
    authority = base64.b64encode(cluster.ca_file.read_bytes()).decode()
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {"name": "c", "cluster": {"server": server or cluster.server, "certificate-authority-data": authority}}
        ],
        "users": [{"name": "u", "user": {"token": cluster.token}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "c",
    }
    file.write_text(yaml.safe_dump(document))


PATHS = {
    "Topology": f"{KUEUE}/topologies",
    "ResourceFlavor": f"{KUEUE}/resourceflavors",
    "ClusterQueue": f"{KUEUE}/clusterqueues",
    "Cohort": f"{KUEUE}/cohorts",
    "LocalQueue": KUEUE + "/namespaces/{namespace}/localqueues",
    "AdmissionCheck": f"{KUEUE}/admissionchecks",
    "MultiKueueConfig": f"{KUEUE}/multikueueconfigs",
    "MultiKueueCluster": f"{KUEUE}/multikueueclusters",
    "ProvisioningRequestConfig": f"{KUEUE}/provisioningrequestconfigs",
    "Namespace": "/api/v1/namespaces",
    "PriorityClass": "/apis/scheduling.k8s.io/v1/priorityclasses",
}


def apply_object(cluster: OneCluster, manifest: Manifest) -> None:
    path = PATHS[manifest["kind"]].format(namespace=manifest["metadata"].get("namespace", ""))

    def put() -> bool:
        try:
            cluster.request(
                "PATCH",
                f"{path}/{manifest['metadata']['name']}?fieldManager=lab&force=true",
                manifest,
                "application/apply-patch+yaml",
            )
        except Refused as error:
            raise AssertionError(str(error)) from None
        return True

    wait_until(put)


@contextmanager
def controller_lab(folder: Path, data: Json, services: str = "controller_lab:services") -> Iterator[ControllerLab]:
    """The fleet's clusters with Kueue and its objects; the controller is started by the test."""
    fleet = parse_fleet(data)
    tests, paths = str(Path(__file__).parent), RehearsalPaths(folder / "lab")
    with start_supervisor(paths, services=services, environ={**os.environ, "PYTHONPATH": tests}) as supervisor:
        engines = find_engines(EngineCache(engines_dir()))
        with ThreadPoolExecutor(4) as pool:
            clusters = dict(
                pool.map(lambda each: (each.name, _cluster(supervisor, paths, fleet, each, engines)), fleet.clusters)
            )
            lab = ControllerLab(fleet, supervisor, clusters, folder)
            list(pool.map(lambda name: _install(lab, name), fleet.cluster_names))
        try:
            _connect(lab)
            yield lab
        finally:
            for replica in lab.replicas:
                if replica.runs:
                    replica.kill()


def _cluster(
    supervisor: RunningSupervisor, paths: RehearsalPaths, fleet: FleetSpec, entry: ClusterEntry, engines: Engines
) -> OneCluster:
    result = supervisor.client.put_cluster(entry.name, project="lab-project", location=entry.region, autopilot=True)
    folder = paths.root / f"client-{entry.name}"
    folder.mkdir()
    token = paths.admin_token.read_text().strip()
    write_kubeconfig(folder / "kubeconfig", rehearsal_kubeconfig([result], token, entry.name))
    ca_file = folder / "ca.crt"
    ca_file.write_bytes(base64.b64decode(result["caCertificate"]))
    server, kueue = f"https://{result['endpoint']}", KUEUE_ENGINES[fleet.kueue_on(entry.name).release.minor]
    return OneCluster(entry.name, supervisor, engines, server, folder, token, ca_file, kueue)


def install_kueue(lab: ControllerLab, name: str, kubernetes_version: str | None = None, **multi_kueue: Any) -> None:
    """Kueue as the fleet has it on a cluster, or would have it if that were of another version.

    `multi_kueue`: changes to the section multiKueue.
    """
    cluster = lab.clusters[name]
    values = cluster.folder / "values.yaml"
    values.write_text(yaml.safe_dump(_kueue_values(lab, name, kubernetes_version, multi_kueue)))
    apply_object(cluster, kueue_priority_class())
    cluster.helm_install("kueue", "--values", str(values))


def restart_kueue(lab: ControllerLab, name: str, **multi_kueue: Any) -> None:
    """Another configuration of Kueue and a new pod, as the chart would have it, for a fifth of helm's CPU."""
    configuration = _kueue_values(lab, name, None, multi_kueue)["managerConfig"]["controllerManagerConfigYaml"]
    cluster, system = lab.clusters[name], "/api/v1/namespaces/kueue-system"
    body = {"data": {"controller_manager_config.yaml": configuration}}
    cluster.request("PATCH", f"{system}/configmaps/kueue-manager-config", body, "application/merge-patch+json")
    pods = f"{system}/pods?labelSelector=control-plane%3Dcontroller-manager"
    before = {pod["metadata"]["uid"] for pod in cluster.items(pods)}
    assert before
    cluster.request("DELETE", pods, {"kind": "DeleteOptions", "apiVersion": "v1"})
    wait_until(
        lambda: (
            (after := cluster.items(pods))
            and before.isdisjoint(pod["metadata"]["uid"] for pod in after)
            and all(condition(pod, "Ready") == "True" for pod in after)
        )
    )


def _kueue_values(
    lab: ControllerLab, name: str, kubernetes_version: str | None, multi_kueue: Mapping[str, Any]
) -> dict[str, Any]:
    wire = lab.fleet.wire()
    fleet = parse_fleet({**wire, "multiKueue": {**wire["multiKueue"], **multi_kueue}}) if multi_kueue else lab.fleet
    return kueue_helm_values(fleet, name, kubernetes_version)


def disconnected(lab: ControllerLab) -> list[str]:
    """The workers that the manager's Kueue is not connected to."""
    clusters = lab.manager.items(f"{KUEUE}/multikueueclusters")
    assert clusters
    return [item["metadata"]["name"] for item in clusters if condition(item, "Active") != "True"]


def wait_until_connected(lab: ControllerLab) -> None:
    """Waits until the manager's Kueue is connected to every worker."""
    wait_until(lambda: disconnected(lab) == [])


def route(lab: ControllerLab, worker: str, server: str) -> None:
    """The manager's Kueue reaches a worker by another address, and tries it at once.

    After n failures it waits 5 * 2^(n-1) seconds, up to 320, unless the kubeconfig differs (kueue@v0.19.2
    pkg/controller/admissionchecks/multikueue/multikueuecluster.go, retryAfter): no two have the same text.
    """
    file = lab.folder / f"multikueue-{worker}"
    write_kubeconfig_for(file, lab.workers[worker], server)
    file.write_text(f"{file.read_text()}# {time.monotonic_ns()}\n")
    cluster = lab.manager.get(f"{KUEUE}/multikueueclusters/{worker}")
    path = f"/api/v1/namespaces/kueue-system/secrets/{cluster['spec']['clusterSource']['kubeConfig']['location']}"
    body = {"data": {"kubeconfig": base64.b64encode(file.read_bytes()).decode()}}
    lab.manager.request("PATCH", path, body, "application/merge-patch+json")


def _install(lab: ControllerLab, name: str) -> None:
    cluster = lab.clusters[name]
    install_kueue(lab, name)
    if name != MANAGER:
        for manifest in render_cluster(lab.fleet, name):
            if manifest["kind"] in PATHS:
                apply_object(cluster, manifest)


def _connect(lab: ControllerLab) -> None:
    """The manager's Secrets, then all that refers to them."""
    for name, worker in lab.workers.items():
        result = next(
            item
            for item in render_cluster(lab.fleet, MANAGER)
            if item["kind"] == "MultiKueueCluster" and item["metadata"]["name"] == name
        )
        file = lab.folder / f"multikueue-{name}"
        write_kubeconfig_for(file, worker)
        secret = result["spec"]["clusterSource"]["kubeConfig"]["location"]
        body = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": secret, "namespace": "kueue-system"},
            "data": {"kubeconfig": base64.b64encode(file.read_bytes()).decode()},
        }
        lab.manager.create("/api/v1/namespaces/kueue-system/secrets", body)
    for manifest in render_cluster(lab.fleet, MANAGER):
        if manifest["kind"] in PATHS:
            apply_object(lab.manager, manifest)

    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kueue-fleet-system"}}
    apply_object(lab.manager, namespace)
    if lab.workers:
        wait_until_connected(lab)
