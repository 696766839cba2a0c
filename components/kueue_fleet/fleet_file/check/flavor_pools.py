"""Flavors and the nodes behind them, on Standard clusters.

A flavor whose labels no node has, or whose nodes have a taint that its pods do not tolerate, leaves admitted jobs
pending: Kueue counts quota and does not look at nodes. On Autopilot clusters the nodes are GKE's to make.

Source of what auto-provisioning makes nodes for:
https://cloud.google.com/kubernetes-engine/docs/concepts/node-auto-provisioning
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from kueue_admission.api.taints import tolerates
from kueue_admission.kernel import suggest
from kueue_admission.kernel.problem import Problem, where_read
from kueue_fleet.fleet_file.check.scope import Scope, entry_check
from kueue_fleet.fleet_file.model.clusters import ClusterEntry
from kueue_fleet.fleet_file.model.entries import FlavorEntry
from kueue_fleet.fleet_file.model.flavor_nodes import leads_to
from kueue_fleet.fleet_file.model.node_pools import NodePoolEntry
from kueue_fleet.fleet_file.model.resolved_pools import ResolvedNodePool, resolve_pool, system_pool_entry
from kueue_fleet.fleet_file.rules.clusters import NOT_OFFERED, UNKNOWN_MACHINE
from kueue_fleet.fleet_file.rules.files import NOT_THERE, UNUSED
from kueue_fleet.fleet_file.rules.queues import (
    AUTOPILOT_LABELS,
    CUSTOM_LABEL,
    FLAVOR_WITHOUT_NODES,
    MIXED_SHARES,
    NO_SUCH_TAINT,
    NOT_TOLERATED,
    UNKNOWN_LABEL_VALUE,
)
from kueue_fleet.gke.gpu_sharing import GpuSharing
from kueue_fleet.gke.labels import (
    ACCELERATOR,
    FLEX_START,
    GPU_SHARING_STRATEGY,
    MAX_SHARED_CLIENTS,
    NODE_LABELS,
    NODE_POOL,
    SPOT,
    SYSTEM_LABEL,
    TOLERATED_BY_GKE,
    TPU_ACCELERATOR,
    ZONE,
    accelerator_of,
)
from kueue_fleet.gke.machines import gpus, tpus
from kueue_fleet.gke.zones import is_elsewhere, regions_with, zones_of


@entry_check("flavors")
def _known_pool(scope: Scope, flavor: FlavorEntry) -> Iterator[Problem]:
    if flavor.node_pool is not None:
        yield from scope.unknown("nodePools", flavor.node_pool, f"{scope.path(flavor)}.nodePool")


@entry_check("flavors")
def _each_cluster(scope: Scope, flavor: FlavorEntry) -> Iterator[Problem]:
    for name in scope.fleet.clusters_of(flavor):
        if name in scope.fleet.cluster_names:
            yield from _flavor(scope, flavor, scope.fleet.cluster(name))


@entry_check("nodePools")
def _use_problems(scope: Scope, pool: NodePoolEntry) -> Iterator[Problem]:
    fleet = scope.fleet
    where = [name for name in fleet.clusters_of(pool) if name in fleet.job_clusters]
    is_used = any(
        resolved_pool.name == pool.name
        for name in where
        for flavor in fleet.flavors
        if name in fleet.clusters_of(flavor)
        for resolved_pool in fleet.flavor_nodes(flavor, name)
    )
    if where and not is_used:
        yield UNUSED.at(
            scope.path(pool),
            "no flavor leads to this pool, so no job of a queue runs there",
            f"add a flavor with nodePool: {pool.name}, or remove the pool",
        )


@where_read
def _flavor(scope: Scope, flavor: FlavorEntry, cluster: ClusterEntry) -> Iterator[Problem]:
    fleet, path = scope.fleet, scope.path(flavor)
    pools = fleet.flavor_nodes(flavor, cluster.name)
    if flavor.compute_class is not None:
        # `check.compute_classes` says what nodes GKE makes.
        return
    if flavor.node_pool is not None:
        if not pools and fleet.node_pool(flavor.node_pool) is not None:
            yield NOT_THERE.at(
                f"{path}.nodePool",
                f"{flavor.node_pool} is not on {{cluster}}, where the flavor is",
                f"add {{cluster}} to nodePools[{flavor.node_pool}].clusters, or leave {{cluster}} out of the flavor's",
            ).on(cluster.name)
        return
    if not pools and cluster.runs_jobs and not cluster.outside_gke:
        yield from _offered(path, flavor, cluster)
        yield from _shared_gpus(path, flavor, cluster)
        yield from _labels_of_autopilot(path, flavor, cluster)
    # Pools of an existing cluster whose nodes no part of this file describes are somebody else's.
    has_nodes = bool(fleet.node_pools) or cluster.node_auto_provisioning is not None or not cluster.existing
    if cluster.outside_gke:
        has_nodes = bool(cluster.nodes)
    if cluster.platform == "Autopilot" or not cluster.runs_jobs or not has_nodes:
        return
    if pools:
        yield from _taints(path, flavor, pools)
        yield from _shares(path, flavor, pools)
        if all(pool.closed for pool in pools):
            yield FLAVOR_WITHOUT_NODES.at(
                f"{path}.nodeLabels",
                f"lead to {', '.join(pool.name for pool in pools)} only, which waits for its calendar reservation, and "
                "the quota of a flavor by hand stays open meanwhile",
                f"write nodePool: {pools[0].name} instead of nodeLabels, which closes it until then",
            )
    elif cluster.node_auto_provisioning is None:
        yield _no_pool(scope, flavor, cluster)
    else:
        yield from _auto_provisioned(path, flavor, cluster)


def misspelt_label(at: str, key: str) -> Iterator[Problem]:
    """The warning about a label that is near one that GKE gives nodes."""
    return suggest.misspelt(at, key, NODE_LABELS, "is a label that GKE gives no node", likeness=0.95)


def unknown_accelerator(at: str, key: str, value: str) -> Problem | None:
    """The warning about a kind of GPU or TPU that GKE is not known to have; None for other labels too."""
    known_accelerators = {ACCELERATOR: gpus, TPU_ACCELERATOR: tpus}.get(key)
    if known_accelerators is None or value in known_accelerators():
        return None
    return UNKNOWN_MACHINE.at(
        at,
        f"{value} is not a known accelerator of GKE",
        suggest.instead(value, sorted(known_accelerators()), "accelerators"),
    )


@where_read
def _labels_of_autopilot(path: str, flavor: FlavorEntry, cluster: ClusterEntry) -> Iterator[Problem]:
    """Autopilot makes nodes with labels that GKE knows, in the cluster's region, in node pools that it names itself.

    Source: https://cloud.google.com/kubernetes-engine/docs/concepts/autopilot-overview,
    https://cloud.google.com/kubernetes-engine/docs/how-to/autopilot-spot-pods
    """
    for key, value in flavor.node_labels.items() if cluster.platform == "Autopilot" else ():
        at = f"{path}.nodeLabels[{key}]"
        leave = "leave {cluster} out of the flavor's clusters"
        yield from misspelt_label(at, key)
        if key == NODE_POOL:
            yield AUTOPILOT_LABELS.at(
                at,
                f"{value} is given, but on {{cluster}} Autopilot makes and names the node pools itself, so pods of "
                "this flavor never start there",
                f"select nodes by another label, such as {ACCELERATOR}, or {leave}",
            ).on(cluster.name)
        elif key in (SPOT, FLEX_START) and value != "true":
            yield UNKNOWN_LABEL_VALUE.at(at, f'"{value}" is a value that GKE gives no node', 'write "true"')
        elif key == ZONE and is_elsewhere(value, cluster.region):
            wrong = f"{value} is not in {cluster.region}, the region of {{cluster}}"
            yield AUTOPILOT_LABELS.at(at, wrong, f"name a zone there, or {leave}").on(cluster.name)
        else:
            # Jobs may tolerate it themselves.
            yield from (replace(problem, severity="warning") for problem in _separated(at, flavor, key, value))


@where_read
def _offered(path: str, flavor: FlavorEntry, cluster: ClusterEntry) -> Iterator[Problem]:
    """The kind of GPU or TPU exists, and is offered in the cluster's region, as far as known."""
    key = TPU_ACCELERATOR if TPU_ACCELERATOR in flavor.node_labels else ACCELERATOR
    accelerator = flavor.node_labels.get(key)
    at = f"{path}.nodeLabels[{key}]"
    if accelerator is None:
        return
    if (unknown := unknown_accelerator(at, key, accelerator)) is not None:
        yield unknown
        return
    regions = regions_with(accelerator)
    if regions is not None and cluster.region not in regions and zones_of(cluster.region):
        yield NOT_OFFERED.at(
            at,
            f"{accelerator} is not known to be offered in {cluster.region}, the region of {{cluster}}",
            f"use one of {', '.join(regions[: suggest.LISTED])}, or leave {{cluster}} out of the flavor's clusters",
        ).on(cluster.name)


