"""The node agent of one cluster: registers the Node `system-0`, keeps it alive, and runs the pods bound to it.

The real Deployment and ReplicaSet controllers and the real scheduler put pods here. Not modelled, and refused by
`pods.unsupported` or not offered: exec and log streaming through the API server, exec and grpc probes, lifecycle hooks,
sidecars, host paths and persistent volumes, cgroup limits, the Services' variables in the environment.
"""

from __future__ import annotations

import asyncio
import base64
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime
from http import HTTPStatus
from pathlib import Path

import aiohttp

from kueue_admission.kernel.names import HOSTNAME_LABEL
from kueue_admission.read.printed_pods import PrintedPod
from kueue_fleet.kube.answers import STRATEGIC_MERGE_PATCH, AcceptedRefusals, ApiError, Json
from kueue_rehearsal.control_planes.kube_api import ControlPlaneApi, Watched
from kueue_rehearsal.node_agent.addresses import claim_address
from kueue_rehearsal.node_agent.containers import PodNode
from kueue_rehearsal.node_agent.leases import leases_of, release_leases
from kueue_rehearsal.node_agent.policy import NODE_LABEL, install_policy
from kueue_rehearsal.node_agent.programs import CertificateNeed, Program
from kueue_rehearsal.node_agent.ray_dashboard import RayDashboards
from kueue_rehearsal.node_agent.refusals import describe_refusals
from kueue_rehearsal.node_agent.services import Backend, ServiceRoutes
from kueue_rehearsal.node_agent.status import timestamp
from kueue_rehearsal.node_agent.webhook_certificate import is_usable, service_certificate
from kueue_rehearsal.node_agent.worker import PodWorker
from kueue_rehearsal.processes.child_process import Spawn

log = logging.getLogger(__name__)

NODE_NAME = "system-0"
"""Name of the node for system pods."""
# Room for Kueue, JobSet and a controller, each with a second replica while it is rolled out.
ALLOCATABLE = {"cpu": "16", "memory": "32Gi", "ephemeral-storage": "50Gi", "pods": "50"}
"""What that node has for pods."""

_LEASE_SECONDS = 40
_LEASE_RENEW_SECONDS = 10.0
_NODE_STATUS_SECONDS = 240.0
_RETRY_SECONDS = 0.5

_CONDITIONS = (
    ("MemoryPressure", "False", "KubeletHasSufficientMemory"),
    ("DiskPressure", "False", "KubeletHasNoDiskPressure"),
    ("PIDPressure", "False", "KubeletHasSufficientPID"),
    ("Ready", "True", "KubeletReady"),
)


