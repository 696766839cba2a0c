"""The data of teams: that it is where their jobs are and nowhere else, that it can be mounted, and by whom.

Sources: the pages that `objects.storage` names, and
https://cloud.google.com/filestore/docs/csi-driver#requirements.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from kueue_admission.kernel import suggest
from kueue_admission.kernel.form_rules import EXCLUDED, NEEDED
from kueue_admission.kernel.problem import Problem, where_read
from kueue_admission.kernel.quantity import Quantity
from kueue_fleet.fleet_file.check.google_cloud import cluster_since
from kueue_fleet.fleet_file.check.scope import Scope, entry_check, fleet_check
from kueue_fleet.fleet_file.model.clusters import FIRST_DRIVERS, ClusterEntry
from kueue_fleet.fleet_file.model.storage import (
    CLAIM_SIZE,
    Bucket,
    ExistingInstance,
    HyperdiskMl,
    MultiTierCheckpoints,
    StorageEntry,
)
from kueue_fleet.fleet_file.model.storage_places import StoragePlace, storage_places
from kueue_fleet.fleet_file.model.teams import TeamEntry
from kueue_fleet.fleet_file.model.zone_rules import zone_problems
from kueue_fleet.fleet_file.rules.clusters import DATA_DRIVER, RUNS_NO_JOBS, ZONE
from kueue_fleet.fleet_file.rules.files import UNKNOWN_REGION, UNUSED
from kueue_fleet.fleet_file.rules.teams import DATA_ACCOUNT, DATA_REGION, TEAM_QUOTA
from kueue_fleet.gke.google_syntax import region_in_link, repository_location
from kueue_fleet.gke.machines import NO_HYPERDISK
from kueue_fleet.gke.zones import region_at, region_names

DRIVERS: Final = {
    "gcsFuse": "GcsFuse",
    "filestore": "Filestore",
    "lustre": "Lustre",
    "hyperdiskMl": "PersistentDisk",
    "multiTierCheckpoints": "MultiTierCheckpoints",
}
"""The driver of each kind of volume, as `clusters[].storageDrivers` has it."""
_SINCE: Final = {"lustre": "1.33.2-gke.1111000", "multiTierCheckpoints": "1.32.4-gke.1415000"}
"""The first version of GKE with the driver."""
_MULTI_REGIONS: Final = ("us", "eu", "asia")
"""Source: https://cloud.google.com/storage/docs/locations#location-mr."""
_CLAIMS: Final = "persistentvolumeclaims"


@entry_check("storage")
def _teams(scope: Scope, entry: StorageEntry) -> Iterator[Problem]:
    """The teams exist; jobs get at a bucket by their team's Google account."""
    for index, name in enumerate(entry.teams):
        yield from scope.unknown("teams", name, f"{scope.path(entry)}.teams[{index}]")
    if isinstance(entry.volume, Bucket):
        for team in scope.fleet.teams:
            if team.name in entry.teams and not team.has_google_account:
                yield DATA_ACCOUNT.at(
                    f"{scope.path(team)}.googleServiceAccount",
                    f"not set, so its jobs cannot reach a bucket, but storage {entry.name} is one",
                    "write {}, or name one that exists in existingGoogleServiceAccount",
                )


@entry_check("storage")
def _nodes(scope: Scope, entry: StorageEntry) -> Iterator[Problem]:
    if isinstance(entry.volume, MultiTierCheckpoints):
        yield from scope.unknown("nodePools", entry.volume.node_pool, f"{scope.path(entry)}.volume.nodePool")


@entry_check("storage")
def _sources(scope: Scope, entry: StorageEntry) -> Iterator[Problem]:
    """The snapshot that disks are made of is where its teams may have data, if its name says where it is."""
    snapshot = entry.volume.snapshot if isinstance(entry.volume, HyperdiskMl) else None
    region = region_in_link(snapshot or "")
    for team in scope.fleet.teams if region is not None else ():
        allowed_regions = scope.fleet.allowed_regions(team) if team.name in entry.teams else ()
        if allowed_regions and region not in allowed_regions:
            wrong = f"in {region}, but data of team {team.name} stays in {', '.join(allowed_regions)}"
            yield DATA_REGION.at(
                f"{scope.path(entry)}.volume.snapshot", wrong, "name a snapshot in one of these regions"
            )


@entry_check("teams")
def _images(scope: Scope, team: TeamEntry) -> Iterator[Problem]:
    """Images that jobs of a team are made with are where the team may have data; they may be anybody's, too."""
    allowed_regions = scope.fleet.allowed_regions(team)
    for template in team.job_templates if allowed_regions else ():
        location = repository_location(template.image or "")
        if location is not None and location not in allowed_regions:
            at = f"{scope.path(team)}.jobTemplates[{template.name}].image"
            wrong = f"in {location}, but data of team {team.name} stays in {', '.join(allowed_regions)}"
            fix = "use a repository there, or make sure that the image holds nothing of the team's"
            yield DATA_REGION.at(at, wrong, fix, "warning")


