"""What a change does in Google Cloud: clusters, node pools and reservations that are deleted, or made again.

Whether something is made again, or changed in place, says the plan of Google's provider (`google.changes`); here it
gets its words, by the fields of the file that say the properties. Beside it stand what GKE does to nodes when a pool
changes in place, and what Google keeps although the file no longer has it.

Source of zones that go: the field `locations` in
https://cloud.google.com/kubernetes-engine/docs/reference/rest/v1/projects.locations.clusters.nodePools.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Any, Final

from kueue_fleet.diff.difference import DRAIN, Difference, consequence
from kueue_fleet.fleet_file.in_words import in_words, listed
from kueue_fleet.fleet_file.model.capacity import (
    Calendar,
    Capacity,
    FlexStart,
    FutureReservationEntry,
    OnDemand,
    ReservationEntry,
    Reserved,
    Spot,
)
from kueue_fleet.fleet_file.model.cluster_properties import LATER_ADDONS
from kueue_fleet.fleet_file.model.cluster_properties import ROWS as CLUSTER_ROWS
from kueue_fleet.fleet_file.model.fleet import FleetSpec
from kueue_fleet.fleet_file.model.pool_fields import NodePoolFields
from kueue_fleet.fleet_file.model.pool_properties import ROWS
from kueue_fleet.fleet_file.model.property_rows import Row
from kueue_fleet.fleet_file.model.resolved_pools import SYSTEM_POOL, ResolvedNodePool
from kueue_fleet.fleet_file.model.storage import Instance, Volume
from kueue_fleet.gke.regions import REGION_RANGES, default_pod_range
from kueue_fleet.gke.tpu_slices import asked_topology
from kueue_fleet.google.changes import Step, plan
from kueue_fleet.google.parts import data_on
from kueue_fleet.google.resources import resources_on
from kueue_fleet.google.storage import why_not_resized

_PROTECTED: Final = "; it is protected: set its deletionProtection to false and apply that first"
_AGAIN: Final = "deleted and made again"
_STAYS: Final = Step("update")
_OF_ALL_POOLS: Final[Mapping[str, str]] = {
    "diskEncryptionKey": "nodeConfig.bootDiskKmsKey",
    "nodeServiceAccount": "nodeConfig.serviceAccount",
}
"""Fields of a cluster that every pool of it has: by field the property."""


class CloudPlan:
    """What becomes of the resources of a fleet in Google Cloud when another takes its place."""

    def __init__(self, old: FleetSpec, new: FleetSpec) -> None:
        self.old, self.new = old, new
        self._steps = plan(resources_on(old), resources_on(new))

    def step(self, kind: str, *name: str) -> Step:
        """What becomes of a resource that both fleets have."""
        return self.at("/".join((kind, self.new.name, *name)))

    def at(self, key: str) -> Step:
        """What becomes of the resource with that key, if both fleets have it."""
        return self._steps.get(key, _STAYS)

    @cached_property
    def clusters_that_stay(self) -> list[str]:
        """Clusters of both fleets that are not made again."""
        return [name for name in self.new.cluster_names if name in self.old.cluster_names and not _causes(self, name)]


def cloud_consequences(change: CloudPlan) -> Iterator[Difference]:
    """Clusters first, then node pools of clusters that stay, then what is reserved or committed."""
    old, new = change.old, change.new
    yield from _clusters(change)
    yield from _owners(old, new)
    yield from _subnets(change)
    yield from _memberships(change)
    yield from _node_pools(change)
    yield from _reservations(change)
    yield from _data(change)
    yield from _sizes(change)
    yield from _commitments(old, new)


def _clusters(change: CloudPlan) -> Iterator[Difference]:
    old, new = change.old, change.new
    for name in old.cluster_names:
        if name not in new.cluster_names:
            entry = old.cluster(name)
            what = "is deleted, with Kueue"
            if entry not in old.new_clusters:
                what = "stays, but Kueue is deleted from it, with its queues"
            text = f"{entry.role}{f' in {entry.place}' if entry.place else ''} {what} and every job on it"
            text += f"; {DRAIN}" if entry.role == "worker" else ""
            text += _PROTECTED if old.protects(name) else ""
            yield consequence(f"clusters[{name}]", text, whole=True)
    by_cause: dict[tuple[str, str], list[str]] = {}
    for name in new.cluster_names:
        if name in old.cluster_names:
            for cause in _causes(change, name):
                by_cause.setdefault(cause, []).append(name)
    for (path, what), names in by_cause.items():
        verb = "is" if len(names) == 1 else "are"
        text = f"{what}: {listed(names)} {verb} {_AGAIN}, with Kueue and every job"
        if path.endswith(".role"):
            text = f"{what}: `pulumi up` fails, since a cluster of that name is there; apply without it first"
        protection_text = _PROTECTED if any(old.protects(name) for name in names) else ""
        yield consequence(path, text + protection_text)


def _owners(old: FleetSpec, new: FleetSpec) -> Iterator[Difference]:
    """Clusters that the fleet made and is to find, and the other way round."""
    for name in new.cluster_names:
        before, after = (fleet.cluster(name) if name in fleet.cluster_names else None for fleet in (old, new))
        if before is None or after is None:
            continue
        places = ("region", before.region, after.region), ("project", old.project_of(name), new.project_of(name))
        for field, was, becomes in places if before.existing and after.existing else ():
            if was != becomes:
                text = f"{was} -> {becomes}: it is another cluster; what the fleet has in the first is deleted"
                yield consequence(f"clusters[{name}].{field}", text + (_PROTECTED if old.protects(name) else ""))
        if before.existing == after.existing:
            continue
        text = (
            "false -> true: Pulumi deletes the cluster that it made, with everything on it; take it out of the stack's "
            f"state first, with `pulumi state delete`{_PROTECTED if old.protects(name) else ''}"
            if after.existing
            else "true -> false: `pulumi up` fails, since a cluster of that name is there; import it first: "
            "docs/tasks/import-a-platform.md"
        )
        yield consequence(f"clusters[{name}].existing", text)


def _subnets(change: CloudPlan) -> Iterator[Difference]:
    """A subnet's range only grows; a smaller or another one is a new subnet, which the clusters stand in the way of."""
    old, new = change.old, change.new
    for region in dict.fromkeys(cluster.region for cluster in new.clusters):
        ranges = [{**REGION_RANGES, **fleet.network.ranges}.get(region) for fleet in (old, new)]
        if new.network.existing is not None:
            return
        stays = old.network_name == new.network_name and any(cluster.region == region for cluster in old.clusters)
        if change.step("Subnetwork", new.network_name, region).replaces("ipCidrRange"):
            text = f"{ranges[0]} -> {ranges[1]}: `pulumi up` fails, since a range that is in use can only grow"
            yield consequence(f"network.ranges[{region}]", text)
        for field, sides in _secondary_ranges(old, new, region) if stays else ():
            if sides[0] is not None and sides[0] != sides[1]:
                text = f"{sides[0]} -> {sides[1] or 'none'}: `pulumi up` fails, since a range that is in use stays"
                yield consequence(f"network.{field}[{region}]", text)


