"""What is rendered is what the components declare, of every fleet of stacks, examples and tests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pulumi
import pytest
from pulumi.runtime import mocks
from tests.gcp.test_second_plan import FILES, TEST_FLEETS

import pulumi_mocks
from kueue_fleet import Fleet, testing
from kueue_fleet.fleet_file import FleetSpec, parse_fleet, parse_fleet_text
from kueue_fleet.google.document import document
from kueue_fleet.google.resource import CloudResource, Joined, Ref, filled
from kueue_fleet.google.resource_types import API_SERVICE
from kueue_fleet.google.resources import resources_on
from pulumi_mocks import Recorded, Recording
from small_fleets import fleet

PROJECT = {"name": "lab", "project": "lab-project"}
EXISTING = {"name": "batch", "role": "standalone", "region": "us-central1", "existing": True}
POOL = {"name": "l4", "machineType": "g2-standard-24", "zones": ["us-central1-a"], "nodeCount": 2}
FLEETS: dict[str, FleetSpec | Path] = {
    **{f"{path.parent.name}/{path.name}": path for path in FILES},
    **TEST_FLEETS,
    "existing Autopilot": parse_fleet({**PROJECT, "clusters": [EXISTING]}),
    "existing Standard": parse_fleet({**PROJECT, "clusters": [{**EXISTING, "mode": "Standard"}], "nodePools": [POOL]}),
    "unprotected": fleet(deletionProtection=False),
}


def references(value: Any) -> Iterator[Ref]:
    """Those in properties."""
    if isinstance(value, Ref):
        yield value
    parts: Any = value.parts if isinstance(value, Joined) else value
    for part in parts.values() if isinstance(parts, Mapping) else parts if isinstance(parts, list | tuple) else ():
        yield from references(part)


def known(properties: Any) -> Any:
    """Properties with what the mocks answer for every reference: what Pulumi YAML writes, but for a switch."""
    return filled(properties, lambda ref: True if ref.output.endswith(".enablePrivateNodes") else str(ref))


class Named(testing.Mocks):
    """Answers with the names of the references, so that it shows where each went."""

    def __init__(self, resources: tuple[CloudResource, ...]) -> None:
        super().__init__()
        self.references = {item for resource in resources for item in references(resource.properties)}

    def new_resource(self, args: mocks.MockResourceArgs) -> tuple[str, dict[str, Any]]:
        id_, state = super().new_resource(args)
        key = f"{args.typ.rpartition(':')[2]}/{args.name}"
        state |= {item.output: str(item) for item in self.references if item.resource == key and "." not in item.output}
        state["privateClusterConfig"] = {**state.get("privateClusterConfig", {}), "enablePrivateNodes": True}
        return state.get("id", id_), state


def declared(spec: FleetSpec, resources: tuple[CloudResource, ...]) -> Recording:
    """What a program with this fleet declares in Google Cloud, and what it reads there."""

    def program() -> pulumi.Output[Any]:
        secrets = {name: {"token": "hf-1234"} for team in spec.teams for name in team.secrets}
        result = Fleet(spec.name, spec, team_secrets=secrets)
        return pulumi.Output.from_input([item.provider.id for item in result.clusters.values()])

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Fleet, "_fill", lambda *_: None)
        return pulumi_mocks.run(program, outputs=Named(resources))


def key_of(recorded: Recorded) -> str:
    """As `google` has it."""
    return f"{recorded.type.rpartition(':')[2]}/{recorded.name}"


def as_rendered(recorded: Recorded, keys: Mapping[str, str]) -> tuple[Any, ...]:
    return (
        recorded.type,
        recorded.name,
        recorded.inputs,
        recorded.protect,
        recorded.ignore_changes,
        recorded.replace_on_changes,
        tuple(keys[urn] for urn in recorded.replace_with),
        recorded.delete_before_replace,
        keys.get(recorded.deleted_with),
        recorded.retain_on_delete,
    )


def as_declared(resource: CloudResource) -> tuple[Any, ...]:
    return (
        resource.type,
        resource.name,
        known(resource.properties),
        bool(resource.protect),
        resource.ignore_changes,
        resource.replace_on_changes,
        resource.replace_with,
        bool(resource.delete_before_replace),
        resource.deleted_with,
        bool(resource.retain_on_delete),
    )


@pytest.mark.parametrize("name", FLEETS)
def test_what_is_rendered_is_what_is_declared(name: str) -> None:
    source = FLEETS[name]
    spec = source if isinstance(source, FleetSpec) else parse_fleet_text(source.read_text(encoding="utf-8"), name)
    resources = resources_on(spec)
    recording = declared(spec, resources)
    keys = {each.urn: key_of(each) for each in recording if each.type.startswith("gcp:")}
    results = {key: as_rendered(recording.resources[urn], keys) for urn, key in keys.items()}
    result = [each for each in resources if each.read is None]
    assert {each.key: as_declared(each) for each in result} == results
    assert {each.read for each in resources if each.read is not None} == set(recording.read)
    assert len(result) == len(keys), "keys are unique"
    first = {item.key for item in result if item.type == API_SERVICE}
    for resource in result:
        [urn] = [urn for urn, key in keys.items() if key == resource.key]
        waits = {keys[entry] for entry in recording.waits_for(recording.resources[urn]) if entry in keys}
        expected = {*resource.needs, *(each.resource for each in references(resource.properties))}
        assert expected & set(results) <= waits, resource.key
        assert resource.key in first or first <= waits, resource.key


def test_a_text_that_looks_like_an_expression_is_none() -> None:
    resource = CloudResource("gcp:a/b:C", "lab/c", {"text": "${a}", "ref": Ref("Account/lab/a.b", "email")})
    assert document(resource)["properties"] == {"text": "$${a}", "ref": '${["Account/lab/a.b"].email}'}


def test_who_writes_a_history_creates_and_reads_objects_below_its_path_and_nothing_else() -> None:
    result = [each for each in resources_on(TEST_FLEETS["history in a bucket"]) if "/manager/" in each.name]
    kinds = [each.type.rpartition(":")[2] for each in result]
    assert kinds == ["Account", "BucketIAMMember", "BucketIAMMember", "IAMMember"]
    grants = {item.properties["role"]: item.properties for item in result if "BucketIAM" in item.type}
    here = 'resource.name.startsWith("projects/_/buckets/lab-history/objects/fleets/lab/")'
    listed = 'api.getAttribute("storage.googleapis.com/objectListPrefix", "").startsWith("fleets/lab/")'
    assert {role: entry["condition"]["expression"] for role, entry in grants.items()} == {
        "roles/storage.objectCreator": here,
        "roles/storage.objectViewer": f"{here} || {listed}",
    }
    assert {each["bucket"] for each in grants.values()} == {"lab-history"}
