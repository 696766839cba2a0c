"""Differences that the Google provider ignores, and those that replace though the schema does not say so.

The schema says where the provider has such a rule (`suppressed` in `provider_facts`), not what it is; those that are
known are here, by property. Where the schema has one that is not known, a difference counts.

Source: terraform-provider-google-beta, the DiffSuppressFunc and CustomizeDiff functions of each resource.
"""

from __future__ import annotations

import ipaddress
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from kueue_admission.kernel.unknown import UNKNOWN, is_set
from kueue_fleet.google.property_paths import Path, Pattern
from kueue_fleet.google.resource_types import (
    ACCOUNT_MEMBER,
    API_SERVICE,
    CLUSTER,
    COMMITMENT,
    CRYPTO_KEY,
    DASHBOARD,
    DISK,
    FIREWALL,
    FUTURE_RESERVATION,
    KEY_MEMBER,
    MEMBERSHIP,
    NODE_POOL,
    PROJECT_MEMBER,
    RESERVATION,
    RESOURCE_POLICY,
    ROUTER,
    ROUTER_NAT,
    SUBNETWORK,
)


@dataclass(frozen=True, slots=True)
class Pair:
    """A resource before and after."""

    token: str
    """Its type."""
    state: Mapping[str, Any]
    """As Google answered it."""
    inputs: Mapping[str, Any]
    """As it is wanted."""

    def old(self, path: str) -> Any:
        """The value in the state at a path without lists."""
        return _at(self.state, path)

    def new(self, path: str) -> Any:
        """The value that is wanted; None where it is left out."""
        return _at(self.inputs, path)


def _at(value: Any, path: str) -> Any:
    for part in path.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return value


_CARDS: Final = "networkConfig.additionalNodeNetworkConfigs"
Rule = Callable[[Pair, Path, Any, Any], bool]
"""Whether a difference is none: the resource, the path, the old and the new value; None where one is not there."""


def is_suppressed(pair: Pair, plain: str, path: Path, old: Any, new: Any) -> bool:
    """Whether the provider takes `old` and `new`, at `plain`, for the same."""
    rule = RULES.get((pair.token, plain))
    return rule is not None and rule(pair, path, old, new)


def forced_replacements(pair: Pair) -> list[Path]:
    """The properties whose change replaces the resource, by the provider's own code."""
    if pair.token == SUBNETWORK and _shrinks(pair.old("ipCidrRange"), pair.new("ipCidrRange")):
        return [("ipCidrRange",)]
    if pair.token == DISK and _is_less(pair.new("size"), pair.old("size")):
        return [("size",)]
    if pair.token == CLUSTER:
        off = ("enableFqdnNetworkPolicy", "enableL4IlbSubsetting")
        return [(name,) for name in off if pair.old(name) is True and pair.new(name) is not True]
    if pair.token == NODE_POOL and pair.old(_CARDS) and not pair.new(_CARDS):
        return [tuple(_CARDS.split("."))]
    return []


def cleared(pair: Pair) -> list[Pattern]:
    """The properties whose changes the provider's own code takes back: GPUs with a count of 0."""
    accelerators = pair.new("nodeConfig.guestAccelerators")
    there = pair.old("nodeConfig.guestAccelerators") or []
    if pair.token not in (CLUSTER, NODE_POOL) or accelerators is UNKNOWN:
        return []
    some = [accelerator for accelerator in accelerators or () if accelerator.get("count") != 0]
    return [("nodeConfig", "guestAccelerators")] if len(some) < len(accelerators or ()) and some == there else []


def _is_less(new: Any, old: Any) -> bool:
    return all(str(size).isdigit() for size in (new, old)) and int(new) < int(old)


def _shrinks(old: Any, new: Any) -> bool:
    """Whether a subnet's range does not hold all of the old one."""
    try:
        before, after = ipaddress.ip_network(str(old)), ipaddress.ip_network(str(new))
    except ValueError:
        return False
    if isinstance(before, ipaddress.IPv4Network) and isinstance(after, ipaddress.IPv4Network):
        return not before.subnet_of(after)
    return before != after


def _same_link(pair: Pair, path: Path, old: Any, new: Any) -> bool:
    """A link, its short form, and a name: the link of another project is another."""
    before, after = _short(old), _short(new)
    if "/" in before and "/" in after:
        return before == after
    return before.rpartition("/")[2] == after.rpartition("/")[2]


