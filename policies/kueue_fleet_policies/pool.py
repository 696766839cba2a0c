"""A node pool as its nodes will be: labels, taints, how many, with how many GPUs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from kueue_fleet.gke.declared_pools import read_pool
from kueue_fleet.gke.labels import (
    ACCELERATOR,
    GPU_RESOURCE,
    INSTANCE_TYPE,
    MACHINE_FAMILY,
    NODE_POOL,
    SPOT,
    TOLERATED_BY_GKE,
    TPU_ACCELERATOR,
    TPU_RESOURCE,
)
from kueue_fleet.gke.machines import MachineType, machine_type, with_accelerator
from kueue_fleet.gke.pool_facts import PoolFacts
from kueue_fleet.gke.unknown import UNKNOWN, holds_unknown, is_known
from kueue_fleet.gke.zones import DEFAULT_ZONES
from kueue_fleet_policies.resource import Resource
from kueue_fleet_policies.values import at, entries, items, number, truth

_DECIDED: Final = frozenset({NODE_POOL, ACCELERATOR, TPU_ACCELERATOR, SPOT, MACHINE_FAMILY, INSTANCE_TYPE})
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
    def machine(self) -> MachineType | None:
        """Its machine with its GPUs; None if the type is not known here."""
        return machine_of(at(self.resource.props, "nodeConfig"))

    @property
    def gpus(self) -> int | None:
        """GPUs on each node; None if that cannot be told."""
        return gpus_of(at(self.resource.props, "nodeConfig"))

    @cached_property
    def max_nodes(self) -> int | None:
        """The most nodes that it can have; None if that cannot be told."""
        return max_nodes(self.resource, self.cluster)

    @cached_property
    def labels(self) -> Mapping[str, Any]:
        """Labels of its nodes that are certain; `UNKNOWN` as a value where only the key is."""
        config = at(self.resource.props, "nodeConfig")
        given = at(config, "labels")
        found: dict[str, Any] = dict(given) if isinstance(given, Mapping) else {}
        found[NODE_POOL] = self.name
        kind = at(config, "machineType")
        if kind is not None:
            found[INSTANCE_TYPE] = kind
            found[MACHINE_FAMILY] = kind.split("-")[0] if isinstance(kind, str) else UNKNOWN
        accelerator = at(config, "guestAccelerators.type")
        if accelerator is None and self.machine is not None:
            accelerator = self.machine.accelerator
        if accelerator is not None:
            tpu = self.machine is not None and self.machine.chips
            found[TPU_ACCELERATOR if tpu else ACCELERATOR] = accelerator
        spot = truth(at(config, "spot"))
        if spot is not None and spot is not False:
            found[SPOT] = "true" if spot is True else UNKNOWN
        return found

    @property
    def taints(self) -> Iterator[Mapping[str, Any]]:
        """Taints that a pod has to be told to tolerate; those that only ask for preference left out."""
        for taint in map(entries, items(at(self.resource.props, "nodeConfig.taints"))):
            if taint.get("effect") not in ("PREFER_NO_SCHEDULE", "PreferNoSchedule") and (
                taint.get("key") not in TOLERATED_BY_GKE
            ):
                yield taint

    def has_labels(self, wanted: Mapping[str, Any]) -> bool | None:
        """Whether its nodes have these labels; None if that cannot be told."""
        sure = True
        for key, value in wanted.items():
            if key in self.labels:
                own = self.labels[key]
                if not (is_known(own) and is_known(value)):
                    sure = False
                elif str(own) != str(value):
                    return False
            elif self._may_have(key):
                sure = False
            else:
                return False
        return True if sure else None

    def _may_have(self, key: str) -> bool:
        if key in (ACCELERATOR, TPU_ACCELERATOR) and self.machine is None:
            return True
        if at(self.resource.props, "nodeConfig.labels") is UNKNOWN:
            return True
        return key not in _DECIDED and _OWNED_BY_PLATFORM.match(key) is not None

    def capacity(self, resource: str) -> float | None:
        """The most of a Kubernetes resource that it can offer: CPUs, bytes, devices; None if that cannot be told."""
        if self.max_nodes is None:
            return None
        if self.max_nodes == 0:
            return 0.0
        if resource == GPU_RESOURCE:
            return None if self.gpus is None else float(self.gpus * self.max_nodes)
        if resource == TPU_RESOURCE:
            return None if self.machine is None else float(self.machine.chips * self.max_nodes)
        if self.machine is None or resource not in ("cpu", "memory"):
            return None
        amount = self.machine.allocatable[resource] * self.max_nodes
        return amount / 1000 if resource == "cpu" else float(amount)


def machine_of(config: Any) -> MachineType | None:
    """The machine of a `nodeConfig`, with the GPUs attached to it; None if it is not in the catalogue or not known."""
    kind = at(config, "machineType")
    machine = machine_type(kind) if isinstance(kind, str) else None
    accelerator, count = at(config, "guestAccelerators.type"), number(at(config, "guestAccelerators.count"))
    if machine is None or not isinstance(accelerator, str) or count is None or machine.gpus:
        return machine
    return with_accelerator(machine, accelerator, int(count))


def gpus_of(config: Any) -> int | None:
    """GPUs on each node of a `nodeConfig`; None if that cannot be told."""
    listed = at(config, "guestAccelerators")
    if listed is UNKNOWN:
        return None
    if listed and (count := number(at(config, "guestAccelerators.count"))) is not None:
        kind = str(at(config, "guestAccelerators.type"))
        return 0 if kind.startswith("ct") or ("tpu" in kind and "nvidia" not in kind) else int(count)
    kind = at(config, "machineType")
    if kind is None:
        return 0
    machine = machine_type(kind) if isinstance(kind, str) else None
    return None if machine is None else machine.gpus


def max_nodes(pool: Resource, cluster: Resource | None) -> int | None:
    """The most nodes a pool can have; None if that cannot be told."""
    if any(holds_unknown(pool.get(key)) for key in ("autoscaling", "nodeCount", "initialNodeCount")):
        return None
    total = number(pool.get("autoscaling.totalMaxNodeCount"))
    if total is not None:
        return int(total)
    each = next(
        (
            found
            for key in ("autoscaling.maxNodeCount", "nodeCount", "initialNodeCount")
            if (found := number(pool.get(key))) is not None
        ),
        None,
    )
    if each is None:
        return None
    zones = zone_count(pool, cluster)
    return 0 if each == 0 else None if zones is None else int(each) * zones


def zone_count(pool: Resource, cluster: Resource | None) -> int | None:
    """Zones that a pool has nodes in; None if that cannot be told."""
    own = pool.get("nodeLocations")
    shared = cluster.get("nodeLocations") if cluster else None
    location = pool.get("location")
    if location is None and cluster is not None:
        location = cluster.get("location")
    if own is UNKNOWN or shared is UNKNOWN or not isinstance(location, str):
        return None
    zonal = _ZONE.search(location) is not None
    if own:
        return len(items(own))
    if shared:
        # Of a zonal cluster, these are the zones beside its own.
        return len(items(shared)) + (1 if zonal else 0)
    return 1 if zonal else DEFAULT_ZONES


def pool_facts(pool: Resource, cluster: Resource | None = None) -> PoolFacts:
    """The pool as the rules of GKE see it; without its cluster, what depends on that is not known."""
    location = pool.get("location")
    if location is None and cluster is not None:
        location = cluster.get("location")
    channel = cluster.get("releaseChannel.channel") if cluster is not None else UNKNOWN
    return read_pool(
        pool.props,
        region=_ZONE.sub("", location) if isinstance(location, str) else None,
        zones=None if cluster is None else [str(zone) for zone in items(cluster.get("nodeLocations"))],
        zone_count=None if cluster is None else zone_count(pool, cluster),
        release_channel=channel not in (None, "UNSPECIFIED") if is_known(channel) else None,
        is_known=is_known,
    )
