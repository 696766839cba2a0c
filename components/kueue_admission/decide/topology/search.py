"""Where pods go in a topology: count what fits in each domain, choose a level and domains, and walk down.

Preferred and required placements take the domains that hold most, and the tightest one last; unconstrained ones fill
the fullest domains first. A group of two pod sets is a leader, one pod, that is placed beside its workers.

Why counting suffices: the pods of a pod set are alike, a pod is on one leaf, and the leaves of a domain are disjoint.
So a domain holds exactly as many as its children together, slices as many as whole slices fit below their level, and
one pass upwards answers for every domain whether the pod set fits, without trying a place. What fits at the chosen
level fits below it, because the children's counts add up to it; the walk down cannot fail. Taking the largest domains
first needs the fewest of them, and the tightest that holds the rest keeps large ones whole for later. That is least
domains at each level, not over all levels together: there, and for a leader, it is Kueue's heuristic, and is kept as
it is.

Source: kueue@v0.19.2 pkg/cache/scheduler/tas_flavor_snapshot.go (with TASProfileMixed; without balanced placement).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kueue_admission.decide.model import DomainAssignment
from kueue_admission.decide.pods import PodSet, SliceConstraint, Toleration
from kueue_admission.decide.topology.domains import MAX_INT32, Amounts, Domain, Domains, Leaf, TopologyState, count_in
from kueue_admission.decide.topology.requests import PlacementRequest, Stats

Usage = dict[tuple[str, ...], dict[str, int]]
"""What pod sets that were placed before take, by leaf."""


@dataclass(frozen=True, slots=True)
class _Plan:
    """What a search looks for, worked out from the request."""

    count: int
    leaders: int
    required: bool
    unconstrained: bool
    level: int
    slice_level: int
    slice_size: int
    size_at: Mapping[int, int]
    constraints: tuple[SliceConstraint, ...]


def place_group(
    state: TopologyState,
    workers: PlacementRequest,
    leader: PlacementRequest | None,
    assumed: Usage,
    within: tuple[str, ...],
    *,
    empty: bool,
) -> dict[str, Domains] | str:
    """Domains for the workers and their leader, or why there are none; with `empty`, on an empty topology.

    `assumed` is what other pod sets of the workload take. `within` is a domain to stay in.
    """
    plan = _make_plan(state, workers, leader)
    if isinstance(plan, str):
        return plan
    stats = _fill_counts(state, workers, leader, plan, assumed, within, empty=empty)
    found = _find_level(state, plan, plan.level, stats)
    if isinstance(found, str):
        return found
    level, domains = found
    domains = _take(domains, plan.count, plan.leaders, plan.slice_size, plan, slices=True)
    lowest = len(state.levels) - 1
    while level < min(lowest, plan.slice_level):
        lower = _sorted([child for domain in domains for child in domain.children], plan)
        domains = _take(lower, plan.count, plan.leaders, plan.slice_size, plan, slices=True)
        level += 1
    while level < lowest:
        size = plan.slice_size if level < plan.slice_level else plan.size_at.get(level + 1, 1)
        below: list[Domain] = []
        for domain in domains:
            children = _sorted(domain.children, plan)
            if size > 1:
                for child in children:
                    child.slices = child.pods // size
                    child.slices_with_leader = child.pods_with_leader // size
            below += _take(children, domain.pods, domain.leaders, size, plan, slices=size > 1)
        domains = below
        level += 1
    result = {}
    if leader is not None:
        with_leader = [(domain, domain.leaders) for domain in domains if domain.leaders > 0]
        result[leader.pod_set.name] = _assignment(state, with_leader)
    result[workers.pod_set.name] = _assignment(state, [(domain, domain.pods) for domain in domains])
    return result


def _assignment(state: TopologyState, domains: list[tuple[Domain, int]]) -> Domains:
    first = len(state.levels) - 1 if state.by_host else 0
    ordered = sorted(domains, key=lambda pair: pair[0].values)
    return tuple(DomainAssignment(domain.values[first:], count) for domain, count in ordered if count > 0)


def _make_plan(state: TopologyState, workers: PlacementRequest, leader: PlacementRequest | None) -> _Plan | str:
    request, constraints = workers.pod_set.topology, workers.constraints
    required = request is not None and request.required is not None
    only_slices = bool(constraints) and request is not None and not (request.required or request.preferred)
    unconstrained = workers.implied or only_slices or (request is not None and request.unconstrained)
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
    return _Plan(workers.count, leaders, required, unconstrained, level, slice_level, size, size_at, layers)


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


def _fill_counts(
    state: TopologyState,
    workers: PlacementRequest,
    leader: PlacementRequest | None,
    plan: _Plan,
    assumed: Usage,
    within: tuple[str, ...],
    *,
    empty: bool,
) -> Stats:
    stats = Stats()
    for domains in state.domains:
        for domain in domains:
            domain.clear()
    per_pod = workers.per_pod
    per_leader = None if leader is None else leader.per_pod
    tolerations = (*workers.pod_set.tolerations, *state.flavor.tolerations)
    stats.nodes = len(state.leaves)
    for key, leaf in state.leaves.items():
        if leaf.node is not None and not _is_feasible(leaf, workers.pod_set, tolerations, stats):
            continue
        if leaf.values[: len(within)] != within:
            stats.count("topologyDomain")
            continue
        _count_leaf(state, leaf, per_pod, per_leader, assumed.get(key), stats, empty=empty)
    for root in state.domains[0]:
        _roll_up(root, plan, 0)
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


def _count_leaf(
    state: TopologyState,
    leaf: Leaf,
    per_pod: Amounts,
    per_leader: Amounts | None,
    assumed: Amounts | None,
    stats: Stats,
    *,
    empty: bool,
) -> None:
    free = state.free(leaf, empty=empty)
    for resource, amount in (assumed or {}).items():
        free[resource] = free.get(resource, 0) - amount
    leaf.pods, limiting = count_in(per_pod, free)
    if leaf.pods == 0 and limiting:
        stats.count(f'resource "{limiting}"')
    if per_leader is not None and count_in(per_leader, free)[0] > 0:
        leaf.leaders = 1
        for resource, amount in per_leader.items():
            free[resource] = free.get(resource, 0) - amount
    leaf.pods_with_leader = count_in(per_pod, free)[0]


def _roll_up(domain: Domain, plan: _Plan, level: int) -> None:
    """Counts of a domain from those of its children; a child with inner slices counts in multiples of them."""
    if domain.children:
        pods = slices = leaders = 0
        fewer_pods = fewer_slices = None
        inner = plan.size_at.get(level + 1)
        for child in domain.children:
            _roll_up(child, plan, level + 1)
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
        domain.pods, domain.leaders = pods, leaders
        domain.pods_with_leader = 0 if fewer_pods is None else pods - fewer_pods
        domain.slices = slices
        domain.slices_with_leader = 0 if fewer_slices is None else slices - fewer_slices
    if level == plan.slice_level:
        domain.slices = domain.pods // plan.slice_size
        domain.slices_with_leader = domain.pods_with_leader // plan.slice_size


def _find_level(state: TopologyState, plan: _Plan, level: int, stats: Stats) -> tuple[int, list[Domain]] | str:
    """The level, at or above the wanted one, and the domains there that hold everything."""
    if not state.domains[level]:
        return f"no topology domains at level: {state.levels[level]}"
    domains = sorted(state.domains[level], key=lambda d: _leader_order(d, plan))
    top = domains[0]
    needed = plan.count // plan.slice_size
    if plan.unconstrained:
        for domain in domains:
            if plan.leaders and domain.leaders < plan.leaders:
                continue
            if (domain.slices_with_leader if plan.leaders else domain.slices) >= needed:
                return level, [domain]
        if plan.required:
            return _not_fit(state, plan, level, domains[-1].pods, needed, stats)
    elif top.slices_with_leader >= needed and top.leaders >= plan.leaders:
        return level, [_best_fit(domains, needed, plan.leaders, slices=True)]
    if top.slices_with_leader >= needed and top.leaders >= plan.leaders:
        return level, [top]
    if plan.required:
        return _not_fit(state, plan, level, top.slices, needed, stats)
    if level > 0 and not plan.unconstrained:
        return _find_level(state, plan, level - 1, stats)
    return _spread(state, plan, level, domains, needed, stats)


def _spread(
    state: TopologyState, plan: _Plan, level: int, domains: list[Domain], needed: int, stats: Stats
) -> tuple[int, list[Domain]] | str:
    """Several domains of a level that together hold everything, the leader's first."""
    chosen: list[Domain] = []
    domains = _leader_first(domains, plan.count, plan.leaders, plan.slice_size, slices=True)
    rest, leaders, index = needed, plan.leaders, 0
    while leaders > 0 and index < len(domains) and domains[index].leaders > 0:
        domain = domains[index]
        if not plan.unconstrained and domain.slices_with_leader >= rest:
            domain = _best_fit(domains[index:], rest, leaders, slices=True)
        chosen.append(domain)
        leaders -= domain.leaders
        rest -= domain.slices_with_leader
        index += 1
    if leaders > 0:
        return _not_fit(state, plan, level, plan.leaders - leaders, needed, stats)
    remaining = _sorted(domains[index:], plan)
    for position, candidate in enumerate(remaining):
        if rest <= 0:
            break
        domain = candidate
        if not plan.unconstrained and domain.slices >= rest:
            domain = _best_fit(remaining[position:], rest, 0, slices=True)
        chosen.append(domain)
        rest -= domain.slices
    if rest > 0:
        return _not_fit(state, plan, level, needed - rest, needed, stats)
    return level, chosen


