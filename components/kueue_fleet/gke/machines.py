"""The machine catalogue: what a machine type has, and what of it GKE leaves to pods.

In: the name of a machine type, and the accelerators attached to it. Out: `MachineType`. A type that is not listed can
be used; what depends on its size is then not checked. Daemons such as the metrics agent take a little more than the
reservations here on a real node.

Sources, read 2026-11:
    GPUs: https://cloud.google.com/compute/docs/accelerator-optimized-machines, https://cloud.google.com/compute/docs/gpus
    others: https://cloud.google.com/compute/docs/general-purpose-machines
    GPU labels: https://cloud.google.com/kubernetes-engine/docs/concepts/gpus (the node label
    cloud.google.com/gke-accelerator)
    reservations: https://cloud.google.com/kubernetes-engine/docs/concepts/plan-node-sizes
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Final

GPU_RESOURCE: Final = "nvidia.com/gpu"
"""Resource name of NVIDIA's GPUs."""
BOOT_DISK_GB: Final = 100
"""GKE's default boot disk, in GB."""
BOOT_DISK_BYTES: Final = BOOT_DISK_GB * 1000**3
"""GKE's default boot disk, in bytes."""
PODS_PER_NODE: Final = 110
"""Pods that GKE puts on a node at most, by default."""

_MIB: Final = 1024**2
_GIB: Final = 1024**3


@dataclass(frozen=True, slots=True)
class MachineType:
    """One machine type, with the GPUs attached to it."""

    name: str
    family: str
    cpus: int
    memory_gib: float
    accelerator: str | None = None
    """The value of the node label cloud.google.com/gke-accelerator."""
    gpus: int = 0
    local_ssds: int = 0
    """Local SSDs that come with the machine."""
    arch: str = "amd64"
    attached: bool = False
    """Whether GPUs are attached to the machine (N1) instead of being part of its type."""

    @property
    def memory_bytes(self) -> int:
        """Memory of the machine, in bytes."""
        return int(self.memory_gib * _GIB)

    @property
    def shared_core(self) -> bool:
        """Whether its CPUs are shared with other machines."""
        return self.name in _SHARED_CORE

    @property
    def capacity(self) -> dict[str, int]:
        """What the node reports, with a default boot disk: milli-CPUs, bytes, pieces."""
        return self.capacity_with(BOOT_DISK_BYTES, PODS_PER_NODE)

    @property
    def allocatable(self) -> dict[str, int]:
        """What pods may ask for, with a default boot disk: milli-CPUs, bytes, pieces."""
        return self.allocatable_with(BOOT_DISK_BYTES, PODS_PER_NODE)

    def capacity_with(self, disk_bytes: int, pods: int) -> dict[str, int]:
        """What the node reports with a boot disk of `disk_bytes` and room for `pods`: milli-CPUs, bytes, pieces."""
        amounts = {
            "cpu": self.cpus * 1000,
            "memory": self.memory_bytes,
            "ephemeral-storage": disk_bytes,
            "pods": pods,
        }
        return amounts | ({GPU_RESOURCE: self.gpus} if self.gpus else {})

    def allocatable_with(self, disk_bytes: int, pods: int) -> dict[str, int]:
        """What pods may ask for: `capacity_with` less GKE's reservations and the eviction thresholds."""
        reserved = SHARED_CORE_RESERVED_MILLI if self.shared_core else reserved_cpu_milli(self.cpus)
        return self.capacity_with(disk_bytes, pods) | {
            "cpu": self.cpus * 1000 - reserved,
            "memory": self.memory_bytes - reserved_memory_bytes(self.memory_bytes),
            "ephemeral-storage": disk_bytes - reserved_disk_bytes(disk_bytes),
        }


SHARED_CORE_RESERVED_MILLI: Final = 1060
"""What GKE reserves of the CPU of a shared-core E2 machine, in milli-CPUs (plan-node-sizes, CPU reservations)."""
_SHARED_CORE: Final = frozenset({"e2-micro", "e2-small", "e2-medium"})


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


