"""Writes the quotas of queues that follow capacity or windows of time, on their clusters and on the manager.

A cluster whose nodes were never seen is not decided about, nor are the manager's copies of queues that are on it. Of
one that is out of reach, the nodes that were seen last count.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from functools import partial
from typing import Final

from kueue_admission.api import ClusterQueueSpec
from kueue_admission.kernel.names import KUEUE_API, LOST_CAPACITY_ANNOTATION
from kueue_admission.kernel.quantity import Quantity
from kueue_admission.read.lost_capacity import LostCapacity, write_lost
from kueue_admission.read.printed import PrintedNode
from kueue_fleet.controller.configured_quota import GRACE_SECONDS, KUEUE
from kueue_fleet.controller.metrics import Metrics
from kueue_fleet.dispatch.followed_quota import follow_capacity
from kueue_fleet.dispatch.node_states import NodeState, SteadyNodes, read_node
from kueue_fleet.kube.answers import ApiError, Json
from kueue_fleet.kube.api import Api
from kueue_fleet.kube.watching import Watch
from kueue_fleet.settings.fleet_quotas import FleetQuotas, QueueQuotas

LOOK_SECONDS: Final = 5.0
"""Pause between two looks at all nodes."""
AGAIN_SECONDS: Final = 60.0
"""After which quotas are written again that have not changed: somebody else may have changed them."""
CAPACITY_MANAGER: Final = "kueue-fleet-capacity"
"""Field manager of quotas that follow capacity."""

log = logging.getLogger(__name__)


class CapacityWriter:
    """`following` is the fleet as far as quotas depend on it; None: none follows capacity or windows."""

    def __init__(
        self,
        following: FleetQuotas | None,
        home: Api,
        workers: Mapping[str, Api],
        metrics: Metrics,
        clock: Callable[[], float],
    ) -> None:
        self._fleet = following
        self._metrics = metrics
        self._clock = clock
        self._apis: dict[str, Api] = {}
        self._nodes: dict[str, dict[str, PrintedNode]] = {}
        self._watches: dict[str, Watch] = {}
        self._steady = SteadyNodes()
        self._written: dict[tuple[str, str], tuple[Json, float]] = {}
        if following is None:
            return
        for cluster in following.clusters:
            queues = [
                cluster_queue
                for cluster_queue in following.cluster_queues
                if cluster.name in following.clusters_written(cluster_queue)
            ]
            if queues:
                api = self._apis[cluster.name] = workers.get(cluster.name, home)
                if cluster.runs_jobs and any(queue.quota_follows == "capacity" for queue in queues):
                    take = partial(self._take, self._nodes.setdefault(cluster.name, {}))
                    self._watches[cluster.name] = Watch(api, "/api/v1/nodes", take, grace=GRACE_SECONDS)

    @property
    def watches(self) -> tuple[Watch, ...]:
        """What is to be run for it: it follows the nodes."""
        return tuple(self._watches.values())

    @staticmethod
    def _take(nodes: dict[str, PrintedNode], key: str, item: Json | None) -> None:
        """A Node is new, changed or gone; of what it says, what is read of it is kept."""
        if item is None:
            nodes.pop(key, None)
            return
        metadata = {name: item["metadata"].get(name) for name in ("name", "labels", "deletionTimestamp")}
        spec = {name: (item.get("spec") or {}).get(name) for name in ("taints", "unschedulable")}
        status = {name: (item.get("status") or {}).get(name) for name in ("allocatable", "conditions")}
        nodes[key] = PrintedNode.of({"metadata": metadata, "spec": spec, "status": status})

    async def run(self) -> None:
        """Write until cancelled."""
        while self._fleet is not None:
            await self.look(self._fleet)
            await asyncio.sleep(LOOK_SECONDS)

    async def look(self, fleet: FleetQuotas) -> None:
        """Look at all nodes once, and write what has changed or is due."""
        now = self._clock()
        known_states = {name: self._states(name, now) for name, watch in self._watches.items() if watch.synced.is_set()}
        capacity_now = follow_capacity(fleet.at(datetime.fromtimestamp(now, UTC)), known_states, now)
        self._metrics.lost_capacity.clear()
        for lost in capacity_now.lost:
            for resource, amount in lost.amounts:
                gauge = self._metrics.lost_capacity.labels(lost.cluster, lost.flavor, resource)
                gauge.set(float(Quantity(amount).decimal))
        for queue in capacity_now.fleet.cluster_queues:
            for cluster in capacity_now.fleet.clusters_written(queue):
                nodes_of = (cluster,) if cluster in self._watches else queue.workers
                if queue.quota_follows == "file" or known_states.keys() >= set(nodes_of):
                    there = [loss for loss in capacity_now.lost if loss.cluster in nodes_of]
                    await self._write(cluster, queue, _body(capacity_now.fleet, queue, cluster, there), now)

    def _states(self, cluster: str, now: float) -> tuple[NodeState, ...]:
        read = (read_node(node, now) for node in self._nodes[cluster].values())
        return self._steady.steady(cluster, [state for state in read if state is not None], now)

    async def _write(self, cluster: str, queue: QueueQuotas, body: Json, now: float) -> None:
        before, at = self._written.get((cluster, queue.name), (None, 0.0))
        if body == before and now - at < AGAIN_SECONDS:
            return
        fields = {"cluster": cluster, "queue": queue.name}
        try:
            await self._apis[cluster].apply(f"{KUEUE}/clusterqueues/{queue.name}", body, CAPACITY_MANAGER)
        except ApiError as error:
            self._metrics.failures.labels(str(error.status)).inc()
            log.warning("quota not written", extra={"fields": {**fields, "error": str(error)[:500]}})
            return
        self._written[cluster, queue.name] = body, now
        if body != before:
            lost = body["metadata"].get("annotations", {}).get(LOST_CAPACITY_ANNOTATION, "none")
            log.info("quota written", extra={"fields": {**fields, "lost": lost}})


def _body(fleet: FleetQuotas, queue: QueueQuotas, cluster: str, lost: Iterable[LostCapacity]) -> Json:
    """The quotas of a queue, and what its flavors lost: all that is the controller's of the ClusterQueue."""
    losses = [loss for loss in lost if loss.flavor in queue.flavor_names]
    annotations = {"annotations": {LOST_CAPACITY_ANNOTATION: write_lost(losses)}} if losses else {}
    # By Kueue's model: entries of a fleet file have more than the object.
    spec = ClusterQueueSpec.model_construct(resource_groups=fleet.quotas_on(queue, cluster))
    return {
        "apiVersion": KUEUE_API,
        "kind": "ClusterQueue",
        "metadata": {"name": queue.name, **annotations},
        "spec": spec.model_dump(mode="json", by_alias=True, exclude_none=True, include={"resource_groups"}),
    }
