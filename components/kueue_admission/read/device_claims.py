"""Devices that pods ask for (Dynamic Resource Allocation), as amounts that count against quota.

Kueue allocates no devices. Before it queues a workload, it counts how many of each DeviceClass the
ResourceClaimTemplates of a pod ask for, and adds them to what the pod requests, under the resource that
`deviceClassMappings` names for the class. An extended resource for which a DeviceClass stands counts under that name
too, in place of its own. From there on they are a resource like any other, which no node is asked for. What Kueue
cannot count keeps the workload out of every queue, whatever the quota. So do claims whose selectors (CEL) choose fewer
of all devices in the cluster's ResourceSlices than they want, whoever uses them; how many they choose changes nothing
else.

Whether there is anything to count, Kueue sees by claims and by `requests` as they are written, before it takes limits
for missing requests: a job that gives `limits` alone for such an extended resource is counted under its own name.
Source: kueue@v0.19.2 pkg/dra/{claims,extended_resources,mapper}.go, pkg/controller/core/workload_controller.go
(Create, Reconcile).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from kueue_admission.decide.amounts import resource_order
from kueue_admission.decide.errors import NotModelledError
from kueue_admission.decide.pods import PodSet, ResourceRules
from kueue_admission.kernel.form_rules import JOB_UNKNOWN
from kueue_admission.read.fields import Fields
from kueue_admission.read.pod_requests import Requests, add_requests, container_requests, raise_to

_OFF: Final = "Workload uses DRA resources but the KueueDRAIntegration feature gate is not enabled"
_BY_NAME: Final = "KueueDRAIntegration feature does not support use of resource claims"
_EXACT: Final = "ExactCount"


@dataclass(frozen=True, slots=True)
class Devices:
    """What a cluster has for pods that ask for devices.

    `templates` are the ResourceClaimTemplates by namespace and name, `extended` the DeviceClass that Kubernetes takes
    for each extended resource, `classes` what each DeviceClass asks of its devices. `chosen` says of each device of the
    ResourceSlices whether some expressions choose it, or why that has no answer; None without ResourceSlices.
    """

    templates: Mapping[str, Fields] = field(default_factory=dict)
    extended: Mapping[str, str] = field(default_factory=dict)
    classes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    chosen: Callable[[tuple[str, ...]], Sequence[bool | str]] | None = None


def expressions_of(fields: Fields) -> tuple[str, ...]:
    """The CEL expressions by which a request or a DeviceClass chooses devices."""
    return tuple(
        selector.child("cel").text("expression") for selector in fields.children("selectors") if "cel" in selector
    )


def with_devices(
    pod_sets: Sequence[PodSet],
    written: Sequence[Fields],
    pods: Sequence[Fields],
    namespace: str,
    rules: ResourceRules,
    devices: Devices,
) -> tuple[tuple[PodSet, ...], str]:
    """The pod sets of a workload with the devices that their pods ask for among their requests, and why Kueue does not
    queue it.

    Of each pod set, `written` has the `spec` of its pods as it is written, `pods` the same with its defaults. A
    ResourceClaimTemplate that is not there is reported. Raises NotModelledError for devices that are chosen by CEL
    where it is not known which there are, or what an expression means.
    """
    claims = [list(pod.children("resourceClaims")) for pod in pods]
    extended_names = devices.extended if rules.counts_devices and rules.counts_extended_devices else {}
    if not rules.counts_devices:
        return tuple(pod_sets), _OFF if any(claims) and rules.refuses_devices else ""
    if any("resourceClaimName" in claim for claims_of_pod in claims for claim in claims_of_pod):
        return tuple(pod_sets), _BY_NAME
    if not any(claims) and not any(_asks_for(extended_names, pod) for pod in written):
        return tuple(pod_sets), ""
    by_class = dict(reversed(rules.device_classes))
    pod_sets_with_devices = []
    for pod_set, pod, claims_of_pods in zip(pod_sets, pods, claims, strict=True):
        counted_claims = _claimed(pod_set.name, _requests(namespace, claims_of_pods, devices.templates), rules, devices)
        if isinstance(counted_claims, str):
            return tuple(pod_sets), counted_claims
        amounts = dict(pod_set.requests)
        for name, quantity in _containers_ask(pod).items() if extended_names else ():
            if name in extended_names and quantity.value > 0:
                amounts.pop(name, None)
                resource = by_class.get(extended_names[name], name)
                counted_claims[resource] = counted_claims.get(resource, 0) + quantity.value
        for resource, count in counted_claims.items():
            amounts[resource] = amounts.get(resource, 0) + count
        ordered_amounts = sorted(amounts.items(), key=lambda pair: resource_order(pair[0]))
        pod_sets_with_devices.append(replace(pod_set, requests=tuple(ordered_amounts)))
    return tuple(pod_sets_with_devices), ""


def _claimed(
    pod_set: str, specs: Iterable[list[Fields]], rules: ResourceRules, devices: Devices
) -> dict[str, int] | str:
    """The devices of some claims, by the resource that their class counts as; or why Kueue counts none."""
    by_class = dict(reversed(rules.device_classes))
    counted_claims: dict[str, int] = {}
    for requests in specs:
        exact = [request.child("exactly") if "exactly" in request else request for request in requests]
        problems = (
            _problem(request, exact_request, rules) for request, exact_request in zip(requests, exact, strict=True)
        )
        if problem := next(filter(None, problems), "") or _shortage(exact, devices):
            return problem
        for exactly in exact:
            name = exactly.text("deviceClassName")
            if name not in by_class:
                return f"DeviceClass {name} is not mapped in DRA configuration for podset {pod_set}"
            counted_claims[by_class[name]] = counted_claims.get(by_class[name], 0) + exactly.integer(
                "count", 1, least=1
            )
    return counted_claims


def _shortage(requests: Iterable[Fields], devices: Devices) -> str:
    """Why the selectors of a claim choose too few devices; each device is for one request."""
    devices_used: set[int] = set()
    for request in requests:
        name, own = request.text("deviceClassName"), expressions_of(request)
        if not own:
            continue
        if devices.chosen is None or not devices.classes:
            lacks = "DeviceClasses" if devices.chosen else "ResourceSlices"
            raise NotModelledError(f"the choice of devices by CEL (selectors) without {lacks}", request.path)
        if name not in devices.classes:
            return f"failed to get DeviceClass {name}"
        devices_left = request.integer("count", 1, least=1)
        for index, device_choice in enumerate(devices.chosen((*devices.classes[name], *own))):
            if devices_left and index not in devices_used:
                if isinstance(device_choice, str):
                    return f"CEL evaluation failed for DeviceClass {name}: {device_choice}"
                if device_choice:
                    devices_used.add(index)
                    devices_left -= 1
        if devices_left:
            count = request.integer("count", 1, least=1)
            return (
                f"insufficient matching devices for CEL selector in DeviceClass {name}: "
                f"{count - devices_left} device(s) match in the cluster but {count} requested"
            )
    return ""


def _asks_for(extended: Mapping[str, str], pod: Fields) -> bool:
    """Whether a container requests one of the resources, other than by its limits."""
    containers = (child for kind in ("initContainers", "containers") for child in pod.children(kind))
    requests = (container.child("resources").quantities("requests") for container in containers)
    return any(name in extended and quantity.value > 0 for request in requests for name, quantity in request.items())


def _containers_ask(pod: Fields) -> Requests:
    """What the containers ask for together, or the largest init container; sidecars are like other init containers."""
    total: Requests = {}
    for container in pod.children("containers"):
        add_requests(total, container_requests(container))
    for container in pod.children("initContainers"):
        raise_to(total, container_requests(container))
    return total


def _requests(namespace: str, claims: Iterable[Fields], templates: Mapping[str, Fields]) -> Iterator[list[Fields]]:
    """What each claim asks for."""
    for claim in claims:
        key = f"{namespace}/{claim.text('resourceClaimTemplateName')}"
        if key in templates:
            yield list(templates[key].child("spec").child("spec").child("devices").children("requests"))
        elif "resourceClaimTemplateName" in claim:
            wrong = f"there is no ResourceClaimTemplate {key} among the objects"
            claim.wrong("resourceClaimTemplateName", wrong, "add it", JOB_UNKNOWN)


def _problem(request: Fields, exactly: Fields, rules: ResourceRules) -> str:
    """Why Kueue counts none of a request."""
    if "firstAvailable" in request:
        return "FirstAvailable device selection is not supported"
    if not rules.selects_devices and any(exactly.children("selectors")):
        return "CEL selectors are not supported"
    if exactly.flag("adminAccess"):
        return "AdminAccess is not supported"
    mode = exactly.text("allocationMode") or _EXACT
    return "" if mode == _EXACT else f"AllocationMode '{mode}' is not supported"
