"""The machine catalogue: what a machine type has, and what of it GKE leaves to pods.

Data in `machines.yaml`, with its sources. The reservations are those of GKE Standard and Autopilot nodes with a boot
disk of 100 GB; daemons such as the metrics agent take a little more on a real node.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

GPU_RESOURCE = "nvidia.com/gpu"
BOOT_DISK_BYTES = 100 * 1000**3
PODS_PER_NODE = 110

_MIB = 1024**2
_GIB = 1024**3


@dataclass(frozen=True, slots=True)
class Machine:
    """One machine type, with the GPUs attached to it."""

    name: str
    family: str
    cpus: int
    memory_gib: int
    accelerator: str | None = None
    """The value of the node label cloud.google.com/gke-accelerator."""
    gpus: int = 0
    local_ssds: int = 0
    arch: str = "amd64"
    attached: bool = False

    @property
    def capacity(self) -> dict[str, int]:
        """What the node reports: milli-CPUs, bytes, pieces."""
        amounts = {
            "cpu": self.cpus * 1000,
            "memory": self.memory_gib * _GIB,
            "ephemeral-storage": BOOT_DISK_BYTES,
            "pods": PODS_PER_NODE,
        }
        return amounts | ({GPU_RESOURCE: self.gpus} if self.gpus else {})

    @property
    def allocatable(self) -> dict[str, int]:
        """What pods may ask for: capacity less GKE's reservations and the eviction thresholds."""
        return self.capacity | {
            "cpu": self.cpus * 1000 - reserved_cpu_milli(self.cpus),
            "memory": self.memory_gib * _GIB - reserved_memory_bytes(self.memory_gib * _GIB),
            "ephemeral-storage": BOOT_DISK_BYTES - reserved_disk_bytes(BOOT_DISK_BYTES),
        }


def reserved_cpu_milli(cpus: int) -> int:
    """6 % of the first core, 1 % of the second, 0.5 % of the next two, 0.25 % of all others; in milli-CPUs.

    Source: https://cloud.google.com/kubernetes-engine/docs/concepts/plan-node-sizes
    """
    micro = 60_000 * min(cpus, 1) + 10_000 * max(0, min(cpus - 1, 1))
    micro += 5_000 * max(0, min(cpus - 2, 2)) + 2_500 * max(0, cpus - 4)
    return -(-micro // 1000)


def reserved_memory_bytes(memory: int) -> int:
    """25 % of the first 4 GiB, 20 % of the next 4, 10 % of the next 8, 6 % of the next 112, 2 % of the rest, and 100
    MiB.

    Machines with less than 1 GiB lose 255 MiB instead of the shares. The 100 MiB are the eviction threshold.
    Source: https://cloud.google.com/kubernetes-engine/docs/concepts/plan-node-sizes
    """
    if memory < _GIB:
        return 355 * _MIB
    reserved, rest = 0, memory
    for size_gib, percent in ((4, 25), (4, 20), (8, 10), (112, 6)):
        part = min(rest, size_gib * _GIB)
        reserved += part * percent // 100
        rest -= part
    return reserved + rest * 2 // 100 + 100 * _MIB


def reserved_disk_bytes(disk: int) -> int:
    """The least of half the disk, 6 GiB + 35 % of it, and 100 GiB; and 10 % of it as the eviction threshold.

    Source: https://cloud.google.com/kubernetes-engine/docs/concepts/plan-node-sizes
    """
    return min(disk // 2, 6 * _GIB + disk * 35 // 100, 100 * _GIB) + disk // 10


@cache
def machine_catalogue() -> tuple[Machine, ...]:
    """All machine types, the smallest first: by GPUs, then CPUs, then memory."""
    data: dict[str, list[dict[str, Any]]] = yaml.safe_load(Path(__file__).with_name("machines.yaml").read_text())
    machines = [Machine(**entry) for entry in data["machines"]]
    return tuple(sorted(machines, key=lambda machine: (machine.gpus, machine.cpus, machine.memory_gib, machine.name)))


def accelerators() -> frozenset[str]:
    """Every value of cloud.google.com/gke-accelerator in the catalogue."""
    return frozenset(machine.accelerator for machine in machine_catalogue() if machine.accelerator)
