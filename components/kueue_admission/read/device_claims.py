"""Devices that pods claim (Dynamic Resource Allocation), as amounts that count against quota.

Kueue chooses no devices. Before it queues a workload, it counts how many of each DeviceClass the ResourceClaimTemplates
of a pod ask for, and adds them to what the pod requests, under the resource that `deviceClassMappings` names for the
class. From there on they are a resource like any other, which no node is asked for. What Kueue cannot count keeps the
workload out of every queue, whatever the quota.
Source: kueue@v0.19.2 pkg/dra/{claims,mapper}.go, pkg/controller/core/workload_controller.go (Reconcile).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

from kueue_admission.decide.amounts import resource_order
from kueue_admission.decide.errors import NotModelledError
from kueue_admission.decide.pods import PodSet, ResourceRules
from kueue_admission.read.fields import Fields

_OFF: Final = "Workload uses DRA resources but the KueueDRAIntegration feature gate is not enabled"
_BY_NAME: Final = "KueueDRAIntegration feature does not support use of resource claims"
_EXACT: Final = "ExactCount"


def with_devices(
    pod_set: PodSet, pod: Fields, namespace: str, rules: ResourceRules, templates: Mapping[str, Fields]
) -> tuple[PodSet, str]:
    """The pod set with the devices that its pods claim among its requests, and why Kueue does not queue its workload.

    `templates` are the ResourceClaimTemplates by namespace and name; one that is not there is reported. Raises
    NotModelledError for devices that are chosen by CEL.
    """
    claims = list(pod.children("resourceClaims"))
    if not claims or not (rules.counts_devices or rules.refuses_devices):
        return pod_set, ""
    if not rules.counts_devices:
        return pod_set, _OFF
    if any("resourceClaimName" in claim for claim in claims):
        return pod_set, _BY_NAME
    amounts = dict(pod_set.requests)
    by_class = dict(reversed(rules.device_classes))
    for request in _requests(namespace, claims, templates):
        exactly = request.child("exactly") if "exactly" in request else request
        problem = _problem(request, exactly)
        name = exactly.text("deviceClassName")
        if not problem and name not in by_class:
            problem = f"DeviceClass {name} is not mapped in DRA configuration for podset {pod_set.name}"
        if problem:
            return pod_set, problem
        amounts[by_class[name]] = amounts.get(by_class[name], 0) + exactly.integer("count", 1, least=1)
    ordered = sorted(amounts.items(), key=lambda pair: resource_order(pair[0]))
    return replace(pod_set, requests=tuple(ordered)), ""


def _requests(namespace: str, claims: Iterable[Fields], templates: Mapping[str, Fields]) -> Iterable[Fields]:
    for claim in claims:
        key = f"{namespace}/{claim.text('resourceClaimTemplateName')}"
        if key in templates:
            yield from templates[key].child("spec").child("spec").child("devices").children("requests")
        elif "resourceClaimTemplateName" in claim:
            wrong = f"there is no ResourceClaimTemplate {key} among the objects"
            claim.wrong("resourceClaimTemplateName", wrong, "add it")


def _problem(request: Fields, exactly: Fields) -> str:
    """Why Kueue counts none of a request."""
    if "firstAvailable" in request:
        return "FirstAvailable device selection is not supported"
    if any("cel" in selector for selector in exactly.children("selectors")):
        raise NotModelledError("the choice of devices by CEL (selectors)", request.path)
    if exactly.flag("adminAccess"):
        return "AdminAccess is not supported"
    mode = exactly.text("allocationMode") or _EXACT
    return "" if mode == _EXACT else f"AllocationMode '{mode}' is not supported"
