"""Where pods go in a topology: count what fits in each domain, choose a level and domains, and walk down.

Preferred and required placements take the domains that hold most, and the tightest one last; unconstrained ones fill
the fullest domains first. A group of two pod sets is a leader, one pod, that is placed beside its workers.

What fits at the chosen level fits below it, because the children's counts add up to it (`counts`); the walk down cannot
fail. Taking the largest domains first needs the fewest of them, and the tightest that holds the rest keeps large ones
whole for later. That is least domains at each level, not over all levels together: there, and for a leader, it is
Kueue's heuristic, and is kept as it is. With the gate TASBalancedPlacement, preferred placements are spread evenly
where they can be (`balance`).

Source: kueue@v0.19.2 pkg/cache/scheduler/tas_flavor_snapshot.go.
"""

from __future__ import annotations

from collections.abc import Sequence

from kueue_admission.decide.model import DomainAssignment
from kueue_admission.decide.topology.balance import balanced
from kueue_admission.decide.topology.counts import Plan, Usage, fill_counts, in_order, leader_order, make_plan
from kueue_admission.decide.topology.domains import MAX_INT32, Domain, Domains, TopologyState
from kueue_admission.decide.topology.requests import PlacementRequest, Stats


def place_group(
    state: TopologyState,
    workers: PlacementRequest,
    leader: PlacementRequest | None,
    usage: Usage,
    within: tuple[str, ...],
    *,
    empty: bool,
) -> dict[str, Domains] | str:
    """Domains for the workers and their leader, or why there are none; with `empty`, on an empty topology.

    `usage` is what other pod sets of the workload take. `within` is a domain to stay in.
    """
    plan = make_plan(state, workers, leader)
    if isinstance(plan, str):
        return plan
    stats = fill_counts(state, workers, leader, plan, usage, within, empty=empty)
    even = balanced(state, plan)
    domains_chosen = even or _find_level(state, plan, plan.level, stats)
    if isinstance(domains_chosen, str):
        return domains_chosen
    level, domains = domains_chosen
    domains = _take(domains, plan.count, plan.leaders, plan.slice_size, plan, slices=True)
    lowest = len(state.levels) - 1
    while even is None and level < min(lowest, plan.slice_level):
        lower = in_order([child for domain in domains for child in domain.children], plan)
        domains = _take(lower, plan.count, plan.leaders, plan.slice_size, plan, slices=True)
        level += 1
    while level < lowest:
        size = plan.slice_size if level < plan.slice_level else plan.size_at.get(level + 1, 1)
        below: list[Domain] = []
        for domain in domains:
            children = in_order(domain.children, plan)
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
    ordered_domains = sorted(domains, key=lambda pair: pair[0].values)
    return tuple(DomainAssignment(domain.values[first:], count) for domain, count in ordered_domains if count > 0)


def _find_level(state: TopologyState, plan: Plan, level: int, stats: Stats) -> tuple[int, list[Domain]] | str:
    """The level, at or above the wanted one, and the domains there that hold everything."""
    if not state.domains[level]:
        return f"no topology domains at level: {state.levels[level]}"
    domains = sorted(state.domains[level], key=lambda d: leader_order(d, plan))
    top = domains[0]
    needed_count = plan.count // plan.slice_size
    if plan.least_free:
        for domain in domains:
            if plan.leaders and domain.leaders < plan.leaders:
                continue
            if (domain.slices_with_leader if plan.leaders else domain.slices) >= needed_count:
                return level, [domain]
        if plan.required:
            return _not_fit(state, plan, level, domains[-1].pods, needed_count, stats)
    elif top.slices_with_leader >= needed_count and top.leaders >= plan.leaders:
        return level, [_best_fit(domains, needed_count, plan.leaders, slices=True)]
    if top.slices_with_leader >= needed_count and top.leaders >= plan.leaders:
        return level, [top]
    if plan.required:
        less = _less_preferred(domains, needed_count, plan) if state.gates.tas_respect_node_affinity_preferred else None
        return _not_fit(state, plan, level, top.slices, needed_count, stats) if less is None else (level, [less])
    if level > 0 and not plan.unconstrained:
        return _find_level(state, plan, level - 1, stats)
    return _spread(state, plan, level, domains, needed_count, stats)


def _less_preferred(domains: list[Domain], needed_count: int, plan: Plan) -> Domain | None:
    """The most preferred domain that holds everything, if that is not the first."""
    for index, domain in enumerate(domains):
        if domain.slices_with_leader >= needed_count and domain.leaders >= plan.leaders:
            return _best_fit(domains[index:], needed_count, plan.leaders, slices=True)
    return None


