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
from kueue_fleet.gcp.declare import concat, workload_pool

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
        account = _account(self, name, project, node_account_id(cluster_name), f"GKE nodes of {cluster_name}")
        self.email = account.email
        self.roles = _roles(self, name, project, account, roles)
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
        self.account = _account(self, name, project, team_account_id(fleet, team), f"Jobs of {team} ({fleet})")
        self.email = self.account.email
        _roles(self, name, project, self.account, roles)
        for namespace, account in kubernetes_accounts:
            _pods_act_as(self, f"{name}/{namespace}/{account}", project, self.account, (namespace, account), after)
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
            account = _account(self, f"{name}/{each.name}", project, each.account_id, f"{each.name} ({fleet})")
            _grant(self, f"{name}/{each.name}/connect", project, role.name, _member(account))
            pods = (each.namespace, each.service_account)
            _pods_act_as(self, f"{name}/{each.name}/pods", project, account, pods, after)
        self.register_outputs({})


def _account(
    parent: pulumi.Resource, name: str, project: pulumi.Input[str], account_id: str, title: str
) -> "gcp.serviceaccount.Account":
    options = pulumi.ResourceOptions(parent=parent)
    return gcp.serviceaccount.Account(name, project=project, account_id=account_id, display_name=title, opts=options)


def _member(account: "gcp.serviceaccount.Account") -> pulumi.Output[str]:
    """An account as a member of a policy."""
    return account.email.apply(lambda email: f"serviceAccount:{email}")


def _grant(
    parent: pulumi.Resource,
    name: str,
    project: pulumi.Input[str],
    role: pulumi.Input[str],
    member: pulumi.Input[str],
) -> "gcp.projects.IAMMember":
    options = pulumi.ResourceOptions(parent=parent)
    return gcp.projects.IAMMember(name, project=project, role=role, member=member, opts=options)


def _roles(
    parent: pulumi.Resource,
    name: str,
    project: pulumi.Input[str],
    account: "gcp.serviceaccount.Account",
    roles: Sequence[str],
) -> "list[gcp.projects.IAMMember]":
    member = _member(account)
    return [_grant(parent, f"{name}/{role.removeprefix('roles/')}", project, role, member) for role in roles]


def _pods_act_as(
    parent: pulumi.Resource,
    name: str,
    project: pulumi.Input[str],
    account: "gcp.serviceaccount.Account",
    pods: tuple[str, str],
    after: Sequence[pulumi.Resource],
) -> None:
    """Pods of the Kubernetes service account `pods`, a namespace and a name, may act as `account`."""
    namespace, kubernetes_account = pods
    gcp.serviceaccount.IAMMember(
        name,
        service_account_id=account.name,
        role=WORKLOAD_IDENTITY_ROLE,
        member=concat("serviceAccount:", workload_pool(project), f"[{namespace}/{kubernetes_account}]"),
        opts=pulumi.ResourceOptions(parent=parent, depends_on=list(after)),
    )


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
            _grant(self, f"{name}/{member}", project, self.role.name, member)
        self.register_outputs({"role": self.role.name})