@where_read
def _shared_gpus(path: str, flavor: FlavorEntry, cluster: ClusterEntry) -> Iterator[Problem]:
    """Shares of GPUs that GKE makes, where it makes the nodes by itself.

    Source: https://cloud.google.com/kubernetes-engine/docs/concepts/timesharing-gpus.
    """
    labels = flavor.node_labels
    for fault in GpuSharing.of_labels(labels).faults(accelerator_of(labels), auto_provisioned=True):
        yield UNKNOWN_LABEL_VALUE.at(f"{path}.nodeLabels[{fault.label}]", fault.wrong, fault.fix, "error")
    labels_given = [key for key in (GPU_SHARING_STRATEGY, MAX_SHARED_CLIENTS) if key in labels]
    if cluster.platform == "Autopilot" and len(labels_given) == 1:
        yield AUTOPILOT_LABELS.at(
            f"{path}.nodeLabels[{labels_given[0]}]",
            f"is given alone, but Autopilot refuses pods that select only one of {GPU_SHARING_STRATEGY} and "
            f"{MAX_SHARED_CLIENTS}",
            "add the other",
        )


@where_read
def _shares(path: str, flavor: FlavorEntry, pools: Sequence[ResolvedNodePool]) -> Iterator[Problem]:
    """The quota of a flavor counts devices, which are whole GPUs on some nodes and shares on others."""
    shares = {pool.shares_per_gpu: pool.name for pool in pools if pool.gpus_per_node}
    if len(shares) > 1:
        names = ", ".join(f"{name} {count}" for count, name in sorted(shares.items()))
        yield MIXED_SHARES.at(
            f"{path}.nodeLabels",
            f"lead to nodes whose GPUs have different numbers of shares ({names}), so that one unit of quota is not "
            "always the same",
            "write a flavor with nodePool for each",
        )


