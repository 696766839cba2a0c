"""What queues promise, against what node pools can ever hold.

Kueue never compares quota with nodes: what it admits beyond them waits as pending pods, and holds its quota meanwhile.
For GPUs and TPUs that is an error. For CPU and memory it is a warning, since many give these away freely to limit GPUs
alone.

Source: https://kueue.sigs.k8s.io/docs/concepts/cluster_queue/ (quota is a number that the administrator declares).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from kueue_admission.api.quotas import is_devices_in_bytes
from kueue_admission.kernel import suggest
from kueue_admission.kernel.if_known import if_known
from kueue_admission.kernel.problem import Problem, where_read
from kueue_admission.kernel.quantity import Quantity
from kueue_fleet.fleet_file.check.node_pools import path_on
from kueue_fleet.fleet_file.check.quota_amounts import most_by_flavor
from kueue_fleet.fleet_file.check.scope import Scope, entry_check
from kueue_fleet.fleet_file.model.clusters import ClusterEntry
from kueue_fleet.fleet_file.model.counted_requests import derived_resources
from kueue_fleet.fleet_file.model.entries import ClusterQueueEntry, CohortEntry, FlavorEntry
from kueue_fleet.fleet_file.model.flavor_nodes import shares_of
from kueue_fleet.fleet_file.model.resolved_pools import ResolvedNodePool
from kueue_fleet.fleet_file.rules.files import MORE_QUOTA_THAN_NODES
from kueue_fleet.fleet_file.rules.queues import (
    NO_NODES,
    NODES_OF_OTHERS,
    PROVISIONING_LIMIT,
    PROVISIONING_LIMIT_LOW,
    SHARED_NODES,
    TPU_SLICES,
    UNIT,
)
from kueue_fleet.gke.gpu_sharing import WHOLE
from kueue_fleet.gke.labels import ACCELERATOR_RESOURCES, GPU_RESOURCE, TPU_RESOURCE, accelerator_of

_COMPARED: Final = (*ACCELERATOR_RESOURCES, "cpu", "memory", "ephemeral-storage")
_GIB: Final = 1024**3
_MIB: Final = 1024**2
_WHOLE: Final = {"cpu": 1000, "memory": _GIB, "ephemeral-storage": _GIB}
_ENDLESS: Final = 10**9
_ORDERS: Final = 100
"""Times by which a share is too small to be meant."""
_LISTED: Final = 4

Promises = Mapping[str, Mapping[str, Mapping[str, int]]]
"""flavor → resource → queue or cohort → nominal quota; CPU in thousandths, all else in units."""


@entry_check("clusters")
def _cluster(scope: Scope, cluster: ClusterEntry) -> Iterator[Problem]:
    if cluster.platform == "Autopilot" or not cluster.runs_jobs:
        return
    promised_amounts = promises_on(scope, cluster.name)
    names = Counter(flavor.name for flavor in scope.fleet.flavors)
    flavors = [flavor for flavor in scope.fleet.flavors if flavor.name in promised_amounts and names[flavor.name] == 1]
    for flavor in flavors:
        yield from _one_flavor(scope, cluster, flavor, promised_amounts[flavor.name])
    yield from _shares(scope, cluster)
    yield from _whole_slices(scope, cluster, flavors, promised_amounts)
    yield from _shared_pools(scope, cluster, flavors, promised_amounts)
    yield from _auto_provisioning(scope, cluster, flavors, promised_amounts)


def promises_on(scope: Scope, cluster: str) -> Promises:
    """The nominal quotas of all queues and cohorts on `cluster`, those of flavors that are closed now too.

    Without those that are to be no limit, where nodes come for ProvisioningRequests alone: such a job waits for its
    nodes, and none of its pods is there before. Source:
    https://cloud.google.com/kubernetes-engine/docs/how-to/provisioningrequest (quotas of 1000000000).
    """
    fleet = scope.fleet
    amounts_by_cluster: dict[str, dict[str, dict[str, int]]] = {}
    pools_of = {flavor.name: fleet.flavor_nodes(flavor, cluster) for flavor in fleet.flavors}
    queued_names = {name for name, pools in pools_of.items() if pools and all(pool.queued for pool in pools)}
    entries: list[ClusterQueueEntry | CohortEntry] = [
        queue for queue in fleet.cluster_queues if cluster in fleet.clusters_of(queue)
    ]
    entries += [cohort for cohort in fleet.cohorts if cohort.resource_groups]
    for entry in entries:
        for group in entry.resource_groups:
            for flavor in group.flavors:
                for quota in flavor.resources if flavor.name in fleet.flavors_on(cluster) else ():
                    nominal = quota.on(cluster).nominal_quota
                    amount = nominal.counted(quota.name)
                    is_compared = quota.name in _COMPARED or _is_stated(scope, quota.name, pools_of[flavor.name])
                    is_compared &= not is_devices_in_bytes(quota.name, nominal)
                    if amount and is_compared and not (flavor.name in queued_names and is_endless(quota.name, amount)):
                        of_resource = amounts_by_cluster.setdefault(flavor.name, {}).setdefault(quota.name, {})
                        of_resource[entry.name] = of_resource.get(entry.name, 0) + amount
    return amounts_by_cluster


def _is_stated(scope: Scope, resource: str, pools: Sequence[ResolvedNodePool]) -> bool:
    """Whether the file says how much of the resource nodes have: of those outside GKE, all devices.

    `queues` speaks of GPUs that a queue misspells.
    """
    misspelt = suggest.nearest(resource, ACCELERATOR_RESOURCES, likeness=0.9) is not None
    of_nodes = "/" in resource and not misspelt and resource not in derived_resources(scope.fleet)
    stated = of_nodes or resource.startswith("hugepages-")
    return (
        stated
        and bool(pools)
        and all(pool.outside_gke and (of_nodes or pool.amount_on_node(resource)) for pool in pools)
    )


def is_endless(resource: str, amount: int) -> bool:
    """Whether a quota is to be no limit."""
    return amount >= _ENDLESS * _WHOLE.get(resource, 1)


def held_by(pools: Sequence[ResolvedNodePool], resource: str) -> int | None:
    """What pods may ever ask of all nodes of the pools; None if some size or machine is not known."""
    if any(not pool.sized or (resource == GPU_RESOURCE and not _shares_known(pool)) for pool in pools):
        return None
    if any(pool.machine is None for pool in pools):
        is_known = resource == GPU_RESOURCE and all(pool.machine or pool.accelerator for pool in pools)
        return sum(pool.full_nodes * pool.devices_per_node for pool in pools) if is_known else None
    return sum(pool.full_nodes * pool.allocatable.get(resource, 0) for pool in pools)


def _shares_known(pool: ResolvedNodePool) -> bool:
    """Whether the parts into which its GPUs are divided are in the table."""
    return if_known(lambda: pool.sharing.shares(pool.accelerator)) is not None


def _in_shares(pool: ResolvedNodePool) -> str:
    """The whole GPUs of a pool whose GPUs are shared, in words."""
    if pool.sharing == WHOLE:
        return ""
    return f" of {pool.gpus_per_node} {pool.accelerator} in {pool.shares_per_gpu} shares each"


@where_read
def _one_flavor(
    scope: Scope, cluster: ClusterEntry, flavor: FlavorEntry, promised_amounts: Mapping[str, Mapping[str, int]]
) -> Iterator[Problem]:
    pools = scope.fleet.flavor_nodes(flavor, cluster.name)
    if pools and all(pool.node_count == 0 and not pool.full_nodes for pool in pools):
        yield from _no_nodes(scope, cluster, flavor, pools, promised_amounts)
        return
    for resource, by_entry in promised_amounts.items() if pools else ():
        have, total = held_by(pools, resource), sum(by_entry.values())
        if have is None or total <= have:
            continue
        scarce = resource in ACCELERATOR_RESOURCES
        pool_names = ", ".join(f"{pool.name} {pool.full_nodes}{_in_shares(pool) if scarce else ''}" for pool in pools)
        more = "add nodes" if have or "/" not in resource else _where_none(pools, resource)
        yield MORE_QUOTA_THAN_NODES.at(
            scope.path(flavor),
            f"queues may use {amount_text(resource, total)} {resource} of it on {{cluster}} "
            f"({_entries(resource, by_entry)}), but its nodes hold {amount_text(resource, have)} (nodes: {pool_names})",
            f"lower nominalQuota to {amount_text(resource, have)} in all, or {more}",
            # What somebody else made may have nodes that the file does not tell of.
            "error" if scarce and not cluster.existing else "warning",
        ).on(cluster.name)


def _where_none(pools: Sequence[ResolvedNodePool], resource: str) -> str:
    """How nodes that have no GPUs or TPUs get them; of nodes outside GKE, the file says what they have."""
    if not all(pool.outside_gke for pool in pools):
        return f"use machines that have {resource}, or attach them to N1 machines"
    near = suggest.nearest(resource, {name for pool in pools for name in pool.allocatable}, likeness=0.9)
    return f"write {resource} for {near} in allocatable" if near else f"add nodes that have {resource}"


@where_read
def _no_nodes(
    scope: Scope,
    cluster: ClusterEntry,
    flavor: FlavorEntry,
    pools: Sequence[ResolvedNodePool],
    promised_amounts: Mapping[str, Mapping[str, int]],
) -> Iterator[Problem]:
    """Pools of fixed size 0, with the size that the quotas need."""
    pool = pools[0]
    totals = {resource: sum(by_entry.values()) for resource, by_entry in promised_amounts.items()}
    resource = next((name for name in ACCELERATOR_RESOURCES if name in totals), next(iter(totals)))
    in_zone = pool.amount_on_node(resource) * pool.zone_count
    entry = scope.fleet.node_pool(pool.name)
    at = f"{path_on(scope, entry, cluster.name)}.nodeCount" if entry is not None else scope.path(flavor)
    yield NO_NODES.at(
        at,
        f"is 0, but queues may use {amount_text(resource, totals[resource])} {resource} of flavor {flavor.name} on "
        f"{cluster.name} ({_entries(resource, promised_amounts[resource])})",
        f"write {-(-totals[resource] // in_zone)}, or autoscaling with a maximum instead, or lower nominalQuota to 0"
        if in_zone
        else f"use machines that have {resource}, or lower nominalQuota to 0",
        "error" if resource in ACCELERATOR_RESOURCES and not cluster.existing else "warning",
    )


@where_read
def _shares(scope: Scope, cluster: ClusterEntry) -> Iterator[Problem]:
    """CPU and memory that are less by orders than what the nodes of as many GPUs or TPU chips have: a wrong unit."""
    most = most_by_flavor(scope.fleet, cluster.name)
    for queue in scope.fleet.queues_on(cluster.name):
        for g, group in enumerate(queue.resource_groups):
            for quotas in group.flavors:
                flavor = scope.fleet.flavor(quotas.name)
                pools = scope.fleet.flavor_nodes(flavor, cluster.name) if flavor is not None else ()
                at = f"{scope.path(queue)}.resourceGroups[{g}].flavors[{quotas.name}]"
                amounts = {name: amount for (of, name), amount in most[queue.name].items() if of == quotas.name}
                for problem in _share(amounts, pools):
                    quota = next(resource for resource in quotas.resources if resource.name == problem.path)
                    own = quota.per_cluster.get(cluster.name)
                    where = "" if own is None or own.nominal_quota is None else f".perCluster[{cluster.name}]"
                    yield replace(problem, path=f"{at}.resources[{quota.name}]{where}.nominalQuota")


def _share(most: Mapping[str, Quantity], pools: Sequence[ResolvedNodePool]) -> Iterator[Problem]:
    """The problems of a flavor of a queue, with the resource as their path."""
    devices = next(
        (name for name in ACCELERATOR_RESOURCES if name in most and not is_devices_in_bytes(name, most[name])), None
    )
    if devices is None or any(pool.machine is None or not pool.amount_on_node(devices) for pool in pools):
        return
    count = min(most[devices].value, held_by(pools, devices) or most[devices].value)
    for resource in ("cpu", "memory"):
        shares = [count * pool.amount_on_node(resource) // pool.amount_on_node(devices) for pool in pools]
        amount = most[resource].counted(resource) if resource in most else 0
        # Less than a mebibyte has no unit; another rule warns of that.
        if shares and 0 < amount * _ORDERS < min(shares) and (resource != "memory" or amount >= _MIB):
            share = amount_text(resource, min(shares) // _WHOLE[resource] * _WHOLE[resource])
            yield UNIT.at(
                resource,
                f"{most[resource].plain} {resource} is less than a hundredth of what nodes with {count} {devices} "
                f"have, {share}, so that jobs that ask for as much as a node has leave most of these without use",
                f"check the unit; for all of them, write {share}",
            )


@where_read
def _whole_slices(
    scope: Scope, cluster: ClusterEntry, flavors: Sequence[FlavorEntry], promises: Promises
) -> Iterator[Problem]:
    """A job runs on whole TPU slices: quota for a part of one is never used, unless the cohort lends the rest.

    Source: https://cloud.google.com/kubernetes-engine/docs/concepts/tpus (atomicity).
    """
    cohorts = {queue.name: queue.cohort_name for queue in scope.fleet.cluster_queues}
    for flavor in flavors:
        sizes = {
            pool.slice_nodes * pool.accelerators_per_node
            for pool in scope.fleet.flavor_nodes(flavor, cluster.name)
            if pool.tpu_topology and pool.accelerators_per_node
        }
        for name, chips in promises[flavor.name].get(TPU_RESOURCE, {}).items() if len(sizes) == 1 else ():
            whole = min(sizes)
            if chips % whole and not cohorts.get(name):
                yield TPU_SLICES.at(
                    scope.path(flavor),
                    f"{name} may use {chips} {TPU_RESOURCE} of it on {{cluster}}, but a slice is {whole} chips, and "
                    "jobs run on whole slices",
                    f"write {max(chips // whole, 1) * whole}",
                ).on(cluster.name)


@where_read
def _shared_pools(
    scope: Scope, cluster: ClusterEntry, flavors: Sequence[FlavorEntry], promises: Promises
) -> Iterator[Problem]:
    """Several flavors on the same nodes: each fits, but all of them together may not."""
    fleet = scope.fleet
    pools_of = {flavor.name: fleet.flavor_nodes(flavor, cluster.name) for flavor in flavors}
    groups: list[tuple[set[str], set[str]]] = []
    for name, pools in pools_of.items():
        together, nodes = {name}, {pool.name for pool in pools}
        for group in [group for group in groups if group[1] & nodes]:
            groups.remove(group)
            together, nodes = together | group[0], nodes | group[1]
        groups.append((together, nodes))
    for together, nodes in groups:
        sharing = [flavor for flavor in flavors if flavor.name in together and _gpus(promises, flavor)]
        if len(sharing) < 2 or not nodes:
            continue
        machines_have = held_by(
            [pool for pool in fleet.node_pools_on(cluster.name) if pool.name in nodes], GPU_RESOURCE
        )
        if machines_have is None or any(
            _gpus(promises, flavor) > (held_by(pools_of[flavor.name], GPU_RESOURCE) or 0) for flavor in sharing
        ):
            continue
        total = sum(_gpus(promises, flavor) for flavor in sharing)
        if total > machines_have:
            names = ", ".join(flavor.name for flavor in sharing)
            by_labels = next((flavor for flavor in sharing if flavor.node_pool is None), sharing[0])
            yield SHARED_NODES.at(
                scope.path(by_labels),
                f"flavors {names} share nodes on {{cluster}}, and queues may use {total} {GPU_RESOURCE} of them, "
                f"but the nodes hold {machines_have}",
                "give each flavor a node pool of its own, or lower nominalQuota",
            ).on(cluster.name)
            continue
        yield from _by_labels(scope, cluster, sharing, pools_of)


def _gpus(promises: Promises, flavor: FlavorEntry) -> int:
    """The GPUs that queues may use of a flavor."""
    return sum(promises[flavor.name].get(GPU_RESOURCE, {}).values())


@where_read
def _by_labels(
    scope: Scope,
    cluster: ClusterEntry,
    sharing: Sequence[FlavorEntry],
    pools_of: Mapping[str, Sequence[ResolvedNodePool]],
) -> Iterator[Problem]:
    """A flavor by labels leads to nodes that another flavor counts as its own: its jobs can take them."""
    for flavor in sharing:
        mine = {pool.name for pool in pools_of[flavor.name]}
        others = [
            other for other in sharing if other is not flavor and {pool.name for pool in pools_of[other.name]} < mine
        ]
        if flavor.node_pool is None and others:
            flavor_names = ", ".join(other.name for other in others)
            yield NODES_OF_OTHERS.at(
                f"{scope.path(flavor)}.nodeLabels",
                f"lead on {{cluster}} to the nodes of {flavor_names} too, so that its jobs can take nodes that those "
                "flavors' quota counts",
                "write nodePool instead of nodeLabels, or add labels that only its own nodes have",
            ).on(cluster.name)


@where_read
def _auto_provisioning(
    scope: Scope, cluster: ClusterEntry, flavors: Sequence[FlavorEntry], promises: Promises
) -> Iterator[Problem]:
    """Limits of node auto-provisioning count all nodes of the cluster, and whole GPUs.

    Source: GKE's own cluster-autoscaler, processors for custom resources (2026: ToPhysicalGPUCount).
    """
    limits = cluster.node_auto_provisioning
    if limits is None:
        return
    without_pools = [flavor for flavor in flavors if not scope.fleet.flavor_nodes(flavor, cluster.name)]
    counts: dict[str, int] = {}
    for flavor in flavors:
        pools = scope.fleet.flavor_nodes(flavor, cluster.name)
        kinds = {pool.accelerator for pool in pools} if pools else {accelerator_of(flavor.node_labels)}
        promised_amount = sum(
            sum(promises[flavor.name].get(resource, {}).values()) for resource in ACCELERATOR_RESOURCES
        )
        for kind in kinds - {None}:
            counts[kind or ""] = counts.get(kind or "", 0) + -(-promised_amount // shares_of(flavor, pools))
    relied_on = {accelerator_of(flavor.node_labels) for flavor in without_pools}
    path = f"{scope.path(cluster)}.nodeAutoProvisioning.resourceLimits"
    for kind, count in counts.items():
        limit = limits.limit(kind)
        if kind in relied_on and limit is not None and count > limit:
            yield PROVISIONING_LIMIT.at(
                path,
                f"{kind} {limit}, but queues may use {count}",
                f"set its maximum to {count}, or lower nominalQuota",
            )
    for resource, unit, name in (("cpu", 1000, "cpu"), ("memory", _GIB, "memory")):
        total = sum(sum(promises[flavor.name].get(resource, {}).values()) for flavor in flavors)
        limit = limits.limit(name)
        if without_pools and limit is not None and total > limit * unit:
            yield PROVISIONING_LIMIT_LOW.at(
                path,
                f"{name} {limit}, but queues may use {amount_text(resource, total)}",
                "raise its maximum, or lower nominalQuota",
            )


def _entries(resource: str, by_entry: Mapping[str, int]) -> str:
    entry_texts = [f"{name} {amount_text(resource, amount)}" for name, amount in list(by_entry.items())[:_LISTED]]
    more = len(by_entry) - _LISTED
    return ", ".join(entry_texts) + (f" and {more} more" if more > 0 else "")


def amount_text(resource: str, amount: int) -> str:
    """An amount in thousandths of CPUs, bytes or pieces, as a file has it."""
    if resource == "cpu":
        return str(amount // 1000) if amount % 1000 == 0 else f"{amount}m"
    return str(amount) if "/" in resource else f"{amount // _GIB}Gi"
