"""Which simulated nodes go when nothing runs on them. No I/O: `nodes` carries it out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kueue_admission.kernel.manifest import Manifest
from kueue_fleet.gke.labels import NODE_POOL, RESIZE_REQUEST, TO_BE_DELETED
from kueue_rehearsal.cloud.node_templates import AUTOSCALED
from kueue_rehearsal.cloud.pod_needs import used_node

RETIREMENT_SECONDS = 1.0
"""How long the nodes of a removed pool stay, so that their pods can end."""


def plan_removals(
    nodes: Mapping[str, Manifest],
    pods: Iterable[Manifest],
    empty_since: Mapping[str, float],
    now: float,
    idle_seconds: float,
    least: Mapping[str, int] | None = None,
) -> tuple[list[str], dict[str, float]]:
    """(nodes to remove, since when each autoscaled node has been empty).

    Nodes that are bound to a ProvisioningRequest are left to `dws`. Pods that have ended and pods of DaemonSets do not
    keep a node. A node that is not ready is not empty: what it was made for cannot be placed there yet. `least` maps
    the name of a node pool to how many of its nodes stay whatever happens.
    """
    used_nodes = {used_node(pod) for pod in pods}
    since: dict[str, float] = {}
    for name, node in nodes.items():
        labels = node["metadata"].get("labels") or {}
        if (
            labels.get(AUTOSCALED) != "true"
            or RESIZE_REQUEST in labels
            or name in used_nodes
            or not node["status"]["ready"]
        ):
            continue
        since[name] = min(empty_since.get(name, now), now)
    spare: dict[str, int] = {}
    for node in nodes.values():
        pool = (node["metadata"].get("labels") or {}).get(NODE_POOL, "")
        spare[pool] = spare.get(pool, -(least or {}).get(pool, 0)) + 1
    gone = []
    for name, start in sorted(since.items(), key=lambda one: (one[1], one[0])):
        pool = nodes[name]["metadata"]["labels"].get(NODE_POOL, "")
        if now - start >= idle_seconds and spare[pool] > 0:
            spare[pool] -= 1
            gone.append(name)
    return sorted(gone), since


def plan_retirement(
    unneeded_nodes: Iterable[str], nodes: Mapping[str, Manifest], now: float
) -> tuple[list[str], list[str], list[str]]:
    """(nodes to close, nodes to delete, nodes to open again).

    As the cluster autoscaler does, a node is closed to new pods by a taint that says when, and deleted a moment later:
    the scheduler may be placing a pod there just now. A closed node that has become needed is opened again.
    """
    wanted_names = set(unneeded_nodes)
    close, delete, reopen = [], [], []
    for name, node in sorted(nodes.items()):
        closing_taint = next((one for one in node["spec"].get("taints") or () if one["key"] == TO_BE_DELETED), None)
        if name in wanted_names and closing_taint is None:
            close.append(name)
        elif (
            name in wanted_names
            and closing_taint is not None
            and now - float(closing_taint["value"]) >= RETIREMENT_SECONDS
        ):
            delete.append(name)
        elif name not in wanted_names and closing_taint is not None:
            reopen.append(name)
    return close, delete, reopen
