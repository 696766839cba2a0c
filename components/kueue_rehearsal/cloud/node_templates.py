"""Simulated nodes before they exist: where they can be, what they are called, and the object that is created.

Which nodes there should be is decided in `node_planning`, and for pools of fixed size in `node_pools`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kueue_fleet.gke.machines import BOOT_DISK_BYTES, PODS_PER_NODE, MachineType
from kueue_fleet.gke.zones import DEFAULT_ZONES, zones_of

SIMULATED = "kueue-fleet.dev/simulated"
"""The label of every simulated node; kwok manages the nodes that have it."""
AUTOSCALED = "kueue-fleet.dev/autoscaled"
"""The label of the nodes that may be removed when they are empty."""
FINGERPRINT = "kueue-fleet.dev/template"
"""The annotation that says after which template a pool's node was made."""
SIMULATED_LABELS = {SIMULATED: "true", "cloud.google.com/gke-container-runtime": "containerd"}
"""The labels of every simulated node beside those of its pool."""
MAX_RUN_DURATION = "cloud.google.com/gke-max-run-duration-seconds"
"""Node label with the seconds that the node lives."""
PLACEMENT_GROUP = "cloud.google.com/gke-placement-group"
"""Label by which pods ask for nodes close together."""
TERMINATION_TIME = "node.gke.io/machine-termination-datetime"
"""Node annotation with the moment at which the node goes."""
FLEX_START_PROVISIONING = "flex-start"
"""Value of the provisioning label of flex-start nodes."""
_NODE_NAME_LENGTH = 63
_DIGEST_LENGTH = 14


@dataclass(frozen=True, slots=True)
class Place:
    """Where the cluster is."""

    cluster: str
    region: str
    zones: tuple[str, ...]

    @classmethod
    def of(cls, cluster: str, location: str) -> Place:
        """From a GKE location; GKE puts the nodes of a regional cluster in three of the region's zones."""
        if re.fullmatch(r"[a-z]+-[a-z]+[0-9]+-[a-z]", location):
            return cls(cluster, location.rpartition("-")[0], (location,))
        zones = zones_of(location)[:DEFAULT_ZONES]
        return cls(cluster, location, zones or tuple(f"{location}-{letter}" for letter in "abc"))


@dataclass(frozen=True, slots=True)
class NodeTemplate:
    """A node to create."""

    name: str
    machine: MachineType
    labels: Mapping[str, str]
    taints: tuple[Mapping[str, str], ...]
    annotations: Mapping[str, str] = field(default_factory=dict)
    disk_bytes: int = BOOT_DISK_BYTES
    pods: int = PODS_PER_NODE
    local_ssds: int = 0

    @property
    def capacity(self) -> dict[str, int]:
        """What the node reports: milli-CPUs, bytes, pieces."""
        return self.machine.capacity_with(self.disk_bytes, self.pods, self.local_ssds)

    @property
    def allocatable(self) -> dict[str, int]:
        """The resources that pods may ask for."""
        return self.machine.allocatable_with(self.disk_bytes, self.pods, self.local_ssds)

    def manifest(self) -> dict[str, Any]:
        """The Node, with its capacity already in the status, as a kubelet registers itself."""
        return {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": self.name, "labels": dict(self.labels), "annotations": dict(self.annotations)},
            "spec": {"taints": [dict(taint) for taint in self.taints]},
            "status": {"capacity": _render(self.capacity), "allocatable": _render(self.allocatable)},
        }


def _render(amounts: Mapping[str, int]) -> dict[str, str]:
    return {name: f"{amount}m" if name == "cpu" else str(amount) for name, amount in amounts.items()}


def numbered_name(head: str, digest: str) -> str:
    """A node's name like GKE's, of at most 63 characters: `head`, then eight and four characters of the digest."""
    return f"{head[: _NODE_NAME_LENGTH - _DIGEST_LENGTH].rstrip('-')}-{digest[:8]}-{digest[8:12]}"
