"""What a namespace and a cluster add to the requests of a pod, and what Kueue refuses about them.

LimitRanges of the namespace give containers defaults and bounds, a RuntimeClass gives pods its overhead. As in Kueue,
the defaults come before limits that stand for missing requests, `maxLimitRequestRatio` is not looked at, and of several
LimitRanges the smallest `max`, the largest `min` and the first default count; Kueue takes them in any order, the core
in the order of their names. The API server completes the defaults of a LimitRange when it stores it, and so do we.
Source: kueue@v0.19.2 pkg/workload/resources.go, pkg/util/limitrange; k8s.io/kubernetes pkg/apis/core/v1/defaults.go
(SetDefaults_LimitRangeItem).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from kueue_admission.decide.amounts import request_amount
from kueue_admission.read.fields import Fields
from kueue_admission.read.pod_requests import Requests, container_requests, pod_requests

_CONTAINERS: Final = ("initContainers", "containers")
_ABOVE_LIMITS: Final = "requests must not exceed its limits"
_ABOVE_MAX: Final = "requests must not be above the limitRange max"
_BELOW_MIN: Final = "requests must not be below the limitRange min"


@dataclass(slots=True)
class Bounds:
    """What the LimitRanges of a namespace say of one type, `Container` or `Pod`."""

    most: Requests = field(default_factory=dict)
    least: Requests = field(default_factory=dict)
    limits: Requests = field(default_factory=dict)
    """Default limits of a container."""
    requests: Requests = field(default_factory=dict)
    """Default requests of a container."""


Limits = Mapping[str, Bounds]
"""The LimitRanges of one namespace, by type."""
NO_LIMITS: Final[Limits] = {}
"""Of a namespace without LimitRanges."""


def parse_limit_ranges(items: Iterable[Fields]) -> dict[str, dict[str, Bounds]]:
    """The bounds of each namespace that has LimitRanges."""
    bounds: dict[str, dict[str, Bounds]] = {}
    for item in sorted(items, key=lambda each: each.child("metadata").text("name")):
        limits = bounds.setdefault(item.child("metadata").text("namespace", "default"), {})
        for entry in item.child("spec").children("limits"):
            _add(limits.setdefault(entry.required_text("type"), Bounds()), entry)
    return bounds


def namespace_limits(items: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Bounds]]:
    """The bounds of namespaces whose LimitRange has one item."""
    return parse_limit_ranges(
        Fields({"metadata": {"namespace": namespace}, "spec": {"limits": [item]}}, f"LimitRange {namespace}", [])
        for namespace, item in items.items()
    )


def _add(bounds: Bounds, entry: Fields) -> None:
    most, least = entry.quantities("max"), entry.quantities("min")
    limits, requests = entry.quantities("default"), entry.quantities("defaultRequest")
    if entry.text("type") == "Container":
        limits = {**most, **limits}
        requests = {**least, **limits, **requests}
    for name, quantity in most.items():
        bounds.most[name] = min(quantity, bounds.most.get(name, quantity))
    for name, quantity in least.items():
        bounds.least[name] = max(quantity, bounds.least.get(name, quantity))
    bounds.limits = {**limits, **bounds.limits}
    bounds.requests = {**requests, **bounds.requests}


def parse_overhead(item: Fields) -> Mapping[str, Any]:
    """The overhead of a RuntimeClass, as pods have it in `overhead`."""
    item.child("overhead").quantities("podFixed")
    return item.child("overhead").child("podFixed").data


def with_defaults(pod: Fields, limits: Limits, overheads: Mapping[str, Mapping[str, Any]]) -> Fields:
    """The `spec` of a pod with the overhead of its RuntimeClass, and the default requests and limits of containers."""
    changed_fields: dict[str, Any] = {}
    overhead = overheads.get(pod.text("runtimeClassName"))
    if overhead and not pod.child("overhead").data:
        changed_fields["overhead"] = overhead
    bounds = limits.get("Container")
    if bounds is not None:
        for kind in _CONTAINERS:
            if kind in pod:
                changed_fields[kind] = [_container(child, bounds) for child in pod.children(kind)]
    return Fields({**pod.data, **changed_fields}, pod.path, pod.problems) if changed_fields else pod


def _container(container: Fields, bounds: Bounds) -> Mapping[str, Any]:
    container_resources = container.child("resources")
    resources = dict(container_resources.data)
    for name, defaults in (("limits", bounds.limits), ("requests", bounds.requests)):
        resources[name] = {
            **{key: str(default) for key, default in defaults.items()},
            **container_resources.child(name).data,
        }
    return {**container.data, "resources": resources}


def find_problem(pods: Sequence[Fields], limits: Limits) -> str:
    """Why Kueue does not admit a workload with these pods, each with its defaults; empty: their requests are fine."""
    for what, problems_there in (
        ("resources validation failed", [text for index, pod in enumerate(pods) for text in _above_limits(pod, index)]),
        (
            "resources didn't satisfy LimitRange constraints",
            [text for index, pod in enumerate(pods) for text in _outside(pod, index, limits)] if limits else [],
        ),
    ):
        if problems_there:
            return (
                f"{what}: {problems_there[0]}" if len(problems_there) == 1 else f"{what}: [{', '.join(problems_there)}]"
            )
    return ""


def _above_limits(pod: Fields, index: int) -> Iterator[str]:
    for place, container in _containers(pod):
        yield from _complaint(index, place, _above(*_resources(container)), _ABOVE_LIMITS)
    if "resources" in pod:
        yield from _complaint(index, ".resources", _above(*_resources(pod)), _ABOVE_LIMITS)


def _outside(pod: Fields, index: int, limits: Limits) -> Iterator[str]:
    bounds = limits.get("Container", Bounds())
    for place, container in _containers(pod):
        requests, limit_amounts = container_requests(container), container.child("resources").quantities("limits")
        largest = {name: max(request, limit_amounts.get(name, request)) for name, request in requests.items()}
        smallest = {name: min(request, limit_amounts.get(name, request)) for name, request in requests.items()}
        yield from _complaint(index, place, _above(largest, bounds.most), _ABOVE_MAX)
        yield from _complaint(index, place, _above(bounds.least, smallest), _BELOW_MIN)
    bounds = limits.get("Pod", Bounds())
    total = pod_requests(pod)
    yield from _complaint(index, "", _above(total, bounds.most), _ABOVE_MAX)
    yield from _complaint(index, "", _above(bounds.least, total), _BELOW_MIN)


def _containers(pod: Fields) -> Iterator[tuple[str, Fields]]:
    for kind in _CONTAINERS:
        for number, container in enumerate(pod.children(kind)):
            yield f".{kind}[{number}]", container


def _resources(fields: Fields) -> tuple[Requests, Requests]:
    resources = fields.child("resources")
    return resources.quantities("requests"), resources.quantities("limits")


def _above(these: Requests, those: Requests) -> list[str]:
    """The resources of which there is more in the first than in the second, where both have them."""
    return sorted(
        name
        for name in these.keys() & those.keys()
        if request_amount(name, these[name]) > request_amount(name, those[name])
    )


def _complaint(index: int, place: str, resources: Sequence[str], wrong: str) -> Iterator[str]:
    if resources:
        names = ",".join(f'"{name}"' for name in resources)
        yield f"spec.podSets[{index}].template.spec{place}: Invalid value: [{names}]: {wrong}"
