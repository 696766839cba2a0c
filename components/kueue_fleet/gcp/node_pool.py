"""A node pool of a Standard cluster, of any capacity class.

Every rule of GKE about it has been checked by the spec; here its fields only get the names of pulumi-gcp.

A pool keeps its name for life, since flavors select its nodes by it. What GKE cannot change in place therefore deletes
the pool before making it again: jobs that lose their nodes have the same node selector as before and continue when the
new nodes are there, where a second pool of another name would leave them pending, and would need the pool's
reservation or quota twice while both exist. No queue and no other pool changes. Where that is not wanted unseen, the
pool is protected: Pulumi refuses the change.
"""

from collections.abc import Mapping
from typing import Any

import pulumi
import pulumi_gcp as gcp

from kueue_fleet.fleet_file.check.google_cloud import LONGEST_NAME
from kueue_fleet.fleet_file.model.capacity import Calendar, FlexStart, Reserved, Spot
from kueue_fleet.fleet_file.model.clusters import ClusterEntry
from kueue_fleet.fleet_file.model.gcp_names import with_digest
from kueue_fleet.fleet_file.model.node_pools import NodePoolEntry
from kueue_fleet.fleet_file.model.resolved_pools import ResolvedNodePool, resolve_pool
from kueue_fleet.gcp.arguments import arguments
from kueue_fleet.gcp.cluster_properties import node_security
from kueue_fleet.gke.declared_pools import EFFECTS
from kueue_fleet.gke.machines import COMPACT_FLEX_START
from kueue_fleet.gke.pool_facts import RESERVATION_KEY
from kueue_fleet.gke.tpu_slices import WORKLOAD_POLICY_TPU, asked_topology

_EFFECTS: Mapping[str, str] = {effect: theirs for theirs, effect in EFFECTS.items()}


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
                ignore_changes=["initialNodeCount", *_answered_otherwise(resolved)],
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


def _answered_otherwise(spec: ResolvedNodePool) -> list[str]:
    """Disks that a machine which is not in the catalogue may come with: GKE would report them without being asked."""
    unknown = spec.machine is None and not spec.local_ssd_count
    return ["nodeConfig.ephemeralStorageLocalSsdConfig"] if unknown else []


def placement_name(cluster: str, pool: str) -> str:
    """The name of a pool's workload policy: `<cluster>-<pool>`, shortened with a digest beyond 63 characters."""
    wanted = f"{cluster}-{pool}"
    return wanted if len(wanted) <= LONGEST_NAME else with_digest(wanted, f"{cluster}/{pool}", LONGEST_NAME)


def node_pool_properties(
    spec: ResolvedNodePool,
    *,
    service_account: pulumi.Input[str],
    disk_encryption_key: str | None,
    image_streaming: bool,
    labels: Mapping[str, str],
    private_nodes: pulumi.Input[bool] = True,
) -> dict[str, Any]:
    """The pool's properties, less project and cluster."""
    # Never left out: a profile would outlive its field, and beside a profile alone the provider asks for public nodes.
    network: dict[str, Any] = {"enablePrivateNodes": private_nodes}
    if spec.accelerator_network_profile:
        network["acceleratorNetworkProfile"] = spec.accelerator_network_profile
    properties: dict[str, Any] = {
        "name": spec.name,
        "location": spec.region,
        # Zones that are not named would stay those that were.
        **({"nodeLocations": list(spec.node_locations)} if spec.node_locations else {}),
        **_size(spec),
        "management": {"autoRepair": spec.auto_repair, "autoUpgrade": spec.auto_upgrade},
        **_upgrades(spec),
        # Left out, the provider would keep whatever the pool has.
        "maxPodsPerNode": spec.pods_per_node,
        "networkConfig": network,
        "nodeConfig": {
            **node_security(service_account, disk_encryption_key),
            "machineType": spec.machine_type,
            "diskSizeGb": spec.disk_size_gb,
            "diskType": spec.disk_type,
            "gcfsConfig": {"enabled": image_streaming},
            "gvnic": {"enabled": True},
            **_capacity(spec),
            **_hardware(spec),
            # An empty map removes the last label; none at all would keep it.
            "labels": dict(spec.own_labels),
            **({"resourceLabels": dict(labels)} if labels else {}),
        },
    }
    if spec.own_taints:
        properties["nodeConfig"]["taints"] = [
            {"key": taint.key, "value": taint.value, "effect": _EFFECTS[taint.effect]} for taint in spec.own_taints
        ]
    if spec.compact_placement:
        properties["placementPolicy"] = {"type": "COMPACT"}
        topology = asked_topology(spec.machine_type, spec.tpu_topology)
        if topology is not None and not spec.machine_type.startswith(WORKLOAD_POLICY_TPU):
            properties["placementPolicy"]["tpuTopology"] = topology
    if spec.queued:
        properties["queuedProvisioning"] = {"enabled": True}
    return properties


