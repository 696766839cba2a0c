"""Even placements (TASBalancedPlacement): about as many slices in each domain as in any other.

Each set of sibling domains, at the preferred level, is asked how many slices each domain would get at least if as few
domains as possible held everything: its threshold. Domains that hold fewer are left out; the set with the highest
threshold wins, and of equal ones that with fewer domains. Of its domains, a search through all numbers of pods that are
left finds as few as possible that together hold as little more than what is wanted as they can. Each of them gets the
threshold, and what remains goes to the first ones. Where any of that fails, pods are placed as without the gate.

Everything is tried on copies, whose counts may change.
Source: kueue@v0.19.2 pkg/cache/scheduler/tas_balanced_placement.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import log2
from typing import NamedTuple

from kueue_admission.decide.topology.counts import Plan, in_order, leader_order, roll_up
from kueue_admission.decide.topology.domains import Domain, TopologyState


class _Greedy(NamedTuple):
    """How many domains hold everything, the largest first, and the last ones of them, with and without a leader."""

    number: int
    with_leader: Domain | None
    last: Domain | None


def balanced(state: TopologyState, plan: Plan) -> tuple[int, list[Domain]] | None:
    """The level and the domains there that get about as much each; None where that is not wanted or not possible."""
    if not state.gates.tas_balanced_placement or plan.required or plan.unconstrained:
        return None
    slice_count = plan.count // plan.slice_size
    threshold, domains = _best_siblings(state, plan, slice_count)
    if threshold <= 0:
        return None
    level = plan.level
    if level < plan.slice_level:
        chosen_domains = _fewest(domains, slice_count, plan, by_entropy=True)
        if chosen_domains is None:
            return None
        domains, level = [child for domain in chosen_domains for child in domain.children], level + 1
    domain_counts = _share_out(domains, slice_count, plan, threshold)
    return None if domain_counts is None else (level, domain_counts)


def _best_siblings(state: TopologyState, plan: Plan, needed_count: int) -> tuple[int, list[Domain]]:
    """The highest threshold, and the domains below one parent that reach it, without those that do not."""
    best, fewest, best_domains = 0, 0, list[Domain]()
    parents = sorted(state.domains[plan.level - 1], key=lambda domain: domain.values) if plan.level else []
    for siblings in [domain.children for domain in parents] if plan.level else [state.domains[0]]:
        below = list(siblings)
        if plan.level < plan.slice_level:
            below = [child for domain in siblings for child in domain.children]
        greedy = _greedy(below, needed_count, plan)
        if greedy is None or not greedy.number:  # Kueue divides by 0 where slices have more pods than their pod set.
            continue
        threshold = needed_count // greedy.number
        if greedy.with_leader is not None:
            threshold = min(threshold, greedy.with_leader.slices_with_leader)
        if greedy.last is not None:
            threshold = min(threshold, greedy.last.slices)
        thresholds = [threshold]
        if plan.leaders and greedy.last is not None and 0 < greedy.last.slices_with_leader < threshold:
            # Where the domain of the leader falls below it, one that leaves room for a leader everywhere may do.
            thresholds.append(greedy.last.slices_with_leader)
        for wanted_threshold in thresholds:
            if wanted_threshold < best:
                break
            domains = _without_small(siblings, wanted_threshold, plan)
            remainder = _greedy(domains, needed_count, plan)
            if remainder is None:
                continue
            if wanted_threshold > best or (wanted_threshold == best and remainder.number < fewest):
                best, fewest, best_domains = wanted_threshold, remainder.number, domains
            break
    return best, best_domains


def _greedy(domains: Sequence[Domain], needed_count: int, plan: Plan) -> _Greedy | None:
    """As few domains as hold everything; None if all do not."""
    number, leaders = 0, plan.leaders
    with_leader = last = None
    rest = sorted(domains, key=lambda domain: leader_order(domain, plan)) if leaders else list(domains)
    while leaders > 0 and rest and rest[0].leaders > 0:
        with_leader = rest.pop(0)
        number += 1
        leaders -= with_leader.leaders
        needed_count -= with_leader.slices_with_leader
    for domain in in_order(rest, plan):
        if needed_count <= 0 or domain.slices <= 0:
            break
        last = domain
        number += 1
        needed_count -= domain.slices
    return _Greedy(number, with_leader, last) if leaders <= 0 and needed_count <= 0 else None


def _fewest(domains: Sequence[Domain], needed_count: int, plan: Plan, *, by_entropy: bool) -> tuple[Domain, ...] | None:
    """As few domains as hold everything, with as little room left as such a set can have."""
    greedy = _greedy(domains, needed_count, plan)
    if greedy is None:
        return None
    ordered_domains = sorted(domains, key=_by_entropy if by_entropy else lambda domain: domain.values)
    # By number of domains: those that leave so many leaders and pods without a place; the first of equal ones.
    fewest_by_leaf: list[dict[tuple[int, int], tuple[Domain, ...]]] = [{} for _ in range(greedy.number + 1)]
    fewest_by_leaf[0][(plan.leaders, needed_count * plan.slice_size)] = ()
    for domain in ordered_domains:
        for number in range(greedy.number, 0, -1):
            for leaders, pods in sorted(fewest_by_leaf[number - 1]):
                if leaders <= 0 and pods <= 0:
                    continue
                more = (*fewest_by_leaf[number - 1][(leaders, pods)], domain)
                if leaders > 0 and domain.leaders > 0:
                    fewest_by_leaf[number].setdefault((leaders - domain.leaders, pods - domain.pods_with_leader), more)
                if domain.slices > 0:
                    fewest_by_leaf[number].setdefault((leaders, pods - domain.pods), more)
    best = max((pods for leaders, pods in fewest_by_leaf[-1] if leaders == 0 and pods <= 0), default=None)
    return None if best is None else fewest_by_leaf[-1][(0, best)]


def _by_entropy(domain: Domain) -> tuple[int, int, float, tuple[str, ...]]:
    """Of domains that hold as much, the one comes first whose pods would be spread most evenly below it."""
    return -domain.leaders, -domain.slices_with_leader, -_entropy(domain.children), domain.values


def _entropy(domains: Iterable[Domain]) -> float:
    counts = [domain.pods for domain in domains if domain.pods > 0]
    return sum(-count / sum(counts) * log2(count / sum(counts)) for count in counts)


def _share_out(domains: Sequence[Domain], needed_count: int, plan: Plan, threshold: int) -> list[Domain] | None:
    """The domains with what each gets: the threshold, and the first ones what remains."""
    chosen_domains = _fewest(domains, needed_count, plan, by_entropy=False)
    if chosen_domains is None or needed_count < len(chosen_domains) * threshold:
        return None
    placed_domains = sorted(chosen_domains, key=lambda domain: leader_order(domain, plan))
    extra, leaders = needed_count - len(placed_domains) * threshold, plan.leaders
    for domain in placed_domains:
        room = domain.slices_with_leader if leaders > 0 else domain.slices
        more = min(room - threshold, extra) if leaders > 0 or extra > 0 else 0
        domain.leaders = 1 if leaders > 0 else 0
        leaders -= domain.leaders
        domain.slices = domain.slices_with_leader = threshold + more
        domain.pods = domain.slices * plan.slice_size
        domain.pods_with_leader = domain.pods - domain.leaders
        extra -= more
    return placed_domains if extra <= 0 and leaders <= 0 else None


def _without_small(siblings: Iterable[Domain], threshold: int, plan: Plan) -> list[Domain]:
    """Copies of the domains, in which those count nothing that hold less than the threshold."""
    domains = [_copy(domain) for domain in siblings]
    for domain in domains:
        for child in domain.children:
            _prune(child, threshold, plan)
    for domain in domains:
        roll_up(domain, replace(plan, size_at={}), plan.level)
        _prune(domain, threshold, plan)
    return domains


def _prune(domain: Domain, threshold: int, plan: Plan) -> None:
    if domain.slices < threshold:
        _clear(domain, only_leaders=False)
    elif plan.leaders and domain.leaders > 0 and domain.slices_with_leader < threshold:
        _clear(domain, only_leaders=True)


def _clear(domain: Domain, *, only_leaders: bool) -> None:
    domain.pods_with_leader = domain.slices_with_leader = domain.leaders = 0
    if not only_leaders:
        domain.pods = domain.slices = 0
    for child in domain.children:
        _clear(child, only_leaders=only_leaders)


def _copy(domain: Domain) -> Domain:
    domain_copy = Domain(domain.values)
    for name in ("leaders", "pods", "pods_with_leader", "score", "slices", "slices_with_leader"):
        setattr(domain_copy, name, getattr(domain, name))
    domain_copy.children = [_copy(child) for child in domain.children]
    return domain_copy
