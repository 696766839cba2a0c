"""The machine catalogue: what a machine type has, and how much of it GKE leaves to pods.

The types are in `machines.csv`, the GPUs that N1 machines take in `n1_accelerators.csv`. A type that is not listed can
be used; what depends on its size is then not checked. Daemons such as the metrics agent take a little more than the
reservations here on a real node.

Source of the reservations: https://cloud.google.com/kubernetes-engine/docs/concepts/plan-node-sizes
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Final

from kueue_admission.kernel import suggest
from kueue_fleet.gke.csv_tables import read_table, row_of
from kueue_fleet.gke.labels import ACCELERATOR, GPU_RESOURCE, TPU_ACCELERATOR, TPU_RESOURCE

BOOT_DISK_GB: Final = 100
"""GKE's default boot disk, in GB."""
BOOT_DISK_BYTES: Final = BOOT_DISK_GB * 1000**3
"""GKE's default boot disk, in bytes."""
PODS_PER_NODE: Final = 110
"""Pods that GKE puts on a node at most, by default."""

DEFAULT_MACHINE_TYPE: Final = "e2-medium"
"""What GKE takes when no machine type is given."""
COMPACT_FLEX_START: Final = ("a3-ultragpu-", "a4-", "h4d-")
"""Beginnings of the machine types that take compact placement with flex-start.

Source: https://cloud.google.com/kubernetes-engine/docs/how-to/compact-placement
"""
NOT_COMPACT: Final = ("c4a-", "e2-", "n1-", "t2a-", "t2d-")
"""Beginnings of the machine types that take no compact placement.

Source: https://cloud.google.com/kubernetes-engine/docs/how-to/compact-placement,
https://cloud.google.com/compute/docs/instances/placement-policies-overview and
https://cloud.google.com/compute/docs/general-purpose-machines
"""
HYPERDISK_ONLY: Final = (
    *("a3-ultragpu-", "a4-", "a4x-", "ct6e-", "g4-", "tpu7x-"),
    *("c4-", "c4a-", "c4d-", "h4d-", "n4-", "n4a-", "n4d-"),
)
"""Beginnings of the machine types that boot from Hyperdisk only.

Source: https://cloud.google.com/compute/docs/accelerator-optimized-machines,
https://cloud.google.com/compute/docs/general-purpose-machines and
https://cloud.google.com/kubernetes-engine/docs/concepts/plan-tpus
"""
TPU_MACHINES: Final = ("ct5lp-", "ct5p-", "ct6e-", "tpu7x-")
"""Beginnings of the machine types with TPUs. Source: https://cloud.google.com/kubernetes-engine/docs/concepts/plan-tpus"""
LOCAL_SSD_GB: Final = 375
"""Size of a local SSD, but of those of A4X and Z3. Source: https://cloud.google.com/compute/docs/disks/local-ssd."""
BOOT_DISKS: Final = ("pd-balanced", "pd-ssd", "pd-standard", "pd-extreme", "hyperdisk-balanced", "hyperdisk-extreme")
"""Kinds of disk that machines boot from.

Source: https://cloud.google.com/compute/docs/disks and https://cloud.google.com/compute/docs/disks/hyperdisks
"""
DATA_HYPERDISKS: Final = ("hyperdisk-ml", "hyperdisk-throughput", "hyperdisk-balanced-high-availability")
"""Kinds of Hyperdisk that are for data alone. Source: as above."""
MOST_DISK_GB: Final = 65_536
"""Size of the largest disk of any kind, in GiB, which Google calls GB.

Source: https://cloud.google.com/compute/docs/disks/persistent-disks and
https://cloud.google.com/compute/docs/disks/hyperdisks
"""
LEAST_DISK_GB: Final[Mapping[str, int]] = {"pd-extreme": 500, "hyperdisk-extreme": 64}
"""The smallest disks of kinds that begin with more than the 10 GB of all boot disks. Source: as above."""
NO_HYPERDISK: Final = ("c2-", "c2d-", "e2-", "n1-", "t2a-", "t2d-")
"""Beginnings of the machine types to which no Hyperdisk of a kind that the fleet makes can be attached.

Source: https://cloud.google.com/compute/docs/disks/hyperdisks (machine type support)
"""
DISKS_NOT_TAKEN: Final[Mapping[str, tuple[str, ...]]] = {
    "hyperdisk-": NO_HYPERDISK,
    "pd-standard": ("a3-", "c3-", "c3d-", "g2-", "h3-", "z3-"),
    "pd-extreme": ("c3-", "c3d-", "e2-", "n1-", "n2d-", "t2a-", "z3-"),
}
"""Beginnings of kinds of disk, and of the machine types that do not boot from them, though from others of `BOOT_DISKS`.

Source: https://cloud.google.com/compute/docs/machine-resource and the pages of the machine families;
GoogleCloudPlatform/cluster-toolkit modules/internal/instance_validations/main.tf
"""