def _secondary_ranges(old: FleetSpec, new: FleetSpec, region: str) -> Iterator[tuple[str, tuple[str | None, ...]]]:
    """The ranges of pods and Services that the subnet has, before and after."""
    sides = old.network, new.network
    yield "podRanges", tuple(side.pod_ranges.get(region) or default_pod_range(region) for side in sides)
    yield "serviceRanges", tuple(side.service_ranges.get(region) for side in sides)


def _memberships(change: CloudPlan) -> Iterator[Difference]:
    """What stays in Google Cloud although the file no longer has it: the provider has no way back."""
    old, new = change.old, change.new
    for name in change.clusters_that_stay:
        before, after = old.cluster(name), new.cluster(name)
        if before.fleet_membership and not after.fleet_membership:
            text = "it stays a member of the project's GKE fleet"
            end = "end that with `gcloud container fleet memberships unregister`"
            yield consequence(f"clusters[{name}].fleetMembership", f"{text}: {end}")
        for row in CLUSTER_ROWS:
            if row.stays and (was := row.value(before)) and not row.value(after):
                text = row.stays.format(name=name, region=after.region, was=was)
                yield consequence(f"clusters[{name}].{row.field}", text)
        for driver, addon in LATER_ADDONS.items():
            if driver in before.storage_drivers and driver not in after.storage_drivers:
                update = f"gcloud container clusters update {name} --location {after.region} --update-addons {addon}"
                text = f"{driver} stays on: turn it off with `{update}=DISABLED`"
                yield consequence(f"clusters[{name}].storageDrivers", text)
        for field, was, becomes in _range_names(old, new, after.region) if not after.existing else ():
            if was is not None and becomes is None:
                text = f"{name} keeps {was}: only a new cluster gets another range"
                yield consequence(f"network.existing.subnets[{after.region}].{field}", text)


