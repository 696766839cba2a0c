"""Rules about money: how many GPUs a program may ever ask for, and what is paid for without being used.

The numbers are guards against a slip of the hand, not budgets; set them to what you mean to pay.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from kueue_admission.kernel.if_known import if_known
from kueue_admission.kernel.unknown import is_known
from kueue_fleet.gke.gpu_sharing import GpuSharing
from kueue_fleet.gke.labels import ACCELERATOR, GPU_RESOURCE
from kueue_fleet.gke.machines import machine_type
from kueue_fleet.google.resource_types import NODE_POOL
from kueue_fleet_policies.estate import ClusterView, Estate, objects_by_name
from kueue_fleet_policies.kueue_queues import Finding, dispatches, quotas_of
from kueue_fleet_policies.pool import gpus_of, max_nodes, view_of
from kueue_fleet_policies.resource import Resource
from kueue_fleet_policies.rows import rules_of
from kueue_fleet_policies.rule import Breach, Settings
from kueue_fleet_policies.values import number

_MACHINES: Final = (
    ("machineType", "guestAccelerators.count"),
    ("gceSetup.machineType", "gceSetup.acceleratorConfigs.coreCount"),
    ("acceleratorType", ""),
)
"""Of what type a machine is and how many GPUs are attached to it: of Compute Engine, of a notebook, of a TPU."""


def _pool(pool: Resource, settings: Settings) -> Iterator[Breach]:
    view = view_of(pool)
    nodes, gpus, most = max_nodes(view), gpus_of(view), settings.whole("maxGpus")
    if nodes is not None and gpus and nodes * gpus > most:
        yield Breach(
            "autoscaling" if pool.get("autoscaling") is not None else "nodeCount",
            f"allows {nodes} nodes with {gpus} GPUs each: {nodes * gpus} GPUs, more than maxGpus, {most}",
            "lower the limit, or raise the setting maxGpus",
        )


def _gpus_of_cluster(cluster: ClusterView) -> float:
    """The most GPUs that its pools and its auto-provisioning can have, as far as it is known."""
    by_kind: dict[str, float] = {}
    for pool in cluster.pools:
        nodes, gpus = pool.max_nodes, gpus_of(pool.view)
        if nodes and gpus:
            kind = pool.accelerator or "gpu"
            by_kind[kind] = by_kind.get(kind, 0) + nodes * gpus
    if cluster.auto_provisioning is True:
        for kind, limit in cluster.limits.items():
            if "nvidia" in kind:
                by_kind[kind] = max(by_kind.get(kind, 0), limit)
    return sum(by_kind.values())


def _stack(estate: Estate, settings: Settings) -> Iterator[Finding]:
    counts = {cluster.resource.name: _gpus_of_cluster(cluster) for cluster in estate.clusters}
    total, most = sum(counts.values()), settings.whole("maxGpus")
    if total > most:
        kinds = ", ".join(f"{name} {count:.0f}" for name, count in sorted(counts.items()) if count)
        yield (
            None,
            Breach(
                "",
                f"node pools and auto-provisioning may grow to {total:.0f} GPUs ({kinds}), more than maxGpus, {most}",
                "lower the limits of pools, or raise the setting maxGpus",
            ),
        )


def _quota(estate: Estate, settings: Settings) -> Iterator[Finding]:
    most = settings.whole("maxGpus")
    for objects in estate.providers.values():
        flavors = objects_by_name(objects.get("ResourceFlavor", ()))
        for queue in objects.get("ClusterQueue", ()):
            if dispatches(queue, objects):
                continue
            given = [
                (number(quota), _shares(flavors.get(flavor)))
                for _, flavor, kind, quota in quotas_of(queue)
                if kind == GPU_RESOURCE
            ]
            total = sum(amount / shares for amount, shares in given if amount is not None)
            if total > most:
                yield (
                    queue,
                    Breach(
                        "spec.resourceGroups",
                        f"promise {total:.0f} GPUs, more than maxGpus, {most}",
                        "lower nominalQuota, or raise the setting maxGpus",
                    ),
                )


def _shares(flavor: Resource | None) -> int:
    """Units of quota for one whole GPU of the flavor; 1 where that is not known."""
    labels = None if flavor is None else flavor.get("spec.nodeLabels")
    known = {key: value for key, value in labels.items() if is_known(value)} if isinstance(labels, Mapping) else {}
    return if_known(lambda: GpuSharing.of_labels(known).shares(known.get(ACCELERATOR))) or 1


def _commitment(commitment: Resource, settings: Settings) -> Iterator[Breach]:
    name = commitment.get("name")
    if isinstance(name, str) and name not in settings.names("commitments"):
        plan = commitment.get("plan")
        how_long = {"TWELVE_MONTH": "one year", "THIRTY_SIX_MONTH": "three years"}.get(str(plan), "its whole term")
        yield Breach(
            "name",
            f"{name} binds you to pay for {how_long}, used or not, and is not in the setting commitments",
            "add its name there once the cost is approved",
        )


def _idle(resource: Resource, _: Settings) -> Iterator[Breach]:
    yield from _idle_nodes(resource) if resource.type == NODE_POOL else _idle_machine(resource)


def _idle_nodes(pool: Resource) -> Iterator[Breach]:
    accelerator = if_known(lambda: view_of(pool).accelerator)
    reserved = pool.get("nodeConfig.reservationAffinity.consumeReservationType")
    if not accelerator or reserved not in (None, "NO_RESERVATION"):
        return
    for path in ("nodeCount", "autoscaling.totalMinNodeCount", "autoscaling.minNodeCount"):
        if count := number(pool.get(path)):
            yield Breach(
                path,
                f"is {count:.0f}: nodes with {accelerator} that are paid for without a job, and without a reservation",
                "set autoscaling with totalMinNodeCount 0",
            )


def _idle_machine(machine: Resource) -> Iterator[Breach]:
    """Of a machine outside of clusters, which runs until somebody stops it."""
    if machine.get("reservationAffinity.type") == "SPECIFIC_RESERVATION" or not (
        machine.lacks("scheduling.maxRunDuration") and machine.get("desiredStatus") in (None, "RUNNING")
    ):
        return
    for path, attached in _MACHINES:
        name, count = machine.get(path), number(machine.get(attached)) if attached else 0
        kind = machine_type(name.rpartition("/")[2]) if isinstance(name, str) else None
        if count or (kind and kind.accelerator) or (name is not None and not attached):
            yield Breach(
                path,
                f"is {name}: a machine with GPUs or TPUs that is paid for without a job, and without a reservation",
                "run jobs on a node pool whose totalMinNodeCount is 0, or stop it by scheduling.maxRunDuration",
            )


RULES: Final = rules_of(
    "Spend",
    {
        "spend-pool-gpus": _pool,
        "spend-stack-gpus": _stack,
        "spend-quota": _quota,
        "spend-commitments": _commitment,
        "spend-idle-gpus": _idle,
    },
)
"""The rules of this module."""
