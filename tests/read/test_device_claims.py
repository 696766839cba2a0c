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


def read(made: Json, *objects: Json, version: str = "0.19.2", configuration: Json = MAPPINGS, **claim: str) -> Workload:
    """A workload of 3 pods of one core, each of which claims what the template asks for."""
    container = {"name": "c", "resources": {"requests": {"cpu": "1"}}}
    pod = {
        "containers": [container],
        "resourceClaims": [{"name": "d", **(claim or {"resourceClaimTemplateName": "t"})}],
    }
    pod_set = {"name": "main", "count": 3, "template": {"spec": pod}}
    spec = {"queueName": "lq", "podSets": [pod_set]}
    workload = {"kind": "Workload", "metadata": {"name": "w", "namespace": "default"}, "spec": spec}
    parsed = parse_objects(
        [made, *objects, workload], parse_configuration(copy.deepcopy(configuration), release(version))
    )
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
    result = read(template(), resourceClaimName="mine")
    assert result.claims_problem == "KueueDRAIntegration feature does not support use of resource claims"


def test_a_release_without_the_gate_counts_none() -> None:
    result = read(template(a={"deviceClassName": "big"}), version="0.17.1")
    assert (dict(result.pod_sets[0].requests), result.claims_problem) == ({"cpu": 1000}, "")
    off = {**MAPPINGS, "featureGates": {"KueueDRAIntegration": False}}
    result = read(template(a={"deviceClassName": "big"}), configuration=off)
    assert "KueueDRAIntegration feature gate is not enabled" in result.claims_problem


def test_a_template_that_is_not_there_is_reported() -> None:
    with pytest.raises(ObjectError, match="there is no ResourceClaimTemplate default/x among the objects; add it"):
        read(template(), resourceClaimTemplateName="x")


def extended(name: str, created: str = "2026-01-01T00:00:00Z") -> Json:
    """A DeviceClass that stands for an extended resource."""
    metadata = {"name": name, "creationTimestamp": created}
    return {"kind": "DeviceClass", "metadata": metadata, "spec": {"extendedResourceName": "example.com/gpu"}}


def asking(*classes: Json, version: str = "0.19.2", **kinds: str) -> Json:
    """What counts of a pod with an init container and two others, each of which asks for some of the resource."""

    def container(name: str, count: int) -> Json:
        return {"name": name, "resources": {kind: {"cpu": "1", "example.com/gpu": str(count)} for kind in kinds}}

    pod = {"containers": [container("a", 2), container("b", 3)], "initContainers": [container("i", 4)]}
    spec = {"queueName": "lq", "podSets": [{"name": "main", "count": 2, "template": {"spec": pod}}]}
    workload = {"kind": "Workload", "metadata": {"name": "w", "namespace": "default"}, "spec": spec}
    settings = parse_configuration(copy.deepcopy(MAPPINGS), release(version))
    [result] = parse_objects([*classes, workload], settings).workloads
    assert dict(result.pod_sets[0].node_requests) == {"cpu": 2000, "example.com/gpu": 5}
    return dict(result.pod_sets[0].requests)


BOTH = {"requests": "", "limits": ""}


def test_an_extended_resource_counts_as_the_devices_of_its_class() -> None:
    assert asking(extended("big"), **BOTH) == {"cpu": 2000, "gpu": 5}
    assert asking(extended("big"), requests="") == {"cpu": 2000, "gpu": 5}


def test_a_class_that_is_not_mapped_leaves_the_resource_its_name() -> None:
    assert asking(extended("other"), **BOTH) == {"cpu": 2000, "example.com/gpu": 5}


def test_the_newest_class_stands_for_the_resource_then_the_first_by_name() -> None:
    assert asking(extended("big"), extended("other", "2026-02-01T00:00:00Z"), **BOTH)["example.com/gpu"] == 5
    assert asking(extended("other"), extended("big"), **BOTH)["gpu"] == 5


def test_limits_alone_do_not_tell_kueue_of_devices() -> None:
    assert asking(extended("big"), limits="") == {"cpu": 2000, "example.com/gpu": 5}


def test_a_release_without_the_gate_counts_the_resource_itself() -> None:
    assert asking(extended("big"), version="0.18.3", **BOTH) == {"cpu": 2000, "example.com/gpu": 5}


CHOSEN = template(a={"deviceClassName": "big", "count": 2, "selectors": [{"cel": {"expression": "true"}}]})
BIG = {
    "kind": "DeviceClass",
    "metadata": {"name": "big"},
    "spec": {"selectors": [{"cel": {"expression": 'device.attributes["d"].big'}}]},
}


def resource_slice(*big: bool) -> Json:
    """A ResourceSlice with devices that are big or not."""
    devices = [{"name": f"d{n}", "attributes": {"big": {"bool": is_big}}} for n, is_big in enumerate(big)]
    return {"kind": "ResourceSlice", "metadata": {"name": "s"}, "spec": {"driver": "d", "devices": devices}}


@pytest.mark.parametrize(
    ("objects", "lacks"), [([BIG], "ResourceSlices"), ([resource_slice(True)], "DeviceClasses"), ([], "ResourceSlices")]
)
def test_devices_by_cel_are_refused_where_it_is_not_known_which_there_are(objects: list[Json], lacks: str) -> None:
    with pytest.raises(NotModelledError, match=f"the choice of devices by CEL .* without {lacks}"):
        read(CHOSEN, *objects)


def test_selectors_choose_among_the_devices_of_their_class() -> None:
    result = read(CHOSEN, BIG, resource_slice(True, False, True))
    assert (dict(result.pod_sets[0].requests), result.claims_problem) == ({"cpu": 1000, "gpu": 2}, "")
    result = read(CHOSEN, BIG, resource_slice(True, False))
    assert result.claims_problem.endswith("DeviceClass big: 1 device(s) match in the cluster but 2 requested")
    without = {"kind": "ResourceSlice", "metadata": {"name": "s"}, "spec": {"driver": "d", "devices": [{"name": "d"}]}}
    assert read(CHOSEN, BIG, without).claims_problem == "CEL evaluation failed for DeviceClass big: no such key: big"
    other = {**BIG, "metadata": {"name": "other"}}
    assert read(CHOSEN, other, resource_slice(True)).claims_problem == "failed to get DeviceClass big"


def test_a_device_is_for_one_request_of_a_claim() -> None:
    one = {"deviceClassName": "big", "selectors": [{"cel": {"expression": "true"}}]}
    assert read(template(a=one, b=one), BIG, resource_slice(True, True)).claims_problem == ""
    assert "0 device(s) match" in read(template(a=one, b=one), BIG, resource_slice(True)).claims_problem


def test_a_release_without_selectors_queues_none() -> None:
    configuration = {**MAPPINGS, "featureGates": {"DynamicResourceAllocation": True}}
    result = read(CHOSEN, version="0.17.1", configuration=configuration)
    assert result.claims_problem == "CEL selectors are not supported"


def test_devices_that_share_counters_are_refused() -> None:
    shared = {"name": "gpu", "deviceClassNames": ["big"], "sources": [{"counter": {"name": "m", "driver": "d"}}]}
    with pytest.raises(NotModelledError, match="share counters or capacity"):
        parse_configuration({"resources": {"deviceClassMappings": [shared]}})
