"""What fits in each domain of a topology, and which domain comes first.

Why counting suffices: the pods of a pod set are alike, a pod is on one leaf, and the leaves of a domain are disjoint.
So a domain holds exactly as many as its children together, slices as many as whole slices fit below their level, and
one pass upwards answers for every domain whether the pod set fits, without trying a place.

Nodes that pods prefer (TASRespectNodeAffinityPreferred) come before all that; a domain is as preferred as its nodes
together.
Source: kueue@v0.19.2 pkg/cache/scheduler/tas_flavor_snapshot.go.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kueue_admission.decide.pods import PodSet, SliceConstraint, Toleration
from kueue_admission.decide.topology.domains import Amounts, Domain, Leaf, TopologyState, count_in
from kueue_admission.decide.topology.requests import PlacementRequest, Stats

Usage = dict[tuple[str, ...], dict[str, int]]
"""What pod sets that were placed before take, by leaf."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What a search looks for, worked out from the request."""

    count: int
    leaders: int
    required: bool
    unconstrained: bool
    least_free: bool
    """Whether the fullest domains that hold enough come first; else those that hold most, and the tightest last."""
    level: int
    slice_level: int
    slice_size: int
    size_at: Mapping[int, int]
    constraints: tuple[SliceConstraint, ...]


def make_plan(state: TopologyState, workers: PlacementRequest, leader: PlacementRequest | None) -> Plan | str:
    """What to look for, or why that makes no sense in the topology."""
    request, constraints = workers.pod_set.topology, workers.constraints
    is_required = request is not None and request.required is not None
    only_slices = bool(constraints) and request is not None and not (request.required or request.preferred)
    is_unconstrained = workers.implied or only_slices or (request is not None and request.unconstrained)
    key: str | None = None
    if request is not None:
        key = request.required or request.preferred
        if key is None and only_slices:
            key = state.levels[0]
        elif key is None and request.unconstrained:
            key = state.levels[-1]
    if key is None and workers.implied:
        key = state.levels[-1]
    if key is None:
        return "topology level not specified"
    slice_key = constraints[0].level if constraints else state.levels[-1]
    if constraints and constraints[0].size <= 0:
        return "slice topology requested, but slice size not provided"
    if key not in state.levels:
        return f"no requested topology level: {key}"
    if slice_key not in state.levels:
        return f"no requested topology level for slices: {slice_key}"
    level, slice_level = state.levels.index(key), state.levels.index(slice_key)
    if level > slice_level:
        return f"podset slice topology {slice_key} is above the podset topology {key}"
    size = constraints[0].size if constraints else 1
    size_at = _inner_sizes(state, constraints, size, slice_level)
    if isinstance(size_at, str):
        return size_at
    leaders = 0 if leader is None else 1
    layers = constraints if size_at else ()
    least_free = is_unconstrained and state.gates.tas_profile_mixed
    return Plan(
        workers.count, leaders, is_required, is_unconstrained, least_free, level, slice_level, size, size_at, layers
    )


def _inner_sizes(
    state: TopologyState, constraints: tuple[SliceConstraint, ...], size: int, level: int
) -> dict[int, int] | str:
    """Sizes of the slices within slices, by level."""
    sizes: dict[int, int] = {}
    for layer in constraints[1:]:
        if layer.level not in state.levels:
            return f"no requested topology level for additional slice layer: {layer.level}"
        inner = state.levels.index(layer.level)
        if inner <= level:
            return f"additional slice layer topology {layer.level} must be at a lower level than {state.levels[level]}"
        if size % layer.size:
            return f"additional slice layer size {layer.size} must evenly divide parent layer size {size}"
        for between in range(level + 1, inner + 1):
            sizes[between] = layer.size
        size, level = layer.size, inner
    return sizes