@entry_check("storage")
def _places(scope: Scope, entry: StorageEntry) -> Iterator[Problem]:
    fleet, path = scope.fleet, scope.path(entry)
    if not set(fleet.clusters_of(entry)) <= set(fleet.cluster_names):
        return
    places = storage_places(fleet, entry)
    regions = [place.region for place in places]
    for region in entry.volume.existing:
        if region not in regions:
            wrong = f"no cluster of the entry is in {region}"
            yield UNUSED.at(f"{path}.volume.existing[{region}]", wrong, "remove it, or add a cluster there")
    for index, zone in enumerate(getattr(entry.volume, "zones", ())):
        yield from zone_problems(f"{path}.volume.zones[{index}]", zone)
        if region_at(zone) not in regions:
            wrong = f"is {zone}, but no cluster of the entry is in {region_at(zone)}"
            yield ZONE.at(f"{path}.volume.zones[{index}]", wrong, f"use zones of {', '.join(regions)}")
    yield from _one_zone(path, entry)
    yield from _location(path, entry)
    for place in places:
        yield from _new_volume(path, place)
        yield from _allowed(scope, place)
        yield from _used(scope, place)
        for cluster in place.clusters:
            yield from _mounted(scope, entry, cluster)


def _one_zone(path: str, entry: StorageEntry) -> Iterator[Problem]:
    """An instance is in one zone of a region, or in none of its own; disks are in several."""
    first: dict[str, str] = {}
    tier = getattr(entry.volume, "tier", "")
    for index, zone in enumerate(() if isinstance(entry.volume, HyperdiskMl) else getattr(entry.volume, "zones", ())):
        other = first.setdefault(region_at(zone), zone)
        if tier in ("REGIONAL", "ENTERPRISE"):
            wrong = f"is {zone}, but an instance of tier {tier} is in all of its region"
            yield EXCLUDED.at(f"{path}.volume.zones[{index}]", wrong, "remove zones, or write tier ZONAL")
        elif other != zone:
            wrong = f"is {zone}, but the instance of {region_at(zone)} is in {other}"
            yield EXCLUDED.at(f"{path}.volume.zones[{index}]", wrong, "name one zone of each region")


def _location(path: str, entry: StorageEntry) -> Iterator[Problem]:
    location = entry.volume.location if isinstance(entry.volume, Bucket) else None
    if location is not None and location.lower() not in (*region_names(), *_MULTI_REGIONS):
        wrong = f"{location} is not a known location of buckets"
        fix = suggest.instead(location.lower(), (*_MULTI_REGIONS, *region_names()), "locations")
        newer = re.fullmatch(r"[a-z]+-[a-z]+[0-9]+", location.lower())
        yield UNKNOWN_REGION.at(f"{path}.volume.location", wrong, fix, "warning" if newer else "error")


def _new_volume(path: str, place: StoragePlace) -> Iterator[Problem]:
    volume = place.entry.volume
    if not place.made or isinstance(volume, Bucket):
        return
    if volume.capacity_gib is None:
        wrong = f"not set, but existing has none in {place.region}, so that one is made"
        yield NEEDED.at(f"{path}.volume.capacityGib", wrong, "write its size, or name what exists there")
    if not (place.zones if isinstance(volume, HyperdiskMl) else place.location):
        wrong = f"not set, and the zones of {place.region} are not known"
        yield NEEDED.at(f"{path}.volume.zones", wrong, f"name a zone of {place.region}")


def _used(scope: Scope, place: StoragePlace) -> Iterator[Problem]:
    """An instance or disk is paid for where no job mounts it."""
    fleet, names = scope.fleet, {cluster.name for cluster in place.clusters}
    queues = {
        spec.cluster_queue for team in fleet.teams if team.name in place.entry.teams for spec in team.local_queues
    }
    there = [queue for queue in fleet.cluster_queues if queue.name in queues and names & set(fleet.clusters_of(queue))]
    if place.made and not isinstance(place.entry.volume, Bucket) and queues and not there:
        wrong = f"no queue of its teams is on {', '.join(sorted(names))}, where {place.name} would be paid for"
        yield UNUSED.at(f"{scope.path(place.entry)}.clusters", wrong, "name the clusters where their jobs run")


def _allowed(scope: Scope, place: StoragePlace) -> Iterator[Problem]:
    """Data of a team that is kept to some regions is in one of them, and so is every copy of it."""
    fleet, volume = scope.fleet, place.entry.volume
    own = place.made and isinstance(volume, Bucket) and volume.location is not None
    server = volume.existing.get(place.region)
    where = region_at(server.location) if isinstance(server, ExistingInstance) else place.region
    where = place.location.lower() if own else where
    for team in fleet.teams:
        allowed_regions = fleet.allowed_regions(team) if team.name in place.entry.teams else ()
        if allowed_regions and where not in allowed_regions:
            at = f"{scope.path(place.entry)}.{'volume.location' if own else 'clusters'}"
            wrong = f"in {where.upper() if own and '-' not in where else where}, but data of team {team.name} stays in "
            fix = "write one of these regions" if own else "name clusters there, or allow the region"
            yield DATA_REGION.at(at, wrong + ", ".join(allowed_regions), fix)


