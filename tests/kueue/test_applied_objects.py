"""What every Kubernetes object of the components has in common."""

from __future__ import annotations

from typing import Any

import pulumi
import pulumi_kubernetes
import pytest

import pulumi_mocks
from kueue_admission.api import (
    ClusterQueueSpec,
    LocalQueueSpec,
    PriorityClassFields,
    ResourceFlavorSpec,
    TopologyLevel,
    TopologySpec,
    WorkloadPriorityClassFields,
)
from kueue_fleet import ClusterQueue, LocalQueue, PriorityClass, ResourceFlavor, Topology, WorkloadPriorityClass
from kueue_fleet.kueue_components.applied_objects import resource_type
from pulumi_mocks import Recording


def flavor(name: str = "l4", **arguments: Any) -> ResourceFlavor:
    return ResourceFlavor(name, ResourceFlavorSpec(node_labels={"gpu": "l4"}), **arguments)


def run_flavor(**arguments: Any) -> Recording:
    return pulumi_mocks.run(lambda: flavor(**arguments))


def test_types_are_those_of_the_official_classes() -> None:
    def program() -> None:
        pulumi_kubernetes.core.v1.Namespace("official", metadata={"name": "a"})
        pulumi_kubernetes.rbac.v1.ClusterRole("official", metadata={"name": "a"})
        pulumi_kubernetes.apiextensions.CustomResource(
            "official", api_version="kueue.x-k8s.io/v1beta2", kind="ClusterQueue", metadata={"name": "a"}
        )

    official = {r.type for r in pulumi_mocks.run(program)}
    assert official == {
        resource_type("v1", "Namespace"),
        resource_type("rbac.authorization.k8s.io/v1", "ClusterRole"),
        resource_type("kueue.x-k8s.io/v1beta2", "ClusterQueue"),
    }


def test_objects_carry_the_installed_provider_version_as_the_official_classes_do() -> None:
    def program() -> None:
        flavor()
        pulumi_kubernetes.core.v1.Namespace("official", metadata={"name": "a"})

    recording = pulumi_mocks.run(program)
    assert recording.one("ResourceFlavor", custom=True).version == recording.one("Namespace").version != ""


def test_an_object_in_a_state_of_v1beta1_is_the_same_object() -> None:
    recorded = run_flavor().one("ResourceFlavor", custom=True)
    assert recorded.type == "kubernetes:kueue.x-k8s.io/v1beta2:ResourceFlavor"
    assert recorded.aliases == ("kubernetes:kueue.x-k8s.io/v1beta1:ResourceFlavor",)


def test_objects_of_kubernetes_itself_have_no_alias_and_no_webhook_hook() -> None:
    recorded = pulumi_mocks.run(lambda: PriorityClass("batch", PriorityClassFields(value=1))).one(
        "PriorityClass", custom=True
    )
    assert recorded.aliases == ()
    assert recorded.hooks == ()


def test_every_kueue_object_retries_while_the_webhook_is_not_there_with_one_hook_for_all() -> None:
    def program() -> None:
        flavor("a")
        flavor("b")

    recording = pulumi_mocks.run(program)
    assert recording.hooks == ("kueue-fleet/webhook-retry",)
    assert {r.hooks for r in recording.of_type("ResourceFlavor") if r.custom} == {recording.hooks}


def test_two_runs_in_one_process_each_register_their_hook() -> None:
    assert run_flavor().hooks == run_flavor().hooks == ("kueue-fleet/webhook-retry",)


def test_the_object_goes_with_its_cluster() -> None:
    def program() -> None:
        cluster = pulumi.CustomResource("lab:index:Cluster", "cluster")
        flavor(opts=pulumi.ResourceOptions(deleted_with=cluster))

    recording = pulumi_mocks.run(program)
    assert recording.one("ResourceFlavor", custom=True).deleted_with == recording.one("Cluster").urn


def test_protection_of_the_component_reaches_its_object() -> None:
    recording = run_flavor(opts=pulumi.ResourceOptions(protect=True))
    assert recording.one("ResourceFlavor", custom=True).protect


def test_other_options_of_the_component_do_not_leak_into_its_object() -> None:
    def program() -> None:
        before = pulumi.CustomResource("lab:index:Other", "before")
        flavor(
            opts=pulumi.ResourceOptions(
                depends_on=[before],
                aliases=[pulumi.Alias(name="former")],
                ignore_changes=["x"],
                additional_secret_outputs=["y"],
            )
        )

    recording = pulumi_mocks.run(program)
    recorded = recording.one("ResourceFlavor", custom=True)
    assert recorded.aliases == ("kubernetes:kueue.x-k8s.io/v1beta1:ResourceFlavor",)
    assert recorded.dependencies == recorded.ignore_changes == recorded.secret_outputs == ()
    assert recording.is_before(recording.one("Other"), recorded)


def test_a_queue_is_waited_for_until_it_is_active() -> None:
    recorded = pulumi_mocks.run(lambda: ClusterQueue("gpu", ClusterQueueSpec())).one("ClusterQueue", custom=True)
    assert recorded.inputs["metadata"]["annotations"] == {"pulumi.com/waitFor": "condition=Active"}
    assert recorded.timeouts == {"create": "10m", "update": "10m", "delete": "10m"}


