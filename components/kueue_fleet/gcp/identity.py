"""Who may do what in Google Cloud: the nodes of a cluster, the jobs of a team, the members of teams.

Nodes get what a GKE node needs and no more, instead of the project's default account, which is an Editor. Jobs do not
use that account but their team's, by Workload Identity: Kubernetes service accounts of the team's namespaces may act as
it, and there is no key.
"""

from collections.abc import Sequence

import pulumi
import pulumi_gcp as gcp

from kueue_fleet.fleet_file.model.accounts import account_id, connect_role_id, members_role_id, team_account_id
from kueue_fleet.fleet_file.worker_tokens import ManagerAccount
from kueue_fleet.gcp.arguments import concat, workload_pool

NODE_ROLES: tuple[str, ...] = ("roles/container.defaultNodeServiceAccount", "roles/artifactregistry.reader")
"""Logs, metrics and autoscaling; images of the project's registries. Source:
https://cloud.google.com/kubernetes-engine/docs/how-to/service-accounts#default-gke-service-agent."""

WORKLOAD_IDENTITY_ROLE = "roles/iam.workloadIdentityUser"
"""To act as a Google service account from a pod."""

CONNECT_PERMISSIONS: tuple[str, ...] = (
    "container.clusters.connect",
    "container.clusters.get",
    "container.clusters.list",
)
"""To find clusters, get a kubeconfig for them and reach their DNS endpoint. None of them reads or writes an object of
Kubernetes: roles/container.viewer and roles/container.developer do, in every namespace, beside RBAC. Source:
https://cloud.google.com/kubernetes-engine/docs/concepts/network-isolation#dns-based-endpoint."""


def node_account_id(cluster_name: str) -> str:
    """The service account id of a cluster's nodes: `gke-<cluster>`, with a digest where it would not fit."""
    return account_id(f"gke-{cluster_name}", cluster_name)


