"""The JSON schema for editors."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from typing import Any

from kueue_fleet.fleet_file import json_schema


@cache
def whole_schema() -> dict[str, Any]:
    return json_schema()


def test_covers_bare_files_and_stacks() -> None:
    assert whole_schema()["else"] == {"$ref": "#/$defs/FleetSpec"}
    config = whole_schema()["then"]["properties"]["config"]
    assert config["required"] == ["kueue-fleet:fleet"]
    assert config["properties"]["kueue-fleet:fleet"] == {"$ref": "#/$defs/FleetSpec"}


def test_fields_are_named_as_in_files_and_no_others_allowed() -> None:
    fleet = whole_schema()["$defs"]["FleetSpec"]
    assert set(fleet["required"]) == {"name", "clusters"}
    assert "clusterQueues" in fleet["properties"]
    for definition in whole_schema()["$defs"].values():
        if definition.get("type") == "object":
            assert definition["additionalProperties"] is False
            assert not [name for name in definition["properties"] if "_" in name]


def test_docstrings_are_the_descriptions() -> None:
    queue = whole_schema()["$defs"]["ClusterQueueEntry"]
    assert queue["description"] == "A ClusterQueue and the clusters where it exists."
    assert queue["properties"]["cohortName"]["description"].startswith("The cohort to borrow from")
    assert queue["properties"]["clusters"]["description"].startswith("Default: every cluster that runs jobs.")


def test_quantities_and_durations_are_described() -> None:
    quota = whole_schema()["$defs"]["FleetResourceQuota"]["properties"]["nominalQuota"]
    assert {option["type"] for option in quota["anyOf"]} == {"number", "string"}
    assert "Duration" not in whole_schema()["$defs"]


def references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value.get("$ref"), str):
            yield value["$ref"]
        for item in value.values():
            yield from references(item)
    elif isinstance(value, list):
        for item in value:
            yield from references(item)


def test_every_reference_is_defined() -> None:
    result = {reference.removeprefix("#/$defs/") for reference in references(whole_schema())}
    assert result
    assert result <= set(whole_schema()["$defs"])


def test_plain_json() -> None:
    assert json.loads(json.dumps(whole_schema())) == whole_schema()