class NodeAgent:
    """One node of one cluster. `run` until cancelled; `ready` is set once it is registered."""

    def __init__(self, *, api: ControlPlaneApi, folder: Path, spawn: Spawn, programs: Mapping[str, Program]) -> None:
        self.ready = asyncio.Event()
        self._api = api
        self._folder = folder
        self._spawn = spawn
        self._programs = programs
        self._workers: dict[str, PodWorker] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._routes: ServiceRoutes | None = None
        self._client: aiohttp.ClientSession | None = None
        self._host_ip = ""

    async def prepare(self) -> None:
        """Has the API server send the pods for this node here; none of them may be created before that."""
        await self._until_done(self._install_policy)

    async def run(self) -> None:
        """Runs the node until cancelled; then stops its processes and leaves the API objects as they are."""
        address = claim_address(f"{self._folder}/{NODE_NAME}")
        self._host_ip = address.ip
        self._routes = ServiceRoutes(self._api, address.ip, self._backends)
        pods = Watched(
            self._api,
            "/api/v1/pods",
            params={"fieldSelector": f"spec.nodeName={NODE_NAME}"},
            on_change=self._pod_changed,
        )
        connector = aiohttp.TCPConnector(force_close=True, limit=0)
        try:
            async with aiohttp.ClientSession(connector=connector, trust_env=False) as self._client:
                try:
                    await self.prepare()
                    await self._until_done(self._register)
                    await self._until_done(self._release_leases)
                    async with asyncio.TaskGroup() as group:
                        group.create_task(self._repeat(self._renew_lease, _LEASE_RENEW_SECONDS))
                        group.create_task(self._repeat(self._report_node, _NODE_STATUS_SECONDS))
                        group.create_task(self._routes.run())
                        group.create_task(RayDashboards(self._api, self._host_ip).run())
                        group.create_task(pods.run())
                        self.ready.set()
                finally:
                    await self._stop_workers()
        finally:
            address.release()

    async def refused_pods(self) -> list[Json]:
        """The pods that are never run here: see `describe_refusals`. Raises ApiError."""
        return await describe_refusals(self._api, self._workers.values())

    def late_pods(self) -> list[str]:
        """Each pod that is not ready, and why."""
        return [delay for worker in self._workers.values() if (delay := worker.delay()) is not None]

    def _backends(self) -> list[Backend]:
        backends = (worker.backend() for worker in self._workers.values())
        return [backend for backend in backends if backend is not None]

    def _pod_changed(self, _: str, old: Json | None, new: Json | None) -> None:
        old_uid = old["metadata"]["uid"] if old else None
        new_uid = new["metadata"]["uid"] if new else None
        if old_uid is not None and old_uid != new_uid and old_uid in self._workers:
            self._workers[old_uid].removed()
        if new is None or new_uid is None:
            return
        is_finished = PrintedPod.of(new).is_over
        if new_uid in self._workers:
            self._workers[new_uid].update(new)
        elif not is_finished or "deletionTimestamp" in new["metadata"]:
            self._start_worker(new)

    def _start_worker(self, pod: Json) -> None:
        assert self._client is not None
        assert self._routes is not None
        metadata = pod["metadata"]
        node = PodNode(
            api=self._api,
            name=NODE_NAME,
            ip=self._host_ip,
            programs=self._programs,
            spawn=self._spawn,
            client=self._client,
            ensure_certificate=self._ensure_certificate,
        )
        folder = self._folder / "pods" / f"{metadata['namespace']}_{metadata['name']}_{metadata['uid'][:8]}"
        worker = PodWorker(node, pod, folder, self._routes.changed)
        self._workers[worker.uid] = worker
        task = asyncio.create_task(self._run_worker(worker), name=f"pod {metadata['namespace']}/{metadata['name']}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _run_worker(self, worker: PodWorker) -> None:
        try:
            await worker.run()
        finally:
            self._workers.pop(worker.uid, None)

    async def _stop_workers(self) -> None:
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _ensure_certificate(self, namespace: str, need: CertificateNeed) -> None:
        assert self._routes is not None
        path = f"/api/v1/namespaces/{namespace}/secrets/{need.secret}"
        now = datetime.fromtimestamp(time.time(), UTC)
        secret = await self._api.get(path)
        data = {key: base64.b64decode(value) for key, value in (secret.get("data") or {}).items()}
        if not (
            {"ca.crt", "tls.key"} <= set(data) and is_usable(data.get("tls.crt", b""), need.service, namespace, now)
        ):
            new_certificate = service_certificate(need.service, namespace, now)
            data = {
                "ca.crt": new_certificate.ca,
                "tls.crt": new_certificate.certificate,
                "tls.key": new_certificate.key,
            }
            encoded_data = {key: base64.b64encode(value).decode() for key, value in data.items()}
            await self._api.patch(path, {"data": encoded_data})
        self._routes.authorities[f"{namespace}/{need.service}"] = data["ca.crt"]
        self._routes.changed()

    async def _install_policy(self) -> None:
        await install_policy(self._api, self._programs)

    async def _register(self) -> None:
        labels = {
            HOSTNAME_LABEL: NODE_NAME,
            "kubernetes.io/os": "linux",
            "kubernetes.io/arch": "amd64",
            NODE_LABEL: "true",
        }
        node: Json = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": NODE_NAME, "labels": labels},
            "spec": {"taints": [{"key": NODE_LABEL, "value": "true", "effect": "NoSchedule"}]},
        }
        with AcceptedRefusals(HTTPStatus.CONFLICT):
            await self._api.create("/api/v1/nodes", node)
        await self._report_node()
        await self._renew_lease()

    async def _release_leases(self) -> None:
        await release_leases(self._api, NODE_NAME)

    async def _report_node(self) -> None:
        now = timestamp(time.time())
        status: Json = {
            "capacity": ALLOCATABLE,
            "allocatable": ALLOCATABLE,
            "addresses": [
                {"type": "InternalIP", "address": self._host_ip},
                {"type": "Hostname", "address": NODE_NAME},
            ],
            "conditions": [
                {
                    "type": kind,
                    "status": word,
                    "reason": reason,
                    "message": "processes on this machine stand in for the containers",
                    "lastHeartbeatTime": now,
                }
                for kind, word, reason in _CONDITIONS
            ],
            "nodeInfo": {
                "machineID": "",
                "systemUUID": "",
                "bootID": "",
                "kernelVersion": "",
                "osImage": "kueue-fleet rehearsal",
                "containerRuntimeVersion": "process://1",
                "kubeletVersion": "kueue-fleet",
                "kubeProxyVersion": "",
                "operatingSystem": "linux",
                "architecture": "amd64",
            },
        }
        await self._api.patch(f"/api/v1/nodes/{NODE_NAME}/status", {"status": status}, STRATEGIC_MERGE_PATCH)

    async def _renew_lease(self) -> None:
        collection = leases_of("kube-node-lease")
        now = datetime.fromtimestamp(time.time(), UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        spec: Json = {"holderIdentity": NODE_NAME, "leaseDurationSeconds": _LEASE_SECONDS, "renewTime": now}
        try:
            await self._api.patch(f"{collection}/{NODE_NAME}", {"spec": spec})
        except ApiError as error:
            if not error.is_not_found:
                raise
            lease: Json = {"metadata": {"name": NODE_NAME}, "spec": spec}
            await self._api.create(collection, {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", **lease})

    async def _until_done(self, step: Callable[[], Awaitable[None]]) -> None:
        while True:
            try:
                await step()
            except ApiError as error:
                if error.status in (400, 422):
                    raise
                log.info("%s: %s: %s; trying again", NODE_NAME, step.__name__, error)
                await asyncio.sleep(_RETRY_SECONDS)
            else:
                return

    async def _repeat(self, step: Callable[[], Awaitable[None]], seconds: float) -> None:
        while True:
            await asyncio.sleep(seconds)
            await self._until_done(step)
