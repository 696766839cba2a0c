"""Topologies, resource flavors and cohorts: what quotas are about.

The order between them is the caller's, by `depends_on`: a flavor after its Topology, queues after both.
"""

from kueue_fleet.kueue.component import ModelComponent
from kueue_fleet.kueue_api import CohortSpec, ResourceFlavorSpec, TopologySpec
from kueue_fleet.kueue_api.manifests import cohort_manifest, resource_flavor_manifest, topology_manifest


class Topology(ModelComponent[TopologySpec]):
    """The levels of a data centre, for topology-aware scheduling."""

    # Levels are immutable, and a Topology that a flavor uses cannot be deleted, so it is not replaced by itself: the
    # update is refused with the advice to use a new name.
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
