"""The machine catalogue."""

from __future__ import annotations

import pytest

from kueue_fleet.gke.machines import (
    TPU_MACHINES,
    accelerators,
    machine_catalogue,
    machine_names,
    machine_type,
    n1_accelerators,
    nearest_machine,
    with_accelerator,
)


@pytest.mark.parametrize(
    ("name", "accelerator", "gpus", "local_ssds"),
    [
        ("g2-standard-24", "nvidia-l4", 2, 0),
        ("g2-standard-96", "nvidia-l4", 8, 0),
        ("a2-highgpu-1g", "nvidia-tesla-a100", 1, 0),
        ("a2-megagpu-16g", "nvidia-tesla-a100", 16, 0),
        ("a2-ultragpu-8g", "nvidia-a100-80gb", 8, 8),
        ("a3-highgpu-8g", "nvidia-h100-80gb", 8, 16),
        ("a3-megagpu-8g", "nvidia-h100-mega-80gb", 8, 16),
        ("a3-ultragpu-8g", "nvidia-h200-141gb", 8, 32),
        ("a4-highgpu-8g", "nvidia-b200", 8, 32),
        ("a4x-highgpu-4g", "nvidia-gb200", 4, 4),
        ("g4-standard-48", "nvidia-rtx-pro-6000", 1, 0),
        ("n1-standard-2", None, 0, 0),
        ("c4a-highmem-72-lssd", None, 0, 16),
        ("ct6e-standard-4t", "tpu-v6e-slice", 0, 0),
    ],
)
def test_gpus(name: str, accelerator: str | None, gpus: int, local_ssds: int) -> None:
    machine = machine_type(name)
    assert machine is not None
    assert (machine.accelerator, machine.gpus, machine.local_ssds) == (accelerator, gpus, local_ssds)


def test_names_are_unique_and_sizes_make_sense() -> None:
    assert len(machine_names()) == len(set(machine_names()))
    assert machine_type("x9-huge") is None
    for name in machine_names():
        machine = machine_type(name)
        assert machine is not None
        assert (machine.accelerator is None) == (machine.accelerators == 0)
        assert not (machine.gpus and machine.chips)
        assert (machine.chips > 0) == name.startswith(TPU_MACHINES)
        assert name.startswith(f"{machine.family}-")
        assert all(0 < machine.allocatable[key] <= amount for key, amount in machine.capacity.items())


def test_shared_core_machines_lose_more_than_a_core() -> None:
    small = machine_type("e2-small")
    assert small is not None
    assert small.allocatable["cpu"] == 940


def test_memory_in_quarters_of_a_gibibyte() -> None:
    machine = machine_type("n1-standard-2")
    assert machine is not None
    assert machine.memory_bytes == 7.5 * 1024**3


@pytest.mark.parametrize(
    ("name", "cpus", "memory_gib", "ssd_gib", "arch"),
    [
        ("n2d-highcpu-224", 224, 224, 0, "amd64"),
        ("c3d-highcpu-30", 30, 59, 0, "amd64"),
        ("c4-highmem-144-lssd", 144, 1116, 24 * 375, "amd64"),
        ("n4a-standard-64", 64, 256, 0, "arm64"),
        ("z3-highmem-176-standardlssd", 176, 1406, 12 * 3000, "amd64"),
    ],
)
def test_machines_without_gpus(name: str, cpus: int, memory_gib: int, ssd_gib: int, arch: str) -> None:
    machine = machine_type(name)
    assert machine is not None
    sizes = (machine.cpus, machine.memory_gib, machine.local_ssds * machine.ssd_gib, machine.arch)
    assert sizes == (cpus, memory_gib, ssd_gib, arch)


def test_attached_gpus_are_known_accelerators() -> None:
    assert set(n1_accelerators()) <= accelerators()
    machine = machine_type("n1-standard-8")
    assert machine is not None
    attached = with_accelerator(machine, "nvidia-tesla-t4", 4)
    assert (attached.accelerator, attached.gpus, attached.attached) == ("nvidia-tesla-t4", 4, True)
    for result in machine_catalogue():
        if result.attached and result.accelerator is not None:
            assert result.cpus <= n1_accelerators()[result.accelerator][result.gpus]


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("g2-standard-14", "g2-standard-16"),
        ("g2-standard-95", "g2-standard-96"),
        ("g2-standard-240", "g2-standard-24"),
        ("g2-standrd-24", "g2-standard-24"),
        ("quantum-1", None),
        ("c3-standard-88-lsd", "c3-standard-88-lssd"),
        ("c3-metal", None),
        ("n2-standard-48-lssd", "n2-standard-48"),
    ],
)
def test_the_machine_type_that_is_meant(written: str, meant: str | None) -> None:
    assert nearest_machine(written) == meant
