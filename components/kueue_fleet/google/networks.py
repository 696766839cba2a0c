"""The VPC of a fleet.

One custom-mode network, and in each region a subnet with a secondary range for pods, Private Google Access, flow logs,
and Cloud NAT, because nodes have no public address and pull Kueue from registry.k8s.io. Services get GKE's own range,
the same in every cluster, unless one is given.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kueue_fleet.fleet_file import FleetSpec
from kueue_fleet.gke.regions import REGION_RANGES, default_pod_range
from kueue_fleet.google.resource import CloudResource, joined
from kueue_fleet.google.resource_types import NETWORK, ROUTER, ROUTER_NAT, SUBNETWORK

POD_RANGE_NAME = "pods"
"""Name of the secondary range for pods; clusters of a region share it."""
SERVICE_RANGE_NAME = "services"
"""Name of the secondary range for Services, where one is given."""
OF_NODES: Mapping[str, Any] = {
    "privateIpGoogleAccess": True,
    "logConfig": {"aggregationInterval": "INTERVAL_10_MIN", "flowSampling": 0.5, "metadata": "INCLUDE_ALL_METADATA"},
}
"""What every subnet has in which nodes are: a way to Google's services, and flow logs (CIS GKE 5.6.1)."""
_MIN_NAT_PORTS = 64
_MAX_NAT_PORTS = 4096


@dataclass(frozen=True)
class Vpc:
    """What clusters need to know about a network, by region."""

    self_link: Any
    subnetworks: Mapping[str, Any]
    pod_range_names: Mapping[str, Any] = field(default_factory=dict)
    service_range_names: Mapping[str, Any] = field(default_factory=dict)
    node_ranges: Mapping[str, Any] = field(default_factory=dict)
    pod_ranges: Mapping[str, Any] = field(default_factory=dict)


def existing_vpc(spec: FleetSpec, project: Any) -> Vpc | None:
    """The network that the fleet file says is there, such as a Shared VPC, to which nothing is added.

    It is in `project` where the file names no other one; None where the fleet makes its own.
    """
    network = spec.network.existing
    if network is None:
        return None
    host = network.project or project
    subnets = network.subnets.items()
    return Vpc(
        joined("projects/", host, f"/global/networks/{network.name}"),
        {
            region: joined("projects/", host, f"/regions/{region}/subnetworks/{subnet.name}")
            for region, subnet in subnets
        },
        pod_range_names={region: subnet.pod_range_name for region, subnet in subnets if subnet.pod_range_name},
        service_range_names={
            region: subnet.service_range_name for region, subnet in subnets if subnet.service_range_name
        },
        node_ranges={region: subnet.cidr for region, subnet in subnets if subnet.cidr},
        pod_ranges={region: subnet.pod_cidr for region, subnet in subnets if subnet.pod_cidr},
    )


@dataclass(frozen=True)
class OwnVpc(Vpc):
    """A network that is made, with its resources."""

    service_ranges: Mapping[str, str] = field(default_factory=dict)
    egress: Mapping[str, str] = field(default_factory=dict)
    """Key of Cloud NAT; nodes reach image registries only once it is there."""
    resources: Sequence[CloudResource] = ()
    """The VPC is the first."""


def own_vpc(
    name: str,
    *,
    project: Any,
    regions: Sequence[str],
    network_name: str | None = None,
    ranges: Mapping[str, str] | None = None,
    pod_ranges: Mapping[str, str] | None = None,
    service_ranges: Mapping[str, str] | None = None,
) -> OwnVpc:
    """The network; for the arguments see `Network`.

    Raises:
        ValueError: a region has no known range and `ranges` does not give one.
    """
    vpc_name = network_name or name
    regions = list(dict.fromkeys(regions))
    known_ranges = {**REGION_RANGES, **(ranges or {})}
    for region in regions:
        if region not in known_ranges:
            raise ValueError(
                f"network {vpc_name}: no node range is known for region {region}; "
                f"give one in ranges, such as {{{region!r}: '10.228.0.0/20'}}"
            )
    pods = {region: (pod_ranges or {}).get(region) or default_pod_range(region) for region in regions}
    pods_known = {region: text for region, text in pods.items() if text}
    for_services = {region: text for region, text in (service_ranges or {}).items() if region in pods}
    properties = {
        "name": vpc_name,
        "project": project,
        "autoCreateSubnetworks": False,
        "routingMode": "GLOBAL",
        "description": "GPU batch fleet, managed by kueue-fleet",
    }
    vpc = CloudResource(NETWORK, name, properties)
    resources, subnetworks, egress = [vpc], {}, {}
    for region in regions:
        secondary = [
            {"rangeName": range_name, "ipCidrRange": ranges[region]}
            for range_name, ranges in ((POD_RANGE_NAME, pods_known), (SERVICE_RANGE_NAME, for_services))
            if region in ranges
        ]
        there = {"project": project, "region": region, "name": f"{vpc_name}-{region}"}
        subnet = _in_region(f"{name}/{region}", there, vpc.ref("selfLink"), known_ranges[region], secondary)
        subnetworks[region], egress[region] = subnet[0].ref("selfLink"), subnet[-1].key
        resources += subnet
    return OwnVpc(
        vpc.ref("selfLink"),
        subnetworks,
        pod_range_names=dict.fromkeys(pods_known, POD_RANGE_NAME),
        service_range_names=dict.fromkeys(for_services, SERVICE_RANGE_NAME),
        node_ranges={region: known_ranges[region] for region in regions},
        pod_ranges=pods_known,
        service_ranges=for_services,
        egress=egress,
        resources=resources,
    )


def _in_region(
    name: str, there: Mapping[str, Any], network: Any, nodes: str, secondary: Sequence[Mapping[str, str]]
) -> list[CloudResource]:
    """Subnet, router and Cloud NAT of a region, named alike."""
    subnetwork = {
        "network": network,
        "ipCidrRange": nodes,
        **OF_NODES,
        **({"secondaryIpRanges": secondary} if secondary else {}),
    }
    router = CloudResource(ROUTER, name, {**there, "network": network})
    nat = {
        "router": router.ref("name"),
        "natIpAllocateOption": "AUTO_ONLY",
        "sourceSubnetworkIpRangesToNat": "ALL_SUBNETWORKS_ALL_IP_RANGES",
        # Many pods of one node pull at once; fixed ports would run out at 64.
        "enableDynamicPortAllocation": True,
        "enableEndpointIndependentMapping": False,
        "minPortsPerVm": _MIN_NAT_PORTS,
        "maxPortsPerVm": _MAX_NAT_PORTS,
        "logConfig": {"enable": True, "filter": "ERRORS_ONLY"},
    }
    return [
        CloudResource(SUBNETWORK, name, {**there, **subnetwork}),
        router,
        CloudResource(ROUTER_NAT, name, {**there, **nat}),
    ]
