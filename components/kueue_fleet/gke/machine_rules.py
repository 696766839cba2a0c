"""The rules of GKE for the GPUs, TPUs and disks of a node pool's machines; `pool_rules` has their names.

Sources: https://cloud.google.com/kubernetes-engine/docs/concepts/gpus,
https://cloud.google.com/compute/docs/accelerator-optimized-machines, https://cloud.google.com/compute/docs/disks/local-ssd,
https://cloud.google.com/kubernetes-engine/docs/concepts/plan-tpus
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from kueue_admission.kernel.suggest import instead
from kueue_fleet.gke.gpu_sharing import PROPERTIES, WHOLE
from kueue_fleet.gke.labels import NO_DEVICE_PLUGIN
from kueue_fleet.gke.machines import (
    BOOT_DISKS,
    DATA_HYPERDISKS,
    DISKS_NOT_TAKEN,
    HYPERDISK_ONLY,
    LEAST_DISK_GB,
    MOST_DISK_GB,
    MachineType,
    local_ssd_counts,
    machine_type,
    n1_accelerators,
)
from kueue_fleet.gke.pool import Breach, Gpus, Pool
from kueue_fleet.gke.tpu_slices import slice_nodes, tpu_topologies

_IMAGE: Final = re.compile(r"(projects/[^/]+/)?global/images/(?P<name>[a-z]([a-z0-9-]*[a-z0-9])?)")
_LONGEST_IMAGE: Final = 63 - len("gke-secondary-boot-disk-")


def check_gpus(pool: Pool) -> Iterator[Breach]:
    """The GPUs that are asked for are those of the machine, or can be attached to it."""
    machine = machine_type(pool.machine_type)
    for index, gpus in enumerate(pool.gpus):
        machine_gpus = _asked_of(machine, pool.machine_type, gpus)
        yield from (Breach(one.fact, one.wrong, one.fix, index) for one in machine_gpus)


def _asked_of(machine: MachineType | None, name: str, gpus: Gpus) -> Iterator[Breach]:
    if machine is not None and machine.gpus and not machine.attached:
        yield from _own_gpus(machine, gpus)
    elif machine is not None and machine.family != "n1":
        yield Breach("gpus", f"is set, but {name} takes no GPUs", "remove it, or use a machine type with GPUs")
    elif gpus.type is None or gpus.count is None:
        kind_text = "has none of its own" if machine else "is not in the catalogue"
        yield Breach(
            "gpus", f"has no type or no count, and {name} {kind_text}", "set both, such as nvidia-tesla-t4 and 1"
        )
    elif machine is not None:
        yield from _attached_gpus(machine, gpus.type, gpus.count)


def _own_gpus(machine: MachineType, gpus: Gpus) -> Iterator[Breach]:
    if gpus.type not in (None, machine.accelerator):
        yield Breach(
            "gpus.type",
            f"is {gpus.type}, but {machine.name} comes with {machine.accelerator}",
            f"set it to {machine.accelerator}, or remove it",
        )
    if gpus.count not in (None, machine.gpus):
        yield Breach(
            "gpus.count",
            f"is {gpus.count}, but {machine.name} comes with {machine.gpus}",
            f"set it to {machine.gpus}, or remove it",
        )


def _attached_gpus(machine: MachineType, kind: str, count: int) -> Iterator[Breach]:
    """N1 machines take GPUs, so many for so many vCPUs (Compute Engine, N1 + GPU machine types)."""
    accelerator_offers = n1_accelerators().get(kind)
    if accelerator_offers is None:
        yield Breach(
            "gpus.type",
            f"is {kind}, which cannot be attached to {machine.name}",
            f"use one of {', '.join(n1_accelerators())}, or a machine type that comes with it",
        )
    elif count not in accelerator_offers:
        yield Breach(
            "gpus.count",
            f"is {count}, a number of {kind} that is not offered",
            f"use {', '.join(map(str, accelerator_offers))}",
        )
    elif machine.cpus > accelerator_offers[count]:
        enough = next((more for more, cpus in accelerator_offers.items() if machine.cpus <= cpus), None)
        yield Breach(
            "gpus.count",
            f"is {count}, but {count} {kind} go with at most {accelerator_offers[count]} vCPUs, and {machine.name} has "
            f"{machine.cpus}",
            f"set it to {enough}, or use a smaller machine type" if enough else "use a smaller machine type",
        )


def check_gpu_sharing(pool: Pool) -> Iterator[Breach]:
    """GPUs are shared by a strategy that GKE has, and divided into parts that they have."""
    for index, gpus in enumerate(pool.gpus):
        for fault in gpus.sharing.faults(gpus.type or pool.accelerator):
            yield Breach(f"gpus.{PROPERTIES[fault.label]}", fault.wrong, fault.fix, index)


def check_device_plugin(pool: Pool) -> Iterator[Breach]:
    """GKE's device plugin, which makes the shares, is on the nodes."""
    if pool.sharing != WHOLE and pool.labels.get(NO_DEVICE_PLUGIN) == "true":
        wrong = f"are shared or divided, but the label {NO_DEVICE_PLUGIN} keeps GKE's device plugin away, which does it"
        yield Breach("gpus", wrong, "remove the label, or sharing and partitionSize")


