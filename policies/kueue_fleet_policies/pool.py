"""A node pool as its nodes will be: labels, taints, how many, with how many GPUs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from kueue_admission.kernel.if_known import if_known
from kueue_admission.kernel.unknown import UNKNOWN, NotKnownError, is_known
from kueue_fleet.gke import pool as gke
from kueue_fleet.gke.labels import (
    ACCELERATOR,
    GPU_RESOURCE,
    INSTANCE_TYPE,
    MACHINE_FAMILY,
    NODE_POOL,
    SHARING_LABELS,
    SPOT,
    TOLERATED_BY_GKE,
    TPU_ACCELERATOR,
    TPU_RESOURCE,
    NodeTaint,
)
from kueue_fleet.gke.pool_nodes import node_labels
from kueue_fleet.gke.zones import DEFAULT_ZONES
from kueue_fleet_policies.resource import Resource
from kueue_fleet_policies.values import items

_DECIDED: Final = frozenset(
    {NODE_POOL, ACCELERATOR, TPU_ACCELERATOR, SPOT, MACHINE_FAMILY, INSTANCE_TYPE, *SHARING_LABELS}
)
"""Labels that GKE sets and whose value on a pool is certain, also that there is none."""
_OWNED_BY_PLATFORM: Final = re.compile(r"^([a-z0-9-]+\.)*(kubernetes\.io|k8s\.io|google\.com|gke\.io)/")
_ZONE: Final = re.compile(r"-[a-z]$")


@dataclass(frozen=True)
class Pool:
    """A node pool on its cluster."""

    resource: Resource
    cluster: Resource

    @property
    def name(self) -> Any:
        """Name in Google Cloud, or `UNKNOWN`."""
        return self.resource.get("name")

    @property
    def title(self) -> str:
        """What to call it in a message."""
        return self.name if isinstance(self.name, str) else self.resource.name

    @property
    def queued(self) -> bool:
        """Whether its nodes come only for ProvisioningRequests."""
        return self.resource.is_on("queuedProvisioning.enabled")

    @cached_property
    def view(self) -> gke.Pool:
        """What GKE is asked for."""
        return view_of(self.resource, self.cluster)

    @property
    def accelerator(self) -> str | None:
        """Kind of its GPUs or TPUs; None without any, and where that cannot be told."""
        return if_known(lambda: self.view.accelerator)

    @property
    def max_nodes(self) -> int | None:
        """The most nodes that it can have; None if that cannot be told."""
        return max_nodes(self.view)

    @cached_property
    def labels(self) -> Mapping[str, Any] | None:
        """Labels of its nodes; `UNKNOWN` as a value where it is not certain; None where not even the keys are known."""
        return if_known(lambda: node_labels(self.view))

    @property
    def taints(self) -> Iterator[NodeTaint]:
        """Taints that a pod has to be told to tolerate; those that only ask for preference left out."""
        for taint in if_known(lambda: self.view.taints) or ():
            if taint.effect != "PreferNoSchedule" and taint.key not in TOLERATED_BY_GKE:
                yield taint

    def has_labels(self, wanted: Mapping[str, Any]) -> bool | None:
        """Whether its nodes have these labels; None if that cannot be told."""
        if self.labels is None:
            return None if wanted else True
        sure = True
        for key, value in wanted.items():
            if key in self.labels:
                own = self.labels[key]
                if not (is_known(own) and is_known(value)):
                    sure = False
                elif str(own) != str(value):
                    return False
            elif key not in _DECIDED and _OWNED_BY_PLATFORM.match(key):
                sure = False
            else:
                return False
        return True if sure else None

    def capacity(self, resource: str) -> float | None:
        """The most of a Kubernetes resource that it can offer: CPUs, bytes, devices; None if that cannot be told."""
        if not self.max_nodes:
            return None if self.max_nodes is None else 0.0
        try:
            if resource == GPU_RESOURCE:
                return float(self.view.gpus_per_node * self.view.shares_per_gpu * self.max_nodes)
            machine = self.view.machine
        except NotKnownError:
            return None
        if machine is None or resource not in ("cpu", "memory", TPU_RESOURCE):
            return None
        if resource == TPU_RESOURCE:
            return float(machine.chips * self.max_nodes)
        amount = machine.allocatable[resource] * self.max_nodes
        return amount / 1000 if resource == "cpu" else float(amount)


def max_nodes(view: gke.Pool) -> int | None:
    """The most nodes a pool can have; None if that cannot be told."""
    try:
        return view.max_nodes if view.autoscaling or view.fixed is not None else None
    except NotKnownError:
        return None


def gpus_of(view: gke.Pool) -> int | None:
    """GPUs on each node; None if that cannot be told."""
    return if_known(lambda: view.gpus_per_node)


def _zone_count(location: Any, shared: Any) -> Any:
    """Zones that a pool has nodes in which names none."""
    if shared is UNKNOWN or not isinstance(location, str):
        return UNKNOWN
    zonal = _ZONE.search(location) is not None
    if shared:
        # Of a zonal cluster, these are the zones beside its own.
        return len(items(shared)) + zonal
    return 1 if zonal else DEFAULT_ZONES


def view_of(pool: Resource, cluster: Resource | None = None) -> gke.Pool:
    """The pool as GKE is asked for it; without its cluster, what depends on that is not known."""
    location = pool.get("location")
    if location is None and cluster is not None:
        location = cluster.get("location")
    of_cluster: dict[str, Any] = {"region": _ZONE.sub("", location) if isinstance(location, str) else UNKNOWN}
    if cluster is not None:
        shared, channel = cluster.get("nodeLocations"), cluster.get("releaseChannel.channel")
        of_cluster["zones"] = shared if shared is UNKNOWN else list(map(str, items(shared)))
        of_cluster["zone_count"] = _zone_count(location, shared)
        of_cluster["release_channel"] = channel if channel is UNKNOWN else channel not in (None, "UNSPECIFIED")
    return gke.read_pool(pool.props, **of_cluster)