def _no_pool(scope: Scope, flavor: FlavorEntry, cluster: ClusterEntry) -> Problem:
    """The problem of labels that no pool has, with the pool that comes closest."""
    here = scope.fleet.nodes_on(cluster.name)
    made = not cluster.outside_gke and not cluster.existing
    if made and flavor.node_labels and leads_to(flavor, resolve_pool(system_pool_entry(cluster), cluster)):
        return FLAVOR_WITHOUT_NODES.at(
            f"{scope.path(flavor)}.nodeLabels",
            "lead to the system pool of {cluster}, which is for Kueue and the like",
            "add a node pool for jobs",
        ).on(cluster.name)
    if not here:
        return FLAVOR_WITHOUT_NODES.at(
            scope.path(flavor),
            "there are no node pools on {cluster}, and GKE makes none there",
            "add a node pool, or nodeAutoProvisioning to the cluster",
            # Something else may make pools where this file has none at all.
            "error" if scope.fleet.node_pools else "warning",
        ).on(cluster.name)
    nearest = max(
        here,
        key=lambda pool: (
            sum(pool.labels.get(k) == v for k, v in flavor.node_labels.items()),
            pool.name == flavor.name,
            len(flavor.node_labels.keys() & pool.labels.keys()),
        ),
    )
    key, value = next(
        ((k, v) for k, v in flavor.node_labels.items() if nearest.labels.get(k) != v),
        next(iter(flavor.node_labels.items())),
    )
    own = nearest.labels.get(key)
    kind, fix = "node pool", f"write nodePool: {nearest.name} instead of nodeLabels, or add the label to a pool"
    if nearest.outside_gke:
        kind, fix = "kind of nodes", f"correct it, or add the label to nodes of {cluster.name}"
    return FLAVOR_WITHOUT_NODES.at(
        f"{scope.path(flavor)}.nodeLabels[{key}]",
        f'no {kind} of {{cluster}} has the label {key}="{value}" beside the others; '
        + (f'{nearest.name} has "{own}"' if own is not None else f"{nearest.name} does not have it"),
        fix,
    ).on(cluster.name)