def _short(link: Any) -> str:
    text = str(link or "")
    for prefix in ("/compute/v1/", "/compute/beta/", "//cloudkms.googleapis.com/v1/"):
        text = text.partition(prefix)[2] or text
    return text


def _same_but_for_case(pair: Pair, path: Path, old: Any, new: Any) -> bool:
    return str(old or "").lower() == str(new or "").lower()


def _empty_is(default: str) -> Rule:
    return lambda pair, path, old, new: {old or "", new or ""} <= {"", default}


def _on_autopilot(pair: Pair, path: Path, old: Any, new: Any) -> bool:
    return pair.old("enableAutopilot") is True or pair.new("enableAutopilot") is True


def _off_and_left_out(pair: Pair, path: Path, old: Any, new: Any) -> bool:
    """A block that only says that something is off, and is not asked for."""
    return new is None and isinstance(old, dict) and old.get("enabled") is not True


def _private_cluster(pair: Pair, path: Path, old: Any, new: Any) -> bool:
    both_off = _off("enablePrivateEndpoint")(pair, path, old, new) and _off("enablePrivateNodes")(pair, path, old, new)
    more = ("privateEndpointSubnetwork", "masterGlobalAccessConfig")
    return new is None and both_off and not any(is_set(pair.new(f"privateClusterConfig.{name}")) for name in more)


def _off(name: str) -> Rule:
    """Both sides say no, or nothing."""
    path = f"privateClusterConfig.{name}"
    return lambda pair, _path, _old, _new: not pair.old(path) and not is_set(pair.new(path))


def _no_addresses(pair: Pair, path: Path, old: Any, new: Any) -> bool:
    """Without IP endpoints, their settings have no meaning (since 8.0)."""
    return pair.new("controlPlaneEndpointsConfig.ipEndpointsConfig.enabled") is False


def _private_endpoint(pair: Pair, path: Path, old: Any, new: Any) -> bool:
    return _off("enablePrivateEndpoint")(pair, path, old, new) or _no_addresses(pair, path, old, new)


def _added_scope(pair: Pair, path: Path, old: Any, new: Any) -> bool:
    scope = "https://www.googleapis.com/auth/monitoring.write"
    return isinstance(old, list) and isinstance(new, list) and set(old) == {*new, scope}


def _same_recurrence(pair: Pair, path: Path, old: Any, new: Any) -> bool:
    return (old, new) == ("FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR,SA,SU", "FREQ=DAILY")


def _same_time(pair: Pair, path: Path, old: Any, new: Any) -> bool:
    return str(old or "").lstrip("0") == str(new or "").lstrip("0")


def _range_of_size(pair: Pair, path: Path, old: Any, new: Any) -> bool:
    """`/14` is met by every range of that size."""
    return bool(new) and str(new).startswith("/") and str(old or "").endswith(str(new))


def _gke_label(pair: Pair, path: Path, old: Any, new: Any) -> bool:
    """One label that GKE puts on machines, and that is not asked for; asked about the map first, then each key."""
    return new is None and str(path[-1]).startswith("goog-gke")


def _same_dashboard(pair: Pair, path: Path, old: Any, new: Any) -> bool:
    """What only the API's answer has counts for nothing; what it does not have is a change."""
    before, after = json.loads(str(old or "null")), json.loads(str(new or "null"))
    return bool(_without_additions(before, after) == after)


def _without_additions(old: Any, new: Any) -> Any:
    if isinstance(old, dict) and isinstance(new, dict):
        return {key: _without_additions(value, new[key]) for key, value in old.items() if key in new}
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        return [_without_additions(before, after) for before, after in zip(old, new, strict=True)]
    return old


def _registered(pair: Pair, path: Path, old: Any, new: Any) -> bool:
    return isinstance(old, dict) and old.get("preRegistered") is True


