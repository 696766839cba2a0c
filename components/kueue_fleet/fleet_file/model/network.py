"""The VPC network of a fleet: one that it makes, or one that is there; and how control planes are reached."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Literal

from pydantic import Field

from kueue_admission.kernel.base import RuledModel, SpecModel, Text
from kueue_admission.kernel.form_rules import EXCLUDED, LISTED_TWICE, NEEDED
from kueue_admission.kernel.given import ListOf
from kueue_admission.kernel.problem import Problem, where_read
from kueue_fleet.fleet_file.model.gcp_names import (
    AddressRange,
    GkeClusterName,
    Ipv4Range,
    PodIpv4Range,
    ProjectId,
    Region,
    ResourceName,
)
from kueue_fleet.fleet_file.rules.clusters import OPEN_TO_ALL


class AuthorizedNetwork(SpecModel):
    """A range of addresses from which the control planes can be reached."""

    name: Annotated[Text, Field(min_length=1)] = Field(kw_only=False)
    """Name of the range in the console."""
    cidr: AddressRange = Field(kw_only=False)
    """Such as 203.0.113.0/24."""


class ExistingSubnet(SpecModel):
    """A subnet of a network that somebody else made."""

    name: ResourceName
    """Name of the subnet."""
    pod_range_name: ResourceName | None = None
    """Name of its secondary range for pods; default: GKE adds one, which it cannot in another project's network."""
    service_range_name: ResourceName | None = None
    """Name of its secondary range for Services, for one cluster; default: GKE's own range."""
    cidr: Ipv4Range | None = None
    """Its range, used by the nodes; needed if the manager reaches workers by address."""
    pod_cidr: PodIpv4Range | None = None
    """Range of the pods; needed with `cidr` if podRangeName is set."""


class ExistingNetwork(SpecModel):
    """An existing VPC network, with outgoing access to image registries; the fleet adds nothing to it."""

    name: ResourceName
    """Name of the network."""
    project: ProjectId | None = None
    """Host project of a Shared VPC; default: the fleet's project."""
    subnets: Mapping[Region, ExistingSubnet]
    """The subnet of each region that has a cluster."""


class NetworkArgs(RuledModel):
    """The VPC network of all clusters, and how their control planes are reached."""

    existing: ExistingNetwork | None = None
    """A network that exists, such as a Shared VPC, with access to image registries; the fleet adds nothing to it.
    Default: the fleet creates one.
    """
    name: GkeClusterName | None = None
    """Default: the fleet's name."""
    ranges: Mapping[Region, Ipv4Range] = Field(default_factory=dict)
    """Range of the nodes by region, such as `us-east4: 10.150.0.0/20`. Default: that of Google's auto-mode networks."""
    pod_ranges: Mapping[Region, PodIpv4Range] = Field(default_factory=dict)
    """Range of the pods by region, shared by its clusters; default: a /15 of 10.0.0.0/9 that no other region uses."""
    service_ranges: Mapping[Region, PodIpv4Range] = Field(default_factory=dict)
    """Range of the Services by region, for one cluster; default: GKE's own, which every cluster can use."""
    control_plane_access: Literal["DnsEndpoint", "AuthorizedNetworks"] = "DnsEndpoint"
    """DnsEndpoint (default): by DNS name, with access by IAM; AuthorizedNetworks: by address, only from these networks.
    """
    authorized_networks: ListOf[AuthorizedNetwork] = ()
    """Networks with access, with AuthorizedNetworks."""

    @property
    def own_regions(self) -> Mapping[str, object]:
        """Regions that it has a subnet or a range for, known here or not."""
        return {**self.ranges, **(self.existing.subnets if self.existing else {})}

    @property
    def own_fields(self) -> list[str]:
        """The fields that are set of those which describe a network that the fleet makes."""
        fields = {
            "name": self.name,
            "ranges": self.ranges,
            "podRanges": self.pod_ranges,
            "serviceRanges": self.service_ranges,
        }
        return [field for field, value in fields.items() if value]

    def own_problems(self) -> Iterator[Problem]:
        """Networks where, and only where, they are asked for; not the whole world."""
        yield from self._networks()
        yield from self._of_own_network()
        if self.control_plane_access == "AuthorizedNetworks" and not self.authorized_networks:
            yield NEEDED.at(
                "authorizedNetworks",
                "none, but controlPlaneAccess is AuthorizedNetworks, so no client is let in",
                "add {name, cidr} of your office, VPN or runners, or use DnsEndpoint",
            )
        if self.control_plane_access != "AuthorizedNetworks" and self.authorized_networks:
            yield EXCLUDED.at(
                "authorizedNetworks",
                f"set, but controlPlaneAccess is {self.control_plane_access}",
                "remove it, or set controlPlaneAccess to AuthorizedNetworks",
            )

    @where_read
    def _of_own_network(self) -> Iterator[Problem]:
        if self.existing is not None:
            for field in self.own_fields:
                yield EXCLUDED.at(
                    field,
                    "set, but existing says that the network is there",
                    "remove it; names and ranges of a network that exists are in existing",
                )

    @where_read
    def _networks(self) -> Iterator[Problem]:
        names = [network.name for network in self.authorized_networks]
        for index, network in enumerate(self.authorized_networks):
            if network.cidr.endswith("/0"):
                yield OPEN_TO_ALL.at(
                    f"authorizedNetworks[{index}].cidr", f"{network.cidr} is the whole internet", "name your own ranges"
                )
            if network.name in names[:index]:
                yield LISTED_TWICE.at(
                    f"authorizedNetworks[{index}].name", f"{network.name} is used twice", "use another name"
                )
