"""Simulated nodes of one cluster: kwok plays them, and a stand-in for GKE's node auto-provisioning makes and removes
them.

`ClusterView` is the shared picture of pods and nodes; `NodeProvisioner` acts on it. What to do is decided in
`node_planning`.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import aiohttp

from kueue_fleet.rehearsal.kube_api import ApiError, Json, KubeApi, Watched
from kueue_fleet.rehearsal.machines import GPU_RESOURCE
from kueue_fleet.rehearsal.node_agent.policy import NODE_LABEL
from kueue_fleet.rehearsal.node_agent.status import timestamp
from kueue_fleet.rehearsal.node_planning import (
    CONSUME_ANNOTATIONS,
    QUEUED,
    RESIZE_REQUEST,
    SIMULATED,
    SPOT,
    TO_BE_DELETED,
    NodeTemplate,
    Place,
    consumed_request,
    free_resources,
    is_unschedulable,
    plan_nodes,
    plan_removals,
    plan_retirement,
    pod_needs,
)
from kueue_fleet.rehearsal.pod_policies import added_toleration, await_policies, pod_policy

log = logging.getLogger(__name__)

_SETTLE_SECONDS = 0.1
_TICK_SECONDS = 2.0
_POD_SPEC = (
    "nodeName",
    "nodeSelector",
    "tolerations",
    "overhead",
    "affinity",
    "schedulingGates",
    "topologySpreadConstraints",
)


@dataclass(frozen=True, slots=True)
class NodeSettings:
    """How fast the simulated cloud is. Times in seconds; a real one needs about 90 s for a GPU node."""

    provision_seconds: float = 1.0
    """From the first sight of a pod that fits nowhere to its node."""
    idle_seconds: float = 30.0
    """How long a node stays empty before it is removed; GKE waits 10 minutes."""


_NODE_METADATA = ("name", "uid", "resourceVersion", "labels", "annotations", "deletionTimestamp")


def project_pod(pod: Json) -> Json:
    """What provisioning looks at in a pod."""
    metadata, spec = pod["metadata"], pod["spec"]
    annotations = metadata.get("annotations") or {}
    kept: Json = {key: spec[key] for key in _POD_SPEC if key in spec}
    for containers in ("containers", "initContainers"):
        kept[containers] = [{"resources": one.get("resources") or {}} for one in spec.get(containers) or ()]
    status = pod.get("status") or {}
    return {
        "metadata": {
            "name": metadata["name"],
            "namespace": metadata["namespace"],
            "uid": metadata["uid"],
            "creationTimestamp": metadata["creationTimestamp"],
            "annotations": {key: annotations[key] for key in CONSUME_ANNOTATIONS if key in annotations},
            **({"deletionTimestamp": metadata["deletionTimestamp"]} if "deletionTimestamp" in metadata else {}),
        },
        "spec": kept,
        "status": {
            "phase": status.get("phase"),
            "conditions": [one for one in status.get("conditions") or () if one["type"] == "PodScheduled"],
        },
    }


def project_node(node: Json) -> Json:
    """What provisioning looks at in a node."""
    metadata, status = node["metadata"], node.get("status") or {}
    kept = {key: metadata[key] for key in _NODE_METADATA if key in metadata}
    return {
        "metadata": kept,
        "spec": {key: node["spec"][key] for key in ("taints", "unschedulable") if key in node["spec"]},
        "status": {
            "allocatable": status.get("allocatable") or {},
            "ready": any(one["type"] == "Ready" and one["status"] == "True" for one in status.get("conditions") or ()),
        },
    }


class ClusterView:
    """The pods and simulated nodes of one cluster, shared by all that provision for it."""

    def __init__(self, api: KubeApi) -> None:
        self.api = api
        self._listeners: list[Callable[[], None]] = []
        self._pods = Watched(api, "/api/v1/pods", project=project_pod, on_change=self._changed)
        self._nodes = Watched(
            api,
            "/api/v1/nodes",
            params={"labelSelector": f"{SIMULATED}=true"},
            project=project_node,
            on_change=self._changed,
        )

    @property
    def pods(self) -> Mapping[str, Json]:
        """namespace/name → pod."""
        return self._pods.objects

    @property
    def nodes(self) -> Mapping[str, Json]:
        """name → node."""
        return self._nodes.objects

    def subscribe(self, listener: Callable[[], None]) -> None:
        """`listener` is called after every change."""
        self._listeners.append(listener)

    def _changed(self, *_: object) -> None:
        for listener in self._listeners:
            listener()

    async def run(self) -> None:
        """Watches until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._pods.run())
            group.create_task(self._nodes.run())

    async def wait_synced(self) -> None:
        """Returns once both lists have been read."""
        await self._pods.synced.wait()
        await self._nodes.synced.wait()

    async def add_node(self, template: NodeTemplate) -> Json | None:
        """Creates the node; None when it is there already."""
        try:
            return await self.api.create("/api/v1/nodes", template.manifest())
        except ApiError as error:
            if error.is_conflict:
                return None
            raise

    async def remove_node(self, name: str) -> None:
        """Deletes the node and its lease."""
        await self.api.delete(f"/api/v1/nodes/{name}", grace_seconds=0)
        await self._delete_lease(name)

    async def release_leases(self) -> None:
        """Deletes the leases that a dead kwok holds: its successor would wait 40 s for each to run out."""
        try:
            for name in list(self.nodes):
                await self._delete_lease(name)
        except (ApiError, aiohttp.ClientError, TimeoutError, OSError) as error:
            log.info("leases of the simulated nodes: %s; they run out by themselves", error)

    async def _delete_lease(self, name: str) -> None:
        await self.api.delete(f"/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/{name}")

    async def retire(self, unneeded: Iterable[str], among: Mapping[str, Json], now: float) -> None:
        """Closes, then deletes the unneeded nodes; opens those `among` that are needed again. Call it repeatedly."""
        close, delete, reopen = plan_retirement(unneeded, among, now)
        for name in close:
            taint = {"key": TO_BE_DELETED, "value": str(int(now)), "effect": "NoSchedule"}
            await self._patch_taints(among[name], [*(among[name]["spec"].get("taints") or ()), taint])
        for name in reopen:
            taints = [one for one in among[name]["spec"]["taints"] if one["key"] != TO_BE_DELETED]
            await self._patch_taints(among[name], taints)
        for name in delete:
            await self.remove_node(name)
            log.info("node %s: not needed any more, removed", name)

    async def _patch_taints(self, node: Json, taints: list[Json]) -> None:
        metadata = node["metadata"]
        body = {
            "metadata": {"uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"]},
            "spec": {"taints": taints},
        }
        try:
            await self.api.patch(f"/api/v1/nodes/{metadata['name']}", body)
        except ApiError as error:
            if not (error.is_conflict or error.is_not_found):
                raise

    async def say(self, pod: Json, kind: str, reason: str, message: str) -> None:
        """An Event about a pod, as the cluster autoscaler writes them."""
        metadata = pod["metadata"]
        now = timestamp(time.time())
        event: Json = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"generateName": f"{metadata['name']}.", "namespace": metadata["namespace"]},
            "involvedObject": {
                "apiVersion": "v1",
                "kind": "Pod",
                "name": metadata["name"],
                "namespace": metadata["namespace"],
                "uid": metadata["uid"],
            },
            "reason": reason,
            "message": message,
            "type": kind,
            "source": {"component": "cluster-autoscaler"},
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
        }
        await self.api.create(f"/api/v1/namespaces/{metadata['namespace']}/events", event)


