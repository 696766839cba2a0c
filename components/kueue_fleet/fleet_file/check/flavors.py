"""Flavors, topologies and admission checks: that what they refer to exists where they do.

Source of the run-time reasons: kueue@v0.19.2 pkg/cache/scheduler/clusterqueue.go (inactiveReason: TopologyNotFound).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kueue_admission.kernel import suggest
from kueue_admission.kernel.names import MAX_RUN_PARAMETER
from kueue_admission.kernel.problem import Problem, where_read
from kueue_fleet.fleet_file.check.scope import Scope, entry_check
from kueue_fleet.fleet_file.check.settings import merged_configuration
from kueue_fleet.fleet_file.model.entries import (
    AdmissionCheckEntry,
    FlavorEntry,
    ProvisioningRequestCheckArgs,
    TopologyEntry,
)
from kueue_fleet.fleet_file.model.fleet import FleetSpec
from kueue_fleet.fleet_file.model.queued_nodes import requesting_checks
from kueue_fleet.fleet_file.model.resolved_pools import ResolvedNodePool
from kueue_fleet.fleet_file.rules.files import NOT_THERE, UNUSED
from kueue_fleet.fleet_file.rules.queues import DWS_RUN_TIME, TOPOLOGY_LEVEL
from kueue_fleet.gke.block_topology import LEVELS_OF_GKE, has_level
from kueue_fleet.gke.labels import ACCELERATOR_RESOURCES, QUEUED_PROVISIONING_CLASS
from kueue_fleet.gke.pool_rules import FLEX_START_MAX_SECONDS

CLASSES: Final = (
    QUEUED_PROVISIONING_CLASS,
    "check-capacity.autoscaling.x-k8s.io",
    "best-effort-atomic-scale-up.autoscaling.x-k8s.io",
)
"""Classes that GKE and the cluster autoscaler answer; others are possible."""


@entry_check("topologies")
def _topology_used(scope: Scope, topology: TopologyEntry) -> Iterator[Problem]:
    if not any(flavor.topology_name == topology.name for flavor in scope.fleet.flavors):
        yield UNUSED.at(
            scope.path(topology), "no flavor uses this topology", "set topologyName on a flavor, or remove it"
        )


@entry_check("flavors")
def _flavor_used(scope: Scope, flavor: FlavorEntry) -> Iterator[Problem]:
    if flavor.name not in _used_flavors(scope.fleet):
        yield UNUSED.at(
            scope.path(flavor), "no queue has quota on this flavor", "add quota for it to a queue, or remove it"
        )


def _used_flavors(fleet: FleetSpec) -> set[str]:
    """The flavors that a queue, a cohort or the manager has quota on."""
    used_names = {name for queue in fleet.cluster_queues for name in queue.flavor_names}
    used_names |= {
        flavor.name for cohort in fleet.cohorts for group in cohort.resource_groups for flavor in group.flavors
    }
    return used_names | {
        flavor.name
        for queue in fleet.cluster_queues
        if queue.manager is not None
        for group in queue.manager.resource_groups
        for flavor in group.flavors
    }


@entry_check("flavors")
def _topology(scope: Scope, flavor: FlavorEntry) -> Iterator[Problem]:
    if flavor.topology_name is None:
        return
    path = f"{scope.path(flavor)}.topologyName"
    yield from scope.unknown("topologies", flavor.topology_name, path)
    topology = scope.fleet.topology_of(flavor)
    if topology is None:
        return
    there = scope.fleet.clusters_of(topology)
    for cluster in scope.fleet.clusters_of(flavor):
        if cluster not in there and cluster in scope.fleet.cluster_names:
            yield NOT_THERE.at(
                path,
                f"topology {topology.name} does not exist on {{cluster}}, where the flavor does",
                f"add {{cluster}} to topologies[{topology.name}].clusters, or leave {{cluster}} out of the flavor's",
            ).on(cluster)


@entry_check("flavors")
def _levels(scope: Scope, flavor: FlavorEntry) -> Iterator[Problem]:
    """Nodes of a flavor have the labels of its topology's levels; of nodes that GKE makes by itself nothing is said.

    Source: kueue@v0.19.2 pkg/cache/scheduler/tas_flavor.go (nodes without the label of a level are left out).
    """
    topology = scope.fleet.topology_of(flavor)
    for index, level in enumerate(topology.levels if topology is not None else ()):
        for cluster in scope.fleet.clusters_of(flavor):
            pools = scope.fleet.flavor_nodes(flavor, cluster) if cluster in scope.fleet.cluster_names else ()
            pool = next((pool for pool in pools if not _may_have(pool, level.node_label)), None)
            if topology is None or pool is None:
                continue
            label = level.node_label
            near = suggest.nearest(label, {*pool.labels, *LEVELS_OF_GKE}, 0.8)
            fix = f"did you mean {near}?" if near else f"set it in nodePools[{pool.name}].labels, or remove the level"
            if label in LEVELS_OF_GKE:
                fix = "remove the level, or use machines that Google labels so"
            yield TOPOLOGY_LEVEL.at(
                f"{scope.path(topology)}.levels[{index}].nodeLabel",
                f"{label} is a label that no node of pool {pool.name} has, by GKE or this file, and Kueue starts no "
                f"job of flavor {flavor.name} on such nodes",
                fix,
            )
            break


def _may_have(pool: ResolvedNodePool, label: str) -> bool:
    """Whether nodes of the pool have the label, as far as is known; of TPUs Google's labels are not all known."""
    unknown = pool.entry.existing or pool.machine is None or pool.machine.chips > 0
    return label in pool.labels or has_level(pool.machine_type, label) or (unknown and "/" in label)