def _causes(change: CloudPlan, name: str) -> list[tuple[str, str]]:
    """Why GKE cannot change the cluster in place: path and change."""
    old, new = change.old, change.new
    before, after = old.cluster(name), new.cluster(name)
    if before.existing or after.existing:
        return []
    step = change.step("Cluster", name)
    at = f"clusters[{name}]"
    # Another role is another component, and so another resource to Pulumi.
    causes: list[tuple[str, object, object]] = [(f"{at}.role", before.role, after.role)]
    if step.replaces():
        causes += [cause for prefixes, cause in _cluster_words(old, new, name) if step.replaces(*prefixes)]
    differ = [
        (path, f"{'none' if was is None else was} -> {'none' if becomes is None else becomes}")
        for path, was, becomes in causes
        if was != becomes
    ]
    return differ or [(at, ", ".join(step.replacing))] if step.replaces() else differ


def _cluster_words(
    old: FleetSpec, new: FleetSpec, name: str
) -> Iterator[tuple[tuple[str, ...], tuple[str, object, object]]]:
    """The fields of the file that say a cluster's properties: the properties, then path and values before and after."""
    before, after = old.cluster(name), new.cluster(name)
    at, region = f"clusters[{name}]", after.region
    network = ("network", "subnetwork", "ipAllocationPolicy")
    yield from ((network, network_word) for network_word in _network_words(old, new, region))
    yield ("location",), (f"{at}.region", before.region, after.region)
    yield ("project",), (f"{at}.project", old.project_of(name), new.project_of(name))
    yield ("enableAutopilot",), (f"{at}.mode", before.mode, after.mode)
    if not any(side.existing for side in (old.network, new.network)):
        for field, (was, becomes) in _secondary_ranges(old, new, region):
            if was is None:
                yield ("ipAllocationPolicy",), (f"network.{field}[{region}]", "GKE's own", becomes or "GKE's own")
    key = ("clusterAutoscaling.autoProvisioningDefaults",)
    yield key, (f"{at}.diskEncryptionKey", before.disk_encryption_key, after.disk_encryption_key)
    if after.disk_encryption_key and not before.node_auto_provisioning and after.node_auto_provisioning:
        # The key of the nodes that it makes cannot be added.
        yield key, (f"{at}.nodeAutoProvisioning", "off", "on with diskEncryptionKey")


def _network_words(old: FleetSpec, new: FleetSpec, region: str) -> Iterator[tuple[str, object, object]]:
    """The network of a region, as clusters are given it."""
    sides = old.network.existing, new.network.existing
    if old.network_project == new.network_project:
        yield "network.existing.name" if sides[1] else "network.name", old.network_name, new.network_name
    else:
        names = (f"{fleet.network_project}/{fleet.network_name}" for fleet in (old, new))
        yield "network.existing", next(names), next(names)
    before, after = (side.subnets.get(region) if side else None for side in sides)
    if before and after:
        yield f"network.existing.subnets[{region}].name", before.name, after.name
    for field, was, becomes in _range_names(old, new, region):
        if becomes is not None:
            yield f"network.existing.subnets[{region}].{field}", was, becomes


def _range_names(old: FleetSpec, new: FleetSpec, region: str) -> Iterator[tuple[str, str | None, str | None]]:
    """The names of the secondary ranges that clusters are given, before and after."""
    sides = (fleet.network.existing for fleet in (old, new))
    before, after = (side.subnets.get(region) if side else None for side in sides)
    if before and after:
        yield "podRangeName", before.pod_range_name, after.pod_range_name
        yield "serviceRangeName", before.service_range_name, after.service_range_name


