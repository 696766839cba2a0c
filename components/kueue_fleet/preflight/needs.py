"""What a fleet asks of its Google Cloud projects before the first `pulumi up`.

What each project has is compared with it in `findings`; the prerequisites page of a stack is written from it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from kueue_fleet.fleet_file.model.capacity import Calendar, Reserved
from kueue_fleet.fleet_file.model.fleet import FleetSpec
from kueue_fleet.fleet_file.model.resolved_pools import ResolvedNodePool
from kueue_fleet.fleet_file.prerequisites import RequiredApi, required_apis
from kueue_fleet.fleet_file.projects import HostGrant, clusters_in, host_grants, other_projects
from kueue_fleet.gke.regions import REGION_RANGES, default_pod_range
from kueue_fleet.preflight.permissions import RoleNeed, role_needs
from kueue_fleet.preflight.quotas import QuotaNeed, quota_needs


class MachineNeed(NamedTuple):
    """Machines of one type in one zone."""

    zone: str
    machine_type: str
    accelerator: str | None
    """GPUs that are attached to them."""
    reasons: tuple[str, ...]
    """Pools and reservations, by `cluster/name`."""


class ReservationNeed(NamedTuple):
    """A reservation that the fleet makes, or uses."""

    project: str
    """Whose it is."""
    name: str
    zones: tuple[str, ...]
    """Where it has to be; empty: in some zone."""
    machine_type: str
    accelerator: tuple[str, int] | None
    """GPUs that are attached to each machine."""
    machines: int
    """How many, in each of the zones at least."""
    nodes: int
    """Nodes in all zones that take machines of it."""
    shared_with: tuple[str, ...]
    """Projects that have to have a share."""
    own: bool
    """Whether the file makes it."""
    path: str
    """Where it is in the file."""


class RangeNeed(NamedTuple):
    """A range of addresses in the fleet's network."""

    region: str
    what: str
    """nodes, pods or Services."""
    cidr: str


class SubnetNeed(NamedTuple):
    """A subnet that has to be there, of a network that the fleet does not make."""

    region: str
    name: str
    secondary: tuple[str, ...]
    """Names of the secondary ranges that it has to have."""


class Needs(NamedTuple):
    """All that a fleet asks of a project."""

    project: str
    enables_apis: bool
    """Whether `pulumi up` enables the APIs."""
    network: str
    network_project: str
    regions: tuple[str, ...]
    apis: tuple[RequiredApi, ...]
    quotas: tuple[QuotaNeed, ...]
    machines: tuple[MachineNeed, ...]
    reservations: tuple[ReservationNeed, ...]
    ranges: tuple[RangeNeed, ...]
    """Empty where the fleet does not make the network."""
    subnets: tuple[SubnetNeed, ...]
    """Those of a network that the fleet does not make."""
    host_grants: tuple[HostGrant, ...]
    """What the host project of a Shared VPC has to grant to the project's accounts."""
    roles: tuple[RoleNeed, ...]

    @property
    def reads_network(self) -> bool:
        """Whether something is asked of the network with this project."""
        return bool(self.ranges or self.subnets)


def needs_of(fleet: FleetSpec) -> tuple[Needs, ...]:
    """What `fleet` needs, of its own project and then of each other one that it has clusters in; none without GKE.

    The network, and reservations of the file, are with the fleet's own.
    """
    projects = (fleet.project, *other_projects(fleet)) if fleet.gke_clusters else ()
    return tuple(_needs(fleet, project) for project in projects)


def _needs(fleet: FleetSpec, project: str) -> Needs:
    own = project == fleet.project
    return Needs(
        project=project,
        enables_apis=fleet.enable_apis,
        network=fleet.network_name,
        network_project=fleet.network_project,
        regions=tuple(dict.fromkeys(cluster.region for cluster in clusters_in(fleet, project))),
        apis=tuple(required_apis(fleet, project)),
        quotas=tuple(quota_needs(fleet, project)),
        machines=tuple(_machines(fleet, project)),
        reservations=tuple(_reservations(fleet, project)),
        ranges=tuple(_ranges(fleet)) if own and fleet.network.existing is None else (),
        subnets=tuple(_subnets(fleet)) if own else (),
        host_grants=host_grants(fleet, project),
        roles=role_needs(fleet, project),
    )


