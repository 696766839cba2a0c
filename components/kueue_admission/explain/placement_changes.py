"""Changes for pods that cannot be placed in a topology: tolerations, selectors, levels, nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import Final

from kueue_admission.decide.amounts import format_amount
from kueue_admission.decide.engine import Engine
from kueue_admission.decide.flavors.eligibility import is_topology_requested
from kueue_admission.decide.flavors.evidence import TopologyMismatch
from kueue_admission.decide.model import Node, ResourceFlavor
from kueue_admission.decide.pods import PodSet, Taint, Toleration, TopologyRequest
from kueue_admission.decide.scheduler.entry import Entry
from kueue_admission.explain.entry_text import without_flavor
from kueue_admission.explain.placement import Unplaced, lacking, nodes_of, unplaced
from kueue_admission.explain.trials import Edit, Trials, add_objects, edit_named, edit_pods, least, together
from kueue_admission.explain.worker_state import listed
from kueue_admission.kernel.names import HOSTNAME_LABEL
from kueue_admission.kernel.suggest import nearest

_OF_KUBERNETES: Final = "node.kubernetes.io/"
"""Taints that Kubernetes sets while something is wrong with a node: nothing to tolerate."""
_LITTLE: Final = {"cpu": 1000, "memory": 1 << 30}
"""What a pod may ask for that needs little: one CPU, else one GiB."""
_MOST_NODES: Final = 64
"""How many more nodes are tried at most."""


def placement_changes(trials: Trials, entry: Entry) -> None:
    """What lets the topology take the pods: each kind of change alone, the mildest of its kind."""
    engine = trials.before.engine
    for item in unplaced(engine, entry):
        _tolerate(trials, engine, item)
        _drop_selectors(trials, engine, item)
        _other_level(trials, item)
        _fix_nodes(trials, engine, item)
        _more_nodes(trials, engine, item)
    _agree_about_topology(trials, engine, entry)
    _ask_for_something(trials, entry)


def _ask_for_something(trials: Trials, entry: Entry) -> None:
    """A request of a covered resource for pods that have none, and so get no flavor whose topology they could be in."""
    group_of = entry.queue.group_of
    name = next((resource for resource in _LITTLE if resource in group_of), next(iter(group_of), ""))
    amount = _LITTLE.get(name, 1)
    for pod_set in without_flavor(entry):

        def asking(each_pod_set: PodSet, target: str = pod_set.name) -> PodSet:
            if each_pod_set.name != target:
                return each_pod_set
            more = ((name, amount),)
            return replace(
                each_pod_set, requests=each_pod_set.requests + more, node_requests=each_pod_set.node_requests + more
            )

        what = (
            f"request {format_amount(name, amount)} {name} in the pods of pod set {pod_set.name}, or something else "
            f"that ClusterQueue {entry.queue.name} covers"
        )
        trials.offer("requests", what, edit_pods(asking))


def _agree_about_topology(trials: Trials, engine: Engine, entry: Entry) -> None:
    """For pods that ask for a topology that the flavor does not have, or the other way round."""
    by_name = {pod_set.name: pod_set for pod_set in entry.info.workload.pod_sets}
    for result in entry.assignment.pod_sets:
        evidence = [
            piece
            for _, flavor_attempts in result.considered
            for attempt in flavor_attempts
            for piece in attempt.evidence
        ]
        flavors = [engine.cache.flavors[piece.flavor] for piece in evidence if isinstance(piece, TopologyMismatch)]
        asks = is_topology_requested(by_name[result.name], entry.queue)
        if not asks and any(flavor.topology is not None for flavor in flavors):
            what = 'annotate the pods with kueue.x-k8s.io/podset-unconstrained-topology: "true"'
            _offer_wish(trials, result.name, TopologyRequest(unconstrained=True), what)
        elif asks and any(flavor.topology is None for flavor in flavors):
            _offer_wish(trials, result.name, None, "remove the topology annotations of the pods")


def _offer_wish(trials: Trials, name: str, wish: TopologyRequest | None, what: str) -> None:
    edit = edit_pods(lambda each: replace(each, topology=wish) if each.name == name else each)
    trials.offer("topology", what, edit)


def _edit_pod_set(item: Unplaced, change: Callable[[PodSet], PodSet]) -> Edit:
    name = item.pod_set.name
    return edit_pods(lambda pod_set: change(pod_set) if pod_set.name == name else pod_set)


def _tolerate(trials: Trials, engine: Engine, item: Unplaced) -> None:
    """One taint at a time, and all of them where no single one is enough."""
    taints = _untolerated(engine, item)
    enough = [_offer_toleration(trials, item, [taint]) for taint in taints]
    if len(taints) > 1 and not any(enough):
        _offer_toleration(trials, item, taints)


def _untolerated(engine: Engine, item: Unplaced) -> list[Taint]:
    lacks = [lacking(item, node) for node in nodes_of(engine, item.state)]
    taints = dict.fromkeys(lack.taint for lack in lacks if lack is not None and lack.taint is not None)
    return [taint for taint in taints if not taint.key.startswith(_OF_KUBERNETES)]


def _texts(taints: list[Taint]) -> str:
    return ", ".join(taint.text for taint in taints)


def _offer_toleration(trials: Trials, item: Unplaced, taints: list[Taint]) -> bool:
    what = f"add a toleration for {_texts(taints)} to ResourceFlavor {item.state.flavor.name} (or to the pods)"
    return trials.offer("toleration", what, _tolerating(item, taints))


def _tolerating(item: Unplaced, taints: list[Taint]) -> Edit:
    tolerations = tuple(Toleration(taint.key, "Equal", taint.value, taint.effect) for taint in taints)

    def tolerating(flavor: ResourceFlavor) -> ResourceFlavor:
        return replace(flavor, tolerations=(*flavor.tolerations, *tolerations))

    return edit_named("flavors", (item.state.flavor.name,), tolerating)


def _drop_selectors(trials: Trials, engine: Engine, item: Unplaced) -> None:
    """The pods' own selector, or affinity, where it keeps them off nodes of the flavor."""
    own, pod_set = nodes_of(engine, item.state), item.pod_set
    unmet = [
        (key, value) for key, value in pod_set.node_selector if any(dict(node.labels).get(key) != value for node in own)
    ]
    if unmet:
        names = ", ".join(f"{key}={value}" for key, value in unmet)
        selectors = tuple(pair for pair in pod_set.node_selector if pair not in unmet)
        edit = _edit_pod_set(item, lambda each: replace(each, node_selector=selectors))
        trials.offer("nodeSelector", f"remove {names} from the nodeSelector of the pods", edit)
    if pod_set.affinity is not None:
        edit = _edit_pod_set(item, lambda each: replace(each, affinity=None))
        trials.offer("affinity", "remove the node affinity of the pods", edit)


