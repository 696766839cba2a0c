"""Property names are those of the installed pulumi-gcp."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kueue_fleet.rehearsal.standins.gcp_resources import CLUSTER, KINDS, NODE_POOL
from kueue_fleet.rehearsal.standins.gcp_schema import PROVIDER_TOKEN, Schema, check_properties, load_schema
from kueue_fleet.rehearsal.standins.install import GCP, install_standins
from kueue_fleet.rehearsal.standins.property_values import UNKNOWN, Secret

VERSION = "10.2.0"


@pytest.fixture(scope="module")
def schema(tmp_path_factory: pytest.TempPathFactory) -> Schema:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KUEUE_FLEET_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        return load_schema((PROVIDER_TOKEN, *KINDS), VERSION)


def _problems(schema: Schema, token: str, given: dict[str, Any]) -> list[str]:
    return [reason for _, reason in check_properties(schema, schema.inputs(token), given)]


def test_every_known_kind_has_inputs_and_the_names_its_rules_use(schema: Schema) -> None:
    for token, kind in KINDS.items():
        inputs = schema.inputs(token)
        for pattern in kind.replacing:
            assert pattern[0] in inputs, f"{token}: {pattern[0]} replaces, but there is no such input"
        for name, _ in kind.defaults:
            assert name in inputs


def test_properties_of_the_sdk_pass(schema: Schema) -> None:
    given = {
        "name": "c",
        "releaseChannel": {"channel": "REGULAR"},
        "resourceLabels": {"any-key": "x"},
        "nodeLocations": ["a", UNKNOWN],
        "initialNodeCount": "1",
        "deletionProtection": Secret(True),
        "masterAuth": UNKNOWN,
        "ipAllocationPolicy": {},
        "clusterAutoscaling": {"resourceLimits": [{"resourceType": "cpu", "maximum": 10}]},
    }
    assert _problems(schema, CLUSTER, given) == []


@pytest.mark.parametrize(
    ("token", "given", "words"),
    [
        (
            CLUSTER,
            {"enableAutopliot": True},
            "enableAutopliot: pulumi-gcp has no such property; did you mean enableAutopilot?",
        ),
        (CLUSTER, {"enable_autopilot": True}, "did you mean enableAutopilot?"),
        (
            CLUSTER,
            {"releaseChannel": {"chan": "x"}},
            "releaseChannel.chan: pulumi-gcp has no such property; did you mean channel?",
        ),
        (
            CLUSTER,
            {"clusterAutoscaling": {"resourceLimits": [{"max": 1}]}},
            "clusterAutoscaling.resourceLimits[0].max: pulumi-gcp has no such property",
        ),
        (CLUSTER, {"releaseChannel": Secret("REGULAR")}, "releaseChannel: str given; it is an object"),
        (CLUSTER, {"nodeLocations": "a"}, "nodeLocations: str given; it is a list"),
        (CLUSTER, {"name": {"a": 1}}, "name: dict given; it is a string"),
        (CLUSTER, {"initialNodeCount": "many"}, "initialNodeCount: str given; it is a whole number"),
        (CLUSTER, {"deletionProtection": "maybe"}, "deletionProtection: str given; it is true or false"),
        (NODE_POOL, {"nodeConfig": {"flexstart": True}}, "nodeConfig.flexstart: pulumi-gcp has no such property"),
    ],
)
def test_other_names_and_shapes_are_refused(schema: Schema, token: str, given: dict[str, Any], words: str) -> None:
    (reason,) = _problems(schema, token, given)
    assert words in reason


def test_all_problems_are_reported_at_once(schema: Schema) -> None:
    assert len(_problems(schema, CLUSTER, {"x1": 1, "releaseChannel": {"x2": 1}, "nodeLocations": {}})) == 3


def test_the_schema_is_read_once_for_a_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUEUE_FLEET_CACHE_DIR", str(tmp_path))
    load_schema(("gcp:projects/service:Service",), VERSION)
    (cached,) = Path(tmp_path, "gcp-schema").iterdir()
    cached.write_text('{"resources": {"gcp:projects/service:Service": {"inputs": {}}}, "types": {}}', encoding="utf-8")
    assert load_schema(("gcp:projects/service:Service",), VERSION).inputs("gcp:projects/service:Service") == {}


def test_a_type_that_the_sdk_does_not_have_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUEUE_FLEET_CACHE_DIR", str(tmp_path))
    with pytest.raises(RuntimeError, match="cannot be read"):
        load_schema(("gcp:container/nothing:Nothing",), VERSION)


def test_the_launcher_reports_the_sdks_version(tmp_path: Path) -> None:
    import sys

    install_standins(tmp_path, Path(sys.executable), present={})
    assert f" gcp_provider {VERSION} " in Path(tmp_path, GCP.executable).read_text(encoding="utf-8")
