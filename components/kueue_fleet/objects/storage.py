"""The claims of teams on a cluster, each bound to a volume of its own, and where checkpoints are kept.

Volumes are static: what is behind them is made or known by the fleet, and stays when a claim goes.

Sources: https://cloud.google.com/kubernetes-engine/docs/how-to/persistent-volumes/cloud-storage-fuse-csi-driver-pv,
https://cloud.google.com/filestore/docs/csi-driver,
https://cloud.google.com/managed-lustre/docs/connect-from-kubernetes-engine-existing-instance,
https://cloud.google.com/kubernetes-engine/docs/how-to/persistent-volumes/hyperdisk-ml,
https://cloud.google.com/kubernetes-engine/docs/how-to/machine-learning/training/multi-tier-checkpointing.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

from kueue_admission.api.manifests import manifest
from kueue_admission.kernel.manifest import Manifest
from kueue_fleet.fleet_file.model.fleet import FleetSpec
from kueue_fleet.fleet_file.model.gcp_names import with_digest
from kueue_fleet.fleet_file.model.storage import CLAIM_SIZE, Filestore, GcsFuse, HyperdiskMl, MultiTierCheckpoints
from kueue_fleet.fleet_file.model.storage_places import StoragePlace, storage_places
from kueue_fleet.gke.labels import NODE_POOL, ZONE

CHECKPOINTS_API: Final = "checkpointing.gke.io/v1"
"""Of CheckpointConfigurations, which GKE brings with the driver."""
_LONGEST_NAME: Final = 63


def render_storage(fleet: FleetSpec, cluster: str) -> list[Manifest]:
    """Volumes and claims, each volume before its claim, and CheckpointConfigurations."""
    manifests: list[Manifest] = []
    for entry in fleet.storage:
        for place in storage_places(fleet, entry):
            if cluster in (cluster_entry.name for cluster_entry in place.clusters):
                manifests += _objects(fleet, place)
    return manifests


def _objects(fleet: FleetSpec, place: StoragePlace) -> Iterator[Manifest]:
    entry = place.entry
    if isinstance(entry.volume, MultiTierCheckpoints):
        yield _checkpoints(fleet, place, entry.volume)
        return
    for team in fleet.teams:
        for namespace in team.namespace_names if team.name in entry.teams else ():
            volume: dict[str, Any] = {
                "accessModes": [entry.access_mode],
                "claimRef": {"namespace": namespace, "name": entry.name},
                "csi": _source(fleet, place),
                "persistentVolumeReclaimPolicy": "Retain",
                "storageClassName": "",
                **({"mountOptions": list(entry.options)} if entry.options else {}),
                **({"nodeAffinity": _in_zones(place)} if place.zones else {}),
            }
            name = volume_name(namespace, entry.name, volume)
            yield manifest("v1", "PersistentVolume", name, spec={**volume, "capacity": {"storage": str(entry.size)}})
            claim = {
                "accessModes": [entry.access_mode],
                "resources": {"requests": {"storage": f"{CLAIM_SIZE}Gi"}},
                "storageClassName": "",
                "volumeName": name,
            }
            yield manifest("v1", "PersistentVolumeClaim", entry.name, namespace, spec=claim)


def volume_name(namespace: str, claim: str, spec: Manifest) -> str:
    """Name of the volume with this `spec`, without its capacity.

    What a volume leads to cannot be changed: another one has another name, and the claim goes over to it.
    """
    return with_digest(f"{namespace}-{claim}", json.dumps(spec, sort_keys=True), _LONGEST_NAME)


def _source(fleet: FleetSpec, place: StoragePlace) -> dict[str, Any]:
    """What is mounted, and by which driver."""
    volume, read_only = place.entry.volume, {"readOnly": True} if place.entry.access_mode == "ReadOnlyMany" else {}
    if isinstance(volume, GcsFuse):
        return {"driver": "gcsfuse.csi.storage.gke.io", "volumeHandle": place.name, **read_only}
    if isinstance(volume, HyperdiskMl):
        zone = place.zones[0] if len(place.zones) == 1 else "multi-zone"
        handle = f"projects/{fleet.project}/zones/{zone}/disks/{place.name}"
        return {"driver": "pd.csi.storage.gke.io", "volumeHandle": handle, **read_only}
    if isinstance(volume, Filestore):
        return {
            "driver": "filestore.csi.storage.gke.io",
            "volumeHandle": f"modeInstance/{place.location}/{place.name}/{place.share}",
            "volumeAttributes": {"ip": place.address, "volume": place.share},
            **read_only,
        }
    return {
        "driver": "lustre.csi.storage.gke.io",
        "volumeHandle": f"{fleet.project}/{place.location}/{place.name}",
        "volumeAttributes": {"ip": place.address, "filesystem": place.share},
        **read_only,
    }


def _in_zones(place: StoragePlace) -> dict[str, Any]:
    zones = {"key": ZONE, "operator": "In", "values": list(place.zones)}
    return {"required": {"nodeSelectorTerms": [{"matchExpressions": [zones]}]}}


def _checkpoints(fleet: FleetSpec, place: StoragePlace, volume: MultiTierCheckpoints) -> Manifest:
    """Where checkpoints are kept before they are in the bucket: on the nodes of a pool, whatever their taints."""
    pools = (fleet.node_pool_on(volume.node_pool, cluster.name) for cluster in place.clusters)
    taints = {taint.key for pool in pools if pool is not None for taint in pool.taints}
    spec = {
        "cloudStorageBucketName": place.name,
        "inMemoryVolumeSize": str(volume.in_memory_volume_size),
        "nodeSelector": {NODE_POOL: volume.node_pool},
        "tolerations": [{"key": key, "operator": "Exists"} for key in sorted(taints)],
    }
    return manifest(CHECKPOINTS_API, "CheckpointConfiguration", place.entry.name, spec=spec)
