"""What GKE leaves of a machine to pods."""

from __future__ import annotations

import pytest

from kueue_fleet.gke.machines import (
    MachineType,
    accelerators,
    machine_catalogue,
    reserved_cpu_milli,
    reserved_disk_bytes,
    reserved_memory_bytes,
)

GIB = 1024**3
MIB = 1024**2


@pytest.mark.parametrize(("cpus", "milli"), [(1, 60), (2, 70), (4, 80), (8, 90), (96, 310)])
def test_reserved_cpu_is_a_share_of_each_further_core(cpus: int, milli: int) -> None:
    assert reserved_cpu_milli(cpus) == milli


@pytest.mark.parametrize(
    ("gib", "reserved_mib"),
    [
        (4, 1024 + 100),
        (8, 1024 + 819.2 + 100),
        (16, 1024 + 819.2 + 819.2 + 100),
        (128, 1024 + 819.2 + 819.2 + 6881.28 + 100),
        (256, 1024 + 819.2 + 819.2 + 6881.28 + 2621.44 + 100),
    ],
)
def test_reserved_memory_is_a_share_of_each_further_gibibyte(gib: int, reserved_mib: float) -> None:
    assert reserved_memory_bytes(gib * GIB) == pytest.approx(reserved_mib * MIB, abs=8)


def test_reserved_disk_of_a_small_disk_is_half_of_it() -> None:
    assert reserved_disk_bytes(10 * GIB) == 6 * GIB
    assert reserved_disk_bytes(1000 * GIB) == 200 * GIB


def test_the_catalogue_is_whole_and_the_smallest_machine_comes_first() -> None:
    machines = machine_catalogue()
    keys = [(machine.name, machine.accelerator) for machine in machines]
    assert len(keys) == len(set(keys))
    assert machines[0].name == "e2-standard-2"
    assert {"nvidia-l4", "nvidia-h100-80gb", "nvidia-h200-141gb", "nvidia-b200", "nvidia-gb200"} <= accelerators()
    for machine in machines:
        assert (machine.accelerator is None) == (machine.accelerators == 0)
        assert all(0 < machine.allocatable[name] <= amount for name, amount in machine.capacity.items())


def test_allocatable_of_a_small_gpu_machine() -> None:
    machine = MachineType("g2-standard-4", "g2", 4, 16, "nvidia-l4", 1)
    allocatable = machine.allocatable
    assert allocatable["cpu"] == 3920
    assert allocatable["nvidia.com/gpu"] == 1
    assert 13.2 * GIB < allocatable["memory"] < 13.5 * GIB


@pytest.mark.parametrize(("name", "ssds", "reserved_gib"), [("a2-ultragpu-1g", 1, 50), ("a2-ultragpu-2g", 2, 75)])
def test_local_ssds_of_a_machine_hold_its_ephemeral_storage(name: str, ssds: int, reserved_gib: int) -> None:
    machine = next(item for item in machine_catalogue() if item.name == name)
    assert machine.capacity["ephemeral-storage"] == ssds * 375 * GIB
    assert machine.allocatable["ephemeral-storage"] == ssds * 375 * GIB * 9 // 10 - reserved_gib * GIB
