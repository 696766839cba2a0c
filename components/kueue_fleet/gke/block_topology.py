"""Where nodes stand, as GKE labels them: region, zone, and of machines with fast networks block, sub-block and host.

Check, rehearsal and simulation use it; which machines Google really gives a pool is Google's to decide.

Source: https://cloud.google.com/ai-hypercomputer/docs/workloads/schedule-gke-workloads-tas (labels; a sub-block of A4X
is an NVLink domain of 18 machines).
"""

from __future__ import annotations

from typing import Final

from kueue_admission.kernel.names import HOSTNAME_LABEL
from kueue_fleet.gke.labels import REGION, TOPOLOGY_BLOCK, TOPOLOGY_HOST, TOPOLOGY_SUBBLOCK, TPU_PARTITION, ZONE
from kueue_fleet.gke.tpu_slices import PARTS_OF_CUBE

_IN_BLOCKS: Final = ("a3-highgpu-8g", "a3-megagpu-", "a3-ultragpu-", "a4-", "a4x-")
HOSTS_PER_SUBBLOCK: Final = 8
"""Machines that are taken to be in a sub-block. Google does not publish it; a guess."""
A4X_HOSTS_PER_SUBBLOCK: Final = 18
"""The same of A4X machines: one NVLink domain."""
SUBBLOCKS_PER_BLOCK: Final = 4
"""Sub-blocks that are taken to be in a block. A guess too."""


LEVELS_OF_GKE: Final = (REGION, ZONE, TOPOLOGY_BLOCK, TOPOLOGY_SUBBLOCK, TOPOLOGY_HOST, HOSTNAME_LABEL)
"""Node labels that differ from node to node of a pool, from the widest."""


def has_level(machine_type: str, label: str) -> bool:
    """Whether nodes of that type have that label of `LEVELS_OF_GKE`."""
    in_block = label in (TOPOLOGY_BLOCK, TOPOLOGY_SUBBLOCK, TOPOLOGY_HOST)
    return label in LEVELS_OF_GKE and (not in_block or machine_type.startswith(_IN_BLOCKS))


def topology_labels(machine_type: str, pool: str, number: int) -> dict[str, str]:
    """The labels of the node with that number, from 0, of a pool that fills block after block; else none."""
    if not machine_type.startswith(_IN_BLOCKS):
        return {}
    hosts = A4X_HOSTS_PER_SUBBLOCK if machine_type.startswith("a4x-") else HOSTS_PER_SUBBLOCK
    subblock, host = divmod(number, hosts)
    block = f"{pool}-block-{subblock // SUBBLOCKS_PER_BLOCK}"
    within = f"{block}-sub-{subblock % SUBBLOCKS_PER_BLOCK}"
    return {TOPOLOGY_BLOCK: block, TOPOLOGY_SUBBLOCK: within, TOPOLOGY_HOST: f"{within}-host-{host}"}


def cube_labels(block: str, pool: str, number: int) -> dict[str, str]:
    """The labels of the node with that number, from 0, of a pool that is a cube of TPU7x in a reservation's `block`."""
    parts = {TPU_PARTITION.format(part): f"{pool}-{part}-{number // nodes}" for part, nodes in PARTS_OF_CUBE.items()}
    return {TOPOLOGY_BLOCK: block, **parts}
