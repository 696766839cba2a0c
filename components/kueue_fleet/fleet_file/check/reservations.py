"""Reservations, and the pools and commitments that use them.

A reservation that the file does not make may exist already; whether it does is not known without the cloud.

Source: https://cloud.google.com/kubernetes-engine/docs/how-to/consuming-reservations,
https://cloud.google.com/compute/docs/instances/signing-up-committed-use-discounts
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from kueue_admission.kernel import suggest
from kueue_admission.kernel.problem import Problem, where_read
from kueue_admission.kernel.timestamp import timestamp_text
from kueue_fleet.fleet_file.check.node_pools import path_on
from kueue_fleet.fleet_file.check.scope import Scope, entry_check, fleet_check
from kueue_fleet.fleet_file.model.capacity import (
    Calendar,
    CommitmentEntry,
    FutureReservationEntry,
    ReservationEntry,
    Reserved,
)
from kueue_fleet.fleet_file.model.entries import ClusterQueueEntry
from kueue_fleet.fleet_file.model.fleet import FleetSpec
from kueue_fleet.fleet_file.model.node_pools import NodePoolEntry
from kueue_fleet.fleet_file.model.per_cluster import backup_flavors
from kueue_fleet.fleet_file.model.resolved_pools import ResolvedNodePool
from kueue_fleet.fleet_file.model.zone_rules import offered_nowhere, offered_problems, zone_problems
from kueue_fleet.fleet_file.rules.clusters import (
    ATTACHED,
    BACKUP,
    COMMITMENT,
    NO_ROOM_TO_UPGRADE,
    RESERVATION,
    RESERVATION_COUNT,
    RESERVATION_KIND,
    RESERVED_ELSEWHERE,
    SHARED_WITH,
    TPU_RESERVATION,
    UNKNOWN_MACHINE,
)
from kueue_fleet.fleet_file.rules.files import NAME_TAKEN, UNUSED
from kueue_fleet.fleet_file.rules.queues import UNIT
from kueue_fleet.gke.labels import RESERVATION_NAME
from kueue_fleet.gke.machine_rules import check_gpus
from kueue_fleet.gke.machines import TPU_MACHINES, machine_type, nearest_machine
from kueue_fleet.gke.pool import Gpus, Pool
from kueue_fleet.gke.zones import is_unknown_zone, region_of

_MB_OF_VCPU: Final = 512
_Made = ReservationEntry | FutureReservationEntry


def users_of(scope: Scope) -> dict[str, list[ResolvedNodePool]]:
    """The pools that use each reservation of the fleet's project, by its name."""
    users: dict[str, list[ResolvedNodePool]] = {}
    for pool in scope.fleet.node_pools:
        for cluster in scope.fleet.cluster_names:
            resolved_pool = scope.fleet.node_pool_on(pool.name, cluster)
            if resolved_pool is not None and isinstance(resolved_pool.capacity, Reserved | Calendar):
                users.setdefault(_name_of(scope, resolved_pool), []).append(resolved_pool)
    return users


def _name_of(scope: Scope, pool: ResolvedNodePool) -> str:
    """The name of the reservation that a pool takes its nodes from; empty if it is not the fleet's project's."""
    capacity, owner = pool.capacity, scope.fleet.project_of(pool.cluster)
    if ((isinstance(capacity, Reserved) and capacity.project) or owner) != scope.fleet.project:
        return ""
    return capacity.reservation if isinstance(capacity, Reserved | Calendar) else ""


@fleet_check
def _names(scope: Scope) -> Iterator[Problem]:
    """Names apart."""
    fleet = scope.fleet
    names = {entry.name for entry in fleet.reservations}
    for entry in fleet.future_reservations:
        if entry.name in names:
            yield NAME_TAKEN.at(
                f"{scope.path(entry)}.name",
                f"{entry.name} is also in reservations, and Google makes a reservation of that name when it begins",
                "give it another name",
            )


