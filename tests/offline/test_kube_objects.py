"""Kubernetes objects: names, ids, what replaces them, what their server stores."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from kueue_fleet.rehearsal.standins.autonaming import generated_name
from kueue_fleet.rehearsal.standins.plugin_errors import PluginError
from kueue_fleet.rehearsal.standins.property_values import UNKNOWN
from kueue_fleet_offline import kube_objects as objects


def test_a_made_up_name_is_the_resources_name_and_the_same_for_the_same_seed() -> None:
    first, second = generated_name("settings", b"seed"), generated_name("settings", b"seed")
    assert first == second
    assert first != generated_name("settings", b"other")
    assert first.startswith("settings-")
    assert len(first) == len("settings-") + 8


def test_a_made_up_name_is_marked() -> None:
    named = objects.with_name({"metadata": {"annotations": {"a": "b"}}}, "x-1", autonamed=True)
    assert named["metadata"] == {"name": "x-1", "annotations": {"a": "b", "pulumi.com/autonamed": "true"}}


def test_the_field_manager_is_annotated_stored_or_new() -> None:
    annotated = {"metadata": {"annotations": {"pulumi.com/patchFieldManager": "me"}}}
    assert objects.field_manager_for(annotated, {"__fieldManager": "old"}) == "me"
    assert objects.field_manager_for({}, {"__fieldManager": "old"}) == "old"
    assert objects.field_manager_for({}, {}).startswith("pulumi-kubernetes-")


@pytest.mark.parametrize(
    ("token", "expected"),
    [
        ("kubernetes:core/v1:Secret", ("v1", "Secret")),
        ("kubernetes:apps/v1:Deployment", ("apps/v1", "Deployment")),
        ("kubernetes:kueue.x-k8s.io/v1beta2:ClusterQueue", ("kueue.x-k8s.io/v1beta2", "ClusterQueue")),
    ],
)
def test_a_type_token_names_a_kind(token: str, expected: tuple[str, str]) -> None:
    assert objects.kind_of_token(token) == expected


def test_a_token_that_is_no_kind_is_refused() -> None:
    with pytest.raises(PluginError, match="not a Kubernetes kind"):
        objects.kind_of_token("kubernetes:yaml:ConfigFile")


@pytest.mark.parametrize(("namespace", "resource_id"), [("ns", "ns/a"), ("", "a")])
def test_ids_are_namespace_and_name(namespace: str, resource_id: str) -> None:
    manifest = objects.with_namespace({"metadata": {"name": "a"}}, namespace)
    assert objects.object_id(manifest) == resource_id
    assert objects.parse_object_id(resource_id) == (namespace, "a")


def test_schema_keys_are_spelled_for_each_side() -> None:
    kubernetes = {"schema": [{"x-kubernetes-preserve-unknown-fields": True}]}
    pulumi = {"schema": [{"x_kubernetes_preserve_unknown_fields": True}]}
    assert objects.to_pulumi_keys(kubernetes) == pulumi
    assert objects.to_kubernetes_keys(pulumi) == kubernetes


def test_the_live_object_is_seen_as_far_as_it_was_asked_for() -> None:
    live = {"spec": {"a": 1, "default": 2, "list": [{"x": 1, "server": 1}, {"y": 1}]}, "status": {}}
    assert objects.pruned(live, {"spec": {"a": 0, "list": [{"x": 0}]}}) == {
        "spec": {"a": 1, "list": [{"x": 1}, {"y": 1}]}
    }


def test_string_data_of_a_secret_is_compared_as_it_is_stored() -> None:
    secret = {"apiVersion": "v1", "kind": "Secret", "data": {"a": "YQ=="}, "stringData": {"b": "b", "c": UNKNOWN}}
    encoded = objects.with_string_data_encoded(secret)
    assert encoded["data"] == {"a": "YQ==", "b": base64.b64encode(b"b").decode(), "c": UNKNOWN}
    assert "stringData" not in encoded
    other = {"apiVersion": "v1", "kind": "ConfigMap", "stringData": {"b": "b"}}
    assert objects.with_string_data_encoded(other) is other


def _replacing(api_version: str, kind: str, **options: Any) -> set[str]:
    inputs = {"apiVersion": api_version, "kind": kind, **options.pop("inputs", {})}
    flags = {"config_map_mutable": False, "secret_mutable": False, **options}
    return {".".join(pattern) for pattern in objects.replacing_patterns(inputs, **flags)}


IDENTITY = {"metadata.name", "metadata.namespace"}


def test_what_replaces_an_object_is_the_real_providers_choice() -> None:
    assert _replacing("kueue.x-k8s.io/v1beta2", "ClusterQueue") == IDENTITY
    assert _replacing("apps/v1", "Deployment") == IDENTITY | {"spec.selector"}
    assert _replacing("rbac.authorization.k8s.io/v1", "ClusterRoleBinding") == IDENTITY | {"roleRef"}
    assert _replacing("v1", "Secret") == IDENTITY | {"type", "data", "stringData"}
    assert _replacing("v1", "ConfigMap") == IDENTITY | {"data", "binaryData"}


def test_secrets_and_config_maps_change_in_place_when_the_provider_says_so() -> None:
    assert _replacing("v1", "Secret", secret_mutable=True) == IDENTITY | {"type"}
    assert _replacing("v1", "ConfigMap", config_map_mutable=True) == IDENTITY
    assert "data" in _replacing("v1", "Secret", secret_mutable=True, inputs={"immutable": True})
    assert "data" in _replacing("v1", "Secret", config_map_mutable=True)


@pytest.mark.parametrize(
    ("first", "second"), [("1000m", "1"), ("1Gi", "1024Mi"), ("1e3", "1k"), (2, "2"), ("0.5", "500m")]
)
def test_quantities_are_the_same_however_they_are_written(first: Any, second: Any) -> None:
    assert objects.parse_quantity(first) == objects.parse_quantity(second)
    assert objects.same_for_server(("spec", "hard", "cpu"), first, second)


@pytest.mark.parametrize("text", ["", "1Q", "abc", True, None, {}])
def test_what_is_no_quantity_has_no_number(text: Any) -> None:
    assert objects.parse_quantity(text) is None


def test_a_built_in_kind_does_not_store_what_is_empty() -> None:
    assert objects.same_for_server(("rules",), None, [])
    assert not objects.same_for_server(("rules",), None, [1])
    assert not objects.same_for_server(("spec", "text"), "1000m", "1"), "only where a quantity is meant"


def test_server_side_apply_takes_over_what_the_create_left() -> None:
    managed = [
        {"manager": "pulumi-kubernetes-1", "operation": "Update", "fieldsV1": {"f:spec": {"f:a": {}}}},
        {"manager": "pulumi-kubernetes-1", "operation": "Apply", "fieldsV1": {"f:spec": {"f:b": {}}}},
        {"manager": "pulumi-kubernetes-1", "operation": "Update", "subresource": "status", "fieldsV1": {}},
        {"manager": "kueue", "operation": "Update", "fieldsV1": {"f:status": {}}},
    ]
    taken = objects.taken_over(managed, "pulumi-kubernetes-1")
    assert taken is not None
    assert [entry["manager"] for entry in taken] == ["pulumi-kubernetes-1", "kueue", "pulumi-kubernetes-1"]
    assert taken[-1]["operation"] == "Apply"
    assert taken[-1]["fieldsV1"] == {"f:spec": {"f:a": {}, "f:b": {}}}
    assert objects.taken_over(taken, "pulumi-kubernetes-1") is None


def test_wait_for_is_one_expression_or_a_list() -> None:
    assert objects.parse_wait_for("condition=Active") == ["condition=Active"]
    assert objects.parse_wait_for('["condition=A", "jsonpath={.b}=c"]') == ["condition=A", "jsonpath={.b}=c"]


@pytest.mark.parametrize("text", ["Active", '["condition=A", "B"]', "[]"])
def test_wait_for_without_a_prefix_is_refused(text: str) -> None:
    with pytest.raises(PluginError, match=r"pulumi\.com/waitFor"):
        objects.parse_wait_for(text)
