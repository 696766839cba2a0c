"""Rules about who can reach a cluster's control plane and its nodes.

In: a `gcp:container/cluster:Cluster` or a node pool. Out: problems. A control plane has up to two addresses: a DNS
name, where Google checks IAM before anything else, and IP addresses, one of which may be public. Source:
https://cloud.google.com/kubernetes-engine/docs/concepts/network-isolation.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pulumi_policy import Severity

from kueue_fleet.spec import Problem
from kueue_fleet_policies.resource import CLUSTER, NODE_POOL, Resource
from kueue_fleet_policies.rule import ADVISORY, ResourceRule, Settings
from kueue_fleet_policies.values import UNKNOWN, entries, items

_ISOLATION: Final = "https://cloud.google.com/kubernetes-engine/docs/concepts/network-isolation"
_IP_ENDPOINT: Final = "controlPlaneEndpointsConfig.ipEndpointsConfig.enabled"
_PRIVATE_ENDPOINT: Final = "privateClusterConfig.enablePrivateEndpoint"
_NETWORKS: Final = "masterAuthorizedNetworksConfig"
_EVERYWHERE: Final = frozenset({"0.0.0.0/0", "::/0"})


def _has_public_address(cluster: Resource) -> bool:
    """Whether the control plane is known to have a public IP address that is in use."""
    return cluster.flag(_IP_ENDPOINT) in (None, True) and cluster.flag(_PRIVATE_ENDPOINT) in (None, False)


def _authorized_networks(cluster: Resource, _: Settings) -> Iterator[Problem]:
    if not _has_public_address(cluster):
        return
    if cluster.get(_NETWORKS) is None:
        yield Problem(
            _NETWORKS,
            "is missing, so the whole internet reaches the control plane",
            f"set cidrBlocks, or turn the IP address off with {_IP_ENDPOINT}: false and use the DNS endpoint",
        )
    for index, block in enumerate(items(cluster.get(f"{_NETWORKS}.cidrBlocks"))):
        if entries(block).get("cidrBlock") in _EVERYWHERE:
            yield Problem(f"{_NETWORKS}.cidrBlocks[{index}].cidrBlock", "is the whole internet", "name your networks")


def _private_endpoint(cluster: Resource, _: Settings) -> Iterator[Problem]:
    limited = cluster.get(_NETWORKS) is not None and not any(
        entries(block).get("cidrBlock") in _EVERYWHERE for block in items(cluster.get(f"{_NETWORKS}.cidrBlocks"))
    )
    if _has_public_address(cluster) and limited:
        yield Problem(
            _IP_ENDPOINT,
            "is on, with a public address that authorized networks reach",
            f"set it to false and use the DNS endpoint, or set {_PRIVATE_ENDPOINT} to true",
        )


def _private_nodes(cluster: Resource, _: Settings) -> Iterator[Problem]:
    if cluster.is_off("privateClusterConfig.enablePrivateNodes"):
        yield Problem(
            "privateClusterConfig.enablePrivateNodes",
            "is not true, so nodes have public addresses",
            "set it to true, and give the subnet Cloud NAT",
        )


def _pool_private_nodes(pool: Resource, _: Settings) -> Iterator[Problem]:
    if pool.flag("networkConfig.enablePrivateNodes") is False:
        yield Problem("networkConfig.enablePrivateNodes", "is false, so its nodes have public addresses", "remove it")


def _dns_endpoint(cluster: Resource, _: Settings) -> Iterator[Problem]:
    path = "controlPlaneEndpointsConfig.dnsEndpointConfig.allowExternalTraffic"
    if cluster.flag(_IP_ENDPOINT) is False and cluster.get(path) is not UNKNOWN and cluster.is_off(path):
        yield Problem(
            path,
            "is not true, and the IP endpoint is off: nobody reaches the control plane from outside Google Cloud",
            "set it to true; IAM still decides who may",
        )


_GROUP: Final = "GKE endpoint"

RULES: Final = (
    ResourceRule(
        name="gke-authorized-networks",
        asks="Not everybody reaches the control plane.",
        cis="5.6.3",
        severity=Severity.CRITICAL,
        source="https://cloud.google.com/kubernetes-engine/docs/how-to/authorized-networks",
        group=_GROUP,
        types=(CLUSTER,),
        check=_authorized_networks,
    ),
    ResourceRule(
        name="gke-private-endpoint",
        asks="The control plane has no public IP address.",
        cis="5.6.4",
        level=ADVISORY,
        severity=Severity.HIGH,
        source=_ISOLATION,
        group=_GROUP,
        types=(CLUSTER,),
        check=_private_endpoint,
    ),
    ResourceRule(
        name="gke-reachable-endpoint",
        asks="Somebody reaches the control plane.",
        level=ADVISORY,
        source=_ISOLATION,
        group=_GROUP,
        types=(CLUSTER,),
        check=_dns_endpoint,
    ),
    ResourceRule(
        name="gke-private-nodes",
        asks="Nodes have no public addresses.",
        cis="5.6.5",
        severity=Severity.HIGH,
        source=_ISOLATION,
        group=_GROUP,
        types=(CLUSTER,),
        check=_private_nodes,
    ),
    ResourceRule(
        name="gke-pool-private-nodes",
        asks="No node pool gives its nodes public addresses.",
        cis="5.6.5",
        severity=Severity.HIGH,
        source=_ISOLATION,
        group=_GROUP,
        types=(NODE_POOL,),
        check=_pool_private_nodes,
    ),
)
"""The rules of this module."""