def _node_pools(change: CloudPlan) -> Iterator[Difference]:
    old, new = change.old, change.new
    names_by_change: dict[tuple[str, str], list[str]] = {}
    for cluster in change.clusters_that_stay:
        before, after = _pools(old, cluster), _pools(new, cluster)
        for name, pool in before.items():
            step, is_protected = change.step("NodePool", cluster, name), old.protects(cluster, name)
            for text in _fate_of_pool(step, pool, after.get(name), protected=is_protected):
                names_by_change.setdefault((f"nodePools[{name}]", text), []).append(cluster)
        if old.cluster(cluster).mode == "Standard":
            for field, text in _all_pools(change, cluster):
                names_by_change[f"clusters[{cluster}].{field}", text] = [cluster]
    for (path, text), names in names_by_change.items():
        yield consequence(path, f"on {listed(names)} {text}")


def _all_pools(change: CloudPlan, cluster: str) -> Iterator[tuple[str, str]]:
    """What becomes of the pools of a Standard cluster by its own fields: field and text."""
    old, new = change.old, change.new
    some = [old.protects(cluster), *(old.protects(cluster, pool.name) for pool in old.node_pools_on(cluster))]
    text = f"every node pool is {_AGAIN}, the system pool too, with the jobs on their nodes"
    step = change.step("NodePool", cluster, SYSTEM_POOL)
    if replacing := [field for field, property_ in _OF_ALL_POOLS.items() if step.replaces(property_)]:
        for field in replacing:
            yield field, text + (_PROTECTED if any(some) else "")
        return
    before, after = (fleet.system_pool_on(cluster) for fleet in (old, new))
    if before is not None and after is not None:
        for text in _fate_of_pool(step, before, after, protected=old.protects(cluster), there="Kueue on them"):
            yield "systemPool", text


def _pools(fleet: FleetSpec, cluster: str) -> Mapping[str, ResolvedNodePool]:
    """Those that the fleet makes."""
    existing = {pool.name for pool in fleet.node_pools if pool.existing}
    return {pool.name: pool for pool in fleet.node_pools_on(cluster) if pool.name not in existing}


def _fate_of_pool(
    step: Step,
    before: ResolvedNodePool,
    after: ResolvedNodePool | None,
    *,
    protected: bool,
    there: str = "the jobs on them",
) -> Iterator[str]:
    protection_text = _PROTECTED if protected else ""
    if after is None:
        yield f"it is deleted, with its nodes and {there}{protection_text}"
        return
    if step.replaces() and not step.replaces(*_OF_ALL_POOLS.values()):
        words = {name: read for name, (prefixes, read) in _POOL_WORDS.items() if step.replaces(*prefixes)}
        sides = ({name: read(pool) for name, read in words.items()} for pool in (before, after))
        yield f"it is {_AGAIN}, with its nodes and {there}: {_changed(*sides)}{protection_text}"
        return
    if exchange := _changed(_in_turn(before), _in_turn(after)):
        yield f"its nodes are exchanged one after another, and {there} start again: {exchange}"
    zones = [zone for zone in before.node_locations if zone not in after.node_locations]
    if zones and after.node_locations:
        yield f"its nodes in {listed(zones)} are removed, with {there}"
    if before.node_count is not None and after.node_count is not None and after.min_nodes < before.min_nodes:
        less = before.min_nodes - after.min_nodes
        yield f"{less} of its {before.min_nodes} nodes {'goes' if less == 1 else 'go'}, with {there}"


def _changed(before: Mapping[str, object], after: Mapping[str, object]) -> str:
    return ", ".join(
        f"{name} {'none' if value is None else value} -> {'none' if after[name] is None else after[name]}"
        for name, value in before.items()
        if value != after[name]
    )


def _in_turn(pool: ResolvedNodePool) -> dict[str, object]:
    """What GKE changes of a pool by new nodes."""
    return {row.field: row.value(pool.entry) for row in ROWS if row.in_turn}


