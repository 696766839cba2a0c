"""The rules of GKE that concern one node pool alone.

In: a pool of the file, as it is for all clusters or on one of them. Out: problems with paths relative to the pool.
Rules that need the cluster, the reservations or the queues are in `check.pools`.

Source: GoogleCloudPlatform/cluster-toolkit@10470803 modules/compute/gke-node-pool/main.tf (preconditions), and the
pages named at each rule.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from kueue_fleet.gke.machines import MachineType, machine_type, n1_accelerators
from kueue_fleet.spec.capacity import Calendar, FlexStart, Reserved
from kueue_fleet.spec.problem import Problem

if TYPE_CHECKING:
    from kueue_fleet.spec.node_pools import NodePoolEntry

COMPACT_FLEX: Final = ("a3-ultragpu-", "a4-", "h4d-")
"""Machine types that take compact placement with flex-start (cluster-toolkit, gke-node-pool)."""
HYPERDISK_ONLY: Final = ("a3-ultragpu-", "a4-", "a4x-", "g4-")
"""Machine types that boot from Hyperdisk only.

Source: https://cloud.google.com/compute/docs/accelerator-optimized-machines
"""
NO_LOCAL_SSD: Final = ("e2-",)
"""Machine types to which no local SSD can be added (Compute Engine, About Local SSD disks)."""


def pool_problems(pool: NodePoolEntry) -> Iterator[Problem]:
    """Every broken rule of one pool."""
    for field, part in (
        ("autoscaling", pool.autoscaling),
        ("upgrade", pool.upgrade),
        ("capacity", pool.capacity if isinstance(pool.capacity, Reserved | FlexStart) else None),
    ):
        for problem in part.own_problems() if part is not None else ():
            yield problem.at(field)
    yield from _size(pool)
    yield from _flex_start(pool)
    yield from _compact(pool)
    yield from _accelerator(pool)
    yield from _disks(pool)
    yield from _management(pool)
    yield from _labels_and_taints(pool)


def _size(pool: NodePoolEntry) -> Iterator[Problem]:
    """A fixed size or limits; an initial size within them."""
    if pool.node_count is not None and pool.autoscaling is not None:
        yield Problem("nodeCount", f"{pool.node_count} is set, but so is autoscaling", "keep one of the two")
    if pool.node_count is not None and pool.initial_node_count is not None:
        yield Problem(
            "initialNodeCount",
            f"{pool.initial_node_count} is set, but nodeCount fixes the size",
            "remove initialNodeCount, or use autoscaling instead of nodeCount",
        )
    if pool.node_count is None and pool.autoscaling is None:
        yield Problem("nodeCount", "neither it nor autoscaling is set", "write how many nodes the pool has")
    if pool.autoscaling is None or pool.initial_node_count is None:
        return
    first = pool.initial_node_count * max(len(pool.zones), 1)
    least, most = pool.autoscaling.total_min_node_count, pool.autoscaling.total_max_node_count
    if not least <= first <= most:
        zones = f" in each of {len(pool.zones)} zones" if len(pool.zones) > 1 else ""
        yield Problem(
            "initialNodeCount",
            f"{pool.initial_node_count}{zones} is not between the limits of autoscaling, {least} and {most}",
            "write a number within the limits, or remove it",
        )


def _flex_start(pool: NodePoolEntry) -> Iterator[Problem]:
    """No fixed size, no repair; queued: from 0, wherever there is capacity.

    Source: https://cloud.google.com/kubernetes-engine/docs/concepts/dws#limitations
    """
    if not isinstance(pool.capacity, FlexStart):
        return
    if pool.node_count is not None:
        yield Problem(
            "nodeCount",
            f"{pool.node_count} is fixed, but flex-start nodes come and go",
            "write autoscaling: {totalMaxNodeCount: ...} instead",
        )
    if pool.management.auto_repair:
        yield Problem("management.autoRepair", "true, but flex-start has no repair", "remove it, or set it to false")
    if not pool.capacity.queued_provisioning:
        return
    if pool.autoscaling is not None and pool.autoscaling.total_min_node_count:
        yield Problem(
            "autoscaling.totalMinNodeCount",
            f"{pool.autoscaling.total_min_node_count}, but nodes of queued provisioning come only when asked for",
            "set it to 0",
        )
    if pool.initial_node_count:
        yield Problem(
            "initialNodeCount",
            f"{pool.initial_node_count}, but nodes of queued provisioning come only when asked for",
            "remove it",
        )
    if pool.autoscaling is not None and pool.autoscaling.location_policy != "ANY":
        yield Problem(
            "autoscaling.locationPolicy",
            f"{pool.autoscaling.location_policy}, but queued provisioning takes all nodes where they are",
            "set it to ANY, or remove it",
        )


def _compact(pool: NodePoolEntry) -> Iterator[Problem]:
    """One zone; not for queued provisioning; for flex-start on few machine types."""
    if not pool.compact_placement:
        return
    if len(pool.zones) > 1:
        listed = f"{', '.join(pool.zones)} are {len(pool.zones)}"
        yield Problem("zones", f"{listed}, but nodes stand close together in one zone only", "name exactly one zone")
    if not isinstance(pool.capacity, FlexStart):
        return
    if pool.capacity.queued_provisioning:
        yield Problem(
            "compactPlacement",
            "true, but queued provisioning takes nodes where they are",
            "remove it, or set capacity.queuedProvisioning to false",
        )
    elif not pool.machine_type.startswith(COMPACT_FLEX):
        yield Problem(
            "compactPlacement",
            f"true, but flex-start places {pool.machine_type} nowhere in particular",
            "remove it, or use A3 Ultra, A4 or H4D machines",
        )


def _accelerator(pool: NodePoolEntry) -> Iterator[Problem]:
    """The GPUs that are asked for are those of the machine, or can be attached to it."""
    machine, asked = machine_type(pool.machine_type), pool.accelerator
    if machine is None:
        if asked is not None and (asked.type is None or asked.count is None):
            yield Problem(
                "accelerator",
                f"type or count is missing, and {pool.machine_type} is not in the catalogue",
                "write accelerator: {type: ..., count: ...}",
            )
        return
    if machine.accelerator is not None:
        yield from _own_accelerator(pool, machine)
    elif asked is not None:
        yield from _attached_accelerator(pool, machine)


def _own_accelerator(pool: NodePoolEntry, machine: MachineType) -> Iterator[Problem]:
    asked = pool.accelerator
    if asked is None:
        return
    if asked.type not in (None, machine.accelerator):
        yield Problem(
            "accelerator.type",
            f"{asked.type}, but {machine.name} comes with {machine.accelerator}",
            f"write {machine.accelerator}, or remove it",
        )
    if asked.count not in (None, machine.gpus):
        yield Problem(
            "accelerator.count",
            f"{asked.count}, but {machine.name} comes with {machine.gpus}",
            f"write {machine.gpus}, or remove it",
        )


def _attached_accelerator(pool: NodePoolEntry, machine: MachineType) -> Iterator[Problem]:
    """N1 machines take GPUs, so many for so many vCPUs (Compute Engine, N1 + GPU machine types)."""
    asked = pool.accelerator
    if asked is None:
        return
    if machine.family != "n1":
        yield Problem("accelerator", f"set, but {machine.name} takes no GPUs", "remove it, or use a machine with GPUs")
        return
    if asked.type is None or asked.count is None:
        yield Problem(
            "accelerator",
            f"type or count is missing, and {machine.name} has none of its own",
            "write both, such as {type: nvidia-tesla-t4, count: 1}",
        )
        return
    if asked.type not in n1_accelerators():
        yield Problem(
            "accelerator.type",
            f"{asked.type} cannot be attached to {machine.name}",
            f"use one of {', '.join(n1_accelerators())}, or a machine type that comes with it",
        )
        return
    most = n1_accelerators()[asked.type].get(asked.count)
    if most is None:
        counts = ", ".join(str(count) for count in n1_accelerators()[asked.type])
        yield Problem("accelerator.count", f"{asked.count} {asked.type} is not offered", f"write one of {counts}")
    elif machine.cpus > most:
        enough = next((count for count, cpus in n1_accelerators()[asked.type].items() if machine.cpus <= cpus), None)
        yield Problem(
            "accelerator.count",
            f"{asked.count} {asked.type} go with at most {most} vCPUs, but {machine.name} has {machine.cpus}",
            f"write {enough}, or use a smaller machine type" if enough else "use a smaller machine type",
        )


def _disks(pool: NodePoolEntry) -> Iterator[Problem]:
    machine = machine_type(pool.machine_type)
    hyperdisk = pool.disk_type is None or pool.disk_type.startswith("hyperdisk-")
    if pool.machine_type.startswith(HYPERDISK_ONLY) and not hyperdisk:
        yield Problem(
            "diskType",
            f"{pool.disk_type}, but {pool.machine_type} boots from Hyperdisk only",
            "remove it, or write hyperdisk-balanced",
        )
    if not pool.local_ssd_count:
        return
    if pool.machine_type.startswith(NO_LOCAL_SSD):
        yield Problem("localSsdCount", f"{pool.local_ssd_count}, but {pool.machine_type} takes none", "remove it")
    elif machine is not None and machine.local_ssds and pool.local_ssd_count != machine.local_ssds:
        yield Problem(
            "localSsdCount",
            f"{pool.local_ssd_count}, but {machine.name} comes with {machine.local_ssds}",
            f"remove it, or write {machine.local_ssds}",
        )


def _management(pool: NodePoolEntry) -> Iterator[Problem]:
    """Clusters on a release channel, as all of this fleet are, upgrade and repair their nodes themselves.

    Source: https://cloud.google.com/kubernetes-engine/docs/how-to/node-auto-upgrades
    """
    if not pool.management.auto_upgrade:
        yield Problem(
            "management.autoUpgrade",
            "false, but the cluster is on a release channel, which upgrades its nodes",
            "remove it, and say when with the cluster's maintenance",
        )
    if pool.management.auto_repair is False and not isinstance(pool.capacity, FlexStart):
        yield Problem(
            "management.autoRepair",
            "false, but the cluster is on a release channel, which repairs its nodes",
            "remove it",
        )


def _labels_and_taints(pool: NodePoolEntry) -> Iterator[Problem]:
    """Each taint once, and nothing that GKE or Kubernetes sets itself."""
    seen: set[tuple[str, str]] = set()
    for index, taint in enumerate(pool.taints):
        if (taint.key, taint.effect) in seen:
            yield Problem(
                f"taints[{index}]",
                f"{taint.key} with effect {taint.effect} is listed twice",
                "list each pair of key and effect once",
            )
        seen.add((taint.key, taint.effect))
    for key in pool.labels:
        domain = key.rpartition("/")[0]
        if domain in ("kubernetes.io", "k8s.io") or domain.endswith((".kubernetes.io", ".k8s.io")):
            yield Problem(
                f"labels[{key}]", f"{key} is in a domain that Kubernetes keeps to itself", "use another domain"
            )


def is_closed(pool: NodePoolEntry) -> bool:
    """Whether the pool waits for its reservation to begin, and has no nodes until then."""
    return isinstance(pool.capacity, Calendar) and not pool.capacity.active
