"""Topology-aware scheduling in an assignment: which pod sets are to be placed, where, and whether they still fit there.

Source: kueue@v0.19.2 pkg/scheduler/flavorassigner/{flavorassigner,tas_flavorassigner}.go, pkg/scheduler/scheduler.go.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

from kueue_admission.decide.flavors.assignment import Assignment, Mode, PodSetResult
from kueue_admission.decide.flavors.eligibility import is_topology_implied, is_topology_requested
from kueue_admission.decide.flavors.evidence import TopologyPlacement
from kueue_admission.decide.model import DomainAssignment, Objects
from kueue_admission.decide.reasons import QuotaReservedReason
from kueue_admission.decide.scheduler.cache import NoPlaces, TopologyRequests
from kueue_admission.decide.topology.counts import Usage
from kueue_admission.decide.topology.domains import Domains, TopologyState
from kueue_admission.decide.topology.groups import place
from kueue_admission.decide.topology.replacement import replace_node
from kueue_admission.decide.topology.requests import Failure, PlacementRequest
from kueue_admission.decide.workload.state import WorkloadInfo

if TYPE_CHECKING:
    from kueue_admission.decide.queue.cluster_queue import QueueNode
    from kueue_admission.decide.scheduler.cache import Cache
    from kueue_admission.decide.scheduler.entry import Entry

NO_FLAVOR = "no TAS flavor assigned"
"""What Kueue says where no flavor has the topology."""
NO_CACHE = "workload requires Topology, but there is no TAS cache information"
"""What Kueue says where it knows no nodes of the topology."""


def _places_of(replaced: WorkloadInfo | None) -> dict[str, Domains]:
    """By pod set: where the pods are of the slice that is replaced."""
    if replaced is None or replaced.admission is None:
        return {}
    return {
        assignment.name: assignment.topology
        for assignment in replaced.admission.pod_sets
        if assignment.topology is not None
    }


def _has_lost(info: WorkloadInfo, domains: Iterable[DomainAssignment]) -> bool:
    return bool(info.lost_nodes) and any(domain.values[-1] in info.lost_nodes for domain in domains)


def _place_all(
    cache: Cache, info: WorkloadInfo, requests: TopologyRequests, *, empty: bool
) -> dict[str, Domains] | tuple[Failure, str]:
    placed: dict[str, Domains] = {}
    by_host: Usage = {}
    for flavor in sorted(requests):
        state = cache.topologies[flavor]
        assumed_usage = by_host if state.by_host else {}
        if info.lost_nodes:
            placements = _replace(cache, info, state, requests[flavor], assumed_usage)
        else:
            placements = place(state, requests[flavor], empty=empty, assumed=assumed_usage)
        if isinstance(placements, Failure):
            return placements, flavor
        placed.update(placements)
    return placed


def _replace(
    cache: Cache, info: WorkloadInfo, state: TopologyState, requests: list[PlacementRequest], assumed: Usage
) -> dict[str, Domains] | Failure:
    """Other places for the pods on the node that failed first."""
    previous = {ps.name: ps.topology or () for ps in (info.admission.pod_sets if info.admission is not None else ())}
    if info.workload.owned_by_pod and cache.gates.skip_reassignment_for_pod_owned_workloads:
        return {request.pod_set.name: previous[request.pod_set.name] for request in requests}
    return replace_node(state, requests, previous, info.lost_nodes[0], assumed)


def _note(cache: Cache, assignment: Assignment, placed: dict[str, Domains], requests: TopologyRequests) -> None:
    for flavor, group in requests.items():
        state = cache.topologies[flavor]
        for request in group:
            result = assignment.pod_set(request.pod_set.name)
            result.topology = placed[request.pod_set.name]
            result.topology_levels = state.levels[-1:] if state.by_host else state.levels
            result.delayed_topology = False


def _net_usage(cache: Cache, entry: Entry) -> list[tuple[str, PodSetResult, Domains]]:
    """Flavor, pod set and domains that the entry would add to what its workload holds already."""
    usage_left = []
    usage: dict[str, dict[tuple[str, ...], int]] = {}
    if entry.info.admission is not None:
        for psa in entry.info.admission.pod_sets:
            usage[psa.name] = {domain.values: domain.count for domain in psa.topology or ()}
    for result in entry.assignment.pod_sets:
        if result.topology is None:
            continue
        flavors = sorted({c.flavor for c in result.flavors.values() if c.flavor in entry.queue.tas_flavors})
        if len(flavors) != 1:
            continue
        before = usage.get(result.name, {})
        if before and not cache.gates.behaviours.counts_places_of_replaced_nodes:
            continue
        more = tuple(
            DomainAssignment(domain.values, domain.count - before.get(domain.values, 0))
            for domain in result.topology
            if domain.count > before.get(domain.values, 0)
        )
        usage_left.append((flavors[0], result, more))
    return usage_left


class Places(NoPlaces):
    """Of a cluster with topologies."""

    def states(self, objects: Objects) -> dict[str, TopologyState]:
        """The nodes of each topology-aware flavor."""
        topologies = {topology.name: topology for topology in objects.topologies}
        shared: dict[str, dict[str, int]] = {}
        gates = objects.configuration.gates
        return {
            flavor.name: TopologyState(flavor, topologies[flavor.topology], objects.nodes, shared, gates)
            for flavor in objects.flavors
            if flavor.topology is not None and flavor.topology in topologies
        }

    def requests(self, cache: Cache, info: WorkloadInfo, queue: QueueNode, assignment: Assignment) -> TopologyRequests:
        """The pod sets of an assignment that have to be placed now.

        A contradiction becomes the pod set's error, for which its job is refused where the release does that. Placement
        is left for later where a check first has to find the cluster (MultiKueue) or make the nodes
        (ProvisioningRequest).
        """
        requests_by_flavor: TopologyRequests = {}
        is_elastic = info.workload.elastic and cache.gates.elastic_jobs_via_workload_slices_with_tas
        places = _places_of(cache.replaced(info)) if is_elastic else {}
        results = {result.name: result for result in assignment.pod_sets}
        for pod_set in info.workload.pod_sets:
            result = results.get(pod_set.name)
            if result is None or not is_topology_requested(pod_set, queue):
                continue
            if (
                result.error
                or result.count == 0
                or (result.topology is not None and not _has_lost(info, result.topology))
            ):
                continue
            flavors = sorted(
                {choice.flavor for choice in result.flavors.values() if choice.flavor in queue.tas_flavors}
            )
            if (
                is_elastic
                and pod_set.topology is not None
                and (pod_set.topology.required or pod_set.topology.preferred)
            ):
                kind = "required" if pod_set.topology.required else "preferred"
                result.error = f"{kind} topology is not supported with ElasticJobsViaWorkloadSlices"
            elif not queue.tas_flavors:
                result.error = NO_CACHE
            elif not flavors:
                result.error = NO_FLAVOR
            elif len(flavors) > 1:
                result.error = f"more than one TAS flavor assigned: {', '.join(flavors)}"
            elif queue.has_multikueue or (not info.is_reserved and flavors[0] in queue.provisioning_flavors):
                result.delayed_topology = True
            else:
                previous = places.get(pod_set.name)
                is_implied = is_topology_implied(pod_set, queue)
                request = PlacementRequest(pod_set, result.count, is_implied, previous, info.key)
                requests_by_flavor.setdefault(flavors[0], []).append(request)
            if result.error and cache.gates.behaviours.refuses_pods_without_topology_flavor:
                assignment.forget_mode()
        return requests_by_flavor

    def place(self, cache: Cache, info: WorkloadInfo, queue: QueueNode, assignment: Assignment) -> None:
        """Place the pods of an assignment that fits or could by preemption; without a place it fits no longer."""
        requests = self.requests(cache, info, queue, assignment)
        if not requests and assignment.mode is not Mode.FIT:
            return
        if assignment.mode is Mode.FIT:
            placed = _place_all(cache, info, requests, empty=False)
            if isinstance(placed, tuple):
                failure, flavor = placed
                result = assignment.pod_set(failure.pod_set)
                result.evidence.append(TopologyPlacement(flavor, failure.reason))
                assignment.set_pod_set_mode(failure.pod_set, Mode.PREEMPT)
            else:
                _note(cache, assignment, placed, requests)
        if assignment.mode is Mode.PREEMPT and not info.lost_nodes:
            placed = _place_all(cache, info, requests, empty=True)
            if isinstance(placed, tuple):
                failure, flavor = placed
                result = assignment.pod_set(failure.pod_set)
                result.overrides[flavor] = QuotaReservedReason.TOPOLOGY_PLACEMENT_FAILED
                assignment.set_pod_set_mode(failure.pod_set, Mode.NO_FIT)
            else:
                for group in requests.values():
                    for request in group:
                        assignment.set_pod_set_mode(request.pod_set.name, Mode.PREEMPT)

    def fits(self, cache: Cache, info: WorkloadInfo, requests: TopologyRequests) -> bool:
        """Whether the pods can be placed now."""
        return not isinstance(_place_all(cache, info, requests, empty=False), tuple)

    def place_for_preemption(
        self,
        cache: Cache,
        info: WorkloadInfo,
        queue: QueueNode,
        assignment: Assignment,
        leaving: Collection[WorkloadInfo],
    ) -> None:
        """Note where the pods will go once others are gone; if none leaves, where they would on empty nodes."""
        if not queue.tas_flavors or assignment.mode is not Mode.PREEMPT or info.has_lost_places:
            return
        if not queue.tas_only and not any(
            ps.topology is not None and ps.topology.is_explicit for ps in info.workload.pod_sets
        ):
            return
        requests = self.requests(cache, info, queue, assignment)
        with cache.without(leaving):
            placed = _place_all(cache, info, requests, empty=not leaving)
        if not isinstance(placed, tuple):
            _note(cache, assignment, placed, requests)

    def reserve(self, cache: Cache, entry: Entry, sign: int) -> None:
        """Count an entry's places as used (`sign` 1), or as free (-1)."""
        if not entry.queue.tas_flavors:
            return
        per_pod = {ps.name: ps.node_requests for ps in entry.info.workload.pod_sets}
        for flavor, result, domains in _net_usage(cache, entry):
            cache.topologies[flavor].use(domains, per_pod[result.name], sign)

    def are_free(self, cache: Cache, entry: Entry) -> bool:
        """Whether the places an entry was nominated for are still free."""
        if not entry.queue.tas_flavors:
            return True
        per_pod = {ps.name: dict(ps.node_requests) for ps in entry.info.workload.pod_sets}
        return all(
            cache.topologies[flavor].fits(domains, per_pod[result.name])
            for flavor, result, domains in _net_usage(cache, entry)
        )
