"""Which pods of a node are never run, and what they belong to, for commands that wait for them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from kueue_fleet.kube.answers import Json
from kueue_rehearsal.control_planes.kube_api import ControlPlaneApi

if TYPE_CHECKING:
    from kueue_rehearsal.node_agent.worker import PodWorker

_PLURALS = {
    "ReplicaSet": "replicasets",
    "Deployment": "deployments",
    "StatefulSet": "statefulsets",
    "DaemonSet": "daemonsets",
}
_HELM_NAME, _HELM_NAMESPACE = "meta.helm.sh/release-name", "meta.helm.sh/release-namespace"


async def describe_refusals(api: ControlPlaneApi, workers: Iterable[PodWorker]) -> list[Json]:
    """A row for each pod that is never run: the object that made it, the Helm release that made that, and why.

    A pod whose maker is gone has no row: it goes too. Raises ApiError.
    """
    rows: list[Json] = []
    for worker in list(workers):
        if (message := worker.refusal()) is None:
            continue
        maker = await _maker(api, worker.pod)
        if maker is None:
            continue
        metadata = maker["metadata"]
        made_by_helm = metadata.get("annotations") or {}
        row: Json = {
            "kind": maker["kind"],
            "namespace": metadata["namespace"],
            "name": metadata["name"],
            "labels": worker.pod["metadata"].get("labels") or {},
            "message": message,
            "since": worker.since,
            "curable": worker.is_curable,
        }
        if _HELM_NAME in made_by_helm:
            row["release"] = {"namespace": made_by_helm.get(_HELM_NAMESPACE), "name": made_by_helm[_HELM_NAME]}
        rows.append(row)
    return rows


async def _maker(api: ControlPlaneApi, pod: Json) -> Json | None:
    """The Deployment, StatefulSet or DaemonSet of a pod, else what is nearest to it; None once that is gone."""
    owner: Json = {**pod, "kind": "Pod"}
    while reference := _controller(owner):
        namespace = owner["metadata"]["namespace"]
        path = f"/apis/apps/v1/namespaces/{namespace}/{_PLURALS[reference['kind']]}/{reference['name']}"
        above = await api.find(path)
        if above is None or above["metadata"]["uid"] != reference["uid"]:
            return None
        owner = {**above, "kind": reference["kind"]}
    return owner


def _controller(item: Json) -> Json | None:
    for reference in item["metadata"].get("ownerReferences") or ():
        if reference.get("controller") and reference["kind"] in _PLURALS and reference["apiVersion"] == "apps/v1":
            owner: Json = reference
            return owner
    return None
