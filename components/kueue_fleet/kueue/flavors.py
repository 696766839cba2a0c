"""Topologies, resource flavors and cohorts: what quotas are about.

The order between them is the caller's, by `depends_on`: a flavor after its Topology, queues after both.
"""

import pulumi

from kueue_fleet.kueue.component import ObjectComponent, manifest_of
from kueue_fleet.kueue_api import CohortSpec, Manifest, ResourceFlavorSpec, TopologySpec
from kueue_fleet.kueue_api.manifests import cohort_manifest, resource_flavor_manifest, topology_manifest


class Topology(ObjectComponent):
    """The levels of a data centre, for topology-aware scheduling."""

    pulumi_type = "kueue-fleet:index:Topology"
    kind = "Topology"

    def __init__(
        self,
        name: str,
        spec: TopologySpec | Manifest,
        *,
        object_name: str | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Declare the Topology.

        Levels are immutable, and a Topology that a flavor uses cannot be deleted, so it is not replaced by itself: the
        update is refused with the advice to use a new name.
        """
        self._declare(name, manifest_of(self.kind, spec, object_name or name, TopologySpec, topology_manifest), opts)


class ResourceFlavor(ObjectComponent):
    """A kind of node, by its labels and taints."""

    pulumi_type = "kueue-fleet:index:ResourceFlavor"
    kind = "ResourceFlavor"

    def __init__(
        self,
        name: str,
        spec: ResourceFlavorSpec | Manifest,
        *,
        object_name: str | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Declare the flavor.

        With a topologyName, its labels, tolerations and topologyName are immutable. Kueue keeps a deleted flavor until
        no queue uses it, so replacing one would hang: the update is refused with the advice to use a new name.
        """
        self._declare(
            name, manifest_of(self.kind, spec, object_name or name, ResourceFlavorSpec, resource_flavor_manifest), opts
        )


class Cohort(ObjectComponent):
    """A node of the tree in which queues lend each other what they do not use."""

    pulumi_type = "kueue-fleet:index:Cohort"
    kind = "Cohort"

    def __init__(
        self,
        name: str,
        spec: CohortSpec | Manifest,
        *,
        object_name: str | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Declare the cohort."""
        self._declare(name, manifest_of(self.kind, spec, object_name or name, CohortSpec, cohort_manifest), opts)
