"""The simulated Dynamic Workload Scheduler of one cluster: answers ProvisioningRequests, brings nodes up and takes
them away.

Everything it must know is in the cluster: conditions of the requests, labels of the nodes. What to do is decided in
`dws_decisions`; this module watches, asks, and carries out.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass

import aiohttp
import yaml

from kueue_fleet.rehearsal.control_plane import ClusterAccess
from kueue_fleet.rehearsal.dws_decisions import (
    CLASS_NAME,
    CreateNodes,
    DwsSettings,
    NodeUse,
    Request,
    SetCondition,
    Situation,
    gpus_by_accelerator,
    next_step,
    parse_request,
    parse_timestamp,
    plan_node_removals,
    plan_request,
    stock,
    updated_status,
)
from kueue_fleet.rehearsal.kube_api import STRATEGIC_MERGE_PATCH, ApiError, Json, KubeApi, Watched
from kueue_fleet.rehearsal.machines import GPU_RESOURCE, accelerators
from kueue_fleet.rehearsal.node_agent.status import timestamp
from kueue_fleet.rehearsal.node_planning import ACCELERATOR, RESIZE_REQUEST, NodePlan, Place, amounts
from kueue_fleet.rehearsal.nodes import ClusterView

log = logging.getLogger(__name__)

CRD_NAME = "provisioningrequests.autoscaling.x-k8s.io"
_COLLECTION = "/apis/autoscaling.x-k8s.io/v1/provisioningrequests"
_TICK_SECONDS = 0.5
# Kueue writes the PodTemplates and the request at about the same time.
_TEMPLATE_GRACE_SECONDS = 10.0


async def install_crd(api: KubeApi, access: ClusterAccess) -> None:
    """Installs the ProvisioningRequest CRD, as GKE has it in every cluster, and waits until it is served."""
    crd = yaml.safe_load(access.engines.asset("provisioning-request-crd").read_text())
    path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{CRD_NAME}"
    await api.apply(path, crd)
    while True:
        found = await api.get(path)
        conditions = (found.get("status") or {}).get("conditions") or ()
        if any(one["type"] == "Established" and one["status"] == "True" for one in conditions):
            return
        await asyncio.sleep(0.05)


@dataclass(slots=True)
class _Pass:
    """One look at everything."""

    now: float
    available: dict[str, int]
    nodes: dict[str, list[Json]]
    """resize request → its nodes."""


class QueuedProvisioning:
    """DWS's queued provisioning for one cluster."""

    def __init__(self, view: ClusterView, place: Place, settings: DwsSettings, started_at: float) -> None:
        self._view = view
        self._place = place
        self._settings = settings
        self._started_at = started_at
        self._requests = Watched(view.api, _COLLECTION)
        self._plans: dict[str, NodePlan] = {}
        self._created: dict[str, tuple[str, str, int]] = {}
        """Nodes created that the view has not shown yet: name → (resize request, accelerator, GPUs)."""
        self._empty_since: dict[str, float] = {}

    async def run(self) -> None:
        """Runs until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._requests.run())
            await self._view.wait_synced()
            await self._requests.synced.wait()
            while True:
                try:
                    await self._look()
                except (ApiError, aiohttp.ClientError, TimeoutError, OSError) as error:
                    log.info("%s: queued provisioning: %s; trying again", self._place.cluster, error)
                await asyncio.sleep(_TICK_SECONDS)

    async def _look(self) -> None:
        requests = {
            request.uid: (request, item)
            for item in self._requests.objects.values()
            if item["spec"]["provisioningClassName"] == CLASS_NAME and "deletionTimestamp" not in item["metadata"]
            for request in (parse_request(item),)
        }
        self._plans = {uid: plan for uid, plan in self._plans.items() if uid in requests}
        seen = self._begin(time.time())
        for request, item in sorted(requests.values(), key=lambda one: (one[0].created, one[0].key)):
            await self._advance(request, item, seen)
        await self._give_back({request.resize_request: request for request, _ in requests.values()}, seen)

    def _begin(self, now: float) -> _Pass:
        by_request: dict[str, list[Json]] = {}
        used: dict[str, int] = {}
        for name, node in self._view.nodes.items():
            self._created.pop(name, None)
            labels = node["metadata"].get("labels") or {}
            if RESIZE_REQUEST in labels:
                by_request.setdefault(labels[RESIZE_REQUEST], []).append(node)
                gpus = amounts(node["status"]["allocatable"]).get(GPU_RESOURCE, 0)
                used[labels[ACCELERATOR]] = used.get(labels[ACCELERATOR], 0) + gpus
        for _, accelerator, gpus in self._created.values():
            used[accelerator] = used.get(accelerator, 0) + gpus
        elapsed = now - self._started_at
        available = {
            accelerator: stock(self._settings, self._place.region, accelerator, elapsed) - used.get(accelerator, 0)
            for accelerator in accelerators()
        }
        return _Pass(now, available, by_request)

    async def _advance(self, request: Request, item: Json, seen: _Pass) -> None:
        if request.is_terminal:
            return
        plan = await self._plan(request, seen.now)
        if plan is None:
            return
        nodes = seen.nodes.get(request.resize_request, [])
        pending = sum(1 for resize_request, _, _ in self._created.values() if resize_request == request.resize_request)
        situation = Situation(
            plan=plan,
            available=seen.available,
            nodes=len(nodes) + pending,
            ready_nodes=sum(1 for node in nodes if node["status"]["ready"]),
        )
        step = next_step(request, situation, self._settings, seen.now)
        if isinstance(step, SetCondition):
            if step.type == "CapacityRevoked":
                # The machines go first, and then the request says so: pods must be seen to end by it.
                await self._take_away([node["metadata"]["name"] for node in nodes])
            await self._write(request, item, step, seen.now)
        elif isinstance(step, CreateNodes):
            await self._create(request, step, seen)

    async def _plan(self, request: Request, now: float) -> NodePlan | str | None:
        """The nodes of the request, or why it has none; None while its PodTemplates may still come."""
        known = self._plans.get(request.uid)
        if known is not None:
            return known
        namespace = request.key.partition("/")[0]
        templates: dict[str, Json] = {}
        for name, _ in request.pod_sets:
            found = await self._view.api.find(f"/api/v1/namespaces/{namespace}/podtemplates/{name}")
            if found is not None:
                templates[name] = found
            elif now - parse_timestamp(request.created) < _TEMPLATE_GRACE_SECONDS:
                return None
        try:
            plan = plan_request(request, templates, self._place, now)
        except ValueError as error:
            return str(error)
        self._plans[request.uid] = plan
        return plan

    async def _write(self, request: Request, item: Json, step: SetCondition, now: float) -> None:
        details = (item.get("status") or {}).get("provisioningClassDetails") or {}
        body = {
            "metadata": {"uid": request.uid, "resourceVersion": item["metadata"]["resourceVersion"]},
            "status": updated_status(request, details, step, now),
        }
        namespace, _, name = request.key.partition("/")
        path = f"/apis/autoscaling.x-k8s.io/v1/namespaces/{namespace}/provisioningrequests/{name}/status"
        try:
            await self._view.api.patch(path, body)
        except ApiError as error:
            if not (error.is_conflict or error.is_not_found):
                raise
            return
        log.info("%s: %s: %s=%s %s", self._place.cluster, request.key, step.type, step.status, step.message)

    async def _create(self, request: Request, step: CreateNodes, seen: _Pass) -> None:
        for accelerator, gpus in gpus_by_accelerator(step.templates).items():
            seen.available[accelerator] -= gpus
        for template in step.templates:
            if await self._view.add_node(template) is not None:
                gpus = template.machine.gpus
                self._created[template.name] = (request.resize_request, template.labels[ACCELERATOR], gpus)

    async def _give_back(self, requests: Mapping[str, Request], seen: _Pass) -> None:
        active: dict[str, int] = {}
        used: set[str] = set()
        for pod in self._view.pods.values():
            node = pod["spec"].get("nodeName")
            if node is not None:
                used.add(node)
                if pod["status"]["phase"] not in ("Succeeded", "Failed"):
                    active[node] = active.get(node, 0) + 1
        names = {node["metadata"]["name"]: key for key, nodes in seen.nodes.items() for node in nodes}
        self._empty_since = {name: self._empty_since.get(name, seen.now) for name in names if name not in active}
        uses = [
            NodeUse(name, key, active.get(name, 0), name in used, self._empty_since.get(name))
            for name, key in sorted(names.items())
        ]
        unneeded = plan_node_removals(uses, requests, self._settings, seen.now)
        await self._take_away([name for name in unneeded if name in active])
        bound = {node["metadata"]["name"]: node for nodes in seen.nodes.values() for node in nodes}
        await self._view.retire([name for name in unneeded if name not in active], bound, seen.now)

    async def _take_away(self, names: list[str]) -> None:
        """Deletes nodes under the pods that run there."""
        for pod in list(self._view.pods.values()):
            if pod["spec"].get("nodeName") in names and pod["status"]["phase"] not in ("Succeeded", "Failed"):
                await self._end_pod(pod)
        for name in names:
            await self._view.remove_node(name)
            log.info("%s: node %s was taken away", self._place.cluster, name)

    async def _end_pod(self, pod: Json) -> None:
        """What becomes of a pod whose machine is deleted: Failed, and marked as disrupted, for pod failure policies."""
        now = timestamp(time.time())
        status: Json = {
            "phase": "Failed",
            "reason": "Terminated",
            "message": "The node was deleted: its capacity had been reclaimed.",
            "conditions": [
                {
                    "type": "DisruptionTarget",
                    "status": "True",
                    "reason": "TerminationByKubelet",
                    "message": "The node was shut down.",
                    "lastTransitionTime": now,
                },
                {"type": "Ready", "status": "False", "reason": "PodFailed", "lastTransitionTime": now},
            ],
        }
        metadata = pod["metadata"]
        path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}/status"
        try:
            body = {"metadata": {"uid": metadata["uid"]}, "status": status}
            await self._view.api.patch(path, body, STRATEGIC_MERGE_PATCH)
        except ApiError as error:
            if not (error.is_not_found or error.is_conflict):
                raise
