"""Who may do what in Google Cloud, as components; what they declare is in `google.identities`."""

from collections.abc import Sequence

import pulumi

from kueue_admission.kernel.base import DnsLabel, DnsSubdomain
from kueue_admission.kernel.model_problems import problems_in
from kueue_fleet.component import Component, judge
from kueue_fleet.fleet_file.model.gcp_names import GkeClusterName, IamRole, Member, ProjectId, ResourceName
from kueue_fleet.fleet_file.model.teams import TeamGoogleServiceAccount
from kueue_fleet.fleet_file.worker_tokens import ManagerAccount
from kueue_fleet.gcp_components.declare import declare
from kueue_fleet.gcp_components.sdk import gcp
from kueue_fleet.google.identities import (
    NODE_ROLES,
    grafana_identity,
    manager_identity,
    member_access,
    node_identity,
    team_identity,
)


def _numbered(after: Sequence[pulumi.Resource]) -> dict[str, pulumi.Resource]:
    """Resources that others come after, by names that rendered ones can wait for."""
    return {str(index): resource for index, resource in enumerate(after)}


class NodeIdentity(Component):
    """The service account of a cluster's nodes, with its roles."""

    email: pulumi.Output[str]
    """The account's address."""
    member: pulumi.Output[str]
    """The same as a member of grants: `serviceAccount:` and the address."""
    roles: "list[gcp.projects.IAMMember]"
    """The grants; nodes that start before them cannot write logs, so a cluster waits for all of them."""

    def __init__(
        self,
        name: str,
        *,
        project: pulumi.Input[ProjectId],
        cluster_name: GkeClusterName,
        roles: Sequence[IamRole] = NODE_ROLES,
        images_of: "pulumi.Input[ProjectId] | None" = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Declare the account and grant it `roles` in `project`, and the images of another project, `images_of`."""
        super().__init__(name, opts)
        rendered_resources = node_identity(
            name, project=project, cluster_name=cluster_name, roles=roles, images_of=images_of
        )
        account, *self.roles = declare(self, rendered_resources).values()
        self.email, self.member = account.email, account.member
        self._give_out()


class TeamIdentity(Component):
    """A team's Google service account, its roles, and which pods act as it."""

    email: pulumi.Output[str]
    """The account's address."""
    member: pulumi.Output[str]
    """The same as a member of grants: `serviceAccount:` and the address."""
    account: "gcp.serviceaccount.Account"
    """The account."""

    def __init__(
        self,
        name: str,
        *,
        project: pulumi.Input[ProjectId],
        fleet: ResourceName,
        team: DnsLabel,
        roles: Sequence[IamRole],
        kubernetes_accounts: Sequence[tuple[DnsLabel, DnsSubdomain]],
        after: Sequence[pulumi.Resource] = (),
        elsewhere: Sequence[ProjectId] = (),
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Declare the account, grant it `roles` in `project`, and let `kubernetes_accounts` act as it.

        Those are pairs of namespace and name, and mean the accounts of that name in every cluster of the project: the
        clusters of a project share one Workload Identity pool. The pool is created with the project's first cluster;
        put a cluster of the same program into `after`. `elsewhere` are other projects whose pods
        act as it, each with a cluster in `after`. Source: https://cloud.google.com/kubernetes-engine/docs/concepts/workload-identity#identity_sameness.

        Raises:
            SpecError: the roles break rules of the fleet file.
        """
        judge(problems_in(TeamGoogleServiceAccount.model_construct(roles=roles), f"TeamIdentity {name}"), opts)
        super().__init__(name, opts)
        known_resources = _numbered(after)
        rendered_resources = team_identity(
            name,
            project=project,
            fleet=fleet,
            team=team,
            roles=roles,
            kubernetes_accounts=kubernetes_accounts,
            after=tuple(known_resources),
            elsewhere=elsewhere,
        )
        self.account, *_ = declare(self, rendered_resources, known_resources).values()
        self.email, self.member = self.account.email, self.account.member
        self._give_out()


class ManagerIdentity(Component):
    """The Google service accounts by which the manager's pods reach the workers: they may connect, and no more.

    The workers' RBAC decides what they may do there.
    """

    def __init__(
        self,
        name: str,
        *,
        project: pulumi.Input[ProjectId],
        fleet: ResourceName,
        accounts: Sequence[ManagerAccount],
        after: Sequence[pulumi.Resource] = (),
        elsewhere: Sequence[ProjectId] = (),
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Declare the accounts, the role and the grants; `after` as for `TeamIdentity`.

        `elsewhere` are other projects with workers, each of which gets the role and the grants.
        """
        super().__init__(name, opts)
        known_resources = _numbered(after)
        rendered_resources = manager_identity(
            name, project=project, fleet=fleet, accounts=accounts, after=tuple(known_resources), elsewhere=elsewhere
        )
        declare(self, rendered_resources, known_resources)
        self._give_out()


class GrafanaIdentity(Component):
    """The Google service account by which the fleet's Grafana reads metrics, and nothing else."""

    email: pulumi.Output[str]
    """The account's address."""

    def __init__(
        self,
        name: str,
        *,
        project: pulumi.Input[ProjectId],
        fleet: ResourceName,
        namespace: DnsLabel = "monitoring",
        after: Sequence[pulumi.Resource] = (),
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Declare the account and its role in `project`; Grafana's pods in `namespace` act as it, see `GrafanaInstall`.

        `after` is as for `TeamIdentity`.
        """
        super().__init__(name, opts)
        known_resources = _numbered(after)
        rendered_resources = grafana_identity(
            name, project=project, fleet=fleet, namespace=namespace, after=tuple(known_resources)
        )
        account, *_ = declare(self, rendered_resources, known_resources).values()
        self.email = account.email
        self._give_out()


class MemberAccess(Component):
    """A role by which the members of teams connect to the clusters; RBAC decides what they may do there."""

    role: "gcp.projects.IAMCustomRole"
    """The role."""
    role_name: pulumi.Output[str]
    """Its name in Google Cloud, as grants have it."""

    def __init__(
        self,
        name: str,
        *,
        project: pulumi.Input[ProjectId],
        fleet: ResourceName,
        members: Sequence[Member],
        elsewhere: Sequence[ProjectId] = (),
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Declare the role in `project`, and grant it to `members`: `group:`, `user:` or `serviceAccount:`, address.

        `elsewhere` are other projects with clusters, each of which gets a role and grants of its own.
        """
        super().__init__(name, opts)
        rendered_resources = member_access(name, project=project, fleet=fleet, members=members, elsewhere=elsewhere)
        self.role, *_ = declare(self, rendered_resources).values()
        self.role_name = self.role.name
        self._give_out()
