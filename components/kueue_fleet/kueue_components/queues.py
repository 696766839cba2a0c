"""Kueue's own objects of which each is alone: topologies, flavors, cohorts, priority classes and queues.

Queues are Active when they are done, unless they are stopped on purpose or wait for a controller that is not part of
the fleet. Each is made after the components that its spec refers to, or that are in `opts.depends_on`.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar

import pulumi

from kueue_admission.api import (
    ClusterQueueSpec,
    CohortSpec,
    LocalQueueSpec,
    PriorityClassFields,
    ResourceFlavorSpec,
    TopologySpec,
    WorkloadPriorityClassFields,
)
from kueue_admission.api.manifests import (
    cluster_queue_manifest,
    cohort_manifest,
    local_queue_manifest,
    priority_class_manifest,
    resource_flavor_manifest,
    topology_manifest,
    workload_priority_class_manifest,
)
from kueue_admission.kernel import SpecError
from kueue_admission.kernel.base import DnsLabel
from kueue_admission.kernel.manifest import Manifest, inside
from kueue_admission.kernel.names import QUOTA_FOLLOWS_ANNOTATION
from kueue_fleet.component import judge
from kueue_fleet.fleet_file.rules.commands import COMPONENT
from kueue_fleet.kueue_components.applied_objects import object_named_by
from kueue_fleet.kueue_components.asked import asked_for
from kueue_fleet.kueue_components.component import ModelComponent, StatusComponent


class Topology(ModelComponent[TopologySpec]):
    """The levels of a data centre, for topology-aware scheduling."""

    # Levels are immutable, and a Topology that a flavor uses cannot be deleted, so it is not replaced automatically:
    # the update is refused with the advice to use a new name.
    kind = "Topology"
    model = TopologySpec
    render = topology_manifest


class ResourceFlavor(ModelComponent[ResourceFlavorSpec]):
    """A kind of node, by its labels and taints."""

    # With a topologyName, its labels, tolerations and topologyName are immutable. Kueue keeps a deleted flavor until no
    # queue uses it, so replacing one would hang: the update is refused with the advice to use a new name.
    kind = "ResourceFlavor"
    model = ResourceFlavorSpec
    render = resource_flavor_manifest


class Cohort(ModelComponent[CohortSpec]):
    """A node of the tree in which queues lend each other what they do not use."""

    kind = "Cohort"
    model = CohortSpec
    render = cohort_manifest


class PriorityClass(ModelComponent[PriorityClassFields]):
    """Kubernetes' priority of pods."""

    kind = "PriorityClass"
    api_version = "scheduling.k8s.io/v1"
    model = PriorityClassFields
    render = priority_class_manifest
    # Running pods keep their priority.
    replaced_by = ("value", "preemptionPolicy")


class WorkloadPriorityClass(ModelComponent[WorkloadPriorityClassFields]):
    """Kueue's priority of jobs in their queue."""

    kind = "WorkloadPriorityClass"
    model = WorkloadPriorityClassFields
    render = workload_priority_class_manifest


