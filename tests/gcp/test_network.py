from __future__ import annotations

import ipaddress

import pytest

import pulumi_mocks
from kueue_fleet import Network
from kueue_fleet.gke.regions import REGION_RANGES, default_pod_range


def test_each_region_gets_a_private_subnet_and_a_way_out() -> None:
    recording = pulumi_mocks.run(
        lambda: Network("lab", project="lab-project", regions=["us-east4", "europe-west4", "us-east4"])
    )
    network = recording.one("gcp:compute/network:Network")
    assert network.inputs["autoCreateSubnetworks"] is False
    subnets = {s.inputs["region"]: s for s in recording.of_type("Subnetwork")}
    assert subnets.keys() == {"us-east4", "europe-west4"}
    assert all(s.inputs["privateIpGoogleAccess"] is True for s in subnets.values())
    assert {n.inputs["region"] for n in recording.of_type("RouterNat")} == {"us-east4", "europe-west4"}
    assert all(recording.is_before(network, r) for r in (*subnets.values(), *recording.of_type("RouterNat")))


def test_a_new_region_changes_nothing_of_the_others() -> None:
    before = pulumi_mocks.run(lambda: Network("lab", project="lab-project", regions=["us-east4"]))
    after = pulumi_mocks.run(lambda: Network("lab", project="lab-project", regions=["asia-southeast1", "us-east4"]))
    assert all(after.resources[urn] == result for urn, result in before.resources.items() if result.custom)


def test_ranges_of_regions_do_not_overlap() -> None:
    ranges = [ipaddress.ip_network(text) for text in REGION_RANGES.values()]
    assert not [(a, b) for i, a in enumerate(ranges) for b in ranges[:i] if a.overlaps(b)]


def test_the_network_may_have_another_name_and_other_ranges() -> None:
    recording = pulumi_mocks.run(
        lambda: Network(
            "lab",
            project="lab-project",
            regions=["mars-north1"],
            network_name="shared",
            ranges={"mars-north1": "10.9.0.0/20"},
        )
    )
    assert recording.one("gcp:compute/network:Network").inputs["name"] == "shared"
    assert recording.one("Subnetwork").inputs["ipCidrRange"] == "10.9.0.0/20"


def test_an_unknown_region_is_refused_with_what_to_do() -> None:
    with pytest.raises(ValueError, match=r"mars-north1 is not a known region; .* needs a range in network.ranges"):
        pulumi_mocks.run(lambda: Network("lab", project="lab-project", regions=["mars-north1"]))


def test_pods_have_a_range_of_their_own_which_depends_on_the_region_alone() -> None:
    recording = pulumi_mocks.run(lambda: Network("lab", project="lab-project", regions=["europe-west4"]))
    subnet = recording.one("Subnetwork").inputs
    assert subnet["secondaryIpRanges"] == [{"rangeName": "pods", "ipCidrRange": "10.36.0.0/15"}]
    assert subnet["logConfig"]["metadata"] == "INCLUDE_ALL_METADATA"


def test_default_ranges_of_pods_overlap_neither_each_other_nor_nodes() -> None:
    pods = [ipaddress.ip_network(default_pod_range(region) or "") for region in REGION_RANGES]
    everything = [*pods, *(ipaddress.ip_network(text) for text in REGION_RANGES.values())]
    assert not [(a, b) for i, a in enumerate(everything) for b in everything[:i] if a.overlaps(b)]


def test_ranges_that_are_given_are_used_and_an_unknown_region_leaves_pods_to_gke() -> None:
    recording = pulumi_mocks.run(
        lambda: Network(
            "lab",
            project="lab-project",
            regions=["us-east4", "mars-north1"],
            ranges={"mars-north1": "10.9.0.0/20"},
            pod_ranges={"us-east4": "10.64.0.0/14"},
            service_ranges={"us-east4": "10.127.0.0/20", "us-west1": "10.127.16.0/20"},
        )
    )
    subnets = {s.inputs["region"]: s.inputs for s in recording.of_type("Subnetwork")}
    assert subnets["us-east4"]["secondaryIpRanges"] == [
        {"rangeName": "pods", "ipCidrRange": "10.64.0.0/14"},
        {"rangeName": "services", "ipCidrRange": "10.127.0.0/20"},
    ]
    assert "secondaryIpRanges" not in subnets["mars-north1"]


def test_many_pods_that_pull_at_once_do_not_run_out_of_ports() -> None:
    nat = pulumi_mocks.run(lambda: Network("lab", project="lab-project", regions=["us-east4"])).one("RouterNat").inputs
    assert nat["enableDynamicPortAllocation"] is True
    # Google Cloud refuses both together.
    assert nat["enableEndpointIndependentMapping"] is False
    assert nat["logConfig"] == {"enable": True, "filter": "ERRORS_ONLY"}
