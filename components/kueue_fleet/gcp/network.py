"""The VPC of a fleet.

In: the network's name and the regions of its clusters. Out: one custom-mode network, and in each region a subnet with
Private Google Access and Cloud NAT, because nodes have no public address and pull Kueue from registry.k8s.io. Pod and
Service ranges are left to GKE. Not here: Shared VPC, peering, VPN; give clusters the ids of such a network instead.
"""

from collections.abc import Mapping, Sequence

import pulumi

from kueue_fleet.gcp.resources import ComputeNetwork, ComputeRouter, ComputeRouterNat, ComputeSubnetwork
from kueue_fleet.spec.regions import REGION_RANGES


class Network(pulumi.ComponentResource):
    """A VPC network with a private subnet and Cloud NAT in each region."""

    network: ComputeNetwork
    """The VPC."""
    self_link: pulumi.Output[str]
    """What a cluster takes as `network`."""
    subnetworks: dict[str, pulumi.Output[str]]
    """What a cluster takes as `subnetwork`, by region."""
    egress: dict[str, ComputeRouterNat]
    """Cloud NAT by region; nodes reach image registries only once it is there."""

    def __init__(
        self,
        name: str,
        *,
        project: str,
        regions: Sequence[str],
        network_name: str | None = None,
        ranges: Mapping[str, str] | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Declare the network.

        `network_name` is the VPC's name in Google Cloud, by default `name`; `ranges` gives node ranges by region, by
        default those of `REGION_RANGES`.

        Raises:
            ValueError: a region has no known range and `ranges` does not give one.
        """
        super().__init__("kueue-fleet:index:Network", name, None, opts)
        vpc_name = network_name or name
        node_ranges = {**REGION_RANGES, **(ranges or {})}
        self.network = ComputeNetwork(
            name,
            {
                "name": vpc_name,
                "project": project,
                "autoCreateSubnetworks": False,
                "routingMode": "GLOBAL",
                "description": "GPU batch fleet, managed by kueue-fleet",
            },
            pulumi.ResourceOptions(parent=self),
        )
        self.self_link = self.network.output("selfLink")
        self.subnetworks = {}
        self.egress = {}
        for region in dict.fromkeys(regions):
            if region not in node_ranges:
                raise ValueError(
                    f"network {vpc_name}: no node range is known for region {region}; "
                    f"give one in ranges, such as {{{region!r}: '10.228.0.0/20'}}"
                )
            self._add_region(name, vpc_name, project, region, node_ranges[region])
        self.register_outputs({"selfLink": self.self_link})

    def _add_region(self, name: str, vpc_name: str, project: str, region: str, node_range: str) -> None:
        place = {"project": project, "region": region}
        subnetwork = ComputeSubnetwork(
            f"{name}/{region}",
            {
                **place,
                "name": f"{vpc_name}-{region}",
                "network": self.self_link,
                "ipCidrRange": node_range,
                "privateIpGoogleAccess": True,
            },
            pulumi.ResourceOptions(parent=self),
        )
        router = ComputeRouter(
            f"{name}/{region}",
            {**place, "name": f"{vpc_name}-{region}", "network": self.self_link},
            pulumi.ResourceOptions(parent=self),
        )
        self.egress[region] = ComputeRouterNat(
            f"{name}/{region}",
            {
                **place,
                "name": f"{vpc_name}-{region}",
                "router": router.output("name"),
                "natIpAllocateOption": "AUTO_ONLY",
                "sourceSubnetworkIpRangesToNat": "ALL_SUBNETWORKS_ALL_IP_RANGES",
            },
            pulumi.ResourceOptions(parent=self),
        )
        self.subnetworks[region] = subnetwork.output("selfLink")
