"""The labels and taints of a node pool's nodes: its own, and those that GKE sets.

Sources: see `labels`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from kueue_admission.kernel.unknown import UNKNOWN, NotKnownError, Unknown, is_known
from kueue_fleet.gke.labels import (
    ACCELERATOR,
    ACCELERATOR_COUNT,
    ARCHITECTURE,
    ARM_TAINT,
    BOOT_DISK,
    DRIVER_VERSION,
    FLEX_START,
    GPU_TAINT,
    INSTANCE_TYPE,
    MACHINE_FAMILY,
    NETWORK_PROFILE,
    NODE_POOL,
    PROVISIONING,
    QUEUED_TAINT,
    REGION,
    SHARING_LABELS,
    SPOT,
    TPU_ACCELERATOR,
    TPU_TAINT,
    TPU_TOPOLOGY,
    ZONE,
    NodeTaint,
)
from kueue_fleet.gke.pool import Pool

_DRIVERS: Final[Mapping[str, str]] = {"DEFAULT": "default", "LATEST": "latest"}
"""Nodes whose drivers GKE does not install have no such label."""


def _accelerator(pool: Pool, *, tpu: bool) -> str | None:
    is_tpu = pool.machine is not None and pool.machine.chips > 0
    return pool.accelerator if is_tpu == tpu else None


def _count(pool: Pool) -> str | None:
    count = pool.machine.accelerators if pool.machine else pool.gpus_per_node
    return str(count) if count else None


def _driver(pool: Pool) -> str | None:
    return _DRIVERS.get(pool.driver_version) if _accelerator(pool, tpu=False) else None


_LABELS: Final[Mapping[str, Callable[[Pool], str | None]]] = {
    "kubernetes.io/os": lambda pool: "linux",
    ARCHITECTURE: lambda pool: pool.machine.arch if pool.machine else "amd64",
    "cloud.google.com/gke-os-distribution": lambda pool: "cos",
    NODE_POOL: lambda pool: pool.name,
    INSTANCE_TYPE: lambda pool: pool.machine_type,
    MACHINE_FAMILY: lambda pool: pool.machine_type.partition("-")[0],
    PROVISIONING: lambda pool: "spot" if pool.spot else "standard",
    BOOT_DISK: lambda pool: pool.boot_disk,
    REGION: lambda pool: pool.region,
    ZONE: lambda pool: pool.zones[0] if len(pool.zones) == 1 else None,
    TPU_ACCELERATOR: lambda pool: _accelerator(pool, tpu=True),
    TPU_TOPOLOGY: lambda pool: (pool.slice_topology or "") if _accelerator(pool, tpu=True) else None,
    ACCELERATOR: lambda pool: _accelerator(pool, tpu=False),
    ACCELERATOR_COUNT: _count,
    DRIVER_VERSION: _driver,
    NETWORK_PROFILE: lambda pool: pool.network_profile,
    SPOT: lambda pool: "true" if pool.spot else None,
    FLEX_START: lambda pool: "true" if pool.flex_start else None,
}
"""The labels that GKE sets on all nodes of a pool; None: there is no such label."""


def node_labels(pool: Pool) -> dict[str, str | Unknown]:
    """Every label that all nodes of a pool carry, the zone only where there is one.

    `UNKNOWN` is the value of a label that may be there, with a value that is not known. Raises
    NotKnownError where not even the keys of the pool's own labels are known.
    """
    labels = dict(pool.labels)
    for key, read in _LABELS.items():
        try:
            value: str | Unknown | None = read(pool)
        except NotKnownError:
            value = UNKNOWN
        if value is not None:
            labels[key] = value
    if "gpus" in pool.unknown:
        return {**labels, **dict.fromkeys(SHARING_LABELS, UNKNOWN)}
    return {**labels, **pool.sharing.labels}


def known_labels(pool: Pool) -> dict[str, str]:
    """The labels of which key and value are known. Raises NotKnownError as `node_labels` does."""
    return {key: value for key, value in node_labels(pool).items() if is_known(value)}


def node_taints(pool: Pool) -> tuple[NodeTaint, ...]:
    """The pool's own taints and those that GKE adds; its own come first, and replace GKE's of the same key."""
    machine, gpus = pool.machine, pool.machine.gpus if pool.machine else len(pool.gpus)
    taint_presence = {
        GPU_TAINT: gpus > 0,
        TPU_TAINT: machine is not None and machine.chips > 0,
        QUEUED_TAINT: pool.queued,
        ARM_TAINT: machine is not None and machine.arch == "arm64",
    }
    taints_by_key = {(taint.key, taint.effect): taint for taint, is_there in taint_presence.items() if is_there}
    for own in pool.taints:
        taints_by_key.pop((own.key, own.effect), None)
    return (*pool.taints, *taints_by_key.values())
