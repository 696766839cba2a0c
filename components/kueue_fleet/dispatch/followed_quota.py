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
from kueue_admission.kernel.names import NODE_POOL
from kueue_admission.kernel.quantity import Quantity
from kueue_admission.read.lost_capacity import LostCapacity
from kueue_fleet.dispatch.node_states import NodeState
from kueue_fleet.settings.fleet_quotas import (
    ClusterCapacity,
    EntryQuotas,
    FlavorNodes,
    FleetQuotas,
    PoolCapacity,
    QueueQuotas,
)
from kueue_fleet.settings.quotas import ClusterQuota, FleetResourceGroup, groups_with

_IN_BYTES: Final = ("memory", "ephemeral-storage")
_MIB: Final = 2**20

Nodes = Mapping[str, Sequence[NodeState]]
"""The nodes of each cluster that is known."""
Place = tuple[str, str]
"""Flavor and resource."""


@dataclass(frozen=True, slots=True)
class FollowedQuota:
    """The fleet with quotas as they are to be now."""

    fleet: FleetQuotas
    lost: tuple[LostCapacity, ...]


def follow_capacity(fleet: FleetQuotas, nodes: Nodes, now: float) -> FollowedQuota:
    """The quotas of queues that follow capacity, with these nodes at `now`; those on other clusters stay as they are.

    Pools of calendar reservations are open or closed as the fleet says.
    """
    changed_quotas: dict[str, dict[Place, dict[str, ClusterQuota]]] = {}
    lost = []
    for cluster in (cluster for name in nodes for cluster in fleet.clusters if cluster.name == name):
        for flavor in cluster.flavors:
            if not cluster.is_closed(flavor.name):
                capacity = _Capacity(fleet, nodes, cluster, flavor, now)
                amounts = []
                for place, claims in _claims(fleet, cluster, flavor.name).items():
                    missing_amount = max(claims.total - capacity.of(place[1], claims.total), 0)
                    if missing_amount and claims.following:
                        amounts.append((place[1], str(_quantity(place[1], missing_amount))))
                    for queue, quota in claims.cut(place[1], missing_amount):
                        changed_quotas.setdefault(queue, {}).setdefault(place, {})[cluster.name] = quota
                if amounts:
                    lost.append(LostCapacity(cluster.name, flavor.name, tuple(amounts), capacity.reasons))
    queues = (queue for queue in fleet.cluster_queues if queue.name in changed_quotas)
    groups = {queue.name: groups_with(queue.resource_groups, changed_quotas[queue.name]) for queue in queues}
    return FollowedQuota(fleet.having(groups) if changed_quotas else fleet, tuple(lost))


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

    def cut(self, resource: str, missing_amount: int) -> Iterator[tuple[str, ClusterQuota]]:
        """The quotas that are less by what is missing, in all; what slack lends always, as the manager sums it up."""
        unit = _unit(resource)
        lent = sum(claim.amount for claim in self.slack)
        shares = _shares([claim.amount for claim in self.slack], max(lent - missing_amount, 0), unit)
        for claim, share in zip(self.slack, shares, strict=True):
            # Its own quota stays: the rest of the cohort cannot get at what is not lent.
            yield claim.queue, ClusterQuota(lending_limit=_quantity(resource, share))
        if missing_amount > lent:
            own = sum(claim.amount for claim in self.teams)
            shares = _shares([claim.amount for claim in self.teams], max(own + lent - missing_amount, 0), unit)
            for claim, share in zip(self.teams, shares, strict=True):
                nominal = _quantity(resource, share)
                quota = ClusterQuota(nominal_quota=nominal)
                if (lends := claim.quota.lending_limit) is not None:
                    quota = ClusterQuota(nominal_quota=nominal, lending_limit=min(lends, nominal))
                yield claim.queue, quota


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


def _claims(fleet: FleetQuotas, cluster: ClusterCapacity, flavor: str) -> Mapping[Place, _Claims]:
    """By resource of a flavor, who may use it on a cluster."""
    claims_by_place: dict[Place, _Claims] = {}
    cohorts = {cohort.name: cohort for cohort in fleet.cohorts}
    queues = (queue for queue in fleet.cluster_queues if cluster.name in queue.clusters)
    entries: list[EntryQuotas] = [*queues, *(cohorts[name] for name in cluster.cohorts)]
    for entry in entries:
        for quota in _quotas_on(entry.resource_groups, cluster.name, flavor):
            claims, nominal = claims_by_place.setdefault((flavor, quota.name), _Claims()), quota.nominal_quota
            if not isinstance(entry, QueueQuotas) or entry.quota_follows == "file":
                claims.fixed += nominal.counted(quota.name)
            elif entry.slack:
                lent = nominal if quota.lending_limit is None else min(nominal, quota.lending_limit)
                claims.slack.append(_Claim(entry.name, quota, lent.counted(quota.name)))
            else:
                claims.teams.append(_Claim(entry.name, quota, nominal.counted(quota.name)))
    return claims_by_place


