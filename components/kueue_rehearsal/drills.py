"""The faults of `rehearse drill`: what each needs of a fleet, and how it is made and repaired in a rehearsal."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from kueue_fleet.fleet_file import FleetSpec
from kueue_fleet.fleet_file.model.capacity import FlexStart, Spot
from kueue_fleet.gke.labels import QUEUED_PROVISIONING_CLASS, SPOT
from kueue_fleet.settings.tokens import CONTROLLER_NAME
from kueue_fleet.status.job import PODS_SELECTOR
from kueue_rehearsal.faults import EtcdBackup, kill_processes, lose_api_server, repair_api_server, wait_for
from kueue_rehearsal.paths import RehearsalError
from kueue_rehearsal.private_files import write_private

if TYPE_CHECKING:
    from kueue_rehearsal.jobs.clients import ClusterClients
    from kueue_rehearsal.session import Session

_KUEUE: Final = "pod-kueue-controller-manager"
"""Begins the names of Kueue's processes: those of the pods of its Deployment."""
_ALL_NODES: Final = 10_000
_NODES: Final = ("", "v1", "nodes")
_PODS: Final = ("", "v1", "pods")
_NODE_SECONDS: Final = 60.0
"""How long a fault waits for a job that runs on a Spot node."""


@dataclass(frozen=True, slots=True)
class Scene:
    """A rehearsal that runs, on which a fault is made."""

    session: Session
    fleet: FleetSpec
    clients: ClusterClients
    worker: str
    """The one that is lost; empty where the fleet has none."""


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault. `made` makes it, lets it last for its block, and repairs it, whatever happens there."""

    name: str
    does: str
    """In words, after `the drill:`; `{worker}` is the worker that is lost."""
    made: Callable[[Scene], AbstractContextManager[None]]
    missing: Callable[[FleetSpec], str] = lambda fleet: ""
    """What the fleet does not have that can break so, in words; empty: nothing is missing."""
    lasts: bool = True
    """Whether it goes on until it is repaired; else it is over at once."""
    forgets: bool = False
    """Whether jobs that were submitted meanwhile are gone with it."""


@contextmanager
def _without_api_server(scene: Scene, cluster: str) -> Iterator[None]:
    client = scene.session.client
    lose_api_server(client, cluster)
    try:
        yield
    finally:
        repair_api_server(client, cluster)


@contextmanager
def _stock_out(scene: Scene) -> Iterator[None]:
    session = scene.session
    settings = json.loads(session.paths.simulation.read_text())
    none_left = {**(settings.get("dws") or {}), "stock": {}, "low": 0, "high": 0}
    write_private(session.paths.simulation, json.dumps({**settings, "dws": none_left}).encode())
    try:
        yield
    finally:
        session.write_settings()


@contextmanager
def _spot_reclaim(scene: Scene) -> Iterator[None]:
    clusters = scene.fleet.job_clusters
    wait_for(
        lambda: any(_runs_on_spot(scene.clients, cluster) for cluster in clusters),
        "no job ran on a Spot node",
        _NODE_SECONDS,
        "give jobs that run on Spot by --jobs, and no others",
    )
    for cluster in clusters:
        scene.session.client.reclaim_spot(cluster, _ALL_NODES)
    yield


def _runs_on_spot(clients: ClusterClients, cluster: str) -> bool:
    """Whether a pod of a job runs on a Spot node: to lose others would show nothing."""
    from kueue_admission.read.printed import Printed
    from kueue_admission.read.printed_pods import PrintedPod

    nodes = {node.name for node in map(Printed.of, clients.list(cluster, *_NODES)) if node.labels.text(SPOT) == "true"}
    pods = map(PrintedPod.of, clients.list(cluster, *_PODS))
    return any(pod.node in nodes and pod.phase == "Running" for pod in pods if PODS_SELECTOR in pod.labels)


@contextmanager
def _etcd_restored(scene: Scene) -> Iterator[None]:
    backup = EtcdBackup(scene.session.client, scene.session.paths)
    backup.make()
    try:
        yield
        backup.restore()
    finally:
        backup.remove()


@contextmanager
def _kueue_restarted(scene: Scene) -> Iterator[None]:
    if not kill_processes(scene.session.client, lambda each: each["name"].startswith(_KUEUE)):
        raise RehearsalError("no Kueue runs that could be killed; see the logs")
    yield


@contextmanager
def _controller_gone(scene: Scene) -> Iterator[None]:
    home, controller = scene.fleet.controller_cluster, scene.fleet.controller
    assert home is not None
    assert controller is not None
    namespace = controller.namespace
    path = f"/apis/apps/v1/namespaces/{namespace}/deployments/{CONTROLLER_NAME}/scale"
    scene.clients.merge(home, path, {"spec": {"replicas": 0}})
    try:
        wait_for(lambda: not _controllers(scene), "the controller's pods have not ended")
        yield
    finally:
        scene.clients.merge(home, path, {"spec": {"replicas": controller.replicas}})
        wait_for(lambda: _controllers(scene), "the controller has not come again")


def _controllers(scene: Scene) -> bool:
    return any(process["name"].startswith(f"pod-{CONTROLLER_NAME}-") for process in scene.session.client.processes())


def _no_worker(fleet: FleetSpec) -> str:
    return "" if fleet.manager is not None else "workers: its only cluster is the one where jobs are submitted"


def _no_dws(fleet: FleetSpec) -> str:
    requests = [check.provisioning_request for check in fleet.admission_checks]
    asks = any(
        request is not None and request.provisioning_class_name == QUEUED_PROVISIONING_CLASS for request in requests
    )
    if asks or any(isinstance(pool.capacity, FlexStart) for pool in fleet.node_pools):
        return ""
    return "capacity of DWS: neither a check with a provisioningRequest nor a flexStart pool"


def _no_spot(fleet: FleetSpec) -> str:
    if any(isinstance(pool.capacity, Spot) for pool in fleet.node_pools):
        return ""
    labels = (fleet.flavor_on(flavor, name).node_labels for flavor in fleet.flavors for name in fleet.job_clusters)
    return "" if any(label.get(SPOT) == "true" for label in labels) else "Spot: neither a pool nor a flavor is of it"


def _no_controller(fleet: FleetSpec) -> str:
    return "" if fleet.controller is not None else "controller of its own: there is no controller"


FAULTS: Final = {
    fault.name: fault
    for fault in (
        Fault(
            "worker-lost",
            "{worker} does not answer; what runs there goes on",
            lambda scene: _without_api_server(scene, scene.worker),
            _no_worker,
        ),
        Fault(
            "manager-lost",
            "the manager does not answer; what runs on workers goes on",
            lambda scene: _without_api_server(scene, scene.fleet.home),
            _no_worker,
        ),
        Fault("stock-out", "DWS has no GPU and no TPU left anywhere", _stock_out, _no_dws),
        Fault("spot-reclaim", "every Spot node is taken back", _spot_reclaim, _no_spot, lasts=False),
        Fault(
            "etcd-restored",
            "every cluster goes back to a backup, with what was in it then",
            _etcd_restored,
            forgets=True,
        ),
        Fault("kueue-restarted", "Kueue is killed on every cluster, and starts again", _kueue_restarted, lasts=False),
        Fault("controller-gone", "no replica of the fleet's controller runs", _controller_gone, _no_controller),
    )
}
"""By the name that the command takes."""