def _mounted(scope: Scope, entry: StorageEntry, cluster: ClusterEntry) -> Iterator[Problem]:
    """The cluster runs jobs, has the driver, and is in the project of what is mounted."""
    path, volume = scope.path(entry), entry.volume
    driver, always = DRIVERS[volume.type], FIRST_DRIVERS if cluster.platform == "Autopilot" else ()
    if not cluster.runs_jobs:
        yield RUNS_NO_JOBS.at(f"{path}.clusters", f"{cluster.name} runs no jobs", "name clusters that do")
    if cluster.project is not None and isinstance(volume, HyperdiskMl | MultiTierCheckpoints):
        wrong = f"{volume.type}, which is for clusters of the fleet's project, not on {{cluster}}"
        fix = "leave {cluster} out of clusters, or use another kind"
        yield EXCLUDED.at(f"{path}.volume.type", wrong, fix).on(cluster.name)
    if cluster.platform == "Autopilot" and isinstance(volume, MultiTierCheckpoints):
        wrong = f"{volume.type}, which Autopilot does not have, so not on {{cluster}}"
        fix = "leave {cluster} out of clusters, or use gcsFuse"
        yield EXCLUDED.at(f"{path}.volume.type", wrong, fix).on(cluster.name)
    elif driver not in (*cluster.storage_drivers, *always) and cluster in scope.fleet.new_clusters:
        yield DATA_DRIVER.at(
            f"{scope.path(cluster)}.storageDrivers", f"without {driver}, which storage {entry.name} needs", "add it"
        )
    if isinstance(volume, HyperdiskMl):
        yield from _attached(scope, entry, cluster)
    if (since := _SINCE.get(volume.type)) is not None:
        yield from cluster_since(scope, cluster, since, f"storage {entry.name}")


@where_read
def _attached(scope: Scope, entry: StorageEntry, cluster: ClusterEntry) -> Iterator[Problem]:
    """A disk can be attached to some of the machines to which jobs of its teams come, and is where they are.

    Source: https://cloud.google.com/compute/docs/disks/hyperdisks (machine series).
    """
    fleet = scope.fleet
    queues = {
        local_queue.cluster_queue
        for team in fleet.teams
        if team.name in entry.teams
        for local_queue in team.local_queues
    }
    names = {name for queue in fleet.cluster_queues if queue.name in queues for name in queue.flavor_names}
    flavors = [flavor for flavor in fleet.flavors if flavor.name in names and cluster.name in fleet.clusters_of(flavor)]
    pools = [fleet.flavor_nodes(flavor, cluster.name) for flavor in flavors]
    machines = dict.fromkeys(pool.machine_type for some in pools for pool in some)
    if pools and all(pools) and all(machine.startswith(NO_HYPERDISK) for machine in machines):
        wrong = f"{entry.volume.type}, which cannot be attached to the machines of its teams on {{cluster}}, "
        fix = "leave {cluster} out of clusters, or use other machines or another kind of storage"
        at = f"{scope.path(entry)}.volume.type"
        yield EXCLUDED.at(at, wrong + ", ".join(machines), fix, "warning").on(cluster.name)
    disks = {zone for place in storage_places(fleet, entry) if cluster in place.clusters for zone in place.zones}
    nodes = dict.fromkeys(zone for some in pools for pool in some for zone in pool.node_locations)
    if disks and pools and all(pools) and nodes and disks.isdisjoint(nodes):
        wrong = f"none is in {', '.join(nodes)}, where the nodes of its teams are on {{cluster}}: no pod with it starts"
        yield ZONE.at(f"{scope.path(entry)}.volume.zones", wrong, "name one of these", "warning").on(cluster.name)


@fleet_check
def _claims(scope: Scope) -> Iterator[Problem]:
    """No more claims than a team's ResourceQuota lets it have in a namespace."""
    fleet = scope.fleet
    claims = [entry for entry in fleet.storage if not isinstance(entry.volume, MultiTierCheckpoints)]
    for team in fleet.teams:
        here = [
            sum(team.name in entry.teams and name in fleet.clusters_of(entry) for entry in claims)
            for name in fleet.job_clusters
        ]
        most = max(here, default=0)
        for resource, amount in ((_CLAIMS, Quantity(most)), ("requests.storage", Quantity(f"{CLAIM_SIZE * most}Gi"))):
            limit = team.resource_quota.get(resource)
            if limit is not None and limit < amount:
                yield TEAM_QUOTA.at(
                    f"{scope.path(team)}.resourceQuota[{resource}]",
                    f"{limit.plain}, but its claims in `storage` take {amount.plain}",
                    f"write {amount.plain} or more",
                )
