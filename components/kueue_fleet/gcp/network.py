"""The VPC of a fleet.

One custom-mode network, and in each region a subnet with a secondary range for pods, Private Google Access, flow logs,
and Cloud NAT, because nodes have no public address and pull Kueue from registry.k8s.io. Services get GKE's own range,
the same in every cluster, unless one is given. A network that exists, such as a Shared VPC, is a `NetworkIds`,
to which nothing is added.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pulumi
import pulumi_gcp as gcp

from kueue_fleet.fleet_file import FleetSpec
from kueue_fleet.gcp.declare import concat
from kueue_fleet.gke.regions import REGION_RANGES, default_pod_range

POD_RANGE_NAME = "pods"
"""Name of the secondary range for pods; clusters of a region share it."""
SERVICE_RANGE_NAME = "services"
"""Name of the secondary range for Services, where one is given."""

_MIN_NAT_PORTS = 64
_MAX_NAT_PORTS = 4096


@dataclass(frozen=True)
class NetworkIds:
    """An existing VPC network, with what clusters need to know about it, by region."""

    self_link: pulumi.Input[str]
    """Self link of the network, or `projects/HOST/global/networks/NAME`."""
    subnetworks: Mapping[str, pulumi.Input[str]]
    """Self link of each region's subnet, or `projects/HOST/regions/REGION/subnetworks/NAME`."""
    pod_range_names: Mapping[str, pulumi.Input[str]] = field(default_factory=dict)
    """Name of the subnet's secondary range for pods; default: GKE adds one."""
    service_range_names: Mapping[str, pulumi.Input[str]] = field(default_factory=dict)
    """Name of the subnet's secondary range for Services, for one cluster; default: GKE's own range."""
    node_ranges: Mapping[str, pulumi.Input[str]] = field(default_factory=dict)
    """Range of the nodes; needed of the manager's region where it reaches workers by address."""
    pod_ranges: Mapping[str, pulumi.Input[str]] = field(default_factory=dict)
    """Range of the pods; needed there too, where it has a name."""


def existing_network(spec: FleetSpec, project: pulumi.Input[str]) -> NetworkIds | None:
    """The network that the fleet file says is there; None where the fleet makes its own.

    It is in `project` where the file names no other one.
    """
    network = spec.network.existing
    if network is None:
        return None
    host = network.project or project
    subnets = network.subnets.items()
    return NetworkIds(
        concat("projects/", host, f"/global/networks/{network.name}"),
        {
            region: concat("projects/", host, f"/regions/{region}/subnetworks/{subnet.name}")
            for region, subnet in subnets
        },
        pod_range_names={region: each.pod_range_name for region, each in subnets if each.pod_range_name},
        service_range_names={region: each.service_range_name for region, each in subnets if each.service_range_name},
        node_ranges={region: each.cidr for region, each in subnets if each.cidr},
        pod_ranges={region: each.pod_cidr for region, each in subnets if each.pod_cidr},
    )