@where_read
def _taints(path: str, flavor: FlavorEntry, pools: Sequence[ResolvedNodePool]) -> Iterator[Problem]:
    """Taints of the nodes are tolerated, or declared so that Kueue asks the jobs for it."""
    for pool in pools:
        for taint in pool.taints:
            by_gke = taint.key in TOLERATED_BY_GKE and not pool.outside_gke
            is_known = taint.effect == "PreferNoSchedule" or by_gke or taint in flavor.node_taints
            if not is_known and not any(tolerates(one, taint, compares=False) for one in flavor.tolerations):
                of, instead = "pool ", f"write nodePool: {pool.name} instead of nodeLabels, or "
                if pool.outside_gke:
                    of = instead = ""
                yield NOT_TOLERATED.at(
                    f"{path}.tolerations",
                    f"nodes of {of}{pool.name} have the taint {taint.key}={taint.value}:{taint.effect}, "
                    "which admitted pods need not tolerate",
                    f"{instead}add a toleration, or the taint to nodeTaints so that only jobs that tolerate it come "
                    "here",
                )
    for index, taint in enumerate(flavor.node_taints):
        if not any(taint in pool.taints for pool in pools):
            alike = next((one for pool in pools for one in pool.taints if one.key == taint.key), None)
            yield NO_SUCH_TAINT.at(
                f"{path}.nodeTaints[{index}]",
                f"{taint.key}={taint.value}:{taint.effect} is a taint that no node of the flavor has"
                + (f"; theirs is {alike.key}={alike.value}:{alike.effect}" if alike else ""),
                "write what the nodes have, or remove it",
            )


@where_read
def _auto_provisioned(path: str, flavor: FlavorEntry, cluster: ClusterEntry) -> Iterator[Problem]:
    """Nodes that GKE can make: a kind of GPU within the limits, and own labels with the taint of the same name."""
    provisioning = cluster.node_auto_provisioning
    accelerator = accelerator_of(flavor.node_labels)
    key = TPU_ACCELERATOR if TPU_ACCELERATOR in flavor.node_labels else ACCELERATOR
    if accelerator is not None and provisioning is not None and not provisioning.limit(accelerator):
        yield FLAVOR_WITHOUT_NODES.at(
            f"{path}.nodeLabels[{key}]",
            f"there is no pool with these labels on {{cluster}}, and GKE makes no nodes with {accelerator} there",
            "add it to nodeAutoProvisioning.resourceLimits of {cluster}, or add a node pool",
        ).on(cluster.name)
    for key, value in flavor.node_labels.items():
        if key == NODE_POOL:
            yield FLAVOR_WITHOUT_NODES.at(
                f"{path}.nodeLabels[{key}]",
                f"there is no node pool {value} on {{cluster}}",
                "name a node pool of this file with nodePool, or remove the label",
            ).on(cluster.name)
        else:
            yield from _separated(f"{path}.nodeLabels[{key}]", flavor, key, value)


def _separated(at: str, flavor: FlavorEntry, key: str, value: str) -> Iterator[Problem]:
    """GKE makes nodes with a custom label for pods that tolerate the taint of the same name only.

    Source: https://cloud.google.com/kubernetes-engine/docs/how-to/workload-separation
    """
    if not SYSTEM_LABEL.search(key) and not _separates(flavor, key, value):
        yield CUSTOM_LABEL.at(
            at,
            f'"{value}" is a custom label, with which GKE makes nodes only for pods that tolerate the taint of the '
            "same key and value",
            f"add the toleration {{key: {key}, operator: Equal, value: {value}, effect: NoSchedule}}",
        )


def _separates(flavor: FlavorEntry, key: str, value: str) -> bool:
    return any(one.key == key and (one.operator == "Exists" or one.value == value) for one in flavor.tolerations) or (
        any(taint.key == key and taint.value == value for taint in flavor.node_taints)
    )