def _source(capacity: Capacity) -> str:
    """Where nodes come from, as far as the pool says it; a calendar reservation is one like others."""
    if isinstance(capacity, Reserved):
        parts = (capacity.project, capacity.reservation, capacity.block, capacity.sub_block)
        return f"reservation {'/'.join(part for part in parts if part is not None)}"
    if isinstance(capacity, Calendar):
        return f"reservation {capacity.reservation}"
    if isinstance(capacity, FlexStart):
        queue_text = ", queued" if capacity.queued_provisioning else ""
        return f"flexStart for {capacity.max_run_duration}{queue_text}"
    if isinstance(capacity, OnDemand) and capacity.affinity == "Any":
        return "onDemand, of any reservation first"
    return "spot" if isinstance(capacity, Spot) else "onDemand"


def _shared(pool: ResolvedNodePool) -> str | None:
    """How containers share a GPU, or a partition."""
    sharing = pool.sharing
    return None if sharing.strategy is None else f"{sharing.strategy} by {sharing.clients}"


def _networks(pool: ResolvedNodePool) -> str | None:
    """The networks of its nodes' cards."""
    return ", ".join(dict.fromkeys(network.subnetwork for network in pool.networks)) or None


_CAPACITY: Final = ("reservationAffinity", "spot", "flexStart", "maxRunDuration")
_PLACEMENT: Final = ("placementPolicy",)
_GPUS: Final = ("nodeConfig.guestAccelerators",)
_Words = Mapping[str, tuple[tuple[str, ...], Callable[[ResolvedNodePool], object]]]
_OWN_WORDS: Final[_Words] = {
    "accelerator": (_GPUS, lambda pool: pool.accelerator),
    "GPUs on a node": (_GPUS, lambda pool: pool.gpus_per_node),
    "partitionSize": (_GPUS, lambda pool: pool.sharing.partition_size),
    "sharing": (_GPUS, _shared),
    "driverVersion": (_GPUS, lambda pool: pool.driver_version if pool.gpus_per_node else None),
    "localSsdCount": (
        ("nodeConfig.ephemeralStorageLocalSsdConfig",),
        lambda pool: pool.local_ssd_count or (pool.machine.local_ssds if pool.machine else 0),
    ),
    "acceleratorNetworks": (("networkConfig.additionalNodeNetworkConfigs",), _networks),
    "maxPodsPerNode": (("maxPodsPerNode",), lambda pool: pool.max_pods_per_node),
    "compactPlacement": (_PLACEMENT, lambda pool: str(pool.compact_placement).lower()),
    "acceleratorTopologyMode": (_PLACEMENT, lambda pool: pool.entry.accelerator_topology_mode),
    "tpuTopology": (_PLACEMENT, lambda pool: asked_topology(pool.machine_type, pool.tpu_topology)),
    "capacity": (
        (*(f"nodeConfig.{name}" for name in _CAPACITY), "queuedProvisioning"),
        lambda pool: _source(pool.capacity),
    ),
}
"""Properties whose change reads better in words than as the field: their names, and the value in words."""


def _in_the_fields_words(row: Row[NodePoolFields]) -> Callable[[ResolvedNodePool], object]:
    return lambda pool: in_words(row.value(pool.entry) or "none")


_POOL_WORDS: Final[_Words] = {
    **_OWN_WORDS,
    **{
        row.field: ((row.property,), _in_the_fields_words(row))
        for row in ROWS
        if not any(row.property.startswith(prefixes) for prefixes, _ in _OWN_WORDS.values())
    },
}
"""The properties of a pool by field, and their value in words."""


def _reservations(change: CloudPlan) -> Iterator[Difference]:
    old, new = change.old, change.new
    sections: tuple[tuple[str, str, Any, Any], ...] = (
        ("Reservation", "reservations", old.reservations, new.reservations),
        ("FutureReservation", "futureReservations", old.future_reservations, new.future_reservations),
    )
    for kind, section, before, after in sections:
        others = {entry.name: entry for entry in after}
        for entry in before:
            path = f"{section}[{entry.name}]"
            other = others.get(entry.name)
            if other is None:
                yield consequence(path, _removal_text(old, entry))
                continue
            if change.step(kind, entry.name).replaces():
                text = f"it is {_AGAIN}, and Google may have no machines for it then"
                yield consequence(path, text + (_PROTECTED if old.deletion_protection else ""))
                continue
            if other.count < entry.count:
                yield consequence(path, f"{entry.count - other.count} of its {entry.count} machines are released")
            for text in _not_asked_for(entry, other):
                yield consequence(path, text)


