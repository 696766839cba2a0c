"""Every resource of a fleet in Google Cloud, as plain data.

What is in the clusters: `objects`. The arguments that are functions here are those of the components too, so that a
program in Pulumi and what is rendered have one source.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from kueue_fleet.fleet_file import ClusterEntry, FleetSpec, NodePoolEntry, ServiceAccountToken
from kueue_fleet.fleet_file.controller_image import built_image
from kueue_fleet.fleet_file.model.capacity import Calendar, Reserved
from kueue_fleet.fleet_file.model.per_cluster import queue_goals
from kueue_fleet.fleet_file.model.resolved_pools import resolve_pool, system_pool_entry
from kueue_fleet.fleet_file.prerequisites import required_apis
from kueue_fleet.fleet_file.projects import clusters_in, other_projects
from kueue_fleet.google.accelerator_networks import accelerator_networks
from kueue_fleet.google.clusters import Access, cluster
from kueue_fleet.google.dashboards import dashboards
from kueue_fleet.google.identities import (
    NODE_ROLES,
    node_identity,
    team_identity,
)
from kueue_fleet.google.images import image_repository
from kueue_fleet.google.networks import OwnVpc, Vpc, existing_vpc, own_vpc
from kueue_fleet.google.node_pools import node_pool
from kueue_fleet.google.parts import CLOUD_PARTS, Surroundings, labels_of
from kueue_fleet.google.reserved_capacity import reserved_capacity
from kueue_fleet.google.resource import CloudResource
from kueue_fleet.google.resource_kinds import RESERVATIONS
from kueue_fleet.google.resource_types import CLUSTER
from kueue_fleet.google.services import services


def resources_on(fleet: FleetSpec) -> tuple[CloudResource, ...]:
    """Every resource, each after what it refers to; the APIs of the project come before all else.

    Calendar pools are open or closed as the file says; what a program gives to `Fleet` beside the file is not known.
    """
    return tuple(_resources_on(fleet))


def _resources_on(fleet: FleetSpec) -> Iterator[CloudResource]:
    name, project = fleet.name, fleet.project
    yield from services(f"{name}/apis", project=project, **api_arguments(fleet))
    if image_build := built_image(fleet):
        yield image_repository(f"{name}/controller-image", image_build, project=project, labels=labels_of(fleet))
    vpc = existing_vpc(fleet, project)
    if vpc is None and fleet.new_clusters:
        vpc = own_vpc(f"{name}/{fleet.network_name}", project=project, **network_arguments(fleet))
        yield from vpc.resources
    reserved_resources = reserved_capacity(name, project=project, **capacity_arguments(fleet))
    yield from reserved_resources
    clusters = {}
    for entry in fleet.gke_clusters:
        resources = list(_cluster(fleet, entry, vpc, reserved_resources))
        clusters[entry.name] = next(resource.key for resource in resources if resource.type == CLUSTER)
        yield from resources
    after = tuple(clusters[pool_maker] for pool_maker in pool_makers(fleet))
    addresses = existing_accounts(fleet)
    for team, arguments in team_arguments(fleet).items():
        identity = team_identity(f"{name}/{team}", project=project, after=after, **arguments)
        addresses[team] = identity[0].ref("email")
        yield from identity
    network = vpc.resources[0].ref("id") if isinstance(vpc, OwnVpc) else vpc.self_link if vpc else ""
    surroundings = Surroundings(addresses, network, isinstance(vpc, OwnVpc), after)
    for part in CLOUD_PARTS:
        yield from part.on(fleet, project, surroundings)
    yield from dashboards(name, fleet.observability, project=project, **dashboard_arguments(fleet))


def _cluster(
    fleet: FleetSpec, entry: ClusterEntry, vpc: Vpc | None, cloud_resources: Sequence[CloudResource]
) -> Iterator[CloudResource]:
    """The nodes' identity, the cluster, its node pools."""
    name, project = f"{fleet.name}/{entry.name}", fleet.project_of(entry.name)
    protection: dict[str, Any] = {"deletion_protection": fleet.protects(entry.name), "labels": labels_of(fleet)}
    account: Any = entry.node_service_account
    needs: tuple[str, ...] = ()
    if account is None and not (entry.existing and entry.mode == "Autopilot"):
        images = fleet.project if project != fleet.project else None
        identity = node_identity(
            f"{name}-nodes", project=project, cluster_name=entry.name, roles=NODE_ROLES, images_of=images
        )
        account, needs = identity[0].ref("email"), tuple(resource.key for resource in identity[1:])
        yield from identity
    if entry.existing or vpc is None:
        id_ = f"projects/{project}/locations/{entry.region}/clusters/{entry.name}"
        cluster_resource = CloudResource(CLUSTER, name, {}, read=id_)
    else:
        egress = (vpc.egress[entry.region],) if isinstance(vpc, OwnVpc) else ()
        place = cluster_arguments(fleet, entry, vpc)
        cluster_resource = cluster(
            name, entry, project=project, node_service_account=account, needs=(*needs, *egress), **place, **protection
        )
    yield cluster_resource
    there: dict[str, Any] = {
        "project": project,
        "cluster": cluster_resource.ref("name"),
        "service_account": account,
        **protection,
    }
    if not entry.existing:
        there["deleted_with"] = cluster_resource.key
        if entry.mode == "Standard":
            yield from node_pool(f"{name}/system", system_pool_entry(entry), entry, **there)
    else:
        there["private_nodes"] = cluster_resource.ref("privateClusterConfig.enablePrivateNodes")
    pools = pools_of(fleet, entry)
    networks = accelerator_networks(
        f"{name}/accelerator-networks", [resolve_pool(pool, entry) for pool in pools], project=project
    )
    yield from networks
    for pool in pools:
        reservation_name = reservation_of(pool, entry)
        awaited_keys = tuple(
            resource.key
            for resource in cloud_resources
            if resource.type in RESERVATIONS and resource.name == f"{fleet.name}/{reservation_name}"
        )
        if pool.on(entry.name).accelerator_networks is not None:
            awaited_keys += tuple(network.key for network in networks)
        yield from node_pool(f"{name}/{pool.name}", pool, entry, needs=awaited_keys, **there)