_MEMBERS: Final = (
    KEY_MEMBER,
    PROJECT_MEMBER,
    ACCOUNT_MEMBER,
)
_LINKS: Final = {
    "gcp:compute/address:Address": ("network", "region", "subnetwork"),
    FIREWALL: ("network",),
    FUTURE_RESERVATION: ("zone",),
    COMMITMENT: ("existingReservations", "region"),
    RESERVATION: ("zone",),
    RESOURCE_POLICY: ("region",),
    ROUTER: ("network", "region"),
    ROUTER_NAT: ("region", "router", "subnetworks[].name"),
    SUBNETWORK: ("network", "region", "reservedInternalRange"),
    CLUSTER: ("network", "subnetwork", "nodeConfig.guestAccelerators[].type"),
    NODE_POOL: ("networkConfig.subnetwork", "nodeConfig.guestAccelerators[].type"),
    MEMBERSHIP: ("endpoint.gkeCluster.resourceLink",),
    CRYPTO_KEY: ("keyRing",),
    PROJECT_MEMBER: ("project",),
    API_SERVICE: ("project",),
}
_DEFAULTS: Final = "clusterAutoscaling.autoProvisioningDefaults"
_POLICY: Final = "maintenancePolicy"
_CLUSTER_RULES: Final[Mapping[str, Rule]] = {
    # Of the old block, the provider looks at `enabled` only: enforcement outlives its block.
    "binaryAuthorization": _off_and_left_out,
    f"{_DEFAULTS}.diskSize": _on_autopilot,
    f"{_DEFAULTS}.diskType": _on_autopilot,
    f"{_DEFAULTS}.imageType": lambda *given: _on_autopilot(*given) or _same_but_for_case(*given),
    f"{_DEFAULTS}.minCpuPlatform": _empty_is("automatic"),
    f"{_DEFAULTS}.oauthScopes": _added_scope,
    "clusterAutoscaling.autoscalingProfile": _on_autopilot,
    "clusterAutoscaling.resourceLimits": _on_autopilot,
    "databaseEncryption.state": lambda pair, path, old, new: (
        # GKE reports the second from 1.35 on.
        (old, new) == ("ALL_OBJECTS_ENCRYPTION_ENABLED", "ENCRYPTED")
    ),
    "datapathProvider": _empty_is("DATAPATH_PROVIDER_UNSPECIFIED"),
    "dnsConfig": _on_autopilot,
    "dnsConfig.clusterDnsScope": _empty_is("DNS_SCOPE_UNSPECIFIED"),
    "fleet": _registered,
    "ipAllocationPolicy.clusterIpv4CidrBlock": _range_of_size,
    "ipAllocationPolicy.servicesIpv4CidrBlock": _range_of_size,
    f"{_POLICY}.dailyMaintenanceWindow.startTime": _same_time,
    f"{_POLICY}.recurringMaintenanceWindow.recurrence": _same_recurrence,
    f"{_POLICY}.recurringWindow.recurrence": _same_recurrence,
    "networkPolicy": _off_and_left_out,
    "networkPolicy.provider": _empty_is("PROVIDER_UNSPECIFIED"),
    "nodeConfig.imageType": _same_but_for_case,
    "nodeConfig.resourceLabels": _gke_label,
    "podSecurityPolicyConfig": _off_and_left_out,
    "privateClusterConfig": _private_cluster,
    "privateClusterConfig.enablePrivateEndpoint": _private_endpoint,
    "privateClusterConfig.enablePrivateNodes": _off("enablePrivateNodes"),
    "privateClusterConfig.masterGlobalAccessConfig.enabled": _no_addresses,
    "secretManagerConfig": _off_and_left_out,
    "secretSyncConfig": _off_and_left_out,
    "securityPostureConfig.mode": _empty_is("MODE_UNSPECIFIED"),
    "securityPostureConfig.vulnerabilityMode": _empty_is("VULNERABILITY_MODE_UNSPECIFIED"),
}
RULES: Final[Mapping[tuple[str, str], Rule]] = {
    **{(token, path): _same_link for token, paths in _LINKS.items() for path in paths},
    **{(token, "member"): _same_but_for_case for token in _MEMBERS},
    **{(CLUSTER, path): rule for path, rule in _CLUSTER_RULES.items()},
    (NODE_POOL, "nodeConfig.imageType"): _same_but_for_case,
    (NODE_POOL, "nodeConfig.resourceLabels"): _gke_label,
    (FIREWALL, "allows[].protocol"): _same_but_for_case,
    (FIREWALL, "denies[].protocol"): _same_but_for_case,
    (DASHBOARD, "dashboardJson"): _same_dashboard,
}
"""The known rules, by type and property (without the indices of lists)."""
