"""The facts of the provider's schema: how they were reduced, and what they say."""

from __future__ import annotations

import json

import pytest

from gcp_sdk import component_types
from kueue_fleet.google.provider_facts import Fact, load_facts, parse_fact
from kueue_fleet.google.resource_kinds import kind_of
from kueue_fleet.google.suppressed import RULES
from kueue_rehearsal.standins.gcp_checks import FORMS
from kueue_rehearsal.standins.reduce_gcp_facts import DATA, reduced

RAW = {
    "gcp:a/b:C": {
        "properties": {
            "name": {"type": "string", "required": True, "forceNew": True, "validated": True},
            "size": {"type": "int", "optional": True, "computed": True, "min": 1, "max": 9, "default": 3},
            "mode": {"type": "string", "optional": True, "allowed": ["", "ON", "OFF"], "diffSuppress": True},
            "block": {"type": "list", "elem": "object", "maxItems": 1, "maxItemsOneFlattened": True, "optional": True},
            "block.one": {"type": "bool", "optional": True, "exactlyOneOf": ["block.two", "block.one"]},
            "block.two": {"type": "bool", "optional": True, "exactlyOneOf": ["block.two", "block.one"]},
            "rules": {"type": "set", "elem": "object", "minItems": 1, "maxItems": 4, "optional": True},
            "rules[].port": {"type": "float", "optional": True, "conflictsWith": ["mode"], "requiredWith": ["size"]},
            "tags": {"type": "map", "elem": "string", "optional": True, "atLeastOneOf": ["tags", "rules"]},
            "zone": {"type": "list", "elem": "string", "maxItems": 1, "maxItemsOneFlattened": True, "computed": True},
        }
    }
}


def test_the_notation_says_everything_that_is_decided_by() -> None:
    content = reduced(RAW, "a provider")
    lines = content["resources"]["gcp:a/b:C"]
    assert content["source"] == "a provider"
    assert lines["name"] == "string required replaces validated"
    assert lines["size"] == "int optional computed min=1 max=9 default=3"
    assert lines["mode"] == "string optional suppressed in=|ON|OFF"
    assert lines["rules"] == "set(block) optional least=1 most=4"
    groups = {name: tuple(paths) for name, paths in content["groups"].items()}
    assert parse_fact(lines["block.one"], groups, {}) == Fact("bool", optional=True, one_of=("block.one", "block.two"))
    assert parse_fact(lines["rules[].port"], groups, {}) == Fact(
        "float", optional=True, conflicts=("mode",), together=("size",)
    )
    assert parse_fact(lines["mode"], groups, {}).allowed == ("", "ON", "OFF")
    assert parse_fact(lines["tags"], groups, {}).some_of == ("rules", "tags")
    assert parse_fact(lines["zone"], groups, {}) == Fact("string", computed=True)


def test_what_the_notation_cannot_say_is_an_error() -> None:
    strange = {"gcp:a/b:C": {"properties": {"x": {"type": "list", "elem": "list"}}}}
    with pytest.raises(ValueError, match="x: a list of list cannot be expressed"):
        reduced(strange, "")


def test_the_data_file_says_where_it_is_from_and_has_every_type() -> None:
    facts = load_facts()
    assert "terraform-provider-google-beta 8.0" in facts.source
    assert sum(map(len, json.loads(DATA.read_text(encoding="utf-8"))["resources"].values())) > 1900
    assert {token for token in component_types() if token.startswith("gcp:")} <= set(facts.resources)


@pytest.mark.parametrize(
    ("token", "template"),
    [
        ("gcp:compute/disk:Disk", "projects/{project}/zones/{zone}/disks/{name}"),
        ("gcp:compute/address:Address", "projects/{project}/regions/{region}/addresses/{name}"),
        ("gcp:compute/resourcePolicy:ResourcePolicy", "projects/{project}/regions/{region}/resourcePolicies/{name}"),
        ("gcp:kms/keyRing:KeyRing", "projects/{project}/locations/{location}/keyRings/{name}"),
        ("gcp:compute/firewall:Firewall", "projects/{project}/global/firewalls/{name}"),
    ],
)
def test_an_id_follows_from_the_properties_of_its_type(token: str, template: str) -> None:
    assert kind_of(token).id_template == template


def test_facts_are_found_by_path() -> None:
    facts = load_facts()
    effect = facts.of("gcp:container/nodePool:NodePool", "nodeConfig.taints[].effect")
    assert effect.allowed == ("NO_SCHEDULE", "PREFER_NO_SCHEDULE", "NO_EXECUTE")
    with pytest.raises(KeyError):
        facts.of("gcp:container/nodePool:NodePool", "nodeConfig.taint")


def test_rules_and_forms_are_of_properties_that_have_some() -> None:
    facts = load_facts()
    for token, path in RULES:
        assert facts.of(token, path).suppressed, f"{token} {path}"
    for token, path in FORMS:
        assert facts.of(token, path).is_input, f"{token} {path}"
