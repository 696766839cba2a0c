"""The regions of Google Cloud, and ranges for the nodes and pods in each.

A new region appears in `regions.csv` with the next release of the library; until then `network.ranges` of the fleet
gives it a range, which also says that it exists.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from typing import Final

from kueue_fleet.gke.csv_tables import read_table

REGION_RANGES: Final[Mapping[str, str]] = {row["region"]: row["nodeRange"] for row in read_table("regions")}
"""Node range of every region that is known: those of Google's auto-mode networks, which never overlap. A region's range
depends on nothing but its name, so that adding one moves no other. Source:
https://cloud.google.com/vpc/docs/subnets#ip-ranges."""

_NODE_RANGES = ipaddress.IPv4Network("10.128.0.0/9")
_POD_RANGES = ipaddress.IPv4Network("10.0.0.0/9")
_POD_PREFIX = 15


def nodes_in(range_of_nodes: str) -> int:
    """How many nodes fit into the range of a subnet, of which Google keeps four addresses.

    Source: https://cloud.google.com/vpc/docs/subnets#unusable-ip-addresses-in-every-subnet.
    """
    return max(0, ipaddress.IPv4Network(range_of_nodes).num_addresses - 4)


def pod_addresses(pods: int) -> int:
    """The addresses that GKE gives a node for so many pods at most: twice as many, in a range of its own.

    Source: https://cloud.google.com/kubernetes-engine/docs/how-to/flexible-pod-cidr.
    """
    return 1 << (2 * pods - 1).bit_length()


def default_pod_range(region: str) -> str | None:
    """The range of a region's pods: 512 nodes with 110 pods each; None for a region that is not known.

    `10.164.0.0/20`, the nodes of europe-west4, gives `10.36.0.0/15`: the same place in that half of 10.0.0.0/8 which
    the auto-mode networks' node ranges leave free. It depends on the region's name alone and overlaps no other.
    Source: https://cloud.google.com/kubernetes-engine/docs/concepts/alias-ips#cluster_sizing_secondary_range_pods.
    """
    if region not in REGION_RANGES:
        return None
    nodes = ipaddress.IPv4Network(REGION_RANGES[region])
    place = int(nodes.network_address) - int(_NODE_RANGES.network_address)
    return f"{_POD_RANGES.network_address + place}/{_POD_PREFIX}"