def _other_level(trials: Trials, item: Unplaced) -> None:
    """A wider level, or one that the Topology has; preferred instead of required; slices at a wider level."""
    request = item.pod_set.topology
    if request is None or item.request.implied:
        return
    levels = item.state.levels
    for field, level in (("required", request.required), ("preferred", request.preferred)):
        if level is not None:
            _try_levels(trials, item, levels, level, f"podset-{field}-topology", partial(_asking, request, field))
    if request.required in levels:
        softer = replace(request, required=None, preferred=request.required)
        _offer_request(trials, item, softer, f"prefer {request.required} instead of requiring it")
    for index, slice_request in enumerate(request.slices):

        def wider(to: str, index: int = index) -> TopologyRequest:
            slices = [replace(one, level=to) if n == index else one for n, one in enumerate(request.slices)]
            return replace(request, slices=tuple(slices))

        _try_levels(trials, item, levels, slice_request.level, "podset-slice-required-topology", wider)


def _asking(request: TopologyRequest, field: str, level: str) -> TopologyRequest:
    return replace(request, required=level) if field == "required" else replace(request, preferred=level)


def _try_levels(
    trials: Trials,
    item: Unplaced,
    levels: tuple[str, ...],
    level: str,
    annotation: str,
    asking: Callable[[str], TopologyRequest],
) -> None:
    """The nearest wider level that admits; where the Topology lacks the level, the one with the nearest name first."""
    if level in levels:
        others = list(reversed(levels[: levels.index(level)]))
    else:
        ends = {level.rpartition("/")[2]: level for level in levels}
        near = nearest(level.rpartition("/")[2], ends)
        others = [*([ends[near]] if near else ()), *reversed(levels)]
    for other in others:
        what = f"ask for the level {other} instead of {level} (annotation kueue.x-k8s.io/{annotation})"
        if _offer_request(trials, item, asking(other), what, only_if_admitted=True):
            return


def _offer_request(
    trials: Trials, item: Unplaced, request: TopologyRequest, what: str, *, only_if_admitted: bool = False
) -> bool:
    edit = _edit_pod_set(item, lambda pod_set: replace(pod_set, topology=request))
    return trials.offer_if_admitted("level", what, edit) if only_if_admitted else trials.offer("level", what, edit)