class ClusterQueue(StatusComponent[ClusterQueueSpec]):
    """Quotas, and how jobs wait, borrow and preempt for them."""

    kind = "ClusterQueue"
    model = ClusterQueueSpec
    render = cluster_queue_manifest

    expect_active: bool = False
    """Whether the queue was waited for."""

    def __init__(
        self,
        name: str,
        spec: ClusterQueueSpec | Manifest,
        *,
        object_name: str | None = None,
        expect_active: bool | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Declare the queue, after the flavors, checks and cohort of this program that it names.

        Give their components in place of their names: `FlavorQuotas(flavor, [...])`. The queue is Active only with
        them, and they can be deleted only after it. By default it waits until it is Active, unless it is stopped, or a
        check is answered by a controller that may be installed later.
        """
        declaration = asked_for(type(self), spec, name, object_name, opts)
        if expect_active is None:
            expect_active = all(getattr(resource, "expect_active", True) for resource in declaration.declared.values())
        self.expect_active = expect_active and inside(declaration.manifest, "spec").get("stopPolicy", "None") == "None"
        follows = declaration.manifest["metadata"].get("annotations", {}).get(QUOTA_FOLLOWS_ANNOTATION)
        # The fleet's controller writes them once the queue is there.
        ignored_paths = ["spec.resourceGroups"] if follows else []
        self._declare(name, declaration, opts, expect_active=self.expect_active, ignore_changes=ignored_paths)


class LocalQueue(StatusComponent[LocalQueueSpec]):
    """Where a namespace's jobs enter a ClusterQueue."""

    kind = "LocalQueue"
    namespaced: ClassVar[bool] = True
    model = LocalQueueSpec
    # Running jobs continue, and waiting ones move to the other queue.
    replaced_by = ("spec.clusterQueue",)

    def __init__(
        self,
        name: str,
        spec: LocalQueueSpec | Manifest | None = None,
        *,
        namespace: "pulumi.Input[DnsLabel] | None" = None,
        object_name: str | None = None,
        cluster_queue: ClusterQueue | str | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Declare the queue.

        A model needs `namespace`; a manifest has its own. `cluster_queue`, or that of the spec, is the component of a
        ClusterQueue, or the name of one that exists. After a component the LocalQueue is made, and before it deleted;
        it is waited for if that queue is. Another ClusterQueue replaces the LocalQueue.

        Raises:
            SpecError: the spec names another queue than `cluster_queue`, or none is named; there is no namespace, or
                the manifest is in another one.
        """
        where = f"LocalQueue {object_name or name}"
        if spec is None:
            if cluster_queue is None:
                raise SpecError([COMPONENT.at(where, "no queue is named", "give cluster_queue=...")])
            spec = LocalQueueSpec(cluster_queue=cluster_queue)
        if namespace is None and not (isinstance(spec, Mapping) and "kind" in spec):
            raise SpecError([COMPONENT.at(where, "no namespace is given", "give namespace=...")])
        other = object_named_by(namespace)
        if other is not None and other.manifest["kind"] != "Namespace":
            wrong = f"is the name of {other.manifest['kind']} {other.object_name}"
            judge([COMPONENT.at(f"{where}.namespace", wrong, "give that of a namespace", "warning")], opts)
        own = inside(spec, "metadata").get("namespace", namespace)
        if namespace is not None and own != namespace:
            wrong = f"is {namespace}, and the manifest is in {own}"
            raise SpecError([COMPONENT.at(f"{where}.namespace", wrong, "remove one")])
        needs = cluster_queue.declares if isinstance(cluster_queue, ClusterQueue) else {}
        declaration = asked_for(type(self), spec, name, object_name, opts, needs, partial(_placed, namespace))
        queue_name = cluster_queue.object_name if isinstance(cluster_queue, ClusterQueue) else cluster_queue
        named = declaration.manifest["spec"].get("clusterQueue")
        if queue_name is not None and queue_name != named:
            wrong = f"the spec names {named}, and cluster_queue is {queue_name}"
            raise SpecError([COMPONENT.at(f"{where}.clusterQueue", wrong, "name one queue")])
        is_stopped = declaration.manifest["spec"].get("stopPolicy", "None") != "None"
        # Not one that is in depends_on alone: programs in other languages cannot tell what that is.
        of_spec = getattr(getattr(spec, "cluster_queue", None), "declared", None)
        queue = cluster_queue if isinstance(cluster_queue, ClusterQueue) else of_spec
        self._declare(name, declaration, opts, expect_active=getattr(queue, "expect_active", False) and not is_stopped)


def _placed(namespace: Any, name: str, spec: LocalQueueSpec) -> Manifest:
    """The object, whose namespace may come from another resource."""
    return local_queue_manifest(namespace, name, spec)
