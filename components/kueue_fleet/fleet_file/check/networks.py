"""Ranges of the network: none overlaps another.

Source: https://cloud.google.com/kubernetes-engine/docs/concepts/alias-ips
"""

from __future__ import annotations

import ipaddress
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import combinations

from kueue_admission.kernel import suggest
from kueue_admission.kernel.problem import Problem, where_read
from kueue_fleet.fleet_file.check.scope import Scope, fleet_check
from kueue_fleet.fleet_file.model.network import ExistingNetwork
from kueue_fleet.fleet_file.rules.clusters import OVERLAP, RANGE_TOO_SMALL, SHARED_VPC, SUBNET
from kueue_fleet.fleet_file.rules.files import UNUSED
from kueue_fleet.gke.accelerator_networks import RANGE
from kueue_fleet.gke.regions import REGION_RANGES, default_pod_range, nodes_in, pod_addresses


@fleet_check
def check_network(scope: Scope) -> Iterator[Problem]:
    """Ranges of nodes, pods and Services of the fleet's regions are apart; none is for a region without a cluster.

    A range of Services is for one cluster: GKE does not let two share one that is named.
    """
    network = scope.fleet.network
    regions = Counter(cluster.region for cluster in scope.fleet.new_clusters)
    for region in regions:
        yield from _room(scope, region)
    if network.existing is not None:
        yield from _existing(scope, network.existing, regions)
        return
    pods = {region: text for region in regions if (text := default_pod_range(region))}
    range_owners: dict[str, str] = {}
    for pool in scope.entries("nodePools"):
        if pool.accelerator_networks is not None and not pool.accelerator_networks.existing:
            range_owners["the networks for GPUs"] = RANGE
    sections: tuple[tuple[str, Mapping[str, str]], ...] = (
        ("ranges", {**REGION_RANGES, **network.ranges}),
        ("podRanges", pods | dict(network.pod_ranges)),
        ("serviceRanges", network.service_ranges),
    )
    for field, ranges in sections:
        for region, text in ranges.items():
            if region in regions:
                range_owners[f"network.{field}[{region}]"] = text
            elif field != "ranges":
                yield _unused(scope, f"network.{field}[{region}]", region)
            else:
                known_ranges = {**REGION_RANGES, **regions}
                yield from suggest.misspelt(
                    f"network.ranges[{region}]", region, known_ranges, "is a region without a cluster"
                )
    for region in network.service_ranges:
        yield from _for_one_cluster(f"network.serviceRanges[{region}]", region, regions)
    for (first, one), (second, other) in combinations(range_owners.items(), 2):
        if ipaddress.IPv4Network(one).overlaps(ipaddress.IPv4Network(other)):
            yield OVERLAP.at(second, f"{other} overlaps {one} of {first}", "use a range that overlaps no other")


def _unused(scope: Scope, path: str, region: str) -> Problem:
    """Of a region where the fleet makes no cluster."""
    there = [cluster.name for cluster in scope.fleet.clusters if cluster.region == region]
    wrong = f"{there[0]} exists, and keeps its own" if there else f"no cluster is in {region}"
    return UNUSED.at(path, wrong, "remove it" if there else "remove it, or add a cluster")


@where_read
def _room(scope: Scope, region: str) -> Iterator[Problem]:
    """The nodes of a region, and their pods, have addresses; of what GKE makes by itself the number is not known."""
    fleet, network = scope.fleet, scope.fleet.network
    clusters = [cluster.name for cluster in fleet.new_clusters if cluster.region == region]
    pools = [pool for name in clusters for pool in fleet.every_pool_on(name)]
    if network.existing is not None:
        subnet, at = network.existing.subnets.get(region), f"network.existing.subnets[{region}]"
        nodes, pods = (subnet.cidr, subnet.pod_cidr) if subnet is not None else (None, None)
        fields = f"{at}.cidr", f"{at}.podCidr"
    else:
        nodes = {**REGION_RANGES, **network.ranges}.get(region)
        pods = network.pod_ranges.get(region) or default_pod_range(region)
        fields = f"network.ranges[{region}]", f"network.podRanges[{region}]"
    node_count = sum(pool.full_nodes for pool in pools)
    if nodes is not None and node_count > nodes_in(nodes):
        wrong = f"{nodes} has addresses for {nodes_in(nodes)} nodes, but {node_count} may come"
        yield RANGE_TOO_SMALL.at(fields[0], wrong, "write a larger range, or let the pools have fewer nodes")
    addresses = sum(pool.full_nodes * pod_addresses(pool.pods_per_node) for pool in pools)
    if pods is not None and addresses > (room := ipaddress.IPv4Network(pods).num_addresses):
        wrong = f"{pods} has {room} addresses, but the pods of {node_count} nodes that may come take {addresses}"
        fix = "write a larger range, lower maxPodsPerNode, or let the pools have fewer nodes"
        yield RANGE_TOO_SMALL.at(fields[1], wrong, fix)


