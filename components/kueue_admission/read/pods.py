"""Pod templates and pod sets from raw Kubernetes objects.

Source: kueue@v0.19.2 pkg/workload/resources.go, pkg/util/pod/pod.go, pkg/controller/jobframework/tas.go.
"""

from __future__ import annotations

import json
from typing import Any, Final

from kueue_admission.decide.amounts import request_amount, resource_order
from kueue_admission.decide.pods import (
    NodeSelectorTerm,
    PodSet,
    Requirement,
    ResourceRules,
    SliceConstraint,
    Toleration,
    TopologyRequest,
)
from kueue_admission.kernel.quantity import Quantity
from kueue_admission.read.fields import Fields
from kueue_admission.read.pod_requests import Requests, add_requests, container_requests, pod_requests

_SHAPE_FIELDS: Final = ("runtimeClassName", "priority", "topologySpreadConstraints", "overhead")
_OPERATORS: Final = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")


def parse_pod_set(
    fields: Fields, name: str, count: int, min_count: int | None, topology: TopologyRequest | None, rules: ResourceRules
) -> PodSet:
    """A pod set from its pod's `spec`, without the devices that it claims."""
    requests = pod_requests(fields)
    quota = _quota_requests(requests, rules)
    affinity = fields.child("affinity").child("nodeAffinity")
    required_affinity = affinity.child("requiredDuringSchedulingIgnoredDuringExecution")
    terms = None
    if "requiredDuringSchedulingIgnoredDuringExecution" in affinity:
        terms = tuple(_term(term) for term in required_affinity.children("nodeSelectorTerms"))
    return PodSet(
        name=name,
        count=count,
        min_count=min_count,
        requests=_amounts(quota),
        node_requests=_amounts(requests),
        node_selector=fields.pairs("nodeSelector"),
        affinity=terms,
        preferred=tuple(
            (item.integer("weight", least=0), _term(item.child("preference")))
            for item in affinity.children("preferredDuringSchedulingIgnoredDuringExecution")
        ),
        tolerations=tuple(parse_toleration(item) for item in fields.children("tolerations")),
        topology=topology,
        shape=_shape(fields),
        in_container=_in_container(fields),
    )


def _in_container(fields: Fields) -> tuple[tuple[str, int], ...]:
    most: dict[str, int] = {}
    for kind in ("containers", "initContainers"):
        for container in fields.children(kind):
            for name, quantity in container_requests(container).items():
                if "/" in name:
                    most[name] = max(most.get(name, 0), request_amount(name, quantity))
    return tuple(sorted(most.items()))


def _amounts(requests: Requests) -> tuple[tuple[str, int], ...]:
    return tuple((name, request_amount(name, requests[name])) for name in sorted(requests, key=resource_order))


def parse_toleration(fields: Fields) -> Toleration:
    """A toleration of a pod or a flavor."""
    return Toleration(
        fields.text("key"), fields.text("operator") or "Equal", fields.text("value"), fields.text("effect")
    )


def _term(fields: Fields) -> NodeSelectorTerm:
    """A node selector term; Kueue looks at its `matchExpressions` only."""
    expressions = []
    for item in fields.children("matchExpressions"):
        operator = item.text("operator")
        if operator not in _OPERATORS:
            item.wrong("operator", f"is {operator!r}", f"write one of {', '.join(_OPERATORS)}")
        expressions.append(Requirement(item.required_text("key"), operator, item.texts("values")))
    return NodeSelectorTerm(tuple(expressions))


def parse_topology_request(fields: Fields) -> TopologyRequest | None:
    """A Workload's `podSets[].topologyRequest`; None when there is none."""
    constraints = [
        SliceConstraint(item.required_text("topology"), item.integer("size", 1, least=1))
        for item in fields.children("podsetSliceRequiredTopologyConstraints")
    ]
    if "podSetSliceRequiredTopology" in fields:
        constraints.append(
            SliceConstraint(fields.text("podSetSliceRequiredTopology"), fields.integer("podSetSliceSize", 0, least=0))
        )
    if not fields.data:
        return None
    return TopologyRequest(
        required=fields.text("required") or None,
        preferred=fields.text("preferred") or None,
        unconstrained=fields.flag("unconstrained"),
        group=fields.text("podSetGroupName") or None,
        slices=tuple(constraints),
    )


def _quota_requests(requests: Requests, rules: ResourceRules) -> Requests:
    """Requests as they count against quota (kueue dropExcludedResources, applyResourceTransformations)."""
    quantities = {
        name: quantity
        for name, quantity in requests.items()
        if not any(name.startswith(prefix) for prefix in rules.exclude_prefixes)
    }
    by_input = {rule.input: rule for rule in rules.transformations}
    if not any(name in by_input for name in quantities):
        return quantities
    retained_requests: Requests = {}
    generated_requests: dict[str, Quantity] = {}
    for name, quantity in quantities.items():
        rule = by_input.get(name)
        if rule is None or rule.retain:
            retained_requests[name] = quantity
        if rule is None:
            continue
        value = quantity.decimal
        if rule.multiply_by in quantities:
            value *= quantities[rule.multiply_by].decimal
        for output, factor in rule.outputs:
            add_requests(generated_requests, {output: Quantity(value * factor.decimal)})
    for name, quantity in generated_requests.items():
        add_requests(retained_requests, {name: quantity if quantity > Quantity(0) else Quantity(0)})
    return retained_requests


def _shape(fields: Fields) -> str:
    """The part of a pod spec that tells two workloads apart to the scheduler, as canonical text (SpecShape)."""
    shape: dict[str, Any] = {name: fields.data[name] for name in _SHAPE_FIELDS if name in fields}
    for kind in ("initContainers", "containers"):
        shape[kind] = [_container_shape(container) for container in fields.children(kind)]
    shape["affinity"] = fields.data.get("affinity")
    return json.dumps(shape, sort_keys=True, default=str)


def _container_shape(container: Fields) -> dict[str, Any]:
    return {
        "resources": sorted((name, str(q)) for name, q in container_requests(container).items()),
        "ports": container.data.get("ports"),
    }
