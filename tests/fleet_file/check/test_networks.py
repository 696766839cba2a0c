"""Ranges of the network."""

from __future__ import annotations

from typing import Any

import pytest

from fleet_file.builders import changed, problems
from fleet_file.pool_builders import pools_data
from small_fleets import WORKER, fleet_data

REFUSED: dict[str, tuple[dict[str, Any], list[str]]] = {
    "nobody gets in": (
        {"network": {"controlPlaneAccess": "AuthorizedNetworks"}},
        [
            (
                "network.authorizedNetworks: none, but controlPlaneAccess is AuthorizedNetworks, so nobody gets in; "
                "add {name, cidr} of your office, VPN or runners, or use DnsEndpoint"
            ),
        ],
    ),
    "authorized networks": (
        {"network": {"authorizedNetworks": [{"name": "a", "cidr": "0.0.0.0/0"}, {"name": "a", "cidr": "10.0.0.0/8"}]}},
        [
            "network.authorizedNetworks[0].cidr: 0.0.0.0/0 is the whole internet; name your own ranges",
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
                'network.authorizedNetworks[a].cidr: "10.0.0.1/8" is no IPv4 range (10.0.0.1/8 has host bits set); '
                "write one such as 203.0.113.0/24"
            ),
        ],
    ),
    "overlap": (
        {"network": {"podRanges": {"us-central1": "10.128.0.0/14", "us-east1": "10.0.0.0/14"}}},
        [
            "warning: network.podRanges[us-east1]: no cluster is in us-east1; remove it, or add a cluster",
            (
                "network.podRanges[us-central1]: 10.128.0.0/14 overlaps 10.128.0.0/20 of "
                "network.ranges[us-central1]; use a range of its own"
            ),
        ],
    ),
    "too small": (
        {"network": {"podRanges": {"us-central1": "10.0.0.0/33"}, "serviceRanges": {"us-central1": "10.1.2.0/29"}}},
        [
            (
                "network.podRanges[us-central1]: \"10.0.0.0/33\" is no IPv4 range ('33' is not a valid netmask); write "
                "one such as 10.4.0.0/14"
            ),
            ('network.serviceRanges[us-central1]: "10.1.2.0/29" is too small for pods or Services; use /28 or larger'),
        ],
    ),
    "overlap of nodes with pods as they are by default": (
        {"network": {"ranges": {"us-central1": "10.1.0.0/20"}}},
        [
            (
                "network.podRanges[us-central1]: 10.0.0.0/15 overlaps 10.1.0.0/20 of network.ranges[us-central1]; "
                "use a range of its own"
            ),
        ],
    ),
    "overlap services": (
        {"network": {"podRanges": {"us-central1": "10.4.0.0/14"}, "serviceRanges": {"us-central1": "10.4.0.0/20"}}},
        [
            (
                "network.serviceRanges[us-central1]: 10.4.0.0/20 overlaps 10.4.0.0/14 of "
                "network.podRanges[us-central1]; use a range of its own"
            ),
        ],
    ),
}


@pytest.mark.parametrize(("changes", "expected"), REFUSED.values(), ids=REFUSED.keys())
def test_refused(changes: dict[str, Any], expected: list[str]) -> None:
    assert problems(changed(pools_data(), changes)) == expected


def test_nothing_to_say() -> None:
    assert problems(pools_data()) == []


def test_two_clusters_of_a_region_do_not_share_a_range_of_services() -> None:
    data = fleet_data(WORKER, network={"serviceRanges": {"europe-west4": "10.127.0.0/20"}})
    said = [text for text in problems(data) if not text.startswith("warning")]
    assert said == []
    data["clusters"][1]["region"] = "europe-west4"
    assert [text for text in problems(data) if not text.startswith("warning")] == [
        "network.serviceRanges[europe-west4]: 2 clusters are in europe-west4, but a range of Services is for one; "
        "remove it; GKE's own range is good for every cluster"
    ]
