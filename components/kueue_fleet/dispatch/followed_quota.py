"""Quotas that follow capacity: capacity in, quotas out.

All that queues may use of a flavor on a cluster is never more than what the nodes behind it can hold, and never more
than the file gives. What is missing is first taken off what slack queues lend, so that teams keep their own quota;
only then off the queues that follow, each by its share. Source: MLBatch cuts the lendingLimit of its slack ClusterQueue
by what unschedulable nodes hold (github.com/project-codeflare/appwrapper, internal/controller/appwrapper/
slack_cq_monitor.go). That stops there; here the quotas of the queues follow as well.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from kueue_admission.api import ResourceQuota
from kueue_admission.decide.amounts import format_request
from kueue_admission.forms.quantity import Quantity
from kueue_admission.read.lost_capacity import LostCapacity
from kueue_fleet.dispatch.node_states import NodeState
from kueue_fleet.fleet_file.calendar_pools import fleet_having
from kueue_fleet.fleet_file.model.capacity import Reserved
from kueue_fleet.fleet_file.model.entries import ClusterQueueEntry, CohortEntry, FlavorEntry
from kueue_fleet.fleet_file.model.fleet import FleetSpec
from kueue_fleet.fleet_file.model.per_cluster import cohorts_on
from kueue_fleet.fleet_file.model.resolved_pools import ResolvedNodePool
from kueue_fleet.gke.labels import GPU_RESOURCE, NODE_POOL
from kueue_fleet.settings.quotas import ClusterQuota, FleetResourceGroup, FleetResourceQuota

_IN_BYTES: Final = ("memory", "ephemeral-storage")
_MIB: Final = 2**20

Nodes = Mapping[str, Sequence[NodeState]]
"""The nodes of each cluster that is known."""
Place = tuple[str, str]
"""Flavor and resource."""


@dataclass(frozen=True, slots=True)
class FollowedQuota:
    """The fleet with quotas as they are to be now."""

    fleet: FleetSpec
    lost: tuple[LostCapacity, ...]


def follow_capacity(fleet: FleetSpec, nodes: Nodes, now: float) -> FollowedQuota:
    """The quotas of queues that follow capacity, with these nodes at `now`; those on other clusters stay as they are.

    Pools of calendar reservations are open or closed as the fleet says.
    """
    changed: dict[tuple[str, Place], dict[str, ClusterQuota]] = {}
    lost = []
    for cluster in nodes:
        for flavor in fleet.flavors:
            if cluster in fleet.clusters_of(flavor) and not fleet.is_closed(flavor.name, cluster):
                capacity = _Capacity(fleet, nodes, cluster, flavor, now)
                amounts = []
                for place, claims in _claims(fleet, cluster, flavor.name).items():
                    missing = max(claims.total - capacity.of(place[1], claims.total), 0)
                    if missing and claims.following:
                        amounts.append((place[1], str(_quantity(place[1], missing))))
                    for queue, quota in claims.cut(place[1], missing):
                        changed.setdefault((queue, place), {})[cluster] = quota
                if amounts:
                    lost.append(LostCapacity(cluster, flavor.name, tuple(amounts), capacity.reasons))
    queues = tuple(_with(queue, changed) for queue in fleet.cluster_queues) if changed else fleet.cluster_queues
    return FollowedQuota(fleet_having(fleet, cluster_queues=queues) if changed else fleet, tuple(lost))


def _with(
    queue: ClusterQueueEntry, changed: Mapping[tuple[str, Place], Mapping[str, ClusterQuota]]
) -> ClusterQueueEntry:
    groups = []
    for group in queue.resource_groups:
        flavors = []
        for flavor in group.flavors:
            resources = tuple(
                quota.model_copy(update={"per_cluster": {**quota.per_cluster, **_merged(quota, found)}})
                if (found := changed.get((queue.name, (flavor.name, quota.name))))
                else quota
                for quota in flavor.resources
            )
            flavors.append(flavor.model_copy(update={"resources": resources}))
        groups.append(group.model_copy(update={"flavors": tuple(flavors)}))
    return queue.model_copy(update={"resource_groups": tuple(groups)})


def _merged(quota: FleetResourceQuota, found: Mapping[str, ClusterQuota]) -> dict[str, ClusterQuota]:
    """What was found, with what the file says otherwise of these clusters."""
    return {
        cluster: quota.per_cluster[cluster].model_copy(
            update={name: getattr(other, name) for name in other.model_fields_set}
        )
        if cluster in quota.per_cluster
        else other
        for cluster, other in found.items()
    }


@dataclass(frozen=True, slots=True)
class _Claim:
    queue: str
    quota: ResourceQuota
    amount: int
    """What may be used of it: its own quota, or what a slack queue lends."""


class _Claims:
    """Who may use a resource of a flavor."""

    def __init__(self) -> None:
        self.fixed = 0
        self.teams: list[_Claim] = []
        self.slack: list[_Claim] = []

    @property
    def following(self) -> int:
        """What follows capacity of it."""
        return sum(claim.amount for claim in (*self.teams, *self.slack))

    @property
    def total(self) -> int:
        return self.fixed + self.following

    def cut(self, resource: str, missing: int) -> Iterator[tuple[str, ClusterQuota]]:
        """The quotas that are less by what is missing, in all; what slack lends always, as the manager sums it up."""
        unit = _unit(resource)
        lent = sum(claim.amount for claim in self.slack)
        shares = _shares([claim.amount for claim in self.slack], max(lent - missing, 0), unit)
        for claim, share in zip(self.slack, shares, strict=True):
            # Its own quota stays: the rest of the cohort cannot get at what is not lent.
            yield claim.queue, ClusterQuota(lending_limit=_quantity(resource, share))
        if missing > lent:
            own = sum(claim.amount for claim in self.teams)
            shares = _shares([claim.amount for claim in self.teams], max(own + lent - missing, 0), unit)
            for claim, share in zip(self.teams, shares, strict=True):
                nominal = _quantity(resource, share)
                made = ClusterQuota(nominal_quota=nominal)
                if (lends := claim.quota.lending_limit) is not None:
                    made = ClusterQuota(nominal_quota=nominal, lending_limit=min(lends, nominal))
                yield claim.queue, made


def _shares(amounts: Sequence[int], target: int, unit: int) -> list[int]:
    """At most `target` in whole units, shared in proportion to `amounts`; a smaller target is more for none of them.

    By highest averages (D'Hondt), which begins at everyone's proportion, rounded down.
    """
    whole, units = sum(amounts), target // unit
    if whole == 0 or target >= whole:
        return list(amounts)
    shares = [amount * target // (whole * unit) for amount in amounts]
    for _ in range(units - sum(shares)):
        can = [index for index, amount in enumerate(amounts) if (shares[index] + 1) * unit <= amount]
        if can:
            shares[max(can, key=lambda index: (amounts[index] / (shares[index] + 1), -index))] += 1
    return [share * unit for share in shares]


def _claims(fleet: FleetSpec, cluster: str, flavor: str) -> Mapping[Place, _Claims]:
    """By resource of a flavor, who may use it on a cluster."""
    found: dict[Place, _Claims] = {}
    queues = [queue for queue in fleet.cluster_queues if cluster in fleet.clusters_of(queue)]
    entries: list[ClusterQueueEntry | CohortEntry] = [*queues, *cohorts_on(fleet, cluster)]
    for entry in entries:
        for quota in _quotas_on(entry.resource_groups, cluster, flavor):
            claims, nominal = found.setdefault((flavor, quota.name), _Claims()), quota.nominal_quota
            if not isinstance(entry, ClusterQueueEntry) or entry.quota_follows == "file":
                claims.fixed += nominal.counted(quota.name)
            elif entry.slack:
                lent = nominal if quota.lending_limit is None else min(nominal, quota.lending_limit)
                claims.slack.append(_Claim(entry.name, quota, lent.counted(quota.name)))
            else:
                claims.teams.append(_Claim(entry.name, quota, nominal.counted(quota.name)))
    return found


def _quotas_on(groups: Iterable[FleetResourceGroup], cluster: str, flavor: str) -> Iterator[ResourceQuota]:
    return (
        quota.on(cluster)
        for group in groups
        for each in group.flavors
        if each.name == flavor
        for quota in each.resources
    )


class _Capacity:
    """What the nodes of a flavor hold."""

    def __init__(self, fleet: FleetSpec, nodes: Nodes, cluster: str, flavor: FlavorEntry, now: float) -> None:
        pools = fleet.flavor_nodes(flavor, cluster)
        names, labels = {pool.name for pool in pools}, fleet.flavor_on(flavor, cluster).node_labels
        self._nodes = [
            node
            for node in nodes[cluster]
            if (node.labels.get(NODE_POOL) in names if pools else labels.items() <= node.labels.items())
        ]
        self._now = now
        self._pools = {pool.name: (pool, self._usable(fleet, nodes, pool)) for pool in pools}
        self._sized = bool(self._pools) and all(pool.sized for pool, _ in self._pools.values())

    def _in(self, pool: ResolvedNodePool) -> list[NodeState]:
        return [node for node in self._nodes if node.labels.get(NODE_POOL) == pool.name]

    def _usable(self, fleet: FleetSpec, nodes: Nodes, pool: ResolvedNodePool) -> int:
        """How many nodes of a pool run pods, or can come: of a pool without autoscaling none comes by itself."""
        here = self._in(pool)
        well = sum(not node.out for node in here)
        most = well if pool.autoscaling is None else max(well, pool.max_nodes - (len(here) - well))
        most = min(most, pool.max_nodes, _left_in_reservation(fleet, nodes, pool))
        return max(most, 0) // pool.slice_nodes * pool.slice_nodes

    def of(self, resource: str, promised: int) -> int:
        """How much there is of a resource: by the pools, or where their size is not known, what is promised less what
        nodes that are out have."""
        per_node = {name: _on_node(pool, resource) for name, (pool, _) in self._pools.items()}
        if not self._sized or None in per_node.values():
            return promised - sum(node.amounts.get(resource, 0) for node in self._nodes if node.out)
        total = 0
        for name, (pool, usable) in self._pools.items():
            expected = per_node[name] or 0
            well = [node for node in self._in(pool) if not node.out]
            total += usable * expected - sum(expected - node.offers(resource, expected, self._now) for node in well)
        return max(total, 0)

    @property
    def reasons(self) -> tuple[str, ...]:
        """Which nodes are out, and how many are missing."""
        out = [f"{node.name} ({node.out})" for node in sorted(self._nodes, key=lambda node: node.name) if node.out]
        missing = [
            f"{short} of {pool.max_nodes} nodes of {pool.name} are missing"
            for pool, usable in self._pools.values()
            if pool.autoscaling is None and (short := pool.max_nodes - len(self._in(pool))) > 0
        ]
        taken = [
            f"{pool.capacity.reservation} has machines for {usable} nodes of {pool.name}"
            for pool, usable in self._pools.values()
            if isinstance(pool.capacity, Reserved) and not out and not missing and usable < pool.max_nodes
        ]
        return (*out, *missing, *taken)


def _on_node(pool: ResolvedNodePool, resource: str) -> int | None:
    """What pods may ask of one node of the pool; None: not known."""
    if pool.machine is not None:
        return pool.allocatable.get(resource)
    return pool.devices_per_node or None if resource == GPU_RESOURCE else None


def _left_in_reservation(fleet: FleetSpec, nodes: Nodes, pool: ResolvedNodePool) -> int:
    """How many machines the pool can have of its reservation: those that no other pool has."""
    if not isinstance(pool.capacity, Reserved):
        return pool.max_nodes
    name = pool.capacity.reservation
    machines = [each.count for each in fleet.reservations if each.name == name]
    if not machines:
        return pool.max_nodes
    held = Counter((cluster, node.labels.get(NODE_POOL)) for cluster, found in nodes.items() for node in found)
    others = (
        held[cluster, other.name]
        for cluster in nodes
        for other in fleet.node_pools_on(cluster)
        if isinstance(other.capacity, Reserved) and other.capacity.reservation == name
        if (cluster, other.name) != (pool.cluster, pool.name)
    )
    return machines[0] - sum(others)


def _unit(resource: str) -> int:
    """What is not divided: a core, a mebibyte, a device."""
    return 1000 if resource == "cpu" else _MIB if resource in _IN_BYTES else 1


def _quantity(resource: str, amount: int) -> Quantity:
    return Quantity(format_request(resource, amount))