def _data(change: CloudPlan) -> Iterator[Difference]:
    """What holds data and goes, or is made again, and what is in it."""
    before, after = data_on(change.old), data_on(change.new)
    paths_after = {path for path, _ in after.values()}
    for key, (path, what) in before.items():
        if key in after and not change.at(key).replaces():
            continue
        text = f"{what} is {_AGAIN if key in after else 'deleted'}, with all that is in it"
        if key.startswith("Bucket/"):
            text += "; while it holds objects, `pulumi up` fails instead"
        text += _PROTECTED if change.old.deletion_protection else ""
        yield consequence(path, text, whole=path not in paths_after)


def _sizes(change: CloudPlan) -> Iterator[Difference]:
    """File servers that stay, and are to have a size that Google does not give them."""
    before, after = data_on(change.old), data_on(change.new)
    stay = {path for key, (path, _) in before.items() if key in after and not change.at(key).replaces()}
    entries = {f"storage[{entry.name}]": entry for entry in change.new.storage}
    for entry in change.old.storage:
        path = f"storage[{entry.name}]"
        if path in stay and (why := _refused_size(entry.volume, entries[path].volume)):
            yield consequence(f"{path}.volume.capacityGib", why)


def _refused_size(before: Volume, after: Volume) -> str | None:
    """Why Google gives what is there no such size, though the provider asks for it."""
    if not (isinstance(before, Instance) and isinstance(after, Instance)):
        return None
    why = why_not_resized(before, after)
    return f"{before.capacity_gib} -> {after.capacity_gib}: `pulumi up` fails, since {why}" if why else None


def _not_asked_for(
    entry: ReservationEntry | FutureReservationEntry, other: ReservationEntry | FutureReservationEntry
) -> Iterator[str]:
    """What a reservation that is there is not asked for again, since Google answers it otherwise."""
    if isinstance(entry, ReservationEntry) and isinstance(other, ReservationEntry):
        entry_accelerator = entry.accelerator
        if entry_accelerator != other.accelerator:
            keeps = f"{entry_accelerator.count} {entry_accelerator.type}" if entry_accelerator else "no GPUs"
            yield f"it keeps {keeps} on a machine: reserve other machines under another name"
    if entry.shared_with == other.shared_with:
        return
    if not other.shared_with:
        yield "it stays shared as it is: end that with `gcloud compute future-reservations update`"
    elif not all(project.isdigit() for project in other.shared_with):
        yield "it stays shared as it is: write the numbers of all projects, not their ids"


def _removal_text(old: FleetSpec, entry: ReservationEntry | FutureReservationEntry) -> str:
    machines = f"{entry.count} {entry.machine_type} in {entry.zone}"
    if isinstance(entry, FutureReservationEntry) and entry.planning_status == "SUBMITTED":
        return f"{machines}: Google does not take the request back, and what it grants is paid"
    if old.deletion_protection:
        return f"{machines}: `pulumi up` fails, since it is protected; set deletionProtection to false and apply that"
    return f"{machines}: it is deleted, and its machines are released"


def _commitments(old: FleetSpec, new: FleetSpec) -> Iterator[Difference]:
    after = {entry.name: entry for entry in new.commitments}
    for entry in old.commitments:
        path = f"commitments[{entry.name}]"
        protection_text = _PROTECTED if old.deletion_protection else ""
        if entry.name not in after:
            text = "it cannot be cancelled: it is only removed from this file, and paid to its end"
            yield consequence(path, text + protection_text)
        elif after[entry.name] != entry:
            text = "it cannot be changed: `pulumi up` fails; add another one under another name, and keep this as it is"
            yield consequence(path, text)