@entry_check("reservations", "futureReservations")
def _machine_type(scope: Scope, capacity_entry: _Made) -> Iterator[Problem]:
    """Machine types known; a reservation of TPUs has a version and a number of chips instead of a machine type.

    Source: https://docs.cloud.google.com/sdk/gcloud/reference/compute/future-reservations/create (`--tpu-version` with
    `--chip-count`, or `--machine-type`). Pools use any TPU reservation that exists:
    https://cloud.google.com/kubernetes-engine/docs/concepts/plan-tpus#tpu_reservation
    """
    if capacity_entry.machine_type.startswith(TPU_MACHINES):
        yield TPU_RESERVATION.at(
            f"{scope.path(capacity_entry)}.machineType",
            f"{capacity_entry.machine_type} has TPUs, which Google reserves by chips and not by machines",
            "ask for the reservation with gcloud or your account team, remove it here, and name it in the pool's "
            "capacity",
        )
    if machine_type(capacity_entry.machine_type) is None:
        near = nearest_machine(capacity_entry.machine_type)
        yield UNKNOWN_MACHINE.at(
            f"{scope.path(capacity_entry)}.machineType",
            f"{capacity_entry.machine_type} is not in the catalogue",
            f"did you mean {near}?" if near else "make sure that it exists",
        )


@entry_check("reservations", "futureReservations")
def _shared_with(scope: Scope, capacity_entry: _Made) -> Iterator[Problem]:
    """Projects are named as Google answers with them."""
    for index, project in enumerate(capacity_entry.shared_with):
        if not project.isdigit():
            yield SHARED_WITH.at(
                f"{scope.path(capacity_entry)}.sharedWith[{index}]",
                f"{project} is an id, but Google answers with numbers: later changes of this list are not made",
                f"write the number: gcloud projects describe {project} --format='value(projectNumber)'",
            )


@entry_check("reservations", "futureReservations")
def _zone(scope: Scope, capacity_entry: _Made) -> Iterator[Problem]:
    """The zone exists, and offers the machines and the GPUs attached to them."""
    path = f"{scope.path(capacity_entry)}.zone"
    yield from zone_problems(path, capacity_entry.zone)
    attached_type = (
        capacity_entry.accelerator.type
        if isinstance(capacity_entry, ReservationEntry) and capacity_entry.accelerator is not None
        else None
    )
    for what in filter(None, (capacity_entry.machine_type, attached_type)):
        yield from offered_problems(path, what, [capacity_entry.zone], region_of(capacity_entry.zone))
        yield from offered_nowhere(path, what, region_of(capacity_entry.zone))


@entry_check("reservations")
def _attached(scope: Scope, entry: ReservationEntry) -> Iterator[Problem]:
    """The GPUs can be attached to such a machine; other machines than N1 come with theirs."""
    if entry.accelerator is None:
        return
    path, machine = f"{scope.path(entry)}.accelerator", machine_type(entry.machine_type)
    if machine is not None and machine.accelerator is not None:
        yield ATTACHED.at(path, f"is set, but {machine.name} comes with {machine.accelerator}", "remove it")
        return
    for breach in check_gpus(
        Pool(machine_type=entry.machine_type, gpus=(Gpus(entry.accelerator.type, entry.accelerator.count),))
    ):
        yield ATTACHED.at(f"{path}{breach.fact.removeprefix('gpus')}", breach.wrong, breach.fix)


@entry_check("nodePools")
def _pool(scope: Scope, pool: NodePoolEntry) -> Iterator[Problem]:
    """Each reservation that the pool uses on a cluster fits it."""
    for cluster in scope.fleet.clusters_of(pool):
        resolved_pool = scope.fleet.node_pool_on(pool.name, cluster)
        if resolved_pool is not None and isinstance(resolved_pool.capacity, Reserved | Calendar):
            yield from _named(scope, pool, resolved_pool)


class _Use(NamedTuple):
    """A pool on a cluster, and the reservation of this file that it takes its nodes from."""

    pool: NodePoolEntry
    on: ResolvedNodePool
    at: str
    """Path of what the pool says there."""
    entry: _Made

    @property
    def section(self) -> str:
        return "reservations" if isinstance(self.entry, ReservationEntry) else "futureReservations"

    @property
    def label(self) -> str:
        return f"{'' if isinstance(self.entry, ReservationEntry) else 'future '}reservation {self.entry.name}"


