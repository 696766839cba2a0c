"""Networks of GPUs that the fleet makes: for each network card of the nodes of a cluster beside their own.

A VPC for each card of GPUDirect-TCPX and TCPXO, with a firewall rule that lets its machines reach each other; for RDMA
one VPC with a subnet for each card, whose profile ties it to a zone and lets no rule be made. The ranges are apart from
each other, and the same on every cluster: nothing joins these networks to another.

Sources: GoogleCloudPlatform/cluster-toolkit@10470803 modules/network/multivpc, modules/network/gpu-rdma-vpc (profile,
no firewall rules); https://cloud.google.com/vpc/docs/create-vpc-network-rdma.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from kueue_fleet.fleet_file.model.resolved_pools import CardNetwork, ResolvedNodePool
from kueue_fleet.google.networks import OF_NODES
from kueue_fleet.google.resource import CloudResource, joined
from kueue_fleet.google.resource_types import FIREWALL, NETWORK, SUBNETWORK


def accelerator_networks(name: str, pools: Iterable[ResolvedNodePool], *, project: Any) -> list[CloudResource]:
    """The networks that the pools of one cluster have from the fleet, each once, before its subnets and rule."""
    cloud_resources: dict[str, CloudResource] = {}
    for pool in pools:
        for network in pool.networks:
            if network.made:
                for resource in _of_card(name, pool, network, project):
                    cloud_resources.setdefault(resource.key, resource)
    return list(cloud_resources.values())


def _of_card(name: str, pool: ResolvedNodePool, of: CardNetwork, project: Any) -> list[CloudResource]:
    rdma = of.card.device_mode == "RDMA"
    properties: dict[str, Any] = {
        "name": of.network,
        "project": project,
        "autoCreateSubnetworks": False,
        "routingMode": "REGIONAL",
        "description": f"GPUs of {pool.cluster}, managed by kueue-fleet",
        **({"mtu": of.card.mtu} if of.card.mtu else {}),
    }
    if rdma:
        profile = joined("projects/", project, f"/global/networkProfiles/{pool.zones[0]}-vpc-roce")
        properties["networkProfile"] = profile
    vpc = CloudResource(NETWORK, f"{name}/{of.network}", properties)
    here = {"project": project, "network": vpc.ref("selfLink")}
    subnet = CloudResource(
        SUBNETWORK,
        f"{name}/{of.subnetwork}",
        # Whether a network for RDMA takes flow logs is not known; Google refuses what its profile does not support.
        {
            **here,
            "name": of.subnetwork,
            "region": pool.region,
            "ipCidrRange": of.card.addresses,
            **({} if rdma else OF_NODES),
        },
    )
    if rdma:
        return [vpc, subnet]
    rule = {
        **here,
        "name": f"{of.network}-internal",
        "direction": "INGRESS",
        "sourceRanges": [of.card.addresses],
        "allows": [{"protocol": "tcp"}, {"protocol": "udp"}, {"protocol": "icmp"}],
    }
    return [vpc, subnet, CloudResource(FIREWALL, f"{name}/{of.network}", rule)]