class Network(pulumi.ComponentResource):
    """A VPC network with a private subnet and Cloud NAT in each region."""

    network: "gcp.compute.Network"
    """The VPC."""
    self_link: pulumi.Output[str]
    """What a cluster takes as `network`."""
    subnetworks: dict[str, pulumi.Output[str]]
    """What a cluster takes as `subnetwork`, by region."""
    egress: "dict[str, gcp.compute.RouterNat]"
    """Cloud NAT by region; nodes reach image registries only once it is there."""
    pod_range_names: dict[str, str]
    """Name of the secondary range for pods, by region; a region without one leaves the choice to GKE."""
    service_range_names: dict[str, str]
    """Name of the secondary range for Services, by region; a region without one has GKE's own."""
    node_ranges: dict[str, str]
    """Range of the nodes, by region."""
    pod_ranges: dict[str, str]
    """Range of the pods, by region; a region without one leaves the choice to GKE."""
    service_ranges: dict[str, str]
    """Range of the Services, by region; a region without one has GKE's own."""

    def __init__(
        self,
        name: str,
        *,
        project: pulumi.Input[str],
        regions: Sequence[str],
        network_name: str | None = None,
        ranges: Mapping[str, str] | None = None,
        pod_ranges: Mapping[str, str] | None = None,
        service_ranges: Mapping[str, str] | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Declare the network.

        `network_name` is the VPC's name in Google Cloud, by default `name`; `ranges` gives node ranges by region, by
        default those of `REGION_RANGES`; `pod_ranges` those of pods, by default `default_pod_range`; `service_ranges`
        those of Services, by default GKE's own, which every cluster can use. A range of Services serves one cluster.

        Raises:
            ValueError: a region has no known range and `ranges` does not give one.
        """
        super().__init__("kueue-fleet:index:Network", name, None, opts)
        vpc_name = network_name or name
        regions = list(dict.fromkeys(regions))
        known = {**REGION_RANGES, **(ranges or {})}
        self.network = gcp.compute.Network(
            name,
            name=vpc_name,
            project=project,
            auto_create_subnetworks=False,
            routing_mode="GLOBAL",
            description="GPU batch fleet, managed by kueue-fleet",
            opts=pulumi.ResourceOptions(parent=self),
        )
        self.self_link = self.network.self_link
        self.subnetworks = {}
        self.egress = {}
        for region in regions:
            if region not in known:
                raise ValueError(
                    f"network {vpc_name}: no node range is known for region {region}; "
                    f"give one in ranges, such as {{{region!r}: '10.228.0.0/20'}}"
                )
        pods = {region: (pod_ranges or {}).get(region) or default_pod_range(region) for region in regions}
        self.node_ranges = {region: known[region] for region in regions}
        self.pod_ranges = {region: text for region, text in pods.items() if text}
        self.service_ranges = {region: text for region, text in (service_ranges or {}).items() if region in pods}
        self.pod_range_names = dict.fromkeys(self.pod_ranges, POD_RANGE_NAME)
        self.service_range_names = dict.fromkeys(self.service_ranges, SERVICE_RANGE_NAME)
        for region in regions:
            self._add_region(name, vpc_name, project, region)
        self.register_outputs({"selfLink": self.self_link})

    def _add_region(self, name: str, vpc_name: str, project: pulumi.Input[str], region: str) -> None:
        secondary: list[gcp.compute.SubnetworkSecondaryIpRangeArgsDict] = [
            {"range_name": range_name, "ip_cidr_range": ranges[region]}
            for range_name, ranges in ((POD_RANGE_NAME, self.pod_ranges), (SERVICE_RANGE_NAME, self.service_ranges))
            if region in ranges
        ]
        subnetwork = gcp.compute.Subnetwork(
            f"{name}/{region}",
            project=project,
            region=region,
            name=f"{vpc_name}-{region}",
            network=self.self_link,
            ip_cidr_range=self.node_ranges[region],
            private_ip_google_access=True,
            log_config={
                "aggregation_interval": "INTERVAL_10_MIN",
                "flow_sampling": 0.5,
                "metadata": "INCLUDE_ALL_METADATA",
            },
            secondary_ip_ranges=secondary or None,
            opts=pulumi.ResourceOptions(parent=self),
        )
        router = gcp.compute.Router(
            f"{name}/{region}",
            project=project,
            region=region,
            name=f"{vpc_name}-{region}",
            network=self.self_link,
            opts=pulumi.ResourceOptions(parent=self),
        )
        self.egress[region] = gcp.compute.RouterNat(
            f"{name}/{region}",
            project=project,
            region=region,
            name=f"{vpc_name}-{region}",
            router=router.name,
            nat_ip_allocate_option="AUTO_ONLY",
            source_subnetwork_ip_ranges_to_nat="ALL_SUBNETWORKS_ALL_IP_RANGES",
            # Many pods of one node pull at once; fixed ports would run out at 64.
            enable_dynamic_port_allocation=True,
            enable_endpoint_independent_mapping=False,
            min_ports_per_vm=_MIN_NAT_PORTS,
            max_ports_per_vm=_MAX_NAT_PORTS,
            log_config={"enable": True, "filter": "ERRORS_ONLY"},
            opts=pulumi.ResourceOptions(parent=self),
        )
        self.subnetworks[region] = subnetwork.self_link
