"""Every property that the components pass exists in pulumi-gcp's and pulumi-kubernetes' own argument types.

The type checker holds the arguments of the classes; what is data until then, such as a node pool, is held here.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pulumi_gcp
import pytest
import yaml
from pulumi import _types

import declared_fleets
import pulumi_mocks
from company_fleet import company_data
from gcp_sdk import component_types, nested_arguments, sdk_arguments, unknown_properties
from kueue_fleet import Fleet
from kueue_fleet.fleet_file import FleetSpec, parse_fleet
from kueue_fleet.gke.labels import ACCELERATOR
from kueue_fleet.google.provider_facts import Fact, load_facts
from kueue_rehearsal.standins.docker_build_provider import image_facts
from kueue_rehearsal.standins.gcp_provider import SETTINGS
from pulumi_mocks import Recorded, Recording
from small_fleets import fleet, standalone_data

_DATA = yaml.safe_load((Path(__file__).parents[2] / "examples/data/fleet.yaml").read_text(encoding="utf-8"))
SPECS = {
    "autopilot": fleet(),
    "controller": fleet(controller={}),
    "standard": parse_fleet(standalone_data()),
    "company": parse_fleet(company_data()),
    "addresses": fleet(
        network={
            "controlPlaneAccess": "AuthorizedNetworks",
            "authorizedNetworks": [{"name": "office", "cidr": "203.0.113.0/24"}],
            "serviceRanges": {"us-east4": "10.127.0.0/20"},
        }
    ),
    "provisioned": parse_fleet(
        standalone_data(
            flavors=[{"name": name, "nodeLabels": {ACCELERATOR: "nvidia-l4"}} for name in ("l4", "h100")],
            clusters=[
                {
                    "name": "batch",
                    "role": "standalone",
                    "region": "us-central1",
                    "mode": "Standard",
                    "diskEncryptionKey": "projects/k-1234/locations/us-central1/keyRings/r/cryptoKeys/k",
                    "nodeAutoProvisioning": {
                        "resourceLimits": [
                            {"resourceType": "cpu", "maximum": 100},
                            {"resourceType": "memory", "maximum": 1000},
                            {"resourceType": "nvidia-l4", "maximum": 24},
                        ],
                        "zones": ["us-central1-a"],
                    },
                }
            ],
        )
    ),
    "data": parse_fleet({**_DATA, "teams": [{**_DATA["teams"][0], "secrets": []}]}),
}
OURS = ("gcp:", "docker-build:")
NOT_IN_THE_SCHEMA = {
    "gcp:compute/disk:Disk diskEncryptionKey.rawKeyWo",
    "gcp:compute/disk:Disk diskEncryptionKey.rawKeyWoVersion",
    "gcp:compute/disk:Disk diskEncryptionKey.rsaEncryptedKeyWo",
    "gcp:compute/disk:Disk diskEncryptionKey.rsaEncryptedKeyWoVersion",
    "gcp:container/cluster:Cluster nodePools.bestEffortProvisioning",
    "gcp:container/cluster:Cluster nodePools.networkConfig.additionalNodeNetworkConfigs.stackType",
    "gcp:container/nodePool:NodePool bestEffortProvisioning",
    "gcp:container/nodePool:NodePool networkConfig.additionalNodeNetworkConfigs.stackType",
    "gcp:gkehub/fleet:Fleet defaultClusterConfig.compliancePostureConfig",
    "gcp:gkehub/fleet:Fleet labels",
    "gcp:lustre/instance:Instance targetVersion",
}
"""Properties that the SDK has and the provider's schema has no longer, outermost."""


@cache
def declared(kind: str) -> Recording:
    """What the fleet of that kind declares."""
    if kind == "company":
        return declared_fleets.company()
    spec: FleetSpec = SPECS[kind]
    return pulumi_mocks.run(lambda: Fleet(spec.name, spec))


