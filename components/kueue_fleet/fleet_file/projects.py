"""The Google Cloud projects of a fleet: its own, and those that some of its workers are in.

What a Shared VPC's host project has to grant for clusters in service projects. Source:
https://cloud.google.com/kubernetes-engine/docs/how-to/cluster-shared-vpc#enabling_and_granting_roles.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from kueue_fleet.fleet_file.model.clusters import ClusterEntry
from kueue_fleet.fleet_file.model.fleet import FleetSpec

_GKE_AGENT: Final = "service-{}@container-engine-robot.iam.gserviceaccount.com"
"""Google's account by which GKE acts in a project, with the project's number."""
_GOOGLE_APIS_AGENT: Final = "{}@cloudservices.gserviceaccount.com"
"""Google's account that makes machines of a project."""


class HostGrant(NamedTuple):
    """A role that the host project of a Shared VPC grants to an account of Google's."""

    role: str
    agent: str
    """Address of the account, with {} for the number of the project."""
    project: str
    """Whose account it is."""
    subnets: tuple[tuple[str, str], ...]
    """Region and name of the subnets where a grant is enough, on each of them; empty: in the host project."""


def other_projects(fleet: FleetSpec) -> tuple[str, ...]:
    """The projects of clusters that are not in the fleet's, once each."""
    project_names = dict.fromkeys(cluster.project for cluster in fleet.gke_clusters if cluster.project)
    return tuple(project for project in project_names if project != fleet.project)


def clusters_in(fleet: FleetSpec, project: str) -> tuple[ClusterEntry, ...]:
    """The clusters of a project."""
    return tuple(cluster for cluster in fleet.gke_clusters if fleet.project_of(cluster.name) == project)


def host_grants(fleet: FleetSpec, project: str) -> tuple[HostGrant, ...]:
    """What the host project grants for the clusters that the fleet makes in `project`; none in the host itself.

    With these, GKE makes no firewall rules in the host project; a right to make some, such as
    roles/compute.securityAdmin, is the network's owner's to give.
    """
    clusters = [cluster for cluster in clusters_in(fleet, project) if not cluster.existing]
    network = fleet.network.existing
    if network is None or not clusters or fleet.network_project == project:
        return ()
    regions = dict.fromkeys(cluster.region for cluster in clusters if cluster.region in network.subnets)
    subnets = tuple((region, network.subnets[region].name) for region in regions)
    return (
        HostGrant("roles/container.hostServiceAgentUser", _GKE_AGENT, project, ()),
        HostGrant("roles/compute.networkUser", _GKE_AGENT, project, subnets),
        HostGrant("roles/compute.networkUser", _GOOGLE_APIS_AGENT, project, subnets),
    )
