"""Rules about flavors and the nodes they stand for.

Problems that no error reports: a flavor whose labels no node will ever have, pods that the nodes' taints keep away,
quota for nodes that cannot exist, a queued pool without the check that asks for its nodes. Flavors of a manager, whose
jobs run elsewhere, need no nodes. Of what is not known, nothing is said.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from kueue_admission.api.taints import tolerates
from kueue_admission.kernel import Quantity
from kueue_admission.kernel.names import PROVISIONING_CONTROLLER
from kueue_admission.kernel.unknown import UNKNOWN, is_known
from kueue_admission.read.printed_pods import PrintedToleration
from kueue_fleet.gke.labels import ACCELERATOR_RESOURCES, NODE_POOL, NodeTaint, accelerator_of
from kueue_fleet_policies.estate import ClusterView, Estate, object_name, objects_by_name
from kueue_fleet_policies.kueue_queues import Finding, checks_of, dispatches, quotas_of
from kueue_fleet_policies.pool import Pool, gpus_of
from kueue_fleet_policies.resource import Resource
from kueue_fleet_policies.rows import rules_of
from kueue_fleet_policies.rule import Breach, Settings
from kueue_fleet_policies.values import entries, items


def _labels(flavor: Resource) -> Mapping[str, Any] | None:
    """The node labels of a flavor; None if they are not known."""
    labels = flavor.get("spec.nodeLabels")
    if labels is UNKNOWN:
        return None
    return labels if isinstance(labels, Mapping) else {}


def _used_here(cluster: ClusterView, flavor: str) -> bool:
    """Whether a queue of the cluster gives out quota of the flavor for jobs that run in it."""
    queues = [queue for queue in cluster.of_kind("ClusterQueue") if not dispatches(queue, cluster.objects)]
    return any(name == flavor for queue in queues for _, name, _, _ in quotas_of(queue))


def _auto_provisioned(cluster: ClusterView, labels: Mapping[str, Any]) -> bool | None:
    """Whether node auto-provisioning makes nodes with these labels; None if that cannot be told."""
    if cluster.auto_provisioning is not True:
        return None if cluster.auto_provisioning is UNKNOWN else False
    if NODE_POOL in labels:
        return False
    accelerator = accelerator_of(labels)
    limits = cluster.resource.get("clusterAutoscaling.resourceLimits")
    if accelerator is UNKNOWN or limits is UNKNOWN:
        return None
    return accelerator is None or cluster.limits.get(str(accelerator), 0) > 0


def _flavors(cluster: ClusterView) -> Iterator[tuple[Resource, str, Mapping[str, Any]]]:
    """Flavors of a Standard cluster that jobs of this cluster use, with their labels."""
    if not cluster.resource.standard or not (cluster.pools or cluster.auto_provisioning is True):
        return
    for name, flavor in objects_by_name(cluster.of_kind("ResourceFlavor")).items():
        labels = _labels(flavor)
        if labels is not None and _used_here(cluster, name):
            yield flavor, name, labels


def _has_nodes(estate: Estate, _: Settings) -> Iterator[Finding]:
    for cluster in estate.clusters:
        for flavor, name, labels in _flavors(cluster):
            matches = [pool.has_labels(labels) for pool in cluster.pools]
            if any(match is not False for match in matches) or _auto_provisioned(cluster, labels) is not False:
                continue
            pairs = ", ".join(f"{key}={value}" for key, value in labels.items())
            yield (
                flavor,
                Breach(
                    "spec.nodeLabels",
                    f"{pairs}: no node pool of cluster {_title(cluster)} has these, so jobs on {name} stay pending",
                    f"use the labels of one of {_titles(cluster.pools)}, or add a pool",
                ),
            )


def _title(cluster: ClusterView) -> str:
    name = cluster.resource.get("name")
    return name if isinstance(name, str) else cluster.resource.name


def _titles(pools: tuple[Pool, ...]) -> str:
    return ", ".join(sorted(pool.title for pool in pools)) or "none"


def _tolerated(taint: NodeTaint, flavor: Resource) -> bool:
    """Whether pods that Kueue admits on the flavor, or that have to tolerate its taints, tolerate this one."""
    tolerations = flavor.get("spec.tolerations")
    own_taints = flavor.get("spec.nodeTaints")
    if tolerations is UNKNOWN or own_taints is UNKNOWN:
        return True
    if any(tolerates(PrintedToleration.of(entries(one)), taint, compares=False) for one in items(tolerations)):
        return True
    return any(own.get("key") == taint.key for own in map(entries, items(own_taints)))


def _tolerates_nodes(estate: Estate, _: Settings) -> Iterator[Finding]:
    for cluster in estate.clusters:
        for flavor, name, labels in _flavors(cluster):
            matching = [pool for pool in cluster.pools if pool.has_labels(labels) is True]
            refused = [(pool, taint) for pool in matching for taint in pool.taints if not _tolerated(taint, flavor)]
            if matching and len({pool.resource.urn for pool, _ in refused}) == len(matching):
                pool, taint = refused[0]
                taint_text = f"{taint.key}={taint.value}:{taint.effect}"
                yield (
                    flavor,
                    Breach(
                        "spec.tolerations",
                        f"do not cover the taint {taint_text} of pool {pool.title}, so jobs on {name} stay pending",
                        "add a toleration for it",
                    ),
                )


def _capacity(cluster: ClusterView, labels: Mapping[str, Any], resource: str) -> float | None:
    """The most of a resource that nodes of a flavor can offer; None if that cannot be told."""
    total, matching = 0.0, 0
    for pool in cluster.pools:
        match = pool.has_labels(labels)
        if match is False:
            continue
        matching += 1
        offered = pool.capacity(resource)
        if match is None or offered is None:
            return None
        total += offered
    automatic = _auto_provisioned(cluster, labels)
    if automatic is False:
        # Without any nodes it is the flavor that is wrong, see kueue-flavor-has-nodes.
        return total if matching else None
    accelerator = accelerator_of(labels)
    if automatic is None or resource not in ACCELERATOR_RESOURCES or not isinstance(accelerator, str):
        return None
    return max(total, cluster.limits[accelerator])


def _amount(value: Any) -> Quantity | None:
    if value is None or not is_known(value):
        return None
    try:
        return Quantity(int(value) if isinstance(value, float) and value.is_integer() else str(value))
    except ValueError:
        return None


def _within_capacity(estate: Estate, settings: Settings) -> Iterator[Finding]:
    for cluster in estate.clusters:
        for flavor, name, labels in _flavors(cluster):
            for resource in settings.names("resources"):
                queues = [queue for queue in cluster.of_kind("ClusterQueue") if not dispatches(queue, cluster.objects)]
                amounts = [
                    _amount(quota)
                    for queue in queues
                    for _, used, kind, quota in quotas_of(queue)
                    if (used, kind) == (name, resource)
                ]
                known = [amount for amount in amounts if amount is not None]
                capacity = _capacity(cluster, labels, resource)
                if capacity is None or not known or len(known) != len(amounts):
                    continue
                total = sum(known, Quantity(0))
                most = Quantity(f"{int(capacity * 1000)}m") if resource == "cpu" else Quantity(int(capacity))
                if total > most:
                    yield (
                        flavor,
                        Breach(
                            "spec.nodeLabels",
                            f"the queues of cluster {_title(cluster)} promise {total} {resource} of {name}, but its "
                            f"nodes can never offer more than {most}",
                            "lower nominalQuota, or raise the limits of its node pools",
                        ),
                    )


def _queued_without_check(estate: Estate, _: Settings) -> Iterator[Finding]:
    for cluster in estate.clusters:
        queued = {
            name: pool
            for flavor, name, labels in _flavors(cluster)
            for pool in cluster.pools
            if pool.queued and pool.has_labels(labels) is True
        }
        checks = objects_by_name(cluster.of_kind("AdmissionCheck"))
        for queue in cluster.of_kind("ClusterQueue"):
            for name in dict.fromkeys(used for _, used, _, quota in quotas_of(queue) if quota not in (0, "0", 0.0)):
                if name in queued and not _asks_for_nodes(queue, name, checks):
                    yield (
                        queue,
                        Breach(
                            "spec.admissionChecksStrategy",
                            f"has no ProvisioningRequest check for flavor {name}, whose pool {queued[name].title} has "
                            "nodes only for such requests",
                            f"add a check with controllerName {PROVISIONING_CONTROLLER} on that flavor",
                        ),
                    )


def _asks_for_nodes(queue: Resource, flavor: str, checks: Mapping[str, Resource]) -> bool:
    for _, name, flavors in checks_of(queue):
        if flavors is not None and flavor not in flavors and all(is_known(one) for one in flavors):
            continue
        check = checks.get(name) if isinstance(name, str) else None
        if check is None or check.get("spec.controllerName") in (PROVISIONING_CONTROLLER, UNKNOWN):
            # A check that this stack does not declare may be one.
            return True
    return queue.get("spec.admissionChecksStrategy.admissionChecks") is UNKNOWN


def _pool_without_flavor(estate: Estate, _: Settings) -> Iterator[Finding]:
    for cluster in estate.clusters:
        flavors = cluster.of_kind("ResourceFlavor")
        flavor_labels = [_labels(flavor) for flavor in flavors]
        if not flavors or None in flavor_labels or any(not is_known(object_name(flavor)) for flavor in flavors):
            continue
        for pool in cluster.pools:
            if gpus_of(pool.view) and not any(pool.has_labels(labels or {}) is not False for labels in flavor_labels):
                yield (
                    pool.resource,
                    Breach(
                        "nodeConfig.labels",
                        f"no flavor of cluster {_title(cluster)} leads to this pool's GPUs, so no job gets them",
                        f"add a ResourceFlavor with nodeLabels {NODE_POOL}: {pool.title}",
                    ),
                )


RULES: Final = rules_of(
    "Kueue flavors",
    {
        "kueue-flavor-has-nodes": _has_nodes,
        "kueue-flavor-tolerates-nodes": _tolerates_nodes,
        "kueue-quota-within-capacity": _within_capacity,
        "kueue-dws-check": _queued_without_check,
        "kueue-pool-has-flavor": _pool_without_flavor,
    },
)
"""The rules of this module."""
