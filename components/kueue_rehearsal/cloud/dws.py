"""The simulated Dynamic Workload Scheduler of one cluster: answers ProvisioningRequests, brings nodes up and takes
them away.

Everything it must know is in the cluster: conditions of the requests, labels of the nodes. What to do is decided in
`dws_decisions`; this module watches, asks, and carries out.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus

import yaml

from kueue_fleet.fleet_file.model.rehearsal_section import RehearsalSection
from kueue_fleet.gke.labels import NODE_POOL, QUEUED_PROVISIONING_CLASS, RESIZE_REQUEST
from kueue_fleet.kube.answers import AcceptedRefusals, ApiError, Json
from kueue_fleet.kube.api import PROVISIONING_REQUESTS
from kueue_rehearsal.cloud.cluster_view import CAPACITY_RECLAIMED, ClusterView
from kueue_rehearsal.cloud.dws_decisions import (
    CreateNodes,
    NodeUse,
    Request,
    SetCondition,
    Situation,
    Supply,
    demand,
    next_step,
    parse_request,
    places_of,
    plan_node_removals,
    plan_request,
    updated_status,
)
from kueue_rehearsal.cloud.gke_crds import SINGLE_POD_SET, install_definition
from kueue_rehearsal.cloud.node_planning import NodePlan
from kueue_rehearsal.cloud.node_pool_store import NodePoolStore
from kueue_rehearsal.cloud.node_templates import NodeTemplate
from kueue_rehearsal.cloud.pod_needs import is_daemon, used_node
from kueue_rehearsal.cloud.region_stock import RegionStock
from kueue_rehearsal.control_planes.control_plane import ClusterAccess
from kueue_rehearsal.control_planes.kube_api import ControlPlaneApi, Watched
from kueue_rehearsal.node_agent.status import parse_timestamp

log = logging.getLogger(__name__)

_TICK_SECONDS = 0.5
# Kueue writes the PodTemplates and the request at about the same time.
_TEMPLATE_GRACE_SECONDS = 10.0


async def install_crd(api: ControlPlaneApi, access: ClusterAccess) -> None:
    """Installs the ProvisioningRequest CRD, as GKE has it in every cluster, and waits until it is served.

    Requests of several pod sets are refused from then on.
    """
    await install_definition(api, yaml.safe_load(access.engines.asset("provisioning-request-crd").read_text()))
    for path, body in SINGLE_POD_SET:
        await api.apply(path, body)


@dataclass(slots=True)
class _Pass:
    """One look at everything."""

    now: float
    available: dict[str, int]
    nodes: dict[str, list[Json]]
    """resize request → its nodes."""


class QueuedProvisioning:
    """DWS's queued provisioning for one cluster."""

    def __init__(
        self, view: ClusterView, store: NodePoolStore, stock: RegionStock, settings: Callable[[], RehearsalSection]
    ) -> None:
        self._view = view
        self._store = store
        self._stock = stock
        self._settings = settings
        self._requests = Watched(view.api, PROVISIONING_REQUESTS)
        self._plans: dict[str, NodePlan] = {}
        self._created: dict[str, tuple[str, NodeTemplate]] = {}
        """Nodes created that the view has not shown yet: name → (resize request, template)."""
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
                except ApiError as error:
                    log.info("%s: queued provisioning: %s; trying again", self._store.place.cluster, error)
                await asyncio.sleep(_TICK_SECONDS)

    async def _look(self) -> None:
        requests = {
            request.uid: (request, item)
            for item in self._requests.objects.values()
            if item["spec"]["provisioningClassName"] == QUEUED_PROVISIONING_CLASS
            and "deletionTimestamp" not in item["metadata"]
            for request in (parse_request(item),)
        }
        self._plans = {uid: plan for uid, plan in self._plans.items() if uid in requests}
        snapshot = self._begin(time.time())
        for request, item in sorted(requests.values(), key=lambda one: (one[0].created, one[0].key)):
            await self._advance(request, item, snapshot)
        await self._give_back({request.resize_request: request for request, _ in requests.values()}, snapshot)

    def _begin(self, now: float) -> _Pass:
        by_request: dict[str, list[Json]] = {}
        in_pool: dict[str, int] = {}
        for name, node in self._view.nodes.items():
            self._created.pop(name, None)
            labels = node["metadata"].get("labels") or {}
            in_pool[labels.get(NODE_POOL, "")] = in_pool.get(labels.get(NODE_POOL, ""), 0) + 1
            if RESIZE_REQUEST in labels:
                by_request.setdefault(labels[RESIZE_REQUEST], []).append(node)
        available = self._stock.available(self._view.nodes.values(), now)
        for pool in self._store.pools.values():
            available[places_of(pool.name)] = pool.view.max_nodes - in_pool.get(pool.name, 0)
        for name, amount in demand([template for _, template in self._created.values()]).items():
            available[name] = available.get(name, 0) - amount
        return _Pass(now, available, by_request)

    async def _advance(self, request: Request, item: Json, snapshot: _Pass) -> None:
        if request.is_terminal:
            return
        plan = await self._plan(request, snapshot.now)
        if plan is None:
            return
        nodes = snapshot.nodes.get(request.resize_request, [])
        pending = sum(1 for resize_request, _ in self._created.values() if resize_request == request.resize_request)
        situation = Situation(
            plan=plan,
            available=snapshot.available,
            nodes=len(nodes) + pending,
            ready_nodes=sum(1 for node in nodes if node["status"]["ready"]),
            region=self._store.place.region,
        )
        step = next_step(request, situation, self._settings(), snapshot.now)
        if isinstance(step, SetCondition):
            if step.type == "CapacityRevoked":
                # The machines go first, and then the request says so: pods must be seen to end by it.
                await self._view.take_away([node["metadata"]["name"] for node in nodes], CAPACITY_RECLAIMED)
            await self._write(request, item, step, snapshot.now)
        elif isinstance(step, CreateNodes):
            await self._create(request, step, snapshot)

    async def _plan(self, request: Request, now: float) -> NodePlan | str | None:
        """The nodes of the request, or why it has none; None while its PodTemplates may still come."""
        known_plan = self._plans.get(request.uid)
        if known_plan is not None:
            return known_plan
        namespace = request.key.partition("/")[0]
        templates: dict[str, Json] = {}
        for name, _ in request.pod_sets:
            template = await self._view.api.find(f"/api/v1/namespaces/{namespace}/podtemplates/{name}")
            if template is not None:
                templates[name] = template
            elif now - parse_timestamp(request.created) < _TEMPLATE_GRACE_SECONDS:
                return None
        try:
            plan = plan_request(request, templates, self._supply(), now)
        except ValueError as error:
            return str(error)
        self._plans[request.uid] = plan
        return plan

    def _supply(self) -> Supply:
        queued_pools = tuple(pool for pool in self._store.pools.values() if pool.view.queued)
        auto_provisions = self._store.auto_provisions
        return Supply(
            place=self._store.auto_provisioning_place if self._store.autopilot else self._store.place,
            autopilot=self._store.autopilot,
            pools=queued_pools,
            limits=self._store.limits(self._view.nodes) if auto_provisions else None,
        )

    async def _write(self, request: Request, item: Json, step: SetCondition, now: float) -> None:
        details = (item.get("status") or {}).get("provisioningClassDetails") or {}
        body = {
            "metadata": {"uid": request.uid, "resourceVersion": item["metadata"]["resourceVersion"]},
            "status": updated_status(request, details, step, now),
        }
        namespace, _, name = request.key.partition("/")
        path = f"/apis/autoscaling.x-k8s.io/v1/namespaces/{namespace}/provisioningrequests/{name}/status"
        with AcceptedRefusals(HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT):
            await self._view.api.patch(path, body)
            log.info("%s: %s: %s=%s %s", self._store.place.cluster, request.key, step.type, step.status, step.message)

    async def _create(self, request: Request, step: CreateNodes, snapshot: _Pass) -> None:
        for name, amount in demand(step.templates).items():
            snapshot.available[name] -= amount
        for template in step.templates:
            if await self._view.add_node(template) is not None:
                self._created[template.name] = (request.resize_request, template)

    async def _give_back(self, requests: Mapping[str, Request], snapshot: _Pass) -> None:
        pods = self._view.pods.values()
        active = Counter(map(used_node, pods))
        used_nodes = {pod["spec"].get("nodeName") for pod in pods if not is_daemon(pod)}
        names = {node["metadata"]["name"]: key for key, nodes in snapshot.nodes.items() for node in nodes}
        self._empty_since = {name: self._empty_since.get(name, snapshot.now) for name in names if name not in active}
        uses = [
            NodeUse(name, key, active[name], name in used_nodes, self._empty_since.get(name))
            for name, key in sorted(names.items())
        ]
        unneeded_nodes = plan_node_removals(uses, requests, self._settings(), snapshot.now)
        await self._view.take_away([name for name in unneeded_nodes if name in active], CAPACITY_RECLAIMED)
        bound = {node["metadata"]["name"]: node for nodes in snapshot.nodes.values() for node in nodes}
        await self._view.retire([name for name in unneeded_nodes if name not in active], bound, snapshot.now)