def check_boot_disk(pool: Pool) -> Iterator[Breach]:
    """The boot disk is of a type that the machine boots from, and of a size that there is of it."""
    if pool.disk_type is not None:
        yield from _disk_type(pool.disk_type, pool.machine_type)
    least = LEAST_DISK_GB.get(pool.disk_type or "", 0)
    if pool.disk_gb > MOST_DISK_GB:
        yield Breach("disk_gb", f"is {pool.disk_gb}, and no disk is larger than {MOST_DISK_GB}", "write a smaller one")
    elif pool.disk_gb < least:
        wrong = f"is {pool.disk_gb}, and disks of type {pool.disk_type} begin with {least}"
        yield Breach("disk_gb", wrong, f"write {least} or more")


def _disk_type(disk: str, machine: str) -> Iterator[Breach]:
    if disk not in BOOT_DISKS:
        fix = "write hyperdisk-balanced" if disk in DATA_HYPERDISKS else instead(disk, BOOT_DISKS, "kinds of disk")
        yield Breach("disk_type", f"is {disk}, from which no machine boots", fix)
    elif not disk.startswith("hyperdisk-") and machine.startswith(HYPERDISK_ONLY):
        yield Breach(
            "disk_type",
            f"is {disk}, but {machine} boots from Hyperdisk only",
            "set it to hyperdisk-balanced, or remove it",
        )
    elif any(disk.startswith(kind) and machine.startswith(types) for kind, types in DISKS_NOT_TAKEN.items()):
        yield Breach("disk_type", f"is {disk}, from which {machine} does not boot", "set it to pd-balanced, or pd-ssd")


def check_local_ssds(pool: Pool) -> Iterator[Breach]:
    """Local SSDs are used in one way, and are as many as the machine comes with or takes."""
    if pool.ephemeral_local_ssds and pool.block_local_ssds:
        yield Breach(
            "ephemeral_local_ssds", "is set, but so are raw block devices, which exclude it", "keep one of the two"
        )
    machine, ssd_counts = machine_type(pool.machine_type), local_ssd_counts(pool.machine_type)
    for fact in ("ephemeral_local_ssds", "block_local_ssds"):
        count = getattr(pool, fact)
        if not count or ssd_counts is None or count in ssd_counts:
            continue
        if not ssd_counts:
            yield Breach(fact, f"is {count}, but {pool.machine_type} takes none", "remove it")
        elif machine is not None and machine.local_ssds:
            yield Breach(
                fact,
                f"is {count}, but {machine.name} comes with {machine.local_ssds}",
                f"set it to {machine.local_ssds}, or remove it",
            )
        else:
            count_names = ", ".join(map(str, ssd_counts))
            yield Breach(fact, f"is {count}, a number that {pool.machine_type} does not take", f"use {count_names}")


