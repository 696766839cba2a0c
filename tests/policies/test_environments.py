"""The pack on the environments of this repository, by Pulumi's mocks: nothing mandatory falls, and it would.

tests/engines/test_policies.py has the same with Pulumi itself.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from pulumi_policy import EnforcementLevel
from tests.policies.recorded import STACKS, estate_of, findings, recorded

import pulumi_mocks
from kueue_fleet.google.resource_types import NODE_POOL


@pytest.mark.parametrize("stack", STACKS)
def test_nothing_mandatory_falls(stack: str) -> None:
    recording = recorded(stack)
    fallen = [one for one in findings(recording) if one.level is EnforcementLevel.MANDATORY]
    assert not fallen, "\n".join(map(str, fallen))
    # Everything was seen in its place: else the rules about several resources would have nothing to say.
    estate = estate_of(recording)
    assert {view.resource.urn for view in estate.clusters} == {
        one.urn for one in recording.of_type("gcp:container/cluster:Cluster")
    }
    assert all(view.of_kind("ClusterQueue") and view.of_kind("ResourceFlavor") for view in estate.clusters)
    assert sum(len(view.pools) for view in estate.clusters) == len(recording.of_type(NODE_POOL))


def test_an_exemption_for_disposable_clusters_can_be_forbidden() -> None:
    rules = ("protect-clusters", "protect-kueue", "protect-capacity")
    strict = {rule: {"allowDisposable": False} for rule in rules}
    assert {
        one.rule for one in findings(recorded("batch-platform"), strict) if one.level is EnforcementLevel.MANDATORY
    } == set(rules)


Change = Callable[[dict[str, dict[str, Any]]], None]
"""Changes inputs, which are by kind and name."""


def _retarget_flavor(inputs: dict[str, dict[str, Any]]) -> None:
    flavor = next(value for key, value in inputs.items() if key.endswith("ondemand") and key.startswith("ResourceFlav"))
    flavor["spec"]["nodeLabels"] = {"cloud.google.com/gke-nodepool": "no-such-pool"}


def _inflate_quota(inputs: dict[str, dict[str, Any]]) -> None:
    for key, queue in inputs.items():
        if key.startswith("ClusterQueue "):
            for resource in queue["spec"]["resourceGroups"][0]["flavors"][0]["resources"]:
                if resource["name"] == "nvidia.com/gpu":
                    resource["nominalQuota"] = 999


def _taint_pools(inputs: dict[str, dict[str, Any]]) -> None:
    for key, pool in inputs.items():
        if key.startswith("NodePool "):
            pool["nodeConfig"]["taints"] = [{"key": "new", "value": "x", "effect": "NO_SCHEDULE"}]


def _forget_checks(inputs: dict[str, dict[str, Any]]) -> None:
    for key, queue in inputs.items():
        if key.startswith("ClusterQueue "):
            queue["spec"].pop("admissionChecksStrategy", None)


def _rename_queue(inputs: dict[str, dict[str, Any]]) -> None:
    for key, queue in inputs.items():
        if key.startswith("LocalQueue "):
            queue["spec"]["clusterQueue"] = "elsewhere"


@pytest.mark.parametrize(
    ("rule", "change"),
    [
        ("kueue-flavor-has-nodes", _retarget_flavor),
        ("kueue-quota-within-capacity", _inflate_quota),
        ("kueue-flavor-tolerates-nodes", _taint_pools),
        ("kueue-dws-check", _forget_checks),
        ("kueue-local-queue-reference", _rename_queue),
    ],
)
def test_a_mistake_in_the_batch_platform_falls(rule: str, change: Change) -> None:
    copies = {one.urn: replace(one, inputs=copy.deepcopy(one.inputs)) for one in recorded("batch-platform")}
    change({one.short: one.inputs for one in copies.values() if one.custom})
    assert rule in {one.rule for one in findings(pulumi_mocks.Recording(copies, ()))}
