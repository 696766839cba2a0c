"""Simulated nodes of one cluster: kwok plays them, and a stand-in for GKE's node auto-provisioning makes and removes
them.

`ClusterView` is the shared picture of pods and nodes; `NodeProvisioner` acts on it. What to do is decided in
`node_planning`.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import aiohttp

from kueue_fleet.rehearsal.kube_api import ApiError, Json, KubeApi, Watched
from kueue_fleet.rehearsal.machines import GPU_RESOURCE
from kueue_fleet.rehearsal.node_agent.policy import NODE_LABEL
from kueue_fleet.rehearsal.node_agent.status import timestamp
from kueue_fleet.rehearsal.node_planning import (
    CONSUME_ANNOTATIONS,
    QUEUED,
    SIMULATED,
    SPOT,
    NodeTemplate,
    Place,
    consumed_request,
    free_resources,
    is_unschedulable,
    plan_nodes,
    plan_removals,
    pod_needs,
)

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
    kept = {
        key: metadata[key] for key in ("name", "uid", "labels", "annotations", "deletionTimestamp") if key in metadata
    }
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
        await self.api.delete(f"/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/{name}")

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
        for name in gone:
            await self._view.remove_node(name)
            log.info("%s: node %s was empty, removed", self._place.cluster, name)


async def _wait_for(event: asyncio.Event, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return


def gke_tolerations_policy() -> list[tuple[str, Json]]:
    """(API path, object): tolerations that GKE's own admission adds to pods that ask for GPUs, Spot, queued capacity.

    The one for GPUs is what the plugin ExtendedResourceToleration does, for this one resource.
    """
    consumes = " || ".join(f"'{annotation}' in object.metadata.annotations" for annotation in CONSUME_ANNOTATIONS)
    has_gpu = f"has(c.resources) && has(c.resources.limits) && '{GPU_RESOURCE}' in c.resources.limits"
    spot = f"'{SPOT}' in object.spec.nodeSelector && object.spec.nodeSelector['{SPOT}'] == 'true'"
    return [
        *_toleration_policy("kueue-fleet-gpu", GPU_RESOURCE, f"object.spec.containers.exists(c, {has_gpu})"),
        *_toleration_policy("kueue-fleet-queued", QUEUED, f"has(object.metadata.annotations) && ({consumes})"),
        *_toleration_policy("kueue-fleet-spot", SPOT, f"has(object.spec.nodeSelector) && {spot}"),
    ]


def _toleration_policy(name: str, key: str, condition: str) -> list[tuple[str, Json]]:
    api_version = "admissionregistration.k8s.io/v1"
    toleration = f"Object.spec.tolerations{{key: '{key}', operator: 'Exists', effect: 'NoSchedule'}}"
    policy: dict[str, Any] = {
        "apiVersion": api_version,
        "kind": "MutatingAdmissionPolicy",
        "metadata": {"name": name},
        "spec": {
            "failurePolicy": "Fail",
            "reinvocationPolicy": "Never",
            "matchConstraints": {
                "resourceRules": [
                    {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
                ]
            },
            "matchConditions": [{"name": "asks", "expression": condition}],
            "mutations": [
                {
                    "patchType": "JSONPatch",
                    "jsonPatch": {
                        "expression": (
                            "has(object.spec.tolerations) ? "
                            f"[JSONPatch{{op: 'add', path: '/spec/tolerations/-', value: {toleration}}}] : "
                            f"[JSONPatch{{op: 'add', path: '/spec/tolerations', value: [{toleration}]}}]"
                        )
                    },
                }
            ],
        },
    }
    binding: dict[str, Any] = {
        "apiVersion": api_version,
        "kind": "MutatingAdmissionPolicyBinding",
        "metadata": {"name": name},
        "spec": {"policyName": name},
    }
    root = f"/apis/{api_version}"
    return [
        (f"{root}/mutatingadmissionpolicies/{name}", policy),
        (f"{root}/mutatingadmissionpolicybindings/{name}", binding),
    ]