def _fix_nodes(trials: Trials, engine: Engine, item: Unplaced) -> None:
    """Nodes that are cordoned, not Ready, or lack the label of a level: each kind alone, else all with the taints."""
    own, flavor = nodes_of(engine, item.state), item.state.flavor
    fixes = list(_node_fixes(item, own))
    enough = [trials.offer(kind, what, edit) for kind, what, edit in fixes]
    taints = _untolerated(engine, item)
    if taints:
        fixes.append(
            ("toleration", f"tolerate {_texts(taints)} in ResourceFlavor {flavor.name}", _tolerating(item, taints))
        )
    every = together(edit for _, _, edit in fixes)
    if len(fixes) > 1 and not any(enough):
        trials.offer_if_admitted("nodes", ", and ".join(what for _, what, _ in fixes), every)


def _node_fixes(item: Unplaced, own: list[Node]) -> Iterator[tuple[str, str, Edit]]:
    cordoned_nodes = [node for node in own if node.unschedulable]
    broken = [node for node in own if not node.ready]
    missing_levels = [level for level in item.state.levels if any(level not in dict(node.labels) for node in own)]
    if cordoned_nodes:
        edit = _edit_nodes(cordoned_nodes, lambda node: replace(_without_taints(node), unschedulable=False))
        yield "nodes", f"uncordon {_names(cordoned_nodes)}", edit
    if broken:
        edit = _edit_nodes(broken, lambda node: replace(_without_taints(node), ready=True))
        yield "nodes", f"make {_names(broken)} Ready", edit
    if missing_levels:
        bare = [node for node in own if any(level not in dict(node.labels) for level in missing_levels)]
        where = "" if missing_levels == [HOSTNAME_LABEL] else ", with one value for nodes that are together"
        what = f"label {_names(bare)} with {', '.join(missing_levels)}{where}"
        yield "nodeLabels", what, _edit_nodes(bare, partial(_labelled, item, own))


def _without_taints(node: Node) -> Node:
    """Without those that Kubernetes takes away as the node is uncordoned or Ready again."""
    return replace(node, taints=tuple(taint for taint in node.taints if not taint.key.startswith(_OF_KUBERNETES)))


def _labelled(item: Unplaced, own: list[Node], node: Node) -> Node:
    """With the labels that it lacks: those of a node that it may be beside, by the labels that it has."""
    labels, levels = dict(node.labels), item.state.levels
    beside = [dict(other.labels) for other in own if all(level in dict(other.labels) for level in levels)]
    model = next((b for b in beside if all(labels.get(level, b[level]) == b[level] for level in levels[:-1])), {})
    level_labels = {level: model.get(level, "the-same") for level in levels}
    return replace(node, labels=tuple(sorted({**level_labels, HOSTNAME_LABEL: node.name, **labels}.items())))


def _more_nodes(trials: Trials, engine: Engine, item: Unplaced) -> None:
    """The fewest empty copies of the largest node of the flavor, beside it."""
    usable = [node for node in nodes_of(engine, item.state) if _is_usable(item, node)]
    if not usable:
        return
    per_pod = item.request.per_pod
    model = max(usable, key=lambda node: (sum(dict(node.allocatable).get(name, 0) for name in per_pod), node.name))

    def more(count: int) -> Edit:
        names = (f"{model.name}+{number}" for number in range(count))
        nodes = (replace(model, name=name, labels=_renamed(model, name), used=()) for name in names)
        return add_objects("nodes", nodes)

    needed_count = least(min(item.request.count, _MOST_NODES), lambda count: trials.admits(more(count)))
    if needed_count is not None:
        nodes = "1 empty node" if needed_count == 1 else f"{needed_count} empty nodes"
        beside = ", ".join(f"{key}={value}" for key, value in model.labels if key in item.state.levels[:-1])
        where = f" with {beside}" if beside else ""
        trials.offer("moreNodes", f"add {nodes} like {model.name}{where}", more(needed_count))


def _is_usable(item: Unplaced, node: Node) -> bool:
    lack = lacking(item, node)
    return lack is None or lack.why == "Resource"


def _renamed(node: Node, name: str) -> tuple[tuple[str, str], ...]:
    return tuple((key, name if key == HOSTNAME_LABEL else value) for key, value in node.labels)


def _edit_nodes(nodes: Iterable[Node], change: Callable[[Node], Node]) -> Edit:
    return edit_named("nodes", {node.name for node in nodes}, change)


def _names(nodes: Iterable[Node]) -> str:
    return listed([f"node {node.name}" for node in nodes])