def _spread(
    state: TopologyState, plan: Plan, level: int, domains: list[Domain], needed_count: int, stats: Stats
) -> tuple[int, list[Domain]] | str:
    """Several domains of a level that together hold everything, the leader's first."""
    chosen_domains: list[Domain] = []
    domains = _leader_first(domains, plan.count, plan.leaders, plan.slice_size, slices=True)
    rest, leaders, index = needed_count, plan.leaders, 0
    while leaders > 0 and index < len(domains) and domains[index].leaders > 0:
        domain = domains[index]
        if not plan.least_free and domain.slices_with_leader >= rest:
            domain = _best_fit(domains[index:], rest, leaders, slices=True)
        chosen_domains.append(domain)
        leaders -= domain.leaders
        rest -= domain.slices_with_leader
        index += 1
    if leaders > 0:
        return _not_fit(state, plan, level, plan.leaders - leaders, needed_count, stats)
    remaining = in_order(domains[index:], plan)
    for position, candidate in enumerate(remaining):
        if rest <= 0:
            break
        domain = candidate
        if not plan.least_free and domain.slices >= rest:
            domain = _best_fit(remaining[position:], rest, 0, slices=True)
        chosen_domains.append(domain)
        rest -= domain.slices
    if rest > 0:
        return _not_fit(state, plan, level, needed_count - rest, needed_count, stats)
    return level, chosen_domains


def _not_fit(state: TopologyState, plan: Plan, level: int, fitting: int, needed_count: int, stats: Stats) -> str:
    if plan.constraints:
        best = min(state.domains[level], key=lambda d: (-d.slices, d.values))
        text = f'topology "{state.name}" doesn\'t allow to fit'
        for layer in plan.constraints:
            target = state.levels.index(layer.level)
            slices_below = _slices_below(best, level, target, layer.size)
            text += f"; {slices_below}/{plan.count // layer.size} slice(s) fit on level {layer.level}"
        return text + stats.text
    unit = "pod" if plan.slice_size == 1 else "slice"
    if fitting == 0:
        text = f'topology "{state.name}" doesn\'t allow to fit any of {needed_count} {unit}(s)'
    else:
        text = f'topology "{state.name}" allows to fit only {fitting} out of {needed_count} {unit}(s)'
    return text + stats.text


def _slices_below(domain: Domain, level: int, target: int, size: int) -> int:
    if level == target:
        return domain.pods // size
    return sum(_slices_below(child, level + 1, target, size) for child in domain.children)


def _best_fit(domains: Sequence[Domain], needed_count: int, leaders: int, *, slices: bool) -> Domain:
    """The tightest domain that holds what is needed, of those that are preferred most; the first one if none does."""
    best, best_count = domains[0], MAX_INT32
    for domain in domains:
        if domain.score != domains[0].score:
            break
        if domain.leaders < leaders:
            continue
        count = _capacity(domain, with_leader=leaders > 0, slices=slices)
        if needed_count <= count < best_count:
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
    needed_count = count // size if slices else count
    room = sum(domain.slices if slices else domain.pods for domain in domains)
    for index, domain in enumerate(domains):
        if domain.leaders < leaders:
            continue
        lost = domain.slices - domain.slices_with_leader if slices else domain.pods - domain.pods_with_leader
        if room - lost >= needed_count:
            return [domain, *domains[:index], *domains[index + 1 :]]
    return domains


def _take(domains: list[Domain], count: int, leaders: int, size: int, plan: Plan, *, slices: bool) -> list[Domain]:
    """Put `count` pods on as few of the sorted domains as it takes, and note in each how many it got."""
    domains = _leader_first(domains, count, leaders, size, slices=slices)
    rest = count // size if slices else count
    step = size if slices else 1
    chosen_domains: list[Domain] = []
    for index, candidate in enumerate(domains):
        domain = candidate
        with_leader = leaders > 0
        capacity = _capacity(domain, with_leader=with_leader, slices=slices)
        if not plan.least_free and capacity >= rest and domain.leaders >= leaders:
            domain = _best_fit(domains[index:], rest, leaders, slices=slices)
            capacity = _capacity(domain, with_leader=with_leader, slices=slices)
        chosen_domains.append(domain)
        if not with_leader:
            domain.leaders = 0
        if capacity >= rest and domain.leaders >= leaders:
            domain.leaders = leaders
            domain.pods = rest * step
            if slices:
                domain.slices = rest
            return chosen_domains
        taken_count = min(capacity, rest)
        if with_leader:
            domain.leaders = min(domain.leaders, leaders)
            leaders -= domain.leaders
            if slices:
                domain.slices = taken_count
        domain.pods = taken_count * step
        rest -= taken_count
    return chosen_domains