def _not_fit(state: TopologyState, plan: _Plan, level: int, fitting: int, needed: int, stats: Stats) -> str:
    if plan.constraints:
        best = min(state.domains[level], key=lambda d: (-d.slices, d.values))
        text = f'topology "{state.name}" doesn\'t allow to fit'
        for layer in plan.constraints:
            target = state.levels.index(layer.level)
            found = _slices_below(best, level, target, layer.size)
            text += f"; {found}/{plan.count // layer.size} slice(s) fit on level {layer.level}"
        return text + stats.text
    unit = "pod" if plan.slice_size == 1 else "slice"
    if fitting == 0:
        text = f'topology "{state.name}" doesn\'t allow to fit any of {needed} {unit}(s)'
    else:
        text = f'topology "{state.name}" allows to fit only {fitting} out of {needed} {unit}(s)'
    return text + stats.text


def _slices_below(domain: Domain, level: int, target: int, size: int) -> int:
    if level == target:
        return domain.pods // size
    return sum(_slices_below(child, level + 1, target, size) for child in domain.children)


def _leader_order(domain: Domain, plan: _Plan) -> tuple[int, int, int, tuple[str, ...]]:
    capacity = domain.slices_with_leader
    return -domain.leaders, capacity if plan.unconstrained else -capacity, domain.pods_with_leader, domain.values