def check_secondary_disks(pool: Pool) -> Iterator[Breach]:
    """One image that GKE takes, on pools with image streaming.

    Google's provider (pulumi-gcp 9 and 10) sends the first disk alone, and plans to replace the pool ever after.
    Source of the length: GKE makes a node label of the name, `gke-secondary-boot-disk-NAME`, of 63 at most.
    """
    for index, image in enumerate(pool.secondary_disks):
        match = _IMAGE.fullmatch(image)
        if match is None:
            fix = "write global/images/NAME, or projects/PROJECT/global/images/NAME"
            yield Breach("secondary_disks", f"is of {image}, which is not the path of a disk image", fix, index)
        elif len(match["name"]) > _LONGEST_IMAGE:
            wrong = f"is of {match['name']}, which is longer than the {_LONGEST_IMAGE} characters that GKE takes"
            yield Breach("secondary_disks", wrong, "make an image of a shorter name", index)
    for index in range(1, len(pool.secondary_disks)):
        wrong = "is a further disk: Google's provider sends the first one alone, and replaces the pool at each update"
        yield Breach("secondary_disks", wrong, "keep one, with all the images or data", index)
    if pool.secondary_disks and not pool.image_streaming:
        wrong = "are set, but GKE takes them only with image streaming, which is off"
        yield Breach("secondary_disks", wrong, "turn image streaming on")


def check_fast_socket(pool: Pool) -> Iterator[Breach]:
    """NCCL Fast Socket is between GPUs."""
    if pool.fast_socket and not pool.gpus_per_node:
        yield Breach("fast_socket", f"is true, but {pool.machine_type} has no GPUs here", "remove it, or ask for GPUs")


def check_tpu_topology(pool: Pool) -> Iterator[Breach]:
    """The topology is one that the machine type has."""
    topology = pool.tpu_topology
    if topology is None and pool.compact and tpu_topologies(pool.machine_type):
        what = f"is set, but {pool.machine_type} nodes are placed together as slices"
        yield Breach("compact", what, "remove it, or set a TPU topology of several nodes")
    if topology is None or slice_nodes(pool.machine_type, topology) is not None:
        return
    topologies = tpu_topologies(pool.machine_type)
    if topologies:
        yield Breach(
            "tpu_topology",
            f"is {topology}, which {pool.machine_type} does not have",
            f"use one of {', '.join(topologies)}",
        )
    elif machine_type(pool.machine_type) is not None:
        yield Breach("tpu_topology", f"is {topology}, but {pool.machine_type} has no TPUs", "remove it")


def check_tpu_slice(pool: Pool) -> Iterator[Breach]:
    """A multi-host slice is a node pool of its own, in one zone: it has all nodes of the slice, or none."""
    nodes = slice_nodes(pool.machine_type, pool.tpu_topology) if pool.tpu_topology is not None else None
    if nodes is None or nodes == 1:
        return
    what = f"but a slice of {pool.tpu_topology} is {nodes} {pool.machine_type} nodes, and a pool is one slice"
    if pool.zone_count != 1:
        yield Breach("zones", f"are {pool.zone_count}, but a TPU slice is in one zone", "set exactly one zone")
    if pool.autoscaling:
        if pool.most_nodes != nodes:
            yield Breach("most_nodes", f"is {pool.most_nodes}, {what}", f"set it to {nodes}")
        if pool.least_nodes not in (0, nodes):
            yield Breach("least_nodes", f"is {pool.least_nodes}, {what}", f"set it to 0 or {nodes}")
    for fact in ("node_count", "initial_node_count"):
        count = getattr(pool, fact)
        if count not in (None, 0, nodes):
            yield Breach(fact, f"is {count}, {what}", f"set it to {nodes}")
