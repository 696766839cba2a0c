"""What is behind the entries of `storage`, region by region."""

from __future__ import annotations

from typing import Final, NamedTuple

from kueue_fleet.fleet_file.model.clusters import ClusterEntry
from kueue_fleet.fleet_file.model.fleet import FleetSpec
from kueue_fleet.fleet_file.model.gcp_names import with_digest
from kueue_fleet.fleet_file.model.storage import Bucket, ExistingInstance, Filestore, HyperdiskMl, StorageEntry
from kueue_fleet.gke.zones import region_at

SHARE: Final = "data"
"""Name of the share of a Filestore instance, and of the file system of a Lustre instance, that the fleet makes."""
_LONGEST_NAME: Final = 63


class StoragePlace(NamedTuple):
    """What is behind an entry in one region: a bucket, an instance, or a disk in each of some zones."""

    entry: StorageEntry
    region: str
    clusters: tuple[ClusterEntry, ...]
    """Those of the region that have the claim."""
    name: str
    """Of the bucket, instance or disk."""
    location: str
    """Of the bucket or instance."""
    zones: tuple[str, ...]
    """Of the disks."""
    made: bool
    """Whether the fleet makes it."""
    address: str
    """Of a file server; one that the fleet creates has this text instead, until Google assigns it."""
    share: str
    """Of a file server."""


def storage_places(fleet: FleetSpec, entry: StorageEntry) -> list[StoragePlace]:
    """What is behind an entry, region by region in the order of the clusters."""
    regions: dict[str, list[ClusterEntry]] = {}
    for name in fleet.clusters_of(entry):
        cluster = fleet.cluster(name)
        if not cluster.outside_gke:
            regions.setdefault(cluster.region, []).append(cluster)
    return [_place(fleet, entry, region, tuple(clusters)) for region, clusters in regions.items()]


def _place(fleet: FleetSpec, entry: StorageEntry, region: str, clusters: tuple[ClusterEntry, ...]) -> StoragePlace:
    volume = entry.volume
    existing_volume = volume.existing.get(region)
    storage_place = StoragePlace(entry, region, clusters, "", region, (), existing_volume is None, "", "")
    if isinstance(volume, Bucket):
        location = volume.location or region
        name = _fitting(f"{fleet.project}-{fleet.name}-{entry.name}-{location.lower()}".replace(":", "-"))
        return storage_place._replace(name=str(existing_volume or name), location=location)
    wanted_zones = tuple(zone for zone in volume.zones if region_at(zone) == region)
    zones = wanted_zones or tuple(dict.fromkeys(zone for cluster in clusters for zone in cluster.node_locations))
    name = _fitting(f"{fleet.name}-{entry.name}")
    if isinstance(volume, HyperdiskMl):
        return storage_place._replace(name=str(existing_volume or name), zones=zones)
    if isinstance(existing_volume, ExistingInstance):
        return storage_place._replace(
            name=existing_volume.name,
            location=existing_volume.location,
            address=existing_volume.address,
            share=existing_volume.share,
        )
    location = region if isinstance(volume, Filestore) and volume.regional else (zones or ("",))[0]
    address = f"address of {volume.type} {name} in {location}"
    return storage_place._replace(name=name, location=location, address=address, share=SHARE)


def _fitting(text: str) -> str:
    return text if len(text) <= _LONGEST_NAME else with_digest(text, text, _LONGEST_NAME)
