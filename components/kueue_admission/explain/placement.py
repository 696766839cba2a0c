"""Why pods cannot be placed in a topology: what each node of the flavor lacks, and what the domains have room for.

A node is asked what the search asks of it (`decide.topology`), in that order; the first that it lacks counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from heapq import nsmallest
from typing import NamedTuple

from kueue_admission.decide.amounts import format_amount
from kueue_admission.decide.engine import Engine
from kueue_admission.decide.flavors.eligibility import is_topology_implied, is_topology_requested
from kueue_admission.decide.flavors.evidence import TopologyMismatch, TopologyPlacement
from kueue_admission.decide.model import Node
from kueue_admission.decide.pods import PodSet, Taint
from kueue_admission.decide.reasons import QuotaReservedReason
from kueue_admission.decide.scheduler.entry import Entry
from kueue_admission.decide.topology.domains import TopologyState, count_in
from kueue_admission.decide.topology.requests import PlacementRequest
from kueue_admission.decide.workload.state import WorkloadInfo
from kueue_admission.explain.answer import DomainRoom, NodeGroup, Placement
from kueue_admission.explain.figures import LISTED


class Unplaced(NamedTuple):
    """A pod set that no place was found for in one flavor's topology."""

    pod_set: PodSet
    state: TopologyState
    request: PlacementRequest


class Lack(NamedTuple):
    """What keeps pods off a node: a word for programs, the sentence, and the taint where it is one."""

    why: str
    reason: str
    taint: Taint | None = None


def unplaced(engine: Engine, entry: Entry) -> list[Unplaced]:
    """The pod sets that the topology of a flavor has no place for, or whose wishes it does not have the level for."""
    unplaced_items = []
    for result in entry.assignment.pod_sets:
        pod_set = next(ps for ps in entry.info.workload.pod_sets if ps.name == result.name)
        evidence = [
            *result.evidence,
            *(e for _, flavor_attempts in result.considered for attempt in flavor_attempts for e in attempt.evidence),
        ]
        flavors = dict.fromkeys(e.flavor for e in evidence if isinstance(e, TopologyPlacement | TopologyMismatch))
        # Where quota is used up too, Kueue's message is about that, and only its reason about the topology.
        failure = QuotaReservedReason.TOPOLOGY_PLACEMENT_FAILED
        flavors |= dict.fromkeys(flavor for flavor, reason in result.overrides.items() if reason is failure)
        for flavor in flavors:
            state = engine.cache.topologies.get(flavor)
            if state is not None and is_topology_requested(pod_set, entry.queue):
                request = PlacementRequest(pod_set, result.count, is_topology_implied(pod_set, entry.queue))
                unplaced_items.append(Unplaced(pod_set, state, request))
    return unplaced_items


def placements_of(engine: Engine, entry: Entry | None) -> tuple[Placement, ...]:
    """The evidence for each pod set that could not be placed, or may be on nodes that it cannot use."""
    if entry is None:
        return ()
    all_placements = [_placement(engine, item) for item in unplaced(engine, entry)]
    return (
        *all_placements,
        *(placement for item in _placed(engine, entry) if (placement := _placement(engine, item)).unseen),
    )


def _placed(engine: Engine, entry: Entry) -> Iterator[Unplaced]:
    """The pod sets that have a place."""
    for result in entry.assignment.pod_sets:
        pod_set = next(ps for ps in entry.info.workload.pod_sets if ps.name == result.name)
        if result.topology is not None:
            for flavor in sorted(
                {choice.flavor for choice in result.flavors.values()} & engine.cache.topologies.keys()
            ):
                request = PlacementRequest(pod_set, result.count, is_topology_implied(pod_set, entry.queue))
                yield Unplaced(pod_set, engine.cache.topologies[flavor], request)


def _placement(engine: Engine, item: Unplaced) -> Placement:
    state, pod_set = item.state, item.pod_set
    own = nodes_of(engine, state)
    unseen = () if state.by_host else _grouped(own, lambda node: next(_pod_lacks(item, node, dict(node.labels)), None))
    request = pod_set.topology
    mode, level = "", state.levels[-1]
    if request is not None and not item.request.implied:
        level = request.required or request.preferred or level
        mode = "required" if request.required else "preferred" if request.preferred else ""
    slices = (
        "; ".join(f"slices of {slice_request.size} in one {slice_request.level}" for slice_request in request.slices)
        if request
        else ""
    )
    room_level = request.slices[0].level if request is not None and request.slices else level
    rooms = list(_rooms(item, room_level)) if room_level in state.levels else []
    return Placement(
        pod_set=pod_set.name,
        count=item.request.count,
        flavor=state.flavor.name,
        topology=state.name,
        levels=state.levels,
        mode=mode,
        level=level,
        room_level=room_level,
        slices=slices,
        node_labels=", ".join(f"{key}={value}" for key, value in state.flavor.node_labels),
        nodes=len(own) if engine.objects.nodes else None,
        lacking=_grouped(own, lambda node: lacking(item, node)),
        unseen=unseen,
        rooms=tuple(nsmallest(LISTED, rooms, key=lambda room: (-room.pods, room.domain))),
        domains=len(rooms),
    )


