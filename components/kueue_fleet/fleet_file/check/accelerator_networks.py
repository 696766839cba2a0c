"""Networks for GPUs: the cluster takes several networks, and all pools there mean the same by a name.

Pods ask for networks by names of objects in the cluster, of which there is one each. Sources:
https://cloud.google.com/kubernetes-engine/docs/how-to/setup-multinetwork-support-for-pods (Dataplane V2, Shared VPC).
"""

from __future__ import annotations

from collections.abc import Iterator

from kueue_admission.forms.problem import Problem, where_read
from kueue_fleet.fleet_file.check.node_pools import path_on
from kueue_fleet.fleet_file.check.scope import Scope
from kueue_fleet.fleet_file.fleet_rules import MULTI_NETWORKING, NETWORKS_DIFFER, NO_CARDS, NODE_NETWORK_PROJECT
from kueue_fleet.fleet_file.model.clusters import ClusterEntry


def check_accelerator_networks(scope: Scope) -> Iterator[Problem]:
    """What the networks of pools need of their clusters, and of each other."""
    for cluster in scope.entries("clusters"):
        yield from _on(scope, cluster)


@where_read
def _on(scope: Scope, cluster: ClusterEntry) -> Iterator[Problem]:
    fleet = scope.fleet
    first: dict[str, tuple[str, object]] = {}
    for pool in fleet.node_pools_on(cluster.name):
        entry = fleet.node_pool(pool.name)
        if entry is None:
            continue
        if entry.nccl_plugin and pool.plugin is None:
            wrong = f"true, but Google is not known to have one for {pool.machine_type}"
            yield NO_CARDS.at(f"{scope.path(entry)}.ncclPlugin", wrong, "remove it")
        if pool.entry.accelerator_networks is not None and not pool.networks:
            at, wrong = (
                path_on(scope, entry, cluster.name),
                f"set, but the network cards of {pool.machine_type} are not known",
            )
            yield NO_CARDS.at(f"{at}.acceleratorNetworks", wrong, "remove it")
        at = f"{path_on(scope, entry, cluster.name)}.acceleratorNetworks"
        if pool.networks and not cluster.existing and not cluster.multi_networking:
            wrong = "set, but nodes of {cluster} cannot have several networks"
            yield MULTI_NETWORKING.at(at, wrong, "set multiNetworking: true on {cluster}").on(cluster.name)
        made = any(each.made for each in pool.networks)
        if made and not entry.existing and fleet.network_project != fleet.project_of(cluster.name):
            wrong = f"made by the fleet, in {fleet.project_of(cluster.name)}, but the nodes' own network is in "
            fix = "name networks of that project in existing"
            yield NODE_NETWORK_PROJECT.at(at, f"{wrong}{fleet.network_project}", fix)
        for each in pool.networks:
            zone = pool.zones if each.made and each.card.device_mode == "RDMA" else ()
            other, there = first.setdefault(each.card.network, (pool.name, (each.network, each.subnetwork, zone)))
            if there != (each.network, each.subnetwork, zone):
                wrong = f"{each.card.network} is another network on {{cluster}} than for pool {other}"
                fix = "name the same networks, or put the pool on another cluster"
                yield NETWORKS_DIFFER.at(at, f"{wrong}{' (another zone)' if zone else ''}", fix).on(cluster.name)
                break
