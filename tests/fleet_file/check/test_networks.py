"""Ranges of the network."""

from __future__ import annotations

from typing import Any

import pytest
from tests.fleet_file.builders import changed, problems
from tests.fleet_file.pool_builders import pools_data

from small_fleets import WORKER, fleet_data

SUBNET = {"name": "gpus", "podRangeName": "pods"}

REFUSED: dict[str, tuple[dict[str, Any], list[str]]] = {
    "nobody gets in": (
        {"network": {"controlPlaneAccess": "AuthorizedNetworks"}},
        [
            (
                "network.authorizedNetworks: none, but controlPlaneAccess is AuthorizedNetworks, so no client is let "
                "in; add {name, cidr} of your office, VPN or runners, or use DnsEndpoint"
            ),
        ],
    ),
    "authorized networks": (
        {"network": {"authorizedNetworks": [{"name": "a", "cidr": "0.0.0.0/0"}, {"name": "a", "cidr": "10.0.0.0/8"}]}},
        [
            "warning: network.authorizedNetworks[0].cidr: 0.0.0.0/0 is the whole internet; name your own ranges",
            "network.authorizedNetworks[1].name: a is used twice; use another name",
            (
                "network.authorizedNetworks: set, but controlPlaneAccess is DnsEndpoint; remove it, or set "
                "controlPlaneAccess to AuthorizedNetworks"
            ),
        ],
    ),
    "host bits": (
        {
            "network": {
                "controlPlaneAccess": "AuthorizedNetworks",
                "authorizedNetworks": [{"name": "a", "cidr": "10.0.0.1/8"}],
            }
        },
        [
            (
                'network.authorizedNetworks[a].cidr: "10.0.0.1/8" is not an IPv4 range (10.0.0.1/8 has host bits set); '
                "write one such as 203.0.113.0/24"
            ),
        ],
    ),
    "a region without a cluster, not one of Google's": (
        {"network": {"ranges": {"us-centrl1": "10.128.0.0/20", "us-east5": "10.202.0.0/20"}}},
        [
            "warning: network.ranges[us-centrl1]: us-centrl1 is a region without a cluster; did you mean us-central1?",
        ],
    ),
    "a network that exists, and one that does not": (
        {
            "network": {
                "existing": {"name": "vpc", "project": "host-project", "subnets": {"us-east1": {"name": "gpus"}}},
                "name": "batch",
                "serviceRanges": {"us-central1": "10.127.0.0/20"},
            }
        },
        [
            (
                "network.name: set, but existing says that the network is there; remove it; names and ranges of a "
                "network that exists are in existing"
            ),
            (
                "network.serviceRanges: set, but existing says that the network is there; remove it; names and ranges "
                "of a network that exists are in existing"
            ),
            "network.existing.subnets[us-central1]: not set, but a cluster is there; name the subnet of that region",
            "warning: network.existing.subnets[us-east1]: no cluster is in us-east1; remove it, or add a cluster",
            (
                "network.existing.subnets[us-east1].podRangeName: not set, but GKE adds no range to a network of "
                "another project, host-project; name the subnet's secondary range for pods"
            ),
        ],
    ),
    "overlap": (
        {"network": {"podRanges": {"us-central1": "10.128.0.0/14", "us-east1": "10.0.0.0/14"}}},
        [
            "warning: network.podRanges[us-east1]: no cluster is in us-east1; remove it, or add a cluster",
            (
                "network.podRanges[us-central1]: 10.128.0.0/14 overlaps 10.128.0.0/20 of "
                "network.ranges[us-central1]; use a range that overlaps no other"
            ),
        ],
    ),
    "too small": (
        {"network": {"podRanges": {"us-central1": "10.0.0.0/33"}, "serviceRanges": {"us-central1": "10.1.2.0/29"}}},
        [
            (
                "network.podRanges[us-central1]: \"10.0.0.0/33\" is not an IPv4 range ('33' is not a valid netmask); "
                "write one such as 10.4.0.0/14"
            ),
            ('network.serviceRanges[us-central1]: "10.1.2.0/29" is too small for pods or Services; use /28 or larger'),
        ],
    ),
    "overlap of nodes with pods as they are by default": (
        {"network": {"ranges": {"us-central1": "10.1.0.0/20"}}},
        [
            (
                "network.podRanges[us-central1]: 10.0.0.0/15 overlaps 10.1.0.0/20 of network.ranges[us-central1]; "
                "use a range that overlaps no other"
            ),
        ],
    ),
    "fewer addresses than nodes": (
        {"network": {"ranges": {"us-central1": "10.128.0.0/26"}}},
        [
            "warning: network.ranges[us-central1]: 10.128.0.0/26 has addresses for 60 nodes, but 85 may come; write a "
            "larger range, or let the pools have fewer nodes"
        ],
    ),
    "fewer addresses than pods": (
        {"network": {"podRanges": {"us-central1": "10.0.0.0/18"}}},
        [
            "warning: network.podRanges[us-central1]: 10.0.0.0/18 has 16384 addresses, but the pods of 85 nodes that "
            "may come take 21760; write a larger range, lower maxPodsPerNode, or let the pools have fewer nodes"
        ],
    ),
    "fewer addresses than pods in a network that exists": (
        {
            "network": {"existing": {"name": "vpc", "subnets": {"us-central1": {**SUBNET, "podCidr": "10.4.0.0/19"}}}},
            "nodePools/1/maxPodsPerNode": 8,
        },
        [
            "warning: network.existing.subnets[us-central1].podCidr: 10.4.0.0/19 has 8192 addresses, but the pods of "
            "85 nodes that may come take 16000; write a larger range, lower maxPodsPerNode, or let the pools have "
            "fewer nodes"
        ],
    ),
    "overlap services": (
        {"network": {"podRanges": {"us-central1": "10.4.0.0/14"}, "serviceRanges": {"us-central1": "10.4.0.0/20"}}},
        [
            (
                "network.serviceRanges[us-central1]: 10.4.0.0/20 overlaps 10.4.0.0/14 of "
                "network.podRanges[us-central1]; use a range that overlaps no other"
            ),
        ],
    ),
}


