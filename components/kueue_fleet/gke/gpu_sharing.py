"""One GPU for several containers, and GPUs in parts: time-sharing, MPS and partitions (MIG), alone or on each other.

A node has one device `nvidia.com/gpu` for each share: its GPUs, times the partitions of each, times the containers on
each. The partitions are in `gpu_partitions.csv`. Whether DWS gives nodes with shared GPUs is not known: no page of
Google's excludes it.

Sources: https://cloud.google.com/kubernetes-engine/docs/concepts/timesharing-gpus (labels, what a container may
request, what Autopilot refuses, partitions that are shared); GKE's own cluster-autoscaler of 2026,
cloudprovider/gke/machinetypes/gpu.go (devices of a node, 2 to 48 containers, defaults of auto-provisioning).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, NamedTuple

from kueue_admission.kernel.if_known import if_known
from kueue_admission.kernel.unknown import NotKnownError
from kueue_fleet.gke.csv_tables import read_table
from kueue_fleet.gke.labels import (
    ACCELERATOR_RESOURCES,
    GPU_PARTITION_SIZE,
    GPU_SHARING_STRATEGY,
    MAX_SHARED_CLIENTS,
    accelerator_of,
)
from kueue_fleet.gke.machines import gpus

STRATEGIES: Final = {"TIME_SHARING": "time-sharing", "MPS": "mps"}
"""Strategies of GKE's API, and what they are called in the node label."""
PROPERTIES: Final[Mapping[str, str]] = {
    GPU_PARTITION_SIZE: "gpuPartitionSize",
    GPU_SHARING_STRATEGY: "gpuSharingConfig.gpuSharingStrategy",
    MAX_SHARED_CLIENTS: "gpuSharingConfig.maxSharedClientsPerGpu",
}
"""The property of a pool's GPUs that each node label shows."""
CLIENTS: Final = range(2, 49)
"""Containers that may share a GPU, or a partition of one."""
_DEFAULT_CLIENTS: Final = 2
_DEFAULT_STRATEGY: Final = "TIME_SHARING"


class SharingFault(NamedTuple):
    """What GKE does not take."""

    label: str
    """The node label that says it; `PROPERTIES` has the property of a pool."""
    wrong: str
    fix: str


@dataclass(frozen=True, slots=True)
class GpuSharing:
    """How the GPUs of a node are shared; None for what is not asked for."""

    partition_size: str | None = None
    """Into parts of which size each GPU is divided."""
    strategy: str | None = None
    """TIME_SHARING or MPS."""
    clients: int | None = None
    """Containers that share a GPU, or a partition."""

    @classmethod
    def of_labels(cls, labels: Mapping[str, Any]) -> GpuSharing:
        """What nodes with these labels have, and what GKE makes for pods that select them, with its defaults."""
        strategy, clients = labels.get(GPU_SHARING_STRATEGY), labels.get(MAX_SHARED_CLIENTS)
        if clients is None:
            count = None if strategy is None else _DEFAULT_CLIENTS
        else:
            count = int(clients) if str(clients).isdecimal() else None
            strategy = strategy or STRATEGIES[_DEFAULT_STRATEGY]
        strategy_name = next((name for name, label in STRATEGIES.items() if label == strategy), strategy)
        return cls(labels.get(GPU_PARTITION_SIZE), strategy_name, count)

    @property
    def labels(self) -> Mapping[str, str]:
        """The node labels that GKE sets."""
        clients = None if self.clients is None else str(self.clients)
        words = (self.partition_size, STRATEGIES.get(self.strategy or "", self.strategy), clients)
        return {key: value for key, value in zip(PROPERTIES, words, strict=True) if value is not None}

    def shares(self, accelerator: str | None) -> int:
        """Devices that pods can request for each GPU.

        Raises NotKnownError for a partition that is not in the table.
        """
        count = 1 if self.partition_size is None else _partitions().get((accelerator or "", self.partition_size), 0)
        if not count:
            raise NotKnownError("partitions")
        return count * (self.clients or 1)

    def most_in_container(self, accelerator: str | None, gpus_of_node: int) -> int | None:
        """How many of the devices a container may request at most; None: any number.

        With more, GKE takes the pod and its node refuses it: UnexpectedAdmissionError. How CUDA uses several partitions
        that are not shared is not known here. Raises NotKnownError as `shares` does.

        Source: GoogleCloudPlatform/container-engine-accelerators@992db81 pkg/gpu/nvidia/gpusharing (ValidateRequest).
        """
        if self.strategy is None:
            return None
        devices = gpus_of_node * self.shares(accelerator) // (self.clients or 1)
        return self.clients if self.strategy == "MPS" and devices == 1 else 1

    def faults(self, accelerator: str | None, *, auto_provisioned: bool = False) -> Iterator[SharingFault]:
        """What GKE does not take for that kind of GPU; where it makes the nodes by itself, in the words of labels.

        Nothing about the partitions of a kind that is not in the catalogue.
        """
        words = STRATEGIES.values() if auto_provisioned else STRATEGIES.keys()
        if self.strategy is not None and self.strategy not in STRATEGIES:
            wrong = f"is {self.strategy}, which is not a strategy of GKE"
            yield SharingFault(GPU_SHARING_STRATEGY, wrong, f"use {' or '.join(words)}")
        if self.strategy is not None and self.clients not in CLIENTS:
            wrong = f"is {'not a number' if self.clients is None else self.clients}"
            least, most = CLIENTS[0], CLIENTS[-1]
            wrong += f", but between {least} and {most} containers share a GPU"
            yield SharingFault(MAX_SHARED_CLIENTS, wrong, f"write {least} to {most}")
        if self.partition_size is not None and accelerator in gpus():
            sizes = _sizes(accelerator, auto_provisioned=auto_provisioned)
            if not sizes:
                wrong = f"is {self.partition_size}, but GKE does not divide {accelerator}"
                yield SharingFault(GPU_PARTITION_SIZE, wrong, "remove it")
            elif self.partition_size not in sizes:
                wrong = f"is {self.partition_size}, of which GKE makes none of {accelerator}"
                yield SharingFault(GPU_PARTITION_SIZE, wrong, f"use one of {', '.join(sizes)}")


WHOLE: Final = GpuSharing()
"""GPUs as they are, for one container each."""


def accelerators_of_node(amounts: Mapping[str, int], labels: Mapping[str, Any]) -> int:
    """The whole GPUs, or TPU chips, of a node with these labels, from what it has of each resource."""
    shares = if_known(lambda: GpuSharing.of_labels(labels).shares(accelerator_of(labels))) or 1
    return sum(amounts.get(resource, 0) for resource in ACCELERATOR_RESOURCES) // shares


@cache
def _partitions() -> Mapping[tuple[str, str], int]:
    """How many partitions a GPU has, by kind and size."""
    return {(row["accelerator"], row["size"]): int(row["count"]) for row in read_table("gpu_partitions")}


def _sizes(accelerator: str, *, auto_provisioned: bool) -> list[str]:
    rows = [row for row in read_table("gpu_partitions") if row["accelerator"] == accelerator]
    return [row["size"] for row in rows if row["autoProvisioned"] == "yes" or not auto_provisioned]
