"""The fleet: everything of a fleet file in one frozen value.

`FleetSpec`, with the lookups that checks, renderers and components share: which cluster is the manager, which clusters
run jobs, what exists where. Building one checks each entry; the rules between entries are checked by
`check.check_fleet`, which the parser calls.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Annotated, Protocol

from pydantic import Field

from kueue_admission.api import ResourceFlavorSpec
from kueue_admission.api.cohort_tree import root_of
from kueue_admission.api.manifests import namespace_labels
from kueue_admission.forms.base import DnsLabel, Flag, LabelKey, LabelValue, SpecModel
from kueue_admission.forms.described import Hint
from kueue_admission.forms.given import ListOf
from kueue_fleet.fleet_file.model.capacity import CommitmentEntry, FutureReservationEntry, ReservationEntry
from kueue_fleet.fleet_file.model.clusters import ClusterEntry, MultiKueueArgs
from kueue_fleet.fleet_file.model.compute_classes import class_flavor
from kueue_fleet.fleet_file.model.dra_driver import NvidiaDraDriver, dra_pools
from kueue_fleet.fleet_file.model.entries import (
    AdmissionCheckEntry,
    ClusterQueueEntry,
    CohortEntry,
    FlavorEntry,
    LocalQueueEntry,
    PriorityClassEntry,
    TopologyEntry,
    WorkloadPriorityClassEntry,
)
from kueue_fleet.fleet_file.model.flavor_nodes import derived_flavor, leads_to
from kueue_fleet.fleet_file.model.fleet_page import FleetPage
from kueue_fleet.fleet_file.model.gcp_names import GcpLabelKey, GcpLabelValue, ProjectId, ResourceName
from kueue_fleet.fleet_file.model.installations import JobSetInstallation, KueueInstallation
from kueue_fleet.fleet_file.model.manager_flavors import Place, name_flavors, not_adjacent
from kueue_fleet.fleet_file.model.network import NetworkArgs
from kueue_fleet.fleet_file.model.node_pools import NodePoolEntry
from kueue_fleet.fleet_file.model.observability import NO_OBSERVABILITY, Observability
from kueue_fleet.fleet_file.model.operators import Operators
from kueue_fleet.fleet_file.model.planning import PlanLimits
from kueue_fleet.fleet_file.model.resolved_pools import ResolvedNodePool, own_nodes, resolve_pool, system_pool_entry
from kueue_fleet.fleet_file.model.storage import StorageEntry
from kueue_fleet.fleet_file.model.teams import TeamEntry
from kueue_fleet.settings.dispatch import AdmissionControllerArgs


class Placed(Protocol):
    """An entry that says on which clusters it exists."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def clusters(self) -> Sequence[str] | None:
        """Names of its clusters; None: every cluster that runs jobs."""