def _sizes(family: str, kind: str, gib_per_cpu: float, *cpus: int) -> tuple[MachineType, ...]:
    return tuple(MachineType(f"{family}-{kind}-{count}", family, count, count * gib_per_cpu) for count in cpus)


_GENERAL: Final = (
    MachineType("e2-small", "e2", 2, 2),
    MachineType("e2-medium", "e2", 2, 4),
    *_sizes("e2", "standard", 4, 2, 4, 8, 16, 32),
    *_sizes("e2", "highmem", 8, 2, 4, 8, 16),
    *_sizes("n1", "standard", 3.75, 1, 2, 4, 8, 16, 32, 64, 96),
    *_sizes("n1", "highmem", 6.5, 2, 4, 8, 16, 32, 64, 96),
    *_sizes("n2", "standard", 4, 2, 4, 8, 16, 32, 48, 64, 80, 96, 128),
    *_sizes("n2", "highmem", 8, 2, 4, 8, 16, 32, 48, 64, 80, 96),
    MachineType("n2-highmem-128", "n2", 128, 864),
)
"""Machine types without GPUs of their own."""

_ACCELERATED: Final = (
    MachineType("g2-standard-4", "g2", 4, 16, "nvidia-l4", 1),
    MachineType("g2-standard-8", "g2", 8, 32, "nvidia-l4", 1),
    MachineType("g2-standard-12", "g2", 12, 48, "nvidia-l4", 1),
    MachineType("g2-standard-16", "g2", 16, 64, "nvidia-l4", 1),
    MachineType("g2-standard-24", "g2", 24, 96, "nvidia-l4", 2),
    MachineType("g2-standard-32", "g2", 32, 128, "nvidia-l4", 1),
    MachineType("g2-standard-48", "g2", 48, 192, "nvidia-l4", 4),
    MachineType("g2-standard-96", "g2", 96, 384, "nvidia-l4", 8),
    MachineType("g4-standard-48", "g4", 48, 180, "nvidia-rtx-pro-6000", 1),
    MachineType("g4-standard-96", "g4", 96, 360, "nvidia-rtx-pro-6000", 2),
    MachineType("g4-standard-192", "g4", 192, 720, "nvidia-rtx-pro-6000", 4),
    MachineType("g4-standard-384", "g4", 384, 1440, "nvidia-rtx-pro-6000", 8),
    MachineType("a2-highgpu-1g", "a2", 12, 85, "nvidia-tesla-a100", 1),
    MachineType("a2-highgpu-2g", "a2", 24, 170, "nvidia-tesla-a100", 2),
    MachineType("a2-highgpu-4g", "a2", 48, 340, "nvidia-tesla-a100", 4),
    MachineType("a2-highgpu-8g", "a2", 96, 680, "nvidia-tesla-a100", 8),
    MachineType("a2-megagpu-16g", "a2", 96, 1360, "nvidia-tesla-a100", 16),
    MachineType("a2-ultragpu-1g", "a2", 12, 170, "nvidia-a100-80gb", 1, local_ssds=1),
    MachineType("a2-ultragpu-2g", "a2", 24, 340, "nvidia-a100-80gb", 2, local_ssds=2),
    MachineType("a2-ultragpu-4g", "a2", 48, 680, "nvidia-a100-80gb", 4, local_ssds=4),
    MachineType("a2-ultragpu-8g", "a2", 96, 1360, "nvidia-a100-80gb", 8, local_ssds=8),
    MachineType("a3-highgpu-1g", "a3", 26, 234, "nvidia-h100-80gb", 1, local_ssds=2),
    MachineType("a3-highgpu-2g", "a3", 52, 468, "nvidia-h100-80gb", 2, local_ssds=4),
    MachineType("a3-highgpu-4g", "a3", 104, 936, "nvidia-h100-80gb", 4, local_ssds=8),
    MachineType("a3-highgpu-8g", "a3", 208, 1872, "nvidia-h100-80gb", 8, local_ssds=16),
    MachineType("a3-megagpu-8g", "a3", 208, 1872, "nvidia-h100-mega-80gb", 8, local_ssds=16),
    MachineType("a3-ultragpu-8g", "a3", 224, 2952, "nvidia-h200-141gb", 8, local_ssds=32),
    MachineType("a4-highgpu-8g", "a4", 224, 3968, "nvidia-b200", 8, local_ssds=32),
    MachineType("a4x-highgpu-4g", "a4x", 140, 884, "nvidia-gb200", 4, local_ssds=4, arch="arm64"),
)
"""Machine types with GPUs of their own."""