def _quotas_on(groups: Iterable[FleetResourceGroup], cluster: str, flavor: str) -> Iterator[ResourceQuota]:
    return (
        quota.on(cluster)
        for group in groups
        for flavor_entry in group.flavors
        if flavor_entry.name == flavor
        for quota in flavor_entry.resources
    )


class _Capacity:
    """What the nodes of a flavor hold."""

    def __init__(
        self, fleet: FleetQuotas, nodes: Nodes, cluster: ClusterCapacity, flavor: FlavorNodes, now: float
    ) -> None:
        pools = [cluster.pool(name) for name in flavor.pools]
        self._nodes = [
            node
            for node in nodes[cluster.name]
            if (node.labels.get(NODE_POOL) in flavor.pools if pools else flavor.labels.items() <= node.labels.items())
        ]
        self._now = now
        reservation_rest = {pool.name: _left_in_reservation(fleet, nodes, cluster.name, pool) for pool in pools}
        self._pools = {pool.name: (pool, self._usable(pool, reservation_rest[pool.name])) for pool in pools}
        self._sized = bool(self._pools) and all(pool.is_sized for pool, _ in self._pools.values())

    def _in(self, pool: PoolCapacity) -> list[NodeState]:
        return [node for node in self._nodes if node.labels.get(NODE_POOL) == pool.name]

    def _usable(self, pool: PoolCapacity, amount_left: int) -> int:
        """How many nodes of a pool run pods, or can come: of a pool without autoscaling none comes by itself."""
        here = self._in(pool)
        well = sum(not node.out for node in here)
        most = max(well, pool.max_nodes - (len(here) - well)) if pool.grows else well
        return max(min(most, pool.max_nodes, amount_left), 0) // pool.slice_nodes * pool.slice_nodes

    def of(self, resource: str, promised_amount: int) -> int:
        """How much there is of a resource: by the pools, or where their size is not known, what is promised less what
        nodes that are out have."""
        per_node = {name: pool.on_node(resource) for name, (pool, _) in self._pools.items()}
        if not self._sized or None in per_node.values():
            return promised_amount - sum(node.amounts.get(resource, 0) for node in self._nodes if node.out)
        total = 0
        for name, (pool, usable) in self._pools.items():
            expected_amount = per_node[name] or 0
            well = [node for node in self._in(pool) if not node.out]
            total += usable * expected_amount - sum(
                expected_amount - node.offers(resource, expected_amount, self._now) for node in well
            )
        return max(total, 0)

    @property
    def reasons(self) -> tuple[str, ...]:
        """Which nodes are out, and how many are missing."""
        out = [f"{node.name} ({node.out})" for node in sorted(self._nodes, key=lambda node: node.name) if node.out]
        missing_texts = [
            f"{short} of {pool.max_nodes} nodes of {pool.name} are missing"
            for pool, usable in self._pools.values()
            if not pool.grows and (short := pool.max_nodes - len(self._in(pool))) > 0
        ]
        reasons = [
            f"{pool.reservation} has machines for {usable} nodes of {pool.name}"
            for pool, usable in self._pools.values()
            if pool.reservation is not None and not out and not missing_texts and usable < pool.max_nodes
        ]
        return (*out, *missing_texts, *reasons)


def _left_in_reservation(fleet: FleetQuotas, nodes: Nodes, cluster: str, pool: PoolCapacity) -> int:
    """How many machines the pool can have of its reservation: those that no other pool has."""
    if pool.reservation is None or pool.reservation not in fleet.reservations:
        return pool.max_nodes
    counter = Counter((place, node.labels.get(NODE_POOL)) for place, node_list in nodes.items() for node in node_list)
    others = (
        counter[cluster_there.name, other.name]
        for cluster_there in fleet.clusters
        for other in cluster_there.pools
        if other.reservation == pool.reservation and (cluster_there.name, other.name) != (cluster, pool.name)
    )
    return fleet.reservations[pool.reservation] - sum(others)


def _unit(resource: str) -> int:
    """What is not divided: a core, a mebibyte, a device."""
    return 1000 if resource == "cpu" else _MIB if resource in _IN_BYTES else 1


def _quantity(resource: str, amount: int) -> Quantity:
    return Quantity(format_request(resource, amount))
