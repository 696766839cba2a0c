from __future__ import annotations

from typing import Any, cast

from kueue_rehearsal.cloud.cluster_view import ClusterView
from kueue_rehearsal.control_planes.kube_api import ControlPlaneApi

Json = dict[str, Any]
CLOSED = {"key": "ToBeDeletedByClusterAutoscaler", "value": "100", "effect": "NoSchedule"}


class Server:
    """The pods of each node; what was deleted."""

    def __init__(self, pods: dict[str, list[Json]]) -> None:
        self._pods = pods
        self.deleted: list[str] = []

    async def get(self, path: str, params: dict[str, str]) -> Json:
        assert path == "/api/v1/pods"
        node, *others = params["fieldSelector"].removeprefix("spec.nodeName=").split(",")
        assert others == ["status.phase!=Succeeded", "status.phase!=Failed"]
        return {"items": self._pods.get(node, [])}

    async def delete(self, path: str, grace_seconds: int | None = None) -> None:
        self.deleted.append(path.rpartition("/")[2])


async def test_a_node_to_which_a_pod_was_bound_unseen_is_not_deleted() -> None:
    mine, daemon = ({"metadata": {"ownerReferences": [{"kind": kind}]}} for kind in ("Job", "DaemonSet"))
    server = Server({"bound": [daemon, mine], "bare": [daemon]})
    nodes = {name: {"metadata": {"name": name}, "spec": {"taints": [CLOSED]}} for name in ("bound", "bare", "empty")}
    await ClusterView(cast("ControlPlaneApi", server)).retire(nodes, nodes, 200.0)
    assert sorted(set(server.deleted)) == ["bare", "empty"]
