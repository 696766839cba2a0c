from __future__ import annotations

import ipaddress

import pytest

import pulumi_mocks
from kueue_fleet import Network
from kueue_fleet.spec.regions import REGION_RANGES


def test_each_region_gets_a_private_subnet_and_a_way_out() -> None:
    recording = pulumi_mocks.run(lambda: Network("lab", project="p", regions=["us-east4", "europe-west4", "us-east4"]))
    network = recording.one("gcp:compute/network:Network")
    assert network.inputs["autoCreateSubnetworks"] is False
    subnets = {s.inputs["region"]: s for s in recording.of_type("Subnetwork")}
    assert subnets.keys() == {"us-east4", "europe-west4"}
    assert all(s.inputs["privateIpGoogleAccess"] is True for s in subnets.values())
    assert {n.inputs["region"] for n in recording.of_type("RouterNat")} == {"us-east4", "europe-west4"}
    assert all(recording.is_before(network, r) for r in (*subnets.values(), *recording.of_type("RouterNat")))


def test_a_new_region_changes_nothing_of_the_others() -> None:
    before = pulumi_mocks.run(lambda: Network("lab", project="p", regions=["us-east4"]))
    after = pulumi_mocks.run(lambda: Network("lab", project="p", regions=["asia-southeast1", "us-east4"]))
    assert all(after.resources[urn] == resource for urn, resource in before.resources.items())


def test_ranges_of_regions_do_not_overlap() -> None:
    ranges = [ipaddress.ip_network(text) for text in REGION_RANGES.values()]
    assert not [(a, b) for i, a in enumerate(ranges) for b in ranges[:i] if a.overlaps(b)]


def test_the_network_may_have_another_name_and_other_ranges() -> None:
    recording = pulumi_mocks.run(
        lambda: Network(
            "lab", project="p", regions=["mars-north1"], network_name="shared", ranges={"mars-north1": "10.9.0.0/20"}
        )
    )
    assert recording.one("gcp:compute/network:Network").inputs["name"] == "shared"
    assert recording.one("Subnetwork").inputs["ipCidrRange"] == "10.9.0.0/20"


def test_an_unknown_region_is_refused_with_what_to_do() -> None:
    with pytest.raises(ValueError, match=r"no node range is known for region mars-north1; give one in ranges"):
        pulumi_mocks.run(lambda: Network("lab", project="p", regions=["mars-north1"]))