def _upgrades(spec: ResolvedNodePool) -> dict[str, Any]:
    """How nodes are upgraded; nothing for flex-start, whose short-lived upgrades are GKE's own.

    The provider has no word for that strategy: any settings would always differ from GKE's. Source:
    https://cloud.google.com/kubernetes-engine/docs/concepts/node-pool-upgrade-strategies.
    """
    if spec.upgrade is None:
        return {}
    return {
        "upgradeSettings": {
            "strategy": "SURGE",
            "maxSurge": spec.upgrade.max_surge,
            "maxUnavailable": spec.upgrade.max_unavailable,
        }
    }


def _size(spec: ResolvedNodePool) -> dict[str, Any]:
    if spec.node_count is not None:
        return {"nodeCount": spec.node_count}
    size: dict[str, Any] = {}
    if spec.autoscaling is not None:
        size["autoscaling"] = {
            "totalMinNodeCount": spec.autoscaling.total_min_node_count,
            "totalMaxNodeCount": spec.autoscaling.total_max_node_count,
            "locationPolicy": spec.autoscaling.location_policy,
        }
    if spec.initial_node_count is not None:
        size["initialNodeCount"] = spec.initial_node_count
    return size


def _capacity(spec: ResolvedNodePool) -> dict[str, Any]:
    """Where the nodes come from, in the terms of nodeConfig."""
    capacity = spec.capacity
    if isinstance(capacity, Reserved | Calendar):
        return {
            "reservationAffinity": {
                "consumeReservationType": "SPECIFIC_RESERVATION",
                "key": RESERVATION_KEY,
                "values": [reservation_path(capacity)],
            }
        }
    elsewhere = {"reservationAffinity": {"consumeReservationType": "NO_RESERVATION"}}
    if isinstance(capacity, FlexStart):
        seconds = capacity.max_run_duration.nanoseconds // 10**9
        return {"flexStart": True, "maxRunDuration": f"{seconds}s", **elsewhere}
    if isinstance(capacity, Spot):
        return {"spot": True, **elsewhere}
    return {}


def reservation_path(capacity: Reserved | Calendar) -> str:
    """The reservation as GKE wants it: a name; with the project of a shared one, and with block and sub-block.

    Source: https://cloud.google.com/kubernetes-engine/docs/how-to/consuming-reservations.
    """
    if isinstance(capacity, Calendar):
        return capacity.reservation
    path = capacity.reservation
    if capacity.project is not None:
        path = f"projects/{capacity.project}/reservations/{path}"
    if capacity.block is not None:
        path += f"/reservationBlocks/{capacity.block}"
    if capacity.sub_block is not None:
        path += f"/reservationSubBlocks/{capacity.sub_block}"
    return path


def _hardware(spec: ResolvedNodePool) -> dict[str, Any]:
    hardware: dict[str, Any] = {}
    if spec.accelerator is not None and spec.gpus_per_node:
        hardware["guestAccelerators"] = [
            {
                "type": spec.accelerator,
                "count": spec.gpus_per_node,
                "gpuDriverInstallationConfig": {"gpuDriverVersion": spec.driver_version},
            }
        ]
    else:
        # GPUs that a node had would stay where none are said; of which kind there are none does not matter.
        hardware["guestAccelerators"] = [{"type": "nvidia-tesla-t4", "count": 0}]
    ssds = spec.local_ssd_count or (spec.machine.local_ssds if spec.machine else 0)
    if ssds:
        # GKE reports the disks that come with a machine too: left out, they would replace the pool on every update.
        hardware["ephemeralStorageLocalSsdConfig"] = {"localSsdCount": ssds}
    return hardware
