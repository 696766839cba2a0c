"""A node pool of a Standard cluster, of any capacity class, and what every node of one has.

Every rule of GKE about it has been checked by the spec; here its fields only get the names of the provider. Numbers are
those of the CIS GKE Benchmark 1.9.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kueue_fleet.fleet_file.check.google_cloud import LONGEST_NAME
from kueue_fleet.fleet_file.model.clusters import ClusterEntry
from kueue_fleet.fleet_file.model.gcp_names import with_digest
from kueue_fleet.fleet_file.model.node_pools import NodePoolEntry
from kueue_fleet.fleet_file.model.pool_properties import pool_properties
from kueue_fleet.fleet_file.model.resolved_pools import ResolvedNodePool, resolve_pool
from kueue_fleet.gke.machines import COMPACT_FLEX_START
from kueue_fleet.gke.tpu_slices import WORKLOAD_POLICY_TPU
from kueue_fleet.google.resource import CloudResource
from kueue_fleet.google.resource_types import NODE_POOL, RESOURCE_POLICY

CLOUD_PLATFORM_SCOPE = "https://www.googleapis.com/auth/cloud-platform"
"""The one scope; what nodes may do is limited by their account's roles. Source:
https://cloud.google.com/kubernetes-engine/docs/how-to/access-scopes."""
IMAGE_TYPE = "COS_CONTAINERD"
"""Google's own operating system for nodes (5.5.1)."""

READONLY_PORT = "insecureKubeletReadonlyPortEnabled"
"""The kubelet's port without authentication."""
NO_READONLY_PORT = "FALSE"
"""It is closed; the provider takes text here."""


def node_pool(
    name: str,
    entry: NodePoolEntry,
    on: ClusterEntry,
    *,
    project: Any,
    cluster: Any,
    service_account: Any,
    location: Any = None,
    private_nodes: Any = True,
    deletion_protection: bool,
    labels: Mapping[str, Any],
    needs: tuple[str, ...] = (),
    deleted_with: str | None = None,
) -> list[CloudResource]:
    """The pool of that entry on its cluster, after the workload policy that keeps its nodes together, if it needs one.

    `deletion_protection` is the cluster's; `location` is its zone, if it is in one and not in a region.
    """
    spec = resolve_pool(entry, on)
    properties = {
        "project": project,
        "cluster": cluster,
        **node_pool_properties(
            spec,
            service_account=service_account,
            disk_encryption_key=on.disk_encryption_key,
            image_streaming=on.image_streaming,
            labels=labels,
            private_nodes=private_nodes,
        ),
        **({} if location is None else {"location": location}),
    }
    placement = list(_placement(name, project, spec))
    if placement:
        properties["placementPolicy"]["policyName"] = placement[0].ref("name")
    # Disks that a machine which is not in the catalogue may come with: GKE reports them without being asked.
    unknown_disks = spec.machine is None and not spec.local_ssd_count
    pool = CloudResource(
        NODE_POOL,
        name,
        properties,
        needs,
        protect=deletion_protection if entry.deletion_protection is None else entry.deletion_protection,
        # Said once, when the pool is made; a change would replace it.
        ignore_changes=(
            "initialNodeCount",
            *(["nodeConfig.ephemeralStorageLocalSsdConfig"] if unknown_disks else []),
        ),
        # The provider would resize the slice, which GKE does not do.
        replace_on_changes=("placementPolicy.tpuTopology",),
        replace_with=tuple(resource.key for resource in placement),
        delete_before_replace=True,
        deleted_with=deleted_with,
    )
    return [*placement, pool]


def _placement(name: str, project: Any, spec: ResolvedNodePool) -> Iterator[CloudResource]:
    """Other machines take GKE's own policy. Source: GoogleCloudPlatform/cluster-toolkit,
    modules/compute/resource-policy, and the rule of `gke.pool_rules` on compact placement with flex-start."""
    if spec.compact_placement and spec.machine_type.startswith((*COMPACT_FLEX_START, *WORKLOAD_POLICY_TPU)):
        policy_name = f"{spec.cluster}-{spec.name}"
        short = with_digest(policy_name, f"{spec.cluster}/{spec.name}", LONGEST_NAME)
        topology = {"acceleratorTopology": spec.tpu_topology} if spec.tpu_topology else {}
        if mode := spec.entry.accelerator_topology_mode:
            topology["acceleratorTopologyMode"] = mode
        properties = {
            "project": project,
            "region": spec.region,
            "name": policy_name if len(policy_name) <= LONGEST_NAME else short,
            "description": f"Nodes of {spec.name} close together, managed by kueue-fleet",
            "workloadPolicy": {"type": "HIGH_THROUGHPUT", **topology},
        }
        yield CloudResource(RESOURCE_POLICY, name, properties)


def node_pool_properties(
    spec: ResolvedNodePool,
    *,
    service_account: Any,
    disk_encryption_key: str | None,
    image_streaming: bool,
    labels: Mapping[str, Any],
    private_nodes: Any = True,
) -> dict[str, Any]:
    """The pool's properties, less project and cluster."""
    properties: dict[str, Any] = {"name": spec.name, "location": spec.region, **pool_properties(spec.entry)}
    if spec.node_locations:
        # Zones that are not named would stay those that were.
        properties["nodeLocations"] = list(spec.node_locations)
    if spec.closed:
        sizes = ("autoscaling", "initialNodeCount")
        properties = {name: value for name, value in properties.items() if name not in sizes} | {"nodeCount": 0}
    if "placementPolicy" in properties and spec.machine_type.startswith(WORKLOAD_POLICY_TPU):
        properties["placementPolicy"].pop("tpuTopology", None)
    # Never left out: a profile would outlive its field, and beside a profile alone the provider asks for public nodes.
    properties["networkConfig"] = {"enablePrivateNodes": private_nodes, **properties.get("networkConfig", {})}
    if spec.networks:
        names = [{"network": network.network, "subnetwork": network.subnetwork} for network in spec.networks]
        properties["networkConfig"]["additionalNodeNetworkConfigs"] = names
    of_all = node_security(service_account, disk_encryption_key)
    properties["nodeConfig"] = {
        **of_all,
        "gcfsConfig": {"enabled": image_streaming},
        "gvnic": {"enabled": True},
        **properties["nodeConfig"],
        "kubeletConfig": {**of_all["kubeletConfig"], **properties["nodeConfig"].get("kubeletConfig", {})},
        **({"resourceLabels": dict(labels)} if labels else {}),
    }
    return properties


def node_security(service_account: Any, disk_encryption_key: str | None) -> dict[str, Any]:
    """What every node of a Standard cluster has (5.2.1, 5.2.2, 5.5.1, 5.5.6, 5.5.7)."""
    properties: dict[str, Any] = {
        "serviceAccount": service_account,
        "oauthScopes": [CLOUD_PLATFORM_SCOPE],
        "imageType": IMAGE_TYPE,
        "workloadMetadataConfig": {"mode": "GKE_METADATA"},
        "shieldedInstanceConfig": {"enableSecureBoot": True, "enableIntegrityMonitoring": True},
        "kubeletConfig": {READONLY_PORT: NO_READONLY_PORT},
        "metadata": {"disable-legacy-endpoints": "true"},
    }
    if disk_encryption_key:
        properties["bootDiskKmsKey"] = disk_encryption_key
    return properties
