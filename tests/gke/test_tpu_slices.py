"""TPU slices: topologies of each machine type, and the nodes of a slice."""

from __future__ import annotations

from math import prod

import pytest

from kueue_fleet.gke.csv_tables import read_table
from kueue_fleet.gke.machines import machine_names, machine_type
from kueue_fleet.gke.tpu_slices import asked_topology, slice_nodes, topology_of_nodes, tpu_topologies


def test_each_machine_with_tpus_has_one_topology_of_a_single_node() -> None:
    for name in machine_names():
        machine = machine_type(name)
        assert machine is not None
        assert (machine.chips > 0) == bool(tpu_topologies(name)), name
        assert [slice_nodes(name, one) for one in tpu_topologies(name)].count(1) == (machine.chips > 0), name


def test_nodes_of_a_slice_have_its_chips() -> None:
    for row in read_table("tpu_topologies"):
        machine = machine_type(row["machineType"])
        assert machine is not None, row
        assert prod(map(int, row["topology"].split("x"))) == machine.chips * int(row["nodes"]), row


@pytest.mark.parametrize(
    ("machine", "topology", "nodes"),
    [
        ("ct6e-standard-4t", "16x16", 64),
        ("ct6e-standard-4t", "16x32", None),
        ("ct6e-standard-8t", "4x4", None),
        ("ct5p-hightpu-4t", "8x16x16", 512),
        ("ct5p-hightpu-4t", "16x16x24", 1_536),
        ("ct5p-hightpu-4t", "16x16x28", None),
        ("ct5p-hightpu-4t", "8x4x4", None),
        ("ct5p-hightpu-4t", "4x4x6", None),
        ("ct5p-hightpu-4t", "4x4", None),
        ("ct5p-hightpu-4t", "04x4x8", None),
        ("ct5p-hightpu-4t", f"{'9' * 5000}x4x8", None),
        ("tpu7x-standard-4t", "4x4x8", 32),
        ("g2-standard-24", "2x2", None),
        ("x9-unheard-of", "4x4x8", None),
    ],
)
def test_nodes_of_a_slice(machine: str, topology: str, nodes: int | None) -> None:
    assert slice_nodes(machine, topology) == nodes


def test_only_the_topology_of_several_nodes_is_asked_for() -> None:
    assert asked_topology("ct6e-standard-4t", "2x2") is None
    assert asked_topology("ct6e-standard-4t", None) is None
    assert asked_topology("ct6e-standard-4t", "4x4") == "4x4"
    assert topology_of_nodes("tpu7x-standard-4t", 2) == "2x2x2"
    assert topology_of_nodes("tpu7x-standard-4t", 3) is None
