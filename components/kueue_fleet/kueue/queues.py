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
from kueue_admission.forms import SpecError
from kueue_fleet.fleet_file.fleet_rules import COMPONENT
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
        if manifest is not spec and (unknown := _not_among(manifest, opts)):
            pulumi.log.info(
                f"ClusterQueue {name}: whether there are flavors {', '.join(unknown)} is not checked; put the flavors "
                "of this program into opts.depends_on"
            )
        self.expect_active = expect_active and manifest["spec"].get("stopPolicy", "None") == "None"
        self._declare(name, manifest, opts, expect_active=self.expect_active)


class LocalQueue(ObjectComponent):
    """Where a namespace's jobs enter a ClusterQueue."""

    pulumi_type = "kueue-fleet:index:LocalQueue"
    kind = "LocalQueue"

    def __init__(
        self,
        name: str,
        spec: LocalQueueSpec | Manifest | None = None,
        *,
        namespace: str | None = None,
        object_name: str | None = None,
        cluster_queue: ClusterQueue | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Declare the queue.

        A model needs `namespace`; a manifest has its own. With `cluster_queue`, which the spec need not name again, the
        LocalQueue is made after that queue and deleted before it, and is waited for if that queue is; without it, the
        queue that the spec names is one that exists, which nothing checks. Another ClusterQueue replaces the
        LocalQueue: running jobs continue, and waiting ones move to it.

        Raises:
            SpecError: the spec names another queue than `cluster_queue`, or none is named.
            ValueError: a model without a namespace.
        """
        if spec is None and cluster_queue is not None:
            spec = LocalQueueSpec(cluster_queue=cluster_queue.object_name)
        elif spec is None:
            raise SpecError([COMPONENT.at(f"LocalQueue {name}", "no queue is named", "give cluster_queue=...")])
        manifest = manifest_of(self.kind, spec, object_name or name, LocalQueueSpec, partial(_local_queue, namespace))
        stopped = manifest["spec"].get("stopPolicy", "None") != "None"
        named = manifest["spec"].get("clusterQueue")
        if cluster_queue is None and manifest is not spec:
            pulumi.log.info(f"LocalQueue {name}: whether there is a ClusterQueue {named} is not checked")
        elif cluster_queue is not None and cluster_queue.object_name != named:
            raise SpecError(
                [
                    COMPONENT.at(
                        f"LocalQueue {name}.clusterQueue",
                        f"the spec names {named}, and cluster_queue is {cluster_queue.object_name}",
                        "name one queue",
                    )
                ]
            )
        self._declare(
            name,
            manifest,
            opts,
            depends_on=[cluster_queue] if cluster_queue else [],
            expect_active=cluster_queue is not None and cluster_queue.expect_active and not stopped,
            replace_on_changes=["spec.clusterQueue"],
        )


def _not_among(manifest: Manifest, opts: pulumi.ResourceOptions | None) -> list[str]:
    """The flavors of a queue that are not among what it is declared to need."""
    needed = opts.depends_on if opts is not None else None
    known = (
        {each.object_name for each in needed if isinstance(each, ResourceFlavor)} if isinstance(needed, list) else ()
    )
    groups = manifest["spec"].get("resourceGroups", ())
    return [flavor["name"] for group in groups for flavor in group["flavors"] if flavor["name"] not in known]


def _local_queue(namespace: str | None, name: str, spec: LocalQueueSpec) -> Manifest:
    if namespace is None:
        raise ValueError(f"LocalQueue {name}: no namespace; give namespace=...")
    return local_queue_manifest(namespace, name, spec)
