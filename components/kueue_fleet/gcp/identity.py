"""Who may do what in Google Cloud, as components; what they declare is in `google.identities`."""

from collections.abc import Sequence

import pulumi
import pulumi_gcp as gcp

from kueue_fleet.fleet_file.worker_tokens import ManagerAccount
from kueue_fleet.gcp.declare import declare
from kueue_fleet.google.identities import NODE_ROLES, manager_identity, member_access, node_identity, team_identity
from kueue_fleet.in_programs import OwnComponent


class NodeIdentity(OwnComponent):
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
        rendered = node_identity(name, project=project, cluster_name=cluster_name, roles=roles)
        account, *self.roles = declare(self, rendered).values()
        self.email = account.email
        self.register_outputs({"email": self.email})


class TeamIdentity(OwnComponent):
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
        known = {str(index): resource for index, resource in enumerate(after)}
        rendered = team_identity(
            name,
            project=project,
            fleet=fleet,
            team=team,
            roles=roles,
            kubernetes_accounts=kubernetes_accounts,
            after=tuple(known),
        )
        self.account, *_ = declare(self, rendered, known).values()
        self.email = self.account.email
        self.register_outputs({"email": self.email})


class ManagerIdentity(OwnComponent):
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
        known = {str(index): resource for index, resource in enumerate(after)}
        rendered = manager_identity(name, project=project, fleet=fleet, accounts=accounts, after=tuple(known))
        declare(self, rendered, known)
        self.register_outputs({})


class MemberAccess(OwnComponent):
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
        rendered = member_access(name, project=project, fleet=fleet, members=members)
        self.role, *_ = declare(self, rendered).values()
        self.register_outputs({"role": self.role.name})
