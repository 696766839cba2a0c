"""What queues may have on clusters at other times, where the fleet's controller writes their quotas.

A job that asks for more than a worker's queue can have now is rejected, as nothing but a change by a user lets it run.
Where quotas follow capacity or windows of time, they may become larger by themselves: such a job waits, as it does in
the manager's queue. What a queue can have is counted with all that its cohorts have, so that what is in doubt waits.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from functools import cache

from kueue_admission.decide.amounts import quota_amount
from kueue_admission.decide.model import Workload
from kueue_fleet.fleet_file import FleetSpec
from kueue_fleet.fleet_file.model.entries import ClusterQueueEntry, CohortEntry
from kueue_fleet.fleet_file.model.per_cluster import following_clusters, groups_on
from kueue_fleet.fleet_file.quota_windows import fleet_in, quota_windows
from kueue_fleet.settings.windows import together


class LaterQuota:
    """By the quotas of `fleet`, at least all of what these follow; None: none follows anything."""

    def __init__(self, fleet: FleetSpec | None) -> None:
        self._fleet = fleet
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
        beside = [each for each in fleet.cluster_queues if each is entry or (entry.cohort_name and each.cohort_name)]
        if not any(cluster in following_clusters(fleet, each) for each in beside):
            return {}
        names = {each.name for each in beside}
        found: dict[str, int] = {}
        for windows in (frozenset[str](), *together(quota_windows(fleet))):
            sums = _sums(fleet_in(fleet, windows), names, cluster)
            found |= {resource: max(amount, found.get(resource, 0)) for resource, amount in sums.items()}
        return found


def _sums(fleet: FleetSpec, queues: Set[str], cluster: str) -> dict[str, int]:
    """What these queues, and all cohorts, have together there, by resource."""
    sums: dict[str, int] = {}
    there: list[ClusterQueueEntry | CohortEntry] = [
        each for each in fleet.cluster_queues if each.name in queues and cluster in fleet.clusters_of(each)
    ]
    given = (each.resource_groups for each in (*there, *fleet.cohorts))
    groups = (group for each in given for group in groups_on(fleet, each, cluster))
    for group in groups:
        for flavor in group.flavors:
            for quota in flavor.resources:
                amount = quota_amount(quota.name, quota.nominal_quota)
                sums[quota.name] = sums.get(quota.name, 0) + amount
    return sums
