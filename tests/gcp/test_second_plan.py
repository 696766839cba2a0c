"""A second `pulumi up` changes nothing: what is declared, held against what Google answers."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
import yaml
from hypothesis import Phase, given, settings
from tests.fleet_files import fleets

import google_cloud
from company_fleet import company_data
from drawn import examples
from gcp_sdk import component_types
from google_cloud import differences
from kueue_fleet import Fleet
from kueue_fleet.fleet_file import FleetSpec, parse_fleet, parse_fleet_text
from kueue_fleet.fleet_file.check.google_cloud import OWN_LABELS
from kueue_rehearsal.standins.gcp_resources import completed
from pulumi_mocks import Recording
from small_fleets import fleet, standalone_data

ROOT = Path(__file__).parents[2]
DATA = ROOT / "examples" / "data" / "fleet.yaml"
GPU_NETWORKS = ROOT / "examples" / "gpu-networks" / "fleet.yaml"
FILES = sorted(
    [
        *(ROOT / "stacks").glob("Pulumi.*.yaml"),
        *(each for each in (ROOT / "examples").glob("*/Pulumi.*.yaml") if "kueue-fleet:fleet" in each.read_text()),
        *(ROOT / "examples").glob("*/fleet.yaml"),
    ]
)


def _company(**more: object) -> FleetSpec:
    data = company_data()
    data["reservations"][1] |= more
    return parse_fleet(data)


TEST_FLEETS = {
    "autopilot": fleet(),
    "controller": fleet(controller={}),
    "history in a bucket": fleet(controller={"history": {"store": "gs://lab-history/fleets/lab"}}),
    "standard": parse_fleet(standalone_data()),
    "company": parse_fleet(company_data()),
    "gpu networks": parse_fleet_text(GPU_NETWORKS.read_text(encoding="utf-8"), GPU_NETWORKS.name),
    "shared by id": _company(sharedWith=["company-research"]),
    "shared network": fleet(
        network={
            "existing": {
                "name": "vpc",
                "project": "network-host",
                "subnets": {
                    "europe-west4": {"name": "a", "podRangeName": "p", "cidr": "10.0.0.0/20", "podCidr": "10.4.0.0/14"},
                    "us-east4": {"name": "b", "podRangeName": "p", "serviceRangeName": "s"},
                },
            },
            "controlPlaneAccess": "AuthorizedNetworks",
            "authorizedNetworks": [{"name": "office", "cidr": "203.0.113.0/24"}],
        }
    ),
    "addresses": fleet(
        network={
            "controlPlaneAccess": "AuthorizedNetworks",
            "authorizedNetworks": [{"name": "office", "cidr": "203.0.113.0/24"}],
            "serviceRanges": {"us-east4": "10.127.0.0/20"},
        }
    ),
}


def declared(spec: FleetSpec) -> Recording:
    """Google's resources of the fleet; what is inside the clusters is left out."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Fleet, "_fill", lambda *_: None)
        secrets = {name: {"token": "hf-1234"} for team in spec.teams for name in team.secrets}
        return google_cloud.run(lambda: Fleet(spec.name, spec, team_secrets=secrets))


@cache
def declared_by_name(name: str) -> Recording:
    """The same of a fleet of the tests; not to be changed."""
    return declared(TEST_FLEETS[name])


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_stacks_and_examples_stay_as_they_are(path: Path) -> None:
    assert differences(declared(parse_fleet_text(path.read_text(encoding="utf-8"), path.name))) == {}


@pytest.mark.parametrize("name", TEST_FLEETS)
def test_fleets_of_the_tests_stay_as_they_are(name: str) -> None:
    assert differences(declared_by_name(name)) == {}


@settings(max_examples=examples(200), deadline=None, phases=[Phase.explicit, Phase.generate], derandomize=True)
@given(fleets())
def test_random_fleets_stay_as_they_are(spec: FleetSpec) -> None:
    assert differences(declared(spec)) == {}


def test_clusters_have_the_labels_that_check_leaves_room_for() -> None:
    unprotected = _company().model_copy(update={"deletion_protection": False})
    for cluster in declared(unprotected).of_type("gcp:container/cluster:Cluster"):
        own = set(cluster.inputs["resourceLabels"]) - set(unprotected.labels)
        assert {*own, "goog-pulumi-provisioned"} == OWN_LABELS


def test_these_fleets_have_every_type_that_the_components_have() -> None:
    recordings = [declared_by_name(name) for name in ("company", "controller", "gpu networks")]
    recordings.append(declared(parse_fleet_text(DATA.read_text(encoding="utf-8"), DATA.name)))
    types = {resource.type for recording in recordings for resource in recording}
    assert {token for token in component_types() if token.startswith("gcp:")} <= types


@pytest.mark.parametrize("name", TEST_FLEETS)
def test_everything_names_its_project_so_that_a_stack_has_it_in_one_place(name: str) -> None:
    for resource in declared_by_name(name):
        if resource.type.startswith("gcp:"):
            assert completed(resource.type, dict(resource.inputs), {}), "as if the provider knew no project and region"


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_stacks_and_examples_have_their_project_once(path: Path) -> None:
    assert "gcp:project" not in (yaml.safe_load(path.read_text(encoding="utf-8")).get("config") or {})
