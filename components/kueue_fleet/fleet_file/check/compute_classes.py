"""Flavors whose nodes GKE makes by a compute class: what GKE refuses of the class, and what Kueue counts otherwise.

Source: https://cloud.google.com/kubernetes-engine/docs/concepts/about-custom-compute-classes and
https://github.com/google/skills at 1af7795, gke-compute-classes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kueue_admission.kernel import suggest
from kueue_admission.kernel.problem import Problem, where_read
from kueue_fleet.fleet_file.check.google_cloud import cluster_since
from kueue_fleet.fleet_file.check.node_pools import known_instead
from kueue_fleet.fleet_file.check.scope import Scope, entry_check
from kueue_fleet.fleet_file.model.compute_classes import ClassPriority, ComputeClass
from kueue_fleet.fleet_file.model.entries import ClusterQueueEntry, FlavorEntry
from kueue_fleet.fleet_file.model.per_cluster import queue_on
from kueue_fleet.fleet_file.model.zone_rules import offered_nowhere, zones_in_region
from kueue_fleet.fleet_file.rules.clusters import CONSUMPTION, UNKNOWN_MACHINE
from kueue_fleet.fleet_file.rules.queues import CLASS_COUNTED, CLASS_NAME, CLASS_NODES, CLASS_ORDER, DWS_CHECK
from kueue_fleet.gke.consumption import is_offered, options_of
from kueue_fleet.gke.labels import ACCELERATOR_RESOURCES
from kueue_fleet.gke.machines import gpus

CLASSES_SINCE: Final = "1.30.3-gke.1451000"
"""The first version of GKE with custom compute classes."""
CREATION_SINCE: Final = "1.33.3-gke.1136000"
"""The first version in which a class makes node pools without auto-provisioning of the whole cluster."""
_TAKEN: Final = ("gke", "autopilot")
"""How names of GKE's own classes begin."""


@entry_check("flavors")
def _flavor(scope: Scope, flavor: FlavorEntry) -> Iterator[Problem]:
    """Its class can be made, and makes nodes."""
    if flavor.compute_class is not None:
        yield from _name(scope, flavor)
        yield from _order(scope, flavor, flavor.compute_class)
        yield from _on_clusters(scope, flavor, flavor.compute_class)
        for index, priority in enumerate(flavor.compute_class.priorities):
            yield from _priority(scope, flavor, priority, index)


@where_read
def _name(scope: Scope, flavor: FlavorEntry) -> Iterator[Problem]:
    if flavor.name.startswith(_TAKEN):
        wrong = f"{flavor.name} is also the name of its compute class, and those that begin so are GKE's own"
        yield CLASS_NAME.at(f"{scope.path(flavor)}.name", wrong, "write another name")


@where_read
def _order(scope: Scope, flavor: FlavorEntry, compute_class: ComputeClass) -> Iterator[Problem]:
    """AnyBestEffort takes on-demand nodes where no reservation has any, and never comes to what is after it."""
    path = f"{scope.path(flavor)}.computeClass.priorities"
    for index, priority in enumerate(compute_class.priorities[:-1]):
        if priority.reservations is not None and priority.reservations.affinity == "AnyBestEffort":
            yield CLASS_ORDER.at(
                f"{path}[{index}].reservations.affinity",
                "AnyBestEffort, with which GKE takes on-demand nodes where no reservation has any, and does not come "
                "to the priorities after it",
                "put it last, or name reservations with Specific",
            )


@where_read
def _on_clusters(scope: Scope, flavor: FlavorEntry, compute_class: ComputeClass) -> Iterator[Problem]:
    fleet, path = scope.fleet, f"{scope.path(flavor)}.computeClass"
    for name in fleet.clusters_of(flavor):
        cluster = fleet.cluster(name) if name in fleet.cluster_names else None
        if cluster is None:
            continue
        standard, has_provisioning = cluster.platform == "Standard", cluster.node_auto_provisioning is not None
        if standard and not compute_class.node_pool_auto_creation:
            yield CLASS_NODES.at(
                f"{path}.nodePoolAutoCreation",
                "false, so that no node of the class ever comes on {cluster}, as on any Standard cluster",
                "remove it, or leave {cluster} out of the flavor's clusters",
            ).on(name)
        since = CREATION_SINCE if standard and not has_provisioning else CLASSES_SINCE
        yield from cluster_since(scope, cluster, since, f"the compute class of flavor {flavor.name}")
        for index, priority in enumerate(compute_class.priorities):
            here = f"{path}.priorities[{index}]"
            if priority.machine_type is not None:
                yield from offered_nowhere(f"{here}.machineType", priority.machine_type, cluster.region)
            zones = priority.location.zones if priority.location is not None else ()
            yield from zones_in_region(f"{here}.location.zones", zones, cluster.region)


