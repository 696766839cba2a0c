"""Kueue's own objects of which each is alone: topologies, flavors, cohorts, priority classes and queues.

Queues are Active when they are done, unless they are stopped on purpose or wait for a controller that is not part of
the fleet. The order between components is the caller's, by `depends_on`: a flavor after its Topology, queues after
both.
"""

from functools import partial

import pulumi

from kueue_admission.api import (
    ClusterQueueSpec,
    CohortSpec,
    LocalQueueSpec,
    Manifest,
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
from kueue_fleet.kueue.component import ModelComponent, ObjectComponent, manifest_of


class Topology(ModelComponent[TopologySpec]):
    """The levels of a data centre, for topology-aware scheduling."""

    # Levels are immutable, and a Topology that a flavor uses cannot be deleted, so it is not replaced automatically:
    # the update is refused with the advice to use a new name.
    pulumi_type = "kueue-fleet:index:Topology"
    kind = "Topology"
    model = TopologySpec
    render = topology_manifest


class ResourceFlavor(ModelComponent[ResourceFlavorSpec]):
    """A kind of node, by its labels and taints."""

    # With a topologyName, its labels, tolerations and topologyName are immutable. Kueue keeps a deleted flavor until no
    # queue uses it, so replacing one would hang: the update is refused with the advice to use a new name.
    pulumi_type = "kueue-fleet:index:ResourceFlavor"
    kind = "ResourceFlavor"
    model = ResourceFlavorSpec
    render = resource_flavor_manifest


class Cohort(ModelComponent[CohortSpec]):
    """A node of the tree in which queues lend each other what they do not use."""

    pulumi_type = "kueue-fleet:index:Cohort"
    kind = "Cohort"
    model = CohortSpec
    render = cohort_manifest


class PriorityClass(ModelComponent[PriorityClassFields]):
    """Kubernetes' priority of pods."""

    pulumi_type = "kueue-fleet:index:PriorityClass"
    kind = "PriorityClass"
    model = PriorityClassFields
    render = priority_class_manifest
    # Running pods keep their priority.
    replaced_by = ("value", "preemptionPolicy")


class WorkloadPriorityClass(ModelComponent[WorkloadPriorityClassFields]):
    """Kueue's priority of jobs in their queue."""

    pulumi_type = "kueue-fleet:index:WorkloadPriorityClass"
    kind = "WorkloadPriorityClass"
    model = WorkloadPriorityClassFields
    render = workload_priority_class_manifest


class ClusterQueue(ObjectComponent):
    """Quotas, and how jobs wait, borrow and preempt for them."""

    pulumi_type = "kueue-fleet:index:ClusterQueue"
    kind = "ClusterQueue"

    expect_active: bool
    """Whether the queue was waited for."""

    def __init__(
        self,
        name: str,
        spec: ClusterQueueSpec | Manifest,
        *,
        object_name: str | None = None,
        expect_active: bool = True,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Declare the queue.

        Give its flavors, checks and cohort in `opts.depends_on`: the queue is Active only with them, and they can be
        deleted only after it. Set `expect_active` to false where a check is answered by a controller that is installed
        later; a stopped queue is never waited for.
        """
        manifest = manifest_of(self.kind, spec, object_name or name, ClusterQueueSpec, cluster_queue_manifest)
        self.expect_active = expect_active and manifest["spec"].get("stopPolicy", "None") == "None"
        self._declare(name, manifest, opts, expect_active=self.expect_active)


class LocalQueue(ObjectComponent):
    """Where a namespace's jobs enter a ClusterQueue."""

    pulumi_type = "kueue-fleet:index:LocalQueue"
    kind = "LocalQueue"

    def __init__(
        self,
        name: str,
        spec: LocalQueueSpec | Manifest,
        *,
        namespace: str | None = None,
        object_name: str | None = None,
        cluster_queue: ClusterQueue | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Declare the queue.

        A model needs `namespace`; a manifest has its own. With `cluster_queue`, the LocalQueue is made after that queue
        and deleted before it, and is waited for if that queue is. Another ClusterQueue replaces the LocalQueue: running
        jobs continue, and waiting ones move to it.

        Raises:
            ValueError: a model without a namespace.
        """
        manifest = manifest_of(self.kind, spec, object_name or name, LocalQueueSpec, partial(_local_queue, namespace))
        stopped = manifest["spec"].get("stopPolicy", "None") != "None"
        self._declare(
            name,
            manifest,
            opts,
            depends_on=[cluster_queue] if cluster_queue else [],
            expect_active=cluster_queue is not None and cluster_queue.expect_active and not stopped,
            replace_on_changes=["spec.clusterQueue"],
        )


def _local_queue(namespace: str | None, name: str, spec: LocalQueueSpec) -> Manifest:
    if namespace is None:
        raise ValueError(f"LocalQueue {name}: no namespace; give namespace=...")
    return local_queue_manifest(namespace, name, spec)
