"""The fleet: everything of a fleet file in one frozen value.

`FleetSpec`, with the lookups that checks, renderers and components share: which cluster is the manager, which clusters
run jobs, what exists where. Building one checks each entry; the rules between entries are checked by
`check.check_fleet`, which the parser calls.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Protocol

from kueue_admission.api import ResourceFlavorSpec
from kueue_admission.api.cohort_tree import root_of
from kueue_fleet.fleet_file.model.compute_classes import class_flavor
from kueue_fleet.fleet_file.model.dra_driver import dra_pools
from kueue_fleet.fleet_file.model.entries import (
    ClusterQueueEntry,
    FlavorEntry,
)
from kueue_fleet.fleet_file.model.flavor_nodes import derived_flavor, leads_to
from kueue_fleet.fleet_file.model.fleet_fields import FleetFields
from kueue_fleet.fleet_file.model.manager_flavors import Place, name_flavors, not_adjacent
from kueue_fleet.fleet_file.model.node_pools import NodePoolEntry
from kueue_fleet.fleet_file.model.resolved_pools import ResolvedNodePool, own_nodes, resolve_pool, system_pool_entry


class Placed(Protocol):
    """An entry that says on which clusters it exists."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def clusters(self) -> Sequence[str] | None:
        """Names of its clusters; None: every cluster that runs jobs."""


