"""A workload while the core works on it: its requests in total, its place in the order, and its status.

`WorkloadInfo` is mutable scratch owned by one `cache.Cache`; `Workload` stays as submitted.
Source: kueue@v0.19.2 pkg/workload/workload.go.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from kueue_admission.decide.amounts import times
from kueue_admission.decide.gates import Gates
from kueue_admission.decide.model import (
    CheckState,
    DomainAssignment,
    PodSetAssignment,
    WaitForPodsReady,
    Workload,
    WorkloadCheck,
    WorkloadStatus,
)
from kueue_admission.decide.pods import PodSet, TopologyRequest
from kueue_admission.decide.quota.cohort_tree import FlavorResources, Usage
from kueue_admission.decide.reasons import EvictionReason
from kueue_admission.decide.workload.transitions import PastStep, Phase, Step, Story, take_step

if TYPE_CHECKING:
    from kueue_admission.decide.workload.scan_progress import ScanProgress


class PodSetRequests:
    """What a pod set asks for in total, by resource; and once reserved, from which flavors."""

    __slots__ = ("count", "flavors", "name", "placement", "pod_set", "requests", "topology", "topology_levels")

    def __init__(
        self,
        pod_set: PodSet,
        count: int,
        requests: tuple[tuple[str, int], ...],
        placement: int,
        flavors: dict[str, str] | None = None,
        topology: tuple[DomainAssignment, ...] | None = None,
        topology_levels: tuple[str, ...] = (),
    ) -> None:
        self.pod_set = pod_set
        self.name = pod_set.name
        self.count = count
        self.requests = requests
        self.placement = placement
        self.flavors = flavors
        self.topology = topology
        self.topology_levels = topology_levels

    def scaled_to(self, count: int) -> PodSetRequests:
        """The same pod set with another number of pods; a placed one keeps its number."""
        if self.topology is not None or self.count in (0, count):
            return self
        scaled_requests = tuple((name, times(amount // self.count, count)) for name, amount in self.requests)
        return PodSetRequests(self.pod_set, count, scaled_requests, self.placement, self.flavors)


class Interner:
    """Small integers for what is compared often: a workload's scheduling shape, a pod set's placement wishes."""

    __slots__ = ("_ids",)

    def __init__(self) -> None:
        self._ids: dict[object, int] = {}

    def id(self, value: object) -> int:
        """The number of `value`; a new one if it was not seen before."""
        return self._ids.setdefault(value, len(self._ids))


class WorkloadInfo:
    """A workload and where it stands.

    `usage` is what it holds of the quota (empty without a reservation), `frs` the flavor-resources it was given.
    `considered`: a cycle has looked at it; `gated`: one found that a closed gate keeps it from preempting.
    `order` sorts pending workloads of a queue, `victim_order` candidates for preemption. `shape` is equal for workloads
    that are the same to the scheduler; -1 when equivalence is not tracked. `story` has its last steps, for messages.
    `unhealthy_nodes` failed under its pods; `lost_nodes` are those that the scheduler is to replace, see `replacement`.
    """

    __slots__ = (
        "admission",
        "admitted_at",
        "checks",
        "cluster_queue",
        "considered",
        "evicted_at",
        "evicted_message",
        "evicted_reason",
        "finished",
        "frs",
        "gated",
        "key",
        "last_progress",
        "lost_nodes",
        "nomination",
        "open_gates",
        "order",
        "past_execution",
        "pod_sets",
        "pods_ready",
        "pods_ready_since",
        "preempted_reason",
        "priority",
        "queue_time",
        "requeue_at",
        "requeue_count",
        "requeued",
        "requeued_reason",
        "reserved_at",
        "shape",
        "story",
        "uid",
        "unhealthy_nodes",
        "usage",
        "victim_order",
        "waits_for_recovery",
        "workload",
    )

    def __init__(self, workload: Workload) -> None:
        status = workload.status
        self.workload = workload
        self.key = workload.key
        self.uid = workload.uid
        self.priority = workload.priority
        self.pod_sets: list[PodSetRequests] = []
        self.shape = -1
        self.queue_time = workload.created
        self.order: tuple[int, float, str] = (-self.priority, self.queue_time, self.uid)
        self.victim_order: tuple[bool, int, float, str] = (True, self.priority, 0.0, self.uid)
        self.cluster_queue = ""
        self.usage: Usage = ()
        self.frs: frozenset[int] = frozenset()
        self.last_progress: ScanProgress | None = None
        self.nomination: dict[str, dict[str, str]] | None = None
        self.admission = status.admission
        self.reserved_at = status.reserved_at
        self.admitted_at = status.admitted_at
        self.evicted_at = status.evicted_at
        self.evicted_reason = status.evicted_reason
        self.evicted_message = status.evicted_message
        self.preempted_reason = status.preempted_reason
        self.checks: dict[str, WorkloadCheck] = {check.name: check for check in status.checks}
        self.requeued = status.requeued
        self.requeued_reason = status.requeued_reason
        self.requeue_at = status.requeue_at
        self.requeue_count = status.requeue_count
        self.pods_ready = status.pods_ready
        self.pods_ready_since = status.pods_ready_since
        self.waits_for_recovery = status.waits_for_recovery
        self.past_execution = status.past_execution
        self.finished = status.finished
        self.open_gates = dict(status.open_gates)
        self.gated = status.gated
        self.considered = status.reserved_at is not None or status.evaluated is not None or status.requeued is not None
        self.unhealthy_nodes = self.lost_nodes = status.unhealthy_nodes
        self.story: Story = ()

    def __repr__(self) -> str:
        return f"<WorkloadInfo {self.key}>"

    @property
    def phase(self) -> Phase:
        """Where it is in its lifecycle (`transitions.TRANSITIONS`)."""
        if self.finished:
            return Phase.FINISHED
        if self.reserved_at is None:
            return Phase.PENDING
        if self.evicted_at is not None:
            return Phase.EVICTED
        return Phase.QUOTA_RESERVED if self.admitted_at is None else Phase.ADMITTED

    def submitted(self, now: float) -> None:
        """Its story begins."""
        self.story = (PastStep(now, "submitted", self.phase),)

    def take(self, step: Step, now: float, why: str = "") -> None:
        """Note a step that it takes now.

        Raises:
            IllegalTransitionError: its lifecycle does not have this step in its phase.
        """
        self.story = take_step(self.key, self.phase, step, now, why, self.story)

    @property
    def is_reserved(self) -> bool:
        """Whether it holds quota."""
        return self.reserved_at is not None

    @property
    def is_admitted(self) -> bool:
        """Whether its pods may run."""
        return self.admitted_at is not None

    @property
    def is_evicted(self) -> bool:
        """Whether its eviction was decided and is not yet followed by a new reservation."""
        return self.evicted_at is not None

    @property
    def has_lost_places(self) -> bool:
        """Whether it is admitted and pods of it are to be placed elsewhere, because their node failed."""
        if not self.lost_nodes or not self.is_admitted or self.admission is None:
            return False
        domains = (domain for ps in self.admission.pod_sets for domain in ps.topology or ())
        return any(domain.values[-1] in self.lost_nodes for domain in domains)

    @property
    def can_be_partially_admitted(self) -> bool:
        """Whether some pod set may start with fewer pods."""
        return any(ps.min_count is not None and ps.count > ps.min_count for ps in self.workload.pod_sets)

    @property
    def has_closed_gate(self) -> bool:
        """Whether a preemption gate keeps it from preempting."""
        return any(gate not in self.open_gates for gate in self.workload.preemption_gates)

    def has_check(self, state: CheckState) -> bool:
        """Whether one of its checks is in `state`."""
        for check in self.checks.values():  # noqa: SIM110 - asked for every event and head; a generator takes longer
            if check.state is state:
                return True
        return False

    def backoff_expired(self, now: float) -> bool:
        """Whether nothing keeps it from being queued (clusterqueue backoffWaitingTimeExpired)."""
        return self.requeued is not False and (self.requeue_at is None or now >= self.requeue_at)

    def is_admissible(self, gates: Gates) -> bool:
        """Whether it belongs in a queue at all."""
        return (
            not (gates.admission_gated_by and self.workload.gated_by)
            and not self.finished
            and self.workload.active
            and not self.is_reserved
        )

    def status(self) -> WorkloadStatus:
        """The present status as plain data."""
        return WorkloadStatus(
            admission=self.admission,
            reserved_at=self.reserved_at,
            admitted_at=self.admitted_at,
            evicted_at=self.evicted_at,
            evicted_reason=self.evicted_reason,
            evicted_message=self.evicted_message,
            preempted_reason=self.preempted_reason,
            checks=tuple(self.checks[name] for name in sorted(self.checks)),
            requeued=self.requeued,
            requeued_reason=self.requeued_reason,
            requeue_at=self.requeue_at,
            requeue_count=self.requeue_count,
            pods_ready=self.pods_ready,
            pods_ready_since=self.pods_ready_since,
            waits_for_recovery=self.waits_for_recovery,
            finished=self.finished,
            past_execution=self.past_execution,
            open_gates=tuple(sorted(self.open_gates.items())),
            gated=self.gated,
            unhealthy_nodes=self.unhealthy_nodes,
        )

    def as_workload(self) -> Workload:
        """The workload as submitted, with its present status."""
        return replace(self.workload, status=self.status())


def refresh_order(info: WorkloadInfo, gates: Gates, pods_ready: WaitForPodsReady | None) -> None:
    """Recompute the sort keys after a change of priority, reservation or eviction.

    A workload evicted by an admission check, or by the PodsReady timeout, queues as if it were created then.
    """
    info.priority = info.workload.priority + (info.workload.priority_boost if gates.priority_boost else 0)
    info.queue_time = info.workload.created
    if info.evicted_at is not None:
        by_timeout = info.evicted_reason == EvictionReason.PODS_READY_TIMEOUT
        if info.evicted_reason == EvictionReason.ADMISSION_CHECK or (
            by_timeout and (pods_ready is None or pods_ready.requeue_by_eviction)
        ):
            info.queue_time = info.evicted_at
        elif not gates.priority_sorting_within_cohort and info.preempted_reason == "InCohortReclaimWhileBorrowing":
            info.queue_time = info.evicted_at + 0.001
    info.order = (-info.priority, info.queue_time, info.uid)
    reservation_time = info.reserved_at if info.reserved_at is not None else float("inf")
    info.victim_order = (not info.is_evicted, info.priority, -reservation_time, info.uid)


def refresh_requests(info: WorkloadInfo, ids: FlavorResources, gates: Gates, placements: Interner) -> None:
    """Recompute total requests, usage and flavor-resources from the pod sets and the admission."""
    workload = info.workload
    count_left = _counts_after_reclaim(workload, gates)
    if info.admission is None:
        info.pod_sets = [_from_pod_set(ps, count_left[ps.name], placements) for ps in workload.pod_sets]
        info.usage, info.frs = (), frozenset()
        return
    info.cluster_queue = info.admission.cluster_queue
    by_name = {ps.name: ps for ps in workload.pod_sets}
    info.pod_sets = [
        _from_assignment(
            psa, by_name.get(psa.name) or PodSet(psa.name), count_left.get(psa.name, psa.count), placements
        )
        for psa in info.admission.pod_sets
    ]
    usage: dict[int, int] = {}
    frs: set[int] = set()
    for requests in info.pod_sets:
        usage_ids = {resource: ids.id(flavor, resource) for resource, flavor in (requests.flavors or {}).items()}
        frs.update(usage_ids.values())
        for resource, amount in requests.requests:
            if resource in usage_ids:
                fr = usage_ids[resource]
                usage[fr] = usage.get(fr, 0) + amount
    info.usage = tuple(usage.items())
    info.frs = frozenset(frs)


def refresh_shape(info: WorkloadInfo, gates: Gates, shapes: Interner) -> None:
    """Recompute the scheduling shape (kueue computeSchedulingHash)."""
    if not gates.scheduling_equivalence_hashing:
        info.shape = -1
        return
    parts = tuple(
        (
            requests.pod_set.name,
            requests.pod_set.shape,
            requests.placement,
            requests.count,
            requests.requests,
            requests.pod_set.min_count,
            requests.pod_set.topology,
        )
        for requests in info.pod_sets
    )
    allowed_flavors = info.workload.allowed_flavors if gates.concurrent_admission else None
    info.shape = shapes.id((info.priority, parts, allowed_flavors))


def _counts_after_reclaim(workload: Workload, gates: Gates) -> dict[str, int]:
    counts = {ps.name: ps.count for ps in workload.pod_sets}
    if gates.reclaimable_pods:
        for name, count in workload.reclaimable:
            if name in counts:
                counts[name] -= min(count, counts[name])
    return counts


def placement_key(pod_set: PodSet) -> tuple[object, ...]:
    """What decides which flavors a pod set may use, apart from quota."""
    topology: TopologyRequest | None = pod_set.topology
    return (pod_set.node_selector, pod_set.affinity, pod_set.tolerations, topology, pod_set.node_requests)


def _from_pod_set(pod_set: PodSet, count: int, placements: Interner) -> PodSetRequests:
    requests = tuple((name, times(max(amount, 0), count)) for name, amount in pod_set.requests)
    return PodSetRequests(pod_set, count, requests, placements.id(placement_key(pod_set)))


def _from_assignment(psa: PodSetAssignment, pod_set: PodSet, count_left: int, placements: Interner) -> PodSetRequests:
    requests, count = psa.usage, psa.count
    if count_left < count:
        requests = tuple((name, times(amount // count, count_left)) for name, amount in requests)
        count = count_left
    return PodSetRequests(
        pod_set,
        count,
        requests,
        placements.id(placement_key(pod_set)),
        dict(psa.flavors),
        psa.topology,
        psa.topology_levels,
    )