ATTACHABLE: Final[Mapping[str, Mapping[int, int]]] = {
    "nvidia-tesla-t4": {1: 48, 2: 48, 4: 96},
    "nvidia-tesla-p4": {1: 24, 2: 48, 4: 96},
    "nvidia-tesla-p100": {1: 16, 2: 32, 4: 96},
    "nvidia-tesla-v100": {1: 12, 2: 24, 4: 48, 8: 96},
}
"""GPUs that N1 machines take: for each count, the most vCPUs of the machine.

Source: https://cloud.google.com/compute/docs/gpus#n1-gpus
"""

_AUTO_PROVISIONED_N1: Final = (
    ("n1-standard-4", "nvidia-tesla-t4", 1),
    ("n1-standard-8", "nvidia-tesla-t4", 1),
    ("n1-standard-16", "nvidia-tesla-t4", 2),
    ("n1-standard-32", "nvidia-tesla-t4", 4),
    ("n1-standard-8", "nvidia-tesla-p4", 1),
    ("n1-standard-8", "nvidia-tesla-p100", 1),
    ("n1-standard-16", "nvidia-tesla-p100", 2),
    ("n1-standard-8", "nvidia-tesla-v100", 1),
    ("n1-standard-16", "nvidia-tesla-v100", 2),
    ("n1-standard-32", "nvidia-tesla-v100", 4),
    ("n1-standard-64", "nvidia-tesla-v100", 8),
)
"""N1 machines with GPUs that auto-provisioning is taken to choose from."""
_AUTO_PROVISIONED_GENERAL: Final = frozenset(
    {
        "e2-standard-2",
        "e2-standard-4",
        "e2-standard-8",
        "e2-standard-16",
        "e2-standard-32",
        "n2-standard-48",
        "n2-standard-80",
        "n2-standard-128",
        "n2-highmem-128",
    }
)


@cache
def _by_name() -> Mapping[str, MachineType]:
    return {machine.name: machine for machine in (*_GENERAL, *_ACCELERATED)}


def machine_type(name: str) -> MachineType | None:
    """The machine type of that name, with the GPUs that are part of it; None if it is not in the catalogue."""
    return _by_name().get(name)


def machine_names() -> tuple[str, ...]:
    """Every machine type of the catalogue."""
    return tuple(_by_name())


def with_accelerator(machine: MachineType, accelerator: str, count: int) -> MachineType:
    """`machine` with `count` GPUs attached to it; whether that is offered is not asked here."""
    return replace(machine, accelerator=accelerator, gpus=count, attached=True)


@cache
def machine_catalogue() -> tuple[MachineType, ...]:
    """The machines that auto-provisioning chooses from, the smallest first: by GPUs, then CPUs, then memory."""
    general = [machine for machine in _GENERAL if machine.name in _AUTO_PROVISIONED_GENERAL]
    attached = [with_accelerator(_by_name()[name], gpu, count) for name, gpu, count in _AUTO_PROVISIONED_N1]
    machines = [*general, *_ACCELERATED, *attached]
    return tuple(sorted(machines, key=lambda machine: (machine.gpus, machine.cpus, machine.memory_gib, machine.name)))


@cache
def accelerators() -> frozenset[str]:
    """Every value of cloud.google.com/gke-accelerator in the catalogue."""
    return frozenset(machine.accelerator for machine in _ACCELERATED if machine.accelerator) | frozenset(ATTACHABLE)
