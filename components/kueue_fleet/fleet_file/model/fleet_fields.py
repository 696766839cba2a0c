"""Which fields a fleet file has, and which of its entries has a name."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Annotated

from pydantic import Field

from kueue_admission.api.manifests import namespace_labels
from kueue_admission.kernel.base import DnsLabel, Flag, LabelKey, LabelValue, SpecModel
from kueue_admission.kernel.described import AlsoCalled, FormerName, Hint
from kueue_admission.kernel.given import ListOf
from kueue_fleet.fleet_file.model.capacity import CommitmentEntry, FutureReservationEntry, ReservationEntry
from kueue_fleet.fleet_file.model.clusters import ClusterEntry, MultiKueueArgs
from kueue_fleet.fleet_file.model.dra_driver import NvidiaDraDriver
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
from kueue_fleet.fleet_file.model.fleet_page import FleetPage
from kueue_fleet.fleet_file.model.gcp_names import GcpLabelKey, GcpLabelValue, ProjectId, ResourceName
from kueue_fleet.fleet_file.model.installations import JobSetInstallation, KueueInstallation
from kueue_fleet.fleet_file.model.network import NetworkArgs
from kueue_fleet.fleet_file.model.node_pools import NodePoolEntry
from kueue_fleet.fleet_file.model.observability import NO_OBSERVABILITY, Observability
from kueue_fleet.fleet_file.model.operators import Operators
from kueue_fleet.fleet_file.model.planning import PlanLimits
from kueue_fleet.fleet_file.model.storage import StorageEntry
from kueue_fleet.fleet_file.model.teams import TeamEntry
from kueue_fleet.settings.dispatch import AdmissionControllerArgs


class FleetFields(SpecModel):
    """The fields of a fleet file, and its entries by their names."""

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
    network: Annotated[NetworkArgs, AlsoCalled("subnet", "subnetwork", "vpc")] = Field(default_factory=NetworkArgs)
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
    node_pools: Annotated[ListOf[NodePoolEntry], AlsoCalled("pools", "nodeConfig")] = ()
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
    controller: Annotated[AdmissionControllerArgs | None, FormerName("admissionController")] = None
    """The fleet's controller, on the manager or standalone cluster; absent: not deployed."""
    fleet_page: FleetPage | None = None
    """A page where members of teams see their jobs, read only, each with their own rights; absent: not deployed."""
    observability: Observability = NO_OBSERVABILITY
    """Metrics, dashboards and alerts; absent: none."""
    plan: PlanLimits | None = None
    """What `kueue-fleet plan` may change; no resource depends on it."""

    @classmethod
    def not_here(cls, name: str) -> tuple[str, str] | None:
        """A name for the whole."""
        return ("is no field of a fleet, but the fleet", "write its fields here") if name in ("fleet", "spec") else None

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
        if self.controller is None:
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
        section = self.controller
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

    def topology_of(self, flavor: FlavorEntry) -> TopologyEntry | None:
        """The topology that a flavor names, if there is one."""
        return next((entry for entry in self.topologies if entry.name == flavor.topology_name), None)

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

    @cached_property
    def _node_pools(self) -> Mapping[str, NodePoolEntry]:
        return {pool.name: pool for pool in reversed(self.node_pools)}

    def node_pool(self, name: str) -> NodePoolEntry | None:
        """The node pool of that name, if there is one."""
        return self._node_pools.get(name)
