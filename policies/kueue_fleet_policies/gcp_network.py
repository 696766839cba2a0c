"""Rules about the network of a cluster, and about the places that anything is in."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from pulumi_policy import Severity

from kueue_admission.forms.unknown import UNKNOWN, is_known
from kueue_fleet_policies.internet import internet_ranges
from kueue_fleet_policies.properties import put
from kueue_fleet_policies.resource import Resource
from kueue_fleet_policies.rule import Breach, ResourceRule, Settings, list_option
from kueue_fleet_policies.values import at, items

NETWORK: Final = "gcp:compute/network:Network"
"""Pulumi type of a network."""
SUBNETWORK: Final = "gcp:compute/subnetwork:Subnetwork"
"""Pulumi type of a subnetwork."""
FIREWALL: Final = "gcp:compute/firewall:Firewall"
"""Pulumi type of a firewall rule."""
_POLICY_RULES: Final = (
    "gcp:compute/firewallPolicyRule:FirewallPolicyRule",
    "gcp:compute/networkFirewallPolicyRule:NetworkFirewallPolicyRule",
    "gcp:compute/regionNetworkFirewallPolicyRule:RegionNetworkFirewallPolicyRule",
)
"""Pulumi types of the rules of firewall policies."""
_PURPOSES_WITHOUT_MACHINES: Final = (
    "REGIONAL_MANAGED_PROXY", "GLOBAL_MANAGED_PROXY", "INTERNAL_HTTPS_LOAD_BALANCER", "PRIVATE_SERVICE_CONNECT"
)  # fmt: skip
_REGION: Final = re.compile(r"^([a-z]+-[a-z]+\d+)(-[a-z])?$")


def _custom_mode(network: Resource, _: Settings) -> Iterator[Breach]:
    if network.flag("autoCreateSubnetworks") in (None, True):
        yield Breach(
            "autoCreateSubnetworks", "is not false, so every region of the world gets a subnet", "set it to false"
        )


def _without_machines(subnet: Resource) -> str | None:
    purpose = subnet.get("purpose")
    return f"purpose {purpose}: no machines are in it" if purpose in _PURPOSES_WITHOUT_MACHINES else None


def _private_access(subnet: Resource, _: Settings) -> Iterator[Breach]:
    if subnet.is_off("privateIpGoogleAccess") and is_known(subnet.get("purpose")):
        yield Breach(
            "privateIpGoogleAccess", "is not true, so private nodes do not reach Google's services", "set it to true"
        )


def _flow_logs(subnet: Resource, _: Settings) -> Iterator[Breach]:
    if subnet.lacks("logConfig") and is_known(subnet.get("purpose")):
        yield Breach(
            "logConfig",
            "is missing, so traffic cannot be traced afterwards",
            "set aggregationInterval, flowSampling and metadata",
        )


def _open_firewall(firewall: Resource, settings: Settings) -> Iterator[Breach]:
    if firewall.get("direction") not in (None, "INGRESS") or firewall.is_on("disabled"):
        return
    of_policy = firewall.type in _POLICY_RULES
    sources, opens = ("match.srcIpRanges", "match.layer4Configs") if of_policy else ("sourceRanges", "allows")
    everywhere = internet_ranges(items(firewall.get(sources)))
    if not everywhere or (of_policy and firewall.get("action") != "allow"):
        return
    allowed = {int(port) for port in settings["ports"]}
    for index, rule in enumerate(items(firewall.get(opens))):
        ports = at(rule, "ports")
        opened = {str(port) for port in items(ports)}
        if ports in (None, []) or not all(port.isdecimal() and int(port) in allowed for port in opened):
            shown = ", ".join(sorted(opened)) or "every port"
            yield Breach(
                f"{opens}[{index}]",
                f"opens {shown} to {', '.join(everywhere)}, the internet",
                "name the source ranges that need it, or use a load balancer",
            )


def region_of(resource: Resource) -> Any:
    """The region that a resource of Google Cloud is in; None if it is in none, `UNKNOWN` if that is not known."""
    for key in ("region", "zone", "location"):
        value = resource.get(key)
        if value is UNKNOWN:
            return UNKNOWN
        if isinstance(value, str) and (found := _REGION.match(value.rsplit("/", 1)[-1])):
            return found.group(1)
    return None


def _regions(resource: Resource, settings: Settings) -> Iterator[Breach]:
    allowed = settings.names("regions")
    region = region_of(resource)
    if allowed and isinstance(region, str) and region not in allowed:
        key = next(key for key in ("region", "zone", "location") if isinstance(resource.get(key), str))
        yield Breach(
            key,
            f"is {resource.get(key)}, outside the allowed regions",
            f"use one of {', '.join(allowed)}, or add {region} to the setting regions",
        )
    for index, zone in enumerate(items(resource.get("nodeLocations"))):
        if allowed and (found := _REGION.match(str(zone))) and found.group(1) not in (*allowed, region):
            yield Breach(f"nodeLocations[{index}]", f"is {zone}, outside the allowed regions", "remove it")


_GROUP: Final = "Network and places"

RULES: Final = (
    ResourceRule(
        name="network-custom-subnets",
        asks="Networks must not get a subnet in every region.",
        source="https://cloud.google.com/vpc/docs/vpc#auto-mode-considerations",
        group=_GROUP,
        types=(NETWORK,),
        check=_custom_mode,
    ),
    ResourceRule(
        name="subnet-private-google-access",
        asks="Private nodes must reach Google's services.",
        source="https://cloud.google.com/vpc/docs/private-google-access",
        group=_GROUP,
        types=(SUBNETWORK,),
        check=_private_access,
        remedy=put("privateIpGoogleAccess", True),
        exemption=_without_machines,
        exempts="subnets for proxies and Private Service Connect, which have no machines",
    ),
    ResourceRule(
        name="subnet-flow-logs",
        asks="Flows through a subnet must be logged.",
        cis="5.6.1",
        source="https://cloud.google.com/vpc/docs/using-flow-logs",
        group=_GROUP,
        types=(SUBNETWORK,),
        check=_flow_logs,
        remedy=put(
            "logConfig",
            {"aggregationInterval": "INTERVAL_10_MIN", "flowSampling": 0.5, "metadata": "INCLUDE_ALL_METADATA"},
        ),
        exemption=_without_machines,
        exempts="subnets for proxies and Private Service Connect, which have no machines",
    ),
    ResourceRule(
        name="firewall-not-open",
        asks="Firewalls must not let the internet in.",
        cis="5.6.6",
        severity=Severity.CRITICAL,
        source="https://cloud.google.com/firewall/docs/firewalls",
        group=_GROUP,
        types=(FIREWALL, *_POLICY_RULES),
        check=_open_firewall,
        options={
            "ports": {
                "type": "array",
                "items": {"type": "integer"},
                "description": "Ports that may be open to the internet.",
                "default": [],
            }
        },
    ),
    ResourceRule(
        name="region-allowed",
        asks="Resources must be in an allowed region.",
        severity=Severity.HIGH,
        source="https://cloud.google.com/resource-manager/docs/organization-policy/defining-locations",
        group=_GROUP,
        types=("gcp:",),
        check=_regions,
        options={"regions": list_option("Regions that may be used; none named: all.")},
    ),
)
"""The rules of this module."""
