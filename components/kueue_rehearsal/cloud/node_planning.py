"""Which simulated nodes a cluster needs: what GKE's cluster autoscaler, node auto-provisioning and Autopilot decide.

No I/O: `nodes` carries it out; what goes again is in `node_removal`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Protocol

from kueue_admission.kernel.manifest import Manifest
from kueue_rehearsal.cloud.node_templates import NodeTemplate
from kueue_rehearsal.cloud.pod_needs import PodNeeds, fits_node, is_tolerated

# Of a node that is not ready yet: it will be, so its room counts.
_PASSING_TAINTS = {"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"}


class NodeSource(Protocol):
    """Where new nodes come from: a node pool, or auto-provisioning."""

    def offer(self, needs: PodNeeds) -> NodeTemplate | str:
        """A node that the pod fits on, or why there is none."""
        ...

    def take(self, template: NodeTemplate) -> None:
        """Counts the offered node as one that will be created."""
        ...


@dataclass(frozen=True, slots=True)
class NodePlan:
    """What to do about the pods that wait."""

    add: tuple[NodeTemplate, ...]
    refused: Mapping[str, str]
    """namespace/name of a pod → why no node can be made for it."""
    placed: Mapping[str, str]
    """uid of a pod → name of the new or existing node that has room for it."""


@dataclass(slots=True)
class _Room:
    """A node that exists or is planned, and what is left of it."""

    name: str
    labels: Mapping[str, str]
    taints: tuple[Manifest, ...]
    free: dict[str, int]


def plan_nodes(
    waiting: Sequence[PodNeeds],
    nodes: Mapping[str, Manifest],
    free: Mapping[str, Mapping[str, int]],
    sources: Sequence[NodeSource],
) -> NodePlan:
    """The nodes to create for the waiting pods, oldest first, each from the first source that has one.

    Room on existing nodes counts first: the scheduler will use it. A new node's room counts for the pods that follow.
    """
    rooms = [
        _Room(
            name,
            node["metadata"].get("labels") or {},
            tuple(taint for taint in node["spec"].get("taints") or () if taint["key"] not in _PASSING_TAINTS),
            dict(free.get(name, {})),
        )
        for name, node in sorted(nodes.items())
        if not node["spec"].get("unschedulable") and "deletionTimestamp" not in node["metadata"]
    ]
    add: list[NodeTemplate] = []
    refusals: dict[str, str] = {}
    placed_pods: dict[str, str] = {}
    for needs in sorted(waiting, key=lambda one: (one.created, one.key)):
        room = next((one for one in rooms if fits_node(needs, one.labels, one.taints, one.free)), None)
        if room is None:
            new_node = _new_node(needs, sources, nodes)
            if isinstance(new_node, str):
                refusals[needs.key] = new_node
                continue
            add.append(new_node)
            room = _Room(new_node.name, new_node.labels, new_node.taints, dict(new_node.allocatable))
            rooms.append(room)
        placed_pods[needs.uid] = room.name
        for name, amount in needs.requests.items():
            room.free[name] = room.free.get(name, 0) - amount
    return NodePlan(tuple(add), refusals, placed_pods)


def _new_node(needs: PodNeeds, sources: Sequence[NodeSource], nodes: Collection[str]) -> NodeTemplate | str:
    """A node for the pod, or what each source says about it."""
    if needs.not_modelled:
        return f"{' and '.join(needs.not_modelled)}: the simulated provisioner does not model this"
    reasons: list[str] = []
    for source in sources:
        offer = _offer(source, needs, nodes)
        if not isinstance(offer, str):
            source.take(offer)
            return offer
        if offer not in reasons:
            reasons.append(offer)
    return "; ".join(reasons) or "the cluster has no autoscaled node pool and no node auto-provisioning"


def _offer(source: NodeSource, needs: PodNeeds, nodes: Collection[str]) -> NodeTemplate | str:
    """What the source has for the pod: not the node that was made for it before and that another pod took."""
    offer = source.offer(needs)
    for attempt in count(1):
        if isinstance(offer, str) or offer.name not in nodes:
            break
        offer = source.offer(replace(needs, uid=f"{needs.uid}/{attempt}"))
    return offer


def misfit(needs: PodNeeds, template: NodeTemplate) -> str | None:
    """Why the pod could not run on an empty node of this kind; None when it could."""
    for key, value in needs.node_selector.items():
        if template.labels.get(key) != value:
            return f"its nodes do not have the label {key}={value}"
    if (refusal := untolerated(needs, template)) is not None:
        return refusal
    short = scarce(needs, template)
    return f"{template.machine.name} does not have enough {', '.join(short)}" if short else None


def untolerated(needs: PodNeeds, template: NodeTemplate) -> str | None:
    """Which taint keeps the pod from such a node; None: none does."""
    for taint in template.taints:
        if not is_tolerated(needs.tolerations, taint):
            return f"the pod does not tolerate the taint {taint['key']}={taint.get('value', '')}:{taint['effect']}"
    return None


def scarce(needs: PodNeeds, template: NodeTemplate) -> list[str]:
    """The resources of which an empty node of this kind has too little for the pod."""
    return [name for name, amount in needs.requests.items() if amount and template.allocatable.get(name, 0) < amount]
