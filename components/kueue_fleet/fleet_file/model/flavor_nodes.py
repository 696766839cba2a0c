"""Flavors and the node pools behind them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from kueue_admission.api import ResourceFlavorSpec, Taint, Toleration
from kueue_admission.kernel.if_known import if_known
from kueue_fleet.fleet_file.model.entries import FlavorEntry
from kueue_fleet.fleet_file.model.resolved_pools import ResolvedNodePool
from kueue_fleet.gke.gpu_sharing import GpuSharing
from kueue_fleet.gke.labels import (
    ACCELERATOR,
    NODE_POOL,
    SHARING_LABELS,
    TPU_ACCELERATOR,
    TPU_TOPOLOGY,
    ZONE,
    accelerator_of,
)

_OF_HARDWARE: Final = (ACCELERATOR, TPU_ACCELERATOR, TPU_TOPOLOGY, *SHARING_LABELS)


def derived_flavor(flavor: FlavorEntry, pool: ResolvedNodePool) -> ResourceFlavorSpec:
    """What `flavor` is with the nodes of `pool`: their labels and taints, and tolerations for each of these.

    Kueue adds labels and tolerations to the pods that it admits, so jobs name neither.
    """
    labels = {NODE_POOL: pool.name}
    labels |= {key: pool.labels[key] for key in _OF_HARDWARE if key in pool.labels}
    hard = tuple(taint for taint in pool.taints if taint.effect != "PreferNoSchedule")
    added_tolerations = tuple(toleration_of(taint) for taint in hard)
    return ResourceFlavorSpec.model_construct(
        node_labels=labels,
        node_taints=hard,
        tolerations=(*added_tolerations, *(one for one in flavor.tolerations if one not in added_tolerations)),
        topology_name=flavor.topology_name,
    )


def toleration_of(taint: Taint) -> Toleration:
    """The toleration for exactly that taint."""
    return Toleration.model_construct(key=taint.key, operator="Equal", value=taint.value, effect=taint.effect)


def shares_of(flavor: FlavorEntry, pools: Sequence[ResolvedNodePool]) -> int:
    """Devices that pods can request for each GPU of the flavor's nodes, the fewest of its pools; 1: whole GPUs.

    Without pools, those of the nodes that GKE makes for its labels; 1 where that is not known.
    """
    if pools:
        return min(pool.shares_per_gpu for pool in pools)
    labels = flavor.node_labels
    return if_known(lambda: GpuSharing.of_labels(labels).shares(accelerator_of(labels))) or 1


def telling_label(labels: Mapping[str, str], others: Iterable[Mapping[str, str]]) -> str:
    """`KEY: VALUE` of node labels that none of the others have, the kind of GPU if that tells; empty: none does."""
    rest = [*others]
    keys = sorted(labels, key=lambda key: key != ACCELERATOR)
    return next((f"{key}: {labels[key]}" for key in keys if all(labels[key] != one.get(key) for one in rest)), "")


def leads_to(flavor: ResourceFlavorSpec, pool: ResolvedNodePool) -> bool:
    """Whether pods with the flavor's labels in their node selector can run on the pool's nodes.

    A label that differs from node to node, such as the zone of a pool in three zones, does not rule the pool out.
    """
    from_gke = {ZONE: pool.zones}
    return all(
        pool.labels.get(key) == value or (key not in pool.labels and value in from_gke.get(key, ()))
        for key, value in flavor.node_labels.items()
    )