def _sorted(domains: Sequence[Domain], plan: _Plan) -> list[Domain]:
    sign = 1 if plan.unconstrained else -1
    return sorted(domains, key=lambda d: (sign * d.slices, d.pods, d.values))


def _best_fit(domains: Sequence[Domain], needed: int, leaders: int, *, slices: bool) -> Domain:
    """The tightest domain that holds what is needed; the first one if none does."""
    best, best_count = domains[0], MAX_INT32
    for domain in domains:
        if domain.leaders < leaders:
            continue
        count = _capacity(domain, with_leader=leaders > 0, slices=slices)
        if needed <= count < best_count:
            best, best_count = domain, count
    return best


def _capacity(domain: Domain, *, with_leader: bool, slices: bool) -> int:
    if slices:
        return domain.slices_with_leader if with_leader else domain.slices
    return domain.pods_with_leader if with_leader else domain.pods


def _leader_first(domains: list[Domain], count: int, leaders: int, size: int, *, slices: bool) -> list[Domain]:
    """Put a domain first that can take the leader without losing room that is needed."""
    if leaders == 0 or len(domains) < 2:
        return domains
    needed = count // size if slices else count
    room = sum(domain.slices if slices else domain.pods for domain in domains)
    for index, domain in enumerate(domains):
        if domain.leaders < leaders:
            continue
        lost = domain.slices - domain.slices_with_leader if slices else domain.pods - domain.pods_with_leader
        if room - lost >= needed:
            return [domain, *domains[:index], *domains[index + 1 :]]
    return domains


def _take(domains: list[Domain], count: int, leaders: int, size: int, plan: _Plan, *, slices: bool) -> list[Domain]:
    """Put `count` pods on as few of the sorted domains as it takes, and note in each how many it got."""
    domains = _leader_first(domains, count, leaders, size, slices=slices)
    rest = count // size if slices else count
    step = size if slices else 1
    chosen: list[Domain] = []
    for index, candidate in enumerate(domains):
        domain = candidate
        with_leader = leaders > 0
        capacity = _capacity(domain, with_leader=with_leader, slices=slices)
        if not plan.unconstrained and capacity >= rest and domain.leaders >= leaders:
            domain = _best_fit(domains[index:], rest, leaders, slices=slices)
            capacity = _capacity(domain, with_leader=with_leader, slices=slices)
        chosen.append(domain)
        if not with_leader:
            domain.leaders = 0
        if capacity >= rest and domain.leaders >= leaders:
            domain.leaders = leaders
            domain.pods = rest * step
            if slices:
                domain.slices = rest
            return chosen
        taken = min(capacity, rest)
        if with_leader:
            domain.leaders = min(domain.leaders, leaders)
            leaders -= domain.leaders
            if slices:
                domain.slices = taken
        domain.pods = taken * step
        rest -= taken
    return chosen
