"""The shared picture of one cluster's pods and simulated nodes, and what can be done to them.

What to do is decided in `nodes` and `dws`.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from http import HTTPStatus

from kueue_admission.read.printed import PrintedNode
from kueue_fleet.gke.labels import TO_BE_DELETED
from kueue_fleet.kube.answers import STRATEGIC_MERGE_PATCH, AcceptedRefusals, Json
from kueue_rehearsal.cloud.node_removal import plan_retirement
from kueue_rehearsal.cloud.node_templates import SIMULATED, NodeTemplate
from kueue_rehearsal.cloud.pod_needs import CONSUME_ANNOTATIONS, is_daemon, used_node
from kueue_rehearsal.control_planes.kube_api import ControlPlaneApi, Watched
from kueue_rehearsal.node_agent.status import timestamp

log = logging.getLogger(__name__)

_POD_SPEC = (
    "nodeName",
    "nodeSelector",
    "tolerations",
    "overhead",
    "affinity",
    "schedulingGates",
    "topologySpreadConstraints",
)
_NODE_METADATA = ("name", "uid", "resourceVersion", "creationTimestamp", "labels", "annotations", "deletionTimestamp")


@dataclass(frozen=True, slots=True)
class NodeEnd:
    """The message in the status of pods whose node goes away."""

    message: str
    disruption: str
    """The message of the condition DisruptionTarget."""


# kubernetes@v1.36 pkg/kubelet/nodeshutdown: nodeShutdownMessage; reason Terminated.
SPOT_RECLAIMED = NodeEnd(
    "Pod was terminated in response to imminent node shutdown.",
    "Pod was terminated in response to imminent node shutdown.",
)
"""What the pods of a Spot node say that is taken back."""
CAPACITY_RECLAIMED = NodeEnd("The node was deleted: its capacity had been reclaimed.", "The node was shut down.")
"""What the pods of a node say whose capacity is gone."""


def project_pod(pod: Json) -> Json:
    """What provisioning looks at in a pod."""
    metadata, spec = pod["metadata"], pod["spec"]
    annotations = metadata.get("annotations") or {}
    kept_fields: Json = {key: spec[key] for key in _POD_SPEC if key in spec}
    for containers in ("containers", "initContainers"):
        kept_fields[containers] = [{"resources": one.get("resources") or {}} for one in spec.get(containers) or ()]
    status = pod.get("status") or {}
    return {
        "metadata": {
            "name": metadata["name"],
            "namespace": metadata["namespace"],
            "uid": metadata["uid"],
            "creationTimestamp": metadata["creationTimestamp"],
            "annotations": {key: annotations[key] for key in CONSUME_ANNOTATIONS if key in annotations},
            "ownerReferences": [{"kind": owner["kind"]} for owner in metadata.get("ownerReferences") or ()],
            **({"deletionTimestamp": metadata["deletionTimestamp"]} if "deletionTimestamp" in metadata else {}),
        },
        "spec": kept_fields,
        "status": {
            "phase": status.get("phase"),
            "conditions": [one for one in status.get("conditions") or () if one["type"] == "PodScheduled"],
        },
    }


def project_node(node: Json) -> Json:
    """What provisioning looks at in a node."""
    metadata, status = node["metadata"], node.get("status") or {}
    kept_fields = {key: metadata[key] for key in _NODE_METADATA if key in metadata}
    return {
        "metadata": kept_fields,
        "spec": {key: node["spec"][key] for key in ("taints", "unschedulable") if key in node["spec"]},
        "status": {
            "allocatable": status.get("allocatable") or {},
            "capacity": status.get("capacity") or {},
            "ready": PrintedNode.of(node).is_true("Ready"),
        },
    }


class ClusterView:
    """The pods and simulated nodes of one cluster, shared by all that provision for it."""

    def __init__(self, api: ControlPlaneApi) -> None:
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
        with AcceptedRefusals(HTTPStatus.CONFLICT):
            return await self.api.create("/api/v1/nodes", template.manifest())
        return None

    async def remove_node(self, name: str) -> None:
        """Deletes the node."""
        await self.api.delete(f"/api/v1/nodes/{name}", grace_seconds=0)

    async def retire(self, unneeded_nodes: Iterable[str], among: Mapping[str, Json], now: float) -> None:
        """Closes, then deletes the unneeded nodes; opens those `among` that are needed again. Call it repeatedly."""
        close, delete, reopen = plan_retirement(unneeded_nodes, among, now)
        for name in close:
            taint = {"key": TO_BE_DELETED, "value": str(int(now)), "effect": "NoSchedule"}
            await self._patch_node(among[name], {"taints": [*(among[name]["spec"].get("taints") or ()), taint]})
        for name in reopen:
            taints = [one for one in among[name]["spec"]["taints"] if one["key"] != TO_BE_DELETED]
            await self._patch_node(among[name], {"taints": taints})
        for name in delete:
            if await self._has_pods(name):
                continue
            await self.remove_node(name)
            log.info("node %s: no longer needed, removed", name)

    async def _has_pods(self, node: str) -> bool:
        """Whether the API server knows of pods that run there, or are about to; a watch may be late to tell."""
        selector = f"spec.nodeName={node},status.phase!=Succeeded,status.phase!=Failed"
        page = await self.api.get("/api/v1/pods", {"fieldSelector": selector})
        return any(not is_daemon(pod) for pod in page["items"])

    def active_pods(self, nodes: Collection[str]) -> list[Json]:
        """The pods that run on these nodes, or are about to; without those of DaemonSets, which go with the node."""
        return [pod for pod in self.pods.values() if used_node(pod) in nodes]

    async def take_away(self, names: Collection[str], end: NodeEnd) -> None:
        """Deletes nodes under the pods that run there."""
        for pod in self.active_pods(names):
            await self._end_pod(pod, end)
        for name in names:
            await self.remove_node(name)
            log.info("node %s: %s", name, end.message)

    async def _end_pod(self, pod: Json, end: NodeEnd) -> None:
        """What becomes of a pod whose machine is deleted: Failed, and marked as disrupted, for pod failure policies."""
        now = timestamp(time.time())
        status: Json = {
            "phase": "Failed",
            "reason": "Terminated",
            "message": end.message,
            "conditions": [
                {
                    "type": "DisruptionTarget",
                    "status": "True",
                    "reason": "TerminationByKubelet",
                    "message": end.disruption,
                    "lastTransitionTime": now,
                },
                {"type": "Ready", "status": "False", "reason": "PodFailed", "lastTransitionTime": now},
            ],
        }
        metadata = pod["metadata"]
        path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}/status"
        with AcceptedRefusals(HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT):
            body = {"metadata": {"uid": metadata["uid"]}, "status": status}
            await self.api.patch(path, body, STRATEGIC_MERGE_PATCH)

    async def drain(self, names: Collection[str]) -> None:
        """Closes nodes and evicts their pods, as GKE does before it deletes or upgrades them; call it repeatedly."""
        for name in names:
            node = self.nodes.get(name)
            if node is not None and not node["spec"].get("unschedulable"):
                await self._patch_node(node, {"unschedulable": True})
        for pod in self.active_pods(names):
            if "deletionTimestamp" not in pod["metadata"]:
                await self._evict(pod)

    async def _evict(self, pod: Json) -> None:
        metadata = pod["metadata"]
        path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}"
        eviction: Json = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": metadata["name"], "namespace": metadata["namespace"]},
            "deleteOptions": {"preconditions": {"uid": metadata["uid"]}},
        }
        # The last: a disruption budget does not allow it now.
        with AcceptedRefusals(HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT, HTTPStatus.TOO_MANY_REQUESTS):
            await self.api.create(f"{path}/eviction", eviction)

    async def _patch_node(self, node: Json, spec: Json) -> None:
        metadata = node["metadata"]
        body = {"metadata": {"uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"]}, "spec": spec}
        with AcceptedRefusals(HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT):
            await self.api.patch(f"/api/v1/nodes/{metadata['name']}", body)

    async def say(self, pod: Json, reason: str, message: str) -> None:
        """An Event of type Normal about a pod, as the cluster autoscaler writes them."""
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
            "type": "Normal",
            "source": {"component": "cluster-autoscaler"},
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
        }
        await self.api.create(f"/api/v1/namespaces/{metadata['namespace']}/events", event)
