"""A node pool of a Standard cluster, of any capacity class.

Every rule of GKE about it has been checked by the spec; here its fields only get the names of pulumi-gcp.

A pool keeps its name for life, since flavors select its nodes by it. What GKE cannot change in place therefore deletes
the pool before making it again: jobs that lose their nodes have the same node selector as before and continue when the
new nodes are there, where a second pool of another name would leave them pending, and would need the pool's
reservation or quota twice while both exist. No queue and no other pool changes. Where that is not wanted unseen, the
pool is protected: Pulumi refuses the change.
"""

from collections.abc import Mapping

import pulumi
import pulumi_gcp as gcp

from kueue_fleet.fleet_file.model.clusters import ClusterEntry
from kueue_fleet.fleet_file.model.node_pools import NodePoolEntry
from kueue_fleet.fleet_file.model.resolved_pools import ResolvedNodePool, resolve_pool
from kueue_fleet.gcp.arguments import arguments
from kueue_fleet.gke.machines import COMPACT_FLEX_START
from kueue_fleet.gke.tpu_slices import WORKLOAD_POLICY_TPU
from kueue_fleet.google.node_pools import answered_otherwise, node_pool_properties, placement_name


class NodePool(pulumi.ComponentResource):
    """A node pool."""

    pool: "gcp.container.NodePool"
    """The pool."""
    pool_name: str
    """Its name in GKE, and the value of the nodes' label cloud.google.com/gke-nodepool."""
    placement: "gcp.compute.ResourcePolicy | None"
    """The workload policy that keeps the nodes together, on machines that need one for compact placement."""

    def __init__(
        self,
        name: str,
        spec: NodePoolEntry,
        *,
        cluster_spec: ClusterEntry,
        project: pulumi.Input[str],
        cluster: pulumi.Input[str],
        service_account: pulumi.Input[str],
        private_nodes: pulumi.Input[bool] = True,
        deletion_protection: bool = True,
        labels: Mapping[str, str] | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Declare the pool.

        `spec` and `cluster_spec` are the entries of the pool and of its cluster, as a fleet file has them: region,
        zones, disk key and image streaming are the cluster's. `cluster` is the cluster's name and `service_account` the
        address of its nodes' account; `private_nodes`, whether nodes have internal addresses alone, is to be as the
        cluster has it; with `deletion_protection`, unless `spec` says otherwise, Pulumi refuses to delete or replace
        the pool; `labels` are Google Cloud labels. Put a reservation of the same program into `opts.depends_on`.
        """
        super().__init__("kueue-fleet:index:NodePool", name, None, opts)
        resolved = resolve_pool(spec, cluster_spec)
        self.pool_name = spec.name
        self.placement = self._placement(name, project, resolved)
        properties = node_pool_properties(
            resolved,
            service_account=service_account,
            disk_encryption_key=cluster_spec.disk_encryption_key,
            image_streaming=cluster_spec.image_streaming,
            labels=labels or {},
            private_nodes=private_nodes,
        )
        if self.placement is not None:
            properties["placementPolicy"]["policyName"] = self.placement.name
        self.pool = gcp.container.NodePool(
            name,
            project=project,
            cluster=cluster,
            **arguments(properties),
            opts=pulumi.ResourceOptions(
                parent=self,
                deleted_with=opts.deleted_with if opts else None,
                delete_before_replace=True,
                protect=deletion_protection if spec.deletion_protection is None else spec.deletion_protection,
                # Said once, when the pool is made; a change would replace it.
                ignore_changes=["initialNodeCount", *answered_otherwise(resolved)],
                # The provider would resize the slice, which GKE does not do.
                replace_on_changes=["placementPolicy.tpuTopology"],
                replace_with=[self.placement] if self.placement else None,
            ),
        )
        self.register_outputs({"name": spec.name})

    def _placement(
        self, name: str, project: pulumi.Input[str], spec: ResolvedNodePool
    ) -> "gcp.compute.ResourcePolicy | None":
        """Other machines take GKE's own policy. Source: GoogleCloudPlatform/cluster-toolkit,
        modules/compute/resource-policy, and the rule of `gke.pool_rules` on compact placement with flex-start."""
        if not (spec.compact_placement and spec.machine_type.startswith((*COMPACT_FLEX_START, *WORKLOAD_POLICY_TPU))):
            return None
        return gcp.compute.ResourcePolicy(
            name,
            project=project,
            region=spec.region,
            name=placement_name(spec.cluster, spec.name),
            description=f"Nodes of {spec.name} close together, managed by kueue-fleet",
            workload_policy=gcp.compute.ResourcePolicyWorkloadPolicyArgs(
                type="HIGH_THROUGHPUT", accelerator_topology=spec.tpu_topology or None
            ),
            opts=pulumi.ResourceOptions(parent=self),
        )