class NodeProvisioner:
    """Makes nodes for pods that fit nowhere, and removes nodes that stay empty, as Autopilot and node
    auto-provisioning do.

    Pods that use a ProvisioningRequest's capacity are left to `dws`, pods of the node agent's node to it.
    """

    def __init__(self, view: ClusterView, place: Place, settings: NodeSettings) -> None:
        self._view = view
        self._place = place
        self._settings = settings
        self._wake = asyncio.Event()
        self._first_seen: dict[str, float] = {}
        self._empty_since: dict[str, float] = {}
        self._told: dict[str, str] = {}
        view.subscribe(self._wake.set)

    async def run(self) -> None:
        """Runs until cancelled."""
        await self._view.wait_synced()
        while True:
            await _wait_for(self._wake, _TICK_SECONDS)
            await asyncio.sleep(_SETTLE_SECONDS)
            self._wake.clear()
            try:
                await self._provision(time.time())
                await self._remove(time.time())
            except (ApiError, aiohttp.ClientError, TimeoutError, OSError) as error:
                log.info("%s: provisioning: %s; trying again", self._place.cluster, error)

    async def _provision(self, now: float) -> None:
        waiting = {
            key: pod
            for key, pod in self._view.pods.items()
            if is_unschedulable(pod)
            and consumed_request(pod) is None
            and NODE_LABEL not in (pod["spec"].get("nodeSelector") or {})
        }
        uids = {pod["metadata"]["uid"] for pod in waiting.values()}
        self._first_seen = {uid: self._first_seen.get(uid, now) for uid in uids}
        self._told = {uid: text for uid, text in self._told.items() if uid in uids}
        due = [
            pod_needs(key, pod["metadata"]["uid"], pod["spec"], pod["metadata"]["creationTimestamp"])
            for key, pod in waiting.items()
            if now - self._first_seen[pod["metadata"]["uid"]] >= self._settings.provision_seconds
        ]
        if not due:
            if waiting:
                asyncio.get_running_loop().call_later(self._settings.provision_seconds, self._wake.set)
            return
        nodes = self._view.nodes
        plan = plan_nodes(due, nodes, free_resources(nodes, self._view.pods.values()), self._place)
        for template in plan.add:
            if await self._view.add_node(template) is not None:
                log.info("%s: new node %s", self._place.cluster, template.name)
        for key, reason in plan.refused.items():
            await self._tell_once(waiting[key], reason)

    async def _tell_once(self, pod: Json, reason: str) -> None:
        uid = pod["metadata"]["uid"]
        if self._told.get(uid) != reason:
            self._told[uid] = reason
            await self._view.say(pod, "Normal", "NotTriggerScaleUp", reason)

    async def _remove(self, now: float) -> None:
        gone, self._empty_since = plan_removals(
            self._view.nodes, self._view.pods.values(), self._empty_since, now, self._settings.idle_seconds
        )
        own = {
            name: node for name, node in self._view.nodes.items() if RESIZE_REQUEST not in node["metadata"]["labels"]
        }
        await self._view.retire(gone, own, now)


