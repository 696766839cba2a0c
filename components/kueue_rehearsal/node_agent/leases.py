"""Leases with which containers elect a leader, and which outlive containers that could not release them."""

from __future__ import annotations

from kueue_rehearsal.control_planes.kube_api import ControlPlaneApi


def leases_of(namespace: str) -> str:
    """The path of a namespace's Leases."""
    return f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"


async def release_leases(api: ControlPlaneApi, node: str) -> None:
    """Releases every Lease in the namespaces of the pods of `node`. To be called while no container runs there.

    After the machine was switched off, Kueue would wait 15 s for the Lease that it held itself, and decide nothing.

    Raises ApiError.
    """
    pods = await api.get("/api/v1/pods", {"fieldSelector": f"spec.nodeName={node}"})
    for namespace in sorted({pod["metadata"]["namespace"] for pod in pods["items"]}):
        collection = leases_of(namespace)
        for lease in (await api.get(collection))["items"]:
            if lease["spec"].get("holderIdentity"):
                await api.patch(f"{collection}/{lease['metadata']['name']}", {"spec": {"holderIdentity": None}})