@where_read
def _named(scope: Scope, pool: NodePoolEntry, node_pool: ResolvedNodePool) -> Iterator[Problem]:
    """The reservation is of the kind that the pool says; where the file makes it, the pool fits it."""
    fleet, at = scope.fleet, path_on(scope, pool, node_pool.cluster)
    name, calendar = _name_of(scope, node_pool), isinstance(node_pool.capacity, Calendar)
    yield from _elsewhere(scope, node_pool, at)
    if node_pool.compact_placement and not node_pool.machine_type.startswith(TPU_MACHINES):
        # Source: https://github.com/AI-Hypercomputer/xpk/pull/1073 (GKE makes a policy of its own for such a pool).
        wrong = f"is set, and GKE places the nodes by a policy of its own, which reservation {name} does not have"
        yield RESERVATION.at(f"{at}.compactPlacement", wrong, "remove it, as no nodes come so", "warning")
    kinds: list[dict[str, _Made]] = [
        {entry.name: entry for entry in fleet.reservations},
        {entry.name: entry for entry in fleet.future_reservations},
    ]
    kinds_there, others = reversed(kinds) if calendar else kinds
    if name in kinds_there:
        use = _Use(pool, node_pool, at, kinds_there[name])
        for check in (_zones, _machines, _accelerator, _local_ssds, _times):
            yield from check(scope, use)
    elif name in others:
        wrong = f"{node_pool.capacity.type}, but {name} is a {'' if calendar else 'future '}reservation of this file"
        yield RESERVATION_KIND.at(f"{at}.capacity.type", wrong, f"write {'reserved' if calendar else 'calendar'}")
    else:
        not_made = f"is not in {'futureReservations' if calendar else 'reservations'} of this file"
        fitting = [reservation.name for reservation in kinds_there.values() if _fits(node_pool, reservation)]
        known_kinds = fitting if suggest.nearest(name, fitting) else kinds_there
        yield from suggest.misspelt(f"{at}.capacity.reservation", name, known_kinds, not_made)


def _fits(pool: ResolvedNodePool, capacity_entry: _Made) -> bool:
    """Whether the reservation is of the pool's machines, where its nodes are."""
    return capacity_entry.machine_type == pool.machine_type and (not pool.zones or capacity_entry.zone in pool.zones)


@where_read
def _elsewhere(scope: Scope, pool: ResolvedNodePool, at: str) -> Iterator[Problem]:
    """A reservation of the file is in the fleet's project; pools of others name that, where it is shared with them.

    Whether a number in `sharedWith` is the cluster's project is not known here. Calendar capacity has no project to
    name.
    """
    fleet, project, capacity = scope.fleet, scope.fleet.project_of(pool.cluster), pool.capacity
    reservations: dict[str, _Made] = {entry.name: entry for entry in fleet.reservations}
    reservations |= {entry.name: entry for entry in fleet.future_reservations}
    if (
        project == fleet.project
        or not isinstance(capacity, Reserved | Calendar)
        or capacity.reservation not in reservations
    ):
        return
    where = f"{pool.cluster} is of {project}, and reservation {capacity.reservation}"
    if not isinstance(capacity, Reserved):
        fix = f"put the pool on a cluster of {fleet.project}, or have the reservation made in {project}"
        yield RESERVED_ELSEWHERE.at(f"{at}.capacity", f"{where} of {fleet.project}", fix)
        return
    shared_projects = reservations[capacity.reservation].shared_with
    if (
        capacity.project == fleet.project
        and project not in shared_projects
        and not any(project.isdigit() for project in shared_projects)
    ):
        section = f"reservations[{capacity.reservation}].sharedWith"
        yield RESERVED_ELSEWHERE.at(section, f"{where} is not shared with it", f"add the number of {project}")
    elif capacity.project is None:
        wrong = f"not set, but {where} of this file is in {fleet.project}"
        yield RESERVED_ELSEWHERE.at(f"{at}.capacity.project", wrong, f"write {fleet.project}")


@where_read
def _zones(_: Scope, use: _Use) -> Iterator[Problem]:
    """A reservation is in one zone, and so are the nodes that come from it."""
    zone, elsewhere = use.entry.zone, [zone for zone in use.on.zones if zone != use.entry.zone]
    if (elsewhere or not use.on.zones) and not is_unknown_zone(zone):
        wrong = f"{use.label} is in {zone}, not in {', '.join(elsewhere)}"
        wrong = wrong if elsewhere else f"not set, but {use.label} is in {zone} only"
        yield RESERVATION.at(f"{use.at}.zones", wrong, f"write [{zone}]")