@where_read
def _priority(scope: Scope, flavor: FlavorEntry, priority: ClassPriority, index: int) -> Iterator[Problem]:
    path, machine = f"{scope.path(flavor)}.computeClass.priorities[{index}]", priority.machine_type
    if priority.gpu is not None and priority.gpu.type not in gpus():
        near = suggest.nearest(priority.gpu.type, gpus())
        fix = f"did you mean {near}?" if near else "make sure that it exists"
        yield UNKNOWN_MACHINE.at(f"{path}.gpu.type", f"{priority.gpu.type} is not in the catalogue", fix)
    if machine is None:
        return
    if priority.machine is None:
        wrong = f"{machine} is not in the catalogue"
        yield UNKNOWN_MACHINE.at(f"{path}.machineType", wrong, known_instead(machine))
    elif not is_offered(machine, priority.option):
        ways = ", ".join(options_of(machine))
        wrong = f"is {priority.option}, but Google does not offer {machine} so"
        yield CONSUMPTION.at(path, wrong, f"use one of {ways}")


@entry_check("clusterQueues")
def _counted(scope: Scope, queue: ClusterQueueEntry) -> Iterator[Problem]:
    """A GPU is a GPU to Kueue, whichever priority its node is of."""
    for group in queue.resource_groups:
        device_names = [name for name in group.covered_resources if name in ACCELERATOR_RESOURCES]
        for flavor_quotas in group.flavors if device_names else ():
            flavor = scope.fleet.flavor(flavor_quotas.name)
            if flavor is not None and flavor.compute_class is not None:
                yield from _accelerators(scope, flavor, flavor.compute_class, queue.name, device_names)


def _accelerators(
    scope: Scope, flavor: FlavorEntry, compute_class: ComputeClass, queue: str, covered_names: list[str]
) -> Iterator[Problem]:
    path = f"{scope.path(flavor)}.computeClass.priorities"
    for index, priority in enumerate(compute_class.priorities):
        unknown = priority.machine is None and priority.machine_type is not None
        if priority.accelerator is None and not unknown:
            wrong = f"has no GPUs, but queue {queue} counts {', '.join(covered_names)} on flavor {flavor.name}"
            yield CLASS_COUNTED.at(f"{path}[{index}]", wrong, "write gpu, or a machineType that has some")
    if len(compute_class.accelerators) > 1:
        kinds = ", ".join(compute_class.accelerators)
        wrong = f"have {kinds}, which Kueue counts alike, and a job cannot choose"
        fix = "give each kind a flavor of its own, with fallback in the queue"
        yield CLASS_COUNTED.at(path, wrong, fix, "warning")


@entry_check("clusterQueues")
def _asked_of_dws(scope: Scope, queue: ClusterQueueEntry) -> Iterator[Problem]:
    """A class has no queued provisioning, which is all that a ProvisioningRequest of that class asks for."""
    fleet = scope.fleet
    # Clusters that there are not are named elsewhere.
    for cluster in (name for name in fleet.clusters_of(queue) if name in fleet.cluster_names):
        for rule in queue_on(fleet, queue, cluster).check_rules:
            check = fleet.check(rule.name)
            if check is None or check.provisioning_request is None:
                continue
            for name in rule.on_flavors or queue.flavor_names:
                flavor = fleet.flavor(name)
                if flavor is not None and flavor.compute_class is not None:
                    yield DWS_CHECK.at(
                        f"{scope.path(queue)}.admissionChecksStrategy.admissionChecks[{check.name}]",
                        f"asks DWS for nodes of flavor {name}, whose compute class has none of queued provisioning",
                        "limit the check to other flavors with onFlavors; flexStart of a priority needs no check",
                    )