@where_read
def _existing(scope: Scope, network: ExistingNetwork, regions: Counter[str]) -> Iterator[Problem]:
    """A subnet for each region, with what its clusters and the fleet's access to them need of it.

    Source: https://cloud.google.com/kubernetes-engine/docs/how-to/cluster-shared-vpc (secondary ranges).
    """
    at, fleet = "network.existing.subnets", scope.fleet
    for region in regions:
        if region not in network.subnets:
            yield SUBNET.at(f"{at}[{region}]", "not set, but a cluster is there", "name the subnet of that region")
    for region, subnet in network.subnets.items():
        here = f"{at}[{region}]"
        if region not in regions:
            yield _unused(scope, here, region)
        projects = [fleet.project_of(cluster.name) for cluster in fleet.new_clusters if cluster.region == region] or [
            fleet.project
        ]
        if any(project != fleet.network_project for project in projects) and subnet.pod_range_name is None:
            yield SUBNET.at(
                f"{here}.podRangeName",
                f"not set, but GKE adds no range to a network of another project, {fleet.network_project}",
                "name the subnet's secondary range for pods",
            )
        if subnet.service_range_name is not None:
            yield from _for_one_cluster(f"{here}.serviceRangeName", region, regions)
    yield from _of_manager(scope, network)


@fleet_check
def _other_projects(scope: Scope) -> Iterator[Problem]:
    """Clusters of several projects are in the network of a Shared VPC, which the fleet does not make.

    Source: https://cloud.google.com/kubernetes-engine/docs/how-to/cluster-shared-vpc.
    """
    fleet = scope.fleet
    for cluster in fleet.new_clusters if fleet.network.existing is None else ():
        if fleet.project_of(cluster.name) != fleet.project:
            yield SHARED_VPC.at(
                f"{scope.path(cluster)}.project",
                f"in {cluster.project}, and the network is one that only clusters of {fleet.project} can use",
                "name the network of the Shared VPC's host project in network.existing",
            )


@where_read
def _of_manager(scope: Scope, network: ExistingNetwork) -> Iterator[Problem]:
    """With addresses, control planes of workers let the manager in by its ranges, which have to be known."""
    manager = scope.fleet.manager
    if manager is None or manager.existing or scope.fleet.network.control_plane_access != "AuthorizedNetworks":
        return
    subnet = network.subnets.get(manager.region)
    if subnet is None:
        return
    needed_fields = {"cidr": subnet.cidr, **({"podCidr": subnet.pod_cidr} if subnet.pod_range_name else {})}
    for field, value in needed_fields.items():
        if value is None:
            yield SUBNET.at(
                f"network.existing.subnets[{manager.region}].{field}",
                f"not set, but workers let the manager in {manager.region} in by its addresses",
                "write the range, or set controlPlaneAccess to DnsEndpoint",
            )


def _for_one_cluster(path: str, region: str, regions: Counter[str]) -> Iterator[Problem]:
    """The problem of a range of Services at `path` that several clusters of a region would have to share."""
    if regions[region] > 1:
        yield SUBNET.at(
            path,
            f"{regions[region]} clusters are in {region}, but a range of Services is for one",
            "remove it; GKE's own range is good for every cluster",
        )
