"""The nodes of a cluster outside GKE as a fleet file has them: alike ones together, with what flavors name of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from kueue_admission.api.taints import tolerates
from kueue_admission.kernel.manifest import inside
from kueue_admission.read.printed_pods import PrintedTaint, PrintedToleration
from kueue_fleet.adopt.live_objects import Data, Object

_OF_PODS = ("cpu", "memory", "ephemeral-storage")


def adopt_nodes(nodes: Iterable[Object], flavors: Mapping[str, Data]) -> list[Data]:
    """The kinds of nodes that flavors lead to: of each its count, labels that flavors name, taints and allocatable.

    They are named after their flavor; nodes that no flavor leads to, such as control planes, are left out.
    """
    kinds: list[Data] = []
    for node in nodes:
        leading = [name for name, spec in flavors.items() if _leads_to(spec, node)]
        if not leading:
            continue
        known = {key for spec in flavors.values() for key in (spec.get("nodeLabels") or {})}
        labels = {key: value for key, value in _labels(node).items() if key in known}
        content = {"labels": labels, "taints": list(_taints(node)), "allocatable": dict(_amounts(node))}
        alike = next((kind for kind in kinds if content.items() <= kind.items()), None)
        if alike is None:
            names = [kind["name"] for kind in kinds]
            alike = {"name": _free(leading[0].replace(".", "-"), names), "count": 0, **content}
            kinds.append(alike)
        alike["count"] += 1
    return [{key: value for key, value in kind.items() if value not in ({}, [])} for kind in kinds]


def _labels(node: Object) -> Mapping[str, str]:
    return inside(node, "metadata", "labels")


def _leads_to(flavor: Data, node: Object) -> bool:
    """Nodes by their labels; where it names none, every node that jobs are meant for."""
    labels: Mapping[str, Any] = flavor.get("nodeLabels") or {}
    return labels.items() <= _labels(node).items() if labels else not _is_kept_apart(flavor, node)


def _is_kept_apart(flavor: Data, node: Object) -> bool:
    """Whether a node is for something else: a control plane, or one with a taint that the flavor does not know of."""
    known = [PrintedTaint.of(taint) for taint in flavor.get("nodeTaints") or ()]
    tolerations = [PrintedToleration.of(item) for item in flavor.get("tolerations") or ()]
    return "node-role.kubernetes.io/control-plane" in _labels(node) or any(
        taint not in known and not any(tolerates(entry, taint, compares=False) for entry in tolerations)
        for taint in map(PrintedTaint.of, _taints(node))
        if taint.effect != "PreferNoSchedule"
    )


def _taints(node: Object) -> Iterator[Data]:
    """Without Kubernetes' own, which say that a node is not ready."""
    for taint in inside(node, "spec").get("taints") or ():
        if not str(taint.get("key", "")).startswith("node.kubernetes.io/"):
            yield {key: taint[key] for key in ("key", "value", "effect") if taint.get(key)}


def _amounts(node: Object) -> Iterator[tuple[str, str]]:
    """Without what pods cannot request, or what there is of any node: volumes, huge pages, pods."""
    for name, amount in inside(node, "status", "allocatable").items():
        extended = "/" in name and not name.startswith("kubernetes.io/")
        if (name in _OF_PODS or extended) and str(amount) != "0":
            yield name, str(amount)


def _free(name: str, names: list[str]) -> str:
    return name if name not in names else next(f"{name}-{n}" for n in range(2, 10_000) if f"{name}-{n}" not in names)
