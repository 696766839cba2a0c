"""A node pool of a Standard cluster, of any capacity class, and what every node of one has.

Every rule of GKE about it has been checked by the spec; here its fields only get the names of the provider. Numbers are
those of the CIS GKE Benchmark 1.9.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from kueue_fleet.fleet_file.check.google_cloud import LONGEST_NAME
from kueue_fleet.fleet_file.model.capacity import Calendar, FlexStart, Reserved, Spot
from kueue_fleet.fleet_file.model.clusters import ClusterEntry
from kueue_fleet.fleet_file.model.gcp_names import with_digest
from kueue_fleet.fleet_file.model.node_pools import NodePoolEntry
from kueue_fleet.fleet_file.model.resolved_pools import ResolvedNodePool, resolve_pool
from kueue_fleet.gke.declared_pools import EFFECTS
from kueue_fleet.gke.machines import COMPACT_FLEX_START
from kueue_fleet.gke.pool_facts import RESERVATION_KEY
from kueue_fleet.gke.tpu_slices import WORKLOAD_POLICY_TPU, asked_topology
from kueue_fleet.google.resource import CloudResource

CLOUD_PLATFORM_SCOPE = "https://www.googleapis.com/auth/cloud-platform"
"""The one scope; what nodes may do is limited by their account's roles. Source:
https://cloud.google.com/kubernetes-engine/docs/how-to/access-scopes."""
IMAGE_TYPE = "COS_CONTAINERD"
"""Google's own operating system for nodes (5.5.1)."""

NO_READONLY_PORT = "FALSE"
"""The kubelet's port without authentication is closed; the API takes text here."""
NODE_POOL = "gcp:container/nodePool:NodePool"
"""Pulumi's token of a node pool."""
_EFFECTS: Mapping[str, str] = {effect: theirs for theirs, effect in EFFECTS.items()}


def node_pool(
    name: str,
    entry: NodePoolEntry,
    on: ClusterEntry,
    *,
    project: Any,
    cluster: Any,
    service_account: Any,
    private_nodes: Any = True,
    deletion_protection: bool,
    labels: Mapping[str, str],
    needs: tuple[str, ...] = (),
    deleted_with: str | None = None,
) -> list[CloudResource]:
    """The pool of that entry on its cluster, after the workload policy that keeps its nodes together, if it needs one.

    `deletion_protection` is the cluster's.
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
        replace_with=tuple(each.key for each in placement),
        delete_before_replace=True,
        deleted_with=deleted_with,
    )
    return [*placement, pool]


def _placement(name: str, project: Any, spec: ResolvedNodePool) -> Iterator[CloudResource]:
    """Other machines take GKE's own policy. Source: GoogleCloudPlatform/cluster-toolkit,
    modules/compute/resource-policy, and the rule of `gke.pool_rules` on compact placement with flex-start."""
    if spec.compact_placement and spec.machine_type.startswith((*COMPACT_FLEX_START, *WORKLOAD_POLICY_TPU)):
        wanted = f"{spec.cluster}-{spec.name}"
        short = with_digest(wanted, f"{spec.cluster}/{spec.name}", LONGEST_NAME)
        topology = {"acceleratorTopology": spec.tpu_topology} if spec.tpu_topology else {}
        properties = {
            "project": project,
            "region": spec.region,
            "name": wanted if len(wanted) <= LONGEST_NAME else short,
            "description": f"Nodes of {spec.name} close together, managed by kueue-fleet",
            "workloadPolicy": {"type": "HIGH_THROUGHPUT", **topology},
        }
        yield CloudResource("gcp:compute/resourcePolicy:ResourcePolicy", name, properties)


def node_pool_properties(
    spec: ResolvedNodePool,
    *,
    service_account: Any,
    disk_encryption_key: str | None,
    image_streaming: bool,
    labels: Mapping[str, str],
    private_nodes: Any = True,
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


def node_security(service_account: Any, disk_encryption_key: str | None) -> dict[str, Any]:
    """What every node of a Standard cluster has (5.2.1, 5.2.2, 5.5.1, 5.5.6, 5.5.7)."""
    properties: dict[str, Any] = {
        "serviceAccount": service_account,
        "oauthScopes": [CLOUD_PLATFORM_SCOPE],
        "imageType": IMAGE_TYPE,
        "workloadMetadataConfig": {"mode": "GKE_METADATA"},
        "shieldedInstanceConfig": {"enableSecureBoot": True, "enableIntegrityMonitoring": True},
        "kubeletConfig": {"insecureKubeletReadonlyPortEnabled": NO_READONLY_PORT},
        "metadata": {"disable-legacy-endpoints": "true"},
    }
    if disk_encryption_key:
        properties["bootDiskKmsKey"] = disk_encryption_key
    return properties