async def _wait_for(event: asyncio.Event, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return


async def install_tolerations(api: KubeApi) -> None:
    """Makes the API server add the tolerations that GKE's own admission adds to pods; returns once it does.

    To pods that ask for GPUs (as the plugin ExtendedResourceToleration does), for Spot, or for a request's capacity.
    Raises ApiError.
    """
    consumes = " || ".join(f"'{annotation}' in object.metadata.annotations" for annotation in CONSUME_ANNOTATIONS)
    has_gpu = f"has(c.resources) && has(c.resources.limits) && '{GPU_RESOURCE}' in c.resources.limits"
    spot = f"'{SPOT}' in object.spec.nodeSelector && object.spec.nodeSelector['{SPOT}'] == 'true'"
    conditions = {
        GPU_RESOURCE: ("kueue-fleet-gpu", f"object.spec.containers.exists(c, {has_gpu})"),
        QUEUED: ("kueue-fleet-queued", f"has(object.metadata.annotations) && ({consumes})"),
        SPOT: ("kueue-fleet-spot", f"has(object.spec.nodeSelector) && {spot}"),
    }
    for key, (name, condition) in conditions.items():
        for path, body in pod_policy(name, condition, added_toleration(key)):
            await api.apply(path, body)
    container = {"name": "probe", "image": "probe", "resources": {"limits": {GPU_RESOURCE: "1"}}}
    await await_policies(
        api,
        {"containers": [container], "nodeSelector": {SPOT: "true"}},
        lambda spec: set(conditions) <= {one.get("key") for one in spec.get("tolerations") or ()},
        {CONSUME_ANNOTATIONS[0]: "probe"},
    )