@entry_check("flavors")
def _nodes_for_pods(scope: Scope, flavor: FlavorEntry) -> Iterator[Problem]:
    """Kueue places jobs of a flavor with a topology on nodes that are there; GKE makes others for their pods alone.

    With a ProvisioningRequest it places them once there are nodes.
    Source: https://kueue.sigs.k8s.io/docs/concepts/topology_aware_scheduling/.
    """
    fleet = scope.fleet
    topologies = [topology for topology in fleet.topologies if topology.name == flavor.topology_name]
    there = fleet.clusters_of(topologies[0]) if len(topologies) == 1 else ()
    for cluster in fleet.clusters_of(flavor):
        if cluster not in fleet.cluster_names or cluster not in there or _provisions(fleet, flavor, cluster):
            continue
        pools, entry = fleet.flavor_nodes(flavor, cluster), fleet.cluster(cluster)
        # An existing Standard cluster can have pools that the file does not name.
        made_by_gke = entry.platform == "Autopilot" or flavor.compute_class is not None or not entry.existing
        gates = merged_configuration(scope, entry).feature_gates
        if not fleet.kueue_on(cluster).release.gate_is_on("TopologyAwareScheduling", gates):
            continue
        grows = next((pool for pool in pools if pool.autoscaling and pool.min_nodes < pool.full_nodes), None)
        if grows is not None:
            then = f"so that pool {grows.name} stays at its minimum, {grows.min_nodes} of {grows.full_nodes} nodes"
            fix = "write nodeCount, or totalMinNodeCount as high as totalMaxNodeCount, or remove topologyName"
        elif not pools and not entry.outside_gke and made_by_gke:
            then, fix = (
                "and GKE makes none on {cluster} before there are pods",
                "remove topologyName, or write nodePool",
            )
        else:
            continue
        wrong = f"{flavor.topology_name}: Kueue admits jobs of this flavor only onto nodes that are there, {then}"
        yield TOPOLOGY_LEVEL.at(f"{scope.path(flavor)}.topologyName", wrong, fix).on(cluster)


def _provisions(fleet: FleetSpec, flavor: FlavorEntry, cluster: str) -> bool:
    """Whether a check asks for nodes of the flavor."""
    queues = [queue for queue in fleet.cluster_queues if flavor.name in queue.flavor_names]
    return any(any(requesting_checks(fleet, queue, flavor.name, cluster)) for queue in queues)


@entry_check("admissionChecks")
def _check_used(scope: Scope, check: AdmissionCheckEntry) -> Iterator[Problem]:
    if not any(check.name in queue.check_names for queue in scope.fleet.cluster_queues):
        yield UNUSED.at(
            scope.path(check), "no queue uses this check", "name it in a queue's admissionChecksStrategy, or remove it"
        )


@entry_check("admissionChecks")
def _provisioning(scope: Scope, check: AdmissionCheckEntry) -> Iterator[Problem]:
    request = check.provisioning_request
    if request is None:
        return
    at = f"{scope.path(check)}.provisioningRequest"
    name = request.provisioning_class_name
    no_class = "is not a class that GKE or the cluster autoscaler answers"
    yield from suggest.misspelt(f"{at}.provisioningClassName", name, CLASSES, no_class)
    yield from _managed_resources(scope, check, request)
    if name != QUEUED_PROVISIONING_CLASS:
        return
    parameters = request.parameters or {}
    for parameter in parameters:
        yield from suggest.misspelt(
            f"{at}.parameters[{parameter}]", parameter, [MAX_RUN_PARAMETER], "is not a parameter that DWS reads"
        )
    seconds = parameters.get(MAX_RUN_PARAMETER)
    if seconds is not None and not 0 < (request.max_run_seconds or 0) <= FLEX_START_MAX_SECONDS:
        yield DWS_RUN_TIME.at(
            f"{at}.parameters[{MAX_RUN_PARAMETER}]",
            f'"{seconds}" is not a run time that DWS grants',
            f'write whole seconds between "1" and "{FLEX_START_MAX_SECONDS}", which is seven days',
        )


@where_read
def _managed_resources(
    scope: Scope, check: AdmissionCheckEntry, request: ProvisioningRequestCheckArgs
) -> Iterator[Problem]:
    """Pods that request none of these resources are admitted without a ProvisioningRequest.

    Source: kueue@v0.19.2 pkg/controller/admissionchecks/provisioning/controller.go (requiredPodSets).
    """
    users = [queue for queue in scope.fleet.cluster_queues if check.name in queue.check_names]
    covered_names = [
        resource for queue in users for group in queue.resource_groups for resource in group.covered_resources
    ]
    for index, resource in enumerate(request.managed_resources):
        at = f"{scope.path(check)}.provisioningRequest.managedResources[{index}]"
        yield from suggest.misspelt(
            at, resource, (*ACCELERATOR_RESOURCES, *covered_names), "is not a resource of a queue that uses the check"
        )