def missing_properties(value: Any, arguments: type, path: str) -> Iterator[str]:
    """Paths that `arguments` requires and `value` does not have."""
    names, known = _types.input_type_py_to_pulumi_names(arguments), _types.input_type_types(arguments)
    for name, parameter in inspect.signature(arguments).parameters.items():
        if name in names and parameter.default is inspect.Parameter.empty and names[name] not in value:
            yield f"{path}.{names[name]}"
    for key, part in value.items():
        nested = nested_arguments(known[key]) if key in known else None
        for item in part if isinstance(part, list) else [part]:
            if isinstance(item, Mapping) and nested is not None:
                yield from missing_properties(item, nested, f"{path}.{key}")


@pytest.mark.parametrize("kind", SPECS)
def test_only_properties_that_the_sdk_knows_are_passed(kind: str) -> None:
    recording = declared(kind)
    checked: list[Recorded] = [r for r in recording if r.type.startswith(OURS) or r.type.endswith(":Release")]
    assert {r.type.split(":")[0] for r in checked} >= {"gcp", "kubernetes"}
    unknown = [
        path
        for resource in checked
        for path in unknown_properties(
            {key: value for key, value in resource.inputs.items() if key not in ("compat",)},
            sdk_arguments(resource.type),
            resource.type,
        )
    ]
    assert not unknown


@pytest.mark.parametrize("kind", SPECS)
def test_every_property_that_the_sdk_requires_is_passed(kind: str) -> None:
    for resource in declared(kind):
        if not resource.type.startswith(OURS):
            continue
        missing = missing_properties(resource.inputs, sdk_arguments(resource.type), resource.type)
        assert not list(missing), resource.short


def test_every_type_that_the_components_have_is_looked_at() -> None:
    seen = {r.type for kind in SPECS for r in declared(kind)}
    assert component_types() == {token for token in seen if token.startswith(OURS)}


def test_a_misspelt_property_is_found() -> None:
    arguments = sdk_arguments("gcp:container/cluster:Cluster")
    wrong = {"releaseChanel": {}, "privateClusterConfig": {"enablePrivateNode": True}}
    assert list(unknown_properties(wrong, arguments, "Cluster")) == [
        "Cluster.releaseChanel",
        "Cluster.privateClusterConfig.enablePrivateNode",
    ]


def test_a_missing_property_is_found_at_any_depth() -> None:
    arguments = sdk_arguments("gcp:container/nodePool:NodePool")
    incomplete = {"nodeConfig": {"taints": [{"key": "a"}]}}
    assert list(missing_properties(incomplete, arguments, "NodePool")) == [
        "NodePool.cluster",
        "NodePool.nodeConfig.taints.effect",
        "NodePool.nodeConfig.taints.value",
    ]


def _inputs(facts: Mapping[str, Fact], path: str = "") -> Iterator[str]:
    for name, fact in facts.items():
        if fact.is_input:
            yield f"{path}{name}"
            yield from _inputs(fact.children, f"{path}{name}.")


def _arguments(arguments: type, path: str = "") -> Iterator[str]:
    for name, annotation in _types.input_type_types(arguments).items():
        yield f"{path}{name}"
        nested: Any = nested_arguments(annotation)
        if nested is not None:
            yield from _arguments(nested, f"{path}{name}.")


def _all_names(facts: Mapping[str, Fact], path: str = "") -> Iterator[str]:
    for name, fact in facts.items():
        yield f"{path}{name}"
        yield from _all_names(fact.children, f"{path}{name}.")


def test_the_installed_sdk_has_every_input_and_nothing_more_than_the_schema() -> None:
    """The facts are those of the SDK that is installed: a new one shows here what has to be read again."""
    more = set()
    for token, facts in {**load_facts().resources, **image_facts().resources}.items():
        known = set(_arguments(sdk_arguments(token)))
        assert set(_inputs(facts)) <= known, token
        unknown = known - set(_all_names(facts))
        more |= {f"{token} {path}" for path in unknown if path.rpartition(".")[0] not in unknown}
    assert more == NOT_IN_THE_SCHEMA


def test_the_settings_of_the_provider_are_those_of_the_sdk() -> None:
    known = {name for name in _types.input_type_types(pulumi_gcp.ProviderArgs) if not name.endswith("CustomEndpoint")}
    assert set(SETTINGS) == {*known, "version", "pluginDownloadURL"}