def _grouped(nodes: list[Node], lack_on: Callable[[Node], Lack | None]) -> tuple[NodeGroup, ...]:
    """The nodes that lack something, by what that is; the largest group first."""
    names_by_lack: dict[Lack, list[str]] = {}
    for node in nodes:
        lack = lack_on(node)
        if lack is not None:
            names_by_lack.setdefault(lack, []).append(node.name)
    groups = [
        NodeGroup(lack.why, lack.reason, tuple(names[:LISTED]), len(names)) for lack, names in names_by_lack.items()
    ]
    return tuple(sorted(groups, key=lambda group: -group.count))


def nodes_of(engine: Engine, state: TopologyState) -> list[Node]:
    """The nodes with the labels of the flavor."""
    labels_needed = dict(state.flavor.node_labels).items()
    return [node for node in engine.objects.nodes if labels_needed <= dict(node.labels).items()]


def is_on(state: TopologyState, info: WorkloadInfo) -> bool:
    """Whether the workload has pods on nodes of the topology."""
    return any(domain.values in state.leaves for pod_set in info.pod_sets for domain in pod_set.topology or ())


def lacking(item: Unplaced, node: Node) -> Lack | None:
    """The first thing that keeps a pod off the node; None if one fits there."""
    return next(_lacks(item, node), None)


def _lacks(item: Unplaced, node: Node) -> Iterator[Lack]:
    state, labels = item.state, dict(node.labels)
    if not node.ready:
        yield Lack("NotReady", "not Ready")
    if node.unschedulable:
        yield Lack("Unschedulable", "cordoned (spec.unschedulable)")
    missing_levels = [level for level in state.levels if level not in labels]
    if missing_levels:
        yield Lack("MissingLevel", f"without the label {', '.join(missing_levels)} of Topology {state.name}")
    elif state.by_host:
        yield from _pod_lacks(item, node, labels)
        yield from _room_lacks(item, node)


def _pod_lacks(item: Unplaced, node: Node, labels: dict[str, str]) -> Iterator[Lack]:
    pod_set = item.pod_set
    tolerations = (*pod_set.tolerations, *item.state.flavor.tolerations)
    for taint in node.taints:
        if taint.effect in ("NoSchedule", "NoExecute") and not any(
            toleration.tolerates(taint) for toleration in tolerations
        ):
            yield Lack("UntoleratedTaint", f"taint {taint.text}, which neither pods nor flavor tolerate", taint)
    unmet = [f"{key}={value}" for key, value in pod_set.node_selector if labels.get(key) != value]
    if unmet:
        yield Lack("NodeSelector", f"without {', '.join(unmet)}, which the pods select")
    if pod_set.affinity is not None and not any(term.matches(labels) for term in pod_set.affinity):
        yield Lack("Affinity", "the pods' node affinity excludes them")


def _room_lacks(item: Unplaced, node: Node) -> Iterator[Lack]:
    leaf = item.state.leaves.get((dict(node.labels)[item.state.levels[-1]],))
    if leaf is None:
        return
    per_pod, free = item.request.per_pod, item.state.free(leaf, empty=False)
    times, limiting = count_in(per_pod, free)
    if times:
        return
    has, usage = dict(node.allocatable).get(limiting, 0), dict(node.used).get(limiting, 0)

    def show(amount: int) -> str:
        return format_amount(limiting, amount)

    others = f", pods outside Kueue's topologies use {show(usage)}" if usage else ""
    yield Lack(
        "Resource",
        f"{show(max(0, free.get(limiting, 0)))} of {show(has)} {limiting} free, a pod asks for "
        f"{show(per_pod[limiting])}{others}",
    )


def _rooms(item: Unplaced, level: str) -> Iterator[DomainRoom]:
    """How many pods fit into each domain of the level, now and without Kueue's workloads."""
    state, depth = item.state, item.state.levels.index(level) + 1
    now: dict[tuple[str, ...], int] = {}
    empty: dict[tuple[str, ...], int] = {}
    for leaf in state.leaves.values():
        values = leaf.values[:depth]
        fits = leaf.node is None or next(_pod_lacks(item, leaf.node, dict(leaf.node.labels)), None) is None
        for rooms, without in ((now, False), (empty, True)):
            pods = count_in(item.request.per_pod, state.free(leaf, empty=without))[0] if fits else 0
            rooms[values] = rooms.get(values, 0) + pods
    for values, pods in now.items():
        yield DomainRoom("/".join(values), pods, empty[values])
