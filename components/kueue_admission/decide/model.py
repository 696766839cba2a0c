"""What the core decides about, as frozen plain data: queues, flavors, quotas, workloads, configuration.

`read` makes these from Kubernetes objects. Amounts are integers as in `amounts`, times are seconds on whatever
clock the caller uses. Names, defaults and meanings are Kueue's v1beta2 ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final

from kueue_admission.api.cluster_queue import (
    AdmissionCheckStrategyRule,
    ClusterQueuePreemption,
    ConcurrentAdmissionMigration,
    FlavorFungibility,
    QueueingStrategy,
    StopPolicy,
)
from kueue_admission.api.selector import LabelSelector
from kueue_admission.decide.gates import Gates
from kueue_admission.decide.pods import PodSet, ResourceRules, Taint, Toleration


class FairSharingStrategy(StrEnum):
    """Rules by which one queue may take from another under fair sharing (S2-a and S2-b of KEP-1714)."""

    LESS_THAN_OR_EQUAL_TO_FINAL_SHARE = "LessThanOrEqualToFinalShare"
    LESS_THAN_INITIAL_SHARE = "LessThanInitialShare"


class CheckState(StrEnum):
    """State of one admission check of one workload."""

    PENDING = "Pending"
    READY = "Ready"
    RETRY = "Retry"
    REJECTED = "Rejected"


@dataclass(frozen=True, slots=True)
class ResourceQuota:
    """Quota of one resource in one flavor. None: no limit."""

    nominal: int
    borrowing_limit: int | None = None
    lending_limit: int | None = None


@dataclass(frozen=True, slots=True)
class FlavorQuotas:
    """The quotas of one flavor in a resource group, by resource."""

    flavor: str
    quotas: tuple[tuple[str, ResourceQuota], ...]


@dataclass(frozen=True, slots=True)
class ResourceGroup:
    """Resources that are taken from the same flavor; `flavors` in the order in which they are tried."""

    covered_resources: tuple[str, ...]
    flavors: tuple[FlavorQuotas, ...]


@dataclass(frozen=True, slots=True)
class Cohort:
    """A node of the cohort tree. Without a Cohort object a named cohort has no quota and no limits."""

    name: str
    parent: str | None = None
    groups: tuple[ResourceGroup, ...] = ()
    fair_weight: float = 1.0


@dataclass(frozen=True, slots=True)
class ClusterQueue:
    """A ClusterQueue. `namespace_selector` None admits no namespace."""

    name: str
    cohort: str | None = None
    groups: tuple[ResourceGroup, ...] = ()
    queueing_strategy: QueueingStrategy = "BestEffortFIFO"
    namespace_selector: LabelSelector | None = field(default_factory=LabelSelector)
    preemption: ClusterQueuePreemption = field(default_factory=ClusterQueuePreemption)
    fungibility: FlavorFungibility = field(default_factory=FlavorFungibility)
    checks: tuple[AdmissionCheckStrategyRule, ...] = ()
    fair_weight: float = 1.0
    stop_policy: StopPolicy = "None"
    terminating: bool = False
    usage_based: bool = False
    """Whether its LocalQueues are ordered by their usage (admissionScope)."""
    migration: ConcurrentAdmissionMigration | None = None
    """Where a job waits for all flavors at once, what happens after one variant of it was admitted; None: it waits
    for one after the other. Without the gate ConcurrentAdmission it has no effect."""


@dataclass(frozen=True, slots=True)
class LocalQueue:
    """A LocalQueue: where a namespace submits to a ClusterQueue.

    `consumed` is what it has used by the time `sampled`, in billionths, see `queue.usage_ledger`.
    """

    namespace: str
    name: str
    cluster_queue: str
    stop_policy: StopPolicy = "None"
    fair_weight: float = 1.0
    consumed: tuple[tuple[str, int], ...] = ()
    sampled: float | None = None

    @property
    def key(self) -> str:
        """Namespace and name."""
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True, slots=True)
class ResourceFlavor:
    """A kind of node."""

    name: str
    node_labels: tuple[tuple[str, str], ...] = ()
    node_taints: tuple[Taint, ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    topology: str | None = None


@dataclass(frozen=True, slots=True)
class AdmissionCheck:
    """An AdmissionCheck object; `active` is its condition Active."""

    name: str
    controller: str
    active: bool = True


@dataclass(frozen=True, slots=True)
class Topology:
    """Node labels from the widest level (block) to the narrowest (host)."""

    name: str
    levels: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Node:
    """A node for topology-aware scheduling: what it can hold, less what pods outside Kueue use (`used`)."""

    name: str
    labels: tuple[tuple[str, str], ...] = ()
    taints: tuple[Taint, ...] = ()
    allocatable: tuple[tuple[str, int], ...] = ()
    used: tuple[tuple[str, int], ...] = ()
    ready: bool = True
    unschedulable: bool = False
    running: tuple[str, ...] = ()
    """The namespaces of pods that run there, which keep Kueue from replacing it (`topology.replacement`)."""


@dataclass(frozen=True, slots=True)
class DomainAssignment:
    """`count` pods in the topology domain named by `values`, one value per level of the assignment."""

    values: tuple[str, ...]
    count: int


@dataclass(frozen=True, slots=True)
class PodSetAssignment:
    """What was given to one pod set: a flavor and the total amount per resource, and where its pods go."""

    name: str
    count: int
    flavors: tuple[tuple[str, str], ...] = ()
    usage: tuple[tuple[str, int], ...] = ()
    topology: tuple[DomainAssignment, ...] | None = None
    topology_levels: tuple[str, ...] = ()
    delayed_topology: bool = False


@dataclass(frozen=True, slots=True)
class Admission:
    """A quota reservation: in which ClusterQueue, and what for each pod set."""

    cluster_queue: str
    pod_sets: tuple[PodSetAssignment, ...]


@dataclass(frozen=True, slots=True)
class WorkloadCheck:
    """State of one admission check of a workload, `since` its last transition."""

    name: str
    state: CheckState = CheckState.PENDING
    since: float = 0.0
    requeue_after: float | None = None
    retry_count: int = 0
    message: str = ""


@dataclass(frozen=True, slots=True)
class WorkloadStatus:
    """Where a workload stands when the core first sees it. The default is: created, nothing decided."""

    admission: Admission | None = None
    reserved_at: float | None = None
    admitted_at: float | None = None
    evicted_at: float | None = None
    evicted_reason: str | None = None
    evicted_message: str = ""
    preempted_reason: str | None = None
    checks: tuple[WorkloadCheck, ...] = ()
    requeued: bool | None = None
    requeued_reason: str | None = None
    requeue_at: float | None = None
    requeue_count: int = 0
    pods_ready: bool = False
    pods_ready_since: float | None = None
    waits_for_recovery: bool = False
    finished: bool = False
    past_execution: float = 0.0
    open_gates: tuple[tuple[str, float], ...] = ()
    """Preemption gates that are open, and since when."""
    gated: bool = False
    """Whether a closed preemption gate keeps it from quota, by its condition BlockedOnPreemptionGates."""
    unhealthy_nodes: tuple[str, ...] = ()
    """Nodes that failed under its pods, which are to be placed elsewhere."""
    evaluated: str | None = None
    """What Kueue wrote when a cycle left it without quota; None: no cycle has looked at it since it was queued."""


@dataclass(frozen=True, slots=True)
class Workload:
    """A workload as submitted, and its status.

    `uid` breaks ties between workloads of the same priority and time, so it must be given. `reclaimable` counts pods
    per pod set that will not be needed any more. `gated_by` is the annotation kueue.x-k8s.io/admission-gated-by,
    `allowed_flavors` kueue.x-k8s.io/workload-allowed-resource-flavors; None: all.
    """

    namespace: str
    name: str
    uid: str
    queue: str
    pod_sets: tuple[PodSet, ...]
    created: float = 0.0
    priority: int = 0
    priority_boost: int = 0
    active: bool = True
    reclaimable: tuple[tuple[str, int], ...] = ()
    max_execution_seconds: float | None = None
    gated_by: str = ""
    allowed_flavors: tuple[str, ...] | None = None
    preemption_gates: tuple[str, ...] = ()
    job_uid: str = ""
    replaces: str = ""
    """Namespace and name of the slice of the same elastic job that it takes the place of."""
    elastic: bool = False
    """Whether it is a slice of an elastic job."""
    parent: str = ""
    """Namespace and name of its parent, if it is a variant (`workload.variants`); empty: it belongs to a job."""
    owned_by_pod: bool = False
    """Whether it is that of a single Pod, which cannot move."""
    origin: str = ""
    """On a worker, the manager's label on a copy that MultiKueue made; empty: submitted here."""
    problem: str = ""
    """Why its resources are invalid (requests above limits, or against a LimitRange), in Kueue's words; empty when
    they are fine."""
    claims_problem: str = ""
    """Why Kueue does not queue it: it cannot count the devices that it claims; empty when it can."""
    status: WorkloadStatus = WorkloadStatus()

    @property
    def key(self) -> str:
        """Namespace and name."""
        return f"{self.namespace}/{self.name}"

    @property
    def local_queue(self) -> str:
        """Namespace and name of its LocalQueue."""
        return f"{self.namespace}/{self.queue}"

    def scaled_to(self, counts: Mapping[str, int]) -> Workload:
        """The same with other numbers of pods, by pod set."""
        return replace(self, pod_sets=tuple(replace(ps, count=counts.get(ps.name, ps.count)) for ps in self.pod_sets))

    @property
    def requests(self) -> tuple[tuple[str, int], ...]:
        """What all its pods ask for together, by resource."""
        totals: dict[str, int] = {}
        for pod_set in self.pod_sets:
            for resource, amount in pod_set.requests:
                totals[resource] = totals.get(resource, 0) + amount * pod_set.count
        return tuple(totals.items())


