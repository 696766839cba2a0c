"""What a ClusterQueue has less than its fleet file gives it, as the fleet's controller writes it there."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass

from kueue_admission.forms.names import LOST_CAPACITY_ANNOTATION
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
    said = [
        {"cluster": each.cluster, "flavor": each.flavor, "lost": dict(each.amounts), "nodes": each.nodes}
        for each in lost
    ]
    return json.dumps(said, sort_keys=True)


def lost_capacity(queue: Printed) -> tuple[LostCapacity, ...]:
    """What a ClusterQueue says that its flavors lost; nothing where it says none, or what cannot be read."""
    try:
        said = json.loads(queue.annotations.text(LOST_CAPACITY_ANNOTATION) or "[]")
    except ValueError:
        return ()
    found = Fields({"lost": said}, "", []).children("lost")
    return tuple(
        LostCapacity(each.text("cluster"), each.text("flavor"), each.pairs("lost"), each.texts("nodes"))
        for each in found
    )