@where_read
def _machines(scope: Scope, use: _Use) -> Iterator[Problem]:
    """It is of the pool's machines."""
    if use.entry.machine_type != use.on.machine_type:
        yield RESERVATION.at(
            f"{scope.path(use.pool)}.machineType",
            f"{use.on.machine_type}, but {use.label} is of {use.entry.machine_type}",
            f"write {use.entry.machine_type}, or change {use.section}[{use.entry.name}].machineType",
        )


@where_read
def _accelerator(_: Scope, use: _Use) -> Iterator[Problem]:
    """It has the GPUs that the pool attaches."""
    if not isinstance(use.entry, ReservationEntry) or use.on.machine is None or not use.on.machine.attached:
        return
    has, count, kind = use.entry.accelerator, use.on.gpus_per_node, use.on.accelerator
    if has is None or (has.type, has.count) != (kind, count):
        yield RESERVATION.at(
            f"{use.section}[{use.entry.name}].accelerator",
            f"{f'{has.count} {has.type}' if has else 'not set'}, but pool {use.pool.name} attaches {count} {kind} to "
            "its machines, and takes only machines that have the same",
            f"write {{type: {kind}, count: {count}}}, or change the pool's",
        )


@where_read
def _local_ssds(_: Scope, use: _Use) -> Iterator[Problem]:
    """It has the pool's local SSDs."""
    own = use.on.local_ssd_count
    if isinstance(use.entry, ReservationEntry) and use.entry.local_ssd_count != own:
        wrong = f"{own}, but {use.label} has {use.entry.local_ssd_count}"
        yield RESERVATION.at(f"{use.at}.localSsdCount", wrong, "write the same in both")


@where_read
def _times(_: Scope, use: _Use) -> Iterator[Problem]:
    """A calendar reservation begins and lasts as the pool says."""
    entry, capacity = use.entry, use.on.capacity
    if not isinstance(entry, FutureReservationEntry) or not isinstance(capacity, Calendar):
        return
    own_times = (timestamp_text(capacity.start), capacity.duration)
    their_times = (timestamp_text(entry.start), entry.duration)
    for field, own, theirs in zip(("start", "duration"), own_times, their_times, strict=True):
        if own != theirs:
            yield RESERVATION.at(
                f"{use.at}.capacity.{field}",
                f"{own} is not that of {use.label}, {theirs}",
                f"write the same in both, here and in futureReservations[{entry.name}]",
            )


@fleet_check
def _counts(scope: Scope) -> Iterator[Problem]:
    """All pools of a reservation together have no more nodes than it has machines."""
    users = users_of(scope)
    reservations: list[_Made] = [*scope.fleet.reservations, *scope.fleet.future_reservations]
    for entry in reservations:
        pools = users.get(entry.name, [])
        total = sum(pool.full_nodes for pool in pools)
        fixed_nodes = sum(pool.full_nodes for pool in pools if pool.autoscaling is None)
        if total > entry.count:
            pool_names = ", ".join(f"{pool.name} on {pool.cluster} {pool.full_nodes}" for pool in pools)
            yield RESERVATION_COUNT.at(
                f"{scope.path(entry)}.count",
                f"{entry.count} machines, but its pools may have {total} nodes: {pool_names}",
                "reserve more, or make the pools smaller",
                "error" if fixed_nodes > entry.count else "warning",
            )
        for pool in pools if total == entry.count else ():
            pool_entry = scope.fleet.node_pool(pool.name)
            if pool_entry is not None and pool.entry.upgrades is not None and not pool.entry.upgrades.max_unavailable:
                at = path_on(scope, pool_entry, pool.cluster)
                yield NO_ROOM_TO_UPGRADE.at(
                    f"{at}.upgrade.maxUnavailable",
                    f"0, but its pools fill reservation {entry.name}, which has no machine for a node more, so no "
                    "upgrade ever ends",
                    "write upgrade: {maxSurge: 0, maxUnavailable: 1}, or remove it",
                )


@fleet_check
def _unused(scope: Scope) -> Iterator[Problem]:
    users = {*users_of(scope), *(flavor.node_labels.get(RESERVATION_NAME) for flavor in scope.fleet.flavors)}
    users |= set(_of_classes(scope.fleet))
    for entry in scope.fleet.reservations:
        if entry.name not in users and not entry.shared_with:
            backup = " whose flavor comes after others in its queues" if entry.purpose == "backup" else ""
            yield UNUSED.at(
                scope.path(entry),
                "no pool uses this reservation, which costs what its machines cost",
                f"name it in the capacity of a pool{backup}, or share it with other projects",
            )
    for future in scope.fleet.future_reservations:
        if future.name not in users and not future.shared_with:
            yield UNUSED.at(
                scope.path(future),
                "no pool uses this future reservation",
                "name it in the capacity of a pool of type calendar, or remove it",
            )


