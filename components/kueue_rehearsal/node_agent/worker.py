"""One pod on this node, from the moment it is bound until it is gone."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from kueue_fleet.gke.labels import WORKLOAD_IDENTITY_ANNOTATION
from kueue_fleet.kube.answers import STRATEGIC_MERGE_PATCH, ApiError, Json
from kueue_rehearsal.node_agent.addresses import AddressError, ClaimedAddress, claim_address, taken_ports
from kueue_rehearsal.node_agent.containers import Container, ContainerHost, PodNode
from kueue_rehearsal.node_agent.mounts import PodVolumes, source_data
from kueue_rehearsal.node_agent.pods import HostFacts, PodError, Source, container_ports, unsupported
from kueue_rehearsal.node_agent.programs import IMAGE_REASON, find_program
from kueue_rehearsal.node_agent.services import Backend
from kueue_rehearsal.node_agent.status import ContainerState, pod_status
from kueue_rehearsal.private_files import make_private

log = logging.getLogger(__name__)

_RETRY_SECONDS = 1.0
_ADDRESS_REASON = "CreatePodSandboxError"
# When the whole node stops, the pods' own grace periods do not count.
_NODE_STOP_SECONDS = 3.0


class PodWorker:
    """Runs one pod. `update` tells it what the API server says of it, `removed` that it is not there any more."""

    def __init__(self, node: PodNode, pod: Json, folder: Path, on_ready_change: Callable[[], None]) -> None:
        self._node = node
        self._pod = pod
        self._folder = folder
        self._on_ready_change = on_ready_change
        self._address: ClaimedAddress | None = None
        self._init: list[Container] = []
        self._main: list[Container] = []
        self._refused: list[ContainerState] = []
        self._initialized = not pod["spec"].get("initContainers")
        self.since = time.time()
        """When this node took the pod."""
        self._ready_since: float | None = None
        self._status_due = asyncio.Event()
        self._ending = asyncio.Event()
        self._gone = False
        self._last_logged = ""

    @property
    def uid(self) -> str:
        """The pod's uid."""
        return str(self._pod["metadata"]["uid"])

    @property
    def pod(self) -> Json:
        """The pod as the API server showed it last."""
        return self._pod

    @property
    def path(self) -> str:
        """The pod's API path."""
        metadata = self._pod["metadata"]
        return f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}"

    def backend(self) -> Backend | None:
        """The pod as the target of a Service; None while it is not ready, and once it is being deleted."""
        if self._ready_since is None or self._address is None or self._ending.is_set():
            return None
        metadata = self._pod["metadata"]
        names = {
            port["name"]: port["containerPort"]
            for container in self._pod["spec"]["containers"]
            for port in container.get("ports", ())
            if "name" in port
        }
        return Backend(
            metadata["namespace"],
            metadata["name"],
            metadata.get("labels", {}),
            self._address.ip,
            names,
            self._ready_since,
        )

    def refusal(self) -> str | None:
        """Why the pod is never run here; None if it runs, may run yet, or is being deleted."""
        if self._ending.is_set():
            return None
        states = [container.state for container in (*self._init, *self._main)]
        refused_states = self._refused or [state for state in states if state.waiting_for == IMAGE_REASON]
        return "; ".join(dict.fromkeys(state.waiting_message for state in refused_states)) or None

    def delay(self) -> str | None:
        """Why the pod is not ready, with the folder of its logs; None once it is ready or is being deleted."""
        if self._ending.is_set() or self._ready_since is not None:
            return None
        states = self._refused or [container.state for container in (*self._init, *self._main)]
        why = ", ".join(str(state) for state in states if not state.ready)
        return f"{self.path}: {why or 'no container has begun'}; logs: {self._folder}"

    @property
    def is_curable(self) -> bool:
        """Whether the refusal is about this machine, and says what to do there."""
        return any(state.waiting_reason == _ADDRESS_REASON for state in self._refused)

    def update(self, pod: Json) -> None:
        """The pod has changed at the API server."""
        self._pod = pod
        if "deletionTimestamp" in pod["metadata"] and not self._ending.is_set():
            self._ending.set()
            self._on_ready_change()

    def removed(self) -> None:
        """The pod is not there any more: end at once."""
        self._gone = True
        self._ending.set()
        self._on_ready_change()

    async def run(self) -> None:
        """Runs the pod to its end, reports its status, and removes what is left of it."""
        if "deletionTimestamp" in self._pod["metadata"]:
            self._ending.set()
        reporter = asyncio.create_task(self._report_forever())
        life = asyncio.create_task(self._keep_living())
        try:
            await self._ending.wait()
        finally:
            await _cancel(life)
            await self._stop_containers()
            await _cancel(reporter)
            if self._address is not None:
                self._address.release()
        await self._finish()

    async def _keep_living(self) -> None:
        """As a kubelet does: whatever fails is tried again, until the pod has come to its end."""
        while True:
            try:
                return await self._live()
            except AddressError as error:
                self._refuse(PodError(str(error), _ADDRESS_REASON))
            except Exception:
                log.exception("%s: the pod's worker failed; trying again", self.path)
                await self._stop_containers()
            await asyncio.sleep(_RETRY_SECONDS)

    async def _live(self) -> None:
        problems = unsupported(self._pod)
        if problems:
            self._refuse(PodError("; ".join(problems)))
            return
        host = self._make_host()
        self._refused = []
        spec = self._pod["spec"]
        restart_policy = spec.get("restartPolicy", "Always")
        counts = {
            one["name"]: one.get("restartCount", 0) for one in self._pod.get("status", {}).get("containerStatuses", ())
        }
        self._init = [
            Container(host, one, "Never" if restart_policy == "Never" else "OnFailure", self._status_due.set)
            for one in spec.get("initContainers", ())
        ]
        self._main = [
            Container(host, one, restart_policy, self._container_changed, counts.get(one["name"], 0))
            for one in spec["containers"]
        ]
        self._status_due.set()
        async with asyncio.TaskGroup() as group:
            volumes = group.create_task(host.volumes.run())
            if self._can_start():
                await host.volumes.ready.wait()
            for container in self._init:
                if await container.run() != 0:
                    volumes.cancel()
                    return
            self._initialized = True
            self._status_due.set()
            runs = [group.create_task(container.run()) for container in self._main]
            await asyncio.gather(*runs)
            volumes.cancel()

    def _can_start(self) -> bool:
        """Whether there is a program for any container: otherwise the missing image is the news, not missing
        volumes."""
        for container in self._pod["spec"]["containers"]:
            with contextlib.suppress(PodError):
                find_program(self._node.programs, container, self._pod["metadata"].get("labels"))
                return True
        return False

    def _make_host(self) -> ContainerHost:
        self._address = self._address or claim_address(self.uid)
        ports_in_use = taken_ports(self._address.ip, container_ports(self._pod["spec"]["containers"]))
        if ports_in_use:
            ports = ", ".join(str(port) for port in ports_in_use)
            raise AddressError(
                f"{self._address.ip}: port {ports} is taken; a program on this machine listens on it on all "
                "addresses, stop it or let it listen on 127.0.0.1 only"
            )
        facts = HostFacts(self._address.ip, self._node.ip, self._node.name)
        make_private(self._folder)
        return ContainerHost(
            node=self._node,
            pod=self._pod,
            facts=facts,
            volumes=PodVolumes(self._node.api, self._pod, facts, self._folder / "volumes"),
            folder=self._folder,
            fetch=self._fetch,
            google_account=self._google_account,
        )

    async def _fetch(self, source: Source) -> Mapping[str, bytes] | None:
        namespace = self._pod["metadata"]["namespace"]
        item = await self._node.api.find(f"/api/v1/namespaces/{namespace}/{source.kind}/{source.name}")
        return None if item is None else source_data(item)

    async def _google_account(self) -> str:
        namespace, name = self._pod["metadata"]["namespace"], self._pod["spec"].get("serviceAccountName", "default")
        item = await self._node.api.find(f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}") or {"metadata": {}}
        return str((item["metadata"].get("annotations") or {}).get(WORKLOAD_IDENTITY_ANNOTATION, ""))

    def _refuse(self, error: PodError) -> None:
        self._log_once(f"{self.path}: {error}")
        self._refused = [
            ContainerState(one["name"], one["image"]).waiting(error.reason, str(error))
            for one in self._pod["spec"]["containers"]
        ]
        self._status_due.set()

    def _container_changed(self) -> None:
        ready = bool(self._main) and all(container.state.ready for container in self._main)
        if ready != (self._ready_since is not None):
            self._ready_since = time.time() if ready else None
            self._on_ready_change()
        self._status_due.set()

    async def _report_forever(self) -> None:
        while True:
            await self._status_due.wait()
            self._status_due.clear()
            if not await self._report():
                await asyncio.sleep(_RETRY_SECONDS)
                self._status_due.set()

    async def _report(self) -> bool:
        """Writes the status; False when that should be tried again."""
        states: Sequence[ContainerState] = self._refused or [container.state for container in self._main]
        if self._gone or not states:
            return True
        status = pod_status(
            self._pod,
            containers=states,
            init_containers=[container.state for container in self._init],
            initialized=self._initialized,
            pod_ip=self._address.ip if self._address else None,
            host_ip=self._node.ip,
            start_time=self.since,
            now=time.time(),
        )
        body: dict[str, Any] = {"metadata": {"uid": self.uid}, "status": status}
        try:
            await self._node.api.patch(f"{self.path}/status", body, STRATEGIC_MERGE_PATCH)
        except ApiError as error:
            # A conflict is another pod of this name, which `removed` says too, or another writer at the same moment.
            if error.is_not_found:
                return True
            self._log_once(f"{self.path}: status: {error}; trying again")
            return False
        return True

    def _log_once(self, text: str) -> None:
        if text != self._last_logged:
            self._last_logged = text
            log.warning("%s", text)

    async def _stop_containers(self) -> None:
        if self._gone:
            seconds = 0.0
        elif not self._ending.is_set():
            seconds = _NODE_STOP_SECONDS
        else:
            seconds = float(self._pod["metadata"].get("deletionGracePeriodSeconds", _NODE_STOP_SECONDS))
        await asyncio.gather(*(container.stop(seconds) for container in (*self._init, *self._main)))

    async def _finish(self) -> None:
        """Tells the API server that the pod has ended and may go; removes its files, all but the logs."""
        while not self._gone:
            await self._report()
            try:
                await self._node.api.delete(self.path, uid=self.uid, grace_seconds=0)
                break
            except ApiError as error:
                log.info("%s: final deletion: %s; trying again", self.path, error)
                await asyncio.sleep(_RETRY_SECONDS)
        for name in ("volumes", "containers"):
            shutil.rmtree(self._folder / name, ignore_errors=True)
        (self._folder / "kubeconfig").unlink(missing_ok=True)


async def _cancel(task: asyncio.Task[None]) -> None:
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError, Exception):
        await task