@pytest.mark.parametrize("policy", ["Hold", "HoldAndDrain"])
def test_a_stopped_queue_is_not_waited_for(policy: Any) -> None:
    spec = ClusterQueueSpec(stop_policy=policy)
    recorded = pulumi_mocks.run(lambda: ClusterQueue("gpu", spec)).one("ClusterQueue", custom=True)
    assert recorded.inputs["metadata"] == {"name": "gpu"}


@pytest.mark.parametrize(("stopped", "waits"), [({}, True), ({"stopPolicy": "Hold"}, False)])
def test_whole_manifests_of_queues_are_waited_for_too(stopped: dict[str, str], waits: bool) -> None:
    def manifest(kind: str, **spec: Any) -> dict[str, Any]:
        metadata = {"name": "gpu", **({"namespace": "team-a"} if kind == "LocalQueue" else {})}
        return {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": kind, "metadata": metadata, "spec": spec | stopped}

    def program() -> None:
        queue = ClusterQueue("gpu", manifest("ClusterQueue", namespaceSelector={}))
        LocalQueue("team-a", manifest("LocalQueue", clusterQueue="gpu"), cluster_queue=queue)

    recording = pulumi_mocks.run(program)
    for kind in ("ClusterQueue", "LocalQueue"):
        assert ("annotations" in recording.one(kind, custom=True).inputs["metadata"]) is waits


def test_a_flavor_has_no_condition_to_wait_for() -> None:
    assert run_flavor().one("ResourceFlavor", custom=True).inputs["metadata"] == {"name": "l4"}


@pytest.mark.parametrize(
    ("queue_stop", "local_stop", "waits"),
    [("None", "None", True), ("Hold", "None", False), ("None", "HoldAndDrain", False)],
)
def test_a_local_queue_is_waited_for_if_it_can_become_active(queue_stop: Any, local_stop: Any, waits: bool) -> None:
    def program() -> None:
        queue = ClusterQueue("gpu", ClusterQueueSpec(stop_policy=queue_stop))
        spec = LocalQueueSpec(cluster_queue="gpu", stop_policy=local_stop)
        LocalQueue("team-a", spec, namespace="team-a", object_name="gpu", cluster_queue=queue)

    recording = pulumi_mocks.run(program)
    local = recording.one("LocalQueue", custom=True)
    assert ("annotations" in local.inputs["metadata"]) is waits
    assert recording.is_before(recording.one("ClusterQueue", custom=True), local)


def test_another_cluster_queue_replaces_the_local_queue_and_deletes_the_old_one_first() -> None:
    spec = LocalQueueSpec(cluster_queue="gpu")
    recorded = pulumi_mocks.run(lambda: LocalQueue("q", spec, namespace="a")).one("LocalQueue", custom=True)
    assert recorded.replace_on_changes == ("spec.clusterQueue",)
    assert recorded.delete_before_replace


def test_another_value_replaces_a_priority_class() -> None:
    recorded = pulumi_mocks.run(lambda: PriorityClass("batch", PriorityClassFields(value=1))).one(
        "PriorityClass", custom=True
    )
    assert recorded.replace_on_changes == ("value", "preemptionPolicy")
    assert recorded.delete_before_replace


def test_objects_that_queues_hold_on_to_are_never_replaced_by_themselves() -> None:
    """Kueue keeps the deleted one until no queue uses it, so that a replacement would wait for itself."""

    def program() -> None:
        flavor()
        Topology("racks", TopologySpec(levels=(TopologyLevel(node_label="rack"),)))
        ClusterQueue("gpu", ClusterQueueSpec())

    recording = pulumi_mocks.run(program)
    assert all(not r.replace_on_changes for r in recording if r.custom)


def test_fields_at_the_top_of_an_object_stay_there() -> None:
    recorded = pulumi_mocks.run(
        lambda: WorkloadPriorityClass("urgent", WorkloadPriorityClassFields(value=7, description="now"))
    ).one("WorkloadPriorityClass", custom=True)
    assert recorded.inputs == {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "WorkloadPriorityClass",
        "metadata": {"name": "urgent"},
        "value": 7,
        "description": "now",
    }


def test_the_object_may_have_another_name_than_the_component() -> None:
    recording = run_flavor(name="eu/l4", object_name="l4")
    assert recording.one("ResourceFlavor", "eu/l4", custom=True).inputs["metadata"]["name"] == "l4"
    assert recording.one("ResourceFlavor", "eu/l4", custom=False).outputs == {"name": "l4", "objectName": "l4"}


def test_a_manifest_of_another_kind_is_refused() -> None:
    manifest = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "Cohort", "metadata": {"name": "a"}, "spec": {}}
    with pytest.raises(
        ValueError, match="a manifest of kind 'Cohort' with the name 'a' is given; give one of kind ResourceFlavor"
    ):
        pulumi_mocks.run(lambda: ResourceFlavor("l4", manifest))


def test_a_local_queue_needs_a_namespace() -> None:
    with pytest.raises(ValueError, match="LocalQueue q: no namespace is given; give namespace="):
        pulumi_mocks.run(lambda: LocalQueue("q", LocalQueueSpec(cluster_queue="gpu")))