def _of_classes(fleet: FleetSpec) -> Iterator[str]:
    """The reservations from which ComputeClasses take nodes; those of a fleet are taken by name alone."""
    for flavor in fleet.flavors:
        for priority in flavor.compute_class.priorities if flavor.compute_class is not None else ():
            reservations = priority.reservations
            if reservations is not None and reservations.affinity == "Specific":
                yield from (reservation.name for reservation in reservations.specific)


@entry_check("clusterQueues")
def _backups(scope: Scope, queue: ClusterQueueEntry) -> Iterator[Problem]:
    """Jobs come to the machines of a backup when those of other flavors are out."""
    backup_names = set(backup_flavors(scope.fleet, queue))
    patient = {entry.flavor for entry in queue.fallback}
    for group in queue.resource_groups:
        names = [flavor.name for flavor in group.flavors]
        for index, name in enumerate(names):
            if name not in backup_names:
                continue
            path = f"{scope.path(queue)}.resourceGroups[{queue.resource_groups.index(group)}].flavors[{index}]"
            before = [name for name in names[:index] if name not in backup_names]
            if not before:
                wrong = f"{name} is of a reservation that is kept as a backup, but comes first"
                yield BACKUP.at(path, wrong, "put it after others, or set the reservation's purpose to primary")
            elif impatient := [flavor for flavor in before if flavor not in patient]:
                yield BACKUP.at(
                    path,
                    f"{name} is of a reservation that is kept as a backup, and jobs come there when the quota of "
                    f"{', '.join(impatient)} is used up, but not when its machines are out",
                    f"add fallback with a patience for {', '.join(impatient)}",
                )


@entry_check("commitments")
def _commitment(scope: Scope, commitment: CommitmentEntry) -> Iterator[Problem]:
    """A commitment and the reservations that it pays for are in one region, and of one kind of GPU."""
    for index, name in enumerate(commitment.reservations):
        at = f"{scope.path(commitment)}.reservations[{index}]"
        yield from scope.unknown("reservations", name, at)
        yield from _paid_for(scope, commitment, name, at)


@entry_check("commitments")
def _unit_and_place(scope: Scope, commitment: CommitmentEntry) -> Iterator[Problem]:
    """Machines have half a GB of memory for a vCPU at least, and some are in the region."""
    cpus = sum(resource.amount for resource in commitment.resources if resource.type == "VCPU")
    for index, resource in enumerate(commitment.resources):
        if resource.type == "MEMORY" and resource.amount < cpus * _MB_OF_VCPU:
            yield UNIT.at(
                f"{scope.path(commitment)}.resources[{index}].amount",
                f"{resource.amount} is counted in MB, and machines with {cpus} vCPUs have more",
                f"write {resource.amount * 1024} for {resource.amount} GB",
            )
    regions = dict.fromkeys(cluster.region for cluster in scope.fleet.gke_clusters)
    if regions and commitment.region not in regions:
        wrong = f"no cluster of the fleet is in {commitment.region}, so that nothing of the fleet uses it"
        yield UNUSED.at(f"{scope.path(commitment)}.region", wrong, f"write one of {', '.join(regions)}")


@where_read
def _paid_for(scope: Scope, commitment: CommitmentEntry, name: str, at: str) -> Iterator[Problem]:
    entry = next((entry for entry in scope.fleet.reservations if entry.name == name), None)
    if entry is None:
        return
    if region_of(entry.zone) != commitment.region:
        yield COMMITMENT.at(
            at,
            f"{name} is in {entry.zone}, not in {commitment.region}",
            "name reservations of the commitment's region",
        )
    machine = machine_type(entry.machine_type)
    accelerators = {item.accelerator_type for item in commitment.resources}
    if machine is not None and machine.accelerator and machine.accelerator not in accelerators:
        yield COMMITMENT.at(
            at,
            f"{name} is of {machine.accelerator}, to which the commitment does not commit",
            f"add {{type: ACCELERATOR, acceleratorType: {machine.accelerator}, amount: ...}}, or remove it",
        )
