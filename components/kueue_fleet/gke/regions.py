"""The regions of Google Cloud, and ranges for the nodes and pods in each.

Data. A new region appears here with the next release of the library; until then `network.ranges` of the fleet gives it
a range, which also says that it exists.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping

REGION_RANGES: Mapping[str, str] = {
    "africa-south1": "10.218.0.0/20",
    "asia-east1": "10.140.0.0/20",
    "asia-east2": "10.170.0.0/20",
    "asia-northeast1": "10.146.0.0/20",
    "asia-northeast2": "10.174.0.0/20",
    "asia-northeast3": "10.178.0.0/20",
    "asia-south1": "10.160.0.0/20",
    "asia-south2": "10.190.0.0/20",
    "asia-southeast1": "10.148.0.0/20",
    "asia-southeast2": "10.184.0.0/20",
    "australia-southeast1": "10.152.0.0/20",
    "australia-southeast2": "10.192.0.0/20",
    "europe-central2": "10.186.0.0/20",
    "europe-north1": "10.166.0.0/20",
    "europe-north2": "10.226.0.0/20",
    "europe-southwest1": "10.204.0.0/20",
    "europe-west1": "10.132.0.0/20",
    "europe-west2": "10.154.0.0/20",
    "europe-west3": "10.156.0.0/20",
    "europe-west4": "10.164.0.0/20",
    "europe-west6": "10.172.0.0/20",
    "europe-west8": "10.198.0.0/20",
    "europe-west9": "10.200.0.0/20",
    "europe-west10": "10.214.0.0/20",
    "europe-west12": "10.210.0.0/20",
    "me-central1": "10.212.0.0/20",
    "me-west1": "10.208.0.0/20",
    "northamerica-northeast1": "10.162.0.0/20",
    "northamerica-northeast2": "10.188.0.0/20",
    "northamerica-south1": "10.224.0.0/20",
    "southamerica-east1": "10.158.0.0/20",
    "southamerica-west1": "10.194.0.0/20",
    "us-central1": "10.128.0.0/20",
    "us-east1": "10.142.0.0/20",
    "us-east4": "10.150.0.0/20",
    "us-east5": "10.202.0.0/20",
    "us-south1": "10.206.0.0/20",
    "us-west1": "10.138.0.0/20",
    "us-west2": "10.168.0.0/20",
    "us-west3": "10.180.0.0/20",
    "us-west4": "10.182.0.0/20",
}
"""Node range by region: those of Google's auto-mode networks, which never overlap. A region's range depends on nothing
but its name, so that adding a region moves no other. Source: https://cloud.google.com/vpc/docs/subnets#ip-ranges."""

_NODE_RANGES = ipaddress.IPv4Network("10.128.0.0/9")
_POD_RANGES = ipaddress.IPv4Network("10.0.0.0/9")
_POD_PREFIX = 15


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