@pytest.mark.parametrize(("changes", "expected"), REFUSED.values(), ids=REFUSED.keys())
def test_refused(changes: dict[str, Any], expected: list[str]) -> None:
    assert problems(changed(pools_data(), changes)) == expected


def test_nothing_to_say() -> None:
    assert problems(pools_data()) == []


def test_fewer_pods_on_a_node_take_fewer_addresses() -> None:
    pools = {f"nodePools/{index}/maxPodsPerNode": 32 for index in range(6)}
    assert problems(changed(pools_data(), {"network": {"podRanges": {"us-central1": "10.0.0.0/18"}}, **pools})) == []


def test_two_clusters_of_a_region_do_not_share_a_range_of_services() -> None:
    data = fleet_data(WORKER, network={"serviceRanges": {"europe-west4": "10.127.0.0/20"}})
    output = [text for text in problems(data) if not text.startswith("warning")]
    assert output == []
    data["clusters"][1]["region"] = "europe-west4"
    assert [text for text in problems(data) if not text.startswith("warning")] == [
        "network.serviceRanges[europe-west4]: 2 clusters are in europe-west4, but a range of Services is for one; "
        "remove it; GKE's own range is good for every cluster"
    ]


def existing(**subnet: str) -> list[str]:
    """Problems of a fleet whose manager is in an existing subnet, and reaches its worker by address."""
    network = {
        "existing": {"name": "vpc", "subnets": {"europe-west4": {"name": "a", **subnet}, "us-east4": {"name": "b"}}},
        "controlPlaneAccess": "AuthorizedNetworks",
        "authorizedNetworks": [{"name": "office", "cidr": "203.0.113.0/24"}],
    }
    output = problems(fleet_data(WORKER, network=network))
    return [text.partition(":")[0] for text in output if text.startswith("network.")]


def test_workers_let_the_manager_in_by_ranges_that_have_to_be_known() -> None:
    at = "network.existing.subnets[europe-west4]"
    assert existing() == [f"{at}.cidr"]
    assert existing(podRangeName="pods") == [f"{at}.cidr", f"{at}.podCidr"]
    assert existing(podRangeName="pods", cidr="10.0.0.0/20", podCidr="10.4.0.0/14") == []


def test_a_range_of_services_that_exists_is_for_one_cluster() -> None:
    subnets = {"europe-west4": {"name": "a", "serviceRangeName": "services"}}
    data = fleet_data(WORKER, network={"existing": {"name": "vpc", "subnets": subnets}})
    data["clusters"][1]["region"] = "europe-west4"
    output = [text for text in problems(data) if text.startswith("network.")]
    assert output == [
        "network.existing.subnets[europe-west4].serviceRangeName: 2 clusters are in europe-west4, but a range of "
        "Services is for one; remove it; GKE's own range is good for every cluster"
    ]


def test_a_region_that_is_not_known_here_has_a_subnet_that_exists() -> None:
    subnets = {"europe-west4": {"name": "a"}, "moon-north1": {"name": "b"}}
    data = fleet_data("worker-moon-north1", network={"existing": {"name": "vpc", "subnets": subnets}})
    assert [text for text in problems(data) if not text.startswith("warning")] == []