class NodeIdentity(pulumi.ComponentResource):
    """The service account of a cluster's nodes, with its roles."""

    email: pulumi.Output[str]
    """The account's address."""
    roles: "list[gcp.projects.IAMMember]"
    """The grants; nodes that start before them cannot write logs, so a cluster waits for all of them."""

    def __init__(
        self,
        name: str,
        *,
        project: pulumi.Input[str],
        cluster_name: str,
        roles: Sequence[str] = NODE_ROLES,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Declare the account and grant it `roles` in `project`."""
        super().__init__("kueue-fleet:index:NodeIdentity", name, None, opts)
        account = gcp.serviceaccount.Account(
            name,
            project=project,
            account_id=node_account_id(cluster_name),
            display_name=f"GKE nodes of {cluster_name}",
            opts=pulumi.ResourceOptions(parent=self),
        )
        self.email = account.email
        member = self.email.apply(lambda email: f"serviceAccount:{email}")
        self.roles = [
            gcp.projects.IAMMember(
                f"{name}/{role.removeprefix('roles/')}",
                project=project,
                role=role,
                member=member,
                opts=pulumi.ResourceOptions(parent=self),
            )
            for role in roles
        ]
        self.register_outputs({"email": self.email})


class TeamIdentity(pulumi.ComponentResource):
    """A team's Google service account, its roles, and which pods act as it."""

    email: pulumi.Output[str]
    """The account's address."""
    account: "gcp.serviceaccount.Account"
    """The account."""

    def __init__(
        self,
        name: str,
        *,
        project: pulumi.Input[str],
        fleet: str,
        team: str,
        roles: Sequence[str],
        kubernetes_accounts: Sequence[tuple[str, str]],
        after: Sequence[pulumi.Resource] = (),
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Declare the account, grant it `roles` in `project`, and let `kubernetes_accounts` act as it.

        Those are pairs of namespace and name, and mean the accounts of that name in every cluster of the project: the
        clusters of a project share one Workload Identity pool. The pool is created with the project's first cluster;
        put a cluster of the same program into `after`. Source:
        https://cloud.google.com/kubernetes-engine/docs/concepts/workload-identity#identity_sameness.
        """
        super().__init__("kueue-fleet:index:TeamIdentity", name, None, opts)
        self.account = gcp.serviceaccount.Account(
            name,
            project=project,
            account_id=team_account_id(fleet, team),
            display_name=f"Jobs of {team} ({fleet})",
            opts=pulumi.ResourceOptions(parent=self),
        )
        self.email = self.account.email
        member = self.email.apply(lambda email: f"serviceAccount:{email}")
        for role in roles:
            gcp.projects.IAMMember(
                f"{name}/{role.removeprefix('roles/')}",
                project=project,
                role=role,
                member=member,
                opts=pulumi.ResourceOptions(parent=self),
            )
        for namespace, account in kubernetes_accounts:
            gcp.serviceaccount.IAMMember(
                f"{name}/{namespace}/{account}",
                service_account_id=self.account.name,
                role=WORKLOAD_IDENTITY_ROLE,
                member=_pods(project, namespace, account),
                opts=pulumi.ResourceOptions(parent=self, depends_on=list(after)),
            )
        self.register_outputs({"email": self.email})


class ManagerIdentity(pulumi.ComponentResource):
    """The Google service accounts by which the manager's pods reach the workers: they may connect, and no more.

    The workers' RBAC decides what they may do there.
    """

    def __init__(
        self,
        name: str,
        *,
        project: pulumi.Input[str],
        fleet: str,
        accounts: Sequence[ManagerAccount],
        after: Sequence[pulumi.Resource] = (),
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Declare the accounts, the role and the grants; `after` as for `TeamIdentity`."""
        super().__init__("kueue-fleet:index:ManagerIdentity", name, None, opts)
        role = _connect_role(
            self,
            name,
            project,
            connect_role_id(fleet),
            f"Manager of {fleet}",
            "Connect to the workers. What it may do there is in their ClusterRoles and RoleBindings.",
            ("container.clusters.connect",),
        )
        for each in accounts:
            account = gcp.serviceaccount.Account(
                f"{name}/{each.name}",
                project=project,
                account_id=each.account_id,
                display_name=f"{each.name} ({fleet})",
                opts=pulumi.ResourceOptions(parent=self),
            )
            gcp.projects.IAMMember(
                f"{name}/{each.name}/connect",
                project=project,
                role=role.name,
                member=account.email.apply(lambda email: f"serviceAccount:{email}"),
                opts=pulumi.ResourceOptions(parent=self),
            )
            gcp.serviceaccount.IAMMember(
                f"{name}/{each.name}/pods",
                service_account_id=account.name,
                role=WORKLOAD_IDENTITY_ROLE,
                member=_pods(project, each.namespace, each.service_account),
                opts=pulumi.ResourceOptions(parent=self, depends_on=list(after)),
            )
        self.register_outputs({})


def _pods(project: pulumi.Input[str], namespace: str, account: str) -> pulumi.Input[str]:
    """The pods of a Kubernetes service account, as a member of a policy."""
    return concat("serviceAccount:", workload_pool(project), f"[{namespace}/{account}]")


def _connect_role(
    parent: pulumi.ComponentResource,
    name: str,
    project: pulumi.Input[str],
    role_id: str,
    title: str,
    description: str,
    permissions: Sequence[str],
) -> "gcp.projects.IAMCustomRole":
    return gcp.projects.IAMCustomRole(
        name,
        project=project,
        role_id=role_id,
        title=title,
        description=description,
        permissions=list(permissions),
        opts=pulumi.ResourceOptions(parent=parent),
    )


class MemberAccess(pulumi.ComponentResource):
    """A role by which the members of teams connect to the clusters; RBAC decides what they may do there."""

    role: "gcp.projects.IAMCustomRole"
    """The role."""

    def __init__(
        self,
        name: str,
        *,
        project: pulumi.Input[str],
        fleet: str,
        members: Sequence[str],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Declare the role in `project`, and grant it to `members`: `group:`, `user:` or `serviceAccount:`, address."""
        super().__init__("kueue-fleet:index:MemberAccess", name, None, opts)
        self.role = _connect_role(
            self,
            name,
            project,
            members_role_id(fleet),
            f"Members of teams ({fleet})",
            "Connect to the clusters. What they may do there is in the Roles of their namespaces.",
            CONNECT_PERMISSIONS,
        )
        for member in members:
            gcp.projects.IAMMember(
                f"{name}/{member}",
                project=project,
                role=self.role.name,
                member=member,
                opts=pulumi.ResourceOptions(parent=self),
            )
        self.register_outputs({"role": self.role.name})
