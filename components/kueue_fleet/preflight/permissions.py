"""The permissions that whoever runs `pulumi up` uses in a project of the fleet, and roles that have them.

Source: https://cloud.google.com/iam/docs/roles-permissions.
"""

from __future__ import annotations

from typing import NamedTuple

from kueue_fleet.fleet_file.controller_image import built_image
from kueue_fleet.fleet_file.model.fleet import FleetSpec
from kueue_fleet.fleet_file.projects import clusters_in
from kueue_fleet.fleet_file.worker_tokens import manager_accounts


class RoleNeed(NamedTuple):
    """A role, and the permissions of it that the fleet uses."""

    role: str
    reason: str
    """What they are for."""
    permissions: tuple[str, ...]


def role_needs(fleet: FleetSpec, project: str) -> tuple[RoleNeed, ...]:
    """What making `fleet` needs in a project of it, and what preflight itself reads with."""
    clusters, own = clusters_in(fleet, project), project == fleet.project
    pools = [pool for cluster in clusters for pool in fleet.node_pools_on(cluster.name)]
    new_clusters = [cluster for cluster in clusters if not cluster.existing]
    makes_clusters, own_network = bool(new_clusters), bool(fleet.new_clusters) and fleet.network.existing is None
    alerts, dashboard = own and fleet.observability.alerts.enabled, own and fleet.observability.dashboard
    image = own and built_image(fleet) is not None
    needs = (
        _role(
            "roles/container.admin",
            "clusters, node pools, and what is in the clusters",
            ("container.clusters.create", makes_clusters),
            ("container.clusters.get", True),
            ("container.clusters.update", True),
            ("container.clusters.delete", makes_clusters),
            ("container.operations.get", True),
            ("container.clusterRoles.create", True),
            ("container.clusterRoleBindings.create", True),
        ),
        _role(
            "roles/compute.networkAdmin",
            "the network, its subnets and Cloud NAT",
            ("compute.networks.create", own_network),
            ("compute.subnetworks.create", own_network),
            ("compute.routers.create", own_network),
        ),
        _role(
            "roles/compute.admin",
            "reservations, commitments and compact placement",
            ("compute.reservations.create", own and bool(fleet.reservations)),
            ("compute.futureReservations.create", own and bool(fleet.future_reservations)),
            ("compute.commitments.create", own and bool(fleet.commitments)),
            ("compute.resourcePolicies.create", any(pool.compact_placement for pool in pools)),
        ),
        _role(
            "roles/iam.serviceAccountAdmin",
            "service accounts of nodes and teams",
            ("iam.serviceAccounts.create", True),
            ("iam.serviceAccounts.get", True),
            ("iam.serviceAccounts.setIamPolicy", True),
        ),
        _role("roles/iam.serviceAccountUser", "nodes that run as these accounts", ("iam.serviceAccounts.actAs", True)),
        _role(
            "roles/resourcemanager.projectIamAdmin",
            "roles of these accounts in the project",
            ("resourcemanager.projects.getIamPolicy", True),
            ("resourcemanager.projects.setIamPolicy", True),
        ),
        _role(
            "roles/iam.roleAdmin",
            "the roles by which members of teams, and the manager, connect",
            (
                "iam.roles.create",
                any(team.members for team in fleet.teams)
                or any(manager_account.connects for manager_account in manager_accounts(fleet)),
            ),
        ),
        _role(
            "roles/gkehub.admin",
            "membership in the project's GKE fleet",
            ("gkehub.memberships.create", any(cluster.fleet_membership for cluster in new_clusters)),
        ),
        _role(
            "roles/monitoring.editor",
            "dashboards and alerts",
            ("monitoring.dashboards.create", dashboard),
            ("monitoring.alertPolicies.create", alerts),
        ),
        _role(
            "roles/artifactregistry.admin",
            "the repository of the controller's image, and the image in it",
            ("artifactregistry.repositories.create", image),
            ("artifactregistry.repositories.uploadArtifacts", image),
        ),
        _role(
            "roles/serviceusage.serviceUsageAdmin",
            "APIs that `pulumi up` enables",
            ("serviceusage.services.enable", fleet.enable_apis),
        ),
        _role(
            "roles/compute.viewer",
            "what preflight reads of Compute Engine",
            ("compute.projects.get", True),
            ("compute.regions.get", True),
            ("compute.machineTypes.list", True),
            ("compute.acceleratorTypes.list", True),
            ("compute.reservations.list", True),
            ("compute.networks.get", fleet.network_project == project),
            ("compute.subnetworks.list", fleet.network_project == project),
        ),
        _role(
            "roles/serviceusage.serviceUsageConsumer",
            "what preflight reads of APIs and quotas",
            ("serviceusage.services.list", True),
            ("serviceusage.quotas.get", True),
        ),
    )
    return tuple(need for need in needs if need.permissions)


def _role(role: str, reason: str, *permissions: tuple[str, bool]) -> RoleNeed:
    return RoleNeed(role, reason, tuple(name for name, is_used in permissions if is_used))
