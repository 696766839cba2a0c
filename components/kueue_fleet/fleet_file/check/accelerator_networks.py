"""Networks for GPUs: the cluster takes several networks, and all pools there mean the same by a name.

Pods ask for networks by names of objects in the cluster, of which there is one each. Sources:
https://cloud.google.com/kubernetes-engine/docs/how-to/setup-multinetwork-support-for-pods (Dataplane V2, Shared VPC).
"""

from __future__ import annotations

from collections.abc import Iterator

from kueue_admission.kernel.form_rules import LISTED_TWICE
from kueue_admission.kernel.problem import Problem
from kueue_fleet.fleet_file.check.google_cloud import cluster_since
from kueue_fleet.fleet_file.check.node_pools import path_on
from kueue_fleet.fleet_file.check.scope import Scope, entry_check
from kueue_fleet.fleet_file.model.clusters import ClusterEntry
from kueue_fleet.fleet_file.model.dra_driver import CHANNEL_CLASS, DRA_SINCE, NvidiaDraDriver, has_claimed_gpus
from kueue_fleet.fleet_file.model.resolved_pools import ResolvedNodePool
from kueue_fleet.fleet_file.rules.clusters import (
    MULTI_NETWORKING,
    NETWORKS_DIFFER,
    NO_CARDS,
    NODE_NETWORK_PROJECT,
)
from kueue_fleet.fleet_file.rules.files import NO_EFFECT
from kueue_fleet.fleet_file.rules.teams import CLAIMED_CLASS, CLAIMED_GPUS
from kueue_fleet.gke.labels import NO_DEVICE_PLUGIN


@entry_check("clusters")
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
        at = f"{path_on(scope, entry, cluster.name)}.acceleratorNetworks"
        if pool.entry.accelerator_networks is not None and not pool.networks:
            yield NO_CARDS.at(at, f"set, but the network cards of {pool.machine_type} are not known", "remove it")
        yield from _shared_networks(f"{at}.existing", pool, fleet.network_name)
        if pool.networks and not cluster.existing and not cluster.multi_networking:
            wrong = "set, but nodes of {cluster} cannot have several networks"
            yield MULTI_NETWORKING.at(at, wrong, "set multiNetworking: true on {cluster}").on(cluster.name)
        makes_networks = any(network.made for network in pool.networks)
        if makes_networks and not entry.existing and fleet.network_project != fleet.project_of(cluster.name):
            wrong = f"made by the fleet, in {fleet.project_of(cluster.name)}, but the nodes' own network is in "
            fix = "name networks of that project in existing"
            yield NODE_NETWORK_PROJECT.at(at, f"{wrong}{fleet.network_project}", fix)
        for network in pool.networks:
            zone = pool.zones if network.made and network.card.device_mode == "RDMA" else ()
            other, there = first.setdefault(
                network.card.network, (pool.name, (network.network, network.subnetwork, zone))
            )
            if there != (network.network, network.subnetwork, zone):
                wrong = f"{network.card.network} is another network on {{cluster}} than for pool {other}"
                fix = "name the same networks, or put the pool on another cluster"
                yield NETWORKS_DIFFER.at(at, f"{wrong}{' (another zone)' if zone else ''}", fix).on(cluster.name)
                break


def _shared_networks(path: str, pool: ResolvedNodePool, of_nodes: str) -> Iterator[Problem]:
    """Each card is in a network of its own; those for RDMA may share one, each in a subnet of its own.

    Source: https://cloud.google.com/vpc/docs/multiple-interfaces-concepts (each interface in another network),
    https://cloud.google.com/vpc/docs/create-vpc-network-rdma.
    """
    for index, network in enumerate(pool.networks):
        before = pool.networks[:index]
        alone = [one for one in before if "NetDevice" in (one.card.device_mode, network.card.device_mode)]
        if network.network in (of_nodes, *(one.network for one in alone)):
            which = "that of the nodes" if network.network == of_nodes else "another card's too"
            yield LISTED_TWICE.at(
                f"{path}[{index}].network", f"{network.network} is {which}", "name a network for each"
            )
        elif network.subnetwork in (one.subnetwork for one in before):
            wrong = f"{network.subnetwork} is another card's too"
            yield LISTED_TWICE.at(f"{path}[{index}].subnetwork", wrong, "name a subnet for each")


@entry_check("nvidiaDraDriver")
def _driver(scope: Scope, _: NvidiaDraDriver) -> Iterator[Problem]:
    """NVIDIA's DRA driver has nodes, and Kueue counts what the pods of ComputeDomains claim."""
    fleet = scope.fleet
    pools = [pool for name in fleet.cluster_names for pool in fleet.dra_pools_on(name)]
    if not pools:
        wrong = f"is not installed, as no node pool is of A4X or has the label {NO_DEVICE_PLUGIN}"
        yield NO_EFFECT.at("nvidiaDraDriver", wrong, "remove it, or add a node pool")
    resources = fleet.kueue.configuration.resources
    class_names = resources.counted_classes if resources is not None else {}
    if CHANNEL_CLASS not in class_names and not all(map(has_claimed_gpus, pools)):
        wrong = f"{CHANNEL_CLASS} is in no deviceClassMappings, so Kueue admits no job that is in a ComputeDomain"
        yield CLAIMED_CLASS.at("nvidiaDraDriver", wrong, "add it to kueue.configuration.resources.deviceClassMappings")


@entry_check("clusters")
def _driver_on(scope: Scope, cluster: ClusterEntry) -> Iterator[Problem]:
    """GPUs are handed out by claims or by GKE's device plugin, on all nodes with NVIDIA's DRA driver alike."""
    pools = scope.fleet.dra_pools_on(cluster.name)
    users = [pool.name for pool in pools if has_claimed_gpus(pool)]
    for pool in pools:
        entry = scope.fleet.node_pool(pool.name)
        if entry is None:
            continue
        at = path_on(scope, entry, cluster.name)
        if pool.name not in users and users:
            wrong = f"without {NO_DEVICE_PLUGIN}, but pods claim the GPUs of pool {users[0]} on {{cluster}}: those of "
            fix = "give both pools the label, or put one of them on another cluster"
            yield CLAIMED_GPUS.at(f"{at}.labels", f"{wrong}this pool would be handed out twice", fix).on(cluster.name)
        if pool.name in users and not entry.existing and pool.driver_version != "INSTALLATION_DISABLED":
            wrong = f"{pool.driver_version}, but GKE installs no drivers for GPUs that pods claim"
            fix = "set it to INSTALLATION_DISABLED: the fleet installs them"
            yield CLAIMED_GPUS.at(f"{at}.accelerator.driverVersion", wrong, fix)
    if pools:
        yield from cluster_since(scope, cluster, DRA_SINCE, "nvidiaDraDriver")
