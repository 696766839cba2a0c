"""The package schema: every component, every field of the models, all documented; the whole of it as a golden file."""

from __future__ import annotations

import dataclasses
from functools import cache
from typing import Any

import pytest
from pydantic import BaseModel
from pydantic.alias_generators import to_camel
from syrupy.assertion import SnapshotAssertion

import kueue_fleet
from kueue_fleet import ManagerCluster
from kueue_fleet.fleet_file.form import models_in
from kueue_fleet.fleet_file.former_names import former_names
from kueue_fleet.fleet_file.model.tagged import Tagged
from kueue_fleet.fleet_file.schema import field_docs
from kueue_fleet.fleet_inputs import FleetInputs
from kueue_fleet.gcp_components.network import NetworkIds
from kueue_fleet.kueue_components.credentials import WorkerGrant
from kueue_fleet.kueue_components.plain_cluster import KubernetesCluster
from kueue_fleet.plugin.arguments import arguments_of
from kueue_fleet.plugin.descriptions import ARGUMENTS, OF_COMPONENT
from kueue_fleet.plugin.package import components, outputs_of, package_schema


@cache
def whole_schema() -> dict[str, Any]:
    return package_schema()


def test_every_public_component_is_there_as_a_component() -> None:
    assert set(whole_schema()["resources"]) == {f"kueue-fleet:index:{name}" for name in components()}
    assert all(resource["isComponent"] for resource in whole_schema()["resources"].values())


def test_everything_is_documented() -> None:
    for token, resource in whole_schema()["resources"].items():
        assert resource["description"], token
        for key, item in {**resource["inputProperties"], **resource["properties"]}.items():
            assert item["description"], f"{token}.{key}"
    for token, kind in whole_schema()["types"].items():
        if "enum" not in kind:
            assert kind["description"], token
        for key, item in kind.get("properties", {}).items():
            assert item.get("description"), f"{token}.{key}"


@pytest.mark.parametrize("name", components())
def test_every_field_of_the_models_is_in_the_schema(name: str) -> None:
    root = arguments_of(getattr(kueue_fleet, name))
    seen: set[type[BaseModel]] = set()
    for model in models_in(root, seen):
        if model is root:
            known = whole_schema()["resources"][f"kueue-fleet:index:{name}"]
            properties, required = known["inputProperties"], known["requiredInputs"]
        else:
            known = whole_schema()["types"][f"kueue-fleet:spec:{model.__name__}"]
            properties, required = known["properties"], known.get("required", [])
        fields = {field.alias: field for field in model.model_fields.values()}
        assert set(properties) == {*fields, *former_names(model)}
        told_apart = {"type"} if issubclass(model, Tagged) else set()
        assert set(required) == {alias for alias, field in fields.items() if field.is_required()} | told_apart


def test_no_description_is_left_over() -> None:
    used = {key for name in components() for key in fields(arguments_of(getattr(kueue_fleet, name)))}
    used |= {"dns", "networks", "kubernetesTokens"}  # of ControlPlaneAccess
    used |= {
        to_camel(item.name)
        for kind in (KubernetesCluster, NetworkIds, WorkerGrant)
        for item in dataclasses.fields(kind)
    }
    used -= {"spec"}  # said by its model, or of the component
    used -= {to_camel(entry) for entry in set(field_docs(FleetInputs)) - {"project", "network"}}
    assert set(ARGUMENTS) == used
    assert {name for name, _ in OF_COMPONENT} <= set(components())


def fields(model: type[BaseModel]) -> set[str]:
    return {str(field.alias) for field in model.model_fields.values()}


def test_only_what_may_be_an_output_is_not_plain() -> None:
    inputs = whole_schema()["resources"]["kueue-fleet:index:WorkerCluster"]["inputProperties"]
    ids = {
        "existingId",
        "imagesOf",
        "network",
        "nodeServiceAccount",
        "podRangeName",
        "project",
        "serviceRangeName",
        "subnetwork",
    }
    assert {key for key, item in inputs.items() if not item.get("plain")} == ids


def test_outputs_are_data() -> None:
    result = outputs_of(ManagerCluster)
    assert {"endpoint", "kubeconfig", "nodeServiceAccount"} <= set(result)
    assert "cluster" not in result
    assert "provider" not in result


def test_schema(snapshot: SnapshotAssertion) -> None:
    lines = []
    for token, resource in whole_schema()["resources"].items():
        lines.append(token)
        for key, each in resource["inputProperties"].items():
            must = "!" if key in resource["requiredInputs"] else "?"
            lines.append(f"  {key}{must}: {shape(each)}  {each['description']}")
        lines += [f"  -> {key}: {shape(each)}  {each['description']}" for key, each in resource["properties"].items()]
    for token, kind in whole_schema()["types"].items():
        short = token.rpartition(":")[2]
        if "enum" in kind:
            lines.append(f"{short} = {' | '.join(item['value'] for item in kind['enum'])}")
            continue
        properties = kind["properties"].items()
        must = kind.get("required", [])
        lines += [f"{short}.{key}{'!' if key in must else '?'}: {shape(entry)}" for key, entry in properties]
    assert "\n".join(lines) == snapshot


def shape(each: dict[str, Any]) -> str:
    mark = "" if each.get("plain") else "~"
    if "oneOf" in each:
        return mark + " | ".join(shape(choice) for choice in each["oneOf"])
    if "$ref" in each:
        return mark + str(each["$ref"]).rpartition(":")[2].rpartition("/")[2]
    if each["type"] == "array":
        return f"{mark}[{shape(each['items'])}]"
    if each["type"] == "object":
        return f"{mark}{{{shape(each['additionalProperties'])}}}"
    return mark + str(each["type"])