_MIB: Final = 1024**2
_GIB: Final = 1024**3


@dataclass(frozen=True, slots=True)
class MachineType:
    """One machine type, with the GPUs attached to it, or its TPU chips."""

    name: str
    family: str
    cpus: int
    memory_gib: float
    accelerator: str | None = None
    """The value of the node label `accelerator_label`."""
    gpus: int = 0
    chips: int = 0
    """TPU chips."""
    local_ssds: int = 0
    """Local SSDs that come with the machine."""
    ssd_gib: int = LOCAL_SSD_GB
    """Size of one."""
    arch: str = "amd64"
    attached: bool = False
    """Whether GPUs are attached to the machine (N1) instead of being part of its type."""
    shared_core: bool = False
    """Whether its CPUs are shared with other machines."""
    shares: int = 1
    """Devices that pods can request for each GPU; see `gpu_sharing`."""

    @property
    def accelerators(self) -> int:
        """GPUs or TPU chips."""
        return self.gpus or self.chips

    @property
    def accelerator_label(self) -> str:
        """Key of the node label with the kind of GPU or TPU."""
        return TPU_ACCELERATOR if self.chips else ACCELERATOR

    @property
    def accelerator_resource(self) -> str:
        """Resource name of its GPUs or TPU chips."""
        return TPU_RESOURCE if self.chips else GPU_RESOURCE

    @property
    def memory_bytes(self) -> int:
        """Memory of the machine, in bytes."""
        return int(self.memory_gib * _GIB)

    @property
    def capacity(self) -> dict[str, int]:
        """What the node reports, with a default boot disk: milli-CPUs, bytes, pieces."""
        return self.capacity_with(BOOT_DISK_BYTES, PODS_PER_NODE, self.local_ssds)

    @property
    def allocatable(self) -> dict[str, int]:
        """What pods may ask for, with a default boot disk: milli-CPUs, bytes, pieces."""
        return self.allocatable_with(BOOT_DISK_BYTES, PODS_PER_NODE, self.local_ssds)

    def capacity_with(self, disk_bytes: int, pods: int, local_ssds: int) -> dict[str, int]:
        """What the node reports with a boot disk of `disk_bytes` and room for `pods`: milli-CPUs, bytes, pieces.

        Local SSDs hold the ephemeral storage where the node has some: its own, or those that are added to it.
        """
        amounts = {
            "cpu": self.cpus * 1000,
            "memory": self.memory_bytes,
            "ephemeral-storage": local_ssds * self.ssd_gib * _GIB or disk_bytes,
            "pods": pods,
        }
        devices = self.accelerators * self.shares
        return amounts | ({self.accelerator_resource: devices} if devices else {})

    def allocatable_with(self, disk_bytes: int, pods: int, local_ssds: int) -> dict[str, int]:
        """What pods may ask for: `capacity_with` less GKE's reservations and the eviction thresholds."""
        reserved_milli = SHARED_CORE_RESERVED_MILLI if self.shared_core else reserved_cpu_milli(self.cpus)
        capacity = self.capacity_with(disk_bytes, pods, local_ssds)
        disk = capacity["ephemeral-storage"]
        return capacity | {
            "cpu": self.cpus * 1000 - reserved_milli,
            "memory": self.memory_bytes - reserved_memory_bytes(self.memory_bytes),
            "ephemeral-storage": disk - reserved_disk_bytes(disk, local_ssds),
        }


SHARED_CORE_RESERVED_MILLI: Final = 1060
"""What GKE reserves of the CPU of a shared-core E2 machine, in milli-CPUs (plan-node-sizes, CPU reservations)."""


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
    reserved_bytes, rest = 0, memory
    for size_gib, percent in ((4, 25), (4, 20), (8, 10), (112, 6)):
        part = min(rest, size_gib * _GIB)
        reserved_bytes += part * percent // 100
        rest -= part
    return reserved_bytes + rest * 2 // 100 + 100 * _MIB


