"""The machine catalogue, as the rehearsal's nodes are made from it: `kueue_fleet.spec.machines`."""

from __future__ import annotations

from kueue_fleet.spec.machines import (
    BOOT_DISK_BYTES,
    GPU_RESOURCE,
    PODS_PER_NODE,
    accelerators,
    machine_catalogue,
    reserved_cpu_milli,
    reserved_disk_bytes,
    reserved_memory_bytes,
)
from kueue_fleet.spec.machines import MachineType as Machine

__all__ = [
    "BOOT_DISK_BYTES",
    "GPU_RESOURCE",
    "PODS_PER_NODE",
    "Machine",
    "accelerators",
    "machine_catalogue",
    "reserved_cpu_milli",
    "reserved_disk_bytes",
    "reserved_memory_bytes",
]
