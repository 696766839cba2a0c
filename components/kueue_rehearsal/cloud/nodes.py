"""Simulated nodes of one cluster: the stand-in for GKE's node pools, its cluster autoscaler and node auto-provisioning.

Nodes of pools are kept as the pools want them, nodes are made for pods that fit nowhere and removed when they stay
empty, and Spot nodes are taken back. What to do is decided in `node_planning`, `node_pools`, `node_removal` and
`spot`; kwok plays the nodes. Capacity that is bound to a ProvisioningRequest is left to `dws`.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from kueue_admission.kernel.manifest import Manifest
from kueue_fleet.fleet_file.model.rehearsal_section import RehearsalSection
from kueue_fleet.gke.labels import COMPUTE_CLASS, NODE_POOL
from kueue_fleet.gke.pool_rules import FLEX_START_MAX_SECONDS
from kueue_fleet.kube.answers import ApiError
from kueue_rehearsal.cloud.class_sources import ClassSource
from kueue_rehearsal.cloud.cluster_view import CAPACITY_RECLAIMED, SPOT_RECLAIMED, ClusterView
from kueue_rehearsal.cloud.gke_crds import COMPUTE_CLASSES
from kueue_rehearsal.cloud.node_planning import NodeSource, plan_nodes
from kueue_rehearsal.cloud.node_pool_store import NodePoolStore
from kueue_rehearsal.cloud.node_pools import NodePool, is_bound, pool_nodes
from kueue_rehearsal.cloud.node_removal import plan_removals
from kueue_rehearsal.cloud.node_sources import AutoProvisioning, PoolSource
from kueue_rehearsal.cloud.node_templates import FINGERPRINT, TERMINATION_TIME
from kueue_rehearsal.cloud.pod_needs import (
    PodNeeds,
    consumed_request,
    free_resources,
    is_daemon,
    is_unschedulable,
    pod_needs,
)
from kueue_rehearsal.cloud.region_stock import RegionStock
from kueue_rehearsal.cloud.spot import choose_reclaims, due_reclaims
from kueue_rehearsal.node_agent.policy import NODE_LABEL
from kueue_rehearsal.node_agent.status import parse_timestamp, timestamp

log = logging.getLogger(__name__)

_SETTLE_SECONDS = 0.1
_TICK_SECONDS = 2.0
# Pods get this long to end when their node is drained; GKE gives them up to an hour.
_DRAIN_SECONDS = 5.0


class NodeProvisioner:
    """Keeps the nodes of one cluster.

    Pods that use a ProvisioningRequest's capacity are left to `dws`, pods of the node agent's node to it.
    """

    def __init__(
        self, view: ClusterView, store: NodePoolStore, stock: RegionStock, settings: Callable[[], RehearsalSection]
    ) -> None:
        self._view = view
        self._store = store
        self._stock = stock
        self._settings = settings
        self._wake = asyncio.Event()
        self._first_seen: dict[str, float] = {}
        self._empty_since: dict[str, float] = {}
        self._draining: dict[str, float] = {}
        self._told: dict[str, str] = {}
        view.subscribe(self._wake.set)

    async def run(self) -> None:
        """Runs until cancelled."""
        await self._view.wait_synced()
        while True:
            await _wait_for(self._wake, _TICK_SECONDS)
            await asyncio.sleep(_SETTLE_SECONDS)
            self._wake.clear()
            try:
                await self._keep_pools(time.time())
                await self._reclaim(time.time())
                await self._provision(time.time())
                await self._remove(time.time())
            except ApiError as error:
                log.info("%s: provisioning: %s; trying again", self._store.place.cluster, error)

    def wake(self) -> None:
        """Looks at everything at once: a pool has changed."""
        self._wake.set()

    def settled(self, pool: str) -> bool:
        """Whether the pool has the nodes that it always has, all ready, and none of another kind."""
        wanted_pool = self._store.pools.get(pool)
        present = pool_nodes(self._view.nodes, pool)
        if wanted_pool is None or wanted_pool.is_over(time.time()):
            return not present
        current = [node for node in present.values() if _is_current(node, wanted_pool)]
        ready = sum(1 for node in current if node["status"]["ready"])
        return len(current) == len(present) and ready >= wanted_pool.view.min_nodes

    async def begin(self, pool: NodePool) -> None:
        """Makes the nodes that a new pool begins with."""
        for template in pool.first_nodes(self._store.place):
            await self._view.add_node(template)

    async def reclaim(self, pool: str | None, count: int) -> list[str]:
        """Takes up to `count` Spot nodes away, of one pool if it is given; returns their names."""
        names = choose_reclaims(self._view.nodes, pool, count, self._settings())
        await self._view.take_away(names, SPOT_RECLAIMED)
        return names

    # -- pools --------------------------------------------------------------------------------------------------

    async def _keep_pools(self, now: float) -> None:
        leaving: set[str] = set()
        for pool in list(self._store.pools.values()):
            if pool.is_over(now):
                await self._view.take_away(list(pool_nodes(self._view.nodes, pool.name)), CAPACITY_RECLAIMED)
            else:
                leaving |= await self._keep_pool(pool)
        for name, node in self._view.nodes.items():
            metadata = node["metadata"]
            if FINGERPRINT in (metadata.get("annotations") or {}):
                gone = metadata["labels"][NODE_POOL] not in self._store.pools
                leaving |= {name} if gone else set()
        self._draining = {name: self._draining.get(name, now) for name in leaving if name in self._view.nodes}
        await self._view.drain(list(self._draining))
        busy = {pod["spec"]["nodeName"] for pod in self._view.active_pods(self._draining)}
        for name, since in list(self._draining.items()):
            if name not in busy:
                await self._view.remove_node(name)
                log.info("%s: node %s: its pool no longer wants it", self._store.place.cluster, name)
            elif now - since >= _DRAIN_SECONDS:
                await self._view.take_away([name], CAPACITY_RECLAIMED)

    async def _keep_pool(self, pool: NodePool) -> set[str]:
        """Makes the nodes that are always there; returns those that are there and should not be."""
        present = pool_nodes(self._view.nodes, pool.name)
        outdated_nodes = {name for name, node in present.items() if not _is_current(node, pool) and not is_bound(node)}
        standing = {template.name: template for template in pool.standing_nodes(self._store.place)}
        current = set(present) - outdated_nodes
        missing_templates = [template for name, template in standing.items() if name not in present]
        if pool.view.autoscaling:
            missing_templates = missing_templates[: max(0, pool.view.least_nodes - len(current))]
        for template in missing_templates:
            if await self._view.add_node(template) is not None:
                log.info("%s: node pool %s: new node %s", self._store.place.cluster, pool.name, template.name)
        if missing_templates:
            # Surge: the new ones first.
            return set()
        return outdated_nodes | (current - set(standing) if not pool.view.autoscaling else set())

    # -- Spot and flex-start nodes end ---------------------------------------------------------------------------

    async def _reclaim(self, now: float) -> None:
        await self._view.take_away(due_reclaims(self._view.nodes, self._settings(), now), SPOT_RECLAIMED)
        over = [name for name, node in self._view.nodes.items() if not is_bound(node) and _is_over(node, now)]
        await self._view.take_away(over, CAPACITY_RECLAIMED)

    # -- nodes for pods ------------------------------------------------------------------------------------------

    async def _provision(self, now: float) -> None:
        waiting = {
            key: pod
            for key, pod in self._view.pods.items()
            if is_unschedulable(pod)
            and not is_daemon(pod)
            and consumed_request(pod) is None
            and NODE_LABEL not in (pod["spec"].get("nodeSelector") or {})
        }
        uids = {pod["metadata"]["uid"] for pod in waiting.values()}
        self._first_seen = {uid: self._first_seen.get(uid, now) for uid in uids}
        self._told = {uid: text for uid, text in self._told.items() if uid in uids}
        delay = self._settings().nodes.provision_seconds
        due = [
            pod_needs(key, pod["metadata"]["uid"], pod["spec"], pod["metadata"]["creationTimestamp"])
            for key, pod in waiting.items()
            if now - self._first_seen[pod["metadata"]["uid"]] >= delay
        ]
        if not due:
            if waiting:
                asyncio.get_running_loop().call_later(delay, self._wake.set)
            return
        nodes = self._view.nodes
        sources = self._sources(nodes, now, await self._classes(due))
        plan = plan_nodes(due, nodes, free_resources(nodes, self._view.pods.values()), sources)
        for template in plan.add:
            if await self._view.add_node(template) is not None:
                log.info("%s: new node %s", self._store.place.cluster, template.name)
        for key, reason in plan.refused.items():
            await self._tell_once(dict(waiting[key]), reason)

    async def _classes(self, waiting: Sequence[PodNeeds]) -> Sequence[Manifest]:
        """The compute classes of the cluster that pods select."""
        selected_classes = {needs.node_selector.get(COMPUTE_CLASS) for needs in waiting} - {None}
        classes_there = await self._view.api.get(COMPUTE_CLASSES) if selected_classes else {}
        return [item for item in classes_there.get("items", ()) if item["metadata"]["name"] in selected_classes]

    def _sources(self, nodes: Mapping[str, Manifest], now: float, classes: Sequence[Manifest] = ()) -> list[NodeSource]:
        """The pools, the smallest machine first, then compute classes, then auto-provisioning."""
        limits, stock = self._store.limits(nodes), self._stock.available(nodes.values(), now)
        pools = [pool for pool in self._store.pools.values() if pool.on_demand_of_pods and not pool.is_over(now)]
        sources: list[NodeSource] = [
            PoolSource(
                pool,
                self._store.place,
                nodes,
                limits=limits,
                stock=stock if pool.view.flex_start else None,
                annotations=_termination(pool, now),
            )
            for pool in sorted(pools, key=lambda one: (one.machine.gpus, one.machine.cpus, one.name))
        ]
        auto_provisioning = AutoProvisioning(
            self._store.auto_provisioning_place, limits=limits, autopilot=self._store.autopilot, stock=stock
        )
        for compute_class in classes:
            name = compute_class["metadata"]["name"]
            sources.append(
                ClassSource(name, compute_class["spec"], replace(auto_provisioning, labels={COMPUTE_CLASS: name}))
            )
        return [*sources, auto_provisioning] if self._store.auto_provisions else sources

    async def _tell_once(self, pod: dict[str, Any], reason: str) -> None:
        uid = pod["metadata"]["uid"]
        if self._told.get(uid) != reason:
            self._told[uid] = reason
            await self._view.say(pod, "NotTriggerScaleUp", reason)

    async def _remove(self, now: float) -> None:
        gone, self._empty_since = plan_removals(
            self._view.nodes,
            self._view.pods.values(),
            self._empty_since,
            now,
            self._settings().nodes.idle_seconds,
            {pool.name: pool.view.min_nodes for pool in self._store.pools.values()},
        )
        own = {name: node for name, node in self._view.nodes.items() if not is_bound(node)}
        await self._view.retire(gone, own, now)


def _is_current(node: Manifest, pool: NodePool) -> bool:
    return (node["metadata"].get("annotations") or {}).get(FINGERPRINT) == pool.fingerprint


def _is_over(node: Manifest, now: float) -> bool:
    end = (node["metadata"].get("annotations") or {}).get(TERMINATION_TIME)
    return end is not None and parse_timestamp(end) <= now


def _termination(pool: NodePool, now: float) -> dict[str, str]:
    if not pool.view.flex_start and pool.view.max_run_seconds is None:
        return {}
    return {TERMINATION_TIME: timestamp(now + (pool.view.max_run_seconds or FLEX_START_MAX_SECONDS))}


async def _wait_for(event: asyncio.Event, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return
