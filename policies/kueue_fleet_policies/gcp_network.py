"""Rules about the network of a cluster, and about the places that anything is in."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from kueue_admission.kernel.unknown import UNKNOWN
from kueue_fleet_policies.internet import internet_ranges
from kueue_fleet_policies.resource import Resource
from kueue_fleet_policies.rows import rules_of
from kueue_fleet_policies.rule import Breach, Settings
from kueue_fleet_policies.values import at, items

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


def _without_machines(subnet: Resource) -> bool:
    return subnet.get("purpose") in _PURPOSES_WITHOUT_MACHINES


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
            port_text = ", ".join(sorted(opened)) or "every port"
            yield Breach(
                f"{opens}[{index}]",
                f"opens {port_text} to {', '.join(everywhere)}, the internet",
                "name the source ranges that need it, or use a load balancer",
            )


def region_of(resource: Resource) -> Any:
    """The region that a resource of Google Cloud is in; None if it is in none, `UNKNOWN` if that is not known."""
    for key in ("region", "zone", "location"):
        value = resource.get(key)
        if value is UNKNOWN:
            return UNKNOWN
        if isinstance(value, str) and (match := _REGION.match(value.rsplit("/", 1)[-1])):
            return match.group(1)
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
        if allowed and (match := _REGION.match(str(zone))) and match.group(1) not in (*allowed, region):
            yield Breach(f"nodeLocations[{index}]", f"is {zone}, outside the allowed regions", "remove it")


def _projects(resource: Resource, settings: Settings) -> Iterator[Breach]:
    """A project that is left out is that of the provider, which policies do not see."""
    allowed, project = settings.names("projects"), resource.get("project")
    if allowed and isinstance(project, str) and project.removeprefix("projects/") not in allowed:
        fix = f"use one of {', '.join(allowed)}, or add {project} to the setting projects"
        yield Breach("project", f"is {project}, outside the allowed projects", fix)


RULES: Final = rules_of(
    "Network and places",
    {
        "firewall-not-open": _open_firewall,
        "region-allowed": _regions,
        "project-allowed": _projects,
    },
    exemptions=dict.fromkeys(("subnet-private-google-access", "subnet-flow-logs"), _without_machines),
)
"""The rules of this module."""
