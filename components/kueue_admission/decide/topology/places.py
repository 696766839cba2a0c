"""Where pods go in topologies, as the decisions ask for it; `placement` answers for a cluster with topologies."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kueue_admission.decide.flavors.assignment import Assignment
    from kueue_admission.decide.model import Objects
    from kueue_admission.decide.queue.cluster_queue import QueueNode
    from kueue_admission.decide.scheduler.cache import Cache
    from kueue_admission.decide.scheduler.entry import Entry
    from kueue_admission.decide.topology.domains import TopologyState
    from kueue_admission.decide.topology.requests import PlacementRequest
    from kueue_admission.decide.workload.state import WorkloadInfo

TopologyRequests = dict[str, list["PlacementRequest"]]
"""Pod sets to place, by flavor."""


class NoPlaces:
    """Of a cluster without topologies, where only quota counts: every pod fits."""

    def states(self, objects: Objects) -> dict[str, TopologyState]:
        """The nodes of each topology-aware flavor."""
        return {}

    def requests(self, cache: Cache, info: WorkloadInfo, queue: QueueNode, assignment: Assignment) -> TopologyRequests:
        """The pod sets of an assignment that have to be placed now."""
        return {}

    def place(self, cache: Cache, info: WorkloadInfo, queue: QueueNode, assignment: Assignment) -> None:
        """Place the pods of an assignment that fits or could by preemption."""

    def place_for_preemption(
        self,
        cache: Cache,
        info: WorkloadInfo,
        queue: QueueNode,
        assignment: Assignment,
        leaving: Collection[WorkloadInfo],
    ) -> None:
        """Note where the pods will go once others are gone; if none leaves, where they would on empty nodes."""

    def fits(self, cache: Cache, info: WorkloadInfo, requests: TopologyRequests) -> bool:
        """Whether the pods can be placed now."""
        return True

    def reserve(self, cache: Cache, entry: Entry, sign: int) -> None:
        """Count an entry's places as used (`sign` 1), or as free (-1)."""

    def are_free(self, cache: Cache, entry: Entry) -> bool:
        """Whether the places an entry was nominated for are still free."""
        return True