def _pools(fleet: FleetSpec) -> Iterator[ResolvedNodePool]:
    for cluster in fleet.cluster_names:
        yield from fleet.every_pool_on(cluster)


def _machines(fleet: FleetSpec, project: str) -> Iterable[MachineNeed]:
    pools_by_machine: dict[tuple[str, str, str | None], list[str]] = {}
    for pool in _pools(fleet):
        if fleet.project_of(pool.cluster) != project:
            continue
        attached_accelerator = pool.accelerator if pool.machine is None or pool.machine.attached else None
        for zone in pool.node_locations:
            pools_by_machine.setdefault((zone, pool.machine_type, attached_accelerator), []).append(
                f"{pool.cluster}/{pool.name}"
            )
    for entry in fleet.reservations if project == fleet.project else ():
        attached_accelerator = entry.accelerator.type if entry.accelerator else None
        pools_by_machine.setdefault((entry.zone, entry.machine_type, attached_accelerator), []).append(
            f"reservation {entry.name}"
        )
    return [
        MachineNeed(*key, tuple(reasons))
        for key, reasons in sorted(pools_by_machine.items(), key=lambda each: str(each[0]))
    ]


def _reservations(fleet: FleetSpec, project: str) -> Iterator[ReservationNeed]:
    """Those of the file, whoever uses them; of others, those that pools of the project use."""
    nodes: dict[tuple[str, str], list[ResolvedNodePool]] = {}
    for pool in _pools(fleet):
        capacity, owner = pool.capacity, fleet.project_of(pool.cluster)
        if isinstance(capacity, Reserved):
            nodes.setdefault((capacity.project or owner, capacity.reservation), []).append(pool)
        elif isinstance(capacity, Calendar) and capacity.active:
            nodes.setdefault((owner, capacity.reservation), []).append(pool)
    for entry in fleet.reservations:
        users = nodes.pop((fleet.project, entry.name), [])
        if project != fleet.project:
            continue
        gpus = (entry.accelerator.type, entry.accelerator.count) if entry.accelerator else None
        yield ReservationNeed(
            project=fleet.project,
            name=entry.name,
            zones=(entry.zone,),
            machine_type=entry.machine_type,
            accelerator=gpus,
            machines=entry.count,
            nodes=sum(pool.max_nodes for pool in users),
            shared_with=tuple(entry.shared_with),
            own=True,
            path=f"reservations[{entry.name}]",
        )
    for (owner, name), pools in nodes.items():
        users = [pool for pool in pools if fleet.project_of(pool.cluster) == project]
        if not users:
            continue
        first = users[0]
        gpus = (first.accelerator, first.gpus_per_node) if first.accelerator and _attached(first) else None
        yield ReservationNeed(
            project=owner,
            name=name,
            zones=tuple(dict.fromkeys(zone for pool in users for zone in pool.zones)),
            machine_type=first.machine_type,
            accelerator=gpus,
            machines=1,
            nodes=sum(pool.max_nodes for pool in users),
            shared_with=(project,) if owner != project else (),
            own=False,
            path=f"nodePools[{first.name}].capacity",
        )


def _attached(pool: ResolvedNodePool) -> bool:
    return pool.machine is not None and pool.machine.attached


def _subnets(fleet: FleetSpec) -> Iterator[SubnetNeed]:
    existing = fleet.network.existing
    for region in dict.fromkeys(cluster.region for cluster in fleet.new_clusters):
        subnet = existing.subnets.get(region) if existing is not None else None
        if subnet is not None:
            ranges = (subnet.pod_range_name, subnet.service_range_name)
            yield SubnetNeed(region, subnet.name, tuple(name for name in ranges if name is not None))


def _ranges(fleet: FleetSpec) -> Iterator[RangeNeed]:
    network = fleet.network
    for region in dict.fromkeys(cluster.region for cluster in fleet.new_clusters):
        ranges = {
            "nodes": {**REGION_RANGES, **network.ranges}.get(region),
            "pods": network.pod_ranges.get(region) or default_pod_range(region),
            "Services": network.service_ranges.get(region),
        }
        for what, cidr in ranges.items():
            if cidr is not None:
                yield RangeNeed(region, what, cidr)