def fill_counts(
    state: TopologyState,
    workers: PlacementRequest,
    leader: PlacementRequest | None,
    plan: Plan,
    usage: Usage,
    within: tuple[str, ...],
    *,
    empty: bool,
) -> Stats:
    """Note in every domain what fits there, and why leaves are left out; arguments as in `search.place_group`."""
    stats = Stats()
    for domains in state.domains:
        for domain in domains:
            domain.clear()
    per_pod = workers.per_pod
    per_leader = None if leader is None else leader.per_pod
    tolerations = (*workers.pod_set.tolerations, *state.flavor.tolerations)
    stats.nodes = len(state.leaves)
    scores = state.looks_at_scores(workers.owner, workers.pod_set)
    for key, leaf in state.leaves.items():
        if leaf.node is not None and not _is_feasible(leaf, workers.pod_set, tolerations, stats):
            continue
        if leaf.values[: len(within)] != within:
            stats.count("topologyDomain")
            continue
        if scores:
            leaf.score = _score(leaf, workers.pod_set)
        _count_leaf(state, leaf, per_pod, per_leader, usage.get(key), stats, empty=empty)
    for root in state.domains[0]:
        roll_up(root, plan, 0)
    return stats


def _is_feasible(leaf: Leaf, pod_set: PodSet, tolerations: tuple[Toleration, ...], stats: Stats) -> bool:
    node = leaf.node
    if node is None:
        return True
    for taint in node.taints:
        if taint.effect in ("NoSchedule", "NoExecute") and not any(t.tolerates(taint) for t in tolerations):
            stats.count(f'taint "{taint.text}"')
            return False
    labels = dict(node.labels)
    if any(labels.get(key) != value for key, value in pod_set.node_selector):
        stats.count("nodeSelector")
        return False
    if pod_set.affinity is not None and not any(term.matches(labels) for term in pod_set.affinity):
        stats.count("affinity")
        return False
    return True


def _score(leaf: Leaf, pod_set: PodSet) -> int:
    labels = {} if leaf.node is None else dict(leaf.node.labels)
    return sum(weight for weight, term in pod_set.preferred if term.matches(labels))


def _count_leaf(
    state: TopologyState,
    leaf: Leaf,
    per_pod: Amounts,
    per_leader: Amounts | None,
    amounts: Amounts | None,
    stats: Stats,
    *,
    empty: bool,
) -> None:
    free = state.free(leaf, empty=empty)
    for resource, amount in (amounts or {}).items():
        free[resource] = free.get(resource, 0) - amount
    leaf.pods, limiting = count_in(per_pod, free)
    if leaf.pods == 0 and limiting:
        stats.count(f'resource "{limiting}"')
    if per_leader is not None and count_in(per_leader, free)[0] > 0:
        leaf.leaders = 1
        for resource, amount in per_leader.items():
            free[resource] = free.get(resource, 0) - amount
    leaf.pods_with_leader = count_in(per_pod, free)[0]


def roll_up(domain: Domain, plan: Plan, level: int) -> None:
    """Counts of a domain from those of its children; a child with inner slices counts in multiples of them."""
    if domain.children:
        pods = slices = leaders = domain.score = 0
        fewer_pods = fewer_slices = None
        inner = plan.size_at.get(level + 1)
        for child in domain.children:
            roll_up(child, plan, level + 1)
            child_pods, child_with = child.pods, child.pods_with_leader
            if inner is not None:
                child_pods, child_with = child_pods // inner * inner, child_with // inner * inner
            pods += child_pods
            slices += child.slices
            if not plan.leaders or child.leaders > 0:
                loss, slice_loss = child_pods - child_with, child.slices - child.slices_with_leader
                fewer_pods = loss if fewer_pods is None else min(fewer_pods, loss)
                fewer_slices = slice_loss if fewer_slices is None else min(fewer_slices, slice_loss)
            leaders = max(leaders, child.leaders)
            domain.score += child.score
        domain.pods, domain.leaders = pods, leaders
        domain.pods_with_leader = 0 if fewer_pods is None else pods - fewer_pods
        domain.slices = slices
        domain.slices_with_leader = 0 if fewer_slices is None else slices - fewer_slices
    if level == plan.slice_level:
        domain.slices = domain.pods // plan.slice_size
        domain.slices_with_leader = domain.pods_with_leader // plan.slice_size


def leader_order(domain: Domain, plan: Plan) -> tuple[int, int, int, int, tuple[str, ...]]:
    """Which domain comes first for a leader with its workers."""
    capacity = domain.slices_with_leader if plan.least_free else -domain.slices_with_leader
    return -domain.leaders, -domain.score, capacity, domain.pods_with_leader, domain.values


def in_order(domains: Sequence[Domain], plan: Plan) -> list[Domain]:
    """The domains in the order in which workers take them."""
    sign = 1 if plan.least_free else -1
    return sorted(domains, key=lambda d: (-d.score, sign * d.slices, d.pods, d.values))