@dataclass(frozen=True, slots=True)
class WaitForPodsReady:
    """Kueue's waitForPodsReady, on by default since 0.19. Seconds; a limit of None requeues indefinitely."""

    timeout: float = 1800.0
    recovery_timeout: float | None = 1800.0
    block_admission: bool = False
    requeue_by_eviction: bool = True
    backoff_limit: int | None = None
    backoff_base: float = 60.0
    backoff_max: float = 3600.0


@dataclass(frozen=True, slots=True)
class AdmissionFairSharing:
    """Kueue's admissionFairSharing. Seconds; a half-life of 0 forgets usage at once. Weights are 1 by default."""

    half_life: float
    sampling_interval: float = 300.0
    resource_weights: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Configuration:
    """The parts of Kueue's Configuration that decide.

    `fair_sharing` None is the classical mode, `admission_fair_sharing` None: LocalQueues have no order.
    `requeue_batch` is how long Kueue collects events before it looks at parked workloads again (1 s in 0.19.2).
    """

    fair_sharing: tuple[FairSharingStrategy, ...] | None = None
    admission_fair_sharing: AdmissionFairSharing | None = None
    wait_for_pods_ready: WaitForPodsReady | None = WaitForPodsReady()
    ignore_undeclared_resources: bool = False
    requeue_batch: float = 1.0
    resource_rules: ResourceRules = field(default_factory=ResourceRules)
    gates: Gates = field(default_factory=Gates)


DEFAULT_STRATEGIES: Final = (
    FairSharingStrategy.LESS_THAN_OR_EQUAL_TO_FINAL_SHARE,
    FairSharingStrategy.LESS_THAN_INITIAL_SHARE,
)
"""Preemption strategies of fair sharing, where none are named."""


@dataclass(frozen=True, slots=True)
class Objects:
    """Everything that is configured on one cluster. Namespaces are their labels; one that is not listed has none."""

    cluster_queues: tuple[ClusterQueue, ...] = ()
    local_queues: tuple[LocalQueue, ...] = ()
    cohorts: tuple[Cohort, ...] = ()
    flavors: tuple[ResourceFlavor, ...] = ()
    checks: tuple[AdmissionCheck, ...] = ()
    topologies: tuple[Topology, ...] = ()
    nodes: tuple[Node, ...] = ()
    namespaces: tuple[tuple[str, tuple[tuple[str, str], ...]], ...] = ()
    configuration: Configuration = field(default_factory=Configuration)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One cluster at one moment: its objects, and every workload with its status."""

    objects: Objects
    workloads: tuple[Workload, ...]
    now: float = 0.0
