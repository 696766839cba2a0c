"""The scratch on which decisions are made: the cohort trees with their usage, flavors, topologies, configuration.

One `Cache` belongs to one cluster. It is mutable and private to its driver; `Snapshot` is the immutable form.
Functions that decide may change usage while they work, and put it back.
Source: kueue@v0.19.2 pkg/cache/scheduler/cache.go.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from kueue_admission.api.cohort_tree import is_below_cycle
from kueue_admission.decide.errors import InvariantError
from kueue_admission.decide.flavors.eligibility import check_flavor, check_topology
from kueue_admission.decide.flavors.evidence import Evidence, FlavorNotFound
from kueue_admission.decide.model import (
    AdmissionCheck,
    ClusterQueue,
    Cohort,
    Configuration,
    Objects,
    ResourceFlavor,
    Topology,
    Workload,
)
from kueue_admission.decide.queue.cluster_queue import GroupLayout, QueueNode
from kueue_admission.decide.queue.usage_ledger import UsageLedger
from kueue_admission.decide.quota.cohort_tree import FlavorResources, TreeNode, add_all, remove_all, seal
from kueue_admission.decide.reasons import InactiveReason
from kueue_admission.decide.workload.state import (
    Interner,
    PodSetRequests,
    WorkloadInfo,
    refresh_order,
    refresh_requests,
    refresh_shape,
)

if TYPE_CHECKING:
    from kueue_admission.decide.flavors.assignment import Assignment
    from kueue_admission.decide.scheduler.entry import Entry
    from kueue_admission.decide.topology.domains import TopologyState
    from kueue_admission.decide.topology.requests import PlacementRequest

TopologyRequests = dict[str, list["PlacementRequest"]]
"""Pod sets to place, by flavor."""


class NoPlaces:
    """Where pods go in a cluster without topologies, where only quota counts: every pod fits.

    `placement` answers for a cluster with topologies.
    """

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


class Cache:
    """Trees, flavors and configuration of one cluster.

    `cohorts` has every cohort, also those that only exist by being named. `topologies` has the free capacity of each
    topology-aware flavor, which `places` reads, `ledger` the usage of LocalQueues under admission fair sharing.
    `families` has the variants of each workload that waits for all flavors at once, by flavor.
    """

    def __init__(self, objects: Objects, places: NoPlaces) -> None:
        self.places = places
        self.configuration: Configuration = objects.configuration
        self.gates = objects.configuration.gates
        self.ids = FlavorResources()
        self.placements = Interner()
        self.shapes = Interner()
        self.queues: dict[str, QueueNode] = {}
        self.cohorts: dict[str, TreeNode] = {}
        self.cohort_specs: dict[str, Cohort] = {}
        self.flavors: dict[str, ResourceFlavor] = {}
        self.checks: dict[str, AdmissionCheck] = {}
        self.topology_specs: dict[str, Topology] = {}
        self.topologies: dict[str, TopologyState] = {}
        self.namespaces: dict[str, dict[str, str]] = {}
        self.families: dict[str, dict[str, WorkloadInfo]] = {}
        self.ledger: UsageLedger | None = None
        self._eligible: dict[tuple[int, str, frozenset[str] | None], Evidence | None] = {}
        self._namespace_answers: dict[tuple[str, str], bool] = {}
        self.load(objects)

    def load(self, objects: Objects) -> None:
        """Take over a new set of objects; workloads that hold quota stay where they are."""
        old = self.queues
        self.configuration = objects.configuration
        self.gates = objects.configuration.gates
        self.flavors = {flavor.name: flavor for flavor in objects.flavors}
        self.checks = {check.name: check for check in objects.checks}
        self.topology_specs = {topology.name: topology for topology in objects.topologies}
        self.namespaces = {name: dict(labels) for name, labels in objects.namespaces}
        self.cohort_specs = {cohort.name: cohort for cohort in objects.cohorts}
        self._eligible.clear()
        self._namespace_answers.clear()
        self.topologies = self.places.states(objects)
        self.queues = {}
        for spec in objects.cluster_queues:
            node = old.get(spec.name) or QueueNode(spec)
            node.parent = None
            node.configure(spec, self.ids, fair_sharing=self.configuration.fair_sharing is not None)
            node.generation += 1
            self.queues[spec.name] = node
        self._link(objects.cluster_queues)
        self._load_ledger(objects)
        if self.topologies:
            for node in self.queues.values():
                for info in node.workloads.values():
                    self.use_topology(info, 1)

    def _load_ledger(self, objects: Objects) -> None:
        settings = objects.configuration.admission_fair_sharing
        if settings is None:
            self.ledger = None
        else:
            self.ledger = self.ledger or UsageLedger(settings, self.gates.behaviours)
            self.ledger.configure(settings, objects.local_queues)

    def _ledger_of(self, info: WorkloadInfo) -> UsageLedger | None:
        """Where the usage of the workload's LocalQueue is kept; None if nothing depends on it."""
        queue = self.queues.get(info.cluster_queue) if self.ledger is not None else None
        return self.ledger if queue is not None and queue.spec.usage_based else None

    def charge(self, info: WorkloadInfo) -> None:
        """A pending workload gets a reservation, or a reserved one appears: its LocalQueue pays for it in advance."""
        ledger = self._ledger_of(info)
        if ledger is not None:
            group_of = self.queues[info.cluster_queue].group_of
            ledger.charge(info, group_of if self.configuration.ignore_undeclared_resources else None)

    def drop_penalty(self, info: WorkloadInfo) -> None:
        """What was paid in advance for a workload that is gone or deactivated comes back."""
        if self.ledger is not None:
            self.ledger.drop_penalty(info)

    def settle(self, info: WorkloadInfo) -> None:
        """A workload with a reservation was admitted."""
        ledger = self._ledger_of(info)
        if ledger is not None:
            ledger.count(info)
            ledger.settle(info)

    @property
    def by_usage(self) -> Callable[[WorkloadInfo], float] | None:
        """The usage of a workload's LocalQueue, 0.0 where it does not matter; None: nowhere."""
        return None if self.ledger is None else self._usage

    def _usage(self, info: WorkloadInfo) -> float:
        ledger = self._ledger_of(info)
        return 0.0 if ledger is None else ledger.usage(info.workload.local_queue)

    def _link(self, specs: Iterable[ClusterQueue]) -> None:
        self.cohorts = {}
        for cohort in self.cohort_specs.values():
            node = self._cohort(cohort.name)
            node.fair_weight = cohort.fair_weight
            node.set_quotas(cohort.groups, self.ids)
        for cohort in self.cohort_specs.values():
            if cohort.parent:
                parent = self._cohort(cohort.parent)
                self.cohorts[cohort.name].parent = parent
                parent.members.append(self.cohorts[cohort.name])
        for spec in specs:
            node = self.queues[spec.name]
            node.resolve(self.flavors, self.checks, self.topology_specs)
            if spec.cohort:
                node.parent = self._cohort(spec.cohort)
                node.parent.members.append(node)
        parents = {cohort.name: cohort.parent for cohort in self.cohort_specs.values()}
        self._seal_trees({name for name in self.cohorts if is_below_cycle(name, parents)})

    def _seal_trees(self, cyclic: set[str]) -> None:
        """Leave out what is inactive or in a cycle, and compute quotas and usage of every tree."""
        for node in self.queues.values():
            if node.parent is not None and node.parent.name in cyclic:
                node.inactive = ((InactiveReason.COHORT_CYCLE, "its cohort tree has a cycle"), *node.inactive)
                node.active = False
                node.parent = None
        for name, cohort_node in self.cohorts.items():
            if name not in cyclic:
                cohort_node.queues = [m for m in cohort_node.members if isinstance(m, QueueNode) and m.active]
                cohort_node.cohorts = [m for m in cohort_node.members if not m.is_queue]
        for queue in self.queues.values():
            if queue.parent is None:
                seal(queue, self.ids)
        for name, cohort_node in self.cohorts.items():
            if name not in cyclic and cohort_node.parent is None:
                seal(cohort_node, self.ids)

    def _cohort(self, name: str) -> TreeNode:
        node = self.cohorts.get(name)
        if node is None:
            node = self.cohorts[name] = TreeNode(name)
        return node

    def info(self, workload: Workload) -> WorkloadInfo:
        """Scratch for a workload, with its requests, usage, order and shape computed."""
        info = WorkloadInfo(workload)
        self.refresh(info)
        return info

    def refresh(self, info: WorkloadInfo) -> None:
        """Recompute what `info` derives from its workload and status."""
        refresh_order(info, self.gates, self.configuration.wait_for_pods_ready)
        refresh_requests(info, self.ids, self.gates, self.placements)
        if info.admission is None:
            refresh_shape(info, self.gates, self.shapes)

    def add(self, info: WorkloadInfo) -> bool:
        """Count a workload's reservation; False when its ClusterQueue does not exist, or its variants count instead."""
        queue = self.queues.get(info.cluster_queue)
        if queue is None or self.is_parent(info):
            return False
        if info.key in queue.workloads:
            raise InvariantError(f"workload {info.key} is already counted in ClusterQueue {queue.name}")
        queue.workloads[info.key] = info
        add_all(queue, info.usage)
        self.use_topology(info, 1)
        if info.is_admitted and (ledger := self._ledger_of(info)) is not None:
            ledger.count(info)
        if self.configuration.wait_for_pods_ready is not None and not info.pods_ready:
            queue.not_ready.add(info.key)
        return True

    def remove(self, info: WorkloadInfo) -> bool:
        """Stop counting a workload; False when it was not counted."""
        queue = self.queues.get(info.cluster_queue)
        if queue is None or queue.workloads.pop(info.key, None) is None:
            return False
        remove_all(queue, info.usage)
        self.use_topology(info, -1)
        if self.ledger is not None:
            self.ledger.uncount(info)
        queue.not_ready.discard(info.key)
        queue.generation += 1
        return True

    def replaced(self, info: WorkloadInfo) -> WorkloadInfo | None:
        """The slice of an elastic job that a larger one takes the place of, while it is counted in the same queue."""
        if not info.workload.replaces or info.is_reserved or not self.gates.elastic_jobs_via_workload_slices:
            return None
        before = self.queues[info.cluster_queue].workloads.get(info.workload.replaces)
        return before if before is not None and before.workload.namespace == info.workload.namespace else None

    def is_parent(self, info: WorkloadInfo) -> bool:
        """Whether variants wait and hold quota in its place."""
        queue = self.queues.get(info.cluster_queue)
        waits_for_all = queue is not None and queue.spec.migration is not None and self.gates.concurrent_admission
        return waits_for_all and not info.workload.parent

    def admitted_variants(self, info: WorkloadInfo) -> tuple[WorkloadInfo | None, WorkloadInfo | None]:
        """The admitted variants of the same job on a more, and on a less preferred flavor of the queue."""
        if not info.workload.parent or not self.gates.concurrent_admission:
            return None, None
        family, queue = self.families.get(info.workload.parent, {}), self.queues[info.cluster_queue]
        if not queue.groups:
            return None, None
        flavors = queue.groups[0].flavors
        own = next((index for index, name in enumerate(flavors) if family.get(name) is info), len(flavors))
        variants = [
            other
            if (other := family.get(name)) is not None and other.is_admitted and other.key in queue.workloads
            else None
            for name in flavors
        ]
        return next(filter(None, variants[:own]), None), next(filter(None, variants[own + 1 :]), None)

    def use_topology(self, info: WorkloadInfo, sign: int, *, trial: bool = False) -> None:
        """Add (`sign` 1) or subtract (-1) what the workload uses of nodes.

        In a trial, nodes of flavors that its ClusterQueue does not have any more stay in use.
        Source: kueue@v0.19.2 pkg/cache/scheduler/clusterqueue_snapshot.go (updateTASUsage).
        """
        if not self.topologies:
            return
        counted_flavors = self.queues[info.cluster_queue].tas_flavors if trial else self.topologies
        for requests in info.pod_sets:
            if requests.topology is None:
                continue
            for flavor in set((requests.flavors or {}).values()):
                state = self.topologies.get(flavor)
                if state is not None and flavor in counted_flavors:
                    state.use(requests.topology, requests.pod_set.node_requests, sign)

    @contextmanager
    def without(
        self, infos: Iterable[WorkloadInfo], *, preemptable: bool = True, topology: bool = True
    ) -> Iterator[None]:
        """Without what these workloads use, until the end of the block.

        They stay listed in their queues, so that they can be preempted; not with `preemptable` false. With `topology`
        false they keep their nodes.
        """
        gone = list(infos)
        for info in gone:
            queue = self.queues[info.cluster_queue]
            if not preemptable:
                del queue.workloads[info.key]
            remove_all(queue, info.usage)
            if topology:
                self.use_topology(info, -1, trial=True)
        try:
            yield
        finally:
            for info in reversed(gone):
                queue = self.queues[info.cluster_queue]
                if not preemptable:
                    queue.workloads[info.key] = info
                add_all(queue, info.usage)
                if topology:
                    self.use_topology(info, 1, trial=True)

    def namespace_matches(self, queue: str, namespace: str) -> bool:
        """Whether the namespace selector of the ClusterQueue matches the namespace."""
        key = (queue, namespace)
        is_match = self._namespace_answers.get(key)
        if is_match is None:
            selector = self.queues[queue].spec.namespace_selector
            is_match = selector is not None and selector.matches(self.namespaces.get(namespace, {}))
            self._namespace_answers[key] = is_match
        return is_match

    @property
    def blocks_admission(self) -> bool:
        """Whether admission waits for the pods of earlier admissions (waitForPodsReady.blockAdmission)."""
        pods_ready = self.configuration.wait_for_pods_ready
        return pods_ready is not None and pods_ready.block_admission

    def all_pods_ready(self) -> bool:
        """Whether the pods of every workload with a reservation are ready."""
        return not any(queue.not_ready for queue in self.queues.values())

    def eligibility(
        self, requests: PodSetRequests, flavor_name: str, queue: QueueNode, group: GroupLayout
    ) -> Evidence | None:
        """Why a pod set may not use a flavor; None if it may."""
        flavor = self.flavors.get(flavor_name)
        if flavor is None:
            return FlavorNotFound(flavor_name)
        if self.gates.topology_aware_scheduling and (
            flavor.topology is not None or queue.tas_only or requests.pod_set.topology is not None
        ):
            topology = self.topology_specs.get(flavor.topology or "")
            evidence = check_topology(requests.pod_set, flavor, queue, group, topology)
            if evidence is not None:
                return evidence
        keys = None if self.gates.behaviours.looks_at_own_labels_of_flavor else self._label_keys(group)
        key = (requests.placement, flavor_name, keys)
        try:
            return self._eligible[key]
        except KeyError:
            answer = self._eligible[key] = check_flavor(requests.pod_set, flavor, keys)
            return answer

    def _label_keys(self, group: GroupLayout) -> frozenset[str]:
        """The keys that any flavor of the group has as labels."""
        there = (self.flavors[name] for name in group.flavors if name in self.flavors)
        return frozenset(key for flavor in there for key, _ in flavor.node_labels)
