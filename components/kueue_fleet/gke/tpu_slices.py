"""TPU slices: which topologies a machine type has in GKE, and how many nodes make up a slice.

The topologies are in `tpu_topologies.csv`.

Source: https://cloud.google.com/kubernetes-engine/docs/concepts/plan-tpus
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from math import prod
from typing import Final

from kueue_fleet.gke.csv_tables import read_table
from kueue_fleet.gke.machines import machine_type

WORKLOAD_POLICY_TPU: Final = ("tpu7x-",)
"""Beginnings of the TPU machine types whose multi-host slices take their topology from a workload policy.

Source: https://cloud.google.com/kubernetes-engine/docs/how-to/tpus
"""
_MOST_CHIPS: Final[Mapping[str, int]] = {"ct5p-hightpu-4t": 6_144, "tpu7x-standard-4t": 9_216}
"""Chips of the largest slice, of machine types whose large topologies are not listed one by one."""
_CUBE: Final = 4
"""Slices beyond 4x4x4 are made of cubes of that size."""
CUBE: Final = "4x4x4"
"""Topology of a cube of TPU7x, which GKE's slice controller joins or divides."""
PARTS_OF_CUBE: Final[Mapping[str, int]] = {"2x2x1": 1, "2x2x2": 2, "2x2x4": 4, "2x4x4": 8, CUBE: 16}
"""Nodes of a cube of TPU7x, and of the slices into which it is divided.

Source: https://docs.cloud.google.com/kubernetes-engine/docs/how-to/use-gke-dynamic-slicing."""


@cache
def _listed() -> Mapping[str, Mapping[str, int]]:
    slices: dict[str, dict[str, int]] = {}
    for row in read_table("tpu_topologies"):
        slices.setdefault(row["machineType"], {})[row["topology"]] = int(row["nodes"])
    return slices


def tpu_topologies(machine: str) -> tuple[str, ...]:
    """The topologies of a TPU machine type that GKE's page lists, the smallest first; none for other machines."""
    return tuple(_listed().get(machine, ()))


def slice_nodes(machine: str, topology: str) -> int | None:
    """The nodes of a slice of that topology; None where the machine type has no such topology."""
    node_counts = _listed().get(machine, {}).get(topology)
    return _of_cubes(machine, topology) if node_counts is None else node_counts


def _of_cubes(machine: str, topology: str) -> int | None:
    sides = [int(side) for side in topology.split("x") if side.isdecimal() and len(side) <= 4]
    cube_machine = machine_type(machine)
    if cube_machine is None or machine not in _MOST_CHIPS or "x".join(map(str, sides)) != topology:
        return None
    whole = len(sides) == 3 and sides == sorted(sides) and not any(side % _CUBE or not side for side in sides)
    return prod(sides) // cube_machine.chips if whole and prod(sides) <= _MOST_CHIPS[machine] else None


def asked_topology(machine: str, topology: str | None) -> str | None:
    """The topology that GKE is asked for: one of several nodes. A single node has that of its machine type."""
    return None if topology is None or slice_nodes(machine, topology) == 1 else topology


def topology_of_nodes(machine: str, nodes: int) -> str | None:
    """The listed topology of a slice of so many nodes; None where there is none."""
    return next((topology for topology, count in _listed().get(machine, {}).items() if count == nodes), None)
