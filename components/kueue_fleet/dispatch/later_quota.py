"""What queues may have on clusters at other times, where the fleet's controller writes their quotas.

A job that asks for more than a worker's queue can have now is rejected, as nothing but a change by a user lets it run.
Where quotas follow capacity, calendar pools or windows of time, they may become larger by themselves: such a job waits,
as it does in the manager's queue. What a queue can have is counted with all that its cohorts have, and with every
calendar pool open, so that what is in doubt waits.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from functools import cache

from kueue_admission.decide.amounts import quota_amount
from kueue_admission.decide.model import Workload
from kueue_fleet.settings.fleet_quotas import EntryQuotas, FleetQuotas
from kueue_fleet.settings.windows import together


class LaterQuota:
    """By the quotas of `fleet`, at least all of what these follow; None: none follows anything."""

    def __init__(self, fleet: FleetQuotas | None) -> None:
        self._fleet = fleet.pools_at(None) if fleet is not None else None
        self._most = cache(self._most_of)

    def may_fit(self, workload: Workload, queue: str, cluster: str) -> bool:
        """Whether a workload for which a ClusterQueue has too little quota now may fit into it at another time."""
        most = self._most(queue, cluster)
        return bool(most) and all(amount <= most.get(resource, amount) for resource, amount in workload.requests)

    def _most_of(self, queue: str, cluster: str) -> Mapping[str, int]:
        fleet = self._fleet
        entry = fleet.queue(queue) if fleet is not None else None
        if fleet is None or entry is None:
            return {}
        beside = [
            cluster_queue
            for cluster_queue in fleet.cluster_queues
            if cluster_queue is entry or (entry.cohort_name and cluster_queue.cohort_name)
        ]
        if not any(cluster in fleet.clusters_written(owner) for owner in beside):
            return {}
        names = {queue_beside.name for queue_beside in beside}
        most: dict[str, int] = {}
        for windows in (frozenset[str](), *together(fleet.windows)):
            sums = _sums(fleet.within(windows), names, cluster)
            most |= {resource: max(amount, most.get(resource, 0)) for resource, amount in sums.items()}
        return most


def _sums(fleet: FleetQuotas, queues: Set[str], cluster: str) -> dict[str, int]:
    """What these queues, and all cohorts, have together there, by resource."""
    sums: dict[str, int] = {}
    there = [
        cluster_queue
        for cluster_queue in fleet.cluster_queues
        if cluster_queue.name in queues and cluster in cluster_queue.clusters
    ]
    entries: list[EntryQuotas] = [*there, *fleet.cohorts]
    groups_of_owners = (entry.resource_groups for entry in entries)
    groups = (group for owner in groups_of_owners for group in fleet.groups_on(owner, cluster))
    for group in groups:
        for flavor in group.flavors:
            for quota in flavor.resources:
                amount = quota_amount(quota.name, quota.nominal_quota)
                sums[quota.name] = sums.get(quota.name, 0) + amount
    return sums
