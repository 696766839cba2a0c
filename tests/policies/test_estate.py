"""Which node pools and which Kubernetes objects belong to which cluster."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from tests.policies.declared import PROJECT, REGION, Declared, as_input, as_stack, cluster, flavor, pool, provider
from tests.policies.seeds import SEEDS

from kueue_admission.kernel.unknown import UNKNOWN
from kueue_fleet_policies import RULES, StackRule
from kueue_fleet_policies.estate import Estate
from kueue_fleet_policies.inputs import SeenInputs, remember_inputs
from kueue_fleet_policies.resource import KUBERNETES_PROVIDER

BY_NAME = {rule.name: rule for rule in RULES}
IDENTIFIER = f"projects/{PROJECT}/locations/{REGION}/clusters/one"


def flavors_of(*declared: Declared) -> dict[str, list[str]]:
    estate = Estate.of(as_stack(declared))
    return {view.resource.name: [one.name for one in view.of_kind("ResourceFlavor")] for view in estate.clusters}


def pools_of(*declared: Declared) -> dict[str, list[str]]:
    estate = Estate.of(as_stack(declared))
    return {view.resource.name: [one.title for one in view.pools] for view in estate.clusters}


def test_an_object_is_in_the_cluster_whose_output_its_providers_kubeconfig_is_made_of() -> None:
    declared = [cluster("one"), cluster("two"), provider("p1", "one"), provider("p2", "two")]
    result = flavors_of(*declared, flavor("a", {}, by="p1"), flavor("b", {}, by="p2"))
    assert result == {"one": ["a"], "two": ["b"]}


def test_an_object_is_in_the_cluster_that_its_provider_names() -> None:
    named = Declared(KUBERNETES_PROVIDER, "p", {"kubeconfig": "/home/me/.kube/config", "clusterIdentifier": IDENTIFIER})
    assert flavors_of(cluster("one"), cluster("two"), named, flavor("a", {}, by="p")) == {"one": ["a"], "two": []}


@pytest.mark.parametrize("identifier", [UNKNOWN, "something-else", None])
def test_an_object_whose_cluster_cannot_be_told_is_in_none(identifier: Any) -> None:
    somewhere = Declared(KUBERNETES_PROVIDER, "p", {"kubeconfig": "x", "clusterIdentifier": identifier})
    assert flavors_of(cluster("one"), somewhere, flavor("a", {}, by="p")) == {"one": []}
    assert flavors_of(cluster("one"), flavor("a", {}, by="p")) == {"one": []}


@pytest.mark.parametrize(
    ("named", "expected"),
    [("one", ["p"]), (IDENTIFIER, ["p"]), ("two", []), (UNKNOWN, [])],
)
def test_a_pool_without_a_dependency_is_found_by_name_or_id(named: Any, expected: list[str]) -> None:
    declared = pool("p")
    declared.props["cluster"] = named
    assert pools_of(cluster("one"), declared)["one"] == expected


def test_clusters_of_one_name_are_told_apart_by_their_place() -> None:
    there = replace(cluster("one", {"location": "us-east4"}), name="there")
    declared = pool("p")
    declared.props["cluster"] = "one"
    assert pools_of(cluster("one"), there, declared) == {"one": ["p"], "there": []}


STACK_SEEDS = [seed for seed in SEEDS if isinstance(BY_NAME[seed.rule], StackRule)]


@pytest.mark.parametrize("seed", STACK_SEEDS, ids=[seed.rule for seed in STACK_SEEDS])
def test_objects_without_outputs_are_judged_by_their_inputs(seed: Any) -> None:
    """As in the first preview of a cluster, whose Kubernetes provider cannot be configured yet."""
    seen: SeenInputs = {}
    remember = remember_inputs(seen)
    for one in seed.resources:
        remember.validate(as_input(one), lambda *_: pytest.fail("it reports nothing"))
    stack = as_stack(seed.resources)
    for one in stack:
        if one.resource_type.startswith("kubernetes:"):
            one.props = {}
    rule = BY_NAME[seed.rule]
    assert isinstance(rule, StackRule)
    assert len(list(rule.problems(Estate.of(stack, seen), seed.config))) == 1


@pytest.mark.parametrize("answer", [{"initialNodeCount": 5, "nodeCount": 2}, {"nodeLocations": UNKNOWN}])
def test_a_pool_is_judged_as_it_is_asked_for_and_not_by_what_google_fills_in(answer: dict[str, Any]) -> None:
    declared = [cluster("one"), pool("p", {"placementPolicy": {"type": "COMPACT"}}, of="one")]
    seen: SeenInputs = {}
    for one in declared:
        remember_inputs(seen).validate(as_input(one), lambda *_: pytest.fail("it reports nothing"))
    stack = as_stack(declared)
    stack[1].props = {**stack[1].props, **answer}
    rules = [BY_NAME[name] for name in ("pool-initial-size", "pool-compact-zone")]
    result = [
        str(item)
        for rule in rules
        if isinstance(rule, StackRule)
        for _, item in rule.problems(Estate.of(stack, seen), None)
    ]
    assert len(result) == 1
    assert "one zone" in result[0]
