"""The most that queues can ever have on one cluster: their own quota, and all that their cohorts can lend them.

Source: kueue@v0.19.2 pkg/cache/scheduler/resource_node.go (potentialAvailable, accumulateFromChild, localQuota).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from kueue_fleet.fleet_file.model.fleet import FleetSpec
from kueue_fleet.fleet_file.model.per_cluster import cohort_on, cohorts_on, quotas_on
from kueue_fleet.kueue_api import ResourceGroup, ResourceQuota
from kueue_fleet.kueue_api.cohort_tree import with_ancestors
from kueue_fleet.kueue_api.quantity import ZERO, Quantity

_FlavorResource = tuple[str, str]
"""The name of a flavor and of a resource."""


@dataclass(slots=True)
class _Node:
    """A queue or a cohort."""

    quotas: Mapping[_FlavorResource, ResourceQuota] = field(default_factory=dict)
    members: list[_Node] = field(default_factory=list)
    parent: _Node | None = None

    def subtree(self, of: _FlavorResource) -> Quantity:
        """Its own quota, and what its members lend it."""
        own = self.quotas[of].nominal_quota if of in self.quotas else ZERO
        return Quantity.total((own, *(member.lent(of) for member in self.members)))

    def lent(self, of: _FlavorResource) -> Quantity:
        """What it lends to the cohort above."""
        limit = self.quotas[of].lending_limit if of in self.quotas else None
        subtree = self.subtree(of)
        return subtree if limit is None else min(subtree, limit)

    def most(self, of: _FlavorResource) -> Quantity:
        """What it can have while the rest of its tree uses nothing."""
        subtree = self.subtree(of)
        if self.parent is None:
            return subtree
        most = subtree - self.lent(of) + self.parent.most(of)
        limit = self.quotas[of].borrowing_limit if of in self.quotas else None
        return most if limit is None else min(most, subtree + limit)


def most_quota(fleet: FleetSpec, cluster: str) -> dict[str, dict[str, Quantity]]:
    """For each queue on `cluster`, and each of its resources, the most that one pod set can get: from its best flavor.

    Of cohorts that go round in a circle, in which Kueue admits nothing, one is taken as the topmost.
    """
    cohorts: dict[str, _Node] = {}
    here = cohorts_on(fleet, cluster)
    for cohort in here:
        cohorts[cohort.name] = _Node(_by_flavor(cohort_on(fleet, cohort, cluster).resource_groups))
    parents: dict[str, str | None] = {}
    for cohort in here:
        if cohort.name not in with_ancestors(cohort.parent_name, parents):
            parents[cohort.name] = cohort.parent_name
            _join(cohorts[cohort.name], cohort.parent_name, cohorts)
    found: dict[str, dict[str, Quantity]] = {}
    queues = {queue.name: _Node(_by_flavor(quotas_on(fleet, queue, cluster))) for queue in fleet.queues_on(cluster)}
    for queue in fleet.queues_on(cluster):
        _join(queues[queue.name], queue.cohort_name, cohorts)
    for name, node in queues.items():
        amounts = found[name] = {}
        for flavor, resource in node.quotas:
            amounts[resource] = max(amounts.get(resource, ZERO), node.most((flavor, resource)))
    return found


def _by_flavor(groups: Sequence[ResourceGroup]) -> dict[_FlavorResource, ResourceQuota]:
    return {
        (flavor.name, quota.name): quota for group in groups for flavor in group.flavors for quota in flavor.resources
    }


def _join(node: _Node, cohort: str | None, cohorts: dict[str, _Node]) -> None:
    """Put the node below its cohort, declared or not."""
    if cohort is not None:
        node.parent = cohorts.setdefault(cohort, _Node())
        node.parent.members.append(node)
