"""Devices that pods claim: what counts against quota, and what keeps a workload out of the queues."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from kueue_admission.decide.errors import NotModelledError, ObjectError
from kueue_admission.decide.model import Workload
from kueue_admission.read.configuration import parse_configuration
from kueue_admission.read.kueue_objects import parse_objects
from kueue_admission.releases import release

Json = dict[str, Any]
MAPPINGS = {"resources": {"deviceClassMappings": [{"name": "gpu", "deviceClassNames": ["big", "small"]}]}}


def template(**requests: Json) -> Json:
    given = [{"name": name, "exactly": request} for name, request in requests.items()]
    spec = {"spec": {"devices": {"requests": given}}}
    return {"kind": "ResourceClaimTemplate", "metadata": {"name": "t", "namespace": "default"}, "spec": spec}


def read(made: Json, *, version: str = "0.19.2", configuration: Json = MAPPINGS, **claim: str) -> Workload:
    """A workload of 3 pods of one core, each of which claims what the template asks for."""
    container = {"name": "c", "resources": {"requests": {"cpu": "1"}}}
    pod = {
        "containers": [container],
        "resourceClaims": [{"name": "d", **(claim or {"resourceClaimTemplateName": "t"})}],
    }
    pod_set = {"name": "main", "count": 3, "template": {"spec": pod}}
    spec = {"queueName": "lq", "podSets": [pod_set]}
    workload = {"kind": "Workload", "metadata": {"name": "w", "namespace": "default"}, "spec": spec}
    parsed = parse_objects([made, workload], parse_configuration(copy.deepcopy(configuration), release(version)))
    return parsed.workloads[0]


def test_devices_count_as_the_resource_of_their_class() -> None:
    [pods] = read(template(a={"deviceClassName": "big", "count": 2}, b={"deviceClassName": "small"})).pod_sets
    assert dict(pods.requests) == {"cpu": 1000, "gpu": 3}
    assert dict(pods.node_requests) == {"cpu": 1000}


@pytest.mark.parametrize(
    ("request_", "problem"),
    [
        ({"deviceClassName": "other"}, "DeviceClass other is not mapped in DRA configuration for podset main"),
        ({"deviceClassName": "big", "allocationMode": "All"}, "AllocationMode 'All' is not supported"),
        ({"deviceClassName": "big", "adminAccess": True}, "AdminAccess is not supported"),
    ],
)
def test_what_kueue_cannot_count_is_in_no_queue(request_: Json, problem: str) -> None:
    workload = read(template(a=request_))
    assert workload.claims_problem == problem


def test_a_claim_by_its_name_is_in_no_queue() -> None:
    found = read(template(), resourceClaimName="mine")
    assert found.claims_problem == "KueueDRAIntegration feature does not support use of resource claims"


def test_a_release_without_the_gate_counts_none() -> None:
    found = read(template(a={"deviceClassName": "big"}), version="0.17.1")
    assert (dict(found.pod_sets[0].requests), found.claims_problem) == ({"cpu": 1000}, "")
    off = {**MAPPINGS, "featureGates": {"KueueDRAIntegration": False}}
    found = read(template(a={"deviceClassName": "big"}), configuration=off)
    assert "KueueDRAIntegration feature gate is not enabled" in found.claims_problem


def test_a_template_that_is_not_there_is_reported() -> None:
    with pytest.raises(ObjectError, match="there is no ResourceClaimTemplate default/x among the objects; add it"):
        read(template(), resourceClaimTemplateName="x")


def test_an_extended_resource_that_stands_for_devices_is_refused() -> None:
    device_class = {"kind": "DeviceClass", "metadata": {"name": "big"}, "spec": {"extendedResourceName": "cpu"}}
    with pytest.raises(NotModelledError, match=r"DeviceClass big: .*cpu as devices"):
        read(device_class, resourceClaimName="mine")


def test_devices_by_cel_are_refused() -> None:
    chosen = {"deviceClassName": "big", "selectors": [{"cel": {"expression": "true"}}]}
    with pytest.raises(NotModelledError, match="the choice of devices by CEL"):
        read(template(a=chosen))


def test_devices_that_share_counters_are_refused() -> None:
    shared = {"name": "gpu", "deviceClassNames": ["big"], "sources": [{"counter": {"name": "m", "driver": "d"}}]}
    with pytest.raises(NotModelledError, match="share counters or capacity"):
        parse_configuration({"resources": {"deviceClassMappings": [shared]}})
