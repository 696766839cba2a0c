"""The VPC of a fleet: one that is made (`google.networks`), or one that exists, a `NetworkIds`; networks for GPUs."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pulumi

from kueue_admission.kernel import Problem
from kueue_admission.kernel.arguments import shown
from kueue_admission.kernel.read_model import read_model
from kueue_fleet.component import Component, judge
from kueue_fleet.fleet_file import ClusterEntry, FleetSpec, NodePoolEntry
from kueue_fleet.fleet_file.alone import check_alone
from kueue_fleet.fleet_file.model.gcp_names import (
    GkeClusterName,
    Ipv4Range,
    PodIpv4Range,
    ProjectId,
    Region,
    ResourceName,
)
from kueue_fleet.fleet_file.model.network import NetworkArgs
from kueue_fleet.fleet_file.model.resolved_pools import resolve_pool
from kueue_fleet.gcp_components.declare import declare, put_in
from kueue_fleet.gcp_components.sdk import gcp
from kueue_fleet.google.accelerator_networks import accelerator_networks
from kueue_fleet.google.networks import Vpc, existing_vpc, own_vpc
from kueue_fleet.google.resource_types import NETWORK


@dataclass(frozen=True)
class NetworkIds(Vpc):
    """An existing VPC network, with what clusters need to know about it, by region."""

    self_link: pulumi.Input[str]
    """Self link of the network, or `projects/HOST/global/networks/NAME`."""
    subnetworks: Mapping[Region, pulumi.Input[str]]
    """Self link of each region's subnet, or `projects/HOST/regions/REGION/subnetworks/NAME`."""
    pod_range_names: Mapping[Region, pulumi.Input[ResourceName]] = field(default_factory=dict)
    """Name of the subnet's secondary range for pods; default: GKE adds one."""
    service_range_names: Mapping[Region, pulumi.Input[ResourceName]] = field(default_factory=dict)
    """Name of the subnet's secondary range for Services, for one cluster; default: GKE's own range."""
    node_ranges: Mapping[Region, pulumi.Input[Ipv4Range]] = field(default_factory=dict)
    """Range of the nodes; needed of the manager's region where it reaches workers by address."""
    pod_ranges: Mapping[Region, pulumi.Input[PodIpv4Range]] = field(default_factory=dict)
    """Range of the pods; needed there too, where it has a name."""


shown(NetworkIds.__init__)


def existing_network(spec: FleetSpec, project: pulumi.Input[str]) -> NetworkIds | None:
    """The network that the fleet file says is there; None where the fleet makes its own.

    It is in `project` where the file names no other one.
    """
    vpc = existing_vpc(spec, project)
    return None if vpc is None else NetworkIds(**put_in(vars(vpc)))


class AcceleratorNetworks(Component):
    """The networks for GPUs of the node pools of one cluster, which ask for them by `acceleratorNetworks: {}`."""

    networks: "dict[str, gcp.compute.Network]"
    """The VPCs, by name."""

    def __init__(
        self,
        name: str,
        pools: Sequence[NodePoolEntry],
        *,
        cluster_spec: ClusterEntry,
        project: pulumi.Input[ProjectId],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Declare the networks, after which the pools are to be made.

        `pools` and `cluster_spec` are the entries of the pools and of their cluster, as a fleet file has them.

        Raises:
            SpecError: the entries break rules of the fleet file.
        """
        judge(check_alone("nodePools", *pools, clusters=(cluster_spec,)), opts)
        super().__init__(name, opts)
        resolved_pools = [resolve_pool(pool, cluster_spec) for pool in pools]
        rendered_resources = accelerator_networks(name, resolved_pools, project=project)
        resources = declare(self, rendered_resources)
        self.networks = {
            str(resource.properties["name"]): resources[resource.key]
            for resource in rendered_resources
            if resource.type == NETWORK
        }
        self._give_out()


class Network(Component):
    """A VPC network with a private subnet and Cloud NAT in each region."""

    network: "gcp.compute.Network"
    """The VPC."""
    name: pulumi.Output[str]
    """Its name in Google Cloud."""
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
        project: pulumi.Input[ProjectId],
        regions: Sequence[Region],
        network_name: GkeClusterName | None = None,
        ranges: Mapping[Region, Ipv4Range] | None = None,
        pod_ranges: Mapping[Region, PodIpv4Range] | None = None,
        service_ranges: Mapping[Region, PodIpv4Range] | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Declare the network.

        `network_name` is the VPC's name in Google Cloud, by default `name`; `ranges` gives node ranges by region, by
        default those of `REGION_RANGES`; `pod_ranges` those of pods, by default `default_pod_range`; `service_ranges`
        those of Services, by default GKE's own, which every cluster can use. A range of Services serves one cluster.

        Raises:
            SpecError: a region is not known and `ranges` does not give one for it, or the network breaks rules of the
                fleet file.
        """
        judge(_problems(f"Network {name}", network_name or name, regions, ranges, pod_ranges, service_ranges), opts)
        super().__init__(name, opts)
        vpc = own_vpc(
            name,
            project=project,
            regions=regions,
            network_name=network_name,
            ranges=ranges,
            pod_ranges=pod_ranges,
            service_ranges=service_ranges,
        )
        vpc_resources = declare(self, vpc.resources)
        self.network = vpc_resources[vpc.resources[0].key]
        self.name, self.self_link = self.network.name, self.network.self_link
        self.subnetworks = put_in(vpc.subnetworks, vpc_resources)
        self.egress = {region: vpc_resources[key] for region, key in vpc.egress.items()}
        self.pod_range_names, self.service_range_names = dict(vpc.pod_range_names), dict(vpc.service_range_names)
        self.node_ranges, self.pod_ranges = dict(vpc.node_ranges), dict(vpc.pod_ranges)
        self.service_ranges = dict(vpc.service_ranges)
        self._give_out()


def _problems(
    where: str,
    name: str,
    regions: Sequence[str],
    ranges: Mapping[str, str] | None,
    pod_ranges: Mapping[str, str] | None,
    service_ranges: Mapping[str, str] | None,
) -> Iterator[Problem]:
    """What the rules of the file say of the network, with a cluster in each region."""
    fields = {"ranges": ranges or {}, "podRanges": pod_ranges or {}, "serviceRanges": service_ranges or {}}
    section = read_model(NetworkArgs, {"name": name, **fields}, where)
    clusters = tuple(ClusterEntry(region, role="worker", region=region) for region in dict.fromkeys(regions))
    for problem in check_alone("clusters", *clusters, network=section):
        yield replace(problem, path=f"{where}.regions")
    yield from check_alone("network", section, clusters=clusters)
