"""The data of teams in Google Cloud: buckets with who may use them, file servers, disks.

What holds data is never deleted by accident: with deletion protection Pulumi refuses to, Filestore refuses it too, and
should both be lifted by hand, Pulumi forgets it and leaves it where it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from kueue_admission.kernel.names import PRODUCT
from kueue_fleet.fleet_file.cost import CostLine, cost_line
from kueue_fleet.fleet_file.model.fleet import FleetSpec
from kueue_fleet.fleet_file.model.storage import (
    FILESTORE_SIZES,
    Bucket,
    Filestore,
    HyperdiskMl,
    Instance,
    Lustre,
    MultiTierCheckpoints,
)
from kueue_fleet.fleet_file.model.storage_places import SHARE, StoragePlace, storage_places
from kueue_fleet.gke.prices import Prices
from kueue_fleet.google.resource import CloudResource, joined, workload_pool
from kueue_fleet.google.resource_types import (
    BUCKET,
    BUCKET_MEMBER,
    DISK,
    FILESTORE,
    FIREWALL,
    GLOBAL_ADDRESS,
    LUSTRE,
    SERVICE_CONNECTION,
)

READS_OBJECTS: Final = "roles/storage.objectViewer"
"""To read the objects of a bucket."""
USES_OBJECTS: Final = "roles/storage.objectUser"
"""To read, write and delete them."""
_CHECKPOINTS: Final = "gke-managed-checkpointing/sa/gke-checkpointing-multitier-node"
"""Namespace and name of the account by which GKE copies checkpoints into a bucket."""
_MULTI_ZONE: Final = {"goog-gke-multi-zone": "true"}
"""Label without which the driver attaches no disk of a volume that has one in each of several zones. Source:
kubernetes-sigs/gcp-compute-persistent-disk-csi-driver, pkg/constants (MultiZoneLabel)."""
_PEERED_PREFIX: Final = 20
"""Length of the prefix of the range that Lustre instances get their addresses from."""
_LUSTRE_PORT: Final = "988"


def storage(
    name: str,
    *,
    project: Any,
    fleet: str,
    places: Sequence[StoragePlace],
    accounts: Mapping[str, Any],
    network: Any,
    shared_vpc: bool,
    peering: bool,
    labels: Mapping[str, Any],
    deletion_protection: bool,
) -> list[CloudResource]:
    """What the fleet makes for `places`, each once, and who may use the buckets.

    `accounts` has the address of each team's Google account. `network` is the clusters' network,
    `projects/P/global/networks/N`, of another project with `shared_vpc`. With `peering` it is the fleet's, which then
    connects it with Google's services where Lustre needs it; without, its owner did so.
    """
    cloud_resources: dict[str, CloudResource] = {}
    options: dict[str, Any] = {"protect": deletion_protection, "retain_on_delete": deletion_protection}
    lustre = any(isinstance(place.entry.volume, Lustre) and place.made for place in places)
    peering_resources = _peering(f"{name}/lustre", f"{fleet}-lustre", project, network) if lustre and peering else []
    there = {"project": project, "labels": {"managed-by": PRODUCT, **labels}}
    mode = "PRIVATE_SERVICE_ACCESS" if shared_vpc else "DIRECT_PEERING"
    for place in places:
        at = f"{name}/{place.entry.name}"
        resources = list(_resources_of(at, place, there, network, mode, options)) if place.made else []
        if isinstance(place.entry.volume, Lustre):
            resources = [
                replace(resource, needs=tuple(peering.key for peering in peering_resources)) for resource in resources
            ]
        for resource in (*resources, *_grants(at, place, resources, accounts, project)):
            cloud_resources.setdefault(resource.key, resource)
    return [*peering_resources, *cloud_resources.values()]


def _resources_of(
    name: str,
    place: StoragePlace,
    there: Mapping[str, Any],
    network: Any,
    connect_mode: str,
    options: Mapping[str, Any],
) -> Iterator[CloudResource]:
    """The bucket, instance or disks of a place."""
    volume = place.entry.volume
    if isinstance(volume, HyperdiskMl):
        yield from (_disk(f"{name}/{zone}", zone, place, volume, there, options) for zone in place.zones)
        return
    type_, properties = BUCKET, {**there, "name": place.name, "location": place.location}
    if isinstance(volume, Bucket):
        properties |= {
            # As Google answers it.
            "location": place.location.upper(),
            "uniformBucketLevelAccess": True,
            "publicAccessPrevention": "enforced",
            "forceDestroy": False,
            **({"hierarchicalNamespace": {"enabled": True}} if volume.hierarchical_namespace else {}),
        }
    elif isinstance(volume, Filestore):
        type_ = FILESTORE
        properties |= {
            "tier": volume.tier,
            "fileShares": {"name": SHARE, "capacityGb": volume.capacity_gib},
            "networks": [{"network": network, "modes": ["MODE_IPV4"], "connectMode": connect_mode}],
            "deletionProtectionEnabled": options["protect"],
        }
    else:
        type_ = LUSTRE
        properties |= {
            "instanceId": properties.pop("name"),
            "filesystem": SHARE,
            "capacityGib": str(volume.capacity_gib),
            "perUnitStorageThroughput": str(volume.per_unit_storage_throughput),
            "network": network,
        }
    yield CloudResource(type_, f"{name}/{place.location.lower()}", properties, **options)


def why_not_resized(before: Instance, after: Instance) -> str | None:
    """Why Google does not give the file server that is there the size of `after`; None where it may.

    Sources: https://docs.cloud.google.com/managed-lustre/docs/increase-capacity,
    https://docs.cloud.google.com/filestore/docs/service-tiers-zonal (a range of capacities is kept).
    """
    old, new = before.capacity_gib, after.capacity_gib
    if old is None or new is None or old == new:
        return None
    if new < old and not before.shrinks:
        return "it can only grow; make another entry, copy what is in it, and remove this one"
    if not any(least <= old <= most and least <= new <= most for least, most, _ in before.sizes):
        ranges = " or ".join(f"{least} to {most}" for least, most, _ in before.sizes)
        return f"an instance stays in the range of sizes that it was made in, {ranges}"
    return None


def storage_costs(fleet: FleetSpec, prices: Prices) -> Iterator[CostLine]:
    """File servers and disks, which are paid by their size."""
    for place in (
        storage_place for entry in fleet.storage for storage_place in storage_places(fleet, entry) if storage_place.made
    ):
        volume, count = place.entry.volume, max(1, len(place.zones))
        if isinstance(volume, Bucket):
            continue
        kind = "hyperdisk-ml"
        if isinstance(volume, Filestore):
            kind = f"filestore-{volume.tier.lower().replace('_', '-')}"
        elif isinstance(volume, Lustre):
            kind = f"lustre-{volume.per_unit_storage_throughput}"
        parts = prices.of_disk(kind, volume.capacity_gib or 0, place.region)
        what = f"{kind}, {volume.capacity_gib} GiB in {place.region}"
        yield cost_line("", place.entry.name, "storage", (count, count), what, parts)


def refused_update(token: str, state: Mapping[str, Any], wanted_properties: Mapping[str, Any]) -> str | None:
    """Why Google refuses an update of a resource of this type, which the provider takes; None where it may take it."""
    before, after = (_server(token, properties) for properties in (state, wanted_properties))
    return why_not_resized(before, after) if before is not None and after is not None else None


def _server(token: str, properties: Mapping[str, Any]) -> Instance | None:
    """The file server that a resource is, as far as its size goes; None for others, and where that is not known."""
    try:
        if token == FILESTORE:
            share, tier = properties["fileShares"], properties["tier"]
            server: Instance = Filestore.model_construct(tier=tier, capacity_gib=int(share["capacityGb"]))
            return server if tier in FILESTORE_SIZES else None
        if token == LUSTRE:
            speed, size = properties["perUnitStorageThroughput"], properties["capacityGib"]
            server = Lustre.model_construct(per_unit_storage_throughput=int(speed), capacity_gib=int(size))
            return server if server.sizes else None
    except (KeyError, TypeError, ValueError):  # Of other programs, or not known yet.
        return None
    return None


def _disk(
    name: str,
    zone: str,
    place: StoragePlace,
    volume: HyperdiskMl,
    there: Mapping[str, Any],
    options: Mapping[str, Any],
) -> CloudResource:
    several = len(place.zones) > 1
    properties = {
        "project": there["project"],
        "labels": {**there["labels"], **(_MULTI_ZONE if several else {})},
        "name": place.name,
        "zone": zone,
        "type": "hyperdisk-ml",
        "size": volume.capacity_gib,
        "accessMode": "READ_ONLY_MANY",
        **({"snapshot": volume.snapshot} if volume.snapshot else {"image": volume.image}),
    }
    return CloudResource(DISK, name, properties, **options)


def _grants(
    name: str, place: StoragePlace, cloud_resources: Sequence[CloudResource], accounts: Mapping[str, Any], project: Any
) -> Iterator[CloudResource]:
    """Who may use a bucket: its teams, and of checkpoints GKE's own account."""
    volume = place.entry.volume
    if not isinstance(volume, Bucket):
        return
    bucket, at = (
        (cloud_resources[0].ref("name"), place.location.lower()) if cloud_resources else (place.name, place.name)
    )
    role = READS_OBJECTS if place.entry.read_only else USES_OBJECTS
    who = {team: (role, joined("serviceAccount:", accounts[team])) for team in place.entry.teams if team in accounts}
    if isinstance(volume, MultiTierCheckpoints):
        pool = (
            f"principal://iam.googleapis.com/projects/{volume.project_number}/locations/global/workloadIdentityPools/"
        )
        who["gke"] = (USES_OBJECTS, joined(pool, workload_pool(project), f"/subject/ns/{_CHECKPOINTS}"))
    for grant_name, (role_of, member) in who.items():
        properties = {"bucket": bucket, "role": role_of, "member": member}
        yield CloudResource(BUCKET_MEMBER, f"{name}/{at}/{grant_name}", properties)


def _peering(name: str, peering_name: str, project: Any, network: Any) -> list[CloudResource]:
    """A range of addresses for Google's services, the connection with them, and the way from it to the nodes.

    Source: https://cloud.google.com/managed-lustre/docs/vpc.
    """
    address = CloudResource(
        GLOBAL_ADDRESS,
        name,
        {
            "project": project,
            "name": peering_name,
            "purpose": "VPC_PEERING",
            "addressType": "INTERNAL",
            "prefixLength": _PEERED_PREFIX,
            "network": network,
        },
    )
    connection = CloudResource(
        SERVICE_CONNECTION,
        name,
        {
            "network": network,
            "service": "servicenetworking.googleapis.com",
            "reservedPeeringRanges": [address.ref("name")],
        },
    )
    firewall = CloudResource(
        FIREWALL,
        name,
        {
            "project": project,
            "name": peering_name,
            "network": network,
            "direction": "INGRESS",
            "sourceRanges": [joined(address.ref("address"), f"/{_PEERED_PREFIX}")],
            "allows": [{"protocol": "tcp", "ports": [_LUSTRE_PORT]}],
        },
    )
    return [address, connection, firewall]
