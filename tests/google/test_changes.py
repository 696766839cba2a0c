"""What becomes of each resource between two fleets: what is made, changed, made again, deleted."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from kueue_fleet.google.changes import Step, plan
from kueue_fleet.google.property_paths import Change
from kueue_fleet.google.resource import CloudResource, Ref
from kueue_fleet.google.resource_types import NODE_POOL

POLICY = CloudResource(
    "gcp:compute/resourcePolicy:ResourcePolicy",
    "lab/batch/pool",
    {"project": "p", "region": "us-central1", "name": "pool", "workloadPolicy": {"type": "HIGH_THROUGHPUT"}},
)
POOL = CloudResource(
    NODE_POOL,
    "lab/batch/pool",
    {
        "project": "p",
        "cluster": Ref("Cluster/lab/batch", "name"),
        "location": "us-central1",
        "name": "pool",
        "nodeCount": 1,
        "maxPodsPerNode": 110,
        "nodeConfig": {"machineType": "g2-standard-24", "labels": {"a": "b"}},
        "placementPolicy": {"type": "COMPACT", "policyName": POLICY.ref("name")},
    },
    replace_with=(POLICY.key,),
)


def pool(**properties: Any) -> CloudResource:
    return replace(POOL, properties={**POOL.properties, **properties})


def test_nothing_becomes_of_what_stays_as_it_is() -> None:
    assert plan([POLICY, POOL], [POLICY, POOL]) == {}


def test_another_key_is_another_resource() -> None:
    other = replace(POOL, name="lab/batch/other")
    assert plan([POOL], [other]) == {POOL.key: Step("delete"), other.key: Step("create")}


def test_what_changes_in_place_is_an_update() -> None:
    step = plan([POOL], [pool(nodeCount=2)])[POOL.key]
    assert (step.operation, dict(step.changes)) == ("update", {"nodeCount": Change.UPDATE})
    assert not step.replaces()


def test_what_the_facts_say_cannot_change_in_place_is_made_again() -> None:
    step = plan([POOL], [pool(maxPodsPerNode=32)])[POOL.key]
    assert (step.operation, step.replacing) == ("replace", ["maxPodsPerNode"])


def test_a_part_and_the_whole_are_the_same_property() -> None:
    config = {**POOL.properties["nodeConfig"], "reservationAffinity": {"consumeReservationType": "NO_RESERVATION"}}
    step = plan([POOL], [pool(nodeConfig=config)])[POOL.key]
    assert step.replaces("nodeConfig.reservationAffinity.consumeReservationType")
    assert step.replaces("nodeConfig")
    assert not step.replaces("nodeConfig.reservation")


def test_what_is_ignored_does_not_change() -> None:
    new = replace(pool(maxPodsPerNode=32), ignore_changes=("maxPodsPerNode",))
    assert plan([POOL], [new]) == {}


def test_an_option_makes_it_again_where_the_provider_would_not() -> None:
    new = replace(pool(nodeCount=2), replace_on_changes=("nodeCount",))
    assert plan([POOL], [new])[POOL.key].replaces("nodeCount")


def test_it_is_made_again_with_another_resource() -> None:
    topology = {"type": "HIGH_THROUGHPUT", "acceleratorTopology": "2x2x4"}
    other = replace(POLICY, properties={**POLICY.properties, "workloadPolicy": topology})
    steps = plan([POLICY, POOL], [other, POOL])
    assert steps[POLICY.key].replaces("workloadPolicy")
    assert steps[POOL.key].replacing == ["placementPolicy.policyName"]


def test_what_is_only_read_is_not_planned() -> None:
    there = replace(POOL, read="projects/p/locations/us-central1/clusters/batch/nodePools/pool")
    assert plan([there], [replace(there, properties={})]) == {}