class FleetSpec(SpecModel):
    """A GPU batch fleet: a manager cluster, its workers, and the Kueue objects that share them."""

    name: ResourceName = Field(kw_only=False)
    """Name of the fleet; part of the names of its resources in Google Cloud."""
    project: ProjectId = Field("", kw_only=False)
    """Id of the Google Cloud project; needed with clusters of GKE."""
    deletion_protection: Flag = True
    """Whether clusters, node pools, Kueue with all queues, and reserved capacity are protected from deletion; default
    true.
    """
    enable_apis: Flag = True
    """Whether the fleet enables the APIs of Google Cloud that it uses, for good; default true."""
    labels: Mapping[GcpLabelKey, GcpLabelValue] = Field(default_factory=dict)
    """Labels on everything in Google Cloud."""
    network: NetworkArgs = Field(default_factory=NetworkArgs)
    """The VPC network, and how control planes are reached."""
    kueue: KueueInstallation = Field(default_factory=KueueInstallation)
    """How Kueue is installed and configured."""
    job_set: JobSetInstallation = Field(default_factory=JobSetInstallation)
    """How JobSet is installed."""
    operators: Operators = Field(default_factory=Operators)
    """The operators of other kinds of jobs."""
    nvidia_dra_driver: NvidiaDraDriver | None = None
    """NVIDIA's DRA driver, `{}` for the defaults; absent: not installed. It is on clusters with node pools for it: of
    A4X, for ComputeDomains, and with the label `gke-no-default-nvidia-gpu-device-plugin: "true"`, for GPUs that pods
    claim.
    """
    clusters: Annotated[ListOf[ClusterEntry], Hint("add a manager and its workers, or one cluster of role standalone")]
    """One manager with up to 100 workers, at most 20 for a queue; or one standalone cluster."""
    node_pools: ListOf[NodePoolEntry] = ()
    """Nodes of Standard clusters."""
    reservations: ListOf[ReservationEntry] = ()
    """Reserved machines; the fleet creates and protects them, and keeps them when it is destroyed."""
    future_reservations: ListOf[FutureReservationEntry] = ()
    """Machines requested from DWS Calendar for a future time, and protected."""
    commitments: ListOf[CommitmentEntry] = ()
    """Committed-use contracts; they cannot be cancelled."""
    flavors: ListOf[FlavorEntry] = ()
    """Kinds of node."""
    topologies: ListOf[TopologyEntry] = ()
    """Levels of the data centre, for topology-aware scheduling."""
    cohorts: ListOf[CohortEntry] = ()
    """The tree in which queues borrow from each other; each cohort is where queues or cohorts below it are."""
    cluster_queues: ListOf[ClusterQueueEntry] = ()
    """Quotas and how jobs wait for them."""
    admission_checks: ListOf[AdmissionCheckEntry] = ()
    """Conditions before a job starts: a ProvisioningRequest, or another controller's."""
    priority_classes: ListOf[PriorityClassEntry] = ()
    """Priorities of pods, on every cluster."""
    workload_priority_classes: ListOf[WorkloadPriorityClassEntry] = ()
    """Priorities of jobs in their queue, on every cluster."""
    teams: ListOf[TeamEntry] = ()
    """Teams, with namespaces and LocalQueues."""
    local_queues: ListOf[LocalQueueEntry] = ()
    """LocalQueues outside of teams."""
    storage: ListOf[StorageEntry] = ()
    """Buckets, file systems and disks of teams, each with a PersistentVolumeClaim."""
    namespace_labels: Mapping[DnsLabel, Mapping[LabelKey, LabelValue]] = Field(default_factory=dict)
    """Further labels of namespaces of teams and LocalQueues, and of `default`, by namespace; ClusterQueues select by
    them.
    """
    multi_kueue: MultiKueueArgs | None = None
    """Dispatch from the manager to the workers; needed with workers."""
    admission_controller: AdmissionControllerArgs | None = None
    """The fleet's controller, on the manager or standalone cluster; absent: not deployed."""
    fleet_page: FleetPage | None = None
    """A page where members of teams see their jobs, read only, each with their own rights; absent: not deployed."""
    observability: Observability = NO_OBSERVABILITY
    """Metrics, dashboards and alerts; absent: none."""
    plan: PlanLimits | None = None
    """What `kueue-fleet plan` may change; no resource depends on it."""

    @property
    def network_name(self) -> str:
        """Name of the VPC network."""
        return self.network.existing.name if self.network.existing else self.network.name or self.name

    @property
    def network_project(self) -> str:
        """Project of the VPC network: another one than the fleet's with a Shared VPC."""
        return (self.network.existing and self.network.existing.project) or self.project

    @cached_property
    def manager(self) -> ClusterEntry | None:
        """The manager cluster, if there is one."""
        return next((cluster for cluster in self.clusters if cluster.role == "manager"), None)

    @property
    def manager_name(self) -> str | None:
        """Name of the manager cluster, if there is one."""
        return self.manager.name if self.manager is not None else None

    @cached_property
    def gke_clusters(self) -> tuple[ClusterEntry, ...]:
        """The clusters of GKE."""
        return tuple(cluster for cluster in self.clusters if not cluster.outside_gke)

    @cached_property
    def plain_clusters(self) -> tuple[str, ...]:
        """The clusters that are not of GKE, in the order of the file."""
        return tuple(cluster.name for cluster in self.clusters if cluster.outside_gke)

    @cached_property
    def new_clusters(self) -> tuple[ClusterEntry, ...]:
        """The clusters that the fleet makes."""
        return tuple(cluster for cluster in self.gke_clusters if not cluster.existing)

    @property
    def home(self) -> str:
        """The cluster that jobs are submitted to: the manager, or the first one."""
        return self.manager_name or self.clusters[0].name

    @cached_property
    def controller_cluster(self) -> str | None:
        """Where the fleet's own controller runs, if there is one: the manager, or the standalone cluster."""
        if self.admission_controller is None:
            return None
        return next((cluster.name for cluster in self.clusters if cluster.role != "worker"), None)

    @cached_property
    def cluster_names(self) -> tuple[str, ...]:
        """Every cluster, in the order of the file."""
        return tuple(cluster.name for cluster in self.clusters)

    @cached_property
    def job_clusters(self) -> tuple[str, ...]:
        """The clusters that run jobs: the workers, or the standalone cluster."""
        return tuple(cluster.name for cluster in self.clusters if cluster.runs_jobs)

    @cached_property
    def worker_names(self) -> tuple[str, ...]:
        """The workers, in the order in which the dispatcher prefers them."""
        declared_names = tuple(cluster.name for cluster in self.clusters if cluster.role == "worker")
        if self.multi_kueue is None or self.multi_kueue.workers is None:
            return declared_names
        return tuple(name for name in self.multi_kueue.workers if name in declared_names)

    @cached_property
    def _clusters(self) -> Mapping[str, ClusterEntry]:
        return {cluster.name: cluster for cluster in reversed(self.clusters)}

    @cached_property
    def _flavors(self) -> Mapping[str, FlavorEntry]:
        return {flavor.name: flavor for flavor in reversed(self.flavors)}

    @cached_property
    def _queues(self) -> Mapping[str, ClusterQueueEntry]:
        return {queue.name: queue for queue in reversed(self.cluster_queues)}

    @cached_property
    def _checks(self) -> Mapping[str, AdmissionCheckEntry]:
        return {check.name: check for check in reversed(self.admission_checks)}

    @cached_property
    def _cohorts(self) -> Mapping[str, CohortEntry]:
        return {cohort.name: cohort for cohort in reversed(self.cohorts)}

    @cached_property
    def team_of(self) -> Mapping[str, str]:
        """The team of each namespace that has one."""
        return {namespace: team.name for namespace, team in self._team_of.items()}

    @cached_property
    def _team_of(self) -> Mapping[str, TeamEntry]:
        return {namespace: team for team in self.teams for namespace in team.namespace_names}

    def team_in(self, namespace: str) -> TeamEntry | None:
        """The entry of the team whose namespace it is, if it is of one."""
        return self._team_of.get(namespace)

    @cached_property
    def namespaces(self) -> Mapping[str, Mapping[str, str]]:
        """The labels of each namespace that jobs may come from: the teams', then those of other LocalQueues.

        Of `default`, which is there without the fleet, they are those that the file gives it.
        """
        labels_by_namespace = {
            name: namespace_labels(team.name, team.pod_security) for name, team in self._team_of.items()
        }
        for queue in self.local_queues:
            labels_by_namespace.setdefault(queue.namespace, {} if queue.namespace == "default" else namespace_labels())
        return {name: {**labels, **self.namespace_labels.get(name, {})} for name, labels in labels_by_namespace.items()}

    def allowed_regions(self, team: TeamEntry) -> Sequence[str]:
        """The regions in which jobs of the team may run, those of groups too; none: any."""
        section = self.admission_controller
        return section.regions(team.allowed_regions) if section is not None else team.allowed_regions

    def cluster(self, name: str) -> ClusterEntry:
        """The cluster of that name. Raises KeyError."""
        return self._clusters[name]

    def project_of(self, cluster: str) -> str:
        """The project that a cluster is in. Raises KeyError."""
        return self.cluster(cluster).project or self.project

    def kueue_on(self, cluster: str) -> KueueInstallation:
        """How Kueue is installed on a cluster, with the version there. Raises KeyError."""
        version = self.cluster(cluster).kueue.version
        return self.kueue.model_copy(update={"version": version}) if version else self.kueue

    def flavor(self, name: str) -> FlavorEntry | None:
        """The flavor of that name, if there is one."""
        return self._flavors.get(name)

    def protects(self, cluster: str, pool: str | None = None) -> bool:
        """Whether a cluster is protected from deletion: as it says itself, else as the fleet says. Raises KeyError.

        With the name of a `pool`, whether that pool on it is: as the pool says itself, else as its cluster is.
        """
        entry = self.node_pool(pool) if pool is not None else None
        if entry is not None and entry.deletion_protection is not None:
            return entry.deletion_protection
        own = self.cluster(cluster).deletion_protection
        return self.deletion_protection if own is None else own

    def queue(self, name: str) -> ClusterQueueEntry | None:
        """The queue of that name, if there is one."""
        return self._queues.get(name)

    def check(self, name: str) -> AdmissionCheckEntry | None:
        """The admission check of that name, if there is one."""
        return self._checks.get(name)

    def cohort(self, name: str) -> CohortEntry | None:
        """The cohort of that name, if there is one."""
        return self._cohorts.get(name)

    @property
    def cohort_parents(self) -> dict[str, str | None]:
        """The cohort above each declared cohort."""
        return {cohort.name: cohort.parent_name for cohort in self.cohorts}

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
    def _node_pools(self) -> Mapping[str, NodePoolEntry]:
        return {pool.name: pool for pool in reversed(self.node_pools)}

    def node_pool(self, name: str) -> NodePoolEntry | None:
        """The node pool of that name, if there is one."""
        return self._node_pools.get(name)

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