def api_arguments(fleet: FleetSpec) -> dict[str, Any]:
    """The arguments of the APIs that the fleet enables."""
    if not (fleet.enable_apis and fleet.gke_clusters):
        return {"apis": []}
    elsewhere = {other: [api.name for api in required_apis(fleet, other)] for other in other_projects(fleet)}
    return {"apis": [api.name for api in required_apis(fleet, fleet.project)], "elsewhere": elsewhere}


def pool_makers(fleet: FleetSpec) -> list[str]:
    """For each project a cluster, with which its Workload Identity pool is there; the fleet's own is the first."""
    projects = (fleet.project, *other_projects(fleet))
    home = {fleet.project: fleet.home} if fleet.cluster(fleet.home) in fleet.gke_clusters else {}
    return [
        home.get(project) or project_clusters[0].name
        for project in projects
        if (project_clusters := clusters_in(fleet, project))
    ]


def network_arguments(fleet: FleetSpec) -> dict[str, Any]:
    """The arguments of the network that the fleet makes."""
    return {
        "regions": [cluster.region for cluster in fleet.new_clusters],
        "ranges": fleet.network.ranges,
        "pod_ranges": fleet.network.pod_ranges,
        "service_ranges": fleet.network.service_ranges,
        "network_name": fleet.network_name,
    }


def capacity_arguments(fleet: FleetSpec) -> dict[str, Any]:
    """The arguments of what is reserved."""
    return {
        "reservations": fleet.reservations,
        "future_reservations": fleet.future_reservations,
        "commitments": fleet.commitments,
        "deletion_protection": fleet.deletion_protection,
    }


def cluster_arguments(fleet: FleetSpec, entry: ClusterEntry, network: Any) -> dict[str, Any]:
    """Where a cluster that is made is in `network`, a `Vpc` or a component, and how its API server is reached."""
    region = entry.region
    return {
        "network": network.self_link,
        "subnetwork": network.subnetworks[region],
        "access": _access(fleet, entry, network),
        "pod_range_name": network.pod_range_names.get(region),
        "service_range_name": network.service_range_names.get(region),
        "managed_prometheus": fleet.observability.managed_prometheus,
    }


def _access(fleet: FleetSpec, entry: ClusterEntry, network: Any) -> Access:
    """How a control plane is reached; a worker's also by the manager, whose pods speak from its region's ranges."""
    if fleet.network.control_plane_access == "DnsEndpoint":
        # Those of the fleet's own controller too: it is refused with any other credentials.
        tokens = fleet.multi_kueue is not None and isinstance(fleet.multi_kueue.credentials, ServiceAccountToken)
        return Access(kubernetes_tokens=tokens and entry.role == "worker")
    networks: dict[str, Any] = {
        authorized_network.name: authorized_network.cidr for authorized_network in fleet.network.authorized_networks
    }
    if entry.role == "worker" and fleet.manager in fleet.new_clusters:
        region = fleet.manager.region
        networks["nodes of the manager"] = network.node_ranges[region]
        if region in network.pod_ranges:
            networks["pods of the manager"] = network.pod_ranges[region]
    return Access(dns=False, networks=networks)


def pools_of(fleet: FleetSpec, entry: ClusterEntry) -> list[NodePoolEntry]:
    """The node pools of the file that the fleet makes on a cluster."""
    return [pool for pool in fleet.node_pools if entry.name in fleet.clusters_of(pool) and not pool.existing]


def reservation_of(pool: NodePoolEntry, entry: ClusterEntry) -> str | None:
    """The reservation whose machines a pool has on a cluster."""
    capacity = pool.on(entry.name).capacity
    return capacity.reservation if isinstance(capacity, Reserved | Calendar) else None


def team_arguments(fleet: FleetSpec) -> dict[str, dict[str, Any]]:
    """The arguments of each team's identity, of the teams that have one."""
    return {
        team.name: {
            "fleet": fleet.name,
            "team": team.name,
            "roles": team.google_service_account.roles,
            "kubernetes_accounts": [
                (namespace, team.service_account_name)
                for namespace in team.namespace_names
                if team.service_account_name
            ],
            "elsewhere": other_projects(fleet),
        }
        for team in fleet.teams
        if team.google_service_account is not None
    }


def existing_accounts(fleet: FleetSpec) -> dict[str, Any]:
    """The addresses of the Google accounts of teams that exist without the fleet, by team."""
    return {team.name: address for team in fleet.teams if (address := team.existing_google_service_account)}


def dashboard_arguments(fleet: FleetSpec) -> dict[str, Any]:
    """The arguments of dashboard and alerts."""
    return {
        "fleet": fleet.name,
        "manager": fleet.manager.name if fleet.manager else None,
        "job_clusters": fleet.job_clusters,
        "kueue_namespace": fleet.kueue.namespace,
        "stopped_queues": [queue.name for queue in fleet.cluster_queues if queue.stop_policy != "None"],
        "controller_namespace": fleet.controller.namespace if fleet.controller else None,
        "labels": labels_of(fleet),
        "goals": queue_goals(fleet),
        "follows_capacity": any(queue.quota_follows == "capacity" for queue in fleet.cluster_queues),
    }
