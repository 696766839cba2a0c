"""APIs and rights on keys that a fleet needs, and the page that lists them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.fleet_file.builders import standalone_data

from company_fleet import company_data
from kueue_fleet.fleet_file import parse_fleet
from kueue_fleet.fleet_file.prerequisites import KEY_ROLE, KeyGrant, key_grants, required_apis

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "tasks" / "create-a-fleet.md"
STACKS = sorted((ROOT / "stacks").glob("Pulumi.*.yaml"))
KEY = "projects/keys-1/locations/us-central1/keyRings/r/cryptoKeys/k"


def apis(**cluster: Any) -> set[str]:
    data = standalone_data()
    data["clusters"][0] |= cluster
    return {api.name.partition(".")[0] for api in required_apis(parse_fleet(data), data["project"])}


@pytest.mark.parametrize(
    ("cluster", "api", "without"),
    [
        ({}, "gkehub", {"fleetMembership": False}),
        ({}, "containerfilesystem", {"mode": "Standard", "imageStreaming": False}),
        ({"databaseEncryptionKey": KEY}, "cloudkms", {}),
        ({"diskEncryptionKey": KEY}, "cloudkms", {}),
        ({"binaryAuthorization": True}, "binaryauthorization", {}),
    ],
)
def test_apis_are_those_of_what_is_used(cluster: dict[str, Any], api: str, without: dict[str, Any]) -> None:
    assert api in apis(**cluster)
    assert api not in apis(**without)


def test_every_fleet_has_pods_that_act_as_accounts() -> None:
    assert {"container", "compute", "iam", "iamcredentials", "logging", "monitoring"} <= apis()


def test_service_agents_need_the_keys() -> None:
    fleet = parse_fleet(company_data())
    grants = key_grants(fleet.clusters)
    assert len(grants) == len(set(grants)) == 6, "three regions, each with a key for etcd and one for disks"
    (first, *_) = fleet.clusters
    assert first.disk_encryption_key is not None
    agent = "service-PROJECT_NUMBER@compute-system.iam.gserviceaccount.com"
    assert KeyGrant(first.disk_encryption_key, agent, "boot disks") in grants
    assert key_grants(parse_fleet(standalone_data()).clusters) == []


def test_the_page_says_what_each_key_is_for() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert KEY_ROLE in page
    for grant in key_grants(parse_fleet(company_data()).clusters):
        assert f"| {grant.reason} | {grant.agent} |" in page