def reserved_disk_bytes(disk: int, local_ssds: int = 0) -> int:
    """The least of half the disk, 6 GiB + 35 % of it, and 100 GiB; and 10 % of it as the eviction threshold.

    Of local SSDs 50 GiB, 75 of two and 100 of more, instead of that least.
    Source: https://cloud.google.com/kubernetes-engine/docs/concepts/plan-node-sizes
    """
    if local_ssds:
        return (50, 75, 100)[min(local_ssds, 3) - 1] * _GIB + disk // 10
    return min(disk // 2, 6 * _GIB + disk * 35 // 100, 100 * _GIB) + disk // 10


@cache
def n1_accelerators() -> Mapping[str, Mapping[int, int]]:
    """GPUs that N1 machines take: for each number of a kind, the most vCPUs of the machine."""
    most: dict[str, dict[int, int]] = {}
    for row in read_table("n1_accelerators"):
        most.setdefault(row["accelerator"], {})[int(row["count"])] = int(row["maxCpus"])
    return most


@cache
def _by_name() -> Mapping[str, MachineType]:
    return {row["name"]: _machine(row) for row in read_table("machines")}


def _machine(row: Mapping[str, str]) -> MachineType:
    return MachineType(
        row["name"],
        row["name"].partition("-")[0],
        int(row["cpus"]),
        float(row["memoryGib"]),
        row["accelerator"] or None,
        int(row["gpus"] or 0),
        int(row["chips"] or 0),
        int(row["localSsds"] or 0),
        int(row["ssdGib"] or LOCAL_SSD_GB),
        row["arch"],
        shared_core=row["sharedCore"] == "yes",
    )


def machine_type(name: str) -> MachineType | None:
    """The machine type of that name, with the GPUs that are part of it; None if it is not in the catalogue."""
    return _by_name().get(name)


@cache
def _local_ssds() -> Mapping[str, list[tuple[int | None, tuple[int, ...]]]]:
    sizes: dict[str, list[tuple[int | None, tuple[int, ...]]]] = {}
    for row in read_table("local_ssds"):
        most = int(row["maxCpus"]) if row["maxCpus"] else None
        sizes.setdefault(row["machineTypes"], []).append((most, tuple(map(int, row["counts"].split()))))
    return sizes


def local_ssd_counts(name: str) -> tuple[int, ...] | None:
    """How many local SSDs the machine type comes with, or can be given; none: no number; None: not known."""
    machine = machine_type(name)
    if machine is not None and machine.local_ssds:
        return (machine.local_ssds,)
    if name.endswith(("-lssd", "-metal")):
        return None
    for most, counts in row_of(name, _local_ssds()) or ():
        if most is None or (machine is not None and machine.cpus <= most):
            return counts
        if machine is None:
            return None
    return None


def machine_names() -> tuple[str, ...]:
    """Every machine type of the catalogue."""
    return tuple(_by_name())


def nearest_machine(machine_name: str) -> str | None:
    """The machine type that is meant: that of the same kind which is nearest in size, if it is near, else the
    nearest name of its family."""
    kind, _, size = machine_name.rpartition("-")
    sizes = {
        int(name.rpartition("-")[2]): name for name in machine_names() if re.fullmatch(rf"{re.escape(kind)}-\d+", name)
    }
    if sizes and size.isdecimal():
        near = min(sizes, key=lambda each: (abs(each - int(size)), -each))
        if 2 * abs(near - int(size)) <= near:
            return sizes[near]
    family = machine_name.partition("-")[0].lower()
    return suggest.nearest(machine_name, (name for name in machine_names() if name.partition("-")[0] == family))


def with_accelerator(machine: MachineType, accelerator: str, count: int) -> MachineType:
    """`machine` with `count` GPUs attached to it; whether that is offered is not asked here."""
    return replace(machine, accelerator=accelerator, gpus=count, attached=True)


@cache
def machine_catalogue() -> tuple[MachineType, ...]:
    """The machines that auto-provisioning chooses from, the smallest first: by GPUs or chips, CPUs, then memory."""
    machines = [_by_name()[row["name"]] for row in read_table("machines") if row["autoProvisioned"] == "yes"]
    for row in read_table("n1_accelerators"):
        for size in row["autoProvisioned"].split():
            n1 = _by_name()[f"n1-standard-{size}"]
            machines.append(with_accelerator(n1, row["accelerator"], int(row["count"])))
    return tuple(sorted(machines, key=lambda one: (one.accelerators, one.cpus, one.memory_gib, one.name)))


@cache
def accelerators() -> frozenset[str]:
    """Every kind of GPU and TPU in the catalogue, as node labels have it."""
    own = {machine.accelerator for machine in _by_name().values() if machine.accelerator is not None}
    return frozenset(own | n1_accelerators().keys())


@cache
def tpus() -> frozenset[str]:
    """Every kind of TPU in the catalogue: values of cloud.google.com/gke-tpu-accelerator."""
    return frozenset(one.accelerator for one in _by_name().values() if one.chips and one.accelerator)


@cache
def gpus() -> frozenset[str]:
    """Every kind of GPU in the catalogue: values of cloud.google.com/gke-accelerator."""
    return accelerators() - tpus()
