"""What a ClusterQueue has less than its fleet file gives it, as the fleet's controller writes it there."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass

from kueue_admission.kernel.names import LOST_CAPACITY_ANNOTATION
from kueue_admission.read.fields import Fields
from kueue_admission.read.printed import Printed


@dataclass(frozen=True, slots=True)
class LostCapacity:
    """What queues may not use of a flavor on a cluster, because nodes are missing."""

    cluster: str
    flavor: str
    amounts: tuple[tuple[str, str], ...]
    """By resource, as Kubernetes writes it."""
    nodes: tuple[str, ...]
    """Nodes that are out, and why: `gke-a (NotReady)`; and how many are missing."""

    def __str__(self) -> str:
        amounts = ", ".join(f"{amount} {resource}" for resource, amount in self.amounts)
        why = f": {', '.join(self.nodes)}" if self.nodes else ""
        return f"{amounts} of flavor {self.flavor} on {self.cluster}{why}"


def write_lost(lost: Iterable[LostCapacity]) -> str:
    """The value of the annotation."""
    rows = [
        {
            "cluster": lost_here.cluster,
            "flavor": lost_here.flavor,
            "lost": dict(lost_here.amounts),
            "nodes": lost_here.nodes,
        }
        for lost_here in lost
    ]
    return json.dumps(rows, sort_keys=True)


def lost_capacity(queue: Printed) -> tuple[LostCapacity, ...]:
    """What a ClusterQueue says that its flavors lost; nothing where it says none, or what cannot be read."""
    try:
        rows = json.loads(queue.annotations.text(LOST_CAPACITY_ANNOTATION) or "[]")
    except ValueError:
        return ()
    entries = Fields({"lost": rows}, "", []).children("lost")
    return tuple(
        LostCapacity(entry.text("cluster"), entry.text("flavor"), entry.pairs("lost"), entry.texts("nodes"))
        for entry in entries
    )
