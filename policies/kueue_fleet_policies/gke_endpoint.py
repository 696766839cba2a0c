"""Rules about who can reach a cluster's control plane and its nodes.

A control plane has up to two addresses: a DNS name, where Google checks IAM before anything else, and IP addresses, one
of which may be public. Source: https://cloud.google.com/kubernetes-engine/docs/concepts/network-isolation.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kueue_admission.kernel.unknown import UNKNOWN
from kueue_fleet_policies.estate import Estate
from kueue_fleet_policies.internet import internet_ranges
from kueue_fleet_policies.kubernetes_access import is_rotated
from kueue_fleet_policies.resource import Resource
from kueue_fleet_policies.rows import rules_of
from kueue_fleet_policies.rule import Breach, Settings
from kueue_fleet_policies.values import entries, items

_IP_ENDPOINT: Final = "controlPlaneEndpointsConfig.ipEndpointsConfig.enabled"
_PRIVATE_ENDPOINT: Final = "privateClusterConfig.enablePrivateEndpoint"
_NETWORKS: Final = "masterAuthorizedNetworksConfig"
_DNS_ENDPOINT: Final = "controlPlaneEndpointsConfig.dnsEndpointConfig"


def _has_public_address(cluster: Resource) -> bool:
    """Whether the control plane is known to have a public IP address that is in use."""
    return cluster.flag(_IP_ENDPOINT) in (None, True) and cluster.flag(_PRIVATE_ENDPOINT) in (None, False)


def _authorized_networks(cluster: Resource, _: Settings) -> Iterator[Breach]:
    if not _has_public_address(cluster):
        return
    if cluster.get(_NETWORKS) is None:
        yield Breach(
            _NETWORKS,
            "is missing, so the whole internet reaches the control plane",
            f"set cidrBlocks, or turn the IP address off with {_IP_ENDPOINT}: false and use the DNS endpoint",
        )
    if cluster.is_on(f"{_NETWORKS}.gcpPublicCidrsAccessEnabled"):
        yield Breach(
            f"{_NETWORKS}.gcpPublicCidrsAccessEnabled",
            "is true, so every virtual machine of Google Cloud, of any customer, reaches the control plane",
            "set it to false",
        )
    if everywhere := _everywhere(cluster):
        yield Breach(
            f"{_NETWORKS}.cidrBlocks", f"hold {', '.join(everywhere)}, the internet", "name your networks instead"
        )


def _everywhere(cluster: Resource) -> list[str]:
    """The authorized networks that are on the internet."""
    blocks = items(cluster.get(f"{_NETWORKS}.cidrBlocks"))
    return internet_ranges(entries(block).get("cidrBlock") for block in blocks)


def _private_endpoint(cluster: Resource, _: Settings) -> Iterator[Breach]:
    limited = cluster.get(_NETWORKS) is not None and not _everywhere(cluster)
    if _has_public_address(cluster) and limited:
        yield Breach(
            _IP_ENDPOINT,
            "is on, with a public address that authorized networks reach",
            f"set it to false and use the DNS endpoint, or set {_PRIVATE_ENDPOINT} to true",
        )


def _dns_endpoint(cluster: Resource, _: Settings) -> Iterator[Breach]:
    path = f"{_DNS_ENDPOINT}.allowExternalTraffic"
    if cluster.flag(_IP_ENDPOINT) is False and cluster.get(path) is not UNKNOWN and cluster.is_off(path):
        yield Breach(
            path,
            "is not true, and the IP endpoint is off, so the control plane cannot be reached from outside Google Cloud",
            "set it to true; IAM still decides who may",
        )


def _dns_credentials(estate: Estate, settings: Settings) -> Iterator[tuple[Resource, Breach]]:
    for cluster in estate.clusters:
        resource = cluster.resource
        if not resource.is_on(f"{_DNS_ENDPOINT}.allowExternalTraffic"):
            continue
        if resource.is_on(f"{_DNS_ENDPOINT}.enableK8sCertsViaDns"):
            yield (
                resource,
                Breach(
                    f"{_DNS_ENDPOINT}.enableK8sCertsViaDns",
                    "is true, so a client certificate, which cannot be revoked, is enough to get in from the internet",
                    "set it to false",
                ),
            )
        tokens = resource.is_on(f"{_DNS_ENDPOINT}.enableK8sTokensViaDns")
        if tokens and all(is_rotated(one, settings.today) is False for one in cluster.of_kind("Secret")):
            yield (
                resource,
                Breach(
                    f"{_DNS_ENDPOINT}.enableK8sTokensViaDns",
                    "is true, so a service account's token is enough to get in from the internet",
                    "set it to false; clients with Google's own tokens get in without it",
                ),
            )


RULES: Final = rules_of(
    "GKE endpoint",
    {
        "gke-dns-endpoint-credentials": _dns_credentials,
        "gke-authorized-networks": _authorized_networks,
        "gke-private-endpoint": _private_endpoint,
        "gke-reachable-endpoint": _dns_endpoint,
    },
)
"""The rules of this module."""
