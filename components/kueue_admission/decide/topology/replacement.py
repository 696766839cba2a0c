"""Nodes that fail under a workload: which of them Kueue gives up, and where the pods go that were on one.

Only pods of the lost node move. The workload keeps its quota and all its other places, so no other workload loses
anything; in exchange the new place has to keep what the old one promised: the same domain where one is required, the
same slice where the slice is not whole without it. If there is no such place at once, Kueue evicts the workload
(TASFailedNodeReplacementFailFast) instead of letting the other pods wait; so it does if a second node fails meanwhile.

With that gate off, the pods wait: Kueue preempts others for a place if it may, and tries again and again. It does so
with the workload as it was when the node failed (`WorkloadInfo.lost_nodes`), and does not see that the node is well
again; nothing but a new place, an eviction or the end of the workload stops it.

A node that is not ready, or has a taint that the pods do not tolerate, counts as failed when none of the pods runs
there any more; the objects that the core is given are those of that moment. Kueue looks at all pods of the namespace
on that node, since the second of two field selectors replaces the first (`ListPodsForWorkloadSlice`): a pod of another
job, or of a DaemonSet in that namespace, keeps the node from being replaced (`Node.running`).
Source: kueue@v0.19.2 pkg/controller/tas/{node_controller,pods}.go, pkg/cache/scheduler/tas_flavor_snapshot.go
(findReplacementAssignment, requiredReplacementDomain, findIncompleteSliceDomain).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from kueue_admission.decide.gates import Gates
from kueue_admission.decide.model import Admission, Node, ResourceFlavor, Workload
from kueue_admission.decide.pods import SliceConstraint, Toleration, TopologyRequest
from kueue_admission.decide.topology.counts import Usage
from kueue_admission.decide.topology.domains import Domains, TopologyState
from kueue_admission.decide.topology.groups import place
from kueue_admission.decide.topology.requests import Failure, PlacementRequest
from kueue_admission.kernel.names import HOSTNAME_LABEL


def changed_nodes(before: Iterable[Node], after: Iterable[Node]) -> dict[str, Node | None]:
    """The nodes that Kueue looks at again: other readiness, taints or pods, new, or gone (None)."""
    old = {node.name: node for node in before}
    nodes_changed: dict[str, Node | None] = {}
    for node in after:
        known_node = old.pop(node.name, None)
        if known_node is None or (known_node.ready, known_node.taints, known_node.running) != (
            node.ready,
            node.taints,
            node.running,
        ):
            nodes_changed[node.name] = node
    return {**nodes_changed, **dict.fromkeys(old)}


def judge_nodes(
    workload: Workload,
    admission: Admission,
    flavors: Mapping[str, ResourceFlavor],
    node_changes: Mapping[str, Node | None],
    gates: Gates,
) -> dict[str, bool]:
    """Of the nodes that changed, those that the workload has places on, and whether they have failed for its pods."""
    tolerations = {pod_set.name: pod_set.tolerations for pod_set in workload.pod_sets}
    verdicts: dict[str, bool] = {}
    for assignment in admission.pod_sets:
        names = dict.fromkeys(domain.values[-1] for domain in assignment.topology or ())
        for name in names if assignment.topology_levels[-1:] == (HOSTNAME_LABEL,) else ():
            if name in node_changes:
                used_flavors = {flavor for _, flavor in assignment.flavors if flavor in flavors}
                by_flavors = [toleration for flavor in used_flavors for toleration in flavors[flavor].tolerations]
                if not gates.behaviours.tolerates_taints_by_flavor:
                    by_flavors = []
                tolerated_taints = (*tolerations.get(assignment.name, ()), *by_flavors)
                has_failed = _has_failed(node_changes[name], workload.namespace, tolerated_taints, gates)
                verdicts[name] = verdicts.get(name, False) or has_failed
    return verdicts


def _has_failed(node: Node | None, namespace: str, tolerations: tuple[Toleration, ...], gates: Gates) -> bool:
    if node is None:
        return True
    has_pods = namespace in node.running and gates.tas_replace_node_on_pod_termination
    if not node.ready:
        waits = gates.behaviours.waits_for_pods_of_unready_nodes
        return not (has_pods and waits) or gates.tas_replace_node_due_to_not_ready_over_fixed_time
    if has_pods or not gates.tas_replace_node_on_node_taints:
        return False
    taints = (taint for taint in node.taints if taint.effect in ("NoSchedule", "NoExecute"))
    return any(not any(toleration.tolerates(taint) for toleration in tolerations) for taint in taints)


def replace_node(
    state: TopologyState,
    requests: Sequence[PlacementRequest],
    held_domains: Mapping[str, Domains],
    node: str,
    usage: Usage,
) -> dict[str, Domains] | Failure:
    """All places of each pod set that had some on `node`, with other ones in place of those; or why there are none."""
    placements: dict[str, Domains] = {}
    for request in requests:
        name = request.pod_set.name
        domains = tuple(domain for domain in held_domains[name] if domain.values[-1] != node)
        lost = sum(domain.count for domain in held_domains[name]) - sum(domain.count for domain in domains)
        stale = state.stale(domains)
        if stale is not None:
            why = (
                "Cannot replace the node, because the existing topologyAssignment is invalid, as it contains the stale"
            )
            return Failure(name, f"{why} domain {stale.values[0]}")
        within = _required_domain(state, request, domains, lost)
        request_left = replace(request, count=lost)
        if within and request.constraints and lost % request.constraints[0].size:
            request_left = replace(
                request_left, pod_set=replace(request.pod_set, topology=_for_the_rest(request, lost))
            )
        replacement = place(state, [request_left], empty=False, assumed=usage, within=within)
        if isinstance(replacement, Failure):
            return replacement
        if not replacement[name]:
            return Failure(name, f"cannot find replacement assignment for unhealthy node: {node}")
        placements[name] = state.merged((*domains, *replacement[name]))
    return placements


def _for_the_rest(request: PlacementRequest, lost: int) -> TopologyRequest:
    """The wishes of pods that are part of a slice: those of the innermost slices that they fill."""
    fitting: Sequence[SliceConstraint] = [
        constraint for constraint in request.constraints if lost % constraint.size == 0
    ]
    assert request.pod_set.topology is not None
    return replace(request.pod_set.topology, slices=tuple(fitting[-1:]))


def _required_domain(state: TopologyState, request: PlacementRequest, domains: Domains, lost: int) -> tuple[str, ...]:
    """The domain in which the pods have to stay; empty: any."""
    topology = request.pod_set.topology
    if not domains or topology is None:
        return ()
    broken = [constraint for constraint in request.constraints if lost % constraint.size]
    if broken and lost % request.constraints[0].size:
        return _incomplete_slice(state, domains, lost, broken[-1])
    if topology.required is None or topology.required not in state.levels:
        return ()
    return state.leaves[domains[0].values].values[: state.levels.index(topology.required) + 1]


def _incomplete_slice(state: TopologyState, domains: Domains, lost: int, slices: SliceConstraint) -> tuple[str, ...]:
    """A domain whose slices are whole with the lost pods; where there are several, Kueue takes any of them."""
    if slices.level not in state.levels:
        return ()
    depth = state.levels.index(slices.level) + 1
    pods: dict[tuple[str, ...], int] = {}
    for domain in domains:
        values = state.leaves[domain.values].values[:depth]
        pods[values] = pods.get(values, 0) + domain.count
    return min((values for values, count in pods.items() if (count + lost) % slices.size == 0), default=())