class FleetSpec(FleetFields):
    """A GPU batch fleet: a manager cluster, its workers, and the Kueue objects that share them."""

    def clusters_of(self, entry: Placed) -> Sequence[str]:
        """Where `entry` exists: where it says, else on every cluster that runs jobs.

        A node pool, and a flavor derived from one, is by default on the Standard clusters only.
        """
        if entry.clusters is not None:
            return entry.clusters
        if isinstance(entry, NodePoolEntry):
            return self._standard_job_clusters
        pool = self.node_pool(entry.node_pool) if isinstance(entry, FlavorEntry) and entry.node_pool else None
        return self.clusters_of(pool) if pool is not None else self.job_clusters

    @cached_property
    def _standard_job_clusters(self) -> tuple[str, ...]:
        return tuple(name for name in self.job_clusters if self.cluster(name).platform == "Standard")

    @cached_property
    def _resolved_pools(self) -> dict[tuple[str, str], ResolvedNodePool]:
        return {}

    @cached_property
    def _pools_by_cluster(self) -> dict[str, tuple[ResolvedNodePool, ...]]:
        return {}

    def node_pool_on(self, name: str, cluster: str) -> ResolvedNodePool | None:
        """The node pool of that name as it is on `cluster`; None if it is not there."""
        resolved_pool = self._resolved_pools.get((name, cluster))
        pool = self.node_pool(name) if resolved_pool is None else None
        if pool is None or cluster not in self._clusters or cluster not in self.clusters_of(pool):
            return resolved_pool
        resolved_pool = self._resolved_pools[name, cluster] = resolve_pool(pool, self._clusters[cluster])
        return resolved_pool

    def node_pools_on(self, cluster: str) -> Sequence[ResolvedNodePool]:
        """The file's node pools on `cluster`, in the order of the file; the system pool is not among them."""
        if cluster not in self._pools_by_cluster:
            pools = (self.node_pool_on(pool.name, cluster) for pool in self.node_pools)
            self._pools_by_cluster[cluster] = tuple(pool for pool in pools if pool is not None)
        return self._pools_by_cluster[cluster]

    def nodes_on(self, cluster: str) -> Sequence[ResolvedNodePool]:
        """The nodes on `cluster` that the file knows: of its node pools, or those of a cluster that is not of GKE.

        Raises KeyError for an unknown cluster.
        """
        entry = self.cluster(cluster)
        return tuple(own_nodes(node, entry) for node in entry.nodes) if entry.nodes else self.node_pools_on(cluster)

    def dra_pools_on(self, cluster: str) -> Sequence[ResolvedNodePool]:
        """The pools on whose nodes there the fleet's NVIDIA DRA driver runs."""
        return dra_pools(self.node_pools_on(cluster)) if self.nvidia_dra_driver is not None else ()

    def system_pool_on(self, cluster: str) -> ResolvedNodePool | None:
        """The system pool that the fleet makes on `cluster`; None on Autopilot. Raises KeyError for an unknown one."""
        entry = self.cluster(cluster)
        has_system_pool = entry.platform == "Standard" and not entry.existing
        return resolve_pool(system_pool_entry(entry), entry) if has_system_pool else None

    def every_pool_on(self, cluster: str) -> Sequence[ResolvedNodePool]:
        """The node pools on `cluster`, the system pool first. Raises KeyError for an unknown cluster."""
        system = self.system_pool_on(cluster)
        return (*([system] if system else []), *self.node_pools_on(cluster))

    def flavor_on(self, flavor: FlavorEntry, cluster: str) -> ResourceFlavorSpec:
        """The flavor as it is on `cluster`: as written, or with what its class, or its node pool there, gives it."""
        if flavor.compute_class is not None:
            return class_flavor(flavor.name, flavor, flavor.compute_class)
        if flavor.node_pool is None:
            return flavor
        pool = self.node_pool_on(flavor.node_pool, cluster)
        return derived_flavor(flavor, pool) if pool is not None else flavor

    def flavor_nodes(self, flavor: FlavorEntry, cluster: str) -> Sequence[ResolvedNodePool]:
        """The pools on `cluster` whose nodes the flavor leads to; none where nodes are GKE's to make.

        On a cluster that is not of GKE, each kind of its nodes is one; none where the file does not know them.
        """
        entry = self._clusters.get(cluster)
        if entry is not None and entry.outside_gke:
            return [nodes for nodes in self.nodes_on(cluster) if leads_to(flavor, nodes)]
        if flavor.node_pool is not None:
            pool = self.node_pool_on(flavor.node_pool, cluster)
            return [] if pool is None else [pool]
        by_gke = flavor.compute_class is not None
        return [pool for pool in self.node_pools_on(cluster) if not by_gke and leads_to(flavor, pool)]

    def is_closed(self, flavor: str, cluster: str) -> bool:
        """Whether the flavor's node pool on `cluster` waits for its calendar reservation, so that its quota is 0."""
        entry = self.flavor(flavor)
        return (
            entry is not None
            and entry.node_pool is not None
            and any(pool.closed for pool in self.flavor_nodes(entry, cluster))
        )

    @cached_property
    def _flavors_by_cluster(self) -> Mapping[str, frozenset[str]]:
        names = {
            cluster: {item.name for item in self.flavors if cluster in self.clusters_of(item)}
            for cluster in self.cluster_names
        }
        if self.manager is not None and self.multi_kueue is not None:
            names[self.manager.name].add(self.multi_kueue.manager_flavor_name)
        return {cluster: frozenset(flavor_names) for cluster, flavor_names in names.items()}

    @cached_property
    def _checks_by_cluster(self) -> Mapping[str, frozenset[str]]:
        return {
            cluster: frozenset(item.name for item in self.admission_checks if cluster in self.clusters_of(item))
            for cluster in self.cluster_names
        }

    def flavors_on(self, cluster: str) -> frozenset[str]:
        """Names of the flavors that exist on `cluster`, `multiKueue.managerFlavorName` among the manager's."""
        return self._flavors_by_cluster.get(cluster, frozenset())

    def checks_on(self, cluster: str) -> frozenset[str]:
        """Names of the file's admission checks that exist on `cluster`; the MultiKueue checks are not among them."""
        return self._checks_by_cluster.get(cluster, frozenset())

    @cached_property
    def _dispatch(self) -> Mapping[str, tuple[str, ...]]:
        """For each dispatched queue, in the order of the file, the workers that have it, most preferred first."""
        if self.multi_kueue is None or self.manager is None:
            return {}
        queues_dispatched = self.multi_kueue.queues
        workers_by_queue = {}
        for queue in self.cluster_queues:
            where = self.clusters_of(queue)
            workers = tuple(worker for worker in self.worker_names if worker in where)
            if workers and (queues_dispatched is None or queue.name in queues_dispatched):
                workers_by_queue[queue.name] = workers
        return workers_by_queue

    @property
    def dispatched(self) -> tuple[str, ...]:
        """Names of the queues that the manager dispatches to workers, in the order of the file."""
        return tuple(self._dispatch)

    def is_dispatched(self, queue: str) -> bool:
        """Whether the manager dispatches the queue."""
        return queue in self._dispatch

    def dispatch_workers(self, queue: str) -> tuple[str, ...]:
        """The workers that a dispatched queue's jobs are offered to, most preferred first; else none."""
        return self._dispatch.get(queue, ())

    def places_of(self, queue: ClusterQueueEntry, clusters: Iterable[str]) -> frozenset[Place]:
        """Which of its flavors the queue has on which of `clusters`."""
        names = set(queue.flavor_names)
        return frozenset((cluster, name) for cluster in clusters for name in names & self.flavors_on(cluster))

    @cached_property
    def _trees(self) -> Mapping[str, Mapping[str, frozenset[Place]]]:
        trees: dict[str, dict[str, frozenset[Place]]] = {}
        for queue in self.cluster_queues:
            root, workers = root_of(queue.cohort_name, self.cohort_parents), self.dispatch_workers(queue.name)
            if root is not None and workers:
                trees.setdefault(root, {})[queue.name] = self.places_of(queue, workers)
        return trees

    def tree_of(self, cohort: str | None) -> Mapping[str, frozenset[Place]]:
        """The dispatched queues in the tree of `cohort`, with where each has quota on workers."""
        return self._trees.get(root_of(cohort, self.cohort_parents) or "", {})

    @cached_property
    def _manager_flavors(self) -> Mapping[str, Mapping[Place, str]]:
        """By the root of each cohort tree with dispatched queues."""
        order = [flavor.name for flavor in self.flavors], self.cluster_names
        name = self.multi_kueue.manager_flavor_name if self.multi_kueue is not None else ""
        return {root: name_flavors(name, queues.values(), *order) for root, queues in self._trees.items()}

    @cached_property
    def not_adjacent(self) -> frozenset[str]:
        """The dispatched queues that share nothing on any worker with some queue on the same flavor of the manager."""
        problem = (not_adjacent(queues, self._manager_flavors[root]) for root, queues in self._trees.items())
        return frozenset().union(*problem)

    def manager_flavor(self, cohort: str | None, worker: str, flavor: str) -> str | None:
        """The manager's flavor for quota of `flavor` on `worker`, of `cohort` itself or of a queue in it.

        None where no dispatched queue of the tree can use it. Raises ValueError for a fleet without multiKueue.
        """
        if self.multi_kueue is None:
            raise ValueError("the fleet has no multiKueue; add the section")
        root = root_of(cohort, self.cohort_parents)
        if root is None:
            return self.multi_kueue.manager_flavor_name
        return self._manager_flavors.get(root, {}).get((worker, flavor))

    @cached_property
    def manager_flavor_names(self) -> tuple[str, ...]:
        """The flavors that the fleet derives for the manager: those that quotas are on, or have been on."""
        if self.multi_kueue is None or self.manager is None:
            return ()
        derived_names = (name for tree in self._manager_flavors.values() for name in tree.values())
        former = self.multi_kueue.former_manager_flavor_names
        return tuple(dict.fromkeys((self.multi_kueue.manager_flavor_name, *derived_names, *former)))

    @cached_property
    def _queue_clusters(self) -> Mapping[str, tuple[str, ...]]:
        clusters_by_queue = {}
        for queue in self.cluster_queues:
            where = set(self.clusters_of(queue))
            if self.manager is not None and queue.name in self._dispatch:
                where.add(self.manager.name)
            clusters_by_queue[queue.name] = tuple(name for name in self.cluster_names if name in where)
        return clusters_by_queue

    def queue_clusters(self, queue: ClusterQueueEntry) -> tuple[str, ...]:
        """Where `queue` exists: its clusters, and the manager if it is dispatched; in the order of the file."""
        return self._queue_clusters.get(queue.name, ())

    def queues_on(self, cluster: str) -> Sequence[ClusterQueueEntry]:
        """The queues that exist on `cluster`, in the order of the file."""
        return [queue for queue in self.cluster_queues if cluster in self.queue_clusters(queue)]
