"""The pod sets of one flavor, group after group: what each takes counts for the next, and pods that run stay.

With the gate ElasticJobsViaWorkloadSlicesWithTAS a slice of an elastic job keeps the places of the slice that it
replaces, since the pods there go on under it: only pods that it has beyond them are placed, and if it has fewer, the
last places are given up. If one of them is on a node that is gone, the whole group is placed again.

Kueue 0.19.2 counts the pods that stay twice while it looks for places of the others: the slice that is replaced still
uses its nodes, and its places are assumed once more. So pods may find no room on a node on which there is some.
Source: kueue@v0.19.2 pkg/cache/scheduler/{tas_flavor_snapshot,tas_elastic_workloads}.go.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from kueue_admission.decide.model import DomainAssignment
from kueue_admission.decide.topology.counts import Usage
from kueue_admission.decide.topology.domains import Domains, TopologyState
from kueue_admission.decide.topology.requests import Failure, PlacementRequest
from kueue_admission.decide.topology.search import place_group


def place(
    state: TopologyState,
    requests: Sequence[PlacementRequest],
    *,
    empty: bool,
    assumed: Usage | None = None,
    within: tuple[str, ...] = (),
) -> dict[str, Domains] | Failure:
    """Domains for each pod set of one flavor, or the first that does not fit; with `empty`, on an empty topology.

    `assumed` is what other pod sets of the workload take; what these take is added. `within` is a domain to stay in.
    """
    if assumed is None:
        assumed = {}
    groups: dict[str, list[PlacementRequest]] = {}
    for index, request in enumerate(requests):
        topology = request.pod_set.topology
        name = topology.group if topology is not None and topology.group is not None else str(index)
        groups.setdefault(name, []).append(request)
    placements: dict[str, Domains] = {}
    for members in groups.values():
        workers, leader = members[0], members[1] if len(members) > 1 else None
        if leader is not None and leader.count > workers.count:
            workers, leader = leader, workers
        previous = _kept(state, workers, leader)
        more = workers.count
        if previous:
            more -= sum(domain.count for domain in previous[workers.pod_set.name])
            leader = None if leader is None or leader.pod_set.name in previous else leader
            _assume(assumed, members, previous)
        if more > 0 or leader is not None:
            domains_there = place_group(state, replace(workers, count=more), leader, assumed, within, empty=empty)
            if isinstance(domains_there, str):
                return Failure((workers if previous else members[0]).pod_set.name, domains_there)
            _assume(assumed, members, domains_there)
            previous |= {
                name: state.merged((*domains, *previous.get(name, ()))) for name, domains in domains_there.items()
            }
        placements |= previous
    return placements


def _assume(usage: Usage, members: Sequence[PlacementRequest], placements: dict[str, Domains]) -> None:
    for request in members:
        for domain in placements.get(request.pod_set.name, ()):
            assumed_usage = usage.setdefault(domain.values, {})
            for resource, amount in request.per_pod.items():
                assumed_usage[resource] = assumed_usage.get(resource, 0) + amount * domain.count


def _kept(state: TopologyState, workers: PlacementRequest, leader: PlacementRequest | None) -> dict[str, Domains]:
    """The places in which pods of a group stay; empty if all of it is placed again."""
    before = {
        request.pod_set.name: request.previous
        for request in (workers, leader)
        if request is not None and request.previous
    }
    if workers.pod_set.name not in before or any(state.stale(domains) for domains in before.values()):
        return {}
    domain_assignments: list[DomainAssignment] = []
    pods_left = workers.count
    for domain in before[workers.pod_set.name]:
        domain_assignments.append(DomainAssignment(domain.values, min(domain.count, pods_left)))
        pods_left -= domain_assignments[-1].count
    return {**before, workers.pod_set.name: tuple(domain for domain in domain_assignments if domain.count)}
