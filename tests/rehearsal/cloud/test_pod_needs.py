from __future__ import annotations

from typing import Any

import pytest

from kueue_rehearsal.cloud.pod_needs import (
    consumed_request,
    free_resources,
    is_tolerated,
    is_unschedulable,
    requests_of,
)


def test_requests_are_summed_and_init_containers_count_where_they_are_larger() -> None:
    spec = {
        "containers": [
            {"resources": {"requests": {"cpu": "100m", "memory": "1Gi"}}},
            {"resources": {"limits": {"cpu": "200m", "nvidia.com/gpu": "1"}}},
        ],
        "initContainers": [{"resources": {"requests": {"cpu": "1"}}}],
        "overhead": {"memory": "1Mi"},
    }
    assert requests_of(spec) == {"pods": 1, "cpu": 1000, "memory": 1024**3 + 1024**2, "nvidia.com/gpu": 1}


def test_sidecars_run_beside_the_others_and_the_pod_may_say_for_all() -> None:
    sidecar = {"restartPolicy": "Always", "resources": {"requests": {"cpu": "300m"}}}
    spec: dict[str, Any] = {"containers": [{"resources": {"requests": {"cpu": "1"}}}], "initContainers": [sidecar]}
    assert requests_of(spec)["cpu"] == 1300
    assert requests_of({**spec, "resources": {"requests": {"cpu": "2"}}})["cpu"] == 2000


def test_pods_that_have_ended_use_nothing() -> None:
    nodes = {"n": {"status": {"allocatable": {"cpu": "4"}}}}
    container = {"resources": {"requests": {"cpu": "1"}}}
    pods = [
        {"spec": {"nodeName": "n", "containers": [container]}, "status": {"phase": phase}}
        for phase in ("Running", "Succeeded", "Failed")
    ]
    assert free_resources(nodes, pods)["n"]["cpu"] == 3000


@pytest.mark.parametrize(
    ("toleration", "expected"),
    [
        ({"operator": "Exists"}, True),
        ({"key": "k", "operator": "Exists"}, True),
        ({"key": "k", "value": "v"}, True),
        ({"key": "k", "value": "w"}, False),
        ({"key": "other", "operator": "Exists"}, False),
        ({"key": "k", "operator": "Exists", "effect": "NoExecute"}, False),
    ],
)
def test_tolerations(toleration: dict[str, str], expected: bool) -> None:
    assert is_tolerated([toleration], {"key": "k", "value": "v", "effect": "NoSchedule"}) is expected


def pod(**fields: Any) -> dict[str, Any]:
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    return {
        "metadata": {"namespace": "ns", "name": "p", **fields.pop("metadata", {})},
        "spec": fields,
        "status": {"conditions": [condition]},
    }


def test_only_pods_that_the_scheduler_gave_up_on_wait_for_nodes() -> None:
    assert is_unschedulable(pod())
    assert not is_unschedulable(pod(nodeName="n"))
    assert not is_unschedulable(pod(schedulingGates=[{"name": "g"}]))
    assert not is_unschedulable(pod(metadata={"deletionTimestamp": "now"}))
    assert not is_unschedulable({**pod(), "status": {}})


@pytest.mark.parametrize("group", ["autoscaling.x-k8s.io", "cluster-autoscaler.kubernetes.io"])
def test_the_request_whose_capacity_a_pod_uses(group: str) -> None:
    consuming = pod(metadata={"annotations": {f"{group}/consume-provisioning-request": "r"}})
    assert consumed_request(consuming) == "ns/r"
    assert consumed_request(pod()) is None
