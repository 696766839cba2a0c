"""A node pool of a Standard cluster, read from what the NodePool resource says to Google, and the nodes it has.

`NodePool`, with templates of its nodes, and the nodes that are there whether any pod needs them or not. What GKE
refuses is in `node_pool_rules`; `node_planning` asks a pool for nodes as pods need them. Not modelled: Windows,
sandboxes; GPUs are there even where no driver is installed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from kueue_admission.kernel.manifest import Manifest
from kueue_admission.kernel.names import HOSTNAME_LABEL
from kueue_fleet.gke.block_topology import topology_labels
from kueue_fleet.gke.labels import NODE_POOL, RESERVATION_NAME, RESIZE_REQUEST, ZONE
from kueue_fleet.gke.machines import MachineType
from kueue_fleet.gke.pool import Pool, read_pool
from kueue_fleet.gke.pool_nodes import known_labels, node_taints
from kueue_fleet.gke.tpu_slices import WORKLOAD_POLICY_TPU, topology_of_nodes
from kueue_rehearsal.cloud.node_templates import (
    AUTOSCALED,
    FINGERPRINT,
    SIMULATED_LABELS,
    NodeTemplate,
    Place,
    numbered_name,
)


@dataclass(frozen=True, slots=True)
class NodePool:
    """A node pool as GKE has it."""

    view: Pool
    machine: MachineType
    body: Manifest = field(default_factory=dict, repr=False, compare=False)
    """The inputs it was read from."""
    ends_at: float | None = None
    """When its reservation ends and Google takes the nodes away, in seconds since the epoch."""

    @property
    def name(self) -> str:
        """Its name."""
        return self.view.name

    def is_over(self, now: float) -> bool:
        """Whether its reservation has ended."""
        return self.ends_at is not None and self.ends_at <= now

    @property
    def on_demand_of_pods(self) -> bool:
        """Whether nodes come for pods that wait; those of queued pools come for ProvisioningRequests only."""
        return self.view.autoscaling and not self.view.queued

    @property
    def fingerprint(self) -> str:
        """The same for two pools whose nodes are the same."""
        view = self.view
        parts = (known_labels(view.but(zones=())), node_taints(view), view.reservation, view.disk_gb)
        text = json.dumps([*map(str, parts), str(view.pods_per_node)])
        return hashlib.sha256(text.encode()).hexdigest()[:8]

    def template(
        self,
        place: Place,
        zone: str,
        key: str,
        *,
        labels: Mapping[str, str] | None = None,
        annotations: Mapping[str, str] | None = None,
    ) -> NodeTemplate:
        """The pool's node for `key`, the same for the same key, in `zone`; `labels` go beyond the pool's."""
        digest = hashlib.sha256(f"{place.cluster}/{self.name}/{self.fingerprint}/{key}".encode()).hexdigest()
        all_labels = known_labels(self.view.but(region=place.region, zones=(zone,))) | SIMULATED_LABELS
        if self.view.autoscaling:
            all_labels[AUTOSCALED] = "true"
        if self.view.reservation is not None:
            all_labels[RESERVATION_NAME] = self.view.reservation
        all_labels |= topology_labels(self.machine.name, self.name, _number(key, digest))
        all_labels |= labels or {}
        name = numbered_name(f"gke-{place.cluster}-{self.name}", digest)
        all_labels[HOSTNAME_LABEL] = name
        return NodeTemplate(
            name=name,
            machine=self.machine,
            labels=all_labels,
            taints=tuple(taint._asdict() for taint in node_taints(self.view)),
            annotations={FINGERPRINT: self.fingerprint, **(annotations or {})},
            disk_bytes=self.view.disk_gb * 1000**3,
            pods=self.view.pods_per_node,
            local_ssds=self.view.ephemeral_local_ssds or self.machine.local_ssds,
        )

    def standing_nodes(self, place: Place) -> tuple[NodeTemplate, ...]:
        """The nodes that are there whether any pod needs them or not, spread over the zones."""
        return self._numbered(place, self.view.min_nodes)

    def first_nodes(self, place: Place) -> tuple[NodeTemplate, ...]:
        """The nodes that an autoscaled pool begins with."""
        return self._numbered(
            place, max((self.view.initial_node_count or 0) * len(self.view.zones), self.view.min_nodes)
        )

    def _numbered(self, place: Place, count: int) -> tuple[NodeTemplate, ...]:
        return tuple(
            self.template(place, self.view.zones[number % len(self.view.zones)], f"standing/{number}")
            for number in range(0 if self.view.queued else count)
        )

    def zone_for_next(self, nodes: Iterable[Manifest]) -> str:
        """The zone with the fewest nodes of the pool; `nodes` are all of the cluster."""
        count = dict.fromkeys(self.view.zones, 0)
        for labels in (node["metadata"].get("labels") or {} for node in nodes):
            if labels.get(NODE_POOL) == self.name and labels.get(ZONE) in count:
                count[labels[ZONE]] += 1
        return min(self.view.zones, key=lambda zone: (count[zone], zone))


def _number(key: str, digest: str) -> int:
    """Of a standing node its own; others stand wherever there is a place."""
    kind, _, number = key.partition("/")
    return int(number) if kind == "standing" and number.isdecimal() else int(digest[:6], 16) % 64


def parse_node_pool(name: str, body: Manifest, cluster_zones: Sequence[str]) -> NodePool:
    """The pool that the inputs describe; `node_pool_rules.refusals` has found nothing wrong with them.

    Raises KeyError for a machine type that is not in the catalogue.
    """
    view = read_pool(
        {**body, "name": name, "placementPolicy": _placement(body)},
        region="",
        zones=cluster_zones,
        zone_count=len(cluster_zones),
        release_channel=True,
    )
    if view.machine is None:
        raise KeyError(view.machine_type)
    return NodePool(view, view.machine, dict(body))


def _placement(body: Manifest) -> Manifest | None:
    """Of a slice whose workload policy says the topology, that of as many nodes as the pool has."""
    placement = body.get("placementPolicy")
    machine = str((body.get("nodeConfig") or {}).get("machineType"))
    if not placement or not placement.get("policyName") or not machine.startswith(WORKLOAD_POLICY_TPU):
        return placement
    sizes = read_pool({**body, "placementPolicy": None}, zone_count=1)
    return {**placement, "policyName": None, "tpuTopology": topology_of_nodes(machine, sizes.max_nodes or 1)}


def is_bound(node: Manifest) -> bool:
    """Whether a node belongs to a ProvisioningRequest."""
    return RESIZE_REQUEST in (node["metadata"].get("labels") or {})


def pool_nodes(nodes: Mapping[str, Manifest], pool: str) -> dict[str, Manifest]:
    """The nodes of a pool."""
    return {name: node for name, node in nodes.items() if (node["metadata"].get("labels") or {}).get(NODE_POOL) == pool}
