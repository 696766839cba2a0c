"""Leases of containers that could not release them, since the machine was switched off."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kueue_rehearsal.node_agent.leases import leases_of, release_leases

Json = dict[str, Any]
OF_THE_NODE = {"fieldSelector": "spec.nodeName=system-0"}


def lease(name: str, holder: str | None) -> Json:
    return {"metadata": {"name": name}, "spec": {"holderIdentity": holder} if holder else {}}


class Api:
    """A cluster with pods of the node in two namespaces."""

    def __init__(self) -> None:
        self.patches: list[tuple[str, Json]] = []
        self.lists: dict[str, list[Json]] = {
            leases_of("kueue-system"): [lease("kueue", "vm_1"), lease("free", None)],
            leases_of("jobset-system"): [lease("jobset", "vm_2")],
            leases_of("kube-system"): [lease("apiserver-1", "apiserver-1_2")],
        }

    async def get(self, path: str, params: Mapping[str, str] | None = None) -> Json:
        if path == "/api/v1/pods":
            assert params == OF_THE_NODE
            namespaces = ("kueue-system", "jobset-system", "kueue-system")
            return {"items": [{"metadata": {"namespace": namespace}} for namespace in namespaces]}
        return {"items": self.lists[path]}

    async def patch(self, path: str, body: Json) -> None:
        self.patches.append((path, body))


async def test_leases_are_released_in_namespaces_of_the_nodes_pods_and_no_others() -> None:
    api: Any = Api()
    await release_leases(api, "system-0")
    released = {"spec": {"holderIdentity": None}}
    assert api.patches == [
        (f"{leases_of('jobset-system')}/jobset", released),
        (f"{leases_of('kueue-system')}/kueue", released),
    ]
